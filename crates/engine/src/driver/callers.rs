//! The callers of the engine that wait for a reply or for durable frames.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::mpsc;

use super::Asker;
use crate::shard::{CommittedFrame, Reply, Ticket};

/// The waiting callers.
#[derive(Default)]
pub(super) struct Callers {
    waiting: BTreeMap<Ticket, Asker>,
    watchers: HashMap<ExecutionKey, Vec<Watcher>>,
}

impl Callers {
    pub(super) fn ask(&mut self, ticket: Ticket, asker: Asker) {
        self.waiting.insert(ticket, asker);
    }

    pub(super) fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.waiting.remove(&ticket).map(|asker| asker.sender.send(reply));
    }

    /// Drops a caller, who learns that the engine stops.
    pub(super) fn drop_caller(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Adds a watcher of an execution. Watchers that are gone are removed here and with each count, since an idle
    /// execution sends them nothing.
    pub(super) fn watch(&mut self, execution: ExecutionKey, watcher: Watcher) {
        let watchers = self.watchers.entry(execution).or_default();
        watchers.retain(|watcher| !watcher.is_gone());
        watchers.push(watcher);
    }

    /// Ends the subscriptions to an execution.
    pub(super) fn unwatch(&mut self, execution: ExecutionKey) {
        self.watchers.remove(&execution);
    }

    pub(super) fn forget_gone(&mut self) {
        self.watchers.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.is_gone());
            !watchers.is_empty()
        });
    }

    pub(super) fn notify(&mut self, frame: &Arc<CommittedFrame>) {
        if let Some(watchers) = self.watchers.get_mut(&frame.execution) {
            watchers.retain(|watcher| watcher.notify(frame));
            if watchers.is_empty() {
                self.watchers.remove(&frame.execution);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.watchers.clear();
    }
}

/// A subscriber to the frames of an execution.
pub(crate) enum Watcher {
    /// Receives all frames without a bound: for a process with one user.
    OfAll(mpsc::UnboundedSender<Arc<CommittedFrame>>),
    /// Receives frames up to a bound. A slow subscriber is dropped, and reads the rest from the journal.
    InTime(mpsc::Sender<Arc<CommittedFrame>>),
}

impl Watcher {
    fn is_gone(&self) -> bool {
        match self {
            Self::OfAll(sender) => sender.is_closed(),
            Self::InTime(sender) => sender.is_closed(),
        }
    }

    /// Returns false if the subscriber is gone or was too slow.
    fn notify(&self, frame: &Arc<CommittedFrame>) -> bool {
        match self {
            Self::OfAll(sender) => sender.send(frame.clone()).is_ok(),
            Self::InTime(sender) => sender.try_send(frame.clone()).is_ok(),
        }
    }
}
