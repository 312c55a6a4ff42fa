//! Who may begin: counts what runs of each organisation, and lets what waits begin in the order of its arrival.
//!
//! A machine without I/O, driven by the rim. What it knows of an organisation it has from the store, and follows by what
//! begins and ends here; what it was not told of it finds at the next look.

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
    request::CHILD,
    shard::{Submission, Ticket},
};

/// How many executions of an organisation may run at a time. Those that others have started and wait for run in the place
/// of the first of their family; those that nobody waits for have one of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of each of its members.
    pub user: u32,
    /// In all.
    pub organization: u32,
    /// Of each of its workflows; `None` for as many as there are.
    pub workflow: Option<u32>,
    /// How many may have not ended, whether they run or wait, those included that others have started. Where there are so
    /// many, a start is refused, and a step that starts another execution and waits for it fails.
    pub live: u32,
}

/// Who knows the bounds of organisations.
pub trait Limits: Send + Sync {
    /// Those in force. An error is a sentence for people.
    fn of(&self, store: &dyn Store, organization: &str) -> Result<Bounds, String>;
}

/// What is read of an organisation: the bounds, and what of it has not ended.
pub(crate) type Found = Result<(Bounds, Vec<ExecutionRow>), String>;

/// Rows read at a time.
const ROWS_AT_A_TIME: usize = 1_000;

/// Statuses of what has not ended.
pub(crate) const UNFINISHED: [ExecutionStatus; 4] = [
    ExecutionStatus::Pending,
    ExecutionStatus::Running,
    ExecutionStatus::WaitingApproval,
    ExecutionStatus::CancelRequested,
];

/// Reads what is to be known of an organisation.
pub(crate) fn find(store: &dyn Store, limits: &dyn Limits, organization: &str) -> Found {
    let filter = Filter {
        organization: Some(organization.into()),
        statuses: UNFINISHED.map(|status| status.name().into()).into(),
        // Nothing goes on of what is set aside, and nobody knows whether it ever will.
        is_going_on: true,
        ..Filter::default()
    };
    let bounds = limits.of(store, organization)?;
    let rows = all(store, &filter).map_err(|error| error.to_string())?;
    let matters = |row: &ExecutionRow| has_place(row) || bounds.workflow.is_some();
    Ok((bounds, rows.into_iter().filter(matters).collect()))
}

/// Whether an execution that runs has a place of its own.
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

/// The partition whose holder counts what runs of an organisation.
pub fn partition_of_organization(organization: &str, partitions: u32) -> u32 {
    let hash = Hash::of(organization.as_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&hash.0[..16]);
    partition_of(ExecutionKey(key), partitions)
}

/// The organisation in whose bounds an execution begins; `None` for one that belongs to none, or that runs in the place of
/// the one that waits for it.
pub(crate) fn counted(start: &Start) -> Option<&str> {
    let is_waited_for = start.lineage.as_ref().is_some_and(|lineage| lineage.parent.is_some());
    start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).filter(|_| !is_waited_for)
}

/// The organisation and the workflow of an execution that runs in the place of the one that waits for it: it begins at once,
/// whatever runs, but counts among those of its workflow. `None` for one that has a place of its own, or of which no
/// catalogue knows the workflow.
fn guest(start: &Start) -> Option<(&str, &str)> {
    start.lineage.as_ref().filter(|lineage| lineage.parent.is_some())?;
    let said = |key| start.trigger.get(key).and_then(Value::as_text);
    Some((said(ORGANIZATION_IN_TRIGGER)?, said(WORKFLOW_IN_TRIGGER)?))
}

/// The organisation among whose executions a start is counted, with or without a place of its own.
pub(crate) fn organization_of(start: &Start) -> Option<&str> {
    counted(start).or_else(|| guest(start).map(|(organization, _)| organization))
}

/// The organisation of one that has begun and has a place, where with these records it comes to wait for that or ends.
pub(crate) fn place_of(state: &State, records: &[Record]) -> Option<String> {
    let matters = |record: &Record| matches!(record, Record::Queued { .. } | Record::Ended { .. });
    let start = state.start.as_ref().filter(|_| records.iter().any(matters) && state.lineage.parent.is_none())?;
    start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).map(Into::into)
}

/// Whose an execution is, as far as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    user: Arc<str>,
    workflow: Option<Arc<str>>,
}

impl Lane {
    fn of_start(start: &Start) -> Self {
        let workflow = start.trigger.get(WORKFLOW_IN_TRIGGER).and_then(Value::as_text);
        Self { user: start.by.as_str().into(), workflow: workflow.map(Into::into) }
    }

    fn of_row(row: &ExecutionRow) -> Self {
        let user = row.initiator_user_id.as_deref().unwrap_or_default();
        Self { user: user.into(), workflow: row.workflow_id.as_deref().map(Into::into) }
    }
}

/// What is known of an organisation.
#[derive(Debug, Default)]
struct Desk {
    /// `None` until the store was read.
    bounds: Option<Bounds>,
    running: BTreeMap<ExecutionKey, Lane>,
    /// Those that run in the place of another one, with their workflows.
    guests: BTreeMap<ExecutionKey, Arc<str>>,
    users: BTreeMap<Arc<str>, u32>,
    workflows: BTreeMap<Arc<str>, u32>,
    queued: BTreeMap<ExecutionKey, Lane>,
    lanes: BTreeMap<Lane, BTreeSet<ExecutionKey>>,
    /// Starts whose callers wait until the store was read.
    parked: Vec<Submission>,
    look: Look,
    is_used: bool,
    /// How often it was asked whether there is room.
    #[cfg(test)]
    asked: std::cell::Cell<u32>,
}

/// How a look into the store stands.
#[derive(Debug, Default)]
enum Look {
    #[default]
    None,
    Wanted,
    Out(Out),
}

/// A look that is on its way.
#[derive(Debug, Default)]
struct Out {
    /// What has ended since it began.
    ended: BTreeSet<ExecutionKey>,
    /// Whether another is wanted after it.
    again: bool,
    /// Whether what it finds is not what counts any more.
    is_stale: bool,
}

impl Desk {
    /// What is full for one more; `None` if there is room.
    fn full(&self, lane: &Lane) -> Option<Queue> {
        #[cfg(test)]
        self.asked.update(|asked| asked + 1);
        let Some(bounds) = self.bounds else { return Some(Queue::Admission) };
        let of_user = self.users.get(&lane.user).copied().unwrap_or_default();
        let of_workflow = lane.workflow.as_ref().and_then(|workflow| self.workflows.get(workflow)).copied();
        if of_user >= bounds.user {
            return Some(Queue::User);
        }
        if self.running.len() >= bounds.organization as usize {
            return Some(Queue::Organization);
        }
        let is_full = lane.workflow.is_some() && bounds.workflow.is_some_and(|most| of_workflow.unwrap_or(0) >= most);
        is_full.then_some(Queue::Workflow)
    }

    fn run(&mut self, execution: ExecutionKey, lane: Lane) {
        if self.running.contains_key(&execution) {
            return;
        }
        *self.users.entry(lane.user.clone()).or_default() += 1;
        if let Some(workflow) = &lane.workflow {
            *self.workflows.entry(workflow.clone()).or_default() += 1;
        }
        self.running.insert(execution, lane);
    }

    /// One that runs in the place of another one.
    fn take_in(&mut self, execution: ExecutionKey, workflow: Arc<str>) {
        if self.guests.insert(execution, workflow.clone()).is_none() {
            *self.workflows.entry(workflow).or_default() += 1;
        }
    }

    fn queue(&mut self, execution: ExecutionKey, lane: Lane) {
        self.unqueue(execution);
        self.lanes.entry(lane.clone()).or_default().insert(execution);
        self.queued.insert(execution, lane);
    }

    fn remove(&mut self, execution: ExecutionKey) {
        if let Some(lane) = self.running.remove(&execution) {
            take_one(&mut self.users, &lane.user);
            lane.workflow.iter().for_each(|workflow| take_one(&mut self.workflows, workflow));
        }
        if let Some(workflow) = self.guests.remove(&execution) {
            take_one(&mut self.workflows, &workflow);
        }
        self.unqueue(execution);
    }

    fn unqueue(&mut self, execution: ExecutionKey) -> Option<Lane> {
        let lane = self.queued.remove(&execution)?;
        let here = self.lanes.get_mut(&lane)?;
        here.remove(&execution);
        if here.is_empty() {
            self.lanes.remove(&lane);
        }
        Some(lane)
    }

    /// Those that wait and may begin, each the first of those for which there is room. Whoever begins takes room from the
    /// others and gives none: a lane that is full is full for all behind its first, and each is asked for once.
    fn admit(&mut self) -> Vec<ExecutionKey> {
        let first_of =
            |(lane, waiting): (&Lane, &BTreeSet<ExecutionKey>)| Some(Reverse((*waiting.first()?, lane.clone())));
        let mut firsts: BinaryHeap<_> = self.lanes.iter().filter_map(first_of).collect();
        let mut admitted = Vec::new();
        while let Some(Reverse((first, lane))) = firsts.pop() {
            match self.full(&lane) {
                // For nobody.
                Some(Queue::Admission | Queue::Organization) => break,
                Some(Queue::User | Queue::Workflow) => continue,
                None => {}
            }
            self.unqueue(first);
            let next = self.lanes.get(&lane).and_then(BTreeSet::first);
            firsts.extend(next.map(|next| Reverse((*next, lane.clone()))));
            self.run(first, lane);
            admitted.push(first);
        }
        admitted
    }

    fn want_look(&mut self) {
        match &mut self.look {
            Look::Out(out) => out.again = true,
            look => *look = Look::Wanted,
        }
    }

    /// What the store has, and of what it does not say yet what is known here. Gives those to whom it is said again that
    /// they may begin, and those that are counted no more.
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
            let (execution, lane) = (row.key, Lane::of_row(&row));
            let waits = row.status == ExecutionStatus::Pending.name();
            match (waits, self.running.contains_key(&execution)) {
                // The word was lost, or is still on its way: the second of them changes nothing.
                (true, true) => admitted_again.push(execution),
                (true, false) => self.queue(execution, lane),
                (false, _) => {
                    self.unqueue(execution);
                    self.run(execution, lane);
                }
            }
        }
        (admitted_again, gone)
    }

    fn is_empty(&self) -> bool {
        self.running.is_empty()
            && self.queued.is_empty()
            && self.guests.is_empty()
            && self.parked.is_empty()
            && matches!(self.look, Look::None)
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

/// What is to be done now.
#[derive(Debug, Default)]
pub(crate) struct Turnout {
    /// Starts that begin, in a queue or not.
    pub begin: Vec<Submission>,
    /// Callers who are told that it could not be found out.
    pub refuse: Vec<(Ticket, String)>,
    /// Executions that wait no more.
    pub admit: Vec<ExecutionKey>,
}

/// Everything that is counted at a node.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    desks: BTreeMap<String, Desk>,
    /// The organisations of what is counted here.
    organizations: HashMap<ExecutionKey, String>,
    /// Starts that are counted here and of which it is not known yet whether they are durable.
    starting: BTreeMap<Ticket, ExecutionKey>,
}

impl Admission {
    /// A start of an organisation's: with a queue if there is no room for it now. Nothing if it has to wait until the store
    /// was read.
    pub(crate) fn start(&mut self, mut submission: Box<Submission>, is_counted_here: bool) -> Option<Box<Submission>> {
        let Some(organization) = counted(&submission.start).map(str::to_owned) else {
            if let Some((organization, workflow)) = guest(&submission.start).filter(|_| is_counted_here) {
                let desk = self.desks.entry(organization.to_owned()).or_default();
                // Where workflows have no bounds, nobody asks how many of them run.
                if desk.bounds.is_none_or(|bounds| bounds.workflow.is_some()) {
                    desk.take_in(submission.execution, workflow.into());
                    self.organizations.insert(submission.execution, organization.to_owned());
                }
            }
            return Some(submission);
        };
        let (execution, ticket) = (submission.execution, submission.ticket);
        // The same letter again.
        if let Some(desk) = self.organizations.get(&execution).and_then(|organization| self.desks.get(organization)) {
            submission.start.queue = desk.queued.get(&execution).map(|_| Queue::Admission);
            return Some(submission);
        }
        if !is_counted_here {
            submission.start.queue = Some(Queue::Admission);
            return Some(submission);
        }
        let desk = self.desks.entry(organization.clone()).or_default();
        desk.is_used = true;
        if desk.bounds.is_none() {
            desk.want_look();
            if ticket.is_some() {
                desk.parked.push(*submission);
                return None;
            }
        }
        let lane = Lane::of_start(&submission.start);
        submission.start.queue = desk.full(&lane);
        match submission.start.queue {
            Some(_) => desk.queue(execution, lane),
            None => desk.run(execution, lane),
        }
        self.organizations.insert(execution, organization);
        ticket.map(|ticket| self.starting.insert(ticket, execution));
        Some(submission)
    }

    /// Whoever waited for a start was answered. If it did not begin, its place is free: gives those that may begin in it.
    pub(crate) fn answered(&mut self, ticket: Ticket, has_begun: bool) -> Vec<ExecutionKey> {
        let starting = self.starting.remove(&ticket).filter(|_| !has_begun);
        starting.map(|execution| self.ended(execution)).unwrap_or_default()
    }

    /// How many have a place here, and how many wait for one.
    pub(crate) fn census(&self) -> [usize; 2] {
        let both = self.desks.values().map(|desk| [desk.running.len(), desk.queued.len()]);
        both.fold([0; 2], |[running, waiting], [more, also]| [running + more, waiting + also])
    }

    /// An execution has ended, never was, or is set aside. Gives those that may begin in its place.
    pub(crate) fn ended(&mut self, execution: ExecutionKey) -> Vec<ExecutionKey> {
        // Whose it is may be what is being looked for.
        for desk in self.desks.values_mut() {
            if let Look::Out(out) = &mut desk.look {
                out.ended.insert(execution);
            }
        }
        let Some(organization) = self.organizations.remove(&execution) else { return Vec::new() };
        let Some(desk) = self.desks.get_mut(&organization) else { return Vec::new() };
        desk.remove(execution);
        desk.admit()
    }

    /// An organisation is to be looked at.
    pub(crate) fn want(&mut self, organization: &str) {
        self.desks.entry(organization.into()).or_default().want_look();
    }

    /// Organisations whose partition is one of these are to be looked at.
    pub(crate) fn want_those_of(&mut self, is_meant: impl Fn(&str) -> bool) {
        let meant = self.desks.iter_mut().filter(|(organization, _)| is_meant(organization));
        meant.for_each(|(_, desk)| desk.want_look());
    }

    /// The bounds of an organisation are others by now: nothing begins by those that are known, or are being read.
    pub(crate) fn bounds_changed(&mut self, organization: &str) {
        let Some(desk) = self.desks.get_mut(organization) else { return };
        desk.bounds = None;
        desk.want_look();
        if let Look::Out(out) = &mut desk.look {
            out.is_stale = true;
        }
    }

    /// All that are known are to be looked at; those of which nothing was heard since the last time are forgotten.
    pub(crate) fn want_all(&mut self) {
        self.desks.retain(|_, desk| std::mem::take(&mut desk.is_used) || !desk.is_empty());
        self.desks.values_mut().for_each(Desk::want_look);
    }

    /// The organisations to look at now. What comes of it is to be told by [`looked`](Self::looked).
    pub(crate) fn looks(&mut self) -> Vec<String> {
        let wanted = self.desks.iter_mut().filter(|(_, desk)| matches!(desk.look, Look::Wanted));
        wanted
            .map(|(organization, desk)| {
                desk.look = Look::Out(Out::default());
                organization.clone()
            })
            .collect()
    }

    /// What a look has found. `is_here` says of what is not in the store whether it may be on its way there.
    pub(crate) fn looked(
        &mut self,
        organization: &str,
        found: Found,
        is_here: impl Fn(ExecutionKey) -> bool,
    ) -> Turnout {
        let mut turnout = Turnout::default();
        let Some(desk) = self.desks.get_mut(organization) else { return turnout };
        let Look::Out(out) = std::mem::take(&mut desk.look) else { return turnout };
        if out.again {
            desk.look = Look::Wanted;
        }
        match found {
            // Another look follows.
            _ if out.is_stale => return turnout,
            Err(why) => {
                let parked = std::mem::take(&mut desk.parked).into_iter();
                turnout.refuse = parked.filter_map(|start| Some((start.ticket?, why.clone()))).collect();
                return turnout;
            }
            Ok((bounds, rows)) => {
                desk.bounds = Some(bounds);
                let counted: Vec<_> = rows.iter().map(|row| row.key).filter(|key| !out.ended.contains(key)).collect();
                let (again, gone) = desk.compare(rows, &out.ended, is_here);
                gone.iter().for_each(|key| drop(self.organizations.remove(key)));
                self.organizations.extend(counted.into_iter().map(|key| (key, organization.to_owned())));
                turnout.admit = again;
            }
        }
        turnout.admit.extend(desk.admit());
        for start in std::mem::take(&mut desk.parked) {
            turnout.begin.extend(self.start(Box::new(start), true).map(|start| *start));
        }
        turnout
    }

    /// Organisations that others count from now on are forgotten; their starts begin in a queue.
    pub(crate) fn keep(&mut self, is_counted_here: impl Fn(&str) -> bool) -> Vec<Submission> {
        let gone = self.desks.extract_if(.., |organization, _| !is_counted_here(organization));
        let parked: Vec<_> = gone.flat_map(|(_, desk)| desk.parked).collect();
        let desks = &self.desks;
        self.organizations.retain(|_, organization| desks.contains_key(organization));
        parked.into_iter().filter_map(|start| self.start(Box::new(start), false)).map(|start| *start).collect()
    }
}

#[cfg(test)]
mod tests;
