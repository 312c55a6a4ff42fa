//! What goes into a shard and what comes out of it: both closed.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    effect::Attempt,
    failure::Failure,
    input::{Input, Parent, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::ExecutionStatus,
};
use mainspring_store::{Answer, AuditEntry, Batch, CommitError, Due, ExecutionRow, Fence, RemoteAttempt, StoredPlan};

use crate::{
    evaluator::{Finished, Suspended},
    intake::Charge,
    load::Journal,
    member::Heard,
    span::Span,
};

/// Something that happens to a shard.
#[derive(Debug)]
pub enum Event {
    /// A new execution.
    Submit(Box<Submission>),
    /// An input for an execution.
    Take(ExecutionKey, Queued),
    /// The answer to [`Output::Load`], with its number.
    Loaded(ExecutionKey, u64, Box<LoadAnswer>),
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
        finished: Box<Finished>,
    },
    /// A message in an execution's inbox, by id, that was not written with the installation's key.
    Discard(ExecutionKey, String),
    /// A child that may not begin, and the failure that its parent is told.
    TurnAway(Box<Submission>, Failure),
    /// The same of a child whose start cannot be read.
    TurnChildAway {
        /// The child.
        execution: ExecutionKey,
        /// The message with its start.
        letter: Message,
        /// Who waits for it.
        parent: Parent,
        /// What it is told.
        failure: Failure,
    },
    /// The store knows that an execution is quarantined, and why.
    SetAside(ExecutionKey, String),
    /// Executions that the store says are to be looked at.
    Due(Vec<Due>),
    /// The store has heard that this node is alive.
    Heard(Box<Heard>),
    /// The store has not heard of this node for too long: all that it held is lost.
    Lapsed,
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
    /// Whether it cancels an execution.
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, Self::Take(_, Queued { input: Input::Cancel { .. }, .. }))
    }

    /// The inbox message that brought it.
    pub(crate) fn message_mut(&mut self) -> Option<&mut Message> {
        match self {
            Self::Submit(submission) => submission.letter.as_mut(),
            Self::Take(_, queued) => queued.letter.as_mut(),
            Self::TurnChildAway { letter, .. } => Some(letter),
            _ => None,
        }
    }

    /// The execution of an event that a caller waits for.
    /// Whether it is an event of one execution.
    pub(crate) fn is_of_execution(&self) -> bool {
        !matches!(self, Self::Committed { .. } | Self::Due(_) | Self::Heard(_) | Self::Lapsed | Self::Wake)
    }

    pub(crate) fn execution(&self) -> ExecutionKey {
        match self {
            Self::Submit(submission) | Self::TurnAway(submission, _) => submission.execution,
            Self::Take(execution, _)
            | Self::TurnChildAway { execution, .. }
            | Self::Loaded(execution, ..)
            | Self::Adopted { execution, .. }
            | Self::Evaluated { execution, .. }
            | Self::Discard(execution, _)
            | Self::SetAside(execution, _) => *execution,
            Self::Committed { .. } | Self::Due(_) | Self::Heard(_) | Self::Lapsed | Self::Wake => ExecutionKey([0; 16]),
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
    pub letter: Option<Message>,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
    /// What the audit log says of it if it changes anything. One that a letter brought was noted when that was posted.
    pub audit: Option<Box<AuditEntry>>,
}

/// An input on its way into an execution.
#[derive(Debug)]
pub struct Queued {
    /// The input.
    pub input: Input,
    /// The letter that brought it, which the commit takes out of the inbox.
    pub letter: Option<Message>,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
    /// What the audit log says of it if it changes anything. One that a letter brought was noted when that was posted.
    pub audit: Option<Box<AuditEntry>>,
}

impl Queued {
    /// An input that nobody waits for.
    pub fn silent(input: Input) -> Self {
        Self { input, letter: None, ticket: None, audit: None }
    }
}

/// An inbox message that brought an input.
#[derive(Debug)]
pub struct Message {
    /// Its id in the inbox.
    pub id: String,
    /// Its share of what may be taken in and is not durable, until what came of it is durable or refused.
    pub(crate) charge: Option<Charge>,
    /// The same of messages to executions that cannot take them in yet.
    pub(crate) held_up: Option<Charge>,
}

impl From<String> for Message {
    fn from(id: String) -> Self {
        Self { id, charge: None, held_up: None }
    }
}

impl From<&str> for Message {
    fn from(id: &str) -> Self {
        id.to_owned().into()
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
    /// A newer release has begun it, and goes on with it. It is left alone.
    Newer(String),
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
        /// What. Shared with the shard, which asks for the very same again if nothing of it was written.
        batch: Arc<Batch>,
    },
    /// Read an execution's journal. The number goes back with the answer.
    Load(ExecutionKey, u64),
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
    /// End an attempt at once: whoever holds its execution from now on may begin it again. Nothing is done if it does not
    /// run here any more.
    Kill {
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
    /// Letters to executions in these partitions are durable.
    LettersPosted(BTreeSet<u32>),
    /// Letters that were taken in still wait: what came of them was not written. They are to be read again.
    LettersWait,
    /// Partitions are held from now on: what waits in them, and what is due, is to be looked for.
    Gained(Vec<u32>),
    /// Partitions are let go of: the store is to be told.
    GivenUp(GivenUp),
    /// Partitions are lost.
    Lost(Vec<u32>),
    /// Put into the inbox of an execution that is held elsewhere, or nowhere; then the attempt does not go on here any
    /// more for whoever holds it, if it did.
    PassOn(ExecutionKey, Input, Option<RemoteAttempt>),
    /// Ask the node at which an attempt goes on to stop it.
    StopRemote(RemoteAttempt),
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

/// Partitions that are let go of, and what goes on here of them nevertheless.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Under which fences they were held.
    pub fences: Vec<Fence>,
    /// Attempts of their executions that this process performs.
    pub running: Vec<RemoteAttempt>,
}

impl GivenUp {
    /// What is let go of besides.
    pub fn extend(&mut self, more: Self) {
        self.fences.extend(more.fences);
        self.running.extend(more.running);
    }

    /// What is left when the store has heard of some.
    pub fn remove(&mut self, told: &Self) {
        self.fences.retain(|fence| !told.fences.contains(fence));
        self.running.retain(|attempt| !told.running.contains(attempt));
    }
}

impl Output {
    /// Whether it is to be done although its execution is not held any more. What is durable may be told, what runs may be
    /// stopped, and the traces of what has ended may go; nothing is begun but what is `lent`: then it was given up and not
    /// lost.
    pub(super) fn stays_without(&self, is_gone: &impl Fn(&ExecutionKey) -> bool, is_lent: bool) -> bool {
        match self {
            Self::Perform { execution, .. } => is_lent || !is_gone(execution),
            Self::Adopt { execution, .. }
            | Self::Evaluate { execution, .. }
            | Self::Load(execution, _)
            | Self::Attend(execution)
            | Self::Quarantine(execution, _) => !is_gone(execution),
            // Of an attempt that whoever holds it now asks to stop again, if it is to be stopped.
            Self::StopRemote(attempt) => !is_gone(&attempt.execution),
            Self::Commit { .. }
            | Self::Forget { .. }
            | Self::Stop { .. }
            | Self::Kill { .. }
            | Self::LettersPosted(_)
            | Self::LettersWait
            | Self::Gained(_)
            | Self::GivenUp(_)
            | Self::Lost(_)
            | Self::PassOn(..)
            | Self::Reply(..)
            | Self::Tell(_)
            | Self::Stalled(_)
            | Self::Fatal(_) => true,
        }
    }
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
    /// The execution belongs to another node, or to none at the moment: its inbox reaches it.
    NotHere,
    /// Another execution has the name or the idempotency key.
    Exists(ExecutionKey),
    /// The store cannot be used.
    Store(String),
    /// So many executions of the organization have not ended that no other may begin.
    TooMany(u32),
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
    /// What it runs.
    pub plan: Arc<Plan>,
    /// The organisation in whose bounds the execution is counted, where with this it comes to wait for a place or ends.
    pub place_of: Option<String>,
    /// What has ended with it, if that is asked for.
    pub spans: Vec<Arc<Span>>,
}
