//! The callers of the engine that wait for a reply or for durable frames.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::{mpsc, oneshot};

use crate::{
    intake::Charge,
    shard::{CommittedFrame, Reply, Ticket},
};

/// The waiting callers.
#[derive(Default)]
pub(in crate::driver) struct Callers {
    pub(in crate::driver) waiting: BTreeMap<Ticket, Asker>,
    pub(in crate::driver) watchers: HashMap<ExecutionKey, Vec<Watcher>>,
}

impl Callers {
    pub(in crate::driver) fn ask(&mut self, ticket: Ticket, asker: Asker) {
        self.waiting.insert(ticket, asker);
    }

    pub(in crate::driver) fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.waiting.remove(&ticket).map(|asker| asker.sender.send(reply));
    }

    /// Drops a caller, which then gets the error that the engine has stopped.
    pub(in crate::driver) fn drop_caller(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Adds a watcher of an execution. Disconnected watchers are removed here and with each count, since an idle
    /// execution sends them nothing.
    pub(in crate::driver) fn watch(&mut self, execution: ExecutionKey, watcher: Watcher) {
        let watchers = self.watchers.entry(execution).or_default();
        watchers.retain(|watcher| !watcher.is_gone());
        watchers.push(watcher);
    }

    /// Ends the subscriptions to an execution.
    pub(in crate::driver) fn unwatch(&mut self, execution: ExecutionKey) {
        self.watchers.remove(&execution);
    }

    pub(in crate::driver) fn forget_gone(&mut self) {
        self.watchers.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.is_gone());
            !watchers.is_empty()
        });
    }

    pub(in crate::driver) fn notify(&mut self, frame: &Arc<CommittedFrame>) {
        if let Some(watchers) = self.watchers.get_mut(&frame.execution) {
            watchers.retain(|watcher| watcher.notify(frame));
            if watchers.is_empty() {
                self.watchers.remove(&frame.execution);
            }
        }
    }

    pub(in crate::driver) fn clear(&mut self) {
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
    pub(in crate::driver) fn is_gone(&self) -> bool {
        match self {
            Self::OfAll(sender) => sender.is_closed(),
            Self::InTime(sender) => sender.is_closed(),
        }
    }

    /// Returns false if the subscriber has disconnected or was too slow.
    pub(in crate::driver) fn notify(&self, frame: &Arc<CommittedFrame>) -> bool {
        match self {
            Self::OfAll(sender) => sender.send(frame.clone()).is_ok(),
            Self::InTime(sender) => sender.try_send(frame.clone()).is_ok(),
        }
    }
}

/// A caller that waits for a reply, with its share of the bound of pending requests.
pub(crate) struct Asker {
    pub(crate) sender: oneshot::Sender<Reply>,
    pub(crate) _charge: Charge,
}
