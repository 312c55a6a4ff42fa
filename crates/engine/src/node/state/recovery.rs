//! Attempts of this process, attempts to recover, and receipts to forward.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use mainspring_store::RemoteAttempt;

use crate::{
    clock::MonotonicMs,
    node::protocol::{AttemptId, ForwardRequest},
};

/// Time for which a receipt is forwarded again and again while the store does not answer. At its end, the owner of the
/// execution has marked the attempt as interrupted. It is a duration and not a number of tries: a try at a silent
/// server takes minutes, and a draining node waits for the last one.
pub(in crate::node) const TRIES_LAST_MS: u64 = 60_000;

/// Milliseconds between two tries.
pub(in crate::node) const TRY_AGAIN_MS: u64 = 500;

/// An open attempt whose outcome is to be recovered.
pub(in crate::node) type ToReconcile = (ExecutionKey, Instance, Attempt);

/// Attempts of this process, attempts to recover, and receipts to forward.
#[derive(Debug, Default)]
pub(in crate::node) struct Recovery {
    /// Attempts that this process performs.
    pub(in crate::node) running: BTreeSet<AttemptId>,
    /// Attempts to recover after the inbox has been read.
    pub(in crate::node) to_reconcile: Vec<ToReconcile>,
    /// Receipts that are being enqueued.
    pub(in crate::node) forwards: BTreeMap<u64, Forward>,
    /// The number of the last forwarded receipt.
    pub(in crate::node) forwarded: u64,
    /// Attempts whose receipts were enqueued before the store recorded that they run here.
    pub(in crate::node) ended_early: Vec<RemoteAttempt>,
}

/// A receipt that is being enqueued.
#[derive(Debug)]
pub(in crate::node) struct Forward {
    pub(in crate::node) request: ForwardRequest,
    pub(in crate::node) began: MonotonicMs,
    /// The time of the next try. `None` while a try is in progress.
    pub(in crate::node) next_at: Option<MonotonicMs>,
    /// The incarnation of the node that performed the attempt.
    pub(in crate::node) incarnation: u32,
}

impl Recovery {
    /// True if an attempt waits for a pass over the inbox.
    pub(in crate::node) fn is_waiting(&self) -> bool {
        !self.to_reconcile.is_empty()
    }

    /// Takes the attempts to recover after a pass from the start of the inbox. Attempts of an execution whose receipts
    /// are still being enqueued here wait for that.
    pub(in crate::node) fn take_settled(&mut self) -> Vec<ToReconcile> {
        let all = std::mem::take(&mut self.to_reconcile);
        let (asked, later) = all.into_iter().partition(|asked| self.is_settled(asked));
        self.to_reconcile = later;
        asked
    }

    /// Adds attempts whose pass was not completed.
    pub(in crate::node) fn put_back(&mut self, asked: impl Iterator<Item = ToReconcile>) {
        self.to_reconcile.extend(asked);
    }

    pub(in crate::node) fn is_settled(&self, (execution, ..): &ToReconcile) -> bool {
        self.forwards.values().all(|forward| forward.request.execution != *execution)
    }

    /// True if no attempt runs and no receipt is being enqueued.
    pub(in crate::node) fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.forwards.is_empty()
    }

    pub(in crate::node) fn running(&self) -> impl Iterator<Item = &AttemptId> {
        self.running.iter()
    }

    /// The time of the next try to forward a receipt.
    pub(in crate::node) fn next_try(&self) -> Option<MonotonicMs> {
        self.forwards.values().filter_map(|forward| forward.next_at).min()
    }

    /// Forgets the attempts of an earlier incarnation, which the store no longer lists.
    pub(in crate::node) fn forget_ended(&mut self) {
        self.ended_early.clear();
    }
}
