//! A panic in the turn of one execution sets that execution aside. The shard and its other executions go on.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;

use super::{Shard, ShardError, Ticket};

impl Shard {
    /// Does the work of one execution. After a panic nothing in memory of that execution is used any more: it is set
    /// aside, and the callers that wait for it are told why. What other executions have in the shard is not touched by
    /// the work of this one, so that it stays as it was.
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

/// The reason for which an execution is set aside after a panic.
pub(crate) fn why(panic: &(dyn Any + Send)) -> String {
    format!("the engine panicked while it worked on this execution; this is a fault of the engine: {}", text(panic))
}

/// The text of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
