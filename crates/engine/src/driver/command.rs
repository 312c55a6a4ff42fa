//! The input of the driver.

use std::time::Instant;

use mainspring_kernel::{effect::Outcome, key::ExecutionKey};
use mainspring_store::StoreError;
use tokio::sync::oneshot;

use super::state::{
    callers::{Asker, Watcher},
    maintenance::Swept,
};
use crate::{
    evaluator::Suspended,
    node::{AttemptId, NodeEvent},
    shard::{Event, Pending, Ticket},
};

/// Input of the driver.
pub(crate) enum Command {
    Node(NodeEvent),
    /// An event for the shard whose reply a caller waits for.
    Ask(Ticket, Asker, Event),
    /// An attempt that asked people to fill in a form continues, or its call has ended. `began` is the time of the part of
    /// the attempt that asked.
    WatchEnded {
        name: AttemptId,
        began: Instant,
        ended: Option<Box<Outcome>>,
    },
    /// Subscribes to the durable frames of an execution.
    Watch(ExecutionKey, Watcher),
    /// A turn that was decided outside the driver and needs evaluations.
    Evaluate(ExecutionKey, u64, Box<Suspended>),
    /// The result of a check that the store still has the files it opened.
    FilesChecked(Result<(), StoreError>),
    /// The result of comparing some executions with their journals.
    Swept(Swept),
    /// Requests the executions in memory and those with a timer.
    Pending(oneshot::Sender<Pending>),
}

impl From<Event> for Command {
    fn from(event: Event) -> Self {
        Self::Node(NodeEvent::Shard(event))
    }
}
