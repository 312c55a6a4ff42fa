//! Ownership of partitions: sends heartbeats, hands partitions off, and forwards receipts to executions of other nodes.
//! The shard and `lease` decide which partitions change their owner.

use std::{
    collections::{BTreeSet, btree_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mainspring_effects::AttemptName;
use mainspring_kernel::{effect::Attempt, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{CommitError, PartOutcome, RemoteAttempt, Store, StoreError};
use tokio::time::Instant;

use super::{
    Command, Driver, failures,
    inbox::{Scope, ToReconcile},
};
use crate::{
    clock::MonotonicMs,
    clock::{monotonic_now, read_clocks},
    inbox,
    membership::Heartbeat,
    shard::{AttemptRecovery, Event, Handoff},
};

/// The partitions of this node, as callers of the engine see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ownership {
    pub(crate) partitions: u32,
    pub(crate) held: BTreeSet<u32>,
    /// The condition that keeps the node from working, if any.
    pub(crate) problem: Option<NodeProblem>,
}

/// A condition that keeps a node from working: a component for readers who may not see the reason, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblem {
    /// `store`, `clock` or `machine`.
    pub component: &'static str,
    /// The reason, which can name addresses and files of the store.
    pub why: String,
}

impl NodeProblem {
    pub(super) fn of(component: &'static str, why: impl Into<String>) -> Self {
        Self { component, why: why.into() }
    }
}

/// Time for which a receipt is forwarded again and again while the store does not answer. At its end, the owner of the
/// execution has marked the attempt as interrupted. It is a duration and not a number of tries: a try at a without_reply
/// server takes minutes, and a draining node waits for the last one.
const TRIES_LAST: Duration = Duration::from_secs(60);
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Driver {
    /// Sends a heartbeat. At most one is in progress.
    pub(super) fn heartbeat(&mut self) {
        self.heartbeat_at = None;
        let Some(session) = self.session.clone() else { return };
        let lease_ms = session.terms().lease_ms;
        if !self.shard.has_to_write() {
            self.writing.forget();
        }
        if !self.is_store_unreachable
            && !self.draining
            && let Some(silence) = self.writing.silence(monotonic_now(), lease_ms)
        {
            return self.fall_silent(silence);
        }
        let (handoff, is_leaving, words) = (self.pending_handoff.clone(), self.draining, self.heartbeats.0.clone());
        let heartbeat = move || {
            let say = || session.heartbeat(&handoff, is_leaving, read_clocks);
            // After a panic the next heartbeat is sent all the same.
            let word = catch_unwind(AssertUnwindSafe(say)).unwrap_or_else(|panic| {
                Heartbeat::Unreachable(StoreError::Unavailable(format!(
                    "the heartbeat panicked: {}",
                    failures::text(&*panic)
                )))
            });
            let _ = words.send((handoff, word));
        };
        // Uses a thread of its own: behind blocking tasks of the runtime, the lease would expire first.
        if let Err(error) = std::thread::Builder::new().name("heartbeat".into()).spawn(heartbeat) {
            self.problem = Some(NodeProblem::of("machine", format!("the heartbeat thread cannot be started: {error}")));
            self.publish();
            self.heartbeat_at = Some(Instant::now() + TRY_AGAIN);
        }
    }

    /// Sends the heartbeat when it is due, and handles the result of the last one. It is called between any two steps
    /// of the driver, so that neither waits behind other commands.
    pub(super) fn keep_alive(&mut self) {
        if self.session.is_none() {
            return;
        }
        if self.heartbeat_at.is_some_and(|at| at <= Instant::now()) {
            self.heartbeat();
        }
        while let Ok((handoff, word)) = self.heartbeats.1.try_recv() {
            self.on_heartbeat(&handoff, word);
        }
    }

    pub(super) fn on_heartbeat(&mut self, handoff: &Handoff, word: Heartbeat) {
        self.record_heartbeat(&word);
        let Some(session) = &self.session else { return };
        let mut pause = Duration::from_millis(session.terms().heartbeat_interval_ms());
        self.problem = None;
        match word {
            Heartbeat::Renewed(renewal) => {
                self.pending_handoff.remove(handoff);
                self.end_what_ended_early();
                self.problem = renewal.clock.skew().map(|apart| NodeProblem::of("clock", apart.to_string()));
                self.handle(Event::LeaseRenewed(renewal));
                if !self.pending_handoff.fences.is_empty() {
                    pause = Duration::ZERO;
                }
            }
            Heartbeat::Expired => {
                pause = Duration::ZERO;
                self.pending_handoff = Handoff::default();
                self.ended_early.clear();
                self.liveness.end();
                self.liveness = Arc::default();
                match session.rejoin() {
                    Ok(rejoin) => self.session = Some(rejoin),
                    Err(error) => return self.stop(error.to_string()),
                }
                self.writing.forget();
                self.handle(Event::LeaseExpired);
            }
            // Another release has upgraded the store. It would not understand the frames of this release.
            Heartbeat::Unreachable(error @ StoreError::Newer { .. }) => return self.stop(error.to_string()),
            // The lease expires by itself.
            Heartbeat::Unreachable(error) => self.problem = Some(NodeProblem::of("store", error.to_string())),
        }
        self.publish();
        self.heartbeat_at = Some(Instant::now() + pause);
    }

    /// Drops all partitions of a node whose heartbeats succeed but whose commits fail, and sends no heartbeat until its
    /// lease has expired, so that other nodes acquire them.
    fn fall_silent(&mut self, silence: Duration) {
        let why =
            "the store answers the heartbeats of this node and accepts no commit: other nodes acquire its partitions";
        tracing::error!(silent_for_ms = silence.as_millis() as u64, why, "the node releases its partitions");
        self.problem = Some(NodeProblem::of("store", why));
        self.handle(Event::LeaseExpired);
        self.publish();
        self.heartbeat_at = Some(Instant::now() + silence);
    }

    /// Sets the condition that readiness reports.
    pub(super) fn set_problem(&mut self, problem: Option<NodeProblem>) {
        self.problem = problem;
        self.publish();
    }

    /// Publishes the owned partitions to callers of the engine.
    pub(super) fn publish(&self) {
        let (partitions, held) = (self.shard.partitions(), self.shard.held().collect());
        self.metrics.partitions.held.set(self.shard.held().count() as f64);
        let owned = Ownership { partitions, held, problem: self.problem.clone() };
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = owned;
    }

    pub(super) fn lost(&mut self, partitions: &[u32]) {
        self.record_ownership_change("lost", partitions);
        self.publish();
        self.forget_organizations();
    }

    pub(super) fn acquired(&mut self, partitions: Vec<u32>) {
        self.record_ownership_change("acquired", &partitions);
        self.publish();
        self.scan_acquired(&partitions);
        self.want_quarantined();
    }

    /// Sends a heartbeat at once, since other nodes wait for the partitions, unless one is in progress.
    pub(super) fn handoff(&mut self, handoff: Handoff) {
        let partitions: Vec<u32> = handoff.fences.iter().map(|fence| fence.partition).collect();
        self.record_ownership_change("released", &partitions);
        self.metrics.handed_off.increment(handoff.running.len() as u64);
        self.publish();
        self.pending_handoff.extend(handoff);
        if self.heartbeat_at.is_some() {
            self.heartbeat_at = Some(Instant::now());
        }
        self.forget_organizations();
    }

    pub(super) fn subscribe(&self) {
        if self.session.is_some() {
            let commands = self.commands.clone();
            let notify = move |partitions: &[u32]| drop(commands.send(Command::Notified(partitions.to_vec())));
            self.store.subscribe(Box::new(notify));
        }
    }

    pub(super) fn on_notified(&mut self, partitions: &[u32]) {
        if self.shard.held().any(|held| partitions.contains(&held)) {
            self.poll_inbox();
            self.on_organizations_notified(partitions);
        }
    }

    pub(super) fn on_messages_enqueued(&mut self, partitions: &BTreeSet<u32>) {
        let held: BTreeSet<u32> = self.shard.held().collect();
        let elsewhere: Vec<u32> = partitions.difference(&held).copied().collect();
        if !elsewhere.is_empty() {
            self.store.notify(&elsewhere);
        }
        if !partitions.is_disjoint(&held) {
            self.poll_inbox();
        }
    }

    /// Sends a receipt to the inbox of an execution that another node owns. The owner decides if it still counts. The
    /// receipt of a recorded remote attempt is retried for as long as other nodes consider the attempt running.
    pub(super) fn pass_on(&mut self, execution: ExecutionKey, input: Input, remote: Option<RemoteAttempt>) {
        let (store, commands, liveness) = (self.store.clone(), self.commands.clone(), self.liveness.clone());
        let node = self.session.as_ref().map_or_else(String::new, |session| session.name().to_owned());
        let [posted, abandoned] = self.metrics.forwarded.clone();
        *self.passing_on.entry(execution).or_default() += 1;
        let (receipt, of) = (Arc::new(input), remote.clone());
        // The attempt's end is recorded after the message is enqueued: a node that sees the end finds the receipt. If
        // recording fails, the message itself ends the attempt.
        let key = *self.loader.key();
        let post = move |store: &dyn Store, input: &Input| {
            let is_enqueued = inbox::post(store, None, &key, (execution, input), None).is_ok();
            let _ = of.as_ref().filter(|_| is_enqueued).map(|of| store.end_remote(&node, std::slice::from_ref(of)));
            is_enqueued
        };
        let post = Arc::new(post);
        tokio::spawn(async move {
            let began = Instant::now();
            loop {
                let (post, store, receipt) = (post.clone(), store.clone(), receipt.clone());
                // After a panic it is unknown if the message was enqueued.
                if tokio::task::spawn_blocking(move || post(&*store, &receipt)).await.unwrap_or(false) {
                    posted.increment(1);
                    break;
                }
                let is_awaited = remote.is_some() && !liveness.is_over() && !liveness.is_leaving();
                if began.elapsed() >= TRIES_LAST && !is_awaited {
                    abandoned.increment(1);
                    tracing::error!(%execution, "a receipt for an execution that others hold could not be posted");
                    break;
                }
                // Sleeps without a blocking thread, since waiting tasks would occupy all of them.
                tokio::time::sleep(TRY_AGAIN).await;
            }
            let _ = commands.send(Command::PassedOn(execution, remote));
        });
    }

    /// Removes the process record of the attempt here, since the owner of the execution has none.
    pub(super) fn passed_on(&mut self, execution: ExecutionKey, remote: Option<RemoteAttempt>) {
        if let Entry::Occupied(mut left) = self.passing_on.entry(execution) {
            *left.get_mut() -= 1;
            if *left.get() == 0 {
                left.remove();
            }
        }
        self.scan_before_reconciling();
        let Some(remote) = remote else { return };
        let RemoteAttempt { execution, step, number } = &remote;
        self.executors.forget(AttemptName { execution: *execution, step, number: *number });
        // Ended after the heartbeat that records it as running: the row would otherwise be written after its end and
        // remain.
        if self.pending_handoff.running.contains(&remote) {
            self.ended_early.push(remote);
        }
    }

    /// Records the end of attempts that the store lists as running here although they have ended.
    fn end_what_ended_early(&mut self) {
        let notified = self.ended_early.extract_if(.., |attempt| !self.pending_handoff.running.contains(attempt));
        let (ended, store): (Vec<_>, _) = (notified.collect(), self.store.clone());
        let Some(session) = self.session.as_ref().filter(|_| !ended.is_empty()) else { return };
        let node = session.name().to_owned();
        tokio::task::spawn_blocking(move || store.end_remote(&node, &ended));
    }

    /// Requests that another node stops an attempt. A lost request is repeated with the next heartbeat.
    pub(super) fn stop_remote(&self, attempt: RemoteAttempt) {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || store.stop_remote(&attempt));
    }

    /// Recovers an attempt that the shard does not know to be running here. Another node may have enqueued its receipt,
    /// or the receipt arrived while the execution was quarantined, so the inbox is read first. An attempt that still
    /// runs here, from before its partition was lost or its execution quarantined, is awaited.
    pub(super) fn reconcile_behind_inbox(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let name = (execution, instance, attempt.number);
        if self.running.contains_key(&name) {
            let (execution, instance, attempt) = name;
            let adopted =
                Event::AttemptRecovered { execution, instance, attempt, recovery: AttemptRecovery::StillRunning };
            // Enqueued, since it may produce outputs of its own.
            let _ = self.commands.send(Command::Event(adopted));
            return;
        }
        let (execution, instance, _) = name;
        self.inbox.to_reconcile.push((execution, instance, attempt));
        self.scan_before_reconciling();
    }

    /// Starts one pass for all attempts that gathered during the last one. Attempts of an execution whose receipts are
    /// still being enqueued here wait for that.
    pub(super) fn scan_before_reconciling(&mut self) {
        if self.inbox.to_reconcile.iter().any(|asked| self.is_settled(asked)) {
            self.read_inbox(Scope::All);
        }
    }

    /// Takes the attempts to recover after a pass from the start of the inbox.
    pub(super) fn take_to_reconcile(&mut self) -> Vec<ToReconcile> {
        let all = std::mem::take(&mut self.inbox.to_reconcile);
        let (asked, later) = all.into_iter().partition(|asked| self.is_settled(asked));
        self.inbox.to_reconcile = later;
        asked
    }

    fn is_settled(&self, (execution, ..): &ToReconcile) -> bool {
        !self.passing_on.contains_key(execution)
    }

    /// Releases all partitions at once.
    pub(super) async fn leave(self) {
        self.liveness.end();
        if let Some(session) = self.session {
            let _ = tokio::task::spawn_blocking(move || session.leave()).await;
        }
    }
}

/// Tracks how long a node with pending writes has written nothing.
#[derive(Debug, Default)]
pub(super) struct Writing {
    /// Time of the first failed commit since the last answered one.
    fails_since: Option<MonotonicMs>,
    /// Consecutive times at which the node dropped all partitions for this reason.
    silences: u32,
}

/// Longest silence of a node that cannot write, in leases. The silence doubles each time, since the node acquires
/// partitions again afterwards.
const SILENT_LEASES_MAX: u64 = 8;

impl Writing {
    /// Handles the result of a commit. A commit refused for its content shows that the store works.
    pub(super) fn answered(&mut self, now: MonotonicMs, answer: &Result<Vec<PartOutcome>, CommitError>) {
        match answer {
            Ok(_) => *self = Self::default(),
            Err(CommitError::Refused(_)) => self.fails_since = None,
            Err(_) => {
                self.fails_since.get_or_insert(now);
            }
        }
    }

    /// Returns the duration of the silence, if nothing was written for the length of a lease.
    fn silence(&mut self, now: MonotonicMs, lease_ms: u64) -> Option<Duration> {
        self.fails_since.take_if(|since| now.0 >= since.0.saturating_add(lease_ms))?;
        let leases = (2 << self.silences.min(8)).min(SILENT_LEASES_MAX);
        self.silences += 1;
        Some(Duration::from_millis(lease_ms.saturating_mul(leases)))
    }

    /// Resets the failure time: no write is pending, or the node has joined again.
    fn forget(&mut self) {
        self.fails_since = None;
    }
}

/// Liveness of the node, for threads that work for it.
#[derive(Debug, Default)]
pub(super) struct NodeLiveness {
    is_leaving: AtomicBool,
    is_over: AtomicBool,
}

impl NodeLiveness {
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_writes_nothing_for_a_lease_falls_silent_and_longer_each_time() {
        let failed = || Err(CommitError::NotWritten("it may only read".into()));
        let mut writing = Writing::default();
        let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
        assert_eq!(writing.silence(MonotonicMs(99_000), 10_000), None, "nothing to write is no failure");
        writing.answered(MonotonicMs(100_000), &failed());
        writing.answered(MonotonicMs(105_000), &failed());
        assert_eq!(writing.silence(MonotonicMs(109_999), 10_000), None);
        assert_eq!(writing.silence(MonotonicMs(110_000), 10_000), seconds(20));
        for (round, expected) in [(2, 40), (3, 80), (4, 80), (100, 80)] {
            writing.answered(MonotonicMs(round * 100_000), &failed());
            assert_eq!(writing.silence(MonotonicMs(round * 100_000 + 10_000), 10_000), seconds(expected));
        }
        writing.answered(MonotonicMs(1), &failed());
        writing.answered(MonotonicMs(2), &Err(CommitError::Refused("duplicate key".into())));
        assert_eq!(
            writing.silence(MonotonicMs(99_000), 10_000),
            None,
            "what is refused for its content is no store that fails"
        );
        writing.answered(MonotonicMs(3), &Ok(vec![]));
        writing.answered(MonotonicMs(4), &failed());
        assert_eq!(
            writing.silence(MonotonicMs(10_004), 10_000),
            seconds(20),
            "a commit that is written begins the count anew"
        );
    }
}
