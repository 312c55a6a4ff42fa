//! An execution in memory: its state, and the draft of its next commit. Turns are decided in `shard.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicBool},
};

use mainspring_kernel::{
    budget::Usage,
    decide::Action,
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::{Input, Parent},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    receipt::Receipt,
    record::Record,
    state::{ExecutionStatus, State},
    stored_frame::{Head, StoredFrame},
};
use mainspring_store::{
    AuditEntry, ExecutionRow, Expected, LateReceipt, NewReceipt, Part, PartReceipts, RowChange, StoredPlan,
};

use crate::{
    admission::place_of,
    derived_columns::Summary,
    evaluator::tenant_of,
    journal_loader::Journal,
    shard::approvals::Gates,
    shard::leased_calls::{LeasedCall, calls_of},
    shard::protocol::{CommittedFrame, PendingInput, ReceivedMessage, Ticket},
    shard::tenants::Tenant,
    trace_spans::{Span, SpanStart},
};

/// The slot of an execution in the shard.
#[derive(Debug)]
pub(super) enum ExecutionEntry {
    /// Its journal is being read. The inputs wait for it.
    Loading(Vec<PendingInput>),
    /// In memory with its state.
    Loaded(Box<LoadedExecution>),
    /// In memory without its state, which is with an evaluation thread.
    Evaluating(Box<Evaluating>),
}

/// An execution whose state is with an evaluation thread.
#[derive(Debug)]
pub(super) struct Evaluating {
    /// The number of the evaluation.
    pub(super) number: u64,
    /// Everything but the state.
    pub(super) loaded: LoadedExecution,
    /// The organization of the execution.
    pub(super) tenant: String,
    /// The input of the turn.
    pub(super) queued: PendingInput,
    /// Inputs that arrived since.
    pub(super) waiting: Vec<PendingInput>,
    /// The deadline of the execution has passed.
    pub(super) is_overdue: bool,
    /// Asks the evaluation thread to stop: the result is not needed.
    pub(super) abandoned: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct LoadedExecution {
    pub(super) state: State,
    /// The hash of the last frame, durable or not.
    pub(super) head: Hash,
    pub(super) next_sequence: u64,
    /// The durable head.
    pub(super) durable: Option<Expected>,
    /// The content of the next commit.
    pub(super) draft: Draft,
    /// Drafts of it that are in flight, or durable with effects that are not released yet.
    pub(super) on_the_way: u32,
    /// The status in the catalogue.
    pub(super) status: ExecutionStatus,
    /// The summary after the last turn.
    pub(super) summary: Summary,
    pub(super) gates: Gates,
    /// The step whose receipt is being processed.
    pub(super) before_turn: BeforeTurn,
    /// Ids of messages whose inputs were processed and are not durable.
    pub(super) messages: BTreeSet<String>,
    /// In the queue of executions whose split turn can continue.
    pub(super) is_queued: bool,
    /// The message that started a child.
    pub(super) started_by: Option<Box<StartedBy>>,
    /// The organization as the fair queues identify it.
    pub(super) tenant: Tenant,
    /// Records of the last turn in this process.
    pub(super) last_records: usize,
}

/// The execution and the step whose receipt is being processed, as they were before the turn.
#[derive(Debug, Default)]
pub(super) struct BeforeTurn {
    /// The start of the attempt, if the shard makes spans.
    pub(super) span_start: SpanStart,
    /// The idempotency key of the step.
    pub(super) intent: Option<Hash>,
    /// The usage of the execution itself, without its children.
    pub(super) used: Usage,
    /// The calls in progress under leases.
    pub(super) calls: BTreeMap<Instance, LeasedCall>,
}

/// The start message of a child, until something of the child is stored.
#[derive(Debug)]
pub(super) struct StartedBy {
    pub(super) parent: Parent,
    /// The id of the message.
    pub(super) message: String,
    /// The time at which it was received, in Unix milliseconds.
    pub(super) at: u64,
}

/// The results of turns that no commit contains yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) frames: Vec<StoredFrame>,
    pub(super) row: Option<ExecutionRow>,
    pub(super) plans: Vec<StoredPlan>,
    /// True if the row gets the definition of a migration.
    pub(super) has_migrated: bool,
    pub(super) messages: Vec<mainspring_store::InboxMessage>,
    /// The receipts of the frames and the late ones, to be signed with the commit.
    pub(super) receipts: PartReceipts,
    /// The inputs of the draft, to be processed again if it is lost, each with its `changed` flag.
    pub(super) queued: Vec<(PendingInput, bool)>,
    pub(super) actions: Vec<Action>,
    pub(super) committed: Vec<CommittedFrame>,
    /// Audit entries of changes that the inputs cause beside their own.
    pub(super) audit: Vec<AuditEntry>,
    /// Attempts whose receipts are in the frames.
    pub(super) settled: Vec<(String, u32)>,
}

impl ExecutionEntry {
    /// A new execution, decided by the rules of a version.
    pub(super) fn fresh(
        key: ExecutionKey,
        plan: Arc<Plan>,
        plans: Vec<StoredPlan>,
        row: ExecutionRow,
        decide_version: u32,
        started_by: Option<Box<StartedBy>>,
    ) -> Self {
        let mut state = State::new(key, plan);
        state.decide_version = decide_version;
        Self::Loaded(Box::new(LoadedExecution {
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
            before_turn: BeforeTurn::default(),
            messages: BTreeSet::new(),
            is_queued: false,
            started_by,
        }))
    }

    /// An execution read from its journal.
    pub(super) fn from_journal(journal: Journal) -> Self {
        let Journal { state, head, .. } = journal;
        let (used, calls) = (state.counts.budgets.own, calls_of(&state));
        let summary = Summary::of(&state);
        Self::Loaded(Box::new(LoadedExecution {
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
            before_turn: BeforeTurn { used, calls, ..BeforeTurn::default() },
            messages: BTreeSet::new(),
            is_queued: false,
            started_by: None,
        }))
    }

    /// The execution in memory, with or without its state.
    pub(super) fn loaded_mut(&mut self) -> Option<&mut LoadedExecution> {
        match self {
            Self::Loading(_) => None,
            Self::Loaded(loaded) => Some(loaded),
            Self::Evaluating(out) => Some(&mut out.loaded),
        }
    }

    /// The organization, if known.
    pub(super) fn tenant(&self) -> Tenant {
        match self {
            Self::Loading(_) => Tenant::default(),
            Self::Loaded(loaded) => loaded.tenant,
            Self::Evaluating(out) => out.loaded.tenant,
        }
    }

    /// The plan, if known.
    pub(super) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Loading(_) => None,
            Self::Loaded(loaded) => Some(&loaded.state.plan),
            Self::Evaluating(out) => Some(&out.loaded.state.plan),
        }
    }

    /// All inputs that are not durable.
    pub(super) fn queued(&self) -> impl Iterator<Item = &PendingInput> {
        let (drafted, out, waiting) = match self {
            Self::Loading(waiting) => (&[][..], None, &waiting[..]),
            Self::Loaded(loaded) => (&loaded.draft.queued[..], None, &[][..]),
            Self::Evaluating(out) => (&out.loaded.draft.queued[..], Some(&out.queued), &out.waiting[..]),
        };
        drafted.iter().map(|(queued, _)| queued).chain(out).chain(waiting)
    }

    /// The same, from a slot that is dropped.
    pub(super) fn into_queued(self) -> Vec<PendingInput> {
        match self {
            Self::Loading(waiting) => waiting,
            Self::Loaded(loaded) => loaded.draft.into_queued(),
            Self::Evaluating(out) => {
                let Evaluating { loaded, queued, waiting, .. } = *out;
                loaded.draft.into_queued().into_iter().chain([queued]).chain(waiting).collect()
            }
        }
    }
}

impl LoadedExecution {
    /// Creates the part of a batch for the draft. `None` if there is nothing to write.
    pub(super) fn part(&mut self, partition: u32, sealing: &[u8; 32]) -> Option<Part> {
        let draft = &mut self.draft;
        let consumed: Vec<_> =
            draft.queued.iter().filter_map(|(queued, _)| Some(queued.message.as_ref()?.id.clone())).collect();
        if draft.frames.is_empty() && draft.receipts.late.is_empty() && (consumed.is_empty() || self.durable.is_none())
        {
            return None;
        }
        // Inputs that changed nothing are not audited.
        let changed = draft.queued.iter().filter(|(_, changed)| *changed);
        let audit = changed.filter_map(|(queued, _)| queued.audit.as_deref().cloned());
        let audit = audit.chain(std::mem::take(&mut draft.audit)).collect();
        let (gates_closed, gates_opened) = match draft.frames.is_empty() {
            true => Default::default(),
            false => self.gates.changes(),
        };
        let summary = &self.summary;
        let is_changed = summary.status != self.status || draft.has_migrated;
        let change = (draft.row.is_none() && is_changed).then(|| change(summary));
        let row = draft.row.take().map(|row| ended_row(ExecutionRow { partition, ..row }, summary));
        (self.status, draft.has_migrated) = (summary.status, false);
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
            messages: std::mem::take(&mut draft.messages),
            receipts: std::mem::take(&mut draft.receipts),
            audit,
            gates_closed,
            gates_opened,
        })
    }

    /// The id of the organization, or an empty string. Before the first turn the row names it.
    pub(super) fn organization(&self) -> &str {
        match (&self.state.start, &self.draft.row) {
            (None, Some(row)) => row.organization.as_deref().unwrap_or_default(),
            _ => tenant_of(&self.state),
        }
    }

    /// True if nothing is in progress: no work is out, and no draft waits for a commit.
    pub(super) fn is_idle(&self) -> bool {
        self.on_the_way == 0 && self.draft.is_empty() && !self.state.has_work_out() && !self.state.journal.is_split
    }
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.receipts.late.is_empty() && self.queued.is_empty()
    }

    pub(super) fn take(
        &mut self,
        (stored, receipt): (StoredFrame, Option<Receipt>),
        (frame, spans): (Frame, Vec<Arc<Span>>),
        (message, ticket, audit): (Option<ReceivedMessage>, Option<Ticket>, Option<Box<AuditEntry>>),
        actions: Vec<Action>,
        state: &State,
        status: ExecutionStatus,
    ) {
        if let Input::Receipt { instance, attempt, outcome } = &frame.input
            && !matches!(outcome, Outcome::Reported(_))
        {
            self.settled.push((instance.name(&state.plan), *attempt));
        }
        self.has_migrated |= frame.records.iter().any(|record| matches!(record, Record::Migrated { .. }));
        self.committed.push(CommittedFrame {
            execution: state.key,
            place_of: place_of(state, &frame.records),
            sequence: frame.sequence,
            now: frame.now,
            records: frame.records,
            status,
            plan: state.plan.clone(),
            spans,
        });
        self.receipts.new.extend(receipt.map(|receipt| NewReceipt { receipt, late: None }));
        self.frames.push(stored);
        self.actions.extend(actions);
        self.queued.push((PendingInput { input: frame.input, message, ticket, audit }, true));
    }

    /// Adds an input that changed nothing. A receipt that does not count is stored as late, and other inputs are only
    /// answered.
    pub(super) fn take_without_frame(&mut self, now: u64, queued: PendingInput, state: &State) {
        if let Input::Receipt { outcome, .. } = &queued.input
            && !matches!(outcome, Outcome::Interrupted | Outcome::Reported(_))
        {
            // The step may have ended or run again, so that its idempotency key says nothing about a late receipt.
            let receipt = Receipt::of(state, &queued.input, None, queued.via(), now, None);
            let late = Some(self.receipts.late.len());
            self.receipts.new.extend(receipt.map(|receipt| NewReceipt { receipt, late }));
            self.receipts.late.push(LateReceipt { at: now, body: queued.input.encode(), proof: None });
        }
        self.queued.push((queued, false));
    }

    pub(super) fn into_queued(self) -> Vec<PendingInput> {
        self.queued.into_iter().map(|(queued, _)| queued).collect()
    }
}

fn change(summary: &Summary) -> RowChange {
    RowChange {
        status: summary.status.name().into(),
        outcome: summary.outcome.clone(),
        error: summary.error.clone(),
        completed_at: summary.completed_at,
        usage: summary.usage,
        definition: summary.definition.clone(),
    }
}

/// An execution that starts and ends in one commit gets a single row, with its end.
fn ended_row(row: ExecutionRow, summary: &Summary) -> ExecutionRow {
    let RowChange { status, outcome, error, completed_at, usage, .. } = change(summary);
    ExecutionRow { status, outcome, error, completed_at, usage, ..row }
}
