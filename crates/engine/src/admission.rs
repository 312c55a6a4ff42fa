//! Admission under concurrency limits: counts the running executions of each organization, and admits queued ones in
//! the order of their arrival.
//!
//! A state machine without I/O, performed by the driver. It reads an organization from the store, follows the starts
//! and ends on this node, and learns the rest with the next read.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap},
    sync::Arc,
};

use mainspring_kernel::{
    hash::Hash,
    input::{ORGANIZATION_IN_TRIGGER, Queue, Start, WORKFLOW_IN_TRIGGER},
    key::ExecutionKey,
    record::Record,
    state::{ExecutionStatus, State},
    value::Value,
};
use mainspring_store::{ExecutionRow, Filter, Store, StoreError, partition_of};

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
}

/// The result of reading an organization: its limits and its unfinished executions.
pub type Found = Result<(Bounds, Vec<ExecutionRow>), String>;

/// Rows per read.
const ROWS_AT_A_TIME: usize = 1_000;

/// The statuses of unfinished executions.
pub(crate) const UNFINISHED: [ExecutionStatus; 4] = [
    ExecutionStatus::Pending,
    ExecutionStatus::Running,
    ExecutionStatus::WaitingApproval,
    ExecutionStatus::CancelRequested,
];

/// Reads the limits and the unfinished executions of an organization. Blocks.
pub fn find(store: &dyn Store, limits: &dyn Limits, organization: &str) -> Found {
    let filter = Filter {
        organization: Some(organization.into()),
        statuses: UNFINISHED.map(|status| status.name().into()).into(),
        // A quarantined execution does not run, and may never run again.
        excludes_quarantined: true,
        ..Filter::default()
    };
    let bounds = limits.of(store, organization)?;
    let rows = all(store, &filter).map_err(|error| error.to_string())?;
    let matters = |row: &ExecutionRow| has_place(row) || bounds.workflow.is_some();
    Ok((bounds, rows.into_iter().filter(matters).collect()))
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

/// The organization and the workflow of a child that runs in the slot of its parent. It starts at once and counts for
/// the limit of its workflow only. `None` for executions with a slot of their own, and for a workflow that is not in
/// the catalogue.
fn guest(start: &Start) -> Option<(&str, &str)> {
    start.lineage.as_ref().filter(|lineage| lineage.parent.is_some())?;
    let said = |key| start.trigger.get(key).and_then(Value::as_text);
    Some((said(ORGANIZATION_IN_TRIGGER)?, said(WORKFLOW_IN_TRIGGER)?))
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

/// The member and the workflow whose limits apply to an execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ConcurrencyKey {
    user: Arc<str>,
    workflow: Option<Arc<str>>,
}

impl ConcurrencyKey {
    fn of_start(start: &Start) -> Self {
        let workflow = start.trigger.get(WORKFLOW_IN_TRIGGER).and_then(Value::as_text);
        Self { user: start.by.as_str().into(), workflow: workflow.map(Into::into) }
    }

    fn of_row(row: &ExecutionRow) -> Self {
        let user = row.initiator_user_id.as_deref().unwrap_or_default();
        Self { user: user.into(), workflow: row.workflow_id.as_deref().map(Into::into) }
    }
}

/// The queue and the counts of one organization.
#[derive(Debug, Default)]
struct OrganizationQueue {
    /// `None` until the store was read.
    bounds: Option<Bounds>,
    running: BTreeMap<ExecutionKey, ConcurrencyKey>,
    /// Children that run in the slot of their parent, with their workflows.
    guests: BTreeMap<ExecutionKey, Arc<str>>,
    users: BTreeMap<Arc<str>, u32>,
    workflows: BTreeMap<Arc<str>, u32>,
    queued: BTreeMap<ExecutionKey, ConcurrencyKey>,
    by_key: BTreeMap<ConcurrencyKey, BTreeSet<ExecutionKey>>,
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
        let of_workflow = key.workflow.as_ref().and_then(|workflow| self.workflows.get(workflow)).copied();
        if of_user >= bounds.user {
            return Some(Queue::User);
        }
        if self.running.len() >= bounds.organization as usize {
            return Some(Queue::Organization);
        }
        let is_full = key.workflow.is_some() && bounds.workflow.is_some_and(|most| of_workflow.unwrap_or(0) >= most);
        is_full.then_some(Queue::Workflow)
    }

    fn run(&mut self, execution: ExecutionKey, key: ConcurrencyKey) {
        if self.running.contains_key(&execution) {
            return;
        }
        *self.users.entry(key.user.clone()).or_default() += 1;
        if let Some(workflow) = &key.workflow {
            *self.workflows.entry(workflow.clone()).or_default() += 1;
        }
        self.running.insert(execution, key);
    }

    /// Counts a child that runs in the slot of its parent.
    fn take_in(&mut self, execution: ExecutionKey, workflow: Arc<str>) {
        if self.guests.insert(execution, workflow.clone()).is_none() {
            *self.workflows.entry(workflow).or_default() += 1;
        }
    }

    fn enqueue(&mut self, execution: ExecutionKey, key: ConcurrencyKey) {
        self.unqueue(execution);
        self.by_key.entry(key.clone()).or_default().insert(execution);
        self.queued.insert(execution, key);
    }

    fn remove(&mut self, execution: ExecutionKey) {
        if let Some(key) = self.running.remove(&execution) {
            take_one(&mut self.users, &key.user);
            key.workflow.iter().for_each(|workflow| take_one(&mut self.workflows, workflow));
        }
        if let Some(workflow) = self.guests.remove(&execution) {
            take_one(&mut self.workflows, &workflow);
        }
        self.unqueue(execution);
    }

    fn unqueue(&mut self, execution: ExecutionKey) -> Option<ConcurrencyKey> {
        let key = self.queued.remove(&execution)?;
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
        let gone: Vec<_> = known.filter(|key| !found.contains(key) && !is_here(**key)).copied().collect();
        gone.iter().for_each(|execution| self.remove(*execution));
        let mut admitted_again = Vec::new();
        for row in rows.into_iter().filter(|row| !ended.contains(&row.key)) {
            if !has_place(&row) {
                let workflow = row.workflow_id.as_deref().map(Into::into);
                workflow.into_iter().for_each(|workflow| self.take_in(row.key, workflow));
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
            if let Some((organization, workflow)) = guest(&new_execution.start).filter(|_| is_counted_here) {
                let queue = self.queues.entry(organization.to_owned()).or_default();
                // Without a limit per workflow, its children need not be counted.
                if queue.bounds.is_none_or(|bounds| bounds.workflow.is_some()) {
                    queue.take_in(new_execution.execution, workflow.into());
                    self.organizations.insert(new_execution.execution, organization.to_owned());
                }
            }
            return Some(new_execution);
        };
        let (execution, ticket) = (new_execution.execution, new_execution.ticket);
        // The same start message was received again.
        if let Some(queue) = self.organizations.get(&execution).and_then(|organization| self.queues.get(organization)) {
            new_execution.start.queue = queue.queued.get(&execution).map(|_| Queue::Admission);
            return Some(new_execution);
        }
        if !is_counted_here {
            new_execution.start.queue = Some(Queue::Admission);
            return Some(new_execution);
        }
        let queue = self.queues.entry(organization.clone()).or_default();
        queue.is_used = true;
        if queue.bounds.is_none() {
            queue.want_read();
            if ticket.is_some() {
                queue.deferred.push(*new_execution);
                return None;
            }
        }
        let key = ConcurrencyKey::of_start(&new_execution.start);
        new_execution.start.queue = queue.full(&key);
        match new_execution.start.queue {
            Some(_) => queue.enqueue(execution, key),
            None => queue.run(execution, key),
        }
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
        let both = self.queues.values().map(|queue| [queue.running.len(), queue.queued.len()]);
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

    /// Requests a read of all known organizations. Unused and empty ones are forgotten.
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
            Ok((bounds, rows)) => {
                queue.bounds = Some(bounds);
                let counted: Vec<_> = rows.iter().map(|row| row.key).filter(|key| !read.ended.contains(key)).collect();
                let (again, gone) = queue.compare(rows, &read.ended, is_here);
                gone.iter().for_each(|key| drop(self.organizations.remove(key)));
                self.organizations.extend(counted.into_iter().map(|key| (key, organization.to_owned())));
                actions.admit = again;
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

#[cfg(test)]
mod tests;
