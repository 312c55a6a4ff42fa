//! Several nodes on one store, with everything that can go wrong between them, on virtual time.
//!
//! A seed makes nodes, workflows, people and misfortunes. The nodes are the engine's own shards, memberships and loaders;
//! the store is the reference store behind a line that delays, fails and loses answers. While it runs, every durable
//! commit and every call is held against the rules in [`ledger`] and [`calls`]; in the end the misfortunes stop, and
//! everything that was accepted has to end. The same seed gives the same bytes.

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
use mainspring_store::{Most, Store, memory::MemoryStore};

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

/// What a seed is run with.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Executions that are asked for; those that they start come on top.
    pub executions: u32,
    /// Nodes that come and go.
    pub nodes: usize,
    /// Partitions of the store.
    pub partitions: u32,
}

/// What came of a seed.
#[derive(Debug, Clone)]
pub struct Report {
    /// Executions, those included that others started.
    pub executions: u64,
    /// Durable frames.
    pub frames: u64,
    /// Calls that were begun.
    pub calls: u64,
    /// Receipts that came too late and were kept beside their journals.
    pub late: u64,
    /// Attempts that went on at a node which gave up their execution.
    pub handed_over: u64,
    /// Everything that became durable and everything that was done, in order, as one hash.
    pub bytes: Hash,
    /// Which kinds of records met which kinds of misfortune.
    pub table: Table,
}

/// Virtual time after the last misfortune in which everything has to come to its end.
/// What people, timers and retries of these workflows need is minutes; what is stuck by then is stuck.
const CALM_MS: u64 = 3600 * 1000;

/// Virtual time after the last end in which everything that calls have brought has to be in the store. What is on its way
/// then has to wait for the longest pause at the most.
const SETTLE_MS: u64 = 180 * 1000;

/// How often it is looked whether it is.
const LOOK_FOR_RECEIPTS_MS: u64 = 1000;

/// Happenings of one seed, after which it is called endless.
const HAPPENINGS_MAX: u64 = 2_000_000;

/// Runs a seed. An error is a rule that broke, and how.
pub fn run(seed: u64, size: Size) -> Result<Report, String> {
    let mut cluster = Cluster::new(seed, size, None, &[])?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    cluster.report()
}

/// What came of a seed that an author's case was run with.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) report: Report,
    /// How the executions ended that were asked for.
    pub(crate) ended: Vec<(ExecutionKey, Ended)>,
    /// Steps that were called again after a success, by how often.
    pub(crate) repeated: BTreeMap<String, u64>,
}

/// Runs a seed with an author's case in place of the workflows of this project. Only these faults may strike; none given
/// means all.
pub(crate) fn run_subject(seed: u64, size: Size, subject: &Subject, faults: &[Fault]) -> Result<Came, String> {
    let mut cluster = Cluster::new(seed, size, Some(subject.clone()), faults)?;
    cluster.play().map_err(|why| format!("at {} ms: {why}", cluster.now - START_MS))?;
    let (ended, repeated) = (cluster.ledger.ended(), cluster.calls.repeated(&cluster.ledger));
    Ok(Came { report: cluster.report()?, ended, repeated })
}

/// Something that happens at a time.
enum Happening {
    /// To a node, in one of its lives.
    Node(usize, u32, Inner),
    /// What somebody asked of the store reaches it.
    Store(line::Asked),
    /// A node dies.
    Crash(usize),
    /// A node begins a life.
    Begin(usize),
    /// A node leaves by its own word.
    Leave(usize),
    /// A node does nothing for so long.
    Pause(usize, u64),
    /// The store does not answer for so long.
    Outage(u64),
    /// Somebody asks for an execution.
    Ask(u32),
    /// People look at what waits for them.
    People,
    /// The next misfortune is thought up.
    Misfortune,
    /// The next mishap is thought up.
    Mishap,
    /// Somebody writes into the store.
    ForeignRow,
    /// Operators look at what is quarantined.
    Operators,
    /// The store is spread over another number of partitions.
    Repartition(u32),
}

struct Cluster {
    size: Size,
    now: u64,
    /// What is to come: by time, and by the order in which it came about.
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
    /// What began by letter and was not written once, and nobody was told.
    swallowed: BTreeSet<ExecutionKey>,
    workflows: Workflows,
    /// Virtual time after the last misfortune in which everything has to end.
    calm_ms: u64,
    /// The store does not answer before this.
    down_until: u64,
    /// When everything had ended, and when the receipts were looked at last.
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

    /// Something happens after a while.
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

    /// All that was asked for has been accepted and has ended, nothing is in an inbox and no call is out.
    fn is_done(&mut self) -> Result<bool, String> {
        if !self.people.all_accepted() || self.ledger.open() > 0 || self.calls.out() > 0 {
            return Ok(false);
        }
        let partitions: Vec<u32> = (0..self.store.partitions().map_err(|error| error.to_string())?).collect();
        let letters = self.store.inbox(&partitions, 0, Most::of(usize::MAX)).map_err(|error| error.to_string())?;
        // What comes for an execution that was ended by force stays where it is.
        Ok(letters.iter().all(|arrived| self.ledger.is_ended_by_force(arrived.letter.execution)))
    }

    /// Whether no receipt is on its way any more. One that is so for too long is lost.
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
                // Whoever stands still now does not know it before it goes on, and lives by a later word all the same.
                self.calls.lose_all();
                self.ledger.spread_anew(&self.store, partitions)
            }
        }
    }

    /// What became durable, or was done, goes into the trace.
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

/// Adds up what came of many seeds.
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
