//! Where an execution is in its plan: a step at a place in loops, a block at a place in loops.

use alloc::{string::String, vec::Vec};

use crate::plan::Plan;

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

    /// How it is written: the step's name. (Loops, which add `[1].`, are not in this build.)
    pub fn name(&self, plan: &Plan) -> String {
        plan.id(self.step).into()
    }
}

impl Scope {
    /// The whole plan's.
    pub fn root() -> Self {
        Self { block: 0, rounds: Vec::new() }
    }

    /// The scope of a block inside a step.
    pub fn inside(instance: &Instance, block: u32) -> Self {
        Self { block, rounds: instance.rounds.clone() }
    }

    /// The instance of one of its steps.
    pub fn instance(&self, step: u32) -> Instance {
        Instance { step, rounds: self.rounds.clone() }
    }

    /// The instance that contains it; `None` for the whole plan.
    pub fn owner(&self, plan: &Plan) -> Option<Instance> {
        plan.block(self.block).owner.map(|step| Instance { step, rounds: self.rounds.clone() })
    }
}
