//! A node of a cluster: it sends heartbeats, acquires its share of the partitions, and leaves.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainspring_kernel::{decide::DECIDE_VERSION, hash::hex};
use mainspring_store::{ClusterView, Fence, Node, Store, StoreError};

use crate::{
    EngineError,
    clock::{Reading, Sighting},
    engine::now_ms,
    lease::{Terms, Tick, wish},
    shard::GivenUp,
};

/// One incarnation of a node in a shared store.
#[derive(Clone)]
pub struct Member {
    store: Arc<dyn Store>,
    terms: Terms,
    node: Node,
    /// The last heartbeat found the clock right, or there was none yet.
    is_clock_right: Arc<AtomicBool>,
}

/// The result of a heartbeat.
#[derive(Debug)]
pub enum Word {
    /// The lease was renewed.
    Heard(Box<Heard>),
    /// The lease expired in the store: all partitions are lost, and the node joins as a new incarnation.
    Lapsed,
    /// The store did not answer.
    Unheard(StoreError),
}

/// A successful heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The name of this incarnation of the node.
    pub name: String,
    /// The end of the renewed lease.
    pub until: Reading,
    /// The store's clock, with the node's clocks before and after it was read.
    pub clock: Sighting,
    /// The cluster view of the store.
    pub table: ClusterView,
    /// The partitions acquired after the renewal.
    pub taken: Vec<Fence>,
    /// True if the node is draining: it acquires nothing, and releases nothing before it leaves.
    pub is_leaving: bool,
}

impl Member {
    /// Creates a member for a node of the store.
    pub fn new(store: Arc<dyn Store>, terms: Terms, node: Node) -> Self {
        Self { store, terms, node, is_clock_right: Arc::new(AtomicBool::new(true)) }
    }

    /// Creates a new incarnation of this process as a node.
    pub(crate) fn here(store: Arc<dyn Store>, terms: Terms, place: &str) -> Result<Self, EngineError> {
        let mut life = [0; 12];
        getrandom::fill(&mut life).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let node = Node {
            name: hex(&life),
            address: place.to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            decide_version: DECIDE_VERSION,
            accepts_partitions: true,
        };
        Ok(Self::new(store, terms, node))
    }

    /// Creates the next incarnation of the same node.
    pub(crate) fn reborn(&self) -> Result<Self, EngineError> {
        Self::here(self.store.clone(), self.terms, &self.node.address)
    }

    /// The name of this incarnation.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// The timing of the lease.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Sends a heartbeat. It records the pending releases, renews the lease and acquires missing partitions. A draining
    /// node, or one with a wrong clock, states in the heartbeat that it acquires nothing, so that the others divide
    /// all partitions. If the store's clock contradicts the statement, the heartbeat is repeated. Blocks. `now` is read
    /// just before the first request and after its answer.
    pub fn speak(&self, given_up: &GivenUp, is_leaving: bool, now: impl Fn() -> Reading) -> Word {
        let said = || -> Result<Word, StoreError> {
            if !given_up.fences.is_empty() {
                self.store.release(&self.node.name, &given_up.fences, &given_up.running)?;
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
            let taken = if wished.is_empty() { Vec::new() } else { self.store.acquire(&self.node.name, &wished)? };
            let (name, until) = (self.node.name.clone(), self.terms.until(sent_at));
            Ok(Word::Heard(Box::new(Heard { name, until, clock, table, taken, is_leaving })))
        };
        said().unwrap_or_else(Word::Unheard)
    }

    fn beat(&self, takes: bool) -> Result<Option<ClusterView>, StoreError> {
        self.store.heartbeat(&Node { accepts_partitions: takes, ..self.node.clone() }, self.terms.lease_ms)
    }

    /// Leaves the cluster, which frees all partitions at once. If the store does not answer, they are free when the
    /// lease expires.
    pub fn leave(&self) {
        let _ = self.store.leave(&self.node.name);
    }
}

/// Reads the clocks of this machine.
pub(crate) fn reading() -> Reading {
    Reading { tick: tick(), wall_ms: now_ms() }
}

/// Reads the monotonic clock of this machine, which also runs while the machine is suspended.
pub(crate) fn tick() -> Tick {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Tick(time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000)
}
