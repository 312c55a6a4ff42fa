//! `mainspring cancel`: cancels an execution.

use clap::Args;
use mainspring_kernel::limits::NAME_CHARS_MAX;

use crate::{
    context::Context,
    error::{CliError, Exit},
};

/// Cancel an execution.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WORD", default_value = "user_cancelled")]
    reason: String,
    /// Skip the steps of `finally`, as a second cancel does
    #[arg(long)]
    force: bool,
}

/// Cancels an execution: running work is stopped, nothing new starts, and the history is kept.
pub(crate) fn cancel(cancel: &Cancel, context: &Context) -> Result<Exit, CliError> {
    if !(1..=NAME_CHARS_MAX).contains(&cancel.reason.chars().count()) {
        let message = format!("--reason must have 1 to {NAME_CHARS_MAX} characters");
        return Err(CliError::bad_input("bad_reason", message));
    }
    Ok(context.backend()?.cancel(&cancel.id, &cancel.reason, cancel.force)?.conclude(context))
}
