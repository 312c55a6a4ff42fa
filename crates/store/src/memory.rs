//! The reference implementation: the contract over plain maps, as simply as possible.
//!
//! Clones of a handle share one store, so that a simulated node can crash and reopen it.

mod audit;
mod budgets;
mod catalogue;
mod event_queue;
mod executions;
mod foreign;
mod inbox;
mod journal;
mod membership;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::{Note, Subject},
    stored_frame::StoredFrame,
};

use crate::{
    Batch, Catalogue, ClusterView, EventQueue, ExecutionRow, Expected, Fence, GateRow, HeadRow, InboxMessage,
    LateReceipt, Node, Origin, Part, Refusal, RemoteAttempt, Store, StoreError, StoredExecutorKey, StoredPlan,
};

/// A store that lives until its last handle is dropped.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The store's clock; 0 until it is set.
    now: u64,
    is_of_unsealed_format: bool,
    partitions: u32,
    /// No partition can be acquired before this time.
    acquirable_from: u64,
    metadata: BTreeMap<String, String>,
    epochs: BTreeMap<u32, u64>,
    holders: BTreeMap<u32, String>,
    /// All nodes that ever existed, with the ends of their leases.
    nodes: BTreeMap<String, (Node, u64)>,
    /// With the node that runs each attempt, and whether it should stop.
    remote: BTreeMap<RemoteAttempt, (String, bool)>,
    heads: BTreeMap<ExecutionKey, HeadRow>,
    frames: BTreeMap<ExecutionKey, Vec<StoredFrame>>,
    rows: BTreeMap<ExecutionKey, ExecutionRow>,
    ids: BTreeMap<String, ExecutionKey>,
    idempotency_keys: BTreeMap<Start, ExecutionKey>,
    inbox: BTreeMap<u64, InboxMessage>,
    waiting: BTreeMap<(ExecutionKey, String), u64>,
    arrived: u64,
    plans: BTreeMap<Hash, Arc<[u8]>>,
    receipts: Receipts,
    catalogue: catalogue::Resources,
    gates: BTreeMap<(Reverse<ExecutionKey>, String, u32), GateRow>,
    notes: BTreeMap<(ExecutionKey, Subject), Note>,
}

/// Late receipts, and signatures of receipts.
#[derive(Debug, Default)]
struct Receipts {
    /// The accounts of budgets, which receipts change.
    accounts: budgets::Accounts,
    late: BTreeMap<ExecutionKey, Vec<LateReceipt>>,
    proofs: BTreeMap<(ExecutionKey, u64), Vec<u8>>,
    executor_keys: BTreeMap<Hash, StoredExecutorKey>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            now: 0,
            is_of_unsealed_format: false,
            partitions: 1,
            acquirable_from: 0,
            metadata: BTreeMap::new(),
            epochs: BTreeMap::new(),
            holders: BTreeMap::new(),
            nodes: BTreeMap::new(),
            remote: BTreeMap::new(),
            heads: BTreeMap::new(),
            frames: BTreeMap::new(),
            rows: BTreeMap::new(),
            ids: BTreeMap::new(),
            idempotency_keys: BTreeMap::new(),
            inbox: BTreeMap::new(),
            waiting: BTreeMap::new(),
            arrived: 0,
            plans: BTreeMap::new(),
            receipts: Receipts::default(),
            catalogue: catalogue::Resources::default(),
            gates: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }
}

/// Organization, id or name of a workflow, whether it is the id, and an idempotency key.
type Start = (Option<String>, Option<String>, bool, String);

fn start(of: &Origin<'_>, key: &str) -> Start {
    let workflow = of.workflow_id.or(of.workflow).map(str::to_owned);
    (of.organization.map(str::to_owned), workflow, of.workflow_id.is_some(), key.to_owned())
}

fn machine_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl MemoryStore {
    /// Makes an empty store. Until its clock is set, it reports the time of this machine, and no lease expires.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes it a store that was upgraded from a format without seals.
    pub fn set_unsealed_format(&self) {
        self.state().is_of_unsealed_format = true;
    }

    /// Sets the store's clock, which ends leases.
    pub fn set_now(&self, now_ms: u64) {
        self.state().now = now_ms;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Applies the rules in the order of their precedence.
    fn refusal(&self, batch: &Batch, part: &Part) -> Option<Refusal> {
        let fenced = batch
            .fences
            .iter()
            .any(|fence| fence.partition == part.partition && self.epochs.get(&fence.partition) == Some(&fence.epoch));
        let head = self.heads.get(&part.execution);
        if !fenced {
            return Some(Refusal::Fence);
        }
        if head.is_some_and(|row| row.partition != part.partition) {
            return Some(Refusal::Partition);
        }
        if part.expected.is_some() && head.is_some_and(|row| row.ended) && !part.frames.is_empty() {
            return Some(Refusal::Ended);
        }
        if part.expected != head.map(|row| Expected { sequence: row.head.sequence, hash: row.head.hash }) {
            return Some(Refusal::Sequence);
        }
        let last = part.frames.last()?;
        let next = part.expected.map_or(0, |expected| expected.sequence + 1);
        if part.frames.iter().zip(next..).any(|(frame, sequence)| frame.sequence != sequence) {
            return Some(Refusal::Sequence);
        }
        if part.head.sequence != last.sequence {
            return Some(Refusal::Sequence);
        }
        let row = part.row.as_ref().filter(|_| part.expected.is_none())?;
        if let Some(other) = self.ids.get(&row.id) {
            return Some(Refusal::IdTaken(*other));
        }
        let start = start(&row.origin(), row.idempotency_key.as_deref()?);
        self.idempotency_keys.get(&start).map(|other| Refusal::IdempotencyKeyTaken(*other))
    }

    /// Removes a message from an inbox.
    fn consume(&mut self, execution: ExecutionKey, id: &str) {
        if let Some(number) = self.waiting.remove(&(execution, id.to_owned())) {
            self.inbox.remove(&number);
        }
    }

    fn take(&mut self, part: &Part) {
        self.put_plans(&part.plans);
        if !part.frames.is_empty() {
            self.take_frames(part);
            self.record_events(part);
        }
        for id in &part.consumed {
            self.consume(part.execution, id);
        }
        for (late, proof) in part.late_with_proofs() {
            let late = LateReceipt { proof: proof.map(<[u8]>::to_vec), ..late.clone() };
            self.receipts.late.entry(part.execution).or_default().push(late);
        }
        for (frame, proof) in part.frames_with_proofs() {
            let proof = proof.map(<[u8]>::to_vec);
            self.receipts.proofs.extend(proof.map(|proof| ((part.execution, frame.sequence), proof)));
        }
        if let Some(change) = part.receipts.account.as_deref().filter(|_| !part.frames.is_empty()) {
            self.receipts.accounts.change(part.execution, change);
        }
        if let Some(key) = part.executor_key() {
            self.receipts.executor_keys.entry(key.id).or_insert_with(|| key.clone());
        }
    }

    fn take_frames(&mut self, part: &Part) {
        let key = part.execution;
        if let (None, Some(row)) = (part.expected, &part.row) {
            self.ids.insert(row.id.clone(), key);
            if let Some(idempotency_key) = &row.idempotency_key {
                self.idempotency_keys.insert(start(&row.origin(), idempotency_key), key);
            }
            self.rows.insert(key, ExecutionRow { key, ..row.clone() });
        }
        if let (Some(row), Some(change)) = (self.rows.get_mut(&key), part.change.clone()) {
            row.status = change.status;
            row.outcome = change.outcome;
            row.error = change.error;
            row.completed_at = change.completed_at;
            row.usage = change.usage;
            if let Some(definition) = change.definition {
                row.workflow_version = definition.workflow_version;
                row.workflow_hash = definition.workflow_hash;
                row.plan_hash = definition.plan_hash;
            }
        }
        self.frames.entry(key).or_default().extend_from_slice(&part.frames);
        let opened_ended = part.expected.is_none() && part.row.as_ref().is_some_and(|row| row.completed_at.is_some());
        let ended = opened_ended || part.change.as_ref().is_some_and(|change| change.completed_at.is_some());
        for (step, gate) in &part.gates_closed {
            self.gates.remove(&(Reverse(key), step.clone(), *gate));
        }
        for row in part.gates_opened.iter().filter(|_| !ended) {
            let row = GateRow { execution: key, ..row.clone() };
            self.gates.entry((Reverse(key), row.step.clone(), row.gate)).or_insert(row);
        }
        let wake_at = if ended { None } else { part.wake_at };
        let quarantined = self.heads.get(&key).and_then(|row| row.quarantined.clone());
        self.heads.insert(key, HeadRow { head: part.head, partition: part.partition, wake_at, ended, quarantined });
    }

    /// False if the message exists already.
    fn enqueue(&mut self, message: &InboxMessage) -> bool {
        let Entry::Vacant(place) = self.waiting.entry((message.execution, message.id.clone())) else { return false };
        self.arrived += 1;
        place.insert(self.arrived);
        self.inbox.insert(self.arrived, message.clone());
        true
    }

    fn is_quarantined(&self, execution: ExecutionKey) -> bool {
        self.heads.get(&execution).is_some_and(|row| row.quarantined.is_some())
    }

    fn is_alive(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|(_, until)| *until > self.now)
    }

    fn is_free(&self, partition: u32) -> bool {
        self.holders.get(&partition).is_none_or(|holder| !self.is_alive(holder))
    }

    fn own(&mut self, partition: u32, holder: &str) -> u64 {
        self.holders.insert(partition, holder.to_owned());
        let epoch = self.epochs.entry(partition).or_default();
        *epoch += 1;
        *epoch
    }

    fn table(&self, node: &str) -> ClusterView {
        let alive = self.nodes.iter().filter(|(name, _)| self.is_alive(name));
        let holders = self.holders.iter().filter(|(_, holder)| self.is_alive(holder));
        let of_node = self.holders.iter().filter(|(_, holder)| *holder == node);
        let stop_requested = self.remote.iter().filter(|(_, (at, is_to_stop))| at == node && *is_to_stop);
        ClusterView {
            partitions: self.partitions,
            held: of_node
                .map(|(partition, _)| Fence { partition: *partition, epoch: self.epochs[partition] })
                .collect(),
            holders: holders.map(|(partition, holder)| (*partition, holder.clone())).collect(),
            nodes: alive.map(|(_, (node, _))| node.clone()).collect(),
            stop_requested: stop_requested.map(|(attempt, _)| attempt.clone()).collect(),
            clock_ms: if self.now == 0 { machine_ms() } else { self.now },
        }
    }

    fn put_plans(&mut self, plans: &[StoredPlan]) {
        for plan in plans {
            self.plans.entry(plan.hash).or_insert_with(|| plan.bytes.clone());
        }
    }
}

impl Store for MemoryStore {
    fn catalogue(&self) -> &dyn Catalogue {
        self
    }

    fn event_queue(&self) -> &dyn EventQueue {
        self
    }

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.state().metadata.get(name).cloned())
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        Ok(self.state().metadata.entry(name.to_owned()).or_insert_with(|| value.to_owned()).clone())
    }

    fn can_read_inline(&self) -> bool {
        true
    }

    fn is_of_unsealed_format(&self) -> bool {
        self.state().is_of_unsealed_format
    }

    fn has_unsealed_resources(&self) -> bool {
        self.state().is_of_unsealed_format
    }
}
