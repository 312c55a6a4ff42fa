//! A panic in the turn of an execution quarantines that execution. The shard and its other executions continue.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;

use super::{Shard, ShardError, Ticket};

impl Shard {
    /// Runs the work of one execution. After a panic its memory is dropped, the execution is quarantined, and its
    /// callers receive the reason. The work of one execution does not modify others, so they remain consistent.
    pub(super) fn contain(
        &mut self,
        execution: ExecutionKey,
        asked: impl IntoIterator<Item = Ticket>,
        work: impl FnOnce(&mut Self),
    ) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self))) else { return };
        let why = why(&*panic);
        for ticket in asked {
            self.reply(ticket, Err(ShardError::Quarantined(why.clone())));
        }
        self.quarantine(execution, why);
    }
}

/// The reason of a quarantine after a panic.
pub(crate) fn why(panic: &(dyn Any + Send)) -> String {
    format!("the engine panicked while it worked on this execution; this is a fault of the engine: {}", text(panic))
}

/// The message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
