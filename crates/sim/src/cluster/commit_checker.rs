//! The commit checker. It folds every durable frame and checks the rules: an epoch of a partition has one owner, an
//! execution has one journal, and at the end every journal is complete and verified.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_engine::{journal_loader::Loader, limits::CLOCK_APART_MS_MAX};
use mainspring_kernel::{
    decide::child_key,
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::Input,
    instance::Instance,
    journal::Fold,
    key::ExecutionKey,
    plan::{Plan, Work},
    record::Record,
    state::State,
};
use mainspring_store::prelude::*;
use mainspring_store::{ExecutionRow, Fence, InboxMessage, Part, ReadLimit, memory::MemoryStore, partition_of};

use super::journal_checker::JournalChecker;
use crate::ended_execution::EndedExecution;

/// Milliseconds for the request that reads the store's clock, plus the drift of the node's clock until the next one.
const CLOCK_READ_MS: u64 = 10;

/// The receipt of a call.
#[derive(Debug)]
pub(super) struct Receipt {
    pub(super) instance: Instance,
    pub(super) attempt: u32,
    pub(super) outcome: Outcome,
}

struct Journal {
    fold: Fold,
    attempts: BTreeSet<(Instance, u32)>,
    history: JournalChecker,
    /// Open gates, by step and number, as the parts have listed them in the store.
    listed_gates: BTreeSet<(String, u32)>,
    has_ended: bool,
}

/// The owner of a partition, as granted by the store.
#[derive(Debug, Clone, Default)]
struct Owner {
    epoch: u64,
    name: String,
}

/// All durable facts of a run.
pub(super) struct CommitChecker {
    plans: BTreeMap<Hash, Arc<Plan>>,
    is_given: bool,
    journals: BTreeMap<ExecutionKey, Journal>,
    owners: BTreeMap<u32, Owner>,
    /// The number of partitions before the last repartitioning, and their owners.
    before: (u32, BTreeMap<u32, Owner>),
    open: BTreeSet<ExecutionKey>,
    /// Executions that operators have ended by force.
    ended_by_force: BTreeSet<ExecutionKey>,
    frames: u64,
}

impl CommitChecker {
    /// `is_given` states that the workflows are an author's, which may have transforms and schemas.
    pub(super) fn new(plans: BTreeMap<Hash, Arc<Plan>>, is_given: bool) -> Self {
        Self {
            plans,
            is_given,
            journals: BTreeMap::new(),
            owners: BTreeMap::new(),
            before: (1, BTreeMap::new()),
            open: BTreeSet::new(),
            ended_by_force: BTreeSet::new(),
            frames: 0,
        }
    }

    /// Lists the results of the executions that clients started.
    pub(super) fn ended(&self) -> Vec<(ExecutionKey, EndedExecution)> {
        let roots = self.journals.iter().filter(|(_, journal)| journal.fold.state.lineage.depth == 0);
        roots.map(|(key, journal)| (*key, EndedExecution::of(&journal.fold.state))).collect()
    }

    pub(super) fn executions(&self) -> u64 {
        self.journals.len() as u64
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_open(&self, execution: ExecutionKey) -> bool {
        self.open.contains(&execution)
    }

    /// Returns whether an open parent, running or quarantined, waits for this execution.
    pub(super) fn is_waited_for(&self, child: ExecutionKey) -> bool {
        let parent = self.state(child).and_then(|state| state.lineage.parent.as_ref());
        let Some(state) = parent.and_then(|parent| self.state(parent.execution)) else { return false };
        let is_it = |instance: &Instance| {
            state.steps.get(instance).is_some_and(|step| child_key(state, instance, step.attempt) == child)
        };
        self.is_open(state.key) && state.open.attempts.iter().any(is_it)
    }

    /// Records an end by force, after which the execution has no further frames.
    pub(super) fn end_by_force(&mut self, execution: ExecutionKey) {
        self.open.remove(&execution);
        self.ended_by_force.insert(execution);
        if let Some(journal) = self.journals.get_mut(&execution) {
            journal.has_ended = true;
        }
    }

    pub(super) fn is_ended_by_force(&self, execution: ExecutionKey) -> bool {
        self.ended_by_force.contains(&execution)
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &State> {
        self.journals.values().map(|journal| &journal.fold.state)
    }

    pub(super) fn open_executions(&self) -> impl Iterator<Item = &State> {
        self.open.iter().map(|key| &self.journals[key].fold.state)
    }

    pub(super) fn state(&self, execution: ExecutionKey) -> Option<&State> {
        self.journals.get(&execution).map(|journal| &journal.fold.state)
    }

    pub(super) fn decide_version(&self, execution: ExecutionKey) -> u32 {
        self.state(execution).map_or(0, |state| state.decide_version)
    }

    pub(super) fn has_attempt(&self, execution: ExecutionKey, instance: &Instance, attempt: u32) -> bool {
        let journal = self.journals.get(&execution);
        journal.is_some_and(|journal| journal.attempts.contains(&(instance.clone(), attempt)))
    }

    pub(super) fn has_receipt(
        &self,
        execution: ExecutionKey,
        instance: &Instance,
        attempt: u32,
        outcome: &Outcome,
    ) -> bool {
        let journal = self.journals.get(&execution);
        journal.is_some_and(|journal| journal.history.has_receipt(instance, attempt, outcome))
    }

    /// Records partitions that a node has acquired. Their epochs must be new.
    pub(super) fn took(&mut self, name: &str, fences: &[Fence]) -> Result<(), String> {
        for fence in fences {
            let owner = self.owners.entry(fence.partition).or_default();
            if fence.epoch <= owner.epoch {
                return Err(format!("{name} was given {fence:?}, which {owner:?} had"));
            }
            *owner = Owner { epoch: fence.epoch, name: name.to_owned() };
        }
        Ok(())
    }

    pub(super) fn spread_anew(&mut self, store: &MemoryStore, partitions: u32) -> Result<(), String> {
        let before = store.partitions().map_err(|error| error.to_string())?;
        store.repartition(partitions).map_err(|error| error.to_string())?;
        if self.owners.values().any(|owner| !owner.name.is_empty()) {
            self.before = (before, self.owners.clone());
        }
        for owner in self.owners.values_mut() {
            *owner = Owner { epoch: owner.epoch + 1, name: String::new() };
        }
        Ok(())
    }

    /// Returns whether a node is the last owner of the partition of an execution. After repartitioning the former owner
    /// counts until a node acquires the partition.
    pub(super) fn owns(&self, name: &str, store: &MemoryStore, execution: ExecutionKey) -> Result<bool, String> {
        let partitions = store.partitions().map_err(|error| error.to_string())?;
        let owner = self.owners.get(&partition_of(execution, partitions)).filter(|owner| !owner.name.is_empty());
        let former = || self.before.1.get(&partition_of(execution, self.before.0));
        Ok(owner.or_else(former).is_some_and(|owner| owner.name == name))
    }

    /// Checks that no other node owns the partitions that a node believes to own when it acts. A node that has not
    /// noticed a repartitioning believes in other partitions, and no partition is granted before its lease has expired.
    pub(super) fn check_belief(&self, name: &str, spread: (u32, u32), held: &[u32]) -> Result<(), String> {
        let (believed, stored) = spread;
        let others = || self.owners.iter().filter(|(_, owner)| !owner.name.is_empty() && owner.name != name);
        let is_believed = |partition: &u32| believed != stored || held.contains(partition);
        match others().find(|(partition, _)| !held.is_empty() && is_believed(partition)) {
            Some((partition, owner)) => {
                Err(format!("{name} believes to hold {held:?}, and partition {partition} was given to {owner:?}"))
            }
            None => Ok(()),
        }
    }

    /// Checks that a part was written by the owner, under the newest epoch. A process whose name changed while the
    /// commit was in flight wrote it under its former name; `names` is the common prefix of its names.
    pub(super) fn check_owner(
        &self,
        names: &str,
        part: &Part,
        fence: Option<&Fence>,
        partition: u32,
    ) -> Result<(), String> {
        let owner = self.owners.get(&partition).cloned().unwrap_or_default();
        let is_newest = fence.is_some_and(|fence| fence.epoch == owner.epoch && fence.partition == partition);
        if is_newest && owner.name.starts_with(names) {
            return Ok(());
        }
        Err(format!("{names}… has written {} under {fence:?}, and partition {partition} has {owner:?}", part.execution))
    }

    /// Adds a durable part. `now_ms` is the store's clock: no frame may have a time that is ahead of it.
    pub(super) fn push(
        &mut self,
        part: &Part,
        now_ms: u64,
        check_receipt: impl Fn(&Receipt) -> Result<(), String>,
    ) -> Result<(), String> {
        let is_discard = part.expected.is_none() && part.frames.is_empty();
        if is_discard && self.journals.contains_key(&part.execution) {
            return Err(format!(
                "messages of {} are discarded although it exists: {:?}",
                part.execution, part.consumed
            ));
        }
        for stored in &part.frames {
            if stored.sequence == 0 {
                self.open_journal(part)?;
            }
            let journal = self.journals.get_mut(&part.execution);
            let journal = journal.ok_or_else(|| format!("{} has no beginning", part.execution))?;
            if journal.has_ended {
                return Err(format!("{} continues after its end", part.execution));
            }
            let frame = journal.fold.push(stored).map_err(|broken| format!("{}: {broken}", part.execution))?;
            if frame.now > now_ms + CLOCK_APART_MS_MAX + CLOCK_READ_MS {
                let ahead_ms = frame.now - now_ms;
                return Err(format!("{}: frame {} is written {ahead_ms} ms ahead", part.execution, frame.sequence));
            }
            journal.history.push(&frame).map_err(|broken| format!("{}: {broken}", part.execution))?;
            crate::invariants::check(&journal.fold.state)?;
            journal.note(&frame, &check_receipt)?;
            self.frames += 1;
        }
        let Some(journal) = self.journals.get_mut(&part.execution).filter(|_| !part.frames.is_empty()) else {
            return Ok(());
        };
        if journal.fold.state.end.ended_at.is_some() {
            journal.has_ended = true;
            self.open.remove(&part.execution);
        }
        journal.check_gates(part)
    }

    fn open_journal(&mut self, part: &Part) -> Result<(), String> {
        let (frame, _) = Frame::read(&part.frames[0]).map_err(|error| error.to_string())?;
        let Some(Record::Started { plan_hash, .. }) = frame.records.first() else {
            return Err(format!("{} does not begin", part.execution));
        };
        let plan = self.plans.get(plan_hash).ok_or("the plan of an execution is unknown")?.clone();
        let fold = Fold::new(part.execution, plan);
        let journal = Journal {
            fold,
            attempts: BTreeSet::new(),
            history: JournalChecker::of(self.is_given),
            listed_gates: BTreeSet::new(),
            has_ended: false,
        };
        if self.journals.insert(part.execution, journal).is_some() {
            return Err(format!("{} begins twice", part.execution));
        }
        self.open.insert(part.execution);
        Ok(())
    }

    /// Checks that a published frame is durable.
    pub(super) fn check_told(&self, execution: ExecutionKey, sequence: u64) -> Result<(), String> {
        let is_durable = self.journals.get(&execution).is_some_and(|journal| journal.fold.next_sequence() > sequence);
        if is_durable {
            Ok(())
        } else {
            Err(format!("frame {sequence} of {execution} is published and is not durable"))
        }
    }

    pub(super) fn check_end(&self, store: &MemoryStore, loader: &Loader) -> Result<(), String> {
        for (key, journal) in &self.journals {
            let row = store.execution(*key).map_err(|error| error.to_string())?;
            if self.is_ended_by_force(*key) {
                check_forced_end(*key, row.as_ref(), loader)?;
                continue;
            }
            let verified = loader.verify_with_columns(*key).map_err(|error| format!("{key}: {error}"))?;
            let (_, differences) = verified.ok_or(format!("{key} is gone"))?;
            if let Some(difference) = differences.first() {
                return Err(format!("{key}: {difference}"));
            }
            let status = journal.fold.state.status().name();
            if row.as_ref().is_none_or(|row| row.status != status || row.completed_at.is_none()) {
                return Err(format!("{key} is {status}, and the catalogue has {row:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn late(&self, store: &MemoryStore) -> Result<u64, String> {
        let mut late = 0;
        for key in self.journals.keys() {
            late += store.late_receipts(*key).map_err(|error| error.to_string())?.len() as u64;
        }
        Ok(late)
    }

    /// Describes the open executions and their inbox messages for a failure report.
    pub(super) fn describe_open(&self, store: &MemoryStore) -> String {
        let partitions: Vec<u32> = (0..store.partitions().unwrap_or(1)).collect();
        let messages = store.inbox(&partitions, 0, ReadLimit::of(5)).unwrap_or_default();
        let to = |message: &InboxMessage| {
            let status = self.state(message.execution).map_or("unknown", |state| state.status().name());
            format!("{} to {} ({status})", message.id, message.execution)
        };
        let messages: Vec<_> = messages.iter().map(|arrived| to(&arrived.message)).collect();
        let open: Vec<String> = self
            .open_executions()
            .take(3)
            .map(|state| {
                let name = state.plan.name.clone().unwrap_or_default();
                let steps: Vec<String> = state
                    .steps
                    .iter()
                    .filter(|(_, step)| !step.status.is_final())
                    .map(|(instance, step)| format!("{} {}", instance.name(&state.plan), step.status.name()))
                    .collect();
                format!("{name} {} [{}]", state.key, steps.join(", "))
            })
            .collect();
        format!("{} open: {}; messages: {messages:?}", self.open.len(), open.join("; "))
    }
}

/// Checks that an end by force is in the catalogue, with a sealed note about the operator.
fn check_forced_end(key: ExecutionKey, row: Option<&ExecutionRow>, loader: &Loader) -> Result<(), String> {
    let note = loader.forced_end(key).map_err(|error| format!("{key}: {error}"))?;
    if row.is_some_and(|row| row.status == "failed" && row.completed_at.is_some()) && note.is_some() {
        return Ok(());
    }
    Err(format!("{key} was ended by force, and the store has {row:?} and the note {note:?}"))
}

impl Journal {
    /// Checks after each part that the store lists exactly the open gates of the execution.
    fn check_gates(&mut self, part: &Part) -> Result<(), String> {
        for closed in &part.gates_closed {
            self.listed_gates.remove(closed);
        }
        self.listed_gates.extend(part.gates_opened.iter().map(|row| (row.step.clone(), row.gate)));
        let state = &self.fold.state;
        let open = state.open_gates().map(|(instance, gate)| (instance.name(&state.plan), gate.number)).collect();
        if self.listed_gates == open {
            return Ok(());
        }
        Err(format!("{}: the gates {open:?} wait, and the store lists {:?}", part.execution, self.listed_gates))
    }

    fn note(&mut self, frame: &Frame, check_receipt: &impl Fn(&Receipt) -> Result<(), String>) -> Result<(), String> {
        for record in &frame.records {
            if let Record::AttemptStarted { instance, attempt, .. } = record
                && !self.attempts.insert((instance.clone(), *attempt))
            {
                return Err(format!("attempt {attempt} of {instance:?} of {} begins twice", self.fold.state.key));
            }
        }
        let Input::Receipt { instance, attempt, outcome } = &frame.input else { return Ok(()) };
        let is_call = matches!(self.fold.state.plan.step(instance.step).work, Work::Effect { .. });
        if !is_call {
            return Ok(());
        }
        check_receipt(&Receipt { instance: instance.clone(), attempt: *attempt, outcome: outcome.clone() })
    }
}
