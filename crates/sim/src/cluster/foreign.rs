//! Foreign rows: frames, heads and inbox messages that an intruder writes into the store. The engine must reject them.
//!
//! The intruder can write every table but does not have the key of the installation.

use std::collections::BTreeSet;

use mainspring_engine::inbox;
use mainspring_kernel::{
    decide::{Decided, decide},
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::{Input, Start},
    key::ExecutionKey,
    plan::Decision,
    state::State,
    stored_frame::{Head, StoredFrame},
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, EnqueueRequest, HeadRow, InboxMessage, Part, Refusal, partition_of};

use super::{Cluster, ClusterEvent, rare_faults::RareFault};
use crate::fixture::keys;

/// A key that is not the installation's.
const FOREIGN_KEY: [u8; 32] = [0x0e; 32];

/// The user name in foreign inputs.
const INTRUDER: &str = "intruder";

/// The reason, value and id prefix of foreign messages and receipts.
const FORGED: &str = "forged";

/// Average interval between two foreign rows, in milliseconds.
const EVERY_MS: u64 = 2_000;

/// Percent of foreign rows for parents of executions that have such rows, and percent of the rest for children. A
/// quarantine in an execution tree is the interesting case.
const OF_PARENTS: u64 = 40;
const OF_CHILDREN: u64 = 50;

/// Commits of one execution that may be refused for its head. Several commits may be in flight at several nodes when
/// the head changes; more refusals are an endless retry.
const REFUSED_MAX: u32 = 4;

pub(super) const FRAME: &str = "foreign frame behind the head";
pub(super) const FRAME_AND_HEAD: &str = "foreign frame with a head";
pub(super) const SEAL: &str = "head with a foreign seal";
pub(super) const ENDED: &str = "head that says ended";
pub(super) const WAKE_AT: &str = "head that is not due";
pub(super) const PARTITION: &str = "head in another partition";
pub(super) const MESSAGE: &str = "foreign message";
pub(super) const START: &str = "foreign start";

/// A row that was written or changed, with the data to undo it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    /// A frame with this sequence number follows the head.
    Frame(u64),
    /// The head was replaced, possibly over a frame with this sequence number.
    Head { foreign: Head, was: Head, frame: Option<u64> },
    /// The head states that the execution has ended. The number counts refused commits.
    Ended(u32),
    /// The head, at this frame, states that no timer is due; the second field is the previous wake-up time.
    WakeAt(Head, Option<u64>),
    /// The head is in another partition. The number counts refused commits.
    Partition(u32),
}

impl Row {
    /// Returns whether verification of the journal fails, given the current head. A replaced head disappears when a
    /// node that has the execution in memory writes the next one.
    pub(super) fn breaks_journal(&self, now: Option<&Head>) -> bool {
        match self {
            Self::Frame(_) => true,
            Self::Head { foreign, .. } => now == Some(foreign),
            _ => false,
        }
    }
}

impl Cluster {
    /// Writes one foreign row.
    pub(super) fn write_foreign_row(&mut self) -> Result<(), String> {
        if self.is_healed() {
            return Ok(());
        }
        let next = 1 + self.rare_faults.others.below(2 * EVERY_MS);
        self.at(next, ClusterEvent::ForeignRow);
        let Some(execution) = self.execution_to_attack() else { return Ok(()) };
        let Some(head) = self.store.head(execution).map_err(|error| error.to_string())? else { return Ok(()) };
        if head.quarantined.is_some() || head.ended {
            return Ok(());
        }
        match self.rare_faults.others.below(9) {
            0 => self.write_frame(execution, &head, false),
            1 => self.write_frame(execution, &head, true),
            2 => {
                let foreign = Head::sealed(&FOREIGN_KEY, execution, head.head.sequence, head.head.hash);
                self.store.change_head(execution, |row| row.head = foreign);
                self.wrote(execution, SEAL, Row::Head { foreign, was: head.head, frame: None });
            }
            3 => {
                self.store.change_head(execution, |row| row.ended = true);
                self.wrote(execution, ENDED, Row::Ended(0));
            }
            4 => {
                self.store.change_head(execution, |row| row.wake_at = None);
                self.wrote(execution, WAKE_AT, Row::WakeAt(head.head, head.wake_at));
            }
            5 => {
                let partitions = self.store.partitions().map_err(|error| error.to_string())?;
                let other = (head.partition + 1) % partitions;
                if other != head.partition {
                    self.store.change_head(execution, |row| row.partition = other);
                    self.wrote(execution, PARTITION, Row::Partition(0));
                }
            }
            6 => self.write_start()?,
            _ => self.write_message(execution)?,
        }
        Ok(())
    }

    /// Chooses the execution of the next foreign row. Parents and children are chosen more often than by chance: a
    /// quarantine also affects the executions that wait.
    fn execution_to_attack(&mut self) -> Option<ExecutionKey> {
        let rows = &self.rare_faults.rows;
        let is_free = |state: &&State| !rows.contains_key(&state.key) && self.allows_quarantine(state);
        let free: Vec<&State> = self.commits.open_executions().filter(is_free).collect();
        let parent = |key: &ExecutionKey| Some(self.commits.state(*key)?.lineage.parent.as_ref()?.execution);
        let drawn: BTreeSet<ExecutionKey> = rows.keys().filter_map(parent).collect();
        let keys = |is_wanted: &dyn Fn(&State) -> bool| -> Vec<ExecutionKey> {
            free.iter().filter(|state| is_wanted(state)).map(|state| state.key).collect()
        };
        let parents = keys(&|state| drawn.contains(&state.key));
        let children = keys(&|state| state.lineage.parent.is_some());
        let others = keys(&|state| state.lineage.parent.is_none());
        let rng = &mut self.rare_faults.others;
        let chosen = [(parents, OF_PARENTS), (children, OF_CHILDREN), (others, 100)]
            .into_iter()
            .find(|(keys, percent)| !keys.is_empty() && rng.chance(*percent));
        chosen.map(|(keys, _)| *rng.pick(&keys))
    }

    fn wrote(&mut self, execution: ExecutionKey, what: &'static str, row: Row) {
        self.progress.coverage.add_fault(what);
        self.rare_faults.rows.insert(execution, row);
        self.rare_faults.may_be_quarantined.insert(execution);
    }

    /// Writes a frame that continues the journal with an input that no client sent.
    fn write_frame(&mut self, execution: ExecutionKey, row: &HeadRow, with_head: bool) {
        let Some((stored, hash)) = self.commits.state(execution).and_then(|state| forged(state, &row.head)) else {
            return;
        };
        let sequence = stored.sequence;
        self.store.change_frames(execution, |frames| frames.push(stored));
        if !with_head {
            return self.wrote(execution, FRAME, Row::Frame(sequence));
        }
        let foreign = Head::sealed(&FOREIGN_KEY, execution, sequence, hash);
        self.store.change_head(execution, |row| row.head = foreign);
        self.wrote(execution, FRAME_AND_HEAD, Row::Head { foreign, was: row.head, frame: Some(sequence) });
    }

    /// Writes a message with a foreign seal, with the seal of another execution, or without a seal.
    fn write_message(&mut self, execution: ExecutionKey) -> Result<(), String> {
        let Some(state) = self.commits.state(execution) else { return Ok(()) };
        let input = foreign_input(state);
        self.progress.coverage.add_fault(MESSAGE);
        self.post_foreign(execution, &input)
    }

    fn write_start(&mut self) -> Result<(), String> {
        let number = self.rare_faults.others.below(u64::from(self.settings.size.executions)) as u32;
        let request = self.workflows.request(number)?;
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&self.rare_faults.others.next().to_be_bytes());
        let execution = ExecutionKey::new(self.now, entropy);
        let start = Start { by: INTRUDER.into(), ..request.start(execution) };
        self.rare_faults.forged_starts.insert(execution);
        self.progress.coverage.add_fault(START);
        self.post_foreign(execution, &Input::Start(Box::new(start)))
    }

    fn post_foreign(&mut self, execution: ExecutionKey, input: &Input) -> Result<(), String> {
        let partitions = self.store.partitions().map_err(|error| error.to_string())?;
        let partition = partition_of(execution, partitions);
        let of_another = ExecutionKey(Hash::of(&execution.0).0[..16].try_into().unwrap_or_default());
        let body = match self.rare_faults.others.below(3) {
            0 => inbox::message(&FOREIGN_KEY, execution, input, partitions, self.now).body,
            1 => inbox::message(&keys().sealing, of_another, input, partitions, self.now).body,
            _ => input.encode(),
        };
        self.rare_faults.messages += 1;
        let id = format!("{FORGED} {}", self.rare_faults.messages);
        let message = InboxMessage { execution, partition, id, body, enqueued_at: self.now };
        self.store.enqueue(&EnqueueRequest::of(&message, partitions)).map_err(|error| error.to_string())?;
        self.notify_nodes(&[partition]);
        Ok(())
    }

    /// Checks that a message with a wrong seal is a forged one.
    pub(super) fn check_forged(&self, id: &str) -> Result<(), String> {
        match id.starts_with(FORGED) {
            true => Ok(()),
            false => Err(format!("the message `{id}` is rejected as forged")),
        }
    }

    /// Returns whether a foreign row has the primary key of a row in this commit.
    pub(super) fn has_row_in_the_way(&self, batch: &Batch) -> bool {
        batch.parts.iter().any(|part| match self.rare_faults.rows.get(&part.execution) {
            Some(Row::Frame(sequence)) => part.frames.iter().any(|frame| frame.sequence == *sequence),
            _ => false,
        })
    }

    /// Checks that no durable frame results from a foreign row.
    pub(super) fn check_foreign(&self, part: &Part) -> Result<(), String> {
        if !self.rare_faults.has(RareFault::ForeignRows) {
            return Ok(());
        }
        for stored in &part.frames {
            let (frame, _) = Frame::read(stored).map_err(|error| error.to_string())?;
            if self.rare_faults.forged_starts.contains(&part.execution) || is_foreign(&frame.input) {
                return Err(format!("{} acts on a forged message: {:?}", part.execution, frame.input));
            }
        }
        Ok(())
    }

    /// Counts refusals that are caused by a foreign head. The engine must detect the cause instead of retrying without
    /// end.
    pub(super) fn check_refused(&mut self, part: &Part, refusal: &Refusal) -> Result<(), String> {
        let refused = match (self.rare_faults.rows.get_mut(&part.execution), refusal) {
            (Some(Row::Partition(refused)), Refusal::Fence | Refusal::Partition)
            | (Some(Row::Ended(refused)), Refusal::Ended) => refused,
            _ => return Ok(()),
        };
        *refused += 1;
        match *refused > REFUSED_MAX {
            true => Err(format!("{} is refused repeatedly for its head, and is not quarantined", part.execution)),
            false => Ok(()),
        }
    }

    /// Undoes a foreign row, unless a later write has replaced it.
    pub(super) fn repair(&mut self, execution: ExecutionKey) -> Result<(), String> {
        let partitions = self.store.partitions().map_err(|error| error.to_string())?;
        let remove = |sequence: u64| {
            self.store.change_frames(execution, |frames| frames.retain(|frame| frame.sequence != sequence));
        };
        let is_open = self.commits.is_open(execution);
        match self.rare_faults.rows.remove(&execution) {
            None => {}
            Some(Row::Frame(sequence)) => remove(sequence),
            Some(Row::Head { foreign, was, frame }) => {
                self.store.change_head(execution, |row| {
                    if row.head == foreign {
                        row.head = was;
                    }
                });
                frame.into_iter().for_each(remove);
            }
            Some(Row::Ended(_)) => self.store.change_head(execution, |row| row.ended &= !is_open),
            Some(Row::WakeAt(head, was)) => self.store.change_head(execution, |row| {
                if row.head == head && !row.ended {
                    row.wake_at = was;
                }
            }),
            Some(Row::Partition(_)) => {
                self.store.change_head(execution, |row| row.partition = partition_of(execution, partitions));
            }
        }
        Ok(())
    }
}

/// Builds the frame that a cancel by the intruder would produce, and its hash.
fn forged(state: &State, head: &Head) -> Option<(StoredFrame, Hash)> {
    let (mut state, sequence) = (state.clone(), head.sequence + 1);
    let input = canceled();
    let now = state.now + 1;
    let Ok(Decided::Turn(turn)) = decide(&mut state, &input, now) else { return None };
    let frame =
        Frame { sequence, before: head.hash, now: state.now, input, results: turn.results, records: turn.records };
    Some(frame.store(&|_| [9; 16]))
}

fn canceled() -> Input {
    Input::Cancel { reason: FORGED.into(), by: INTRUDER.into() }
}

/// Builds a harmful input: a decision for an open gate, a receipt for an open attempt, or a cancel.
fn foreign_input(state: &State) -> Input {
    if let Some((instance, gate)) = state.open_gates().next() {
        let (instance, gate) = (instance.clone(), gate.number);
        return Input::Decide { instance, gate, decision: Decision::Approve, by: INTRUDER.into(), reason: Value::Null };
    }
    let out = state.open.attempts.iter().next();
    match out.and_then(|instance| Some((instance, state.steps.get(instance)?.attempt))) {
        Some((instance, attempt)) => {
            let outcome = Outcome::Done(FORGED.into());
            Input::Receipt { instance: instance.clone(), attempt, outcome }
        }
        None => canceled(),
    }
}

fn is_foreign(input: &Input) -> bool {
    match input {
        Input::Cancel { by, .. } | Input::Decide { by, .. } => by == INTRUDER,
        Input::Receipt { outcome: Outcome::Done(value), .. } => value.as_text() == Some(FORGED),
        Input::Start(start) => start.by == INTRUDER,
        _ => false,
    }
}
