//! Telemetry of the driver: metrics, spans and log lines.
//!
//! Log lines name executions, steps and partitions in fields, and never a value of a payload. Events of every
//! execution are logged at `debug`, since thousands of executions can start and end in a second.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use mainspring_kernel::{effect::Outcome, key::ExecutionKey, record::Record};
use mainspring_store::{Batch, CommitError};
use tokio::sync::mpsc;
use tracing::{Level, debug, enabled, error, info, warn};

use super::{Driver, NodeProblem, Running, RunningAttempt, metrics::Commits, queue::Sent};
use crate::{
    membership::Heartbeat,
    shard::{CommittedFrame, LoadAnswer},
    trace_spans::outcome_label,
};

impl Driver {
    /// Records the length of the command queue and the age of the oldest command in a batch.
    pub(super) fn count_commands(&self, taken: &[Sent], still_waiting: usize) {
        self.metrics.queue_depth.set((taken.len() + still_waiting) as f64);
        if let Some(oldest) = taken.first() {
            self.metrics.queue_age.record(oldest.age());
        }
    }

    /// Adds a watcher of an execution. Watchers that are gone are removed here and with each count, since an idle
    /// execution sends them nothing.
    pub(super) fn watch(&mut self, execution: ExecutionKey, watcher: Watcher) {
        let watchers = self.watchers.entry(execution).or_default();
        watchers.retain(|watcher| !watcher.is_gone());
        watchers.push(watcher);
    }

    /// The name of this incarnation of the node. `None` for the only process of a store.
    fn node(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.name())
    }

    pub(super) fn log_start(&self) {
        info!(node = self.node(), partitions = self.shard.held().count(), "the engine begins");
    }

    pub(super) fn log_stop(&self) {
        let why = self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        info!(node = self.node(), why = why.as_deref(), "the engine ends");
    }

    pub(super) fn count_memory(&mut self) {
        self.watchers.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.is_gone());
            !watchers.is_empty()
        });
        self.metrics.show(self.shard.counts());
        self.count_places();
    }

    /// Emits the spans of a durable frame, and logs the start and end of its execution.
    pub(super) fn record_frame(&self, frame: &CommittedFrame) {
        if let Some(spans) = &self.spans {
            frame.spans.iter().for_each(|span| spans(span.clone()));
        }
        if !enabled!(Level::DEBUG) {
            return;
        }
        let (execution, workflow) = (frame.execution, frame.plan.name.as_deref().unwrap_or_default());
        for record in &frame.records {
            match record {
                Record::Started { execution_id, .. } => {
                    debug!(%execution, execution_id, workflow, "an execution has started");
                }
                Record::Ended { .. } => {
                    debug!(%execution, workflow, status = frame.status.name(), "an execution has ended");
                }
                _ => {}
            }
        }
    }

    pub(super) fn record_attempt_end(
        &self,
        (execution, _, attempt): &Running,
        underway: &RunningAttempt,
        outcome: &Outcome,
    ) {
        self.metrics.attempts.end(underway.effect, outcome, underway.began.elapsed());
        debug!(%execution, step = underway.step, attempt, outcome = outcome_label(outcome), "an attempt has ended");
    }

    pub(super) fn log_commit_error(&mut self, commit_id: u64, error: &CommitError) {
        match error {
            // Warns once of a store that does not answer, not at every retry.
            CommitError::Refused(why) => {
                warn!(commit = commit_id, why, "the store refused a commit: it is repeated in halves");
            }
            CommitError::Blocked(why) => {
                warn!(commit = commit_id, why, "a commit met a lock of another transaction, and is repeated in halves");
            }
            CommitError::NotWritten(why) => {
                if !std::mem::replace(&mut self.is_stalled, true) {
                    warn!(commit = commit_id, why, "the store does not write, and is asked again");
                }
            }
            CommitError::Unknown(why) => {
                warn!(commit = commit_id, why, "whether a commit was written is unknown: what is stored is read back");
            }
            CommitError::Fatal(why) => error!(commit = commit_id, why, "the store cannot be used any more"),
        }
    }

    pub(super) fn log_store_recovered(&mut self) {
        if std::mem::replace(&mut self.is_stalled, false) {
            info!("the store writes again");
            if self.session.is_none() {
                self.set_problem(None);
            }
        }
    }

    /// Reports a store that refuses to write. For nodes of a shared store, the heartbeats report it.
    pub(super) fn stalled(&mut self, why: String) {
        if self.session.is_none() {
            let why = format!("the store does not write, and is asked again: {why}");
            self.set_problem(Some(NodeProblem::of("store", why)));
        }
    }

    pub(super) fn record_heartbeat(&mut self, said: &Heartbeat) {
        self.metrics.partitions.heartbeat(said);
        let node = self.node();
        match said {
            Heartbeat::Renewed(renewal) => {
                if self.is_store_unreachable {
                    info!(node, "the shared store answers again");
                }
                match (renewal.clock.skew(), self.is_clock_skewed) {
                    (Some(apart), false) => {
                        error!(node, ahead_ms = apart.ahead_ms, "{apart}");
                    }
                    (None, true) => info!(node, "this node's clock agrees with the shared store's again"),
                    _ => {}
                }
                self.is_clock_skewed = renewal.clock.skew().is_some();
            }
            Heartbeat::Expired => {
                warn!(
                    node,
                    "the lease of this node expired without a heartbeat: its partitions are lost, and it rejoins as a new incarnation"
                );
            }
            Heartbeat::Unreachable(error) if !self.is_store_unreachable => {
                warn!(node, %error, "the shared store does not answer, and is asked again");
            }
            Heartbeat::Unreachable(_) => {}
        }
        self.is_store_unreachable = matches!(said, Heartbeat::Unreachable(_));
    }

    pub(super) fn record_ownership_change(&self, change: &'static str, partitions: &[u32]) {
        let node = self.node();
        let counter = match change {
            "acquired" => &self.metrics.partitions.acquired,
            "lost" => &self.metrics.partitions.lost,
            _ => &self.metrics.partitions.released,
        };
        counter.increment(partitions.len() as u64);
        info!(node, ?partitions, "partitions are {change}");
    }

    pub(super) fn record_quarantine(&self, execution: ExecutionKey, why: &str) {
        self.metrics.quarantined.increment(1);
        error!(%execution, why, "an execution is quarantined");
    }
}

/// Logs the result of a load, if it is remarkable.
pub(super) fn log_load(execution: ExecutionKey, answer: &LoadAnswer) {
    match answer {
        LoadAnswer::Newer(why) => info!(%execution, why, "an execution of a newer release is left alone"),
        LoadAnswer::Unavailable(why) => warn!(%execution, why, "a journal cannot be read now, and is asked for again"),
        LoadAnswer::Journal(journal) => {
            debug!(%execution, frames = journal.head.sequence + 1, "a journal was read back");
        }
        LoadAnswer::Unknown | LoadAnswer::Quarantined(_) | LoadAnswer::Broken(_) => {}
    }
}

/// Records the size and the duration of a commit.
pub(super) fn count_commit(metrics: &Commits, batch: &Batch, handed_over: Instant) {
    let frames = || batch.parts.iter().flat_map(|part| &part.frames);
    metrics.executions.record(batch.parts.len() as f64);
    metrics.frames.record(frames().count() as f64);
    metrics.bytes.record(frames().map(|frame| frame.byte_count()).sum::<usize>() as f64);
    metrics.time.record(handed_over.elapsed());
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
    pub(super) fn notify(&self, frame: &Arc<CommittedFrame>) -> bool {
        match self {
            Self::OfAll(sender) => sender.send(frame.clone()).is_ok(),
            Self::InTime(sender) => sender.try_send(frame.clone()).is_ok(),
        }
    }
}
