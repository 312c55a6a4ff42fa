//! Several nodes on one store, on virtual time, under all faults of nodes, network and store.
//!
//! A seed generates nodes, workflows, clients and faults. The nodes are the engine's own shards, memberships and
//! loaders; the store is the reference store behind a network that delays requests, fails them and loses responses.
//! During the run, every durable commit and every call is checked against the rules in [`commit_checker`] and [`calls`]. At the
//! end the faults stop, and every accepted execution must end. The same seed gives the same bytes.

mod budgets;
mod calls;
mod clients;
mod clocks;
mod commit_checker;
mod executors;
mod fault_coverage;
mod faults;
mod foreign;
mod heartbeats;
mod journal_checker;
mod limits;
mod load;
mod network;
mod node;
mod operators;
mod outputs;
mod rare_faults;
mod seed_budget;
mod subject;
mod workflows;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, btree_map::Entry},
    sync::Arc,
};

use mainspring_engine::journal_loader::Loader;
use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use mainspring_store::prelude::*;
use mainspring_store::{ReadLimit, memory::MemoryStore};

use crate::{
    ended_execution::EndedExecution,
    faults::Rng,
    fixture::{START_MS, keys},
};

use calls::Calls;
use clients::Clients;
use commit_checker::CommitChecker;
pub use fault_coverage::FaultCoverage;
pub use faults::Fault;
use faults::FaultProfile;
use limits::SeedLimits;
use load::LoadProfile;
use node::{Process, ProcessEvent};
use rare_faults::{RareFault, RareFaults};
use seed_budget::SeedBudget;
pub(crate) use subject::Subject;
use workflows::Workflows;

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Executions that clients start; those that they start in turn come on top.
    pub executions: u32,
    /// Nodes that crash, leave and rejoin.
    pub nodes: usize,
    /// Partitions of the store.
    pub partitions: u32,
}

/// The result of a seed.
#[derive(Debug, Clone)]
pub struct Report {
    /// Executions, including those that other executions started.
    pub executions: u64,
    /// Durable frames.
    pub frames: u64,
    /// Calls that were started.
    pub calls: u64,
    /// Receipts that came too late and were stored beside their journals.
    pub late: u64,
    /// Attempts that kept running at a node which released their execution.
    pub handed_over: u64,
    /// The hash of all durable frames and all actions, in order.
    pub bytes: Hash,
    /// The combinations of record kinds and commit faults that occurred.
    pub coverage: FaultCoverage,
}

/// Virtual time after the last fault in which every execution must end. Clients, timers and retries of these workflows
/// need minutes, so an execution that is open later is stuck.
const RECOVERY_MS_MAX: u64 = 3600 * 1000;

/// Virtual time after the last end in which all results of calls must reach the store. A result under way waits at most
/// for the longest pause.
const SETTLE_MS: u64 = 180 * 1000;

/// Interval of the checks for that.
const RECEIPT_CHECK_MS: u64 = 1000;

/// Events of one seed after which it counts as endless.
const EVENTS_MAX: u64 = 2_000_000;

/// Runs a seed. An error describes the violated rule.
pub fn run(seed: u64, size: Size) -> Result<Report, String> {
    let mut cluster = Cluster::new(seed, size, None, &[])?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    cluster.report()
}

/// The result of a seed with an author's case.
#[derive(Debug, Clone)]
pub(crate) struct SubjectReport {
    pub(crate) report: Report,
    /// The outcomes of the executions that clients started.
    pub(crate) ended: Vec<(ExecutionKey, EndedExecution)>,
    /// The number of repeated calls of each step after a successful one.
    pub(crate) repeated: BTreeMap<String, u64>,
}

/// Runs a seed with an author's case instead of the project's own workflows. Only `faults` occur; an empty list means
/// all.
pub(crate) fn run_subject(seed: u64, size: Size, subject: &Subject, faults: &[Fault]) -> Result<SubjectReport, String> {
    let mut cluster = Cluster::new(seed, size, Some(subject.clone()), faults)?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    let (ended, repeated) = (cluster.commits.ended(), cluster.calls.repeated(&cluster.commits));
    Ok(SubjectReport { report: cluster.report()?, ended, repeated })
}

/// An event at a time.
enum ClusterEvent {
    /// An event of a node, in one of its incarnations.
    Node(usize, u32, ProcessEvent),
    /// A request reaches the store.
    Store(network::InFlightRequest),
    /// A node crashes.
    Crash(usize),
    /// A node starts a new incarnation.
    StartNode(usize),
    /// A node leaves in an orderly shutdown.
    Leave(usize),
    /// A node pauses for some milliseconds.
    Pause(usize, u64),
    /// The store does not respond for some milliseconds.
    Outage(u64),
    /// A client starts an execution.
    StartExecution(u32),
    /// Approvers handle what waits for them.
    Clients,
    /// The next fault is drawn.
    NodeFault,
    /// The next rare fault is drawn.
    RareFault,
    /// A foreign program writes into the store.
    ForeignRow,
    /// A node receives many events at once.
    Burst(usize),
    /// Operators handle quarantined executions.
    Operators,
    /// The number of partitions changes.
    Repartition(u32),
}

struct Cluster {
    settings: Settings,
    now: u64,
    queue: EventQueue,
    rng: Rng,
    store: MemoryStore,
    loader: Loader,
    nodes: Vec<Process>,
    calls: Calls,
    commits: CommitChecker,
    clients: Clients,
    faults: FaultProfile,
    rare_faults: RareFaults,
    injected: Injected,
    workflows: Workflows,
    progress: Progress,
}

/// The settings of a seed.
struct Settings {
    size: Size,
    limits: SeedLimits,
    budget: SeedBudget,
    load: LoadProfile,
    /// Virtual time after the last fault in which every execution must end.
    recovery_ms_max: u64,
}

/// The pending events: by time, and by the order in which they were scheduled.
#[derive(Default)]
struct EventQueue {
    times: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, ClusterEvent>,
    order: u64,
}

/// Faults in effect.
#[derive(Default)]
struct Injected {
    /// Executions started by a message whose first commit was not written, without a reply to anyone.
    lost_starts: BTreeSet<ExecutionKey>,
    /// The store does not respond before this time.
    down_until: u64,
}

/// Progress of the run, and its results.
#[derive(Default)]
struct Progress {
    /// The time when all executions had ended, and the time of the last check of receipts.
    ended: Option<(u64, u64)>,
    coverage: FaultCoverage,
    handed_over: u64,
    trace: Hash,
}

impl Cluster {
    fn new(seed: u64, size: Size, subject: Option<Subject>, faults: &[Fault]) -> Result<Self, String> {
        let store = MemoryStore::new();
        store.set_now(START_MS);
        store.repartition(size.partitions).map_err(|error| error.to_string())?;
        let mut rng = Rng::new(seed);
        let mut profile = FaultProfile::of(&mut rng);
        let limits = SeedLimits::of(&mut rng);
        let mut rare_faults = RareFaults::of(seed);
        if subject.is_some() {
            profile.keep_only(faults);
            rare_faults.keep_only(faults);
        }
        let recovery_ms_max =
            RECOVERY_MS_MAX + subject.as_ref().map_or(0, |subject| subject.takes_ms.saturating_mul(4));
        let is_given = subject.is_some();
        let workflows = match subject {
            Some(subject) => Workflows::given(subject),
            None => Workflows::compiled(rare_faults.has(RareFault::Panics))?,
        };
        let mut cluster = Self {
            settings: Settings {
                size,
                limits,
                budget: SeedBudget::of(seed),
                load: LoadProfile::of(seed),
                recovery_ms_max,
            },
            now: START_MS,
            queue: EventQueue::default(),
            loader: Loader::new(Arc::new(store.clone()), keys().sealing).among_nodes(),
            nodes: (0..size.nodes).map(|_| Process::absent(&mut rng)).collect(),
            calls: Calls::new(seed),
            commits: CommitChecker::new(workflows.plans(), is_given),
            clients: Clients::new(size.executions),
            faults: profile,
            rare_faults,
            workflows,
            injected: Injected::default(),
            progress: Progress::default(),
            rng,
            store,
        };
        for node in 0..size.nodes {
            let after = cluster.rng.below(5_000);
            cluster.at(after, ClusterEvent::StartNode(node));
        }
        for number in 0..size.executions {
            let after = cluster.rng.below(cluster.faults.lasts_ms);
            cluster.at(after, ClusterEvent::StartExecution(number));
        }
        cluster.at(1_000, ClusterEvent::NodeFault);
        cluster.schedule_rare_faults();
        cluster.schedule_bursts();
        cluster.at(clients::ROUND_MS, ClusterEvent::Clients);
        Ok(cluster)
    }

    /// Schedules an event.
    fn at(&mut self, after_ms: u64, event: ClusterEvent) {
        self.queue.order += 1;
        self.queue.times.push(Reverse((self.now + after_ms, self.queue.order)));
        self.queue.events.insert(self.queue.order, event);
    }

    fn play(&mut self) -> Result<(), String> {
        let mut count = 0;
        while let Some(Reverse((at, order))) = self.queue.times.pop() {
            let Some(event) = self.queue.events.remove(&order) else { continue };
            self.now = at.max(self.now);
            self.store.set_now(self.now);
            self.handle_event(event)?;
            count += 1;
            if count > EVENTS_MAX {
                return Err("the run does not end".into());
            }
            if self.is_healed() && self.is_done()? && self.has_settled()? {
                return self.check_end();
            }
            if self.now > START_MS + self.faults.lasts_ms + self.settings.recovery_ms_max {
                return Err(format!("some executions do not end: {}", self.commits.describe_open(&self.store)));
            }
        }
        Err("no event is left".into())
    }

    fn is_healed(&self) -> bool {
        self.now > START_MS + self.faults.lasts_ms
    }

    /// Returns whether all requested executions were accepted and have ended, all inboxes are empty and no call is
    /// open.
    fn is_done(&mut self) -> Result<bool, String> {
        if !self.clients.all_accepted() || self.commits.open() > 0 || self.calls.out() > 0 {
            return Ok(false);
        }
        let partitions: Vec<u32> = (0..self.store.partitions().map_err(|error| error.to_string())?).collect();
        let messages =
            self.store.inbox(&partitions, 0, ReadLimit::of(usize::MAX)).map_err(|error| error.to_string())?;
        // Messages to an execution that was ended by force stay in the inbox.
        Ok(messages.iter().all(|arrived| self.commits.is_ended_by_force(arrived.message.execution)))
    }

    /// Returns whether no receipt is under way any more. A receipt that is under way for too long is lost.
    fn has_settled(&mut self) -> Result<bool, String> {
        let (since, checked_at) = *self.progress.ended.get_or_insert((self.now, 0));
        if self.now < checked_at + RECEIPT_CHECK_MS {
            return Ok(false);
        }
        self.progress.ended = Some((since, self.now));
        match self.check_receipts() {
            Err(why) if self.now > since + SETTLE_MS => Err(why),
            settled => Ok(settled.is_ok()),
        }
    }

    fn check_receipts(&self) -> Result<(), String> {
        let lives = |node: usize, incarnation: u32| self.nodes[node].is_incarnation(incarnation);
        let was_quarantined = |execution| self.rare_faults.may_be_quarantined.contains(&execution);
        self.calls.check_end(&self.commits, &self.store, lives, was_quarantined)
    }

    fn handle_event(&mut self, event: ClusterEvent) -> Result<(), String> {
        match event {
            ClusterEvent::Node(node, incarnation, event) => self.handle_node_event(node, incarnation, event),
            ClusterEvent::Store(request) => self.handle_request(request),
            ClusterEvent::Crash(node) => self.crash(node),
            ClusterEvent::StartNode(node) => self.start_node(node),
            ClusterEvent::Leave(node) => self.leave(node),
            ClusterEvent::Pause(node, for_ms) => {
                self.pause_node(node, for_ms);
                Ok(())
            }
            ClusterEvent::Outage(for_ms) => {
                self.injected.down_until = self.now + for_ms;
                Ok(())
            }
            ClusterEvent::StartExecution(number) => self.start_execution(number),
            ClusterEvent::Clients => self.clients_act(),
            ClusterEvent::NodeFault => self.draw_node_fault(),
            ClusterEvent::RareFault => {
                self.inject_rare_fault();
                Ok(())
            }
            ClusterEvent::ForeignRow => self.write_foreign_row(),
            ClusterEvent::Burst(node) => self.burst(node),
            ClusterEvent::Operators => self.operators_act(),
            ClusterEvent::Repartition(partitions) => {
                // A paused node learns of it only when it resumes, and its lease is renewed by a later heartbeat
                // nevertheless.
                self.calls.lose_all();
                self.commits.spread_anew(&self.store, partitions)
            }
        }
    }

    /// Adds a durable frame or an action to the trace.
    fn extend_trace(&mut self, bytes: &[&[u8]]) {
        let mut parts: Vec<&[u8]> = vec![&self.progress.trace.0];
        parts.extend_from_slice(bytes);
        self.progress.trace = Hash::of_parts(&parts);
    }

    fn check_end(&mut self) -> Result<(), String> {
        self.commits.check_end(&self.store, &self.loader)?;
        self.clients.check_end(&self.store, &self.workflows)?;
        self.check_budgets()?;
        self.check_receipts()
    }

    fn report(self) -> Result<Report, String> {
        let late = self.commits.late(&self.store)?;
        Ok(Report {
            executions: self.commits.executions(),
            frames: self.commits.frames(),
            calls: self.calls.begun(),
            late,
            handed_over: self.progress.handed_over,
            bytes: self.progress.trace,
            coverage: self.progress.coverage,
        })
    }
}

/// Adds up the results of many seeds.
pub fn add(all: &mut BTreeMap<&'static str, u64>, report: &Report) {
    let counts = [
        ("executions", report.executions),
        ("frames", report.frames),
        ("calls", report.calls),
        ("late", report.late),
        ("handed over", report.handed_over),
    ];
    for (name, count) in counts {
        match all.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(count)),
            Entry::Occupied(mut entry) => *entry.get_mut() += count,
        }
    }
}
