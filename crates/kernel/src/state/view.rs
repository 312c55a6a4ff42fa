//! Resolves references against a state, as seen from one step instance.

use alloc::vec::Vec;

use super::{Cleanup, State, Status};
use crate::{
    decide_version::EXISTENCE_SINCE,
    instance::{Instance, Scope},
    plan::{Loop, Over, Work},
    reference::{Found, Lookup, Root, context},
    value::Value,
};

/// A state as seen from one step instance.
#[derive(Debug, Clone)]
pub struct View<'s> {
    state: &'s State,
    step: u32,
    rounds: Vec<u32>,
    /// Value of `@index`, if it is not the innermost of `rounds`.
    index: Option<u32>,
    /// A step that is about to fail. Its output reads as if it had failed already.
    failing: Option<u32>,
}

static NULL: Value = Value::Null;

impl<'s> View<'s> {
    /// Returns the view of a step instance.
    pub fn at(state: &'s State, instance: &Instance) -> Self {
        Self { state, step: instance.step, rounds: instance.rounds.clone(), index: None, failing: None }
    }

    /// Returns the view in which a loop evaluates its condition: that of the last round, if there was one. `index` is
    /// the round that `@index` stands for.
    pub fn of_last_round(state: &'s State, instance: &Instance, round: Option<u32>, index: u32) -> Self {
        let rounds = round.map_or_else(|| instance.rounds.clone(), |round| instance.round(round));
        Self { state, step: instance.step, rounds, index: Some(index), failing: None }
    }

    /// Returns the view shared by all steps of a block, for conditions of edges and for outputs.
    pub fn of_scope(state: &'s State, scope: &Scope) -> Self {
        let step = state.plan.block(scope.block).steps.first().copied().unwrap_or_default();
        Self { state, step, rounds: scope.rounds.clone(), index: None, failing: None }
    }

    /// Returns the same view as it will be after a step of the block has failed.
    pub fn once_failed(self, step: u32) -> Self {
        Self { failing: Some(step), ..self }
    }

    /// Returns the current item of the innermost loop over a list.
    fn item(&self) -> Found<'s> {
        let plan = &self.state.plan;
        let loops: Vec<_> = plan.loops_around(self.step).collect();
        let over_items = |step: &u32| matches!(plan.step(*step).work, Work::Loop(Loop { over: Over::Items(_), .. }));
        let Some(outwards) = loops.iter().position(over_items) else { return Found::Missing };
        let depth = loops.len() - 1 - outwards;
        let (Some(outer), Some(round)) = (self.rounds.get(..depth), self.rounds.get(depth)) else {
            return Found::Missing;
        };
        let owner = Instance { step: loops[outwards], rounds: outer.to_vec() };
        let list = self.state.steps.get(&owner).and_then(|step| step.input.as_list());
        list.and_then(|list| list.get(*round as usize)).map_or(Found::Missing, Found::Kept)
    }

    fn outcome(&self) -> Option<&'s str> {
        match &self.state.end.cleanup {
            Cleanup::Running { outcome } => Some(outcome),
            Cleanup::Pending | Cleanup::Halted | Cleanup::Ended => None,
        }
    }

    /// True if this view is that of a step of `finally`, and the other step is not one. Cleanup also runs after a failure, so
    /// a step that did not complete reads as null on every path.
    fn cleans_up_after(&self, step: u32) -> bool {
        self.state.plan.is_in_finally(self.step) && !self.state.plan.is_in_finally(step)
    }

    fn output_of(&self, step: u32) -> Found<'s> {
        if self.failing == Some(step) {
            return Found::Kept(&NULL);
        }
        let depth = self.state.plan.loop_depth(step);
        let Some(rounds) = self.rounds.get(..depth) else { return Found::Skipped };
        match self.state.steps.get(&Instance { step, rounds: rounds.to_vec() }) {
            Some(step) if step.status == Status::Completed => Found::Kept(&step.output),
            // A tolerated failure, of the step or of a block around it, reads as null. A path into it leads nowhere.
            Some(_) if self.cleans_up_after(step) => Found::Skipped,
            Some(step) if matches!(step.status, Status::Failed | Status::Cancelled) => Found::Kept(&NULL),
            // The compiler allows references only to steps that have ended, so a step without a state was skipped.
            _ => Found::Skipped,
        }
    }
}

impl Lookup for View<'_> {
    fn root(&self, root: Root) -> Found<'_> {
        let Some(start) = &self.state.start else { return Found::Missing };
        match root {
            Root::Input => Found::Kept(&start.input),
            Root::Variables => Found::Kept(&start.variables),
            Root::Context => Found::Made(context(&start.execution_id, start.attempt, self.state.now, self.outcome())),
            Root::Item => self.item(),
            Root::Index => {
                let index = self.index.or(self.rounds.last().copied());
                index.map_or(Found::Missing, |index| Found::Made(index.into()))
            }
            Root::Step(step) => self.output_of(step),
        }
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.state.start.as_ref()?.variables.get(name)
    }

    fn output(&self, name: &str) -> Option<&Value> {
        self.state.outputs.get(name)
    }

    fn finds_below_skipped(&self) -> bool {
        self.state.decide_version < EXISTENCE_SINCE
    }
}
