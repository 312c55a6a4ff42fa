//! Telemetry of the driver: metrics, spans and log lines.
//!
//! Log lines name executions, steps and partitions in fields, and never a value of a payload. Events of every
//! execution are logged at `debug`, since thousands of executions can start and end in a second.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use mainspring_kernel::{effect::Outcome, key::ExecutionKey, record::Record};
use mainspring_store::{Batch, CommitError, PartOutcome};
use tracing::{Level, debug, enabled, error, info, warn};

use super::{
    metrics::{Commits, Metrics},
    queue::Sent,
    state::attempts::RunningAttempt,
};
use crate::{
    membership::Heartbeat,
    node::{Node, Report},
    shard::{CommittedFrame, LoadAnswer},
    trace_spans::{Spans, outcome_label},
};

/// The metrics, the receiver of spans, and the conditions that were logged.
pub(super) struct Telemetry {
    pub(super) metrics: Metrics,
    spans: Option<Spans>,
    /// A warning about the store's refusal to write was logged.
    is_stalled: bool,
    /// A warning about failed heartbeats was logged.
    is_store_unreachable: bool,
    /// A warning about the difference to the clock of the store was logged.
    is_clock_skewed: bool,
}

impl Telemetry {
    pub(super) fn new(spans: Option<Spans>) -> Self {
        Self { metrics: Metrics::new(), spans, is_stalled: false, is_store_unreachable: false, is_clock_skewed: false }
    }

    /// Records the length of the command queue and the age of the oldest command in a batch.
    pub(super) fn count_commands(&self, taken: &[Sent], still_waiting: usize) {
        self.metrics.queue_depth.set((taken.len() + still_waiting) as f64);
        if let Some(oldest) = taken.first() {
            self.metrics.queue_age.record(oldest.age());
        }
    }

    pub(super) fn log_start(&self, node: &Node) {
        info!(node = node.name(), partitions = node.shard().held().count(), "the engine starts");
    }

    pub(super) fn log_stop(&self, node: &Node, why_stopped: &Mutex<Option<String>>) {
        let why = why_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        info!(node = node.name(), why = why.as_deref(), "the engine ends");
    }

    pub(super) fn count_memory(&self, node: &Node) {
        self.metrics.show(node.shard().counts());
        self.metrics.show_places(node.places());
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
        execution: ExecutionKey,
        underway: &RunningAttempt,
        attempt: u32,
        outcome: &Outcome,
    ) {
        self.metrics.attempts.end(underway.effect, outcome, underway.began.elapsed());
        debug!(%execution, step = underway.step, attempt, outcome = outcome_label(outcome), "an attempt has ended");
    }

    pub(super) fn see_commit(&mut self, commit_id: u64, answer: &Result<Vec<PartOutcome>, CommitError>) {
        match answer {
            Ok(_) => self.log_store_recovered(),
            Err(error) => self.log_commit_error(commit_id, error),
        }
    }

    fn log_commit_error(&mut self, commit_id: u64, error: &CommitError) {
        match error {
            // Warns once of a store that does not answer, not at every retry.
            CommitError::Refused(why) => {
                warn!(commit = commit_id, why, "the store refused a commit: it is repeated in halves");
            }
            CommitError::Blocked(why) => {
                warn!(
                    commit = commit_id,
                    why, "a commit was blocked by a lock of another transaction and is retried in halves"
                );
            }
            CommitError::NotWritten(why) => {
                if !std::mem::replace(&mut self.is_stalled, true) {
                    warn!(commit = commit_id, why, "the store rejects writes; the commit is retried");
                }
            }
            CommitError::Unknown(why) => {
                warn!(commit = commit_id, why, "the outcome of a commit is unknown: the stored state is read");
            }
            CommitError::Fatal(why) => error!(commit = commit_id, why, "the store cannot be used any more"),
        }
    }

    fn log_store_recovered(&mut self) {
        if std::mem::replace(&mut self.is_stalled, false) {
            info!("the store writes again");
        }
    }

    pub(super) fn see_heartbeat(&mut self, said: &Heartbeat, node: &Node) {
        self.metrics.partitions.heartbeat(said);
        let node = node.name();
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
                warn!(node, %error, "the shared store does not respond; the request is retried");
            }
            Heartbeat::Unreachable(_) => {}
        }
        self.is_store_unreachable = matches!(said, Heartbeat::Unreachable(_));
    }

    /// Logs and counts an observation of the node.
    pub(super) fn observe(&self, report: &Report, node: &Node) {
        match report {
            Report::Acquired(partitions) => self.record_ownership_change("acquired", partitions, node),
            Report::Lost(partitions) => self.record_ownership_change("lost", partitions, node),
            Report::Released(partitions, running) => {
                self.record_ownership_change("released", partitions, node);
                self.metrics.handed_off.increment(*running as u64);
            }
            Report::OwnershipChanged => {}
            Report::Silent { for_ms, why } => {
                error!(silent_for_ms = for_ms, why, "the node releases its partitions");
            }
            Report::Quarantined(execution, why) => {
                self.metrics.quarantined.increment(1);
                error!(%execution, why, "an execution is quarantined");
            }
            Report::Forged(execution, message) => {
                self.metrics.inbox.forged.increment(1);
                error!(%execution, message, "an inbox message was not written with the installation's key; it is discarded");
            }
            Report::Forwarded { execution, is_enqueued, .. } => {
                let [enqueued, abandoned] = &self.metrics.forwarded;
                if *is_enqueued {
                    return enqueued.increment(1);
                }
                abandoned.increment(1);
                error!(%execution, "a receipt for an execution of another node could not be enqueued");
            }
            Report::OrganizationUnread(organization, why) => {
                warn!(organization, why, "how much of an organization runs could not be found out");
            }
        }
    }

    fn record_ownership_change(&self, change: &'static str, partitions: &[u32], node: &Node) {
        let counter = match change {
            "acquired" => &self.metrics.partitions.acquired,
            "lost" => &self.metrics.partitions.lost,
            _ => &self.metrics.partitions.released,
        };
        counter.increment(partitions.len() as u64);
        info!(node = node.name(), ?partitions, "partitions are {change}");
    }
}

/// Logs the result of a load, if it is remarkable.
pub(super) fn log_load(execution: ExecutionKey, answer: &LoadAnswer) {
    match answer {
        LoadAnswer::Newer(why) => info!(%execution, why, "an execution of a newer release is skipped"),
        LoadAnswer::Unavailable(why) => warn!(%execution, why, "a journal cannot be read; the load is retried"),
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
