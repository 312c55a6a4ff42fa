//! A definition compiled: what the kernel runs, whichever notation it was written in.
//!
//! A plan is a tree of blocks laid flat. A block holds steps in an order; a step that contains others owns a block for
//! each of its branches. Steps are numbered in the order in which they were written, and that number is their place in
//! journals: a plan is kept by its hash and never compiled again.

use alloc::{string::String, vec::Vec};

use crate::{condition::Condition, failure::Class, hash::Hash, template::Template};

mod form;

pub use form::PlanError;

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
    /// Milliseconds for the whole execution; they stand still while only people are waited for.
    pub timeout_ms: Option<u64>,
    /// Whether agents may propose changes to the workflow.
    pub allow_self_modification: bool,
}

/// Steps that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The step that contains it; `None` for the whole plan.
    pub owner: Option<u32>,
    /// In which order its steps run.
    pub order: Order,
    /// Its steps, as written.
    pub steps: Vec<u32>,
}

/// In which order the steps of a block run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after another, as written.
    Sequence,
    /// At the same time, bounded.
    Parallel,
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
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Something in the world: `bash`, `tool`, `agent`, `agent_message`.
    Effect {
        /// The effect's name.
        effect: String,
        /// Its parameters, by the effect's own names.
        params: Template,
    },
    /// One branch or the other.
    Conditional {
        /// Which.
        condition: Condition,
        /// The block for yes.
        then: u32,
        /// The block for no.
        otherwise: Option<u32>,
    },
    /// All branches at the same time: every step of the block is one.
    Parallel {
        /// The block.
        block: u32,
    },
    /// Waits for people.
    Approval(Gate),
    /// Waits for time.
    Sleep {
        /// Milliseconds, a whole number once resolved.
        duration_ms: Template,
    },
    /// Waits for a named message.
    Signal {
        /// The name.
        name: String,
    },
    /// Ends the execution well.
    Return {
        /// The execution's output.
        output: Template,
    },
}

/// What people are asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The question.
    pub prompt: Template,
    /// What is approved: resolved, shown, and bound to the decision.
    pub items: Template,
    /// Who may decide; empty for the owner and the admins.
    pub approvers: Vec<String>,
    /// How many different people must approve.
    pub count: u32,
    /// Milliseconds from its opening until it is decided by itself.
    pub ttl_ms: u64,
    /// How it is decided then.
    pub on_timeout: Decision,
}

/// A decision at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Go on.
    Approve,
    /// Do not.
    Deny,
}

impl Decision {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// The decision of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Approve, Self::Deny].into_iter().find(|decision| decision.name() == word)
    }
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

/// How a failed attempt is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, at least 1.
    pub max_attempts: u32,
    /// How long to wait before each.
    pub delay: Delay,
    /// Up to this many thousandths of the delay are added, by a hash.
    pub jitter_permille: u32,
    /// The classes to retry; `None` for those that are retryable by nature.
    pub retry_on: Option<Vec<Class>>,
    /// The classes never to retry; this wins.
    pub never_on: Vec<Class>,
}

/// How long to wait before attempt n, which is at least 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// The given ones in turn, the last of them from then on.
    Listed(Vec<u64>),
    /// By a formula over the first delay, never above the bound.
    Formula {
        /// How it grows.
        backoff: Backoff,
        /// The first delay in milliseconds.
        initial_ms: u64,
        /// The bound in milliseconds.
        max_ms: u64,
    },
}

/// How delays grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// i
    Fixed,
    /// i·(n-1)
    Linear,
    /// i·2^(n-2)
    Exponential,
}

impl Backoff {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Linear, Self::Exponential];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}

impl Retry {
    /// One attempt.
    pub fn never() -> Self {
        let delay = Delay::Listed(Vec::new());
        Self { max_attempts: 1, delay, jitter_permille: 0, retry_on: None, never_on: Vec::new() }
    }

    /// Whether an attempt that failed with this class may be followed by another.
    pub fn allows(&self, class: Class, attempt: u32) -> bool {
        let wanted = self.retry_on.as_ref().map_or(class.is_retryable(), |classes| classes.contains(&class));
        attempt < self.max_attempts && wanted && !self.never_on.contains(&class)
    }

    /// Milliseconds before an attempt, counted from 2. `entropy` decides the jitter.
    pub fn delay_ms(&self, attempt: u32, entropy: Hash) -> u64 {
        let steps = u64::from(attempt.saturating_sub(2));
        let plain = match &self.delay {
            Delay::Listed(delays) => {
                let place = usize::try_from(steps).unwrap_or(usize::MAX).min(delays.len().saturating_sub(1));
                delays.get(place).copied().unwrap_or(0)
            }
            Delay::Formula { backoff, initial_ms, max_ms } => {
                let factor = match backoff {
                    Backoff::Fixed => 1,
                    Backoff::Linear => steps + 1,
                    Backoff::Exponential => {
                        1u64.checked_shl(u32::try_from(steps).unwrap_or(u32::MAX)).unwrap_or(u64::MAX)
                    }
                };
                initial_ms.saturating_mul(factor).min(*max_ms)
            }
        };
        let [a, b, c, d, ..] = entropy.0;
        let share = u128::from(u32::from_be_bytes([a, b, c, d]));
        let jitter = u128::from(plain) * u128::from(self.jitter_permille) * share / 1000 / u128::from(u32::MAX);
        plain.saturating_add(u64::try_from(jitter).unwrap_or(u64::MAX)).min(crate::limits::WAIT_MAX_MS)
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

    /// The number of a step.
    pub fn number_of(&self, id: &str) -> Option<u32> {
        self.steps.iter().position(|step| step.id == id).map(|number| number as u32)
    }

    /// The step that contains a step.
    pub fn parent(&self, step: u32) -> Option<u32> {
        self.block(self.step(step).block).owner
    }

    /// Whether a block is another one or lies inside it.
    pub fn is_inside(&self, block: u32, outer: u32) -> bool {
        let mut block = block;
        loop {
            if block == outer {
                return true;
            }
            match self.block(block).owner {
                Some(owner) => block = self.step(owner).block,
                None => return false,
            }
        }
    }

    /// The name of a step in references and messages.
    pub fn id(&self, step: u32) -> &str {
        &self.step(step).id
    }
}

impl Work {
    /// The type's name in a definition.
    pub fn kind(&self) -> &str {
        match self {
            Self::Effect { effect, .. } => effect,
            Self::Conditional { .. } => "conditional",
            Self::Parallel { .. } => "parallel",
            Self::Approval(_) => "approval",
            Self::Sleep { .. } => "sleep",
            Self::Signal { .. } => "signal",
            Self::Return { .. } => "return",
        }
    }

    /// The blocks inside, with the names of the branches.
    pub fn branches(&self) -> Vec<(&'static str, u32)> {
        match self {
            Self::Conditional { then, otherwise, .. } => {
                let mut branches = alloc::vec![("then", *then)];
                branches.extend(otherwise.map(|block| ("else", block)));
                branches
            }
            Self::Parallel { block } => alloc::vec![("steps", *block)],
            _ => Vec::new(),
        }
    }

    /// Whether attempts of it go out to the world.
    pub fn is_effect(&self) -> bool {
        matches!(self, Self::Effect { .. })
    }

    /// Every condition and template, for whoever looks for references.
    pub fn references<'a>(&'a self, found: &mut Vec<&'a crate::reference::Reference>) {
        match self {
            Self::Effect { params, .. } => params.references(found),
            Self::Conditional { condition, .. } => condition.references(found),
            Self::Approval(gate) => {
                gate.prompt.references(found);
                gate.items.references(found);
            }
            Self::Sleep { duration_ms } => duration_ms.references(found),
            Self::Return { output } => output.references(found),
            Self::Parallel { .. } | Self::Signal { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn check(delay: Delay, jitter_permille: u32, expected: &[u64]) {
        let retry = Retry { max_attempts: 9, delay, jitter_permille, retry_on: None, never_on: vec![] };
        let delays: Vec<_> = (2..2 + expected.len() as u32).map(|n| retry.delay_ms(n, Hash([0xff; 32]))).collect();
        assert_eq!(delays, expected);
    }

    #[test]
    fn delays() {
        let formula = |backoff, initial_ms, max_ms| Delay::Formula { backoff, initial_ms, max_ms };
        check(Delay::Listed(vec![10, 30]), 0, &[10, 30, 30, 30]);
        check(Delay::Listed(vec![]), 0, &[0, 0]);
        check(formula(Backoff::Fixed, 100, 1000), 0, &[100, 100, 100]);
        check(formula(Backoff::Linear, 100, 350), 0, &[100, 200, 300, 350, 350]);
        check(formula(Backoff::Exponential, 100, 1000), 0, &[100, 200, 400, 800, 1000]);
        check(formula(Backoff::Fixed, 100, 1000), 200, &[120]);
        let far = Retry { delay: formula(Backoff::Exponential, 1000, u64::MAX), ..Retry::never() };
        assert_eq!(far.delay_ms(5000, Hash::default()), crate::limits::WAIT_MAX_MS);
    }

    #[test]
    fn what_is_retried() {
        let retry =
            |retry_on: Option<Vec<Class>>, never_on| Retry { max_attempts: 2, retry_on, never_on, ..Retry::never() };
        assert!(retry(None, vec![]).allows(Class::Timeout, 1) && !retry(None, vec![]).allows(Class::Timeout, 2));
        assert!(
            !retry(None, vec![]).allows(Class::Failed, 1)
                && !retry(None, vec![Class::Timeout]).allows(Class::Timeout, 1)
        );
        assert!(retry(Some(vec![Class::Failed]), vec![]).allows(Class::Failed, 1));
        assert!(!retry(Some(vec![Class::Failed]), vec![]).allows(Class::Timeout, 1));
        assert!(!retry(Some(vec![Class::Failed]), vec![Class::Failed]).allows(Class::Failed, 1));
    }
}
