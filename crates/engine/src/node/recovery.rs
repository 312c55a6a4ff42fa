//! Recovery of attempts, and receipts for executions that other nodes own.
//!
//! An attempt that the shard does not know to be running is recovered after the inbox was read: another node may have
//! enqueued its receipt, or the receipt arrived while the execution was quarantined. A receipt for an execution of
//! another node is forwarded to its inbox. The owner decides if it still counts.

use std::sync::Arc;

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    input::Input,
    instance::Instance,
    key::ExecutionKey,
};
use mainspring_store::RemoteAttempt;

use super::{
    page::Pass,
    protocol::{ForwardRequest, NodeEvent, NodeOutput, Report},
    state::{
        Node, StoreAccess,
        recovery::{Forward, TRIES_LAST_MS, TRY_AGAIN_MS, ToReconcile},
    },
};
use crate::{
    clock::MonotonicMs,
    shard::{AttemptRecovery, Event, PendingInput},
};

impl Node {
    /// Records that an attempt starts here. False if the node starts no more attempts.
    pub(super) fn begin_attempt(&mut self, execution: ExecutionKey, instance: &Instance, number: u32) -> bool {
        if !self.status.is_draining {
            self.recovery.running.insert((execution, instance.clone(), number));
        }
        !self.status.is_draining
    }

    /// Handles the end of an attempt. While draining, a stop without a decision is not a receipt: the attempt stays open
    /// and counts as interrupted when the execution resumes.
    pub(super) fn ended(&mut self, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let name = (execution, instance, attempt);
        self.recovery.running.remove(&name);
        let (_, instance, _) = name;
        if self.status.is_draining && matches!(outcome, Outcome::Stopped(_)) {
            return;
        }
        let input = Input::Receipt { instance, attempt, outcome };
        self.handle(Event::Take(execution, PendingInput::without_reply(input)));
    }

    /// Recovers an attempt that the shard does not know to be running here. An attempt that still runs here, from
    /// before its partition was lost or its execution quarantined, is awaited.
    pub(super) fn reconcile_behind_inbox(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let name = (execution, instance, attempt.number);
        if self.recovery.running.contains(&name) {
            let (execution, instance, attempt) = name;
            let adopted =
                Event::AttemptRecovered { execution, instance, attempt, recovery: AttemptRecovery::StillRunning };
            // Queued, since it may produce outputs of its own.
            return self.receive(NodeEvent::Shard(adopted));
        }
        let (execution, instance, _) = name;
        self.recovery.to_reconcile.push((execution, instance, attempt));
        self.scan_before_reconciling();
    }

    /// Starts one pass for all attempts that gathered during the last one.
    pub(super) fn scan_before_reconciling(&mut self) {
        if self.recovery.to_reconcile.iter().any(|asked| self.recovery.is_settled(asked)) {
            self.read_inbox(Pass::All);
        }
    }

    /// Forgets the attempts to recover of lost partitions. Their inbox is read again if the partitions come back, and the
    /// end of an earlier pass must not recover an attempt that was asked for after that.
    pub(super) fn forget_recoveries(&mut self, lost: &[u32]) {
        let shard = &self.shard;
        let is_kept = |(execution, ..): &ToReconcile| !lost.contains(&shard.partition(*execution));
        self.recovery.to_reconcile.retain(is_kept);
        self.inbox.retain_asked(is_kept);
    }

    pub(super) fn reconcile(&mut self, (execution, instance, attempt): ToReconcile) {
        if !self.status.is_draining {
            self.outputs.push_back(NodeOutput::Reconcile(execution, instance, attempt));
        }
    }

    /// Forwards a receipt to the inbox of its execution. The receipt of an attempt that the store lists as running here
    /// is retried for as long as other nodes consider the attempt running.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, input: Input, remote: Option<RemoteAttempt>) {
        self.recovery.forwarded += 1;
        let number = self.recovery.forwarded;
        let remote = remote.map(|remote| (self.name().unwrap_or_default().to_owned(), remote));
        let request = ForwardRequest { number, execution, receipt: Arc::new(input), remote };
        self.outputs.push_back(NodeOutput::Forward(request.clone()));
        let forward = Forward { request, began: self.now.monotonic, next_at: None, incarnation: self.incarnation() };
        self.recovery.forwards.insert(number, forward);
    }

    /// Handles the result of a try. A receipt that could not be enqueued is tried again, or abandoned after a time.
    pub(super) fn forwarded(&mut self, number: u64, is_enqueued: bool) {
        let (now, incarnation, is_leaving) = (self.now.monotonic, self.incarnation(), self.status.is_draining);
        let Some(forward) = self.recovery.forwards.get_mut(&number) else { return };
        let is_awaited = forward.request.remote.is_some() && forward.incarnation == incarnation && !is_leaving;
        if !is_enqueued && (is_awaited || now.0 < forward.began.0 + TRIES_LAST_MS) {
            forward.next_at = Some(MonotonicMs(now.0 + TRY_AGAIN_MS));
            return;
        }
        let Some(Forward { request, .. }) = self.recovery.forwards.remove(&number) else { return };
        let (execution, receipt) = (request.execution, request.receipt);
        self.report(Report::Forwarded { execution, receipt, is_enqueued });
        self.scan_before_reconciling();
        let Some((_, remote)) = request.remote else { return };
        // The owner of the execution has no process record of the attempt.
        let RemoteAttempt { execution, step, number } = remote.clone();
        self.outputs.push_back(NodeOutput::Forget(execution, step, number));
        // Ended after the heartbeat that records it as running: the row would otherwise be written after its end and
        // remain.
        if let StoreAccess::Shared(membership) = &self.access
            && membership.is_handing_over(&remote)
        {
            self.recovery.ended_early.push(remote);
        }
    }

    /// Tries to forward receipts whose time has come.
    pub(super) fn forward_again(&mut self) {
        let now = self.now.monotonic;
        let due = self.recovery.forwards.values_mut().filter(|forward| forward.next_at.is_some_and(|at| at <= now));
        for forward in due {
            forward.next_at = None;
            self.outputs.push_back(NodeOutput::Forward(forward.request.clone()));
        }
    }

    /// Records the end of attempts that the store lists as running here although they have ended.
    pub(super) fn end_what_ended_early(&mut self) {
        let StoreAccess::Shared(membership) = &self.access else { return };
        let notified = self.recovery.ended_early.extract_if(.., |attempt| !membership.is_handing_over(attempt));
        let ended: Vec<_> = notified.collect();
        if !ended.is_empty() {
            self.outputs.push_back(NodeOutput::EndRemote(membership.name().to_owned(), ended));
        }
    }
}
