//! A node: a shard, and the decisions around it that need the store. It sends heartbeats, polls the inbox and timers,
//! admits executions, hands partitions off, forwards receipts and recovers attempts.
//!
//! A synchronous state machine without I/O. [`Node::receive`] takes the events. [`Node::step`] does one piece of work or
//! returns one output, which the driver performs. Between any two steps a heartbeat can be sent, so none waits behind
//! other work. Two drivers run the same code: the asynchronous one of the engine, and the simulator on virtual time.

mod admission;
mod inbox;
mod membership;
mod pace;
mod page;
mod protocol;
mod quarantine;
mod quarantine_requests;
mod recovery;
mod round;
mod shares;
mod state;

use std::{collections::VecDeque, time::Duration};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{CommitError, Due, PartOutcome};

use crate::{
    clock::{Clock, ClockReading, MonotonicMs},
    membership::NodeSession,
    options::EngineScope,
    shard::{Event, Output, Shard},
};
pub(crate) use page::ROWS_AT_A_TIME;
pub use page::{Page, PageRequest};
pub use protocol::{AttemptId, ForwardRequest, HeartbeatRequest, NodeEvent, NodeOutput, Report, Step};
pub use quarantine_requests::{NotifiedParents, UnnotifiedParents, all_quarantined, record};
pub(crate) use state::membership::Ownership;
use state::{Commits, Schedule, Status, StoreAccess};
pub use state::{Node, membership::NodeProblem};
use state::{
    admission::AdmissionControl, events::Events, inbox::Inbox, membership::Membership, quarantine::QuarantineProgress,
    recovery::Recovery, round::Round,
};

/// Bounds of the pause before a commit is retried at a shared store that does not write.
const PAUSE_MIN_MS: u64 = 20;
const PAUSE_MAX_MS: u64 = 1_000;

/// Commits in a row with an unknown outcome before this process stops.
const UNKNOWN_COMMITS_MAX: u32 = 3;

impl Node {
    /// Creates a node. Without a `session`, it is the only process that uses its store.
    pub fn new(shard: Shard, session: Option<NodeSession>, scope: EngineScope, has_limits: bool) -> Self {
        let access =
            session.map_or(StoreAccess::Exclusive, |session| StoreAccess::Shared(Box::new(Membership::new(session))));
        let mut node = Self {
            shard,
            access,
            scope,
            events: Events::default(),
            inbox: Inbox::default(),
            recovery: Recovery::default(),
            quarantine: QuarantineProgress::default(),
            admission: has_limits.then(AdmissionControl::default),
            commits: Commits::default(),
            schedule: Schedule::default(),
            round: Round::default(),
            status: Status::default(),
            outputs: VecDeque::new(),
            now: ClockReading { monotonic: MonotonicMs(0), wall_ms: 0 },
        };
        node.report(Report::OwnershipChanged);
        node.want_quarantined();
        node
    }

    /// Takes an event. Results of commits, and everything on heartbeats, do not wait behind other events.
    pub fn receive(&mut self, event: NodeEvent) {
        match (event, &mut self.access) {
            (NodeEvent::Committed { commit_id, answer }, _) => self.commits.answer = Some((commit_id, answer)),
            (NodeEvent::Heartbeat(handoff, result), StoreAccess::Shared(membership)) => {
                membership.answer(handoff, result);
            }
            (NodeEvent::Rejoined(session), _) => self.rejoined(*session),
            (NodeEvent::HeartbeatNotSent(why), _) => self.heartbeat_not_sent(why),
            (event, _) => self.events.arrive(event),
        }
    }

    /// The time until the next step has something to do without an event, or `None` if nothing is scheduled.
    pub fn next_wake(&self, clock: &dyn Clock) -> Option<Duration> {
        if self.has_more() || self.commits.answer.is_some() || self.can_take_messages() {
            return Some(Duration::ZERO);
        }
        let reading = clock.reading();
        let of_heartbeat = match &self.access {
            StoreAccess::Exclusive => None,
            StoreAccess::Shared(membership) => membership.next_at(),
        };
        let polls = [Some(self.schedule.inbox_at), Some(self.schedule.timers_at), of_heartbeat];
        let others = [self.recovery.next_try(), self.next_notifications()];
        let at = polls.into_iter().chain(others).flatten().min();
        let tick = at.map(|at| Duration::from_millis(at.0.saturating_sub(reading.monotonic.0)));
        let timer = self.shard.next_time();
        let timer = timer.map(|at| Duration::from_millis(at.saturating_sub(self.shard.now(reading))));
        let now = clock.elapsed();
        let part = self.schedule.pace.next(now, self.shard.split_tenants()).map(|(_, at)| at.saturating_sub(now));
        [tick, timer, part].into_iter().flatten().min()
    }

    /// True if events or outputs are left from the last round.
    pub fn has_more(&self) -> bool {
        let has_outputs = !self.status.is_over && self.shard.has_outputs();
        has_outputs || !self.outputs.is_empty() || !self.events.is_empty()
    }

    /// True if the node is drained, or cannot continue, and no attempt runs. Running attempts are awaited even after the
    /// store has failed, so that no process outlives the engine.
    pub fn is_finished(&self) -> bool {
        let is_quiet = self.recovery.is_quiet() && self.has_recorded_all_quarantines();
        let has_more = self.commits.is_in_flight
            || self.commits.answer.is_some()
            || self.shard.has_waiting()
            || self.shard.has_outputs()
            || !self.events.is_empty();
        self.status.is_draining && is_quiet && (self.status.is_over || !has_more)
    }

    /// True once the node starts no new work.
    pub fn is_draining(&self) -> bool {
        self.status.is_draining
    }

    /// True once the node cannot continue.
    pub fn is_over(&self) -> bool {
        self.status.is_over
    }

    /// The executions of this node.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The shard, for its counters.
    pub fn shard_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// The incarnation of the node. `None` for the only process of a store.
    pub fn session(&self) -> Option<&NodeSession> {
        match &self.access {
            StoreAccess::Exclusive => None,
            StoreAccess::Shared(membership) => Some(membership.session()),
        }
    }

    /// The name of this incarnation. `None` for the only process of a store.
    pub fn name(&self) -> Option<&str> {
        self.session().map(NodeSession::name)
    }

    /// True for an engine that works on all unfinished executions.
    pub(crate) fn works_on_all(&self) -> bool {
        self.scope == EngineScope::All
    }

    /// The numbers of executions with a slot, and of queued ones.
    pub(crate) fn places(&self) -> [usize; 2] {
        self.admission.as_ref().map(AdmissionControl::counts).unwrap_or_default()
    }

    /// The owned partitions, for callers of the engine.
    pub(crate) fn owned(&self) -> Ownership {
        let (partitions, held) = (self.shard.partitions(), self.shard.held().collect());
        Ownership { partitions, held, problem: self.status.problem.clone() }
    }

    fn is_alone(&self) -> bool {
        matches!(self.access, StoreAccess::Exclusive)
    }

    fn incarnation(&self) -> u32 {
        match &self.access {
            StoreAccess::Exclusive => 0,
            StoreAccess::Shared(membership) => membership.incarnation(),
        }
    }

    fn report(&mut self, report: Report) {
        self.outputs.push_back(NodeOutput::Report(report));
    }

    /// Drops the partitions of an expired lease before the event is handled.
    fn handle(&mut self, event: Event) {
        self.shard.expire(self.now);
        self.shard.handle(self.shard.now(self.now), event);
    }

    /// Handles one event.
    fn handle_command(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Shard(event) => {
                self.meet_quarantined(&event);
                self.handle(event);
            }
            NodeEvent::Ask(ticket, _) if self.status.is_draining => {
                self.outputs.push_back(NodeOutput::Unanswered(ticket));
            }
            NodeEvent::Ask(_, event) => {
                self.scope.extend(event.execution());
                self.enter(event);
            }
            NodeEvent::Page(page) => self.take_page(*page),
            NodeEvent::Due(mut due) => {
                due.retain(|due| self.scope.contains(due.execution));
                self.handle(Event::Due(due));
            }
            NodeEvent::DueRead => self.due_read(),
            NodeEvent::Notified(partitions) => self.on_notified(&partitions),
            NodeEvent::WokenUp => self.poll_inbox(),
            NodeEvent::Ended(execution, instance, attempt, outcome) => {
                self.ended(execution, instance, attempt, outcome)
            }
            NodeEvent::Forwarded(number, is_enqueued) => self.forwarded(number, is_enqueued),
            NodeEvent::Activate(execution) => self.activate(execution),
            NodeEvent::QuarantineRecorded(execution, answer) => self.on_quarantine_recorded(execution, answer),
            NodeEvent::QuarantinedRead(found) => self.found_quarantined(found),
            NodeEvent::NotifiedParents(notified) => self.parents_notified(notified),
            NodeEvent::Organizations(organizations) => self.want_reads_of(&organizations),
            NodeEvent::OrganizationRead(organization, found) => self.found(&organization, found),
            NodeEvent::UnfinishedCounted(organization, found) => self.counted_live(&organization, found),
            NodeEvent::BoundsChanged(organization) => self.bounds_changed(&organization),
            NodeEvent::Fatal(why) => self.stop(why),
            NodeEvent::Drain => {
                self.status.is_draining = true;
                self.stop_attempts();
            }
            // `receive` keeps them apart.
            NodeEvent::Committed { .. }
            | NodeEvent::Heartbeat(..)
            | NodeEvent::Rejoined(_)
            | NodeEvent::HeartbeatNotSent(_) => {}
        }
    }

    fn activate(&mut self, execution: ExecutionKey) {
        // Messages to an execution outside the scope may have been skipped.
        if self.scope.extend(execution) {
            self.reset_inbox_cursor();
            self.poll_inbox();
        }
        self.handle(Event::Due(vec![Due { execution, wake_at: 0 }]));
    }

    /// Handles the result of a commit.
    fn committed(&mut self, commit_id: u64, answer: Result<Vec<PartOutcome>, CommitError>) {
        self.commits.is_in_flight = false;
        if let StoreAccess::Shared(membership) = &mut self.access {
            membership.written(self.now.monotonic, &answer);
        }
        self.count_doubt(answer.as_ref().err());
        self.handle(Event::Committed { commit_id, answer });
    }

    /// Stops the process after several commits in a row with an unknown outcome. Each is read back and retried, which
    /// would never end on a disk that fails every time.
    fn count_doubt(&mut self, error: Option<&CommitError>) {
        match error {
            Some(CommitError::NotWritten(_) | CommitError::Refused(_) | CommitError::Blocked(_)) => {}
            Some(error @ CommitError::Unknown(_)) if self.is_alone() => {
                self.commits.unknown += 1;
                if self.commits.unknown >= UNKNOWN_COMMITS_MAX {
                    self.stop(error.to_string());
                }
            }
            _ => {
                (self.commits.unknown, self.commits.pause_ms) = (0, 0);
                if std::mem::take(&mut self.commits.is_stalled) && self.is_alone() {
                    self.set_problem(None);
                }
            }
        }
    }

    /// The store refused to write. A draining node does not wait for a store that fails: another node decides the
    /// pending inputs again. The engine of a command ends with the error. A server waits, for free disk space as well.
    fn stalled(&mut self, why: String) {
        let waits = !self.is_alone() || self.works_on_all();
        if !waits || self.status.is_draining {
            return self.stop(why);
        }
        self.commits.pause_ms = (self.commits.pause_ms * 2).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS);
        self.commits.is_stalled = true;
        // For nodes of a shared store, the heartbeats report it.
        if self.is_alone() {
            let why = format!("the store rejects writes, and the commit is retried: {why}");
            self.set_problem(Some(NodeProblem::of("store", why)));
        }
    }

    fn stop(&mut self, why: String) {
        (self.status.is_draining, self.status.is_over) = (true, true);
        self.outputs.push_back(NodeOutput::Fatal(why));
        self.stop_attempts();
    }

    fn stop_attempts(&mut self) {
        let running = self.recovery.running().cloned().map(NodeOutput::Stop);
        self.outputs.extend(running);
    }

    /// Converts an output of the shard to one for the driver, or performs it here.
    fn translate(&mut self, output: Output) -> Option<NodeOutput> {
        match output {
            Output::Commit { commit_id, batch } => {
                self.commits.is_in_flight = true;
                return Some(NodeOutput::Commit { commit_id, batch, pause_ms: self.commits.pause_ms });
            }
            Output::Load(execution, number) => return self.load(execution, number),
            Output::Perform { execution, instance, attempt } => {
                let starts = self.begin_attempt(execution, &instance, attempt.number);
                return starts.then_some(NodeOutput::Perform(execution, instance, attempt));
            }
            Output::Stop { execution, instance, attempt } => {
                return Some(NodeOutput::Stop((execution, instance, attempt)));
            }
            Output::Kill { execution, instance, attempt } => {
                return Some(NodeOutput::Kill((execution, instance, attempt)));
            }
            Output::Forget { execution, step, attempt } => return Some(NodeOutput::Forget(execution, step, attempt)),
            Output::Reply(ticket, reply) => {
                self.answered(ticket, reply.is_ok());
                return Some(NodeOutput::Reply(ticket, reply));
            }
            Output::Evaluate { execution, evaluation, suspended } => {
                return Some(NodeOutput::Evaluate(execution, evaluation, suspended));
            }
            Output::Lease(wanted) => return Some(NodeOutput::Lease(wanted)),
            Output::StopRemote(attempt) => return Some(NodeOutput::StopRemote(attempt)),
            Output::Notify(frame) => {
                self.count(&frame);
                return Some(NodeOutput::Notify(frame));
            }
            Output::Reconcile { execution, instance, attempt } => {
                self.reconcile_behind_inbox(execution, instance, attempt)
            }
            Output::MessagesEnqueued(partitions) => self.on_messages_enqueued(&partitions),
            Output::RescanInbox => {
                self.reset_inbox_cursor();
                self.poll_inbox();
            }
            Output::Acquired(partitions) => self.acquired(partitions),
            Output::Handoff(handoff) => self.handoff(handoff),
            Output::Lost(partitions) => self.lost(partitions),
            Output::PassOn(execution, input, remote) => self.pass_on(execution, input, remote),
            // Queued, since it may produce outputs of its own.
            Output::Activate(execution) => self.receive(NodeEvent::Activate(execution)),
            Output::Quarantine(execution, why) => self.quarantine(execution, why),
            Output::Stalled(why) => self.stalled(why),
            Output::Fatal(why) => self.stop(why),
        }
        None
    }
}
