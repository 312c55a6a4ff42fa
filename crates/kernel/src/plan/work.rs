//! The work of steps: one variant for each kind of step, with its parameters.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Agent, RUNNER_EFFECT};
use crate::{condition::Condition, reference::Reference, template::Template};

/// The work of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// An external effect: `bash`, `tool`, `http`, `agent`, `agent_runner` or `agent_message`.
    Effect {
        /// The name of the effect.
        effect: String,
        /// The parameters, named as the effect defines them.
        params: Template,
    },
    /// One of two branches.
    Conditional {
        /// Selects the branch.
        condition: Condition,
        /// The block that runs if the condition holds.
        then: u32,
        /// The block that runs otherwise.
        otherwise: Option<u32>,
    },
    /// Concurrent branches: each step of the block is one.
    Parallel {
        /// The block of the branches.
        block: u32,
    },
    /// A block that runs in rounds.
    Loop(Loop),
    /// A pure function.
    Code {
        /// The source of its module.
        source: String,
        /// The argument of the function.
        input: Template,
    },
    /// An execution of another workflow.
    Subworkflow {
        /// The name of the workflow.
        workflow: String,
        /// The input of the execution.
        input: Template,
        /// The variables of the execution.
        variables: Template,
        /// True if the step waits for the execution to end.
        waits: bool,
    },
    /// An approval by people.
    Approval(Gate),
    /// A wait for a duration.
    Sleep {
        /// The duration; resolves to a whole number of milliseconds.
        duration_ms: Template,
    },
    /// A wait until a point in time.
    SleepUntil {
        /// The time; resolves to an RFC 3339 text or to milliseconds since 1970.
        time: Template,
    },
    /// A wait for a signal.
    Signal {
        /// The name of the signal.
        name: String,
    },
    /// The successful end of the execution.
    Return {
        /// The output of the execution.
        output: Template,
    },
}

/// A loop: a block that runs in rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The block that each round runs.
    pub block: u32,
    /// The rule for the number of rounds.
    pub over: Over,
    /// Maximum number of rounds that run concurrently.
    pub concurrency: u32,
    /// True if this is the loop of a `forEach` step. Its block has one step, the body, which has the same id.
    pub is_each: bool,
}

/// The rule for the number of rounds.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// One round for each item of a list.
    Items(Reference),
    /// Rounds while a condition holds, evaluated before each round.
    While {
        /// The condition. A reference to a step inside the loop reads the last round.
        condition: Condition,
        /// The number of rounds after which the loop fails.
        max_rounds: u32,
    },
    /// Rounds until a model gives its final answer.
    Turns(Box<Agent>),
    /// The tool calls of an agent's answer, one round for each. Stands inside of an agent only.
    Calls,
    /// Rounds until a condition holds, evaluated after each round.
    Until {
        /// The condition. A reference to a step inside the loop reads the last round.
        condition: Condition,
        /// The number of rounds after which the loop fails.
        max_rounds: u32,
    },
}

/// An approval gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The question to the approvers.
    pub prompt: Template,
    /// The subject of the approval. It is resolved, shown to the approvers, and bound to their decision.
    pub items: Template,
    /// The names of the approvers. If empty, the owner and the admins decide.
    pub approvers: Vec<String>,
    /// The number of different people who must approve.
    pub count: u32,
    /// Milliseconds after opening until the gate closes by itself.
    pub ttl_ms: u64,
    /// The decision when the gate closes by itself.
    pub on_timeout: Decision,
}

/// A decision at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The execution continues. At the gate of an interrupted attempt, the attempt is repeated.
    Approve,
    /// The execution is canceled. At the gate of an interrupted attempt, the step fails instead.
    Deny,
}

impl Decision {
    /// Returns the decision as a definition writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// Parses a decision.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Approve, Self::Deny].into_iter().find(|decision| decision.name() == word)
    }
}

impl Work {
    /// Returns the step type as a definition writes it.
    pub fn kind(&self) -> &str {
        match self {
            Self::Effect { effect, .. } if effect == RUNNER_EFFECT => "agent",
            Self::Effect { effect, .. } => effect,
            Self::Conditional { .. } => "conditional",
            Self::Parallel { .. } => "parallel",
            Self::Loop(Loop { over: Over::Turns(_), .. }) => "agent",
            Self::Loop(_) => "loop",
            Self::Code { .. } => "code",
            Self::Subworkflow { .. } => "subworkflow",
            Self::Approval(_) => "approval",
            Self::Sleep { .. } | Self::SleepUntil { .. } => "sleep",
            Self::Signal { .. } => "signal",
            Self::Return { .. } => "return",
        }
    }

    /// Returns the inner blocks, each with the key of its branch.
    pub fn branches(&self) -> Vec<(&'static str, u32)> {
        match self {
            Self::Conditional { then, otherwise, .. } => {
                let mut branches = alloc::vec![("then", *then)];
                branches.extend(otherwise.map(|block| ("else", block)));
                branches
            }
            Self::Parallel { block } | Self::Loop(Loop { block, .. }) => alloc::vec![("steps", *block)],
            _ => Vec::new(),
        }
    }

    /// True for an agent, whose inner steps the author has not written.
    pub fn is_agent(&self) -> bool {
        matches!(self, Self::Loop(Loop { over: Over::Turns(_), .. }))
    }

    /// True if the work may run a script: a `bash` step, an agent that lists `bash` among its tools, or an external agent,
    /// which runs the commands that its goal asks for.
    pub fn may_run_scripts(&self) -> bool {
        match self {
            Self::Effect { effect, .. } => effect == "bash" || effect == RUNNER_EFFECT,
            Self::Loop(Loop { over: Over::Turns(agent), .. }) => agent.permits("bash"),
            _ => false,
        }
    }

    /// True if the work may call tools of tool servers: a `tool` step, or an agent that lists such tools.
    pub fn may_call_tool_servers(&self) -> bool {
        match self {
            Self::Effect { effect, .. } => effect == "tool",
            Self::Loop(Loop { over: Over::Turns(agent), .. }) => agent.uses_tool_servers(),
            _ => false,
        }
    }

    /// True if the work consists of inner steps only.
    pub fn is_container(&self) -> bool {
        matches!(self, Self::Conditional { .. } | Self::Parallel { .. } | Self::Loop(_))
    }

    /// True if its attempts are calls: external effects, or executions of other workflows.
    pub fn goes_out(&self) -> bool {
        matches!(self, Self::Effect { .. } | Self::Subworkflow { .. })
    }

    /// True if it occupies a concurrency slot (`maxParallel`) in a block with edges: calls, and containers that may
    /// make calls. Steps that wait for people or time need no slot, nor do steps that finish within a turn.
    pub fn takes_place(&self) -> bool {
        match self {
            Self::Effect { .. }
            | Self::Subworkflow { .. }
            | Self::Conditional { .. }
            | Self::Parallel { .. }
            | Self::Loop(_) => true,
            Self::Code { .. }
            | Self::Approval(_)
            | Self::Sleep { .. }
            | Self::SleepUntil { .. }
            | Self::Signal { .. }
            | Self::Return { .. } => false,
        }
    }

    /// Returns the names of the workflows that it can start.
    pub fn starts(&self) -> Vec<&str> {
        match self {
            Self::Subworkflow { workflow, .. } => Vec::from([workflow.as_str()]),
            Self::Loop(Loop { over: Over::Turns(agent), .. }) => agent.workflows().collect(),
            _ => Vec::new(),
        }
    }

    /// Adds all references in its conditions and templates to `found`.
    pub fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Effect { params, .. } => params.references(found),
            Self::Conditional { condition, .. } => condition.references(found),
            Self::Loop(Loop { over, .. }) => match over {
                Over::Items(list) => found.push(list),
                Over::While { condition, .. } | Over::Until { condition, .. } => condition.references(found),
                Over::Turns(agent) => agent.settings.references(found),
                Over::Calls => {}
            },
            Self::Code { input, .. } => input.references(found),
            Self::Subworkflow { input, variables, .. } => {
                input.references(found);
                variables.references(found);
            }
            Self::Approval(gate) => {
                gate.prompt.references(found);
                gate.items.references(found);
            }
            Self::Sleep { duration_ms: time } | Self::SleepUntil { time } => time.references(found),
            Self::Return { output } => output.references(found),
            Self::Parallel { .. } | Self::Signal { .. } => {}
        }
    }
}
