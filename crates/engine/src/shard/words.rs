//! What goes into a shard and what comes out of it: both closed.

use std::sync::Arc;

use mainspring_kernel::{
    decide::Turn,
    effect::Attempt,
    input::{Input, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::{ExecutionStatus, State},
};
use mainspring_store::{Answer, Batch, CommitError, Due, ExecutionRow, StoredPlan};

use crate::{evaluator::Suspended, load::Journal};

/// Something that happens to a shard.
#[derive(Debug)]
pub enum Event {
    /// A new execution.
    Submit(Box<Submission>),
    /// An input for an execution.
    Take(ExecutionKey, Queued),
    /// The answer to [`Output::Load`].
    Loaded(ExecutionKey, Box<LoadAnswer>),
    /// The answer to [`Output::Commit`].
    Committed {
        /// Which.
        flight: u64,
        /// What became of it.
        answer: Result<Vec<Answer>, CommitError>,
    },
    /// The answer to [`Output::Adopt`].
    Adopted {
        /// Whose.
        execution: ExecutionKey,
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
        /// What became of it.
        fate: Fate,
    },
    /// The answer to [`Output::Evaluate`].
    Evaluated {
        /// Whose.
        execution: ExecutionKey,
        /// Names it.
        evaluation: u64,
        /// The state and the turn, or what is wrong with us.
        finished: Box<(State, Result<Turn, String>)>,
    },
    /// Executions that the store says are to be looked at.
    Due(Vec<Due>),
    /// Time has passed.
    Wake,
}

/// What became of an attempt that this process did not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was certainly never begun.
    NeverStarted,
    /// It was, or may have been, begun, and does not run any more.
    Interrupted,
    /// It runs, and its receipt will follow.
    RunsOn,
}

impl Event {
    /// The execution of an event that a caller waits for.
    pub(crate) fn execution(&self) -> ExecutionKey {
        match self {
            Self::Submit(submission) => submission.execution,
            Self::Take(execution, _)
            | Self::Loaded(execution, _)
            | Self::Adopted { execution, .. }
            | Self::Evaluated { execution, .. } => *execution,
            Self::Committed { .. } | Self::Due(_) | Self::Wake => ExecutionKey([0; 16]),
        }
    }
}

/// A new execution, ready to begin.
#[derive(Debug)]
pub struct Submission {
    /// Its key.
    pub execution: ExecutionKey,
    /// Its plan.
    pub plan: Arc<Plan>,
    /// The plan as it is stored, and those of whatever it may start.
    pub stored_plans: Vec<StoredPlan>,
    /// What it begins with.
    pub start: Box<Start>,
    /// Its row in the catalogue.
    pub row: ExecutionRow,
    /// The letter that brought it.
    pub letter: Option<String>,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
}

/// An input on its way into an execution.
#[derive(Debug)]
pub struct Queued {
    /// The input.
    pub input: Input,
    /// The letter that brought it, which the commit takes out of the inbox.
    pub letter: Option<String>,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
}

impl Queued {
    /// An input that nobody waits for.
    pub fn silent(input: Input) -> Self {
        Self { input, letter: None, ticket: None }
    }
}

/// Names a caller that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The answer to a load.
#[derive(Debug)]
pub enum LoadAnswer {
    /// The journal, folded and checked.
    Journal(Box<Journal>),
    /// There is no such execution.
    Unknown,
    /// It is set aside.
    Quarantined(String),
    /// What is stored is not what was written: it is to be set aside.
    Broken(String),
    /// The store did not answer.
    Unavailable(String),
}

/// Something to be done, in this order.
#[derive(Debug)]
pub enum Output {
    /// Make this true. One at a time.
    Commit {
        /// Names it in the answer.
        flight: u64,
        /// What.
        batch: Batch,
    },
    /// Read an execution's journal.
    Load(ExecutionKey),
    /// Perform an attempt; its receipt is an input.
    Perform {
        /// Whose.
        execution: ExecutionKey,
        /// Whose.
        instance: Instance,
        /// What.
        attempt: Attempt,
    },
    /// Ask an attempt to stop. Nothing is done if it does not run here any more.
    Stop {
        /// Whose.
        execution: ExecutionKey,
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
    },
    /// Find out what became of an attempt that this process did not begin.
    Adopt {
        /// Whose.
        execution: ExecutionKey,
        /// Whose.
        instance: Instance,
        /// What.
        attempt: Attempt,
    },
    /// Finish a turn that waits for evaluations.
    Evaluate {
        /// Whose.
        execution: ExecutionKey,
        /// Names it in the answer.
        evaluation: u64,
        /// The turn.
        suspended: Box<Suspended>,
    },
    /// Letters to other executions are durable.
    LettersPosted,
    /// Letters that were taken in still wait: what came of them was not written. They are to be read again.
    LettersWait,
    /// Go on with an execution that another one waits for.
    Attend(ExecutionKey),
    /// The receipt of an attempt is durable: its traces outside may go.
    Forget {
        /// Whose.
        execution: ExecutionKey,
        /// The step instance.
        step: String,
        /// Which.
        attempt: u32,
    },
    /// An answer.
    Reply(Ticket, Reply),
    /// A frame is durable.
    Tell(Arc<Moment>),
    /// Set an execution aside.
    Quarantine(ExecutionKey, String),
    /// The store has refused to write, and will be asked again at the next flush.
    Stalled(String),
    /// This process may not go on: the disk or the ownership is lost.
    Fatal(String),
}

/// What a caller is answered.
pub type Reply = Result<Taken, ShardError>;

/// An input was taken in, and what came of it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Whether it changed anything: a repeated or late input does not.
    pub changed: bool,
}

/// Why a caller is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardError {
    /// There is no such execution.
    NoSuchExecution,
    /// The execution is set aside, and why.
    Quarantined(String),
    /// Another execution has the name or the idempotency key.
    Exists(ExecutionKey),
    /// The store cannot be used.
    Store(String),
}

/// A durable frame, for whoever watches.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Whose.
    pub execution: ExecutionKey,
    /// Which.
    pub sequence: u64,
    /// When.
    pub now: u64,
    /// What happened.
    pub records: Vec<Record>,
    /// Where the execution is now.
    pub status: ExecutionStatus,
}
