//! What an execution is at a moment: the fold of its records, and nothing else.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};
use core::cmp::Reverse;

use crate::{
    apply::size,
    cbor,
    decide::{BOUNDS_SINCE, MEMORY_SINCE, SIGNAL_BYTES_SINCE},
    failure::Failure,
    hash::Hash,
    input::{Lineage, Policy, Queue, Timer},
    instance::{Instance, Scope},
    key::ExecutionKey,
    limits::{EXECUTION_MEMORY_BYTES_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX},
    plan::{Decision, Plan, Work},
    record::{Ending, Fault, Purpose, StopReason},
    value::{Map, Value},
};

mod view;

pub use view::View;

/// An execution's state. Changed by [`apply`](crate::apply::apply) alone.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The execution.
    pub key: ExecutionKey,
    /// The plan that it runs.
    pub plan: Arc<Plan>,
    /// Time of the last turn; it never goes back.
    pub now: u64,
    /// What it began with; `None` until it has.
    pub start: Option<Started>,
    /// Its place among executions that start each other.
    pub lineage: Lineage,
    /// Step instances that are more than pending. Those of rounds that have ended are gone, unless they failed or were
    /// canceled.
    pub steps: BTreeMap<Instance, StepState>,
    /// Blocks that run.
    pub scopes: BTreeMap<Scope, ScopeState>,
    /// Loops that run.
    pub loops: BTreeMap<Instance, LoopState>,
    /// Instances of which an attempt is out in the world.
    pub open_attempts: BTreeSet<Instance>,
    /// Those of them whose child waits for nothing but people.
    pub held_children: BTreeSet<Instance>,
    /// The queue in which it waits before its work begins.
    pub queue: Option<Queue>,
    /// The version of what is decided: of this build until the execution has begun, then the one that it began with.
    pub decide_version: u32,
    /// How often the parent was told that only people are waited for, or that this is over: odd while it knows so.
    pub told: u32,
    /// Instances that wait: for people, time, signals, their next attempt.
    pub waits: BTreeSet<Instance>,
    /// Times to come.
    pub timers: BTreeSet<(u64, Timer)>,
    /// The output variables.
    pub outputs: Map,
    /// Signals that no wait has taken yet, in order of arrival.
    pub signals: Vec<Signal>,
    /// Every signal that ever arrived, by identity.
    pub signals_seen: BTreeSet<String>,
    /// Bytes of memory that all of this takes, as `apply` counts them.
    pub memory_bytes: u64,
    /// Bytes that the records take in the journal, more or less.
    pub journal_bytes: u64,
    /// How many steps were begun.
    pub visits: u32,
    /// How many attempts went out.
    pub calls: u32,
    /// How many rounds have begun, steps were skipped, and steps have failed before they began.
    pub uncounted: u32,
    /// How many of the executions that may be started were given to children, without what these have returned.
    pub executions: u32,
    /// How many steps have failed, those that contain others not counted.
    pub node_failures: u32,
    /// How many of them had used up several attempts.
    pub retries_exhausted: u32,
    /// The bound on failures that was reached.
    pub bound_reached: Option<Fault>,
    /// Whether a failure was let through.
    pub with_failures: bool,
    /// Whether a payload on the way here was erased.
    pub has_erased: bool,
    /// Whether the last turn was cut short.
    pub is_split: bool,
    /// The end of the execution's time, while it runs.
    pub deadline: Option<u64>,
    /// What is left of the execution's time while it stands still.
    pub deadline_held: Option<u64>,
    /// How it is to end.
    pub ending: Option<Ending>,
    /// When it ended.
    pub ended_at: Option<u64>,
}

/// What an execution began with.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// Its name outside.
    pub execution_id: String,
    /// The pinned definition.
    pub workflow_hash: Hash,
    /// When.
    pub at: u64,
    /// The bounds.
    pub policy: Policy,
    /// `@ctx.attempt`.
    pub attempt: u32,
    /// Who started it.
    pub by: String,
    /// `@input`.
    pub input: Value,
    /// `@vars`.
    pub variables: Value,
    /// What triggered it.
    pub trigger: Value,
    /// Where its steps work.
    pub workspace: Option<String>,
}

/// A step instance.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    /// Where it is.
    pub status: Status,
    /// The last attempt, from 1; 0 for one that never began.
    pub attempt: u32,
    /// The resolved parameters, until it ends.
    pub input: Value,
    /// The identity of its work in the world.
    pub intent: Option<Hash>,
    /// Its output, once completed; null if the execution was ending by then.
    pub output: Value,
    /// The last failure.
    pub failure: Option<Failure>,
    /// Whether its failure was let through.
    pub let_through: bool,
    /// Whether a failure edge has taken its failure up.
    pub is_handled: bool,
    /// Whether it began when the execution was going to fail already: what it leads to runs as well.
    pub is_cleanup: bool,
    /// How often the child of the attempt that is out has told whether it waits for people.
    pub child_told: u32,
    /// How many executions the child of the last attempt was given, itself included, and has not returned.
    pub child_executions: u32,
    /// Why the attempt that is out was asked to stop.
    pub stopping: Option<StopReason>,
    /// The end of the time of the attempt that is out.
    pub timeout_at: Option<u64>,
    /// When it wakes: the next attempt's or the sleep's time.
    pub wake_at: Option<u64>,
    /// The gate that is open, or was the last.
    pub gate: Option<GateState>,
    /// Bytes of memory that it takes, as `apply` counts them.
    pub memory_bytes: u64,
    /// When the last attempt was handed out.
    pub handed_out_at: u64,
    /// When it began.
    pub started_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
}

/// Where a step instance is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not begun.
    #[default]
    Pending,
    /// An attempt is out, or what it contains runs.
    Running,
    /// An attempt failed, and the next has its time.
    Retrying,
    /// Waits for time or a signal.
    Waiting,
    /// Waits for people.
    WaitingApproval,
    /// Ended well.
    Completed,
    /// Failed for good.
    Failed,
    /// Was not to run.
    Skipped,
    /// Was called off.
    Cancelled,
}

impl Status {
    /// The word in traces and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::WaitingApproval => "waiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped | Self::Cancelled)
    }
}

/// A gate, open or decided.
#[derive(Debug, Clone, PartialEq)]
pub struct GateState {
    /// Which of its instance's, from 1.
    pub number: u32,
    /// Whether it waits.
    pub is_open: bool,
    /// What is asked.
    pub prompt: String,
    /// What is approved.
    pub items: Value,
    /// Who may decide; empty for the owner and the admins.
    pub approvers: Vec<String>,
    /// How many must approve.
    pub count: u32,
    /// Who has.
    pub approved_by: Vec<String>,
    /// When it is decided by itself.
    pub expires_at: u64,
    /// How, then.
    pub on_timeout: Decision,
    /// What for.
    pub purpose: Purpose,
}

/// A block that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeState {
    /// Places in the block of the steps that are still pending.
    pub pending: BTreeSet<u32>,
    /// How many of its steps have begun and not ended.
    pub open: u32,
    /// How many of those wait and hold no place: for people, time or signals, and not for their next attempt.
    pub waiting: u32,
    /// In a block that goes by edges: of each place, how many edges into it come from steps that have not ended.
    pub unsettled: Vec<u32>,
    /// In a block that goes by edges: the places of which that is none, in the order in which they begin.
    pub decidable: BTreeSet<(Reverse<i32>, u32)>,
    /// The step whose failure fails the block.
    pub failed: Option<Instance>,
    /// Whether a failure in it, or further inside, is going to fail it: nothing new starts.
    pub is_doomed: bool,
}

/// A loop that runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoopState {
    /// The number of its rounds, where that is known from the start.
    pub count: Option<u32>,
    /// Rounds that have begun.
    pub begun: u32,
    /// Rounds that have begun and not ended.
    pub open: u32,
    /// What the rounds gave, by their numbers; of a loop with a condition only the last.
    pub outputs: Vec<Value>,
    /// Bytes of memory that these take, as `apply` counts them.
    pub memory_bytes: u64,
    /// Bytes of these in binary form.
    pub output_bytes: u64,
    /// The step whose failure fails the loop.
    pub failed: Option<Instance>,
    /// Whether a failure inside is going to fail it: nothing new starts.
    pub is_doomed: bool,
}

/// A message that nothing has taken yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Its identity.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it brings.
    pub payload: Value,
    /// Bytes of that in its binary form.
    pub byte_count: usize,
}

/// Why a signal changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unheard {
    /// One of its identity has come before: it is the same message, and is there.
    Repeated,
    /// Nothing waits any more.
    Ending,
    /// As many are kept as may be, or as large ones.
    Full,
}

impl Unheard {
    /// What is so with the execution.
    pub fn words(self) -> &'static str {
        match self {
            Self::Repeated => "has had a signal of this identity",
            Self::Ending => "is ending or has ended, and waits for no signals any more",
            Self::Full => "keeps as many signals as it may until its steps have taken some",
        }
    }
}

/// Where an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// It has not begun, or waits in a queue.
    Pending,
    /// Something runs, or waits for something other than people.
    Running,
    /// Only people are waited for.
    WaitingApproval,
    /// It was canceled, and what runs of it has not stopped yet.
    CancelRequested,
    /// It ended well.
    Completed,
    /// It failed.
    Failed,
    /// It was called off.
    Cancelled,
}

impl ExecutionStatus {
    /// The word in the catalogue and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::WaitingApproval => "waiting_approval",
            Self::CancelRequested => "cancel_requested",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl State {
    /// An execution that has not begun.
    pub fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self {
            key,
            plan,
            now: 0,
            start: None,
            lineage: Lineage::default(),
            steps: BTreeMap::new(),
            scopes: BTreeMap::new(),
            loops: BTreeMap::new(),
            open_attempts: BTreeSet::new(),
            held_children: BTreeSet::new(),
            queue: None,
            decide_version: crate::decide::DECIDE_VERSION,
            told: 0,
            waits: BTreeSet::new(),
            timers: BTreeSet::new(),
            outputs: Map::new(),
            signals: Vec::new(),
            signals_seen: BTreeSet::new(),
            memory_bytes: 0,
            journal_bytes: 0,
            visits: 0,
            calls: 0,
            uncounted: 0,
            executions: 0,
            node_failures: 0,
            retries_exhausted: 0,
            bound_reached: None,
            with_failures: false,
            has_erased: false,
            is_split: false,
            deadline: None,
            deadline_held: None,
            ending: None,
            ended_at: None,
        }
    }

    /// Where the execution is.
    pub fn status(&self) -> ExecutionStatus {
        match (&self.ending, self.ended_at) {
            _ if self.start.is_none() || self.queue.is_some() => ExecutionStatus::Pending,
            (Some(Ending::Completed { .. }), Some(_)) => ExecutionStatus::Completed,
            (Some(Ending::Failed { .. }), Some(_)) => ExecutionStatus::Failed,
            (Some(Ending::Cancelled { .. }), Some(_)) => ExecutionStatus::Cancelled,
            _ if self.waits_only_for_people() => ExecutionStatus::WaitingApproval,
            (Some(Ending::Cancelled { .. }), None) => ExecutionStatus::CancelRequested,
            _ => ExecutionStatus::Running,
        }
    }

    /// Whether the execution is ending and what is out is asked to stop. Where it ends well, what is out is waited for.
    pub fn is_stopping(&self) -> bool {
        match &self.ending {
            Some(Ending::Completed { .. }) => self.decide_version < BOUNDS_SINCE,
            Some(ending) => ending.stops(),
            None => false,
        }
    }

    fn waits_only_for_people(&self) -> bool {
        let is_gate = |instance| self.step_status(instance) == Status::WaitingApproval;
        let waits = !self.waits.is_empty() || !self.held_children.is_empty();
        waits && !self.is_split && !self.has_work_out() && self.waits.iter().all(is_gate)
    }

    /// Where a step instance is. One that stands where nothing went is pending while that can change, else skipped.
    pub fn step_status(&self, instance: &Instance) -> Status {
        if let Some(step) = self.steps.get(instance) {
            return step.status;
        }
        let Some(owner) = instance.scope(&self.plan).owner(&self.plan) else {
            return Status::Pending;
        };
        let passed_by = self.step_status(&owner).is_final() || self.took_another_branch(&owner, instance);
        if passed_by { Status::Skipped } else { Status::Pending }
    }

    fn took_another_branch(&self, owner: &Instance, instance: &Instance) -> bool {
        let is_conditional = matches!(self.plan.step(owner.step).work, Work::Conditional { .. });
        let scope = instance.scope(&self.plan);
        is_conditional && self.steps.contains_key(owner) && !self.scopes.contains_key(&scope)
    }

    /// The gates that are open, in the order of the plan.
    pub fn open_gates(&self) -> impl Iterator<Item = (&Instance, &GateState)> {
        self.waits.iter().filter_map(|instance| {
            let gate = self.steps.get(instance)?.gate.as_ref()?;
            gate.is_open.then_some((instance, gate))
        })
    }

    /// Why a signal changes nothing; `None` for one that is kept, or used at once.
    pub fn unheard(&self, id: &str, name: &str, payload: &Value) -> Option<Unheard> {
        if self.signals_seen.contains(id) {
            return Some(Unheard::Repeated);
        }
        if self.ending.is_some() {
            return Some(Unheard::Ending);
        }
        let are_too_many = self.signals.len() >= SIGNALS_KEPT_MAX;
        let takes_memory = self.memory_bytes + size::of_signal(id, name, payload) > EXECUTION_MEMORY_BYTES_MAX;
        if takes_memory && self.decide_version >= MEMORY_SINCE {
            return Some(Unheard::Full);
        }
        let is_full = if self.decide_version < SIGNAL_BYTES_SINCE {
            are_too_many
        } else {
            let bytes: usize = self.signals.iter().map(|kept| kept.byte_count).sum();
            let are_too_large = bytes + cbor::byte_count(payload) > SIGNALS_KEPT_BYTES_MAX;
            (are_too_many || are_too_large) && self.wait_for_signal(name).is_none()
        };
        is_full.then_some(Unheard::Full)
    }

    /// The first in the plan that waits for a signal of this name.
    pub fn wait_for_signal(&self, name: &str) -> Option<&Instance> {
        self.waits.iter().find(|instance| {
            self.step_status(instance) == Status::Waiting
                && matches!(&self.plan.step(instance.step).work, Work::Signal { name: waited } if waited == name)
        })
    }

    /// The execution's output, once it has completed.
    pub fn output(&self) -> Option<&Value> {
        match &self.ending {
            Some(Ending::Completed { output }) if self.ended_at.is_some() => Some(output.value()),
            _ => None,
        }
    }

    /// The first time at which something is due, whatever for.
    pub fn next_timer(&self) -> Option<&(u64, Timer)> {
        self.timers.first()
    }

    /// Whether an attempt is out that something comes of by itself: a child that waits for nothing but people sends word
    /// when that is over.
    pub fn has_work_out(&self) -> bool {
        self.open_attempts.len() > self.held_children.len()
    }

    /// When the store must say that it is to be looked at, for nodes that do not have it in memory: 0 if it has work,
    /// the first durable time, or nothing if only something from outside can move it.
    pub fn wake_at(&self) -> Option<u64> {
        if self.ended_at.is_some() {
            return None;
        }
        if self.has_work_out() || self.is_split {
            return Some(0);
        }
        self.timers.first().map(|(at, _)| *at)
    }
}
