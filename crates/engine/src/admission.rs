//! Admission under concurrency limits: counts the running executions of each organization, and admits queued ones in
//! the order of their arrival.
//!
//! A state machine without I/O, performed by the driver. It reads an organization from the store, follows the starts
//! and ends on this node, and gets other changes with the next read.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap},
    sync::Arc,
};

use mainspring_kernel::{
    hash::Hash,
    input::{ORGANIZATION_IN_TRIGGER, Queue, Start},
    key::ExecutionKey,
    record::Record,
    state::{ExecutionStatus, State},
    value::Value,
};
use mainspring_store::{ExecutionRow, Filter, Store, StoreError, partition_of};

use self::draining::{ConcurrencyKey, DefinitionKey, Draining};
pub use self::draining::{Drain, Drained, Drains};
use crate::{
    shard::protocol::{NewExecution, Ticket},
    start_request::CHILD,
};

/// Concurrency limits of an organization. A child runs in the slot of the first execution of its tree. A detached child
/// has a slot of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Running executions of each member.
    pub user: u32,
    /// Running executions in total.
    pub organization: u32,
    /// Running executions of each workflow. `None` means no limit.
    pub workflow: Option<u32>,
    /// Unfinished executions, running or queued, including children. At this bound a start is refused, and a step that
    /// waits for a child fails.
    pub live: u32,
}

/// Provides the limits of organizations.
pub trait Limits: Send + Sync {
    /// The limits in force. An error is a message for people.
    fn of(&self, store: &dyn Store, organization: &str) -> Result<Bounds, String>;

    /// The workflows that drain. An error is a message for people.
    fn drains(&self, _: &dyn Store, _organization: &str) -> Result<Drains, String> {
        Ok(Drains::new())
    }

    /// Removes a drain whose older executions have ended.
    fn drained(&self, _: &dyn Store, _organization: &str, _: &Drained) -> Result<(), String> {
        Ok(())
    }
}

/// An organization as it was read: its limits, its drains and its unfinished executions.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The limits in force.
    pub bounds: Bounds,
    /// The workflows that drain.
    pub drains: Drains,
    /// The unfinished executions.
    pub rows: Vec<ExecutionRow>,
}

/// The result of reading an organization.
pub type Found = Result<Reading, String>;

/// Rows per read.
const ROWS_AT_A_TIME: usize = 1_000;

/// The statuses of unfinished executions.
pub(crate) const UNFINISHED: [ExecutionStatus; 4] = [
    ExecutionStatus::Pending,
    ExecutionStatus::Running,
    ExecutionStatus::WaitingApproval,
    ExecutionStatus::CancelRequested,
];

/// Reads the limits, the drains and the unfinished executions of an organization, and removes the drains that have
/// ended. Blocks.
pub fn find(store: &dyn Store, limits: &dyn Limits, organization: &str, over: &[Drained]) -> Found {
    for drained in over {
        // The next read reports a drain again that is still there.
        let _ = limits.drained(store, organization, drained);
    }
    let filter = Filter {
        organization: Some(organization.into()),
        statuses: UNFINISHED.map(|status| status.name().into()).into(),
        // A quarantined execution does not run, and may never run again.
        excludes_quarantined: true,
        ..Filter::default()
    };
    // An execution of a new definition is durable only after its drain. The drains are read after the rows, so they
    // include those of all rows.
    let rows = all(store, &filter).map_err(|error| error.to_string())?;
    let (bounds, drains) = (limits.of(store, organization)?, limits.drains(store, organization)?);
    let drains_of = |row: &ExecutionRow| row.workflow_id.as_deref().is_some_and(|id| drains.contains_key(id));
    let matters = |row: &ExecutionRow| has_place(row) || bounds.workflow.is_some() || drains_of(row);
    let rows = rows.into_iter().filter(matters).collect();
    Ok(Reading { bounds, drains, rows })
}

/// Counts the unfinished executions of an organization, up to their bound. Returns the bound and the number, or `None` if
/// the store does not answer. Blocks.
pub fn count_unfinished(store: &dyn Store, limits: &dyn Limits, organization: &str) -> Option<(u32, u64)> {
    let most = limits.of(store, organization).ok()?.live;
    let statuses = UNFINISHED.map(|status| status.name());
    let found = store.count_executions(organization, &statuses, most as usize).ok()?;
    Some((most, found as u64))
}

/// True if a running execution has a slot of its own.
fn has_place(row: &ExecutionRow) -> bool {
    row.trigger_type != CHILD
}

fn all(store: &dyn Store, filter: &Filter) -> Result<Vec<ExecutionRow>, StoreError> {
    let mut rows: Vec<ExecutionRow> = Vec::new();
    loop {
        let page = store.executions(filter, rows.last().map(|row| row.key), ROWS_AT_A_TIME)?;
        let is_last = page.len() < ROWS_AT_A_TIME;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

/// The partition whose owner counts the executions of an organization.
pub fn partition_of_organization(organization: &str, partitions: u32) -> u32 {
    let hash = Hash::of(organization.as_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&hash.0[..16]);
    partition_of(ExecutionKey(key), partitions)
}

/// The organization that counts an execution. `None` for an execution without one, and for a child in the slot of its
/// parent.
pub(crate) fn counted(start: &Start) -> Option<&str> {
    let is_waited_for = start.lineage.as_ref().is_some_and(|lineage| lineage.parent.is_some());
    start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).filter(|_| !is_waited_for)
}

/// The organization and the definition of a child that runs in the slot of its parent. It starts at once and counts for
/// the limit of its workflow only: its parent waits for it, and could occupy the slot that it would wait for. `None`
/// for executions with a slot of their own, and for a workflow that is not in the catalogue.
fn guest(start: &Start) -> Option<(&str, DefinitionKey)> {
    start.lineage.as_ref().filter(|lineage| lineage.parent.is_some())?;
    let organization = start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text)?;
    Some((organization, DefinitionKey::of_start(start)?))
}

/// The organization that counts a start, with or without a slot of its own.
pub(crate) fn organization_of(start: &Start) -> Option<&str> {
    counted(start).or_else(|| guest(start).map(|(organization, _)| organization))
}

/// The organization of an execution with a slot, if these records queue or end it.
pub(crate) fn place_of(state: &State, records: &[Record]) -> Option<String> {
    let matters = |record: &Record| matches!(record, Record::Queued { .. } | Record::Ended { .. });
    let start = state.start.as_ref().filter(|_| records.iter().any(matters) && state.lineage.parent.is_none())?;
    start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).map(Into::into)
}

/// The queue and the counts of one organization.
#[derive(Debug, Default)]
struct OrganizationQueue {
    /// `None` until the store was read.
    bounds: Option<Bounds>,
    running: BTreeMap<ExecutionKey, ConcurrencyKey>,
    /// Children that run in the slot of their parent, with their definitions.
    guests: BTreeMap<ExecutionKey, DefinitionKey>,
    users: BTreeMap<Arc<str>, u32>,
    workflows: BTreeMap<Arc<str>, u32>,
    queued: BTreeMap<ExecutionKey, ConcurrencyKey>,
    by_key: BTreeMap<ConcurrencyKey, BTreeSet<ExecutionKey>>,
    draining: Draining,
    /// Starts whose callers wait until the store was read.
    deferred: Vec<NewExecution>,
    read_state: ReadState,
    is_used: bool,
    /// Number of calls of `full`.
    #[cfg(test)]
    asked: std::cell::Cell<u32>,
}

/// Progress of reading an organization from the store.
#[derive(Debug, Default)]
enum ReadState {
    #[default]
    None,
    Wanted,
    InProgress(PendingRead),
}

/// A read in progress.
#[derive(Debug, Default)]
struct PendingRead {
    /// Executions that ended since it started.
    ended: BTreeSet<ExecutionKey>,
    /// Starts withheld since it started.
    withheld: BTreeSet<ExecutionKey>,
    /// Another read follows it.
    again: bool,
    /// Its result is outdated: the limits have changed since.
    is_stale: bool,
}

impl OrganizationQueue {
    /// Returns the limit that another execution would exceed, or `None`.
    fn full(&self, key: &ConcurrencyKey) -> Option<Queue> {
        #[cfg(test)]
        self.asked.update(|asked| asked + 1);
        let Some(bounds) = self.bounds else { return Some(Queue::Admission) };
        let of_user = self.users.get(&key.user).copied().unwrap_or_default();
        let workflow = key.definition.as_ref().map(|definition| &definition.workflow);
        let of_workflow = workflow.and_then(|workflow| self.workflows.get(workflow)).copied();
        if key.definition.as_ref().is_some_and(|definition| self.draining.holds(definition)) {
            return Some(Queue::Workflow);
        }
        if of_user >= bounds.user {
            return Some(Queue::User);
        }
        if self.running.len() >= bounds.organization as usize {
            return Some(Queue::Organization);
        }
        let is_full = workflow.is_some() && bounds.workflow.is_some_and(|most| of_workflow.unwrap_or(0) >= most);
        is_full.then_some(Queue::Workflow)
    }

    fn run(&mut self, execution: ExecutionKey, key: ConcurrencyKey) {
        if self.running.contains_key(&execution) {
            return;
        }
        *self.users.entry(key.user.clone()).or_default() += 1;
        if let Some(definition) = &key.definition {
            *self.workflows.entry(definition.workflow.clone()).or_default() += 1;
            self.draining.add(definition);
        }
        self.running.insert(execution, key);
    }

    /// Counts a child that runs in the slot of its parent.
    fn take_in(&mut self, execution: ExecutionKey, definition: DefinitionKey) {
        if self.guests.insert(execution, definition.clone()).is_none() {
            self.draining.add(&definition);
            *self.workflows.entry(definition.workflow).or_default() += 1;
        }
    }

    fn enqueue(&mut self, execution: ExecutionKey, key: ConcurrencyKey) {
        self.unqueue(execution);
        key.definition.iter().for_each(|definition| self.draining.add(definition));
        self.by_key.entry(key.clone()).or_default().insert(execution);
        self.queued.insert(execution, key);
    }

    fn remove(&mut self, execution: ExecutionKey) {
        if let Some(key) = self.running.remove(&execution) {
            take_one(&mut self.users, &key.user);
            if let Some(definition) = &key.definition {
                take_one(&mut self.workflows, &definition.workflow);
                self.draining.remove(definition);
            }
        }
        if let Some(definition) = self.guests.remove(&execution) {
            take_one(&mut self.workflows, &definition.workflow);
            self.draining.remove(&definition);
        }
        self.draining.withheld.remove(&execution);
        self.unqueue(execution);
    }

    fn unqueue(&mut self, execution: ExecutionKey) -> Option<ConcurrencyKey> {
        let key = self.queued.remove(&execution)?;
        key.definition.iter().for_each(|definition| self.draining.remove(definition));
        let here = self.by_key.get_mut(&key)?;
        here.remove(&execution);
        if here.is_empty() {
            self.by_key.remove(&key);
        }
        Some(key)
    }

    /// Admits queued executions, always the first for which there is a slot. An admission takes slots and frees none,
    /// so a key at its limit is skipped from then on. Each key is checked once per admission of its executions, and
    /// once more.
    fn admit(&mut self) -> Vec<ExecutionKey> {
        let first_of = |(key, waiting): (&ConcurrencyKey, &BTreeSet<ExecutionKey>)| {
            Some(Reverse((*waiting.first()?, key.clone())))
        };
        let mut firsts: BinaryHeap<_> = self.by_key.iter().filter_map(first_of).collect();
        let mut admitted = Vec::new();
        while let Some(Reverse((first, key))) = firsts.pop() {
            match self.full(&key) {
                // The limit of the organization blocks all keys.
                Some(Queue::Admission | Queue::Organization) => break,
                Some(Queue::User | Queue::Workflow) => continue,
                None => {}
            }
            self.unqueue(first);
            let next = self.by_key.get(&key).and_then(BTreeSet::first);
            firsts.extend(next.map(|next| Reverse((*next, key.clone()))));
            self.run(first, key);
            admitted.push(first);
        }
        admitted
    }

    /// Keeps a start until a read that begins from now on: its workflow may drain since the last one.
    fn withhold(&mut self, execution: ExecutionKey, key: ConcurrencyKey) {
        self.draining.withheld.insert(execution, key);
        if let ReadState::InProgress(read) = &mut self.read_state {
            read.withheld.insert(execution);
        }
        self.want_read();
    }

    /// Takes the drains of a read, and queues the starts that waited for it.
    fn take_drains(&mut self, drains: Drains, later: &BTreeSet<ExecutionKey>) {
        self.draining.take(drains);
        for (execution, key) in
            self.draining.withheld.extract_if(.., |execution, _| !later.contains(execution)).collect::<Vec<_>>()
        {
            self.enqueue(execution, key);
        }
    }

    /// Ends the drains of which a read has found no older execution. The next read removes them from the store, and
    /// decides about the drains that this read was the first to see.
    fn end_drains(&mut self) {
        let ends = self.draining.ended().collect::<Vec<_>>();
        for (workflow, since_ms) in ends {
            self.draining.drains.remove(&workflow);
            self.draining.over.insert(workflow, since_ms);
            self.want_read();
        }
        self.check_drains();
    }

    /// Wants a read if it may end a drain.
    fn check_drains(&mut self) {
        if self.draining.idle().next().is_some() {
            self.want_read();
        }
    }

    fn want_read(&mut self) {
        match &mut self.read_state {
            ReadState::InProgress(read) => read.again = true,
            state => *state = ReadState::Wanted,
        }
    }

    /// Compares the counts with the rows of the store, and keeps local executions that the store does not list yet.
    /// Returns executions to admit again, and those that are no longer counted.
    fn compare(
        &mut self,
        rows: Vec<ExecutionRow>,
        ended: &BTreeSet<ExecutionKey>,
        is_here: impl Fn(ExecutionKey) -> bool,
    ) -> (Vec<ExecutionKey>, Vec<ExecutionKey>) {
        let found: BTreeSet<ExecutionKey> = rows.iter().map(|row| row.key).collect();
        let known = self.running.keys().chain(self.queued.keys()).chain(self.guests.keys());
        let known = known.chain(self.draining.withheld.keys());
        let gone: Vec<_> = known.filter(|key| !found.contains(key) && !is_here(**key)).copied().collect();
        gone.iter().for_each(|execution| self.remove(*execution));
        let mut admitted_again = Vec::new();
        for row in rows.into_iter().filter(|row| !ended.contains(&row.key)) {
            if !has_place(&row) {
                DefinitionKey::of_row(&row).into_iter().for_each(|definition| self.take_in(row.key, definition));
                continue;
            }
            if self.draining.withheld.contains_key(&row.key) {
                continue;
            }
            let (execution, key) = (row.key, ConcurrencyKey::of_row(&row));
            let waits = row.status == ExecutionStatus::Pending.name();
            match (waits, self.running.contains_key(&execution)) {
                // The admission message was lost or is still in the inbox. A second one has no effect.
                (true, true) => admitted_again.push(execution),
                (true, false) => self.enqueue(execution, key),
                (false, _) => {
                    self.unqueue(execution);
                    self.run(execution, key);
                }
            }
        }
        (admitted_again, gone)
    }

    fn is_empty(&self) -> bool {
        self.running.is_empty()
            && self.queued.is_empty()
            && self.guests.is_empty()
            && self.draining.withheld.is_empty()
            && self.deferred.is_empty()
            && matches!(self.read_state, ReadState::None)
    }
}

fn take_one(counts: &mut BTreeMap<Arc<str>, u32>, name: &Arc<str>) {
    if let Some(count) = counts.get_mut(name) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(name);
        }
    }
}

/// The results of an operation, for the driver to perform.
#[derive(Debug, Default)]
pub(crate) struct AdmissionActions {
    /// Starts to pass to the shard, queued or not.
    pub begin: Vec<NewExecution>,
    /// Callers to refuse, since the store could not be read.
    pub refuse: Vec<(Ticket, String)>,
    /// Executions to admit.
    pub admit: Vec<ExecutionKey>,
}

/// The counts of all organizations at this node.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    queues: BTreeMap<String, OrganizationQueue>,
    /// The organization of each counted execution.
    organizations: HashMap<ExecutionKey, String>,
    /// Starts that are counted here and not known to be durable.
    starting: BTreeMap<Ticket, ExecutionKey>,
}

impl Admission {
    /// Counts a start, and queues it if a limit is reached. `None` if it waits until the store was read.
    pub(crate) fn start(
        &mut self,
        mut new_execution: Box<NewExecution>,
        is_counted_here: bool,
    ) -> Option<Box<NewExecution>> {
        let Some(organization) = counted(&new_execution.start).map(str::to_owned) else {
            if let Some((organization, definition)) = guest(&new_execution.start).filter(|_| is_counted_here) {
                let queue = self.queues.entry(organization.to_owned()).or_default();
                // Without a limit per workflow and without a drain, its children need not be counted.
                let drains = queue.draining.drains.contains_key(&definition.workflow);
                if drains || queue.bounds.is_none_or(|bounds| bounds.workflow.is_some()) {
                    queue.take_in(new_execution.execution, definition);
                    self.organizations.insert(new_execution.execution, organization.to_owned());
                }
            }
            return Some(new_execution);
        };
        let (execution, ticket) = (new_execution.execution, new_execution.ticket);
        // The same start message was received again.
        if let Some(queue) = self.organizations.get(&execution).and_then(|organization| self.queues.get(organization)) {
            let waits = queue.queued.contains_key(&execution) || queue.draining.withheld.contains_key(&execution);
            new_execution.start.queue = waits.then_some(Queue::Admission);
            return Some(new_execution);
        }
        if !is_counted_here {
            new_execution.start.queue = Some(Queue::Admission);
            return Some(new_execution);
        }
        let queue = self.queues.entry(organization.clone()).or_default();
        queue.is_used = true;
        let key = ConcurrencyKey::of_start(&new_execution.start);
        if new_execution.start.queue.is_some() && !queue.draining.knows(&key) {
            new_execution.start.queue = Some(Queue::Admission);
            queue.withhold(execution, key);
            self.organizations.insert(execution, organization);
            ticket.map(|ticket| self.starting.insert(ticket, execution));
            return Some(new_execution);
        }
        if queue.bounds.is_none() {
            queue.want_read();
            if ticket.is_some() {
                queue.deferred.push(*new_execution);
                return None;
            }
        }
        new_execution.start.queue = queue.full(&key);
        match new_execution.start.queue {
            Some(_) => queue.enqueue(execution, key),
            None => queue.run(execution, key),
        }
        queue.check_drains();
        self.organizations.insert(execution, organization);
        ticket.map(|ticket| self.starting.insert(ticket, execution));
        Some(new_execution)
    }

    /// Handles the reply to a start. If the execution did not start, its slot is free, and the executions to admit are
    /// returned.
    pub(crate) fn answered(&mut self, ticket: Ticket, has_begun: bool) -> Vec<ExecutionKey> {
        let starting = self.starting.remove(&ticket).filter(|_| !has_begun);
        starting.map(|execution| self.ended(execution)).unwrap_or_default()
    }

    /// The number of executions with a slot, and of queued ones.
    pub(crate) fn counts(&self) -> [usize; 2] {
        let waiting = |queue: &OrganizationQueue| queue.queued.len() + queue.draining.withheld.len();
        let both = self.queues.values().map(|queue| [queue.running.len(), waiting(queue)]);
        both.fold([0; 2], |[running, waiting], [more, also]| [running + more, waiting + also])
    }

    /// Frees the slot of an execution that ended, never started or is quarantined. Returns the executions to admit.
    pub(crate) fn ended(&mut self, execution: ExecutionKey) -> Vec<ExecutionKey> {
        // A read in progress may still list the execution.
        for queue in self.queues.values_mut() {
            if let ReadState::InProgress(read) = &mut queue.read_state {
                read.ended.insert(execution);
            }
        }
        let Some(organization) = self.organizations.remove(&execution) else { return Vec::new() };
        let Some(queue) = self.queues.get_mut(&organization) else { return Vec::new() };
        queue.remove(execution);
        queue.check_drains();
        queue.admit()
    }

    /// Requests a read of an organization.
    pub(crate) fn want(&mut self, organization: &str) {
        self.queues.entry(organization.into()).or_default().want_read();
    }

    /// Requests a read of all known organizations for which the predicate holds.
    pub(crate) fn want_those_of(&mut self, is_meant: impl Fn(&str) -> bool) {
        let meant = self.queues.iter_mut().filter(|(organization, _)| is_meant(organization));
        meant.for_each(|(_, queue)| queue.want_read());
    }

    /// The limits of an organization have changed: no execution starts under the known ones, or under those being read.
    pub(crate) fn bounds_changed(&mut self, organization: &str) {
        let Some(queue) = self.queues.get_mut(organization) else { return };
        queue.bounds = None;
        queue.want_read();
        if let ReadState::InProgress(read) = &mut queue.read_state {
            read.is_stale = true;
        }
    }

    /// Requests a read of all known organizations. Unused and empty ones are removed.
    pub(crate) fn want_all(&mut self) {
        self.queues.retain(|_, queue| std::mem::take(&mut queue.is_used) || !queue.is_empty());
        self.queues.values_mut().for_each(OrganizationQueue::want_read);
    }

    /// Returns the organizations to read now. Each result is passed to [`on_read`](Self::on_read).
    pub(crate) fn take_wanted_reads(&mut self) -> Vec<String> {
        let wanted = self.queues.iter_mut().filter(|(_, queue)| matches!(queue.read_state, ReadState::Wanted));
        wanted
            .map(|(organization, queue)| {
                queue.read_state = ReadState::InProgress(PendingRead::default());
                organization.clone()
            })
            .collect()
    }

    /// Returns the drains of an organization that have ended, for its next read.
    pub(crate) fn drained(&self, organization: &str) -> Vec<Drained> {
        let queue = self.queues.get(organization);
        queue
            .into_iter()
            .flat_map(|queue| &queue.draining.over)
            .map(|(workflow, since_ms)| Drained { workflow: workflow.clone(), since_ms: *since_ms })
            .collect()
    }

    /// Handles the result of a read. `is_here` is true for an execution that may be durable soon on this node.
    pub(crate) fn on_read(
        &mut self,
        organization: &str,
        found: Found,
        is_here: impl Fn(ExecutionKey) -> bool,
    ) -> AdmissionActions {
        let mut actions = AdmissionActions::default();
        let Some(queue) = self.queues.get_mut(organization) else { return actions };
        let ReadState::InProgress(read) = std::mem::take(&mut queue.read_state) else { return actions };
        if read.again {
            queue.read_state = ReadState::Wanted;
        }
        match found {
            // Another read follows.
            _ if read.is_stale => return actions,
            Err(why) => {
                let deferred = std::mem::take(&mut queue.deferred).into_iter();
                actions.refuse = deferred.filter_map(|start| Some((start.ticket?, why.clone()))).collect();
                return actions;
            }
            Ok(Reading { bounds, drains, rows }) => {
                queue.bounds = Some(bounds);
                queue.take_drains(drains, &read.withheld);
                let counted: Vec<_> = rows.iter().map(|row| row.key).filter(|key| !read.ended.contains(key)).collect();
                let (again, gone) = queue.compare(rows, &read.ended, is_here);
                gone.iter().for_each(|key| drop(self.organizations.remove(key)));
                self.organizations.extend(counted.into_iter().map(|key| (key, organization.to_owned())));
                actions.admit = again;
                queue.end_drains();
            }
        }
        actions.admit.extend(queue.admit());
        for start in std::mem::take(&mut queue.deferred) {
            actions.begin.extend(self.start(Box::new(start), true).map(|start| *start));
        }
        actions
    }

    /// Drops organizations that another node counts now. Their waiting starts are returned as queued.
    pub(crate) fn keep(&mut self, is_counted_here: impl Fn(&str) -> bool) -> Vec<NewExecution> {
        let gone = self.queues.extract_if(.., |organization, _| !is_counted_here(organization));
        let deferred: Vec<_> = gone.flat_map(|(_, queue)| queue.deferred).collect();
        let queues = &self.queues;
        self.organizations.retain(|_, organization| queues.contains_key(organization));
        deferred.into_iter().filter_map(|start| self.start(Box::new(start), false)).map(|start| *start).collect()
    }
}

mod draining;

#[cfg(test)]
mod tests;
