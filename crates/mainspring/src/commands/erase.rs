//! `mainspring erase`: erases values of an execution; the hash chain of its journal stays.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};

use super::quarantine::check_reason;
use crate::{
    backend::contract::Erased,
    context::Context,
    error::{CliError, Exit},
    output::{terminal::print_out, text::shown},
};

/// Erase values of an ended execution.
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// Only inputs and outputs of this step or step instance; repeatable
    #[arg(long, value_name = "STEP")]
    step: Vec<String>,
    /// The reason, recorded in the sealed note and the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Erases values. The chain stays valid, and `verify` names the erased values.
pub(crate) fn erase(erase: &Erase, context: &Context) -> Result<Exit, CliError> {
    check_reason(&erase.reason)?;
    let Erased { id, count } = context.backend()?.erase(&erase.id, &erase.step, &erase.reason)?;
    if context.global.json {
        let value = [("ok", true.into()), ("executionId", id.as_str().into()), ("erased", count.into())];
        print_out!("{}", compact(&Value::map(value)));
        return Ok(Exit::Fine);
    }
    let words = match count {
        0 => "nothing to erase: already erased".to_string(),
        1 => "1 value erased".to_string(),
        count => format!("{count} values erased"),
    };
    context.terminal.note(&format!("{}: {words}; copies in journals of its parent and children remain", shown(&id)));
    Ok(Exit::Fine)
}
