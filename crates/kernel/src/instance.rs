//! Where an execution is in its plan: a step at a place in loops, a block at a place in loops.

use alloc::{format, string::String, vec::Vec};
use core::ops::Range;

use crate::plan::{Plan, Work};

/// A step instance: a step of the plan and, for each loop around it from the outermost, which round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The step's number in the plan.
    pub step: u32,
    /// The rounds.
    pub rounds: Vec<u32>,
}

/// A block instance: what runs the steps of a block once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The block's number in the plan.
    pub block: u32,
    /// The rounds.
    pub rounds: Vec<u32>,
}

impl Instance {
    /// A step outside of loops.
    pub fn of_step(step: u32) -> Self {
        Self { step, rounds: Vec::new() }
    }

    /// The scope that it runs in.
    pub fn scope(&self, plan: &Plan) -> Scope {
        Scope { block: plan.step(self.step).block, rounds: self.rounds.clone() }
    }

    /// One round of it, for a step that runs again and again.
    pub fn round(&self, round: u32) -> Vec<u32> {
        let mut rounds = Vec::with_capacity(self.rounds.len() + 1);
        rounds.extend_from_slice(&self.rounds);
        rounds.push(round);
        rounds
    }

    /// The instances of the steps that stand in one round of it, nested ones included: a range for each step.
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

    /// How it is written: `deploy`, `each[1]` for what a step does for an item, `L[1].b` for a step in a loop.
    pub fn name(&self, plan: &Plan) -> String {
        if self.rounds.is_empty() {
            return plan.id(self.step).into();
        }
        let loops: Vec<_> = plan.loops_around(self.step).collect();
        let rounds = loops.iter().rev().zip(&self.rounds).map(|(step, round)| format!("{}[{round}]", plan.id(*step)));
        let mut parts: Vec<String> = rounds.collect();
        if !plan.is_body_of_each(self.step) {
            parts.push(plan.id(self.step).into());
        }
        parts.join(".")
    }

    /// The instance that is written like this; `None` if the plan can have none of that name.
    pub fn parse(name: &str, plan: &Plan) -> Option<Self> {
        let numbers = 0..plan.steps.len() as u32;
        let found = numbers.clone().find(|step| plan.id(*step) == name && plan.loop_depth(*step) == 0);
        found.map(Self::of_step).or_else(|| numbers.clone().find_map(|step| parse_step(name, plan, step)))
    }
}

impl Scope {
    /// The whole plan's.
    pub fn root() -> Self {
        Self { block: 0, rounds: Vec::new() }
    }

    /// The scope of a block inside a step that is no loop.
    pub fn inside(instance: &Instance, block: u32) -> Self {
        Self { block, rounds: instance.rounds.clone() }
    }

    /// The scope of one round of a loop.
    pub fn of_round(instance: &Instance, block: u32, round: u32) -> Self {
        Self { block, rounds: instance.round(round) }
    }

    /// The instance of one of its steps.
    pub fn instance(&self, step: u32) -> Instance {
        Instance { step, rounds: self.rounds.clone() }
    }

    /// The instance that contains it; `None` for the whole plan.
    pub fn owner(&self, plan: &Plan) -> Option<Instance> {
        let step = plan.block(self.block).owner?;
        let rounds = match plan.step(step).work {
            Work::Loop(_) => self.rounds.split_last().map(|(_, outer)| outer.to_vec()).unwrap_or_default(),
            _ => self.rounds.clone(),
        };
        Some(Instance { step, rounds })
    }

    /// Which round of its loop it is, for the block of a loop.
    pub fn round_of_loop(&self, plan: &Plan) -> Option<(Instance, u32)> {
        let owner = self.owner(plan)?;
        let is_loop = matches!(plan.step(owner.step).work, Work::Loop(_));
        self.rounds.last().filter(|_| is_loop).map(|round| (owner, *round))
    }
}

/// Whether a name is that of an instance of a step: the names of the loops around it, each with a round, then its own.
fn parse_step(name: &str, plan: &Plan, step: u32) -> Option<Instance> {
    let mut loops: Vec<_> = plan.loops_around(step).collect();
    loops.reverse();
    let (mut rest, mut rounds) = (name, Vec::new());
    for (at, around) in loops.iter().enumerate() {
        let after = rest.strip_prefix(plan.id(*around))?.strip_prefix('[')?;
        let (round, after) = after.split_once(']')?;
        rounds.push(round.parse().ok()?);
        let is_last = at + 1 == loops.len() && plan.is_body_of_each(step);
        rest = if is_last { after } else { after.strip_prefix('.')? };
    }
    let own = if plan.is_body_of_each(step) { "" } else { plan.id(step) };
    (rest == own).then_some(Instance { step, rounds })
}
