//! A node among others: it says that it is alive, takes its share of the partitions and leaves.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainspring_kernel::{decide::DECIDE_VERSION, hash::hex};
use mainspring_store::{Fence, Node, Store, StoreError, Table};

use crate::{
    EngineError,
    clock::{Reading, Sighting},
    engine::now_ms,
    lease::{Terms, Tick, wish},
    shard::GivenUp,
};

/// A node's life in a shared store.
#[derive(Clone)]
pub struct Member {
    store: Arc<dyn Store>,
    terms: Terms,
    node: Node,
    /// Whether the last heartbeat found the clock right, and until there is one.
    is_clock_right: Arc<AtomicBool>,
}

/// What came of a word to the store.
#[derive(Debug)]
pub enum Word {
    /// It was heard.
    Heard(Box<Heard>),
    /// The node was silent for too long: what it held is lost, and it begins a new life.
    Lapsed,
    /// The store did not answer.
    Unheard(StoreError),
}

/// A word that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The node's name.
    pub name: String,
    /// Until when it holds.
    pub until: Reading,
    /// The store's clock, and the node's around it.
    pub clock: Sighting,
    /// What the store said.
    pub table: Table,
    /// What was taken on the strength of it.
    pub taken: Vec<Fence>,
    /// Whether the node is about to leave: then it takes nothing, and gives nothing up before it has left.
    pub is_leaving: bool,
}

impl Member {
    /// A node in a store.
    pub fn new(store: Arc<dyn Store>, terms: Terms, node: Node) -> Self {
        Self { store, terms, node, is_clock_right: Arc::new(AtomicBool::new(true)) }
    }

    /// This process as a node, in a new life.
    pub(crate) fn here(store: Arc<dyn Store>, terms: Terms, place: &str) -> Result<Self, EngineError> {
        let mut life = [0; 12];
        getrandom::fill(&mut life).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let node = Node {
            name: hex(&life),
            place: place.to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            decide_version: DECIDE_VERSION,
            takes: true,
        };
        Ok(Self::new(store, terms, node))
    }

    /// The same node in its next life.
    pub(crate) fn reborn(&self) -> Result<Self, EngineError> {
        Self::here(self.store.clone(), self.terms, &self.node.place)
    }

    /// What it is called in this life.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// How long its word holds.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Gives up what the shard has let go of, says that the node is alive, and takes what is missing from its share
    /// unless it is about to leave or its clock is not the store's. Then it says that as well, and the others share what
    /// there is without it; what the first word said of its clock and is not so is said again. Blocking. `now` is read just
    /// before the first word is said, and when that is answered.
    pub fn speak(&self, given_up: &GivenUp, is_leaving: bool, now: impl Fn() -> Reading) -> Word {
        let said = || -> Result<Word, StoreError> {
            if !given_up.fences.is_empty() {
                self.store.give_up(&self.node.name, &given_up.fences, &given_up.running)?;
            }
            let sent_at = now();
            let takes = |is_clock_right: bool| is_clock_right && !is_leaving;
            let said = takes(self.is_clock_right.load(Ordering::Relaxed));
            let Some(mut table) = self.beat(said)? else { return Ok(Word::Lapsed) };
            let clock = Sighting { store_ms: table.clock_ms, sent_at, heard_at: now() };
            let is_clock_right = clock.apart().is_none();
            self.is_clock_right.store(is_clock_right, Ordering::Relaxed);
            if takes(is_clock_right) != said {
                let Some(found) = self.beat(takes(is_clock_right))? else { return Ok(Word::Lapsed) };
                table = found;
            }
            let wished = wish(&table, &self.node.name, &[]).take;
            let taken = if wished.is_empty() { Vec::new() } else { self.store.take(&self.node.name, &wished)? };
            let (name, until) = (self.node.name.clone(), self.terms.until(sent_at));
            Ok(Word::Heard(Box::new(Heard { name, until, clock, table, taken, is_leaving })))
        };
        said().unwrap_or_else(Word::Unheard)
    }

    fn beat(&self, takes: bool) -> Result<Option<Table>, StoreError> {
        self.store.beat(&Node { takes, ..self.node.clone() }, self.terms.lease_ms)
    }

    /// Says that the node is no more. What it held is free at once; if this is not heard, when its time is over.
    pub fn leave(&self) {
        let _ = self.store.leave(&self.node.name);
    }
}

/// What this machine's clocks show.
pub(crate) fn reading() -> Reading {
    Reading { tick: tick(), wall_ms: now_ms() }
}

/// This machine's clock that never goes back, and goes on while the machine sleeps.
pub(crate) fn tick() -> Tick {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Tick(time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000)
}
