//! The network between nodes and store: requests are delayed, fail, or lose their responses.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_engine::{
    admission::{self, Drained},
    clock::ClockReading,
    inbox,
    membership::{Heartbeat, NodeSession},
    node::{ForwardRequest, HeartbeatRequest, NodeEvent, PageRequest, UnnotifiedParents, all_quarantined, record},
    period_budgets::WantedLease,
    quarantine::Place,
    shard::{Event, LoadAnswer},
};
use mainspring_kernel::{frame::Frame, input::Input, key::ExecutionKey, record::Record};
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, CommitError, EnqueueRequest, PartOutcome, Refusal, RemoteAttempt, StoreError, partition_of,
};

use crate::fixture::keys;

use super::{Cluster, ClusterEvent, faults::LEASE_MS, node::ProcessEvent};

/// A request of a node to the store.
pub(super) struct InFlightRequest {
    pub(super) node: usize,
    pub(super) incarnation: u32,
    pub(super) request: StoreRequest,
}

pub(super) enum StoreRequest {
    Commit {
        commit_id: u64,
        batch: Arc<Batch>,
        outcome: CommitOutcome,
        pause_ms: u64,
    },
    Load(ExecutionKey, u64),
    /// A heartbeat, with the clocks of the node when it was sent.
    Heartbeat(HeartbeatRequest, ClockReading),
    ReadInbox(PageRequest),
    /// A read of the timers of partitions, until a time.
    ReadDue(Vec<u32>, u64),
    Forward(ForwardRequest),
    EndRemote(String, Vec<RemoteAttempt>),
    StopRemote(RemoteAttempt),
    Leave(NodeSession),
    Quarantine(ExecutionKey, String),
    ReadQuarantined,
    NotifyParents(UnnotifiedParents),
    ReadOrganization(String, Vec<Drained>),
    CountUnfinished(String),
    ReadQueues,
    Admit(Vec<ExecutionKey>),
    Lease(WantedLease),
}

/// Milliseconds after which a node repeats a request for a lease that failed.
const LEASE_RETRY_MS: u64 = 1_000;

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
            StoreRequest::Forward(_) => self.draws_fault(self.faults.slow_messages),
            _ => false,
        };
        let mut delay = if slow { self.rng.below(2 * LEASE_MS) } else { self.rng.below(4) };
        if let StoreRequest::Commit { pause_ms, .. } = &request {
            delay += pause_ms + self.gathering_ms(node);
        }
        let incarnation = self.nodes[node].incarnation;
        self.at(delay, ClusterEvent::Store(InFlightRequest { node, incarnation, request }));
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
            (self.faults.commits.crash_around_commit, CommitOutcome::CrashBefore),
            (self.faults.commits.crash_around_commit, CommitOutcome::CrashAfter),
            (self.faults.commits.unknown_written, CommitOutcome::UnknownWritten),
            (self.faults.commits.unknown_not_written, CommitOutcome::UnknownNotWritten),
            (self.faults.commits.not_written, CommitOutcome::NotWritten),
            (self.faults.commits.slow, CommitOutcome::Slow),
        ];
        let drawn = chances.into_iter().find(|(percent, _)| self.draws_fault(*percent));
        drawn.map_or(CommitOutcome::Fine, |(_, outcome)| outcome)
    }

    fn answer(&mut self, to: (usize, u32), event: NodeEvent) {
        let delay = self.delay_of_answer();
        self.answer_in(delay, to, event);
    }

    pub(super) fn answer_in(&mut self, delay_ms: u64, to: (usize, u32), event: NodeEvent) {
        let event = match event {
            NodeEvent::Committed { commit_id, answer } => ProcessEvent::Committed(commit_id, answer),
            event => ProcessEvent::Node(event),
        };
        self.at(delay_ms, ClusterEvent::Node(to.0, to.1, event));
    }

    pub(super) fn delay_of_answer(&mut self) -> u64 {
        let is_slow = self.draws_fault(self.faults.commits.slow / 8);
        if is_slow { self.rng.below(LEASE_MS) } else { self.rng.below(4) }
    }

    pub(super) fn handle_request(&mut self, in_flight: InFlightRequest) -> Result<(), String> {
        let InFlightRequest { node, incarnation, request } = in_flight;
        let who = (node, incarnation);
        let is_down = self.now < self.injected.down_until;
        if let StoreRequest::Commit { commit_id, batch, outcome, .. } = request {
            return self.commit(who, commit_id, &batch, outcome, is_down);
        }
        let is_unreadable =
            matches!(request, StoreRequest::Load(..)) && self.now < self.nodes[node].delays.unreadable_until;
        if let StoreRequest::Leave(member) = request {
            if !is_down {
                member.leave();
            }
        } else if is_down || is_unreadable || self.draws_fault(self.faults.read_fails) {
            self.fail_request(who, request);
        } else {
            self.serve_request(who, request)?;
        }
        Ok(())
    }

    /// Answers a request to a store that does not respond.
    fn fail_request(&mut self, who: (usize, u32), request: StoreRequest) {
        let why = || "the store does not respond".to_owned();
        let error = || StoreError::Unavailable(why());
        let event = match request {
            StoreRequest::Load(execution, number) => {
                let answer = Box::new(LoadAnswer::Unavailable(why()));
                NodeEvent::Shard(Event::Loaded(execution, number, answer))
            }
            StoreRequest::Heartbeat(request, _) => {
                NodeEvent::Heartbeat(request.handoff, Heartbeat::Unreachable(error()))
            }
            StoreRequest::ReadInbox(request) => NodeEvent::Page(Box::new(request.failed(error()))),
            StoreRequest::ReadDue(..) => NodeEvent::DueRead,
            StoreRequest::Forward(request) => NodeEvent::Forwarded(request.number, false),
            StoreRequest::Quarantine(execution, _) => NodeEvent::QuarantineRecorded(execution, Err(error())),
            StoreRequest::ReadQuarantined => NodeEvent::QuarantinedRead(None),
            StoreRequest::NotifyParents(parents) => NodeEvent::NotifiedParents(parents.unanswered()),
            StoreRequest::ReadOrganization(organization, _) => NodeEvent::OrganizationRead(organization, Err(why())),
            StoreRequest::CountUnfinished(organization) => NodeEvent::UnfinishedCounted(organization, None),
            StoreRequest::ReadQueues => NodeEvent::Organizations(BTreeSet::new()),
            StoreRequest::Lease(_) => {
                let (node, incarnation) = who;
                if self.nodes[node].is_incarnation(incarnation) {
                    self.at(LEASE_RETRY_MS, ClusterEvent::Store(InFlightRequest { node, incarnation, request }));
                }
                return;
            }
            StoreRequest::Commit { .. }
            | StoreRequest::Leave(_)
            | StoreRequest::EndRemote(..)
            | StoreRequest::StopRemote(_)
            | StoreRequest::Admit(_) => return,
        };
        self.answer(who, event);
    }

    /// Handles a request at the store and sends the answer.
    fn serve_request(&mut self, who: (usize, u32), request: StoreRequest) -> Result<(), String> {
        let failed = |error: StoreError| error.to_string();
        let event = match request {
            StoreRequest::Load(execution, number) => {
                let is_too_new = self.is_too_new(who.0, execution);
                let answer = if is_too_new { LoadAnswer::Newer("newer".into()) } else { self.load(execution) };
                NodeEvent::Shard(Event::Loaded(execution, number, Box::new(answer)))
            }
            StoreRequest::Heartbeat(request, sent_at) => return self.handle_heartbeat(who, request, sent_at),
            StoreRequest::ReadInbox(request) => {
                let mut page = request.read(&self.loader, |_| {});
                page.defer_starts(|_| self.draws_fault(self.faults.read_fails));
                NodeEvent::Page(Box::new(page))
            }
            StoreRequest::ReadDue(partitions, until_ms) => {
                let due = self.store.due(&partitions, until_ms, None, usize::MAX).map_err(failed)?;
                let delay = self.delay_of_answer();
                self.answer_in(delay, who, NodeEvent::Due(due));
                self.answer_in(delay, who, NodeEvent::DueRead);
                return Ok(());
            }
            StoreRequest::Forward(request) => self.enqueue_receipt(request)?,
            StoreRequest::EndRemote(name, attempts) => return self.store.end_remote(&name, &attempts).map_err(failed),
            StoreRequest::StopRemote(attempt) => return self.store.stop_remote(&attempt).map_err(failed),
            StoreRequest::Quarantine(execution, why) => NodeEvent::QuarantineRecorded(
                execution,
                Ok(record(&self.store, execution, &why, false).map_err(failed)?),
            ),
            StoreRequest::ReadQuarantined => {
                NodeEvent::QuarantinedRead(Some(all_quarantined(&self.store).map_err(failed)?))
            }
            StoreRequest::NotifyParents(parents) => {
                let told = parents.notify(Place { store: &self.store, loader: &self.loader, data_dir: None });
                let partitions = self.store.partitions().map_err(failed)?;
                self.notify_nodes(&(0..partitions).collect::<Vec<u32>>());
                NodeEvent::NotifiedParents(told)
            }
            StoreRequest::ReadQueues => NodeEvent::Organizations(self.store.pending_organizations().map_err(failed)?),
            StoreRequest::ReadOrganization(organization, over) => {
                let found = admission::find(&self.store, &self.settings.limits, &organization, &over);
                NodeEvent::OrganizationRead(organization, found)
            }
            StoreRequest::CountUnfinished(organization) => {
                let found = admission::count_unfinished(&self.store, &self.settings.limits, &organization);
                NodeEvent::UnfinishedCounted(organization, found)
            }
            StoreRequest::Lease(wanted) => return self.serve_lease(who, &wanted),
            StoreRequest::Admit(executions) => {
                return executions.into_iter().try_for_each(|execution| self.enqueue(execution, &Input::Admit));
            }
            StoreRequest::Commit { .. } | StoreRequest::Leave(_) => return Ok(()),
        };
        self.answer(who, event);
        Ok(())
    }

    fn enqueue_receipt(&mut self, request: ForwardRequest) -> Result<NodeEvent, String> {
        let ForwardRequest { number, execution, receipt, remote } = request;
        self.enqueue(execution, &receipt)?;
        self.calls.passed_on(execution, &receipt);
        if let Some((name, remote)) = remote.filter(|_| !self.draws_fault(self.faults.read_fails)) {
            self.store.end_remote(&name, &[remote]).map_err(|error| error.to_string())?;
        }
        Ok(NodeEvent::Forwarded(number, true))
    }

    /// Posts an inbox message. The owner of the partition is notified in most cases.
    pub(super) fn enqueue(&mut self, execution: ExecutionKey, input: &Input) -> Result<(), String> {
        let partitions = self.store.partitions().map_err(|error| error.to_string())?;
        let message = inbox::message(&keys().sealing, execution, input, partitions, self.now);
        self.store.enqueue(&EnqueueRequest::of(&message, partitions)).map_err(|error| error.to_string())?;
        self.notify_nodes(&[message.partition]);
        Ok(())
    }

    pub(super) fn notify_nodes(&mut self, partitions: &[u32]) {
        for node in 0..self.nodes.len() {
            if !self.rng.chance(20) {
                let incarnation = self.nodes[node].incarnation;
                self.at(
                    1,
                    ClusterEvent::Node(node, incarnation, ProcessEvent::Node(NodeEvent::Notified(partitions.to_vec()))),
                );
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
                return if self.nodes[who.0].is_incarnation(who.1) { self.crash(who.0) } else { Ok(()) };
            }
            let why = "a row is in the way".into();
            self.answer(who, NodeEvent::Committed { commit_id, answer: Err(CommitError::Refused(why)) });
            return Ok(());
        }
        let records = records_of(batch)?;
        self.progress.coverage.add_records(&records, outcome.name());
        if outcome.is_written() {
            self.nodes[who.0].written.unanswered.push((who.1, commit_id, records));
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
                self.answer_in(after, who, NodeEvent::Committed { commit_id, answer });
                return Ok(());
            }
            CommitOutcome::CrashBefore | CommitOutcome::CrashAfter => {
                return if self.nodes[who.0].is_incarnation(who.1) { self.crash(who.0) } else { Ok(()) };
            }
        }
        self.answer(who, NodeEvent::Committed { commit_id, answer });
        Ok(())
    }

    /// Checks a written commit against the rules.
    fn check_commit(&mut self, who: (usize, u32), batch: &Batch, answers: &[PartOutcome]) -> Result<(), String> {
        let names = super::node::names_of(who.0, who.1);
        for (part, answer) in batch.parts.iter().zip(answers) {
            if let PartOutcome::Refused(refusal) = answer {
                if *refusal == Refusal::Fence {
                    self.progress.coverage.add_records(&records_of_part(part)?, "lease lost on the way");
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
