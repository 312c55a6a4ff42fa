//! Names of things outside of the definition: workflows, secrets, models and tool servers. An unknown one is a warning,
//! because it may become known before the execution starts.

use alloc::format;

use super::{
    help::Help,
    inspector::{Missing, Outside},
    references::Reader,
};
use crate::{diagnostic::quoted, document::Path, secret::SESSION_TOKEN};

impl Reader<'_, '_> {
    /// Warns about a name that is unknown where the definition is. A name that refers to values is settled later.
    pub(super) fn check_outside(&mut self, what: Outside, name: &str, path: &Path) {
        if name.contains('@') || name == SESSION_TOKEN || what == Outside::Workflow && self.is_own_name(name) {
            return;
        }
        let Some(Missing { place, nearest, remedy }) = self.report.inspector().missing(what, name) else { return };
        let message = format!("there is no {} {} {place}", what.name(), quoted(name));
        let help = match nearest {
            Some(nearest) => Help::value(path, nearest),
            None => remedy.into(),
        };
        self.report.warning(what.code(), path, message, help);
    }

    /// Warns about the server of a tool that is unknown where the definition is. The name of a tool without its server is
    /// looked up at the servers.
    pub(super) fn check_tool_server(&mut self, tool: &str, path: &Path) {
        let Some((server, name)) = tool.split_once('.').filter(|_| !tool.contains('@')) else { return };
        let Some(Missing { place, nearest, remedy }) = self.report.inspector().missing(Outside::ToolServer, server)
        else {
            return;
        };
        let message = format!("there is no tool server {} {place}", quoted(server));
        let help = match nearest {
            Some(nearest) => Help::value(path, format!("{nearest}.{name}")),
            None => remedy.into(),
        };
        self.report.warning(Outside::ToolServer.code(), path, message, help);
    }

    /// True for the name of the definition itself, which may start itself.
    fn is_own_name(&self, name: &str) -> bool {
        let own = self.report.part(&Path::root().key("name"));
        own.and_then(|own| own.as_text()) == Some(name)
    }
}
