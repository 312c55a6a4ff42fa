//! Identities of running parts of a plan. An [`Instance`] is a step and a [`Scope`] is a block, each in one round of
//! every loop around it.

use alloc::{format, string::String, vec::Vec};
use core::ops::Range;

use crate::plan::{AgentPart, Loop, Over, Plan, Work};

/// A step instance: a step of the plan and a round number for each loop around it, outermost first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// Number of the step in the plan.
    pub step: u32,
    /// Round numbers, one for each enclosing loop, outermost first.
    pub rounds: Vec<u32>,
}

/// A block instance: one run of a block's steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Number of the block in the plan.
    pub block: u32,
    /// Round numbers, one for each enclosing loop, outermost first.
    pub rounds: Vec<u32>,
}

impl Instance {
    /// Creates the instance of a step outside of all loops.
    pub fn of_step(step: u32) -> Self {
        Self { step, rounds: Vec::new() }
    }

    /// Returns the block instance that the step runs in.
    pub fn scope(&self, plan: &Plan) -> Scope {
        Scope { block: plan.step(self.step).block, rounds: self.rounds.clone() }
    }

    /// Returns the agent around a model call or a tool call; `None` for other steps.
    pub(crate) fn agent(&self, plan: &Plan) -> Option<Self> {
        let owner = self.scope(plan).owner(plan)?;
        match &plan.step(owner.step).work {
            Work::Loop(Loop { over: Over::Turns(_), .. }) => Some(owner),
            Work::Loop(Loop { over: Over::Calls, .. }) => owner.scope(plan).owner(plan),
            _ => None,
        }
    }

    /// Returns the round numbers of the steps inside one round of this loop.
    pub fn round(&self, round: u32) -> Vec<u32> {
        let mut rounds = Vec::with_capacity(self.rounds.len() + 1);
        rounds.extend_from_slice(&self.rounds);
        rounds.push(round);
        rounds
    }

    /// Returns the instances of all steps inside one round of this loop, at any depth: one range for each step.
    pub(crate) fn steps_of_round(&self, plan: &Plan, round: u32) -> impl Iterator<Item = Range<Self>> {
        let (rounds, next) = (self.round(round), self.round(round + 1));
        let (mut blocks, mut steps) = (plan.step(self.step).work.branches(), Vec::new());
        while let Some((_, block)) = blocks.pop() {
            for step in &plan.block(block).steps {
                steps.push(*step);
                blocks.extend(plan.step(*step).work.branches());
            }
        }
        let of_step = move |step| Self { step, rounds: rounds.clone() }..Self { step, rounds: next.clone() };
        steps.into_iter().map(of_step)
    }

    /// Returns the public name, such as `deploy`. A step in a loop is `L[1].b`; the body of a for-each step is
    /// `each[1]`. The third model call of an agent is `ask#3`, and the second tool call after it `ask#3.2`.
    pub fn name(&self, plan: &Plan) -> String {
        if self.rounds.is_empty() {
            return plan.id(self.step).into();
        }
        let loops: Vec<_> = plan.loops_around(self.step).collect();
        let mut name = String::new();
        for (step, round) in loops.iter().rev().zip(&self.rounds) {
            match &plan.step(*step).work {
                Work::Loop(Loop { over: Over::Turns(_), .. }) => {
                    push_own(&mut name, plan, *step);
                    name.push_str(&format!("#{}", round + 1));
                }
                Work::Loop(Loop { over: Over::Calls, .. }) => name.push_str(&format!(".{}", round + 1)),
                _ => {
                    push_part(&mut name, plan.id(*step));
                    name.push_str(&format!("[{round}]"));
                }
            }
        }
        push_own(&mut name, plan, self.step);
        name
    }

    /// Parses a public name; `None` if the plan has no step instance of that name.
    pub fn parse(name: &str, plan: &Plan) -> Option<Self> {
        let numbers = 0..plan.steps.len() as u32;
        let found = numbers.clone().find(|step| plan.id(*step) == name && plan.loop_depth(*step) == 0);
        found.map(Self::of_step).or_else(|| numbers.clone().find_map(|step| parse_step(name, plan, step)))
    }
}

impl Scope {
    /// The outermost block of a plan.
    pub fn root() -> Self {
        Self { block: 0, rounds: Vec::new() }
    }

    /// Creates the scope of a block inside a step other than a loop.
    pub fn inside(instance: &Instance, block: u32) -> Self {
        Self { block, rounds: instance.rounds.clone() }
    }

    /// Creates the scope of one round of a loop.
    pub fn of_round(instance: &Instance, block: u32, round: u32) -> Self {
        Self { block, rounds: instance.round(round) }
    }

    /// Returns the instance of a step of this block.
    pub fn instance(&self, step: u32) -> Instance {
        Instance { step, rounds: self.rounds.clone() }
    }

    /// Returns the step instance that contains this block; `None` for the outermost block.
    pub fn owner(&self, plan: &Plan) -> Option<Instance> {
        let step = plan.block(self.block).owner?;
        let rounds = match plan.step(step).work {
            Work::Loop(_) => self.rounds.split_last().map(|(_, outer)| outer.to_vec()).unwrap_or_default(),
            _ => self.rounds.clone(),
        };
        Some(Instance { step, rounds })
    }

    /// Returns the loop and the round number, if this is the block of a loop.
    pub fn round_of_loop(&self, plan: &Plan) -> Option<(Instance, u32)> {
        let owner = self.owner(plan)?;
        let is_loop = matches!(plan.step(owner.step).work, Work::Loop(_));
        self.rounds.last().filter(|_| is_loop).map(|round| (owner, *round))
    }
}

/// The end of the name of the loop over an agent's tool calls: `ask#3.calls`.
const CALLS: &str = ".calls";

fn push_part(name: &mut String, part: &str) {
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(part);
}

/// Adds the name of a step itself, if it has one: the body of a for-each step and the calls of an agent have none.
fn push_own(name: &mut String, plan: &Plan, step: u32) {
    match plan.agent_part(step) {
        Some(AgentPart::Model | AgentPart::Call) => {}
        Some(AgentPart::Calls) => name.push_str(CALLS),
        None if plan.is_body_of_each(step) => {}
        None => push_part(name, plan.id(step)),
    }
}

/// Parses a name as an instance of the given step: each enclosing loop with its round number, then the step.
fn parse_step(name: &str, plan: &Plan, step: u32) -> Option<Instance> {
    let mut loops: Vec<_> = plan.loops_around(step).collect();
    loops.reverse();
    let (mut rest, mut rounds) = (name, Vec::new());
    for (at, around) in loops.iter().enumerate() {
        if let Work::Loop(Loop { over: over @ (Over::Turns(_) | Over::Calls), .. }) = &plan.step(*around).work {
            let (own, mark) = match over {
                Over::Turns(_) if !plan.is_body_of_each(*around) => (plan.id(*around), '#'),
                Over::Turns(_) => ("", '#'),
                _ => ("", '.'),
            };
            let after = rest.strip_prefix(own)?.strip_prefix(mark)?;
            let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            let number = &after[..end];
            rounds.push(number.parse::<u32>().ok().filter(|_| !number.starts_with('0'))?.checked_sub(1)?);
            rest = &after[end..];
            continue;
        }
        let after = rest.strip_prefix(plan.id(*around))?.strip_prefix('[')?;
        let (round, after) = after.split_once(']')?;
        rounds.push(round.parse().ok()?);
        // The body of a for-each step has no name of its own, even if it is an agent with steps inside.
        let next = loops.get(at + 1).copied().unwrap_or(step);
        let is_last = plan.is_body_of_each(next);
        rest = if is_last { after } else { after.strip_prefix('.')? };
    }
    let own = match plan.agent_part(step) {
        Some(AgentPart::Model | AgentPart::Call) => "",
        Some(AgentPart::Calls) => CALLS,
        None if plan.is_body_of_each(step) => "",
        None => plan.id(step),
    };
    (rest == own).then_some(Instance { step, rounds })
}
