//! The compiled form of a definition, which the kernel executes. It is the same for every notation.
//!
//! A plan is a tree of blocks, stored as flat lists. A block holds steps in an order. A step that contains other steps
//! owns one block for each of its branches. Steps are numbered in the order in which they are written, and journals
//! refer to steps by these numbers. For this reason a plan is stored under its hash and its definition is never
//! compiled again.
//!
//! Plans hold no state of executions (see `state`) and no positions in the text of the definition (see `definition`).

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    budget::{Budget, ModelTerms},
    condition::Condition,
    hash::Hash,
    label::Trust,
    limits::{EDGES_STEPS_DEFAULT, EXECUTION_STEPS_DEFAULT},
    template::Template,
    value::{Map, Value},
};

mod agent;
mod budget;
mod certain;
mod decode;
mod effect_rules;
mod encode;
mod graph;
mod messages;
mod retry;
mod runner;
mod signals;
mod variables;
mod work;

pub use agent::{Agent, AgentPart, PROPOSE_TOOL, WORKFLOW_TOOL};
pub use certain::endless;
pub(crate) use effect_rules::RuleReader;
pub use effect_rules::{ClassSource, EffectClass, Guard, Pattern, RuleError, Verdict, VerdictRules};
pub use encode::{PlanBytes, PlanError};
pub use graph::{Edge, EdgeKind, Graph, Pull, SourceEnd};
pub use retry::{Backoff, Delay, Matcher, Retry, is_code};
pub use runner::{ANSWER_SCHEMA, PERMISSIONS, RUNNER_EFFECT, ToolKind};
pub use variables::{VARIABLE_TYPES, Variable, VariableType};
pub use work::{Decision, Gate, Loop, Over, Work};

/// A compiled definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The name of the workflow, if the definition has one.
    pub name: Option<String>,
    /// The version of the workflow, if the definition has one.
    pub version: Option<String>,
    /// SHA-256 of the canonical JSON of the normalized definition.
    pub workflow_hash: Hash,
    /// Limits on every execution.
    pub constraints: Constraints,
    /// The failures after which an execution fails.
    pub policy: FailurePolicy,
    /// The rules of the workflow for its calls. They can only tighten those of the installation.
    pub effect_rules: VerdictRules,
    /// The models of the installation and their prices, set when an execution with agents starts.
    pub models: Option<ModelTerms>,
    /// The JSON Schema of the input.
    pub input_schema: Option<Value>,
    /// The declared variables. `None` if the definition declares none; it then accepts any variable.
    pub variables: Option<Vec<Variable>>,
    /// Values of variables that are not given.
    pub default_context: Map,
    /// The output of an execution that ends without a `return`.
    pub output: Output,
    /// The steps that run when everything else has ended.
    pub finally: Option<Finally>,
    /// The blocks. Block 0 is the outermost one.
    pub blocks: Vec<Block>,
    /// The steps in written order.
    pub steps: Vec<Step>,
    /// The labels that steps remove from their outputs, by the number of the step.
    pub trust: BTreeMap<u32, Trust>,
}

/// The steps that run when everything else has ended, whatever the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finally {
    /// The block of these steps. No step contains it, and its number follows those of all other blocks outside of it.
    pub block: u32,
    /// The time that they may take together, in milliseconds.
    pub timeout_ms: u64,
}

/// Limits on an execution. `None` selects the default in [`limits`](crate::limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Constraints {
    /// Maximum number of step visits; containers and inner steps count.
    pub max_steps: Option<u32>,
    /// Maximum number of branches or rounds that run concurrently.
    pub max_parallel: Option<u32>,
    /// Maximum number of calls: attempts of effects and of subworkflows.
    pub max_calls: Option<u32>,
    /// Maximum number of executions that it starts, directly or through its children.
    pub max_executions: Option<u32>,
    /// Maximum size of one step's output in its binary form, in bytes.
    pub max_output_bytes: Option<u32>,
    /// Timeout of the whole execution in milliseconds. The clock stops while the execution waits for people only.
    pub timeout_ms: Option<u64>,
    /// The budget of its agents, which its children share.
    pub budget: Option<Budget>,
    /// True if agents may propose changes to the workflow.
    pub allow_self_modification: bool,
}

/// The failures after which an execution fails as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FailurePolicy {
    /// Tolerates every failure; steps that need the failed step are skipped.
    pub fail_open: bool,
    /// The execution fails at this number of failed steps; handled and tolerated failures count.
    pub max_node_failures: Option<u32>,
    /// The execution fails at this number of steps that failed after several attempts.
    pub max_retries_exhausted: Option<u32>,
}

/// The output of an execution that ends without a `return`.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// An object of the output variables.
    Variables,
    /// The output of the one step that no other step waits for. With several such steps, an object by step id.
    Ends,
    /// The `output` of the definition.
    Given(Template),
}

/// A list of steps: the outermost steps, or one branch of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The step that contains the block; `None` for block 0 and for the block of `finally`.
    pub owner: Option<u32>,
    /// The order of its steps.
    pub order: Order,
    /// The numbers of its steps, in written order.
    pub steps: Vec<u32>,
}

/// The order in which the steps of a block run.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// One after another, in written order.
    Sequence,
    /// Concurrently, up to `maxParallel`.
    Parallel,
    /// By edges. Steps without incoming edges start at once, up to `maxParallel`.
    Edges(Graph),
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its id as written, otherwise its path. Only a `forEach` step and its body share an id.
    pub id: String,
    /// The block that contains it.
    pub block: u32,
    /// The step is skipped unless this condition holds.
    pub when: Option<Condition>,
    /// The work of the step.
    pub work: Work,
    /// The retry policy.
    pub retry: Retry,
    /// Timeout of one attempt in milliseconds; `None` for steps without attempts.
    pub timeout_ms: Option<u64>,
    /// The consequence of a failure.
    pub on_error: OnError,
    /// The consequence of an attempt whose outcome is unknown, for example after a crash.
    pub on_interrupted: OnInterrupted,
    /// The output variable that receives its output.
    pub output_variable: Option<String>,
    /// If this condition holds after the step has succeeded, the execution succeeds with the step's output.
    pub bail: Option<Condition>,
    /// The JSON Schema of its output.
    pub output_schema: Option<Value>,
    /// Source of the function that converts the result of an effect to the step's output.
    pub transform: Option<String>,
    /// Scheduling priority: the highest runs first when a concurrency slot is free.
    pub priority: i32,
    /// True if each attempt has its own idempotency key; otherwise all attempts share one.
    pub key_per_attempt: bool,
    /// The decision of the policy about the step's call, set when an execution starts. `None` if the call is allowed.
    pub guard: Option<Guard>,
}

/// The consequence of a step's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The block that contains the step fails.
    Fail,
    /// The failure is tolerated: the output is null, and the outcome says so.
    Continue,
}

impl OnError {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Fail, Self::Continue];

    /// Returns the value as a definition writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Continue => "continue",
        }
    }
}

/// The consequence of an attempt whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupted {
    /// The step is retried if the policy has an attempt left.
    Retry,
    /// A person decides.
    Ask,
    /// The step fails.
    Fail,
}

impl OnInterrupted {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Retry, Self::Ask, Self::Fail];

    /// Returns the value as a definition writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Ask => "ask",
            Self::Fail => "fail",
        }
    }
}

impl Plan {
    /// Returns a step by its number. Does not fail for numbers in the plan: they are checked when a plan is built or
    /// read.
    pub fn step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// Returns a block by its number.
    pub fn block(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }

    /// Returns the number of a step. For a `forEach` step this is the loop, not its body.
    pub fn number_of(&self, id: &str) -> Option<u32> {
        self.steps.iter().position(|step| step.id == id).map(|number| number as u32)
    }

    /// Returns the variables of an execution with defaults filled in, or a failure if the given ones do not match their
    /// declarations.
    pub fn variables(&self, given: &Value) -> Result<Value, crate::failure::Failure> {
        let mut all = self.default_context.clone();
        all.extend(given.as_map().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        self.variables.as_ref().map_or_else(|| Ok(all.clone().into()), |declared| variables::filled(declared, &all))
    }

    /// Returns the maximum number of step visits if the definition sets none.
    pub fn max_steps_default(&self) -> u32 {
        match self.blocks.first().map(|root| &root.order) {
            Some(Order::Edges(_)) => EDGES_STEPS_DEFAULT,
            _ => EXECUTION_STEPS_DEFAULT,
        }
    }

    /// True if a step calls a model.
    pub fn has_agents(&self) -> bool {
        self.steps.iter().any(|step| step.work.kind() == "agent" && step.work.runner().is_none())
    }

    /// Returns the outermost steps that no other step waits for, except `return` steps: a `return` sets the output
    /// itself or did not run.
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

    /// True if a block is that of `finally`.
    pub fn is_finally(&self, block: u32) -> bool {
        self.finally.is_some_and(|finally| finally.block == block)
    }

    /// True if a step is in `finally`, at any depth. These steps have the last numbers.
    pub fn is_in_finally(&self, step: u32) -> bool {
        let first = self.finally.and_then(|finally| self.block(finally.block).steps.first().copied());
        first.is_some_and(|first| step >= first)
    }

    /// Returns the step that contains a step.
    pub fn parent(&self, step: u32) -> Option<u32> {
        self.block(self.step(step).block).owner
    }

    /// Returns the number after the last step inside a block. The steps inside have consecutive numbers, because steps
    /// are numbered in written order.
    pub fn end_of_block(&self, block: u32) -> u32 {
        let Some(last) = self.block(block).steps.last() else { return 0 };
        let inner = self.step(*last).work.branches().into_iter().map(|(_, inner)| self.end_of_block(inner));
        inner.max().unwrap_or(0).max(last + 1)
    }

    /// Returns the loops around a step, innermost first.
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

    /// Returns the number of loops around a step, which is the number of round indexes in its instances.
    pub fn loop_depth(&self, step: u32) -> usize {
        self.loops_around(step).count()
    }

    /// True if a step is the body of a `forEach` step, whose id it shares.
    pub fn is_body_of_each(&self, step: u32) -> bool {
        let owner = self.parent(step).map(|owner| &self.step(owner).work);
        matches!(owner, Some(Work::Loop(Loop { is_each: true, .. })))
    }

    /// Returns the id of a step, as used in references and messages.
    pub fn id(&self, step: u32) -> &str {
        &self.step(step).id
    }
}
