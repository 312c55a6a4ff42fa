//! A node of the cluster: a sequence of incarnations, each with a new node of the engine that has only the contents of
//! the store.
//!
//! An incarnation is a process. It runs the rounds of the engine's node on virtual time, and performs its outputs in
//! `outputs`. All decisions are the engine's.

use std::{cell::Cell, sync::Arc, time::Duration};

use mainspring_effects::Executors;
use mainspring_engine::{
    EngineScope,
    clock::{Clock, ClockReading},
    lease::{LeaseTiming, Leases},
    membership::NodeSession,
    node::{Node, NodeEvent, Step},
    shard::{Event, PendingInput, Shard},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION, effect::Outcome, input::Input, instance::Instance, key::ExecutionKey, record::Record,
};
use mainspring_store::{CommitError, PartOutcome, prelude::*};

use super::{
    Cluster, ClusterEvent,
    clocks::Clocks,
    executors,
    fault_coverage::PAUSED,
    faults::{FaultProfile, LEASE_MS},
    load::HEARTBEAT_MS_MAX,
    network::StoreRequest,
};
use crate::{faults::Rng, fixture::keys};

/// Steps in one round after which it counts as endless.
const STEPS_MAX: u32 = 200_000;

/// Most microseconds of the precise clock between two readings, while several organizations share the node. A part of a
/// round ends after a few readings, with events and outputs left.
const SHARED_STEP_US_MAX: u64 = 300;

/// A slot of the cluster in which incarnations of a node follow each other.
pub(super) struct Process {
    pub(super) incarnation: u32,
    /// Number of names of this incarnation. A process continues under a new name when its lease has expired.
    names: u32,
    node: Option<Node>,
    pub(super) executors: Executors,
    pub(super) clocks: Clocks,
    pub(super) delays: Delays,
    /// The process was asked to leave.
    is_leaving: bool,
    /// A round is in progress or scheduled.
    is_running: bool,
    /// Time of the scheduled wake-up.
    wakes_at: Option<u64>,
    /// The newest version of `decide` that the node supports.
    decide_version: u32,
    pub(super) written: Written,
}

/// Delays of a process, and of its requests.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// End of the pause of the node.
    pub(super) paused_until: u64,
    /// Delayed response to the heartbeat: the node gets none before the first time, and no journal before the second.
    pub(super) heartbeat_delayed_until: u64,
    pub(super) unreadable_until: u64,
    /// The response to the last heartbeat was late.
    pub(super) was_late: bool,
    /// The time by which the node must send a heartbeat. `None` while one is in progress.
    pub(super) heartbeat_by: Option<u64>,
    /// The commit in flight is slow.
    pub(super) is_commit_slow: bool,
}

/// The records that the commits of a process wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By incarnation and number of the commit, until the node receives the response.
    pub(super) unanswered: Vec<(u32, u64, Vec<Record>)>,
    /// Records of the commits whose outputs are carried out now.
    landed: Vec<Record>,
}

/// An event at an incarnation of a node.
pub(super) enum ProcessEvent {
    /// A scheduled wake-up.
    Wake,
    /// The round continues.
    Run,
    /// The process is asked to leave.
    Drain,
    /// A call ends with this outcome, unless it has ended before.
    Ended(ExecutionKey, Instance, u32, Outcome),
    /// The result of a commit.
    Committed(u64, Result<Vec<PartOutcome>, CommitError>),
    Node(NodeEvent),
}

/// The common prefix of the names of a process.
pub(super) fn names_of(node: usize, incarnation: u32) -> String {
    format!("node {node}, incarnation {incarnation}, name ")
}

/// The clocks of a process during a round.
struct RoundClock {
    reading: ClockReading,
    elapsed: Cell<Duration>,
    /// The precise clock advances by this time with each reading.
    step: Duration,
}

impl Clock for RoundClock {
    fn reading(&self) -> ClockReading {
        self.reading
    }

    fn elapsed(&self) -> Duration {
        self.elapsed.replace(self.elapsed.get() + self.step)
    }

    fn processor_time(&self) -> Duration {
        self.elapsed.get()
    }
}

impl Process {
    pub(super) fn absent(rng: &mut Rng) -> Self {
        Self::new(Clocks::of(rng))
    }

    fn new(clocks: Clocks) -> Self {
        Self {
            incarnation: 0,
            names: 0,
            node: None,
            executors: Executors::default(),
            clocks,
            delays: Delays::default(),
            is_leaving: false,
            is_running: false,
            wakes_at: None,
            decide_version: DECIDE_VERSION,
            written: Written::default(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.node.is_some()
    }

    pub(super) fn is_old(&self) -> bool {
        self.is_alive() && self.decide_version < DECIDE_VERSION
    }

    pub(super) fn is_incarnation(&self, incarnation: u32) -> bool {
        self.is_alive() && self.incarnation == incarnation
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    pub(super) fn shard(&self) -> Option<&Shard> {
        self.node.as_ref().map(Node::shard)
    }

    /// The current name of the process.
    pub(super) fn name(&self) -> String {
        self.node.as_ref().and_then(Node::name).unwrap_or_default().to_owned()
    }

    /// Creates the next incarnation of the process in the cluster.
    fn next_member(&mut self, number: usize, store: Arc<dyn mainspring_store::Store>) -> NodeSession {
        self.names += 1;
        let known = mainspring_store::Node {
            name: format!("{}{}", names_of(number, self.incarnation), self.names),
            address: "simulated".into(),
            release: "0".into(),
            decide_version: self.decide_version,
            accepts_partitions: true,
        };
        NodeSession::new(store, LeaseTiming { lease_ms: LEASE_MS }, known)
    }

    pub(super) fn holds(&self) -> Vec<u32> {
        self.shard().into_iter().flat_map(Shard::held).collect()
    }

    fn clock(&self, now: u64, step_us: u64) -> RoundClock {
        let (reading, elapsed) = (self.clocks.read(now), Cell::new(Duration::from_millis(now)));
        RoundClock { reading, elapsed, step: Duration::from_micros(step_us) }
    }
}

impl Cluster {
    pub(super) fn start_node(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            return Ok(());
        }
        let idle_bytes_max = *self.rng.pick(&[usize::MAX, 0, 4096]);
        // Some nodes run an older release.
        let is_old = self.draws_fault(20);
        let executors = executors::executors(!self.draws_fault(self.faults.unable));
        let store = Arc::new(self.store.clone());
        let Process { clocks, incarnation, .. } = self.nodes[node];
        let mut shard = Shard::new(Leases::none(), keys(), idle_bytes_max);
        // Every second incarnation schedules turns as if several organizations shared the driver.
        if incarnation % 2 == 1 {
            shard.share_always();
        }
        let mut process = Process {
            incarnation: incarnation + 1,
            decide_version: if is_old { DECIDE_VERSION - 1 } else { DECIDE_VERSION },
            executors,
            ..Process::new(clocks)
        };
        let member = process.next_member(node, store);
        process.node = Some(Node::new(shard, Some(member), EngineScope::All, true));
        self.nodes[node] = process;
        self.expect_heartbeat(node, 0);
        self.run_soon(node);
        Ok(())
    }

    /// Ends a node and its calls at once. A new incarnation starts later.
    pub(super) fn crash(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            self.calls.kill(node, self.nodes[node].incarnation);
            self.vanish(node);
        }
        Ok(())
    }

    fn vanish(&mut self, node: usize) {
        self.nodes[node].node = None;
        let after = self.rng.below(3 * LEASE_MS);
        self.at(after, ClusterEvent::StartNode(node));
    }

    /// Requests an orderly shutdown. The node handles the request when it reaches it.
    pub(super) fn leave(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].is_alive() {
            let incarnation = self.nodes[node].incarnation;
            self.at(0, ClusterEvent::Node(node, incarnation, ProcessEvent::Drain));
        }
        Ok(())
    }

    /// Leaves the cluster once all calls have ended and all receipts are written or forwarded.
    fn end_if_drained(&mut self, node: usize) {
        let finished = self.nodes[node].node.as_ref().filter(|node| node.is_finished());
        if let Some(member) = finished.and_then(|node| node.session().cloned()) {
            self.request_store(node, StoreRequest::Leave(member));
            self.vanish(node);
        }
    }

    /// Continues a process under a new name, since its lease has expired. Its calls run until they have stopped.
    pub(super) fn rejoin(&mut self, node: usize) {
        let store = Arc::new(self.store.clone());
        let member = self.nodes[node].next_member(node, store);
        self.receive(node, NodeEvent::Rejoined(Box::new(member)));
    }

    /// Returns whether an execution was started by a version of `decide` that the node does not support.
    pub(super) fn is_too_new(&self, node: usize, execution: ExecutionKey) -> bool {
        self.commits.decide_version(execution) > self.nodes[node].decide_version
    }

    /// Handles an event of a process. Events of a paused process wait for the end of the pause.
    pub(super) fn handle_node_event(
        &mut self,
        node: usize,
        incarnation: u32,
        event: ProcessEvent,
    ) -> Result<(), String> {
        let process = &mut self.nodes[node];
        if !process.is_incarnation(incarnation) {
            return Ok(());
        }
        if process.delays.paused_until > self.now {
            let after = process.delays.paused_until - self.now;
            self.at(after, ClusterEvent::Node(node, incarnation, event));
            return Ok(());
        }
        match event {
            ProcessEvent::Run => return self.run_round(node),
            ProcessEvent::Wake => process.wakes_at = None,
            ProcessEvent::Drain => {
                process.is_leaving = true;
                self.receive(node, NodeEvent::Drain);
            }
            ProcessEvent::Ended(execution, instance, attempt, outcome) => {
                self.attempt_ended(node, execution, instance, attempt, outcome);
            }
            ProcessEvent::Committed(commit_id, answer) => self.committed(node, commit_id, answer),
            ProcessEvent::Node(event) => {
                if matches!(event, NodeEvent::Heartbeat(..)) {
                    self.expect_heartbeat(node, 0);
                }
                self.receive(node, event);
            }
        }
        self.run_soon(node);
        Ok(())
    }

    pub(super) fn receive(&mut self, node: usize, event: NodeEvent) {
        if let Some(node) = &mut self.nodes[node].node {
            node.receive(event);
        }
    }

    /// Schedules a round behind the other events of this time, which it handles together.
    fn run_soon(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].is_running, true) {
            let incarnation = self.nodes[node].incarnation;
            self.at(0, ClusterEvent::Node(node, incarnation, ProcessEvent::Run));
        }
    }

    fn committed(&mut self, node: usize, commit_id: u64, answer: Result<Vec<PartOutcome>, CommitError>) {
        let process = &mut self.nodes[node];
        let is_it = |(by, written, _): &(u32, u64, Vec<Record>)| (*by, *written) == (process.incarnation, commit_id);
        let Written { unanswered, landed } = &mut process.written;
        let at = unanswered.iter().position(is_it);
        landed.extend(at.into_iter().flat_map(|at| unanswered.swap_remove(at).2));
        process.delays.is_commit_slow = false;
        self.receive(node, NodeEvent::Committed { commit_id, answer });
    }

    /// Expects the next heartbeat of a node within its lease, after a time of silence.
    pub(super) fn expect_heartbeat(&mut self, node: usize, after_ms: u64) {
        let process = &mut self.nodes[node];
        let from = process.clocks.runs_from(self.now);
        process.delays.heartbeat_by = Some(from + after_ms + HEARTBEAT_MS_MAX);
    }

    /// Checks that a node sends heartbeats although it is busy.
    fn check_heartbeat(&self, node: usize) -> Result<(), String> {
        match self.nodes[node].delays.heartbeat_by {
            Some(by) if by < self.now => Err(format!(
                "{} has sent no heartbeat since {} ms, and it is not paused",
                self.nodes[node].name(),
                self.now + HEARTBEAT_MS_MAX - by
            )),
            _ => Ok(()),
        }
    }

    /// Runs a round, or the rest of it, unless a pause of the process is injected before an output.
    fn run_round(&mut self, node: usize) -> Result<(), String> {
        let incarnation = self.nodes[node].incarnation;
        let is_shared = self.nodes[node].shard().is_some_and(Shard::is_always_shared);
        let step_us = if is_shared { self.rng.below(SHARED_STEP_US_MAX) } else { 0 };
        let clock = self.nodes[node].clock(self.now, step_us);
        let mut percent = self.pause_before_first(node);
        self.check_heartbeat(node)?;
        let (cost_us, mut used_us) = (self.step_us(), 0);
        for _ in 0..STEPS_MAX {
            let Some(running) = &mut self.nodes[node].node else { return Ok(()) };
            if running.is_performing() {
                if self.draws_fault(percent) {
                    return self.pause_in_round(node);
                }
                percent = self.faults.pause_before_output;
            }
            let Some(running) = &mut self.nodes[node].node else { return Ok(()) };
            let step = running.step(&clock);
            let (believed, held) = (running.shard().partitions(), running.shard().held().collect::<Vec<_>>());
            let stored = self.store.partitions().map_err(|error| error.to_string())?;
            self.commits.check_belief(&self.nodes[node].name(), (believed, stored), &held)?;
            self.check_clock(node, &held)?;
            match step {
                Step::Worked => {}
                Step::Perform(output) => self.perform_output(node, output)?,
                Step::RoundOver => {
                    self.end_round(node, &clock);
                    return Ok(());
                }
            }
            if !self.nodes[node].is_incarnation(incarnation) {
                return Ok(());
            }
            used_us += cost_us;
            if used_us >= 1_000 {
                self.at(used_us / 1_000, ClusterEvent::Node(node, incarnation, ProcessEvent::Run));
                return Ok(());
            }
        }
        Err(format!("a round of {} does not end", self.nodes[node].name()))
    }

    fn end_round(&mut self, node: usize, clock: &RoundClock) {
        let process = &mut self.nodes[node];
        process.is_running = false;
        process.written.landed.clear();
        let wake = process.node.as_ref().and_then(|node| node.next_wake(clock));
        let after = wake.map(|after| (after.as_millis() as u64).max(1));
        self.end_if_drained(node);
        let process = &mut self.nodes[node];
        let at = after.map(|after| self.now.saturating_add(after));
        if let Some(at) = at.filter(|at| process.is_alive() && process.wakes_at.is_none_or(|known| known > *at)) {
            process.wakes_at = Some(at);
            let incarnation = process.incarnation;
            self.at(at - self.now, ClusterEvent::Node(node, incarnation, ProcessEvent::Wake));
        }
    }

    fn pause_in_round(&mut self, node: usize) -> Result<(), String> {
        let (incarnation, for_ms) = (self.nodes[node].incarnation, self.rng.below(3 * LEASE_MS) + 1);
        self.pause_node(node, for_ms);
        let landed = std::mem::take(&mut self.nodes[node].written.landed);
        self.progress.coverage.add_records(&landed, PAUSED);
        self.at(for_ms, ClusterEvent::Node(node, incarnation, ProcessEvent::Run));
        Ok(())
    }

    /// Percent of pauses before the outputs of a round. After a kind of record that no pause of this seed has followed
    /// there are more: where nodes often pause, hardly anything rare is written.
    fn pause_before_first(&self, node: usize) -> u64 {
        let FaultProfile { pause_before_output, pause_after_new, .. } = self.faults;
        let has_new = || self.progress.coverage.has_new(&self.nodes[node].written.landed, PAUSED);
        if pause_after_new > 0 && has_new() { pause_after_new } else { pause_before_output }
    }

    fn attempt_ended(
        &mut self,
        node: usize,
        execution: ExecutionKey,
        instance: Instance,
        attempt: u32,
        outcome: Outcome,
    ) {
        let incarnation = self.nodes[node].incarnation;
        let Some(outcome) = self.calls.end(execution, &instance, attempt, outcome) else { return };
        // A stop because of the drain is no receipt: the attempt stays open.
        let is_receipt = !self.nodes[node].is_leaving || !matches!(outcome, Outcome::Stopped(_));
        if is_receipt && self.draws_fault(self.faults.twice) {
            let input = Input::Receipt { instance: instance.clone(), attempt, outcome: outcome.clone() };
            let after = self.rng.below(3_000);
            let again = NodeEvent::Shard(Event::Take(execution, PendingInput::without_reply(input)));
            self.at(after, ClusterEvent::Node(node, incarnation, ProcessEvent::Node(again)));
        }
        self.receive(node, NodeEvent::Ended(execution, instance, attempt, outcome));
    }
}
