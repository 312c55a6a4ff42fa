//! What a step does.

use alloc::{string::String, vec::Vec};

use crate::{condition::Condition, reference::Reference, template::Template};

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Something in the world: `bash`, `tool`, `http`, `agent`, `agent_message`.
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
    /// A block again and again.
    Loop(Loop),
    /// A function of its input.
    Code {
        /// The source of its module.
        source: String,
        /// What the function is given.
        input: Template,
    },
    /// Another workflow.
    Subworkflow {
        /// Its name.
        workflow: String,
        /// Its input.
        input: Template,
        /// Its variables.
        variables: Template,
        /// Whether its end is waited for.
        waits: bool,
    },
    /// Waits for people.
    Approval(Gate),
    /// Waits for time.
    Sleep {
        /// Milliseconds, a whole number once resolved.
        duration_ms: Template,
    },
    /// Waits until a time.
    SleepUntil {
        /// An RFC 3339 text or milliseconds since 1970 once resolved.
        time: Template,
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

/// A block again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The block of one round.
    pub block: u32,
    /// How many rounds there are.
    pub over: Over,
    /// Rounds at a time.
    pub concurrency: u32,
    /// Whether this is a step that runs for each item, so that its one inner step bears its name.
    pub is_each: bool,
}

/// How many rounds a loop has.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// One for each item of a list.
    Items(Reference),
    /// As long as a condition holds, which is asked before each round.
    While {
        /// The condition; inside the loop it reads the last round.
        condition: Condition,
        /// Rounds after which the loop fails.
        max_rounds: u32,
    },
    /// Until a condition holds, which is asked after each round.
    Until {
        /// The condition; inside the loop it reads the last round.
        condition: Condition,
        /// Rounds after which the loop fails.
        max_rounds: u32,
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

impl Work {
    /// The type's name in a definition.
    pub fn kind(&self) -> &str {
        match self {
            Self::Effect { effect, .. } => effect,
            Self::Conditional { .. } => "conditional",
            Self::Parallel { .. } => "parallel",
            Self::Loop(_) => "loop",
            Self::Code { .. } => "code",
            Self::Subworkflow { .. } => "subworkflow",
            Self::Approval(_) => "approval",
            Self::Sleep { .. } | Self::SleepUntil { .. } => "sleep",
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
            Self::Parallel { block } | Self::Loop(Loop { block, .. }) => alloc::vec![("steps", *block)],
            _ => Vec::new(),
        }
    }

    /// Whether it does nothing but run what it contains.
    pub fn is_container(&self) -> bool {
        matches!(self, Self::Conditional { .. } | Self::Parallel { .. } | Self::Loop(_))
    }

    /// Whether attempts of it go out: into the world, or to another execution.
    pub fn goes_out(&self) -> bool {
        matches!(self, Self::Effect { .. } | Self::Subworkflow { .. })
    }

    /// Whether it takes one of the places of a block that goes by edges: calls do, and what may make calls inside. What
    /// waits for people or time, and what is settled within a turn, need not wait for others to end.
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

    /// Every condition and template, for whoever looks for references.
    pub fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Effect { params, .. } => params.references(found),
            Self::Conditional { condition, .. } => condition.references(found),
            Self::Loop(Loop { over, .. }) => match over {
                Over::Items(list) => found.push(list),
                Over::While { condition, .. } | Over::Until { condition, .. } => condition.references(found),
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
