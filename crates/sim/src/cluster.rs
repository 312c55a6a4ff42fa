//! Several nodes on one store, on virtual time, under all faults of nodes, network and store.
//!
//! A seed generates nodes, workflows, clients and faults. The nodes are the engine's own shards, memberships and
//! loaders; the store is the reference store behind a network that delays requests, fails them and loses responses.
//! During the run, every durable commit and every call is checked against the rules in [`ledger`] and [`calls`]. At the
//! end the faults stop, and every accepted execution must end. The same seed gives the same bytes.

mod aside;
mod calls;
mod clocks;
mod foreign;
mod history;
mod ledger;
mod line;
mod looking;
mod misfortune;
mod mishaps;
mod node;
mod operators;
mod outputs;
mod owning;
mod people;
mod subject;
mod table;
mod work;
mod workflows;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, btree_map::Entry},
    sync::Arc,
};

use mainspring_engine::load::Loader;
use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use mainspring_store::{ReadLimit, Store, memory::MemoryStore};

use crate::{
    faults::Dice,
    setup::{START_MS, keys},
    simulate::Ended,
};

use calls::Calls;
use ledger::Ledger;
pub use misfortune::Fault;
use misfortune::Misfortune;
use mishaps::{Mishap, Mishaps};
use node::{Inner, Node};
use people::People;
pub(crate) use subject::Subject;
pub use table::Table;
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
    pub table: Table,
}

/// Virtual time after the last fault in which every execution must end. Clients, timers and retries of these workflows
/// need minutes, so an execution that is open later is stuck.
const CALM_MS: u64 = 3600 * 1000;

/// Virtual time after the last end in which all results of calls must reach the store. A result under way waits at most
/// for the longest pause.
const SETTLE_MS: u64 = 180 * 1000;

/// Interval of the checks for that.
const LOOK_FOR_RECEIPTS_MS: u64 = 1000;

/// Events of one seed after which it counts as endless.
const HAPPENINGS_MAX: u64 = 2_000_000;

/// Runs a seed. An error describes the violated rule.
pub fn run(seed: u64, size: Size) -> Result<Report, String> {
    let mut cluster = Cluster::new(seed, size, None, &[])?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    cluster.report()
}

/// The result of a seed with an author's case.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) report: Report,
    /// The outcomes of the executions that clients started.
    pub(crate) ended: Vec<(ExecutionKey, Ended)>,
    /// The number of repeated calls of each step after a successful one.
    pub(crate) repeated: BTreeMap<String, u64>,
}

/// Runs a seed with an author's case instead of the project's own workflows. Only `faults` occur; an empty list means
/// all.
pub(crate) fn run_subject(seed: u64, size: Size, subject: &Subject, faults: &[Fault]) -> Result<Came, String> {
    let mut cluster = Cluster::new(seed, size, Some(subject.clone()), faults)?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    let (ended, repeated) = (cluster.ledger.ended(), cluster.calls.repeated(&cluster.ledger));
    Ok(Came { report: cluster.report()?, ended, repeated })
}

/// An event at a time.
enum Happening {
    /// An event of a node, in one of its incarnations.
    Node(usize, u32, Inner),
    /// A request reaches the store.
    Store(line::Asked),
    /// A node crashes.
    Crash(usize),
    /// A node starts a new incarnation.
    Begin(usize),
    /// A node leaves in an orderly shutdown.
    Leave(usize),
    /// A node pauses for some milliseconds.
    Pause(usize, u64),
    /// The store does not respond for some milliseconds.
    Outage(u64),
    /// A client starts an execution.
    Ask(u32),
    /// Approvers handle what waits for them.
    People,
    /// The next fault is drawn.
    Misfortune,
    /// The next mishap is drawn.
    Mishap,
    /// A foreign program writes into the store.
    ForeignRow,
    /// Operators handle quarantined executions.
    Operators,
    /// The number of partitions changes.
    Repartition(u32),
}

struct Cluster {
    size: Size,
    now: u64,
    /// The pending events: by time, and by the order in which they were scheduled.
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    order: u64,
    dice: Dice,
    store: MemoryStore,
    loader: Loader,
    nodes: Vec<Node>,
    calls: Calls,
    ledger: Ledger,
    people: People,
    misfortune: Misfortune,
    mishaps: Mishaps,
    /// Executions started by a message whose first commit was not written, without a reply to anyone.
    swallowed: BTreeSet<ExecutionKey>,
    workflows: Workflows,
    /// Virtual time after the last fault in which every execution must end.
    calm_ms: u64,
    /// The store does not respond before this time.
    down_until: u64,
    /// The time when all executions had ended, and the time of the last check of receipts.
    ended: Option<(u64, u64)>,
    table: Table,
    handed_over: u64,
    trace: Hash,
}

impl Cluster {
    fn new(seed: u64, size: Size, subject: Option<Subject>, faults: &[Fault]) -> Result<Self, String> {
        let store = MemoryStore::new();
        store.set_now(START_MS);
        store.repartition(size.partitions).map_err(|error| error.to_string())?;
        let mut dice = Dice::new(seed);
        let mut misfortune = Misfortune::of(&mut dice);
        let mut mishaps = Mishaps::of(seed);
        if subject.is_some() {
            misfortune.keep_only(faults);
            mishaps.keep_only_of(faults);
        }
        let calm_ms = CALM_MS + subject.as_ref().map_or(0, |subject| subject.takes_ms.saturating_mul(4));
        let is_given = subject.is_some();
        let workflows = match subject {
            Some(subject) => Workflows::given(subject),
            None => Workflows::compiled(mishaps.strikes(Mishap::Panics))?,
        };
        let mut cluster = Self {
            size,
            now: START_MS,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            order: 0,
            loader: Loader::new(Arc::new(store.clone()), keys().sealing).among_nodes(),
            nodes: (0..size.nodes).map(|_| Node::absent(&mut dice)).collect(),
            calls: Calls::new(seed),
            ledger: Ledger::new(workflows.plans(), is_given),
            calm_ms,
            people: People::new(size.executions),
            misfortune,
            mishaps,
            swallowed: BTreeSet::new(),
            workflows,
            down_until: 0,
            ended: None,
            table: Table::default(),
            handed_over: 0,
            trace: Hash::default(),
            dice,
            store,
        };
        for node in 0..size.nodes {
            let after = cluster.dice.below(5_000);
            cluster.at(after, Happening::Begin(node));
        }
        for number in 0..size.executions {
            let after = cluster.dice.below(cluster.misfortune.lasts_ms);
            cluster.at(after, Happening::Ask(number));
        }
        cluster.at(1_000, Happening::Misfortune);
        cluster.expect_mishaps();
        cluster.at(people::LOOK_MS, Happening::People);
        Ok(cluster)
    }

    /// Schedules an event.
    fn at(&mut self, after_ms: u64, happening: Happening) {
        self.order += 1;
        self.queue.push(Reverse((self.now + after_ms, self.order)));
        self.happenings.insert(self.order, happening);
    }

    fn play(&mut self) -> Result<(), String> {
        let mut count = 0;
        while let Some(Reverse((at, order))) = self.queue.pop() {
            let Some(happening) = self.happenings.remove(&order) else { continue };
            self.now = at.max(self.now);
            self.store.set_now(self.now);
            self.happen(happening)?;
            count += 1;
            if count > HAPPENINGS_MAX {
                return Err("it does not come to an end".into());
            }
            if self.is_calm() && self.is_done()? && self.has_settled()? {
                return self.check_end();
            }
            if self.now > START_MS + self.misfortune.lasts_ms + self.calm_ms {
                return Err(format!("not everything ends: {}", self.ledger.open_in_words(&self.store)));
            }
        }
        Err("nothing happens any more".into())
    }

    fn is_calm(&self) -> bool {
        self.now > START_MS + self.misfortune.lasts_ms
    }

    /// Returns whether all requested executions were accepted and have ended, all inboxes are empty and no call is
    /// open.
    fn is_done(&mut self) -> Result<bool, String> {
        if !self.people.all_accepted() || self.ledger.open() > 0 || self.calls.out() > 0 {
            return Ok(false);
        }
        let partitions: Vec<u32> = (0..self.store.partitions().map_err(|error| error.to_string())?).collect();
        let letters = self.store.inbox(&partitions, 0, ReadLimit::of(usize::MAX)).map_err(|error| error.to_string())?;
        // Messages to an execution that was ended by force stay in the inbox.
        Ok(letters.iter().all(|arrived| self.ledger.is_ended_by_force(arrived.message.execution)))
    }

    /// Returns whether no receipt is under way any more. A receipt that is under way for too long is lost.
    fn has_settled(&mut self) -> Result<bool, String> {
        let (since, looked_at) = *self.ended.get_or_insert((self.now, 0));
        if self.now < looked_at + LOOK_FOR_RECEIPTS_MS {
            return Ok(false);
        }
        self.ended = Some((since, self.now));
        match self.check_receipts() {
            Err(why) if self.now > since + SETTLE_MS => Err(why),
            settled => Ok(settled.is_ok()),
        }
    }

    fn check_receipts(&self) -> Result<(), String> {
        let lives = |node: usize, life: u32| self.nodes[node].is_life(life);
        let was_set_aside = |execution| self.mishaps.may_be_set_aside.contains(&execution);
        self.calls.check_end(&self.ledger, &self.store, lives, was_set_aside)
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Node(node, life, inner) => self.strike_node(node, life, inner),
            Happening::Store(asked) => self.store_takes(asked),
            Happening::Crash(node) => self.crash(node),
            Happening::Begin(node) => self.begin(node),
            Happening::Leave(node) => self.leave(node),
            Happening::Pause(node, for_ms) => {
                self.stand_still(node, for_ms);
                Ok(())
            }
            Happening::Outage(for_ms) => {
                self.down_until = self.now + for_ms;
                Ok(())
            }
            Happening::Ask(number) => self.ask(number),
            Happening::People => self.people_look(),
            Happening::Misfortune => self.think_up(),
            Happening::Mishap => {
                self.mishap();
                Ok(())
            }
            Happening::ForeignRow => self.write_foreign_row(),
            Happening::Operators => self.operators_look(),
            Happening::Repartition(partitions) => {
                // A paused node learns of it only when it resumes, and its lease is renewed by a later heartbeat
                // nevertheless.
                self.calls.lose_all();
                self.ledger.spread_anew(&self.store, partitions)
            }
        }
    }

    /// Adds a durable frame or an action to the trace.
    fn note(&mut self, what: &[&[u8]]) {
        let mut parts: Vec<&[u8]> = vec![&self.trace.0];
        parts.extend_from_slice(what);
        self.trace = Hash::of_parts(&parts);
    }

    fn check_end(&mut self) -> Result<(), String> {
        self.ledger.check_end(&self.store, &self.loader)?;
        self.people.check_end(&self.store, &self.workflows)?;
        self.check_receipts()
    }

    fn report(self) -> Result<Report, String> {
        let late = self.ledger.late(&self.store)?;
        Ok(Report {
            executions: self.ledger.executions(),
            frames: self.ledger.frames(),
            calls: self.calls.begun(),
            late,
            handed_over: self.handed_over,
            bytes: self.trace,
            table: self.table,
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
