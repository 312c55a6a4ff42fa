//! Things outside of the definition: workflows, secrets, models with their prices, tool servers and external agents. An
//! unknown one is a warning, because it may become known before the execution starts.

use alloc::{collections::BTreeSet, format};

use super::{
    agents::is_runner,
    help::Help,
    inspector::{Missing, Outside},
    outline::Outline,
    references::Reader,
    report::Report,
};
use crate::{diagnostic::quoted, document::Path, plan::Constraints, secret::SESSION_TOKEN, value::Value};

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

/// Warns about a limit of the cost of a model whose price is unknown where the definition is: its calls would fail. A
/// budget with several such models is reported once for each.
pub(super) fn check_prices(constraints: &Constraints, outline: &Outline<'_>, report: &mut Report<'_>) {
    let limits_all = constraints.budget.as_ref().is_some_and(|budget| budget.limits.has_cost());
    let mut warned = BTreeSet::new();
    for entry in outline.entries.iter().filter(|entry| entry.is_first()) {
        if entry.kind.is_none_or(|kind| kind.name != "agent") || is_runner(entry.kind, &entry.fields) {
            continue;
        }
        let limits_own = entry.fields.get("budget").is_some_and(|budget| budget.get("cost").is_some());
        let model = match entry.fields.get("model") {
            None => "",
            Some(Value::Text(model)) if !model.contains('@') => model,
            Some(_) => continue,
        };
        let holder = if limits_own { entry.fields.path.clone() } else { Path::root().key("constraints") };
        if !(limits_own || limits_all) || !warned.insert((holder.clone(), model)) {
            continue;
        }
        let Some(Missing { place, remedy, .. }) = report.inspector().missing(Outside::Price, model) else { continue };
        let of = if model.is_empty() { "the default model".into() } else { format!("the model {}", quoted(model)) };
        let message = format!("the budget limits the cost, and there is no price for {of} {place}");
        report.warning(Outside::Price.code(), &holder.key("budget").key("cost"), message, remedy);
    }
}
