//! `mainspring explain`: the language and all error codes, offline.

use clap::Args;
use mainspring_authoring::explain;
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::print_out,
};

/// Explain a step type, a topic, a key or an error code.
///
/// Without a topic, lists all topics. Error codes may have a number: bash_exit_code:3.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A topic, such as bash, references, retry or scenario; a key; or an error code
    topic: Option<String>,
}

pub(crate) fn explain(command: &Explain, context: &Context) -> Result<Exit, CliError> {
    let Some(topic) = &command.topic else {
        match context.global.json {
            true => print_out!("{}", compact(&Value::map([("ok", true.into()), ("topics", explain::list())]))),
            false => print_out!("{}", explain::render_list()),
        }
        return Ok(Exit::Fine);
    };
    let explanation = explain::explain(topic).map_err(|similar| {
        let help = match similar {
            Some(similar) => format!("try `mainspring explain {similar}`"),
            None => "`mainspring explain` lists all topics".into(),
        };
        CliError::bad_input("unknown_topic", format!("there is no topic, key or error code {topic:?}; {help}"))
    })?;
    match context.global.json {
        true => print_out!("{}", explain::envelope(&explanation)),
        false => print_out!("{}", explanation.render()),
    }
    Ok(Exit::Fine)
}
