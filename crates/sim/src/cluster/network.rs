//! The network between nodes and store: requests are delayed, fail, or lose their responses.

use std::sync::Arc;

use mainspring_engine::{
    clock::ClockReading,
    inbox,
    membership::{Heartbeat, NodeSession},
    shard::{Handoff, LoadAnswer},
};
use mainspring_kernel::{frame::Frame, input::Input, key::ExecutionKey, record::Record};
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, CommitError, EnqueueRequest, PartOutcome, ReadLimit, Refusal, RemoteAttempt, StoreError, partition_of,
};

use crate::fixture::keys;

use super::{
    Cluster, ClusterEvent, faults::LEASE_MS, looking::INBOX_POLL_INTERVAL_MS, node::NodeEvent, owning::ToAdopt,
    quarantine,
};

/// A request of a node to the store.
pub(super) struct InFlightRequest {
    pub(super) node: usize,
    pub(super) life: u32,
    pub(super) request: StoreRequest,
}

pub(super) enum StoreRequest {
    Commit {
        commit_id: u64,
        batch: Arc<Batch>,
        outcome: CommitOutcome,
    },
    Load(ExecutionKey, u64),
    /// A heartbeat, under the name that the process had when it sent it.
    Speak {
        member: NodeSession,
        handoff: Handoff,
        is_leaving: bool,
        sent_at: ClockReading,
    },
    /// A read of the inbox: all messages of the partitions with the due timers, or the messages after a number.
    Look {
        partitions: Vec<u32>,
        after: Option<u64>,
        /// Counter of inbox resets at the node when the request was sent.
        generation: u64,
    },
    /// A read of the whole inbox, which precedes the recovery of attempts.
    LookToAdopt(Vec<u32>, u64, Vec<ToAdopt>),
    PassOn(Passing),
    StopRemote(RemoteAttempt),
    Leave(NodeSession),
    /// A request about quarantined executions.
    Quarantine(quarantine::QuarantineRequest),
}

/// A receipt that the node forwards to the inbox of the owner.
pub(super) struct Passing {
    pub(super) execution: ExecutionKey,
    pub(super) input: Input,
    /// The attempt, if the store lists it as running at this node under this name.
    pub(super) remote: Option<RemoteAttempt>,
    pub(super) name: String,
    /// The time of the first try.
    pub(super) since: u64,
}

/// The outcome that is drawn for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    Fine,
    Slow,
    NotWritten,
    UnknownWritten,
    UnknownNotWritten,
    CrashBefore,
    CrashAfter,
}

impl CommitOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "written",
            Self::Slow => "slow",
            Self::NotWritten => "not written",
            Self::UnknownWritten => "unknown, written",
            Self::UnknownNotWritten => "unknown, not written",
            Self::CrashBefore => "crash before",
            Self::CrashAfter => "crash after",
        }
    }

    fn is_written(self) -> bool {
        matches!(self, Self::Fine | Self::Slow | Self::UnknownWritten | Self::CrashAfter)
    }
}

impl Cluster {
    /// Sends a request to the store. It arrives after a few milliseconds, or later if it is slow.
    pub(super) fn request_store(&mut self, node: usize, request: StoreRequest) {
        let slow = match &request {
            StoreRequest::Commit { outcome, .. } => *outcome == CommitOutcome::Slow,
            StoreRequest::PassOn(_) => self.draws_fault(self.faults.slow_messages),
            _ => false,
        };
        let mut delay = if slow { self.rng.below(2 * LEASE_MS) } else { self.rng.below(4) };
        if matches!(&request, StoreRequest::Commit { .. }) {
            delay += self.nodes[node].pause_ms + self.gathering_ms(node);
        }
        let life = self.nodes[node].life;
        self.at(delay, ClusterEvent::Store(InFlightRequest { node, life, request }));
    }

    /// Draws from the rates of the profile. Commits close to the end of a lease always have an unknown result.
    pub(super) fn draw_commit_outcome(&mut self, node: usize, batch: &Batch) -> CommitOutcome {
        if self.is_about_to_lapse(node) {
            return *self.rng.pick(&[CommitOutcome::UnknownWritten, CommitOutcome::UnknownNotWritten]);
        }
        if self.loses_starts(batch) {
            return CommitOutcome::UnknownNotWritten;
        }
        let chances = [
            (self.faults.crash_around_commit, CommitOutcome::CrashBefore),
            (self.faults.crash_around_commit, CommitOutcome::CrashAfter),
            (self.faults.unknown_written, CommitOutcome::UnknownWritten),
            (self.faults.unknown_not_written, CommitOutcome::UnknownNotWritten),
            (self.faults.not_written, CommitOutcome::NotWritten),
            (self.faults.slow, CommitOutcome::Slow),
        ];
        let drawn = chances.into_iter().find(|(percent, _)| self.draws_fault(*percent));
        drawn.map_or(CommitOutcome::Fine, |(_, outcome)| outcome)
    }

    fn answer(&mut self, to: (usize, u32), event: NodeEvent) {
        let delay = self.delay_of_answer();
        self.answer_in(delay, to, event);
    }

    pub(super) fn answer_in(&mut self, delay_ms: u64, to: (usize, u32), event: NodeEvent) {
        self.at(delay_ms, ClusterEvent::Node(to.0, to.1, event));
    }

    pub(super) fn delay_of_answer(&mut self) -> u64 {
        let is_slow = self.draws_fault(self.faults.slow / 8);
        if is_slow { self.rng.below(LEASE_MS) } else { self.rng.below(4) }
    }

    pub(super) fn handle_request(&mut self, in_flight: InFlightRequest) -> Result<(), String> {
        let InFlightRequest { node, life, request } = in_flight;
        let who = (node, life);
        let is_down = self.now < self.down_until;
        let is_unreadable = matches!(request, StoreRequest::Load(..)) && self.now < self.nodes[node].unreadable_until;
        let fails = is_down || is_unreadable || self.draws_fault(self.faults.read_fails);
        let why = || StoreError::Unavailable("the store does not respond".into());
        match request {
            StoreRequest::Commit { commit_id, batch, outcome } => {
                return self.commit(who, commit_id, &batch, outcome, is_down);
            }
            StoreRequest::Load(execution, number) if fails => {
                let answer = LoadAnswer::Unavailable("the store does not respond".into());
                self.answer(who, NodeEvent::Loaded(execution, number, Box::new(answer)));
            }
            StoreRequest::Load(execution, number) => {
                let is_too_new = self.is_too_new(node, execution);
                let answer = if is_too_new { LoadAnswer::Newer("newer".into()) } else { self.load(execution) };
                self.answer(who, NodeEvent::Loaded(execution, number, Box::new(answer)));
            }
            StoreRequest::Speak { handoff, .. } if fails => {
                self.answer(who, NodeEvent::HeartbeatResult(handoff, Heartbeat::Unreachable(why())));
            }
            StoreRequest::Speak { member, handoff, is_leaving, sent_at } => {
                self.hear_word(who, &member, (handoff, is_leaving), sent_at)?;
            }
            StoreRequest::Look { after: Some(_), generation, .. } if fails => {
                self.answer(who, NodeEvent::InboxPolled(generation, None));
            }
            StoreRequest::Look { .. } if fails => {}
            StoreRequest::Look { partitions, after, generation } => self.look(who, &partitions, after, generation)?,
            StoreRequest::LookToAdopt(_, _, asked) if fails => {
                self.answer_in(INBOX_POLL_INTERVAL_MS, who, NodeEvent::Looked(asked, None));
            }
            StoreRequest::LookToAdopt(partitions, generation, asked) => {
                let messages =
                    self.store.inbox(&partitions, 0, ReadLimit::of(usize::MAX)).map_err(|error| error.to_string())?;
                let delay = self.delay_of_answer();
                self.answer_in(delay, who, NodeEvent::Letters(messages, None, generation));
                self.answer_in(delay, who, NodeEvent::Looked(asked, Some(generation)));
            }
            StoreRequest::PassOn(passing) if fails => self.pass_on_again(who, passing),
            StoreRequest::PassOn(Passing { execution, input, remote, name, .. }) => {
                self.post(execution, &input)?;
                self.calls.passed_on(execution, &input);
                if let Some(remote) = remote.filter(|_| !self.draws_fault(self.faults.read_fails)) {
                    self.store.end_remote(&name, &[remote]).map_err(|error| error.to_string())?;
                }
                self.answer(who, NodeEvent::PassedOn(execution));
            }
            StoreRequest::StopRemote(_) if fails => {}
            StoreRequest::StopRemote(attempt) => self.store.stop_remote(&attempt).map_err(|error| error.to_string())?,
            StoreRequest::Leave(_) if is_down => {}
            StoreRequest::Leave(member) => member.leave(),
            StoreRequest::Quarantine(request) => self.handle_quarantine_request(who, request, fails)?,
        }
        Ok(())
    }

    /// Posts an inbox message. The owner of the partition is notified in most cases.
    pub(super) fn post(&mut self, execution: ExecutionKey, input: &Input) -> Result<(), String> {
        let partitions = self.store.partitions().map_err(|error| error.to_string())?;
        let message = inbox::message(&keys().sealing, execution, input, partitions, self.now);
        self.store.enqueue(&EnqueueRequest::of(&message, partitions)).map_err(|error| error.to_string())?;
        self.hint(&[message.partition]);
        Ok(())
    }

    pub(super) fn hint(&mut self, partitions: &[u32]) {
        for node in 0..self.nodes.len() {
            if !self.rng.chance(20) {
                let life = self.nodes[node].life;
                self.at(1, ClusterEvent::Node(node, life, NodeEvent::Hint(partitions.to_vec())));
            }
        }
    }

    fn commit(
        &mut self,
        who: (usize, u32),
        commit_id: u64,
        batch: &Batch,
        outcome: CommitOutcome,
        is_down: bool,
    ) -> Result<(), String> {
        let outcome = if is_down { CommitOutcome::NotWritten } else { outcome };
        if outcome.is_written() && (self.refuses(batch) || self.has_row_in_the_way(batch)) {
            if outcome == CommitOutcome::CrashAfter {
                return if self.nodes[who.0].is_life(who.1) { self.crash(who.0) } else { Ok(()) };
            }
            let why = "a row is in the way".into();
            self.answer(who, NodeEvent::Committed(commit_id, Err(CommitError::Refused(why))));
            return Ok(());
        }
        let records = records_of(batch)?;
        self.coverage.add_records(&records, outcome.name());
        if outcome.is_written() {
            self.nodes[who.0].written.push((who.1, commit_id, records));
        }
        let mut answer = Ok(Vec::new());
        if outcome.is_written() {
            answer = self.store.commit(batch);
            let answers = answer.as_ref().map_err(ToString::to_string)?.clone();
            self.check_commit(who, batch, &answers)?;
        }
        match outcome {
            CommitOutcome::Fine | CommitOutcome::Slow => {}
            CommitOutcome::NotWritten => answer = Err(CommitError::NotWritten("the store does not respond".into())),
            CommitOutcome::UnknownWritten | CommitOutcome::UnknownNotWritten => {
                let after = match self.delay_of_lapsed(who.0) {
                    Some(delay) => delay,
                    None => self.delay_of_answer(),
                };
                let answer = Err(CommitError::Unknown("the connection was lost".into()));
                self.answer_in(after, who, NodeEvent::Committed(commit_id, answer));
                return Ok(());
            }
            CommitOutcome::CrashBefore | CommitOutcome::CrashAfter => {
                return if self.nodes[who.0].is_life(who.1) { self.crash(who.0) } else { Ok(()) };
            }
        }
        self.answer(who, NodeEvent::Committed(commit_id, answer));
        Ok(())
    }

    /// Checks a written commit against the rules.
    fn check_commit(&mut self, who: (usize, u32), batch: &Batch, answers: &[PartOutcome]) -> Result<(), String> {
        let names = super::node::names_of(who.0, who.1);
        for (part, answer) in batch.parts.iter().zip(answers) {
            if let PartOutcome::Refused(refusal) = answer {
                if *refusal == Refusal::Fence {
                    self.coverage.add_records(&records_of_part(part)?, "lease lost on the way");
                }
                self.check_refused(part, refusal)?;
                continue;
            }
            let fence = batch.fences.iter().find(|fence| fence.partition == part.partition);
            let spread = self.store.partitions().map_err(|error| error.to_string())?;
            self.commits.check_owner(&names, part, fence, partition_of(part.execution, spread))?;
            self.check_foreign(part)?;
            let (calls, nodes) = (&self.calls, self.store.cluster_view().map_err(|error| error.to_string())?.nodes);
            self.commits.push(part, self.now, |receipt| calls.check_receipt(part.execution, receipt, &nodes))?;
            for frame in &part.frames {
                self.extend_trace(&[&part.execution.0, &frame.sequence.to_be_bytes(), &frame.frame]);
            }
        }
        Ok(())
    }
}

fn records_of(batch: &Batch) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for part in &batch.parts {
        records.extend(records_of_part(part)?);
    }
    Ok(records)
}

pub(super) fn records_of_part(part: &mainspring_store::Part) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for stored in &part.frames {
        let (frame, _) = Frame::read(stored).map_err(|error| error.to_string())?;
        records.extend(frame.records);
    }
    Ok(records)
}
