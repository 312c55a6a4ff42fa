//! `mainspring usage`: shows what the agents of an execution have used, and what its budget leaves.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{
        execution_view::AttemptPage,
        terminal::{bold, dim, print_out},
        text::shown,
    },
};

/// Show what the agents of an execution have used, and what its budget leaves
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
}

/// Runs the command.
pub(crate) fn usage(usage: &Usage, context: &Context) -> Result<Exit, CliError> {
    let details = context.backend()?.show(&usage.id, AttemptPage { skip: 0, limit: Some(0) })?;
    let value = details.envelope.get("usage").cloned().unwrap_or_default();
    if context.global.json {
        print_out!("{}", compact(&Value::map([("usage", value)])));
        return Ok(Exit::Fine);
    }
    if value == Value::Null {
        print_out!("{}", dim("no agent of this execution has called a model or a tool"));
        return Ok(Exit::Fine);
    }
    print(&value);
    Ok(Exit::Fine)
}

/// Prints a usage: a line for each quantity, with its limit.
pub(super) fn print(usage: &Value) {
    for name in mainspring_kernel::budget::NAMES {
        let of = |part: &str| usage.get(part).and_then(|part| part.get(name)).map(|amount| shown(&compact(amount)));
        let (used, limit) = (of("used"), of("limits"));
        if used.is_none() && limit.is_none() {
            continue;
        }
        let mut line = format!("{} {}", bold(&format!("{name:<11}")), used.unwrap_or_else(|| "0".into()));
        if let Some(limit) = limit {
            line.push_str(&dim(&format!(" of {limit}, {} left", of("left").unwrap_or_else(|| "0".into()))));
        }
        if let Some(reserved) = of("reserved") {
            line.push_str(&dim(&format!(", {reserved} reserved by calls in progress")));
        }
        print_out!("{line}");
    }
}
