//! A node of the cluster: a sequence of incarnations, each with a fresh shard that knows only the contents of the
//! store.
//!
//! An incarnation is a process. It drives its shard as the engine's driver does, in the same order: first all waiting
//! commands are handled, then the outputs are carried out. Polling is in `looking`, leases and handoff are in `owning`.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use mainspring_effects::Executors;
use mainspring_engine::{
    lease::{LeaseTiming, Leases},
    membership::{Heartbeat, NodeSession},
    shard::{AttemptRecovery, Event, Handoff, LoadAnswer, PendingInput, Shard},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey, record::Record,
};
use mainspring_store::{CommitError, Due, InboxEntry, PartOutcome, partition_of};

use super::{
    Cluster, ClusterEvent,
    clocks::Clocks,
    executors,
    faults::LEASE_MS,
    looking::INBOX_POLL_INTERVAL_MS,
    network::StoreRequest,
    owning::ToAdopt,
    quarantine::{QuarantineResponse, QuarantineState},
};
use crate::{faults::Rng, fixture::keys};

/// A slot of the cluster in which incarnations of a node follow each other.
pub(super) struct Node {
    pub(super) life: u32,
    /// Number of names of this incarnation. A process continues under a new name when its lease has expired.
    pub(super) names: u32,
    pub(super) shard: Option<Shard>,
    pub(super) member: Option<NodeSession>,
    pub(super) executors: Executors,
    /// End of the pause of the node.
    pub(super) paused_until: u64,
    /// Delayed response to the heartbeat: the node gets none before the first time, and no journal before the second.
    pub(super) heartbeat_delayed_until: u64,
    pub(super) unreadable_until: u64,
    pub(super) clocks: Clocks,
    pub(super) unacked: BTreeMap<u64, u32>,
    /// Counter of inbox resets.
    pub(super) generation: u64,
    /// A read of new messages is in progress, or requested after the current one.
    pub(super) is_looking: bool,
    pub(super) looks_again: bool,
    pub(super) inbox_cursor: u64,
    pub(super) pending_handoff: Handoff,
    /// Number of receipts that are being forwarded, by execution.
    pub(super) passing_on: BTreeMap<ExecutionKey, usize>,
    /// Attempts to recover after the inbox was read.
    pub(super) to_adopt: Vec<ToAdopt>,
    pub(super) is_looking_to_adopt: bool,
    /// Time of the next heartbeat; `None` while one is in progress.
    pub(super) speaks_at: Option<u64>,
    /// The response to the last heartbeat was late.
    pub(super) was_late: bool,
    pub(super) quarantine: QuarantineState,
    /// State of the commit in flight, and the delay of the next commit after one that was not written.
    pub(super) in_flight: bool,
    pub(super) is_commit_slow: bool,
    pub(super) pause_ms: u64,
    /// The node is draining: it stops its calls, starts none, and leaves.
    pub(super) is_draining: bool,
    /// The store failed during the drain: the node carries out nothing more.
    pub(super) is_over: bool,
    /// Time of the scheduled wake-up.
    wakes_at: Option<u64>,
    /// The newest version of `decide` that the node supports.
    decide_version: u32,
    /// Written records, by incarnation and number of the commit, until the node receives the response.
    pub(super) written: Vec<(u32, u64, Vec<Record>)>,
    /// Records of the commits whose outputs are carried out now.
    pub(super) landed: Vec<Record>,
}

/// An event at an incarnation of a node.
#[derive(Debug)]
pub(super) enum NodeEvent {
    Wake,
    Resume,
    Drain,
    Speak,
    PollInbox,
    Hint(Vec<u32>),
    HeartbeatResult(Handoff, Heartbeat),
    Committed(u64, Result<Vec<PartOutcome>, CommitError>),
    Loaded(ExecutionKey, u64, Box<LoadAnswer>),
    /// Inbox messages, the partitions of which they are the complete inbox, and the counter of inbox resets at the
    /// request.
    Letters(Vec<InboxEntry>, Option<Vec<u32>>, u64),
    /// End of a read of new messages.
    InboxPolled(u64, Option<Vec<InboxEntry>>),
    Due(Vec<Due>),
    /// End of a read of the inbox before a recovery, with the counter of inbox resets at the request; `None` if the
    /// read failed.
    Looked(Vec<ToAdopt>, Option<u64>),
    PassedOn(ExecutionKey),
    Adopted(ExecutionKey, Instance, u32, AttemptRecovery),
    Ended(ExecutionKey, Instance, u32, Outcome),
    Activate(ExecutionKey),
    /// A response about quarantined executions.
    Quarantine(QuarantineResponse),
    /// A request whose client waits for a reply.
    Ask(Event),
    Event(Event),
}

impl NodeEvent {
    /// Returns whether the event is in the command queue of the process. The other events are handled when that queue
    /// is empty.
    fn is_command(&self) -> bool {
        !matches!(self, Self::Wake | Self::Resume | Self::Speak | Self::PollInbox)
    }
}

/// The common prefix of the names of a process.
pub(super) fn names_of(node: usize, life: u32) -> String {
    format!("node {node}, life {life}, name ")
}

impl Node {
    pub(super) fn absent(rng: &mut Rng) -> Self {
        Self::new(Clocks::of(rng))
    }

    fn new(clocks: Clocks) -> Self {
        Self {
            life: 0,
            names: 0,
            shard: None,
            member: None,
            executors: Executors::default(),
            paused_until: 0,
            heartbeat_delayed_until: 0,
            unreadable_until: 0,
            clocks,
            unacked: BTreeMap::new(),
            generation: 0,
            is_looking: false,
            looks_again: false,
            inbox_cursor: 0,
            pending_handoff: Handoff::default(),
            passing_on: BTreeMap::new(),
            to_adopt: Vec::new(),
            is_looking_to_adopt: false,
            quarantine: QuarantineState::default(),
            speaks_at: None,
            was_late: false,
            in_flight: false,
            is_commit_slow: false,
            pause_ms: 0,
            is_draining: false,
            is_over: false,
            wakes_at: None,
            decide_version: DECIDE_VERSION,
            written: Vec::new(),
            landed: Vec::new(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.shard.is_some()
    }

    pub(super) fn is_old(&self) -> bool {
        self.is_alive() && self.decide_version < DECIDE_VERSION
    }

    pub(super) fn is_life(&self, life: u32) -> bool {
        self.is_alive() && self.life == life
    }

    /// The current name of the process.
    pub(super) fn name(&self) -> String {
        self.member.as_ref().map(|member| member.name().to_owned()).unwrap_or_default()
    }

    /// Gives the process a new name.
    pub(super) fn call_anew(&mut self, node: usize, store: Arc<dyn mainspring_store::Store>) {
        self.names += 1;
        let known = mainspring_store::Node {
            name: format!("{}{}", names_of(node, self.life), self.names),
            address: "simulated".into(),
            release: "0".into(),
            decide_version: self.decide_version,
            accepts_partitions: true,
        };
        self.member = Some(NodeSession::new(store, LeaseTiming { lease_ms: LEASE_MS }, known));
    }

    pub(super) fn holds_execution(&self, execution: ExecutionKey) -> bool {
        let partitions = self.shard.as_ref().map_or(1, Shard::partitions);
        self.holds().contains(&partition_of(execution, partitions))
    }

    pub(super) fn holds(&self) -> Vec<u32> {
        self.shard.iter().flat_map(Shard::held).collect()
    }
}

impl Cluster {
    pub(super) fn start_node(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            return Ok(());
        }
        let resting_bytes_max = *self.rng.pick(&[usize::MAX, 0, 4096]);
        // Some nodes run an older release.
        let is_old = self.draws_fault(20);
        let executors = executors::executors(!self.draws_fault(self.faults.unable));
        let store = Arc::new(self.store.clone());
        let Node { clocks, life, .. } = self.nodes[node];
        let mut shard = Shard::new(Leases::none(), keys(), resting_bytes_max);
        // Every second incarnation schedules turns as if several organizations shared the driver.
        if life % 2 == 1 {
            shard.share_always();
        }
        self.nodes[node] = Node {
            life: life + 1,
            decide_version: if is_old { DECIDE_VERSION - 1 } else { DECIDE_VERSION },
            shard: Some(shard),
            executors,
            ..Node::new(clocks)
        };
        self.nodes[node].call_anew(node, store);
        self.speak_in(node, 0);
        self.at(INBOX_POLL_INTERVAL_MS, ClusterEvent::Node(node, life + 1, NodeEvent::PollInbox));
        Ok(())
    }

    /// Ends a node and its calls at once. A new incarnation starts later.
    pub(super) fn crash(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            self.calls.kill(node, self.nodes[node].life);
            self.vanish(node);
        }
        Ok(())
    }

    fn vanish(&mut self, node: usize) {
        self.nodes[node].shard = None;
        self.nodes[node].member = None;
        let after = self.rng.below(3 * LEASE_MS);
        self.at(after, ClusterEvent::StartNode(node));
    }

    /// Requests an orderly shutdown. The node handles the request when it reaches it.
    pub(super) fn leave(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            let life = self.nodes[node].life;
            self.at(0, ClusterEvent::Node(node, life, NodeEvent::Drain));
        }
        Ok(())
    }

    fn drain(&mut self, node: usize) {
        self.nodes[node].is_draining = true;
        self.stop_all(node);
    }

    /// The store failed during the drain. The next owner decides again about inputs that were not written.
    pub(super) fn give_in(&mut self, node: usize) {
        self.nodes[node].is_over = true;
        self.stop_all(node);
    }

    fn stop_all(&mut self, node: usize) {
        for (execution, instance, attempt) in self.calls.of(node, self.nodes[node].life) {
            self.stop(node, execution, &instance, attempt);
        }
    }

    /// Leaves the cluster once all calls have ended and all receipts are written or forwarded.
    fn end_if_drained(&mut self, node: usize) {
        let place = &self.nodes[node];
        let Some((shard, member)) = place.shard.as_ref().zip(place.member.clone()) else { return };
        let is_busy = !place.passing_on.is_empty()
            || place.quarantine.is_recording()
            || !place.is_over && (place.in_flight || shard.has_waiting());
        if place.is_draining && !is_busy && self.calls.of(node, place.life).is_empty() {
            self.request_store(node, StoreRequest::Leave(member));
            self.vanish(node);
        }
    }

    /// Returns whether an execution was started by a version of `decide` that the node does not support.
    pub(super) fn is_too_new(&self, node: usize, execution: ExecutionKey) -> bool {
        self.commits.decide_version(execution) > self.nodes[node].decide_version
    }

    pub(super) fn handle_node_event(&mut self, node: usize, life: u32, event: NodeEvent) -> Result<(), String> {
        let place = &self.nodes[node];
        if !place.is_life(life) {
            return Ok(());
        }
        if place.paused_until > self.now {
            let after = place.paused_until - self.now;
            self.at(after, ClusterEvent::Node(node, life, event));
            return Ok(());
        }
        let is_resuming = matches!(event, NodeEvent::Resume);
        self.obey(node, event)?;
        if !is_resuming && self.has_more_for(node, life) {
            return Ok(());
        }
        self.carry(node)?;
        if self.nodes[node].paused_until <= self.now {
            self.nodes[node].landed.clear();
            self.end_if_drained(node);
        }
        Ok(())
    }

    /// Returns whether a further command is due for the node at this time. All due commands are handled before outputs
    /// are carried out.
    fn has_more_for(&self, node: usize, life: u32) -> bool {
        let next = self.queue.peek().filter(|Reverse((at, _))| *at <= self.now);
        let next = next.and_then(|Reverse((_, order))| self.events.get(order));
        matches!(next, Some(ClusterEvent::Node(of, in_life, event)) if (*of, *in_life) == (node, life) && event.is_command())
    }

    fn obey(&mut self, node: usize, event: NodeEvent) -> Result<(), String> {
        let life = self.nodes[node].life;
        match event {
            NodeEvent::Wake => {
                self.nodes[node].wakes_at = None;
                self.handle(node, Event::Wake);
            }
            NodeEvent::Resume => {}
            NodeEvent::Drain => self.drain(node),
            NodeEvent::Speak => self.heartbeat(node),
            NodeEvent::PollInbox => {
                self.look_at(node, self.nodes[node].holds());
                self.read_quarantined(node);
                self.at(INBOX_POLL_INTERVAL_MS, ClusterEvent::Node(node, life, NodeEvent::PollInbox));
            }
            NodeEvent::Hint(partitions) => self.hear(node, &partitions),
            NodeEvent::HeartbeatResult(handoff, word) => self.on_heartbeat(node, &handoff, word),
            NodeEvent::Committed(commit_id, answer) => self.committed(node, commit_id, answer),
            NodeEvent::Loaded(execution, number, answer) => {
                self.check_quarantined(node, execution, &answer);
                self.handle(node, Event::Loaded(execution, number, answer));
            }
            // Messages that were read before an inbox reset are dropped.
            NodeEvent::Letters(_, _, generation) if generation != self.nodes[node].generation => {}
            NodeEvent::Letters(messages, all_of, _) => self.receive_messages(node, messages, all_of)?,
            NodeEvent::InboxPolled(generation, found) => self.inbox_polled(node, generation, found)?,
            NodeEvent::Due(due) => self.handle(node, Event::Due(due)),
            NodeEvent::Looked(asked, read) => {
                self.looked(node, asked, read == Some(self.nodes[node].generation));
            }
            NodeEvent::PassedOn(execution) => self.passed_on(node, execution),
            NodeEvent::Adopted(execution, instance, attempt, fate) => {
                self.handle(node, Event::AttemptRecovered { execution, instance, attempt, recovery: fate });
            }
            NodeEvent::Ended(execution, instance, attempt, outcome) => {
                self.ended(node, execution, instance, attempt, outcome);
            }
            NodeEvent::Activate(execution) => self.activate(node, execution),
            NodeEvent::Quarantine(response) => self.handle_quarantine_response(node, response),
            NodeEvent::Ask(_) if self.nodes[node].is_draining => {}
            NodeEvent::Ask(event) | NodeEvent::Event(event) => self.handle(node, event),
        }
        Ok(())
    }

    fn committed(&mut self, node: usize, commit_id: u64, answer: Result<Vec<PartOutcome>, CommitError>) {
        let place = &mut self.nodes[node];
        let is_it = |(by, written, _): &(u32, u64, Vec<Record>)| (*by, *written) == (place.life, commit_id);
        let landed = place.written.iter().position(is_it);
        place.landed.extend(landed.into_iter().flat_map(|at| place.written.swap_remove(at).2));
        (place.in_flight, place.is_commit_slow) = (false, false);
        if !matches!(answer, Err(CommitError::NotWritten(_))) {
            place.pause_ms = 0;
        }
        self.handle(node, Event::Committed { commit_id, answer });
    }

    pub(super) fn handle(&mut self, node: usize, event: Event) {
        let now = self.now;
        let place = &mut self.nodes[node];
        let reading = place.clocks.read(now);
        if let Some(shard) = &mut place.shard {
            shard.expire(reading);
            shard.handle(shard.now(reading), event);
        }
    }

    fn ended(&mut self, node: usize, execution: ExecutionKey, instance: Instance, attempt: u32, outcome: Outcome) {
        let life = self.nodes[node].life;
        let Some(outcome) = self.calls.end(execution, &instance, attempt, outcome) else { return };
        // A stop because of the drain is no receipt: the attempt stays open.
        if self.nodes[node].is_draining && matches!(outcome, Outcome::Stopped(_)) {
            return;
        }
        let input = Input::Receipt { instance: instance.clone(), attempt, outcome: outcome.clone() };
        if self.draws_fault(self.faults.twice) {
            let again = PendingInput::without_reply(input.clone());
            let after = self.rng.below(3_000);
            self.at(after, ClusterEvent::Node(node, life, NodeEvent::Event(Event::Take(execution, again))));
        }
        self.handle(node, Event::Take(execution, PendingInput::without_reply(input)));
    }

    /// Schedules the wake-up for the next timer.
    pub(super) fn set_alarm(&mut self, node: usize) {
        let place = &self.nodes[node];
        let Some(at) = place.shard.as_ref().and_then(Shard::next_wake) else { return };
        let known_ms = place.shard.as_ref().map_or(0, |shard| shard.now(place.clocks.read(self.now)));
        let at = self.now + at.saturating_sub(known_ms).max(1);
        if place.wakes_at.is_some_and(|known| known <= at) {
            return;
        }
        let life = place.life;
        self.nodes[node].wakes_at = Some(at);
        self.at(at - self.now, ClusterEvent::Node(node, life, NodeEvent::Wake));
    }
}
