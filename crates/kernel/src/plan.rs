//! A definition compiled: what the kernel runs, whichever notation it was written in.
//!
//! A plan is a tree of blocks laid flat. A block holds steps in an order; a step that contains others owns a block for
//! each of its branches. Steps are numbered in the order in which they were written, and that number is their place in
//! journals: a plan is kept by its hash and never compiled again.

use alloc::{string::String, vec::Vec};

use crate::{
    condition::Condition,
    hash::Hash,
    limits::{EDGES_STEPS_DEFAULT, EXECUTION_STEPS_DEFAULT},
    template::Template,
    value::{Map, Value},
};

mod certain;
mod form;
mod graph;
mod retry;
mod variables;
mod work;

pub use certain::endless;
pub use form::PlanError;
pub use graph::{Edge, EdgeKind, Graph, Pull, SourceEnd};
pub use retry::{Backoff, Delay, Matcher, Retry, is_code};
pub use variables::{VARIABLE_TYPES, Variable, VariableType};
pub use work::{Decision, Gate, Loop, Over, Work};

/// A compiled definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The definition's name.
    pub name: Option<String>,
    /// The definition's version.
    pub version: Option<String>,
    /// The hash of the normalised definition.
    pub workflow_hash: Hash,
    /// What the definition asks of every execution.
    pub constraints: Constraints,
    /// How much failing an execution bears.
    pub policy: FailurePolicy,
    /// What the input must fit, as a JSON Schema.
    pub input_schema: Option<Value>,
    /// The variables that may be given; `None` for a definition that declares none and takes any.
    pub variables: Option<Vec<Variable>>,
    /// What variables hold that are not given.
    pub default_context: Map,
    /// What an execution gives that ends without a `return`.
    pub output: Output,
    /// The blocks; the first is the whole plan.
    pub blocks: Vec<Block>,
    /// The steps, in the order in which they were written.
    pub steps: Vec<Step>,
}

/// Bounds on an execution; what is `None` has the default of [`limits`](crate::limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Constraints {
    /// Visits of steps, containers and nested steps included.
    pub max_steps: Option<u32>,
    /// Branches at a time.
    pub max_parallel: Option<u32>,
    /// Attempts that go out to the world.
    pub max_calls: Option<u32>,
    /// Executions that it may start, directly and through those it starts.
    pub max_executions: Option<u32>,
    /// Bytes of one step's output in its binary form.
    pub max_output_bytes: Option<u32>,
    /// Milliseconds for the whole execution; they stand still while only people are waited for.
    pub timeout_ms: Option<u64>,
    /// Whether agents may propose changes to the workflow.
    pub allow_self_modification: bool,
}

/// How much failing an execution bears before it fails as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FailurePolicy {
    /// Every failure is let through, and what needed its step is skipped.
    pub fail_open: bool,
    /// At this many failed steps the execution fails, whether they were handled, let through or neither.
    pub max_node_failures: Option<u32>,
    /// At this many steps that used up several attempts the execution fails.
    pub max_retries_exhausted: Option<u32>,
}

/// What an execution gives that ends without a `return`.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The output variables, by name.
    Variables,
    /// The output of the one step that nothing waits for; of several an object by step.
    Ends,
    /// What the definition says.
    Given(Template),
}

/// Steps that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The step that contains it; `None` for the whole plan.
    pub owner: Option<u32>,
    /// In which order its steps run.
    pub order: Order,
    /// Its steps, as written.
    pub steps: Vec<u32>,
}

/// In which order the steps of a block run.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// One after another, as written.
    Sequence,
    /// At the same time, bounded.
    Parallel,
    /// By edges; what has none before it runs at once, bounded.
    Edges(Graph),
}

/// A place in a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name, unique in the plan: given, or its path.
    pub id: String,
    /// The block it stands in.
    pub block: u32,
    /// Skipped unless this holds.
    pub when: Option<Condition>,
    /// What it does.
    pub work: Work,
    /// How a failed attempt is tried again.
    pub retry: Retry,
    /// Milliseconds for one attempt; `None` for steps without attempts in the world.
    pub timeout_ms: Option<u64>,
    /// What its failure does.
    pub on_error: OnError,
    /// What an attempt with an unknown outcome does.
    pub on_interrupted: OnInterrupted,
    /// Where its output is kept for the execution's output.
    pub output_variable: Option<String>,
    /// Ends the execution well with the step's output, if it holds once the step has succeeded.
    pub bail: Option<Condition>,
    /// What its output must fit, as a JSON Schema.
    pub output_schema: Option<Value>,
    /// The source of a function that makes the output of an effect's result.
    pub transform: Option<String>,
    /// Which of several goes first when there is room for one: the higher.
    pub priority: i32,
    /// Whether each attempt has an idempotency key of its own.
    pub key_per_attempt: bool,
}

/// What a step's failure does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// It fails what contains the step.
    Fail,
    /// It is let through: the output is null, and the outcome says so.
    Continue,
}

impl OnError {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Fail, Self::Continue];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Continue => "continue",
        }
    }
}

/// What an attempt with an unknown outcome does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupted {
    /// The next attempt, if the policy has one left.
    Retry,
    /// A person decides.
    Ask,
    /// The step fails.
    Fail,
}

impl OnInterrupted {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Retry, Self::Ask, Self::Fail];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Ask => "ask",
            Self::Fail => "fail",
        }
    }
}

impl Plan {
    /// A step by its number. Numbers in a plan are checked when it is made and when it is read.
    pub fn step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// A block by its number.
    pub fn block(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }

    /// The number of a step. Of a step that runs for each item this is the whole, and not one round of it.
    pub fn number_of(&self, id: &str) -> Option<u32> {
        self.steps.iter().position(|step| step.id == id).map(|number| number as u32)
    }

    /// The variables of an execution that is given these: with defaults, or why they do not fit.
    pub fn variables(&self, given: &Value) -> Result<Value, crate::failure::Failure> {
        let mut all = self.default_context.clone();
        all.extend(given.as_map().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        self.variables.as_ref().map_or_else(|| Ok(all.clone().into()), |declared| variables::filled(declared, &all))
    }

    /// The bound on visits of steps where nobody asks for one.
    pub fn max_steps_default(&self) -> u32 {
        match self.blocks.first().map(|root| &root.order) {
            Some(Order::Edges(_)) => EDGES_STEPS_DEFAULT,
            _ => EXECUTION_STEPS_DEFAULT,
        }
    }

    /// The outer steps that nothing waits for. A `return` is none: it gives the output itself, or was not taken.
    pub fn ends(&self) -> Vec<u32> {
        let root = self.block(0);
        let is_end = |place: usize| match &root.order {
            Order::Edges(graph) => graph.outgoing(place as u32).next().is_none(),
            Order::Sequence => place + 1 == root.steps.len(),
            Order::Parallel => true,
        };
        let steps = root.steps.iter().enumerate().filter(|(place, _)| is_end(*place)).map(|(_, step)| *step);
        steps.filter(|step| !matches!(self.step(*step).work, Work::Return { .. })).collect()
    }

    /// The step that contains a step.
    pub fn parent(&self, step: u32) -> Option<u32> {
        self.block(self.step(step).block).owner
    }

    /// The number after the last step inside a block: steps are numbered in the order in which they were written.
    pub fn end_of_block(&self, block: u32) -> u32 {
        let Some(last) = self.block(block).steps.last() else { return 0 };
        let inner = self.step(*last).work.branches().into_iter().map(|(_, inner)| self.end_of_block(inner));
        inner.max().unwrap_or(0).max(last + 1)
    }

    /// The loops around a step, the innermost first.
    pub fn loops_around(&self, step: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.parent(step);
        core::iter::from_fn(move || {
            loop {
                let owner = next?;
                next = self.parent(owner);
                if matches!(self.step(owner).work, Work::Loop(_)) {
                    return Some(owner);
                }
            }
        })
    }

    /// How many loops are around a step: the length of the rounds of its instances.
    pub fn loop_depth(&self, step: u32) -> usize {
        self.loops_around(step).count()
    }

    /// Whether a step is what another one does for each item: it has that one's name.
    pub fn is_body_of_each(&self, step: u32) -> bool {
        let owner = self.parent(step).map(|owner| &self.step(owner).work);
        matches!(owner, Some(Work::Loop(Loop { is_each: true, .. })))
    }

    /// The name of a step in references and messages.
    pub fn id(&self, step: u32) -> &str {
        &self.step(step).id
    }
}
