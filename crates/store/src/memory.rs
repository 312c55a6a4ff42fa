//! The reference implementation: the contract over plain maps, as simply as possible.
//!
//! Clones of a handle share one store, so that a simulated node can crash and reopen it.

mod catalogue;
mod foreign;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
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
    AuditedNotes, AwaitingParent, Batch, Catalogue, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow,
    Expected, FORCED_END, Fence, Filter, GateRow, HeadRow, InboxEntry, InboxMessage, LateReceipt, Node, Origin, Part,
    PartOutcome, QuarantineRelease, QuarantinedRow, ReadLimit, Refusal, ReleaseOutcome, RemoteAttempt, Store,
    StoreError, StoredPlan, partition_of,
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
    late_receipts: BTreeMap<ExecutionKey, Vec<LateReceipt>>,
    catalogue: catalogue::Resources,
    gates: BTreeMap<(Reverse<ExecutionKey>, String, u32), GateRow>,
    notes: BTreeMap<(ExecutionKey, Subject), Note>,
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
            late_receipts: BTreeMap::new(),
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
        }
        for id in &part.consumed {
            self.consume(part.execution, id);
        }
        if !part.late_receipts.is_empty() {
            self.late_receipts.entry(part.execution).or_default().extend_from_slice(&part.late_receipts);
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
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        Ok(self.state().own(partition, holder))
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        Ok(self.state().partitions)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        let mut guard = self.state();
        let state = &mut *guard;
        state.partitions = partitions.max(1);
        for (key, row) in &mut state.heads {
            row.partition = partition_of(*key, state.partitions);
        }
        for (key, row) in &mut state.rows {
            row.partition = partition_of(*key, state.partitions);
        }
        for message in state.inbox.values_mut() {
            message.partition = partition_of(message.execution, state.partitions);
        }
        state.holders.clear();
        state.acquirable_from =
            state.nodes.values().map(|(_, until)| *until).chain([state.acquirable_from]).max().unwrap_or(0);
        state.epochs.values_mut().for_each(|epoch| *epoch += 1);
        Ok(())
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        Ok(self.state().metadata.entry(name.to_owned()).or_insert_with(|| value.to_owned()).clone())
    }

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.state().metadata.get(name).cloned())
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        Ok(self.state().table(""))
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        let state = &mut *self.state();
        state.remote.retain(|_, (at, _)| state.nodes.contains_key(at));
        if state.nodes.contains_key(&node.name) && !state.is_alive(&node.name) {
            return Ok(None);
        }
        let until = state.now.saturating_add(lease_ms);
        state.nodes.insert(node.name.clone(), (node.clone(), until));
        Ok(Some(state.table(&node.name)))
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        let mut state = self.state();
        let mut taken = Vec::new();
        if state.now < state.acquirable_from {
            return Ok(taken);
        }
        for partition in BTreeSet::from_iter(partitions.iter().copied()) {
            if state.is_alive(node) && state.is_free(partition) {
                taken.push(Fence { partition, epoch: state.own(partition, node) });
            }
        }
        Ok(taken)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        let mut state = self.state();
        for fence in fences {
            let is_epoch = state.epochs.get(&fence.partition) == Some(&fence.epoch);
            if is_epoch && state.holders.get(&fence.partition).is_some_and(|holder| holder == node) {
                state.holders.remove(&fence.partition);
            }
        }
        for attempt in running {
            let (at, _) = state.remote.entry(attempt.clone()).or_default();
            *at = node.to_owned();
        }
        Ok(())
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        let state = self.state();
        let is_asked = |attempt: &RemoteAttempt, at: &str| attempt.execution == execution && state.is_alive(at);
        let remote = state.remote.iter().filter(|(attempt, (at, _))| is_asked(attempt, at));
        Ok(remote.map(|(attempt, (at, _))| (attempt.clone(), at.clone())).collect())
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        if let Some((_, is_to_stop)) = self.state().remote.get_mut(attempt) {
            *is_to_stop = true;
        }
        Ok(())
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.state().remote.retain(|attempt, (at, _)| at != node || !attempts.contains(attempt));
        Ok(())
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        let state = &mut *self.state();
        if let Some((_, until)) = state.nodes.get_mut(node) {
            *until = state.now.min(*until);
        }
        Ok(())
    }

    fn is_of_unsealed_format(&self) -> bool {
        self.state().is_of_unsealed_format
    }

    fn can_read_inline(&self) -> bool {
        true
    }

    fn catalogue(&self) -> &dyn Catalogue {
        self
    }

    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let mut state = self.state();
        let mut answers = Vec::new();
        for part in &batch.parts {
            answers.push(match state.refusal(batch, part) {
                Some(refusal) => PartOutcome::Refused(refusal),
                None => {
                    state.take(part);
                    PartOutcome::Durable
                }
            });
        }
        let written = batch.parts.iter().zip(&answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
        written.clone().flat_map(|(part, _)| &part.messages).for_each(|message| _ = state.enqueue(message));
        state.catalogue.note(&batch.sealing, written.flat_map(|(part, _)| &part.audit));
        Ok(answers)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        Ok(self.state().heads.get(&execution).cloned())
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        let state = self.state();
        let frames = state.frames.get(&execution).into_iter().flatten().filter(|frame| frame.sequence >= from);
        Ok(bound.take(frames, |frame| frame.byte_count()).into_iter().cloned().collect())
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        let state = self.state();
        let waking =
            state.heads.iter().filter(|(_, row)| partitions.contains(&row.partition) && row.quarantined.is_none());
        let mut due: Vec<Due> =
            waking.filter_map(|(key, row)| row.wake_at.map(|wake_at| Due { execution: *key, wake_at })).collect();
        let place = |due: &Due| (due.wake_at, due.execution);
        due.retain(|due| due.wake_at <= until_ms && after.is_none_or(|after| place(due) > place(&after)));
        due.sort_by_key(place);
        due.truncate(limit);
        Ok(due)
    }

    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.partitions != request.partitions {
            return Ok(false);
        }
        state.put_plans(request.plans);
        if state.enqueue(request.message) {
            state.catalogue.note(&request.sealing, request.audit);
        }
        Ok(true)
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        let state = self.state();
        let is_asked = |message: &InboxMessage| partitions.contains(&message.partition);
        let waiting = state.inbox.iter().filter(|(number, message)| **number > after && is_asked(message));
        let messages = bound.take(waiting, |(_, message)| message.byte_count());
        Ok(messages
            .into_iter()
            .map(|(number, message)| InboxEntry { number: *number, message: message.clone() })
            .collect())
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.state().plans.get(&hash).cloned())
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_so =
            |row: &&mut HeadRow| !row.ended && Expected { sequence: row.head.sequence, hash: row.head.hash } == head;
        let found = state.heads.get_mut(&execution).filter(is_so);
        Ok(found.map(|row| row.wake_at = wake_at).is_some())
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        if let Some(row) = self.state().heads.get_mut(&execution) {
            row.quarantined = Some(reason.to_owned());
        }
        Ok(())
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        let QuarantineRelease { execution, parent, audited } = release;
        let state = &mut *self.state();
        let is_at = |row: &HeadRow, head: Expected| row.head.sequence == head.sequence && row.head.hash == head.hash;
        let row = |key: &ExecutionKey| state.heads.get(key);
        if parent.is_some_and(|parent| !row(&parent.execution).is_some_and(|row| is_at(row, parent.head))) {
            return Ok(ReleaseOutcome::ParentMoved);
        }
        if !row(execution).is_some_and(|row| !row.ended && row.quarantined.is_some()) {
            return Ok(ReleaseOutcome::NotQuarantined);
        }
        if let Some(AwaitingParent { execution, notice, .. }) = parent {
            state.consume(*execution, notice);
        }
        state.heads.entry(*execution).and_modify(|row| row.quarantined = None);
        state.catalogue.note(&audited.sealing, audited.audit);
        Ok(ReleaseOutcome::Released)
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        let state = &mut *self.state();
        let Some(note) = audited.notes.first() else { return Ok(false) };
        let key = note.execution;
        let head = state.heads.get_mut(&key).filter(|row| row.quarantined.is_some() && !row.ended);
        let Some(head) = head else { return Ok(false) };
        (head.ended, head.wake_at) = (true, None);
        if let Some(row) = state.rows.get_mut(&key) {
            (row.status, row.outcome, row.error) = ("failed".into(), None, Some(FORCED_END.into()));
            row.completed_at = Some(note.at);
        }
        state.gates.retain(|(Reverse(execution), ..), _| *execution != key);
        state.inbox.retain(|_, message| message.execution != key);
        state.waiting.retain(|(execution, _), _| *execution != key);
        state.notes.entry((key, note.subject)).or_insert_with(|| note.clone());
        state.catalogue.note(&audited.sealing, audited.audit);
        Ok(true)
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        let state = self.state();
        let behind = state.heads.iter().filter(|(key, row)| !row.ended && after.is_none_or(|after| **key > after));
        let rows = behind.filter_map(|(key, head)| {
            let row = state.rows.get(key);
            let whose = row.and_then(|row| row.organization.clone());
            let reason = head.quarantined.clone()?;
            let is_asked = organization.is_none() || whose.as_deref() == organization;
            let id = row.map(|row| row.id.clone());
            is_asked.then_some(QuarantinedRow { execution: *key, id, organization: whose, reason })
        });
        Ok(rows.take(limit).collect())
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        let state = self.state();
        Ok(state.notes.values().filter(|note| note.execution == execution).cloned().collect())
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        let state = &mut *self.state();
        let mut count = 0;
        for note in audited.notes {
            let Subject::Erased { sequence, place } = note.subject else { continue };
            let mut frames = state.frames.get_mut(&note.execution).into_iter().flatten();
            let frame = frames.find(|frame| frame.sequence == sequence);
            let value = frame.and_then(|frame| frame.values.get_mut(usize::try_from(place).ok()?));
            let Some(value) = value.filter(|value| value.body.is_some()) else { continue };
            (value.body, value.salt) = (None, [0; 16]);
            state.notes.entry((note.execution, note.subject)).or_insert_with(|| note.clone());
            count += 1;
        }
        let late = state.late_receipts.get_mut(&execution).into_iter().flatten();
        for late in late.filter(|late| !late.body.is_empty()) {
            late.body.clear();
            count += 1;
        }
        if count > 0 {
            state.catalogue.note(&audited.sealing, audited.audit);
        }
        Ok(count)
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        Ok(self.state().late_receipts.get(&execution).cloned().unwrap_or_default())
    }

    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        Ok(self.state().rows.get(&execution).cloned())
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        let state = self.state();
        Ok(state.ids.get(id).and_then(|key| state.rows.get(key)).cloned())
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        let state = self.state();
        Ok(state.idempotency_keys.get(&start(of, key)).and_then(|key| state.rows.get(key)).cloned())
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        let state = self.state();
        let after = after.map(|(execution, step, gate)| (Reverse(execution), step.to_owned(), gate));
        let behind = state.gates.iter().filter(|(place, _)| after.as_ref().is_none_or(|after| *place > after));
        let matching = behind.filter(|(_, row)| organization.is_none() || row.organization.as_deref() == organization);
        Ok(matching.take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        let state = self.state();
        let pending = state.rows.values().filter(|row| row.status == "pending" && !state.is_quarantined(row.key));
        Ok(pending.filter_map(|row| row.organization.clone()).collect())
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        let state = self.state();
        let is_counted = |row: &&ExecutionRow| {
            row.organization.as_deref() == Some(organization)
                && statuses.contains(&row.status.as_str())
                && !state.is_quarantined(row.key)
        };
        Ok(state.rows.values().filter(is_counted).take(most).count())
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        let state = self.state();
        let older = state.rows.values().rev().filter(|row| before.is_none_or(|before| row.key < before));
        let is = |asked: &Option<String>, found: &Option<String>| asked.is_none() || asked == found;
        let matching = older.filter(|row| {
            is(&filter.workflow, &row.workflow)
                && is(&filter.organization, &row.organization)
                && is(&filter.workflow_id, &row.workflow_id)
                && is(&filter.initiator, &row.initiator_user_id)
                && (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
                && !(filter.excludes_quarantined && state.is_quarantined(row.key))
        });
        Ok(matching.take(limit).cloned().collect())
    }
}
