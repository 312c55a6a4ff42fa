//! Divides the execution budget, the number of executions that may be started, among children.
//!
//! No node counts the executions of a whole tree. Instead each execution has a budget, which does not include itself.
//! It gives each child a share of it: one for the child, and the rest as the budget of the child. A child that is
//! awaited returns the unused part when it ends; a detached child keeps its share. The executions of a tree therefore
//! never exceed the budget of its root, regardless of nodes and timing.

use alloc::{format, vec, vec::Vec};

use super::Decider;
use crate::{
    apply::IllegalTransition,
    failure::{Class, Failure},
    input::Lineage,
    instance::Instance,
    limits::EXECUTIONS_DEFAULT,
    plan::{Loop, Order, Over, Plan, Work},
    record::Record,
};

impl Decider<'_> {
    /// Returns the lineage with the execution budget. The definition of a child may lower the budget that its parent
    /// gave it.
    pub(super) fn with_executions(&self, lineage: &Lineage) -> Lineage {
        let given = lineage.executions.unwrap_or(EXECUTIONS_DEFAULT);
        let own = self.state.plan.constraints.max_executions.filter(|_| lineage.depth > 0);
        let executions = self.is_bounded().then(|| own.map_or(given, |own| own.min(given)));
        Lineage { executions, ..lineage.clone() }
    }

    fn executions_given(&self) -> u32 {
        self.state.lineage.executions.unwrap_or(EXECUTIONS_DEFAULT)
    }

    /// Returns the failure of a step that would start an execution when none is left in the budget.
    pub(super) fn executions_used_up(&self, instance: &Instance) -> Option<Failure> {
        let given = self.executions_given();
        if !self.is_bounded() || self.state.counts.executions < given {
            return None;
        }
        let message = format!(
            "step `{}`: this execution may start {given} executions, directly and through those it starts, and none of them is left; raise maxExecutions of the workflow that began first if that is meant",
            self.state.plan.id(instance.step)
        );
        Some(Failure::new(Class::Policy, format!("max_executions_exceeded:{given}"), message))
    }

    /// Reserves the share of an attempt's child and returns the budget of the child; `None` if the rules have no
    /// budgets.
    pub(super) fn give_executions(
        &mut self,
        instance: &Instance,
        waits: bool,
    ) -> Result<Option<u32>, IllegalTransition> {
        if !self.is_bounded() {
            return Ok(None);
        }
        let left = self.executions_given().saturating_sub(self.state.counts.executions);
        let places = self.places_beside(instance, waits, false);
        let share = u64::from(self.executions_given()) / places.max(1);
        let count = u32::try_from(share).unwrap_or(u32::MAX).clamp(1, left.max(1));
        self.record(Record::ExecutionsGiven { instance: instance.clone(), count })?;
        Ok(Some(count - 1))
    }

    /// Takes back the unused part of the share when the child of an attempt has ended.
    pub(super) fn take_back_executions(&mut self, instance: &Instance, used: u32) -> Result<(), IllegalTransition> {
        let given = self.state.steps.get(instance).map_or(0, |step| step.child.executions);
        match given.saturating_sub(used) {
            count if self.is_bounded() && count > 0 => {
                self.record(Record::ExecutionsReturned { instance: instance.clone(), count })
            }
            _ => Ok(()),
        }
    }

    /// Estimates the number of children that may hold a share at the same time, this one included: those that can run
    /// concurrently, and detached ones. The estimate affects only how evenly the budget is divided. Agents share the
    /// budget of calls, though not that of executions.
    pub(super) fn places_beside(&mut self, instance: &Instance, waits: bool, counts_agents: bool) -> u64 {
        let plan = self.state.plan.clone();
        let max_parallel = self.max_parallel();
        let kept = self.agenda.weights.take_if(|weights| weights.counts_agents == counts_agents);
        let weights = kept.unwrap_or_else(|| Weights::of(&plan, max_parallel, counts_agents));
        let (mut places, mut at) = (1_u64, instance.clone());
        loop {
            let scope = at.scope(&plan);
            let (all, own) = (weights.blocks[scope.block as usize], weights.of_step(&plan, at.step, max_parallel));
            let others = match plan.block(scope.block).order {
                Order::Sequence if waits => 0,
                Order::Sequence => all.total().saturating_sub(own.keeping),
                Order::Parallel | Order::Edges(_) => all.total().saturating_sub(own.total()),
            };
            places = places.saturating_add(others);
            let Some(owner) = scope.owner(&plan) else { break };
            if let Work::Loop(of) = &plan.step(owner.step).work {
                places = places.saturating_mul(self.rounds_beside(&owner, of, waits));
            }
            at = owner;
        }
        self.agenda.weights = Some(weights);
        places
    }

    fn rounds_beside(&self, owner: &Instance, of: &Loop, waits: bool) -> u64 {
        let count = self.state.blocks.loops.get(owner).and_then(|rounds| rounds.count);
        let max_steps = self.state.start.as_ref().map_or(1, |start| start.policy.max_steps);
        let rounds = match (&of.over, waits) {
            (Over::Items(_), true) => count.unwrap_or(1).min(of.concurrency).min(self.max_parallel()),
            (Over::Items(_), false) => count.unwrap_or(1),
            // The workflows that a model calls in one answer run together.
            (Over::Calls, _) => count.unwrap_or(1).min(self.max_parallel()),
            (Over::Turns(_), _) => 1,
            (Over::While { .. } | Over::Until { .. }, true) => 1,
            (Over::While { max_rounds, .. } | Over::Until { max_rounds, .. }, false) => (*max_rounds).min(max_steps),
        };
        u64::from(rounds.max(1))
    }
}

/// Number of children in a part of a plan that may hold a share at the same time.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    /// Children that are awaited.
    waited_for: u64,
    /// Detached children, which keep their share.
    keeping: u64,
}

impl Weight {
    fn total(self) -> u64 {
        self.waited_for.saturating_add(self.keeping)
    }

    fn and(self, other: Self) -> Self {
        let waited_for = self.waited_for.saturating_add(other.waited_for);
        Self { waited_for, keeping: self.keeping.saturating_add(other.keeping) }
    }

    fn or(self, other: Self) -> Self {
        Self { waited_for: self.waited_for.max(other.waited_for), keeping: self.keeping.max(other.keeping) }
    }

    fn then(self, other: Self) -> Self {
        Self { waited_for: self.waited_for.max(other.waited_for), keeping: self.keeping.saturating_add(other.keeping) }
    }

    fn times(self, rounds: u32) -> Self {
        let rounds = u64::from(rounds.max(1));
        Self { waited_for: self.waited_for.saturating_mul(rounds), keeping: self.keeping.saturating_mul(rounds) }
    }
}

/// The weight of each block of a plan, by block number.
#[derive(Debug)]
pub(super) struct Weights {
    /// True if an agent counts as a child that is awaited.
    counts_agents: bool,
    blocks: Vec<Weight>,
}

impl Weights {
    /// Computes the weights from the last block to the first. Blocks are numbered from the outside in, so inner blocks
    /// come before those around them.
    fn of(plan: &Plan, max_parallel: u32, counts_agents: bool) -> Self {
        let mut weights = Self { counts_agents, blocks: vec![Weight::default(); plan.blocks.len()] };
        for (number, block) in plan.blocks.iter().enumerate().rev() {
            let is_sequence = matches!(block.order, Order::Sequence);
            weights.blocks[number] = block.steps.iter().fold(Weight::default(), |all, step| {
                let step = weights.of_step(plan, *step, max_parallel);
                if is_sequence { all.then(step) } else { all.and(step) }
            });
        }
        weights
    }

    fn of_step(&self, plan: &Plan, step: u32, max_parallel: u32) -> Weight {
        let of_block = |block: u32| self.blocks[block as usize];
        match &plan.step(step).work {
            Work::Subworkflow { waits: true, .. } => Weight { waited_for: 1, keeping: 0 },
            Work::Subworkflow { waits: false, .. } => Weight { waited_for: 0, keeping: 1 },
            Work::Conditional { then, otherwise, .. } => {
                of_block(*then).or(otherwise.map(of_block).unwrap_or_default())
            }
            Work::Parallel { block } => of_block(*block),
            Work::Loop(Loop { over: Over::Turns(agent), .. }) if agent.workflows().next().is_some() => {
                Weight { waited_for: u64::from(max_parallel), keeping: 0 }
            }
            work if self.counts_agents && work.runner().is_none() && (work.is_agent() || work.kind() == "agent") => {
                Weight { waited_for: 1, keeping: 0 }
            }
            Work::Loop(of) if matches!(of.over, Over::Items(_)) => {
                of_block(of.block).times(of.concurrency.min(max_parallel))
            }
            Work::Loop(of) => of_block(of.block),
            _ => Weight::default(),
        }
    }
}
