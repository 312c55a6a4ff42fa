//! An execution in memory: its state, and what waits for the next commit.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicBool},
};

use mainspring_kernel::{
    decide::Action,
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::{Input, Parent},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Ending,
    state::{ExecutionStatus, State},
    stored::{Head, StoredFrame},
};
use mainspring_store::{AuditEntry, ExecutionRow, Expected, Late, Part, RowChange, StoredPlan};

use crate::{
    admission::place_of,
    evaluator::tenant_of,
    load::Journal,
    shard::gates::Gates,
    shard::tenants::Tenant,
    shard::words::{Fate, Message, Moment, Queued, Ticket},
    span::{Span, SpanStart},
};

/// An execution's place in the shard.
#[derive(Debug)]
pub(super) enum Cell {
    /// Its journal is being read; what came meanwhile.
    Loading(Vec<Queued>),
    /// It is in memory.
    Live(Box<Live>),
    /// It is in memory, but for its state, which is out with a turn that waits for evaluations.
    Evaluating(Box<Evaluating>),
}

/// An execution whose state is out with a turn.
#[derive(Debug)]
pub(super) struct Evaluating {
    /// Names the evaluation.
    pub(super) number: u64,
    /// All but the state.
    pub(super) live: Live,
    /// The organization that it belongs to.
    pub(super) tenant: String,
    /// The input of the turn.
    pub(super) queued: Queued,
    /// What came meanwhile.
    pub(super) waiting: Vec<Queued>,
    /// Whether the execution's time is over.
    pub(super) is_overdue: bool,
    /// Tells the evaluation that nobody waits for it any more.
    pub(super) abandoned: Arc<AtomicBool>,
    /// What was found out meanwhile of attempts that this process did not begin.
    pub(super) adopted: Vec<(Instance, u32, Fate)>,
}

/// What the store is told of an execution beside its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) status: ExecutionStatus,
    pub(crate) wake_at: Option<u64>,
    pub(crate) outcome: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) completed_at: Option<u64>,
}

impl Summary {
    pub(crate) fn of(state: &State) -> Self {
        let status = state.status();
        Self {
            status,
            wake_at: state.wake_at(),
            outcome: outcome(state, status),
            error: error(state),
            completed_at: state.ended_at,
        }
    }
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
    /// How much of it is on its way to the disk, or has come from there and was not carried out yet.
    pub(super) on_the_way: u32,
    /// The status in the catalogue.
    pub(super) status: ExecutionStatus,
    /// What the last turn has made of it.
    pub(super) summary: Summary,
    pub(super) gates: Gates,
    /// The beginning of the attempt whose receipt is being taken in.
    pub(super) span_start: SpanStart,
    /// The messages whose inputs are taken in and not durable yet.
    pub(super) letters: BTreeSet<String>,
    /// Whether it is in the queue of those whose split turns go on.
    pub(super) is_queued: bool,
    /// The message that a child was begun by.
    pub(super) begun_by: Option<Box<BegunBy>>,
    /// Its organization.
    pub(super) tenant: Tenant,
    /// Records of its last turn, in this process.
    pub(super) last_records: usize,
}

/// The message that began a child, for the time in which nothing of the child is stored.
#[derive(Debug)]
pub(super) struct BegunBy {
    pub(super) parent: Parent,
    /// Its id.
    pub(super) letter: String,
    /// When it was taken in.
    pub(super) at: u64,
}

/// What turns have decided and no commit has taken yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) frames: Vec<StoredFrame>,
    pub(super) row: Option<ExecutionRow>,
    pub(super) plans: Vec<StoredPlan>,
    pub(super) letters: Vec<mainspring_store::Letter>,
    pub(super) late: Vec<Late>,
    /// The inputs that it came of, to be taken in again if it is lost.
    pub(super) queued: Vec<(Queued, bool)>,
    pub(super) actions: Vec<Action>,
    pub(super) moments: Vec<Moment>,
    /// Attempts whose receipts are among the frames.
    pub(super) settled: Vec<(String, u32)>,
}

impl Cell {
    /// A new execution, to be decided by the rules of a version.
    pub(super) fn fresh(
        key: ExecutionKey,
        plan: Arc<Plan>,
        plans: Vec<StoredPlan>,
        row: ExecutionRow,
        decide_version: u32,
        begun_by: Option<Box<BegunBy>>,
    ) -> Self {
        let mut state = State::new(key, plan);
        state.decide_version = decide_version;
        Self::Live(Box::new(Live {
            last_records: 0,
            tenant: Tenant::of(row.organization.as_deref().unwrap_or_default()),
            summary: Summary::of(&state),
            state,
            head: Hash::default(),
            next_sequence: 0,
            durable: None,
            draft: Draft { row: Some(row), plans, ..Draft::default() },
            on_the_way: 0,
            status: ExecutionStatus::Pending,
            gates: Gates::default(),
            span_start: SpanStart::default(),
            letters: BTreeSet::new(),
            is_queued: false,
            begun_by,
        }))
    }

    /// One that was read back.
    pub(super) fn loaded(journal: Journal) -> Self {
        let Journal { state, head, .. } = journal;
        let summary = Summary::of(&state);
        Self::Live(Box::new(Live {
            last_records: 0,
            tenant: Tenant::of(tenant_of(&state)),
            status: summary.status,
            summary,
            gates: Gates::of(&state),
            state,
            head: head.hash,
            next_sequence: head.sequence + 1,
            durable: Some(Expected { sequence: head.sequence, hash: head.hash }),
            draft: Draft::default(),
            on_the_way: 0,
            span_start: SpanStart::default(),
            letters: BTreeSet::new(),
            is_queued: false,
            begun_by: None,
        }))
    }

    /// What is in memory of an execution, whether its state is out or not.
    pub(super) fn live_mut(&mut self) -> Option<&mut Live> {
        match self {
            Self::Loading(_) => None,
            Self::Live(live) => Some(live),
            Self::Evaluating(out) => Some(&mut out.live),
        }
    }

    /// Its organization, as far as that is known.
    pub(super) fn tenant(&self) -> Tenant {
        match self {
            Self::Loading(_) => Tenant::default(),
            Self::Live(live) => live.tenant,
            Self::Evaluating(out) => out.live.tenant,
        }
    }

    /// The plan that it runs, if that is known.
    pub(super) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Loading(_) => None,
            Self::Live(live) => Some(&live.state.plan),
            Self::Evaluating(out) => Some(&out.live.state.plan),
        }
    }

    /// Every input that is not durable yet.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Queued> {
        let (drafted, out, waiting) = match self {
            Self::Loading(waiting) => (&[][..], None, &waiting[..]),
            Self::Live(live) => (&live.draft.queued[..], None, &[][..]),
            Self::Evaluating(out) => (&out.live.draft.queued[..], Some(&out.queued), &out.waiting[..]),
        };
        drafted.iter().map(|(queued, _)| queued).chain(out).chain(waiting)
    }

    /// The same, of what is forgotten.
    pub(super) fn into_queued(self) -> Vec<Queued> {
        match self {
            Self::Loading(waiting) => waiting,
            Self::Live(live) => live.draft.into_queued(),
            Self::Evaluating(out) => {
                let Evaluating { live, queued, waiting, .. } = *out;
                live.draft.into_queued().into_iter().chain([queued]).chain(waiting).collect()
            }
        }
    }
}

impl Live {
    /// The part of a batch that makes the draft true; `None` if there is nothing to write.
    pub(super) fn part(&mut self, partition: u32, sealing: &[u8; 32]) -> Option<Part> {
        let draft = &mut self.draft;
        let consumed: Vec<_> =
            draft.queued.iter().filter_map(|(queued, _)| Some(queued.letter.as_ref()?.id.clone())).collect();
        if draft.frames.is_empty() && draft.late.is_empty() && (consumed.is_empty() || self.durable.is_none()) {
            return None;
        }
        // Of what changed nothing there is nothing to say.
        let changed = draft.queued.iter().filter(|(_, changed)| *changed);
        let audit = changed.filter_map(|(queued, _)| queued.audit.as_deref().cloned()).collect();
        let (gates_closed, gates_opened) = match draft.frames.is_empty() {
            true => Default::default(),
            false => self.gates.changes(),
        };
        let summary = &self.summary;
        let change = (draft.row.is_none() && summary.status != self.status).then(|| change(summary));
        let row = draft.row.take().map(|row| ended_row(ExecutionRow { partition, ..row }, summary));
        self.status = summary.status;
        Some(Part {
            execution: self.state.key,
            partition,
            expected: self.durable,
            frames: std::mem::take(&mut draft.frames),
            head: Head::sealed(sealing, self.state.key, self.next_sequence.saturating_sub(1), self.head),
            wake_at: summary.wake_at,
            row,
            change,
            plans: std::mem::take(&mut draft.plans),
            consumed,
            letters: std::mem::take(&mut draft.letters),
            late: std::mem::take(&mut draft.late),
            audit,
            gates_closed,
            gates_opened,
        })
    }

    /// The id of its organization; empty if it has none. Its row names it before the first turn is decided.
    pub(super) fn organization(&self) -> &str {
        match (&self.state.start, &self.draft.row) {
            (None, Some(row)) => row.organization.as_deref().unwrap_or_default(),
            _ => tenant_of(&self.state),
        }
    }

    /// Whether nothing of it is going on: nothing is out, nothing waits to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.on_the_way == 0 && self.draft.is_empty() && !self.state.has_work_out() && !self.state.is_split
    }
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.late.is_empty() && self.queued.is_empty()
    }

    pub(super) fn take(
        &mut self,
        stored: StoredFrame,
        (frame, spans): (Frame, Vec<Arc<Span>>),
        (letter, ticket, audit): (Option<Message>, Option<Ticket>, Option<Box<AuditEntry>>),
        actions: Vec<Action>,
        state: &State,
        status: ExecutionStatus,
    ) {
        if let Input::Receipt { instance, attempt, .. } = &frame.input {
            self.settled.push((instance.name(&state.plan), *attempt));
        }
        self.moments.push(Moment {
            execution: state.key,
            place_of: place_of(state, &frame.records),
            sequence: frame.sequence,
            now: frame.now,
            records: frame.records,
            status,
            plan: state.plan.clone(),
            spans,
        });
        self.frames.push(stored);
        self.actions.extend(actions);
        self.queued.push((Queued { input: frame.input, letter, ticket, audit }, true));
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

fn change(summary: &Summary) -> RowChange {
    RowChange {
        status: summary.status.name().into(),
        outcome: summary.outcome.clone(),
        error: summary.error.clone(),
        completed_at: summary.completed_at,
    }
}

/// An execution that ended in the commit that began it has one row, with its end.
fn ended_row(row: ExecutionRow, summary: &Summary) -> ExecutionRow {
    let RowChange { status, outcome, error, completed_at } = change(summary);
    ExecutionRow { status, outcome, error, completed_at, ..row }
}

fn outcome(state: &State, status: ExecutionStatus) -> Option<String> {
    (status == ExecutionStatus::Completed && state.with_failures).then(|| "with_failures".into())
}

/// What an execution is about to end with is not its end: a cancel may go before it.
fn error(state: &State) -> Option<String> {
    match state.ending.as_ref().filter(|_| state.ended_at.is_some())? {
        Ending::Completed { .. } => None,
        Ending::Failed { fault, .. } => Some(fault.code.clone()),
        Ending::Cancelled { reason } => Some(reason.clone()),
    }
}
