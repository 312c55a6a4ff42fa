//! An execution in memory: its state, and what waits for the next commit.

use std::sync::Arc;

use mainspring_kernel::{
    decide::Action,
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    plan::Plan,
    record::Ending,
    state::{ExecutionStatus, State},
    stored::{Head, StoredFrame},
};
use mainspring_store::{ExecutionRow, Expected, Late, Part, RowChange, StoredPlan};

use crate::{
    load::Journal,
    shard::words::{Moment, Queued},
};

/// An execution's place in the shard.
#[derive(Debug)]
pub(super) enum Cell {
    /// Its journal is being read; what came meanwhile.
    Loading(Vec<Queued>),
    /// It is in memory.
    Live(Box<Live>),
}

/// An execution in memory.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) state: State,
    /// The hash of the last frame, durable or not.
    pub(super) head: Hash,
    pub(super) next_sequence: u64,
    /// What the store has.
    pub(super) durable: Option<Expected>,
    /// What waits for the next commit.
    pub(super) draft: Draft,
    /// Whether a part of it is on its way to the disk.
    pub(super) in_flight: bool,
    /// The status in the catalogue.
    pub(super) status: ExecutionStatus,
}

/// What turns have decided and no commit has taken yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) frames: Vec<StoredFrame>,
    pub(super) row: Option<ExecutionRow>,
    pub(super) plan: Option<StoredPlan>,
    pub(super) late: Vec<Late>,
    /// The inputs that it came of, to be taken in again if it is lost.
    pub(super) queued: Vec<(Queued, bool)>,
    pub(super) actions: Vec<Action>,
    pub(super) moments: Vec<Moment>,
    /// Attempts whose receipts are among the frames.
    pub(super) settled: Vec<(String, u32)>,
}

impl Cell {
    /// A new execution.
    pub(super) fn fresh(key: ExecutionKey, plan: Arc<Plan>, stored: Option<StoredPlan>, row: ExecutionRow) -> Self {
        Self::Live(Box::new(Live {
            state: State::new(key, plan),
            head: Hash::default(),
            next_sequence: 0,
            durable: None,
            draft: Draft { row: Some(row), plan: stored, ..Draft::default() },
            in_flight: false,
            status: ExecutionStatus::Pending,
        }))
    }

    /// One that was read back.
    pub(super) fn loaded(journal: Journal) -> Self {
        let Journal { state, head } = journal;
        Self::Live(Box::new(Live {
            status: state.status(),
            state,
            head: head.hash,
            next_sequence: head.sequence + 1,
            durable: Some(Expected { sequence: head.sequence, hash: head.hash }),
            draft: Draft::default(),
            in_flight: false,
        }))
    }
}

impl Live {
    /// The part of a batch that makes the draft true; `None` if there is nothing to write.
    pub(super) fn part(&mut self, partition: u32, sealing: &[u8; 32]) -> Option<Part> {
        let draft = &mut self.draft;
        let consumed: Vec<_> = draft.queued.iter().filter_map(|(queued, _)| queued.letter.clone()).collect();
        if draft.frames.is_empty() && draft.late.is_empty() && (consumed.is_empty() || self.durable.is_none()) {
            return None;
        }
        let status = self.state.status();
        let change = (draft.row.is_none() && status != self.status).then(|| change(&self.state, status));
        let row = draft.row.take().map(|row| ended_row(row, &self.state, status));
        self.status = status;
        Some(Part {
            execution: self.state.key,
            partition,
            expected: self.durable,
            frames: std::mem::take(&mut draft.frames),
            head: Head::sealed(sealing, self.state.key, self.next_sequence.saturating_sub(1), self.head),
            wake_at: self.state.wake_at(),
            row,
            change,
            plan: draft.plan.take(),
            consumed,
            letters: Vec::new(),
            late: std::mem::take(&mut draft.late),
        })
    }

    /// Whether nothing keeps it in memory: nothing is out, nothing waits to be written.
    pub(super) fn is_idle(&self) -> bool {
        !self.in_flight && self.draft.is_empty() && self.state.open_attempts.is_empty() && !self.state.is_split
    }
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.late.is_empty() && self.queued.is_empty()
    }

    pub(super) fn take(
        &mut self,
        stored: StoredFrame,
        frame: Frame,
        queued: Queued,
        actions: Vec<Action>,
        state: &State,
    ) {
        if let Input::Receipt { instance, attempt, .. } = &queued.input {
            self.settled.push((instance.name(&state.plan), *attempt));
        }
        self.moments.push(Moment {
            execution: state.key,
            sequence: frame.sequence,
            now: frame.now,
            records: frame.records,
            status: state.status(),
        });
        self.frames.push(stored);
        self.actions.extend(actions);
        self.queued.push((queued, true));
    }

    /// A receipt that counts for nothing is kept beside the journal; anything else that changes nothing is only answered.
    pub(super) fn take_without_frame(&mut self, now: u64, queued: Queued) {
        if let Input::Receipt { outcome, .. } = &queued.input
            && *outcome != Outcome::Interrupted
        {
            self.late.push(Late { at: now, body: queued.input.encode() });
        }
        self.queued.push((queued, false));
    }

    pub(super) fn into_queued(self) -> Vec<Queued> {
        self.queued.into_iter().map(|(queued, _)| queued).collect()
    }
}

fn change(state: &State, status: ExecutionStatus) -> RowChange {
    RowChange {
        status: status.name().into(),
        outcome: outcome(state, status),
        error: error(state),
        completed_at: state.ended_at,
    }
}

/// An execution that ended in the commit that began it has one row, with its end.
fn ended_row(row: ExecutionRow, state: &State, status: ExecutionStatus) -> ExecutionRow {
    ExecutionRow {
        status: status.name().into(),
        outcome: outcome(state, status),
        error: error(state),
        completed_at: state.ended_at,
        ..row
    }
}

fn outcome(state: &State, status: ExecutionStatus) -> Option<String> {
    (status == ExecutionStatus::Completed && state.with_failures).then(|| "with_failures".into())
}

fn error(state: &State) -> Option<String> {
    match state.ending.as_ref()? {
        Ending::Completed { .. } => None,
        Ending::Failed { fault, .. } => Some(fault.code.clone()),
        Ending::Cancelled { reason } => Some(reason.clone()),
    }
}
