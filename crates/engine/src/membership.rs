//! A node of a cluster: it sends heartbeats, acquires its share of the partitions, and leaves.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainspring_kernel::{decide::DECIDE_VERSION, hash::hex};
use mainspring_store::{ClusterView, Fence, Node, RemoteAttempt, Store, StoreError};

use crate::{
    clock::{ClockReading, StoreClockSample},
    error::EngineError,
    lease::{LeaseTiming, plan_rebalance},
};

/// One incarnation of a node in a shared store.
#[derive(Clone)]
pub struct NodeSession {
    store: Arc<dyn Store>,
    terms: LeaseTiming,
    node: Node,
    /// The last heartbeat found the clock right, or there was none yet.
    is_clock_right: Arc<AtomicBool>,
}

impl std::fmt::Debug for NodeSession {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("NodeSession").field(&self.node.name).finish()
    }
}

/// The result of a heartbeat.
#[derive(Debug)]
pub enum Heartbeat {
    /// The lease was renewed.
    Renewed(Box<LeaseRenewal>),
    /// The lease expired in the store: all partitions are lost, and the node joins as a new incarnation.
    Expired,
    /// The store did not answer.
    Unreachable(StoreError),
}

/// A successful heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// The name of this incarnation of the node.
    pub name: String,
    /// The end of the renewed lease.
    pub until: ClockReading,
    /// The store's clock, with the node's clocks before and after it was read.
    pub clock: StoreClockSample,
    /// The cluster view of the store.
    pub view: ClusterView,
    /// The partitions acquired after the renewal.
    pub taken: Vec<Fence>,
    /// The reason for which the store has not recorded the released partitions. They are sent again.
    pub handoff_error: Option<String>,
    /// True if the node is draining: it acquires nothing, and releases nothing before it leaves.
    pub is_leaving: bool,
}

impl NodeSession {
    /// Creates a member for a node of the store.
    pub fn new(store: Arc<dyn Store>, terms: LeaseTiming, node: Node) -> Self {
        Self { store, terms, node, is_clock_right: Arc::new(AtomicBool::new(true)) }
    }

    /// Creates a new incarnation of this process as a node.
    pub(crate) fn here(store: Arc<dyn Store>, terms: LeaseTiming, place: &str) -> Result<Self, EngineError> {
        let mut liveness = [0; 12];
        getrandom::fill(&mut liveness).map_err(|error| EngineError::Stopped(error.to_string()))?;
        let node = Node {
            name: hex(&liveness),
            address: place.to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            decide_version: DECIDE_VERSION,
            accepts_partitions: true,
        };
        Ok(Self::new(store, terms, node))
    }

    /// Creates the next incarnation of the same node.
    pub(crate) fn rejoin(&self) -> Result<Self, EngineError> {
        Self::here(self.store.clone(), self.terms, &self.node.address)
    }

    /// The name of this incarnation.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// The timing of the lease.
    pub fn terms(&self) -> LeaseTiming {
        self.terms
    }

    /// Sends a heartbeat. It records the pending releases, renews the lease and acquires missing partitions. A release or
    /// an acquisition that fails does not fail the heartbeat: both wait for locks that another node can hold, and the
    /// lease must not depend on it. A draining
    /// node, or one with a wrong clock, states in the heartbeat that it acquires nothing, so that the others divide
    /// all partitions. If the store's clock contradicts the statement, the heartbeat is repeated. Blocks. `now` is read
    /// just before the first request and after its answer.
    pub fn heartbeat(&self, handoff: &Handoff, is_leaving: bool, now: impl Fn() -> ClockReading) -> Heartbeat {
        let said = || -> Result<Heartbeat, StoreError> {
            let released = match handoff.fences.is_empty() {
                true => Ok(()),
                false => self.store.release(&self.node.name, &handoff.fences, &handoff.running),
            };
            let handoff_error = released.err().map(|error| error.to_string());
            let sent_at = now();
            let takes = |is_clock_right: bool| is_clock_right && !is_leaving;
            let said = takes(self.is_clock_right.load(Ordering::Relaxed));
            let Some(mut view) = self.send_heartbeat(said)? else { return Ok(Heartbeat::Expired) };
            let clock = StoreClockSample { store_ms: view.clock_ms, sent_at, answered_at: now() };
            let is_clock_right = clock.skew().is_none();
            self.is_clock_right.store(is_clock_right, Ordering::Relaxed);
            if takes(is_clock_right) != said {
                let Some(found) = self.send_heartbeat(takes(is_clock_right))? else { return Ok(Heartbeat::Expired) };
                view = found;
            }
            let plan = plan_rebalance(&view, &self.node.name, &[]).acquire;
            // The next view contains the partitions of an acquisition whose answer was lost.
            let acquire = || self.store.acquire(&self.node.name, &plan).unwrap_or_default();
            let taken = if plan.is_empty() { Vec::new() } else { acquire() };
            let (name, until) = (self.node.name.clone(), self.terms.until(sent_at));
            let renewal = LeaseRenewal { name, until, clock, view, taken, handoff_error, is_leaving };
            Ok(Heartbeat::Renewed(Box::new(renewal)))
        };
        said().unwrap_or_else(Heartbeat::Unreachable)
    }

    fn send_heartbeat(&self, takes: bool) -> Result<Option<ClusterView>, StoreError> {
        self.store.heartbeat(&Node { accepts_partitions: takes, ..self.node.clone() }, self.terms.lease_ms)
    }

    /// Leaves the cluster, which frees all partitions at once. If the store does not answer, they are free when the
    /// lease expires.
    pub fn leave(&self) {
        let _ = self.store.leave(&self.node.name);
    }
}

/// Partitions to release, and attempts of their executions that keep running here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handoff {
    /// The fences under which the partitions were owned.
    pub fences: Vec<Fence>,
    /// Attempts that this process keeps performing.
    pub running: Vec<RemoteAttempt>,
}

impl Handoff {
    /// Adds another release.
    pub fn extend(&mut self, more: Self) {
        self.fences.extend(more.fences);
        self.running.extend(more.running);
    }

    /// Removes the parts that the store has recorded.
    pub fn remove(&mut self, notified: &Self) {
        self.fences.retain(|fence| !notified.fences.contains(fence));
        self.running.retain(|attempt| !notified.running.contains(attempt));
    }
}
