//! Examines blocks: starts the next steps, and computes the output of a block or an execution that has ended.

use super::Decider;
use crate::{
    apply::IllegalTransition,
    cbor,
    failure::{Class, Failure},
    instance::{Instance, Scope},
    limits::{VALUE_BYTES_MAX, VALUE_MEMORY_BYTES_MAX},
    plan::{Order, Output, Work},
    record::{Ending, Record},
    state::State,
    template::Template,
    value::Value,
    value_size::of_value,
};

impl Decider<'_> {
    /// Examines a block: starts steps that may start, or closes the block.
    pub(super) fn consider(&mut self, scope: &Scope) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let Some(here) = self.state.blocks.scopes.get(scope) else { return Ok(()) };
        let order = &plan.block(scope.block).order;
        if let Order::Edges(graph) = order {
            return self.consider_edges(scope, graph);
        }
        if self.is_halted(scope) {
            if self.cancel_waits(scope)? || self.state.blocks.scopes.get(scope).is_none_or(|here| here.open > 0) {
                return Ok(());
            }
            return self.close_halted(scope);
        }
        let waiting = self.ready_in(scope);
        if here.pending.is_empty() && here.open == 0 {
            return self.close(scope);
        }
        match order {
            Order::Sequence if here.open > 0 || waiting > 0 => Ok(()),
            Order::Sequence => {
                let first = here.pending.first().copied();
                first.map_or(Ok(()), |place| self.begin(scope, place))
            }
            Order::Parallel | Order::Edges(_) => self.begin_branches(scope, waiting),
        }
    }

    /// Starts branches while concurrency slots are free. A `return` needs no slot, because it ends the execution.
    fn begin_branches(&mut self, scope: &Scope, waiting: usize) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let steps = &plan.block(scope.block).steps;
        let here = &self.state.blocks.scopes[scope];
        let is_return = |place: &&u32| matches!(plan.step(steps[**place as usize]).work, Work::Return { .. });
        // Branches are examined in order, so the ready ones precede all others that are pending.
        let from = self.agenda.waiting.get(scope).map_or(0, |(_, last)| last + 1);
        let room = (self.max_parallel() as usize).saturating_sub(here.open as usize + waiting);
        // `return` steps start first, before anything else in the block. Afterwards no pending ones are left.
        let first_other = (0..steps.len() as u32).find(|place| !is_return(&place));
        let is_untouched = waiting == 0 && first_other.is_none_or(|place| here.pending.contains(&place));
        let first = if is_untouched { here.pending.iter().find(is_return) } else { None };
        let next = first.or_else(|| if room == 0 { None } else { here.pending.range(from..).next() });
        let Some(place) = next.copied() else { return Ok(()) };
        self.begin(scope, place)?;
        // Starts one step at a time, so that each sees the changes made by the one before.
        self.agenda.dirty.scopes.insert(scope.clone());
        Ok(())
    }

    /// Returns the number of steps in a block that are ready and not dispatched yet.
    pub(super) fn ready_in(&self, scope: &Scope) -> usize {
        self.agenda.waiting.get(scope).map_or(0, |(count, _)| *count)
    }

    pub(super) fn no_longer_waits(&mut self, instance: &Instance) {
        let scope = instance.scope(&self.state.plan);
        if let Some((count, _)) = self.agenda.waiting.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                self.agenda.waiting.remove(&scope);
            }
        }
    }

    /// True if no further step may start in a block, because the block or one around it is failing.
    pub(super) fn is_halted(&self, scope: &Scope) -> bool {
        is_halted(self.state, scope, false)
    }

    /// True if a step instance may not continue because a block around it is failing. Cleanup steps may.
    pub(super) fn is_instance_halted(&self, instance: &Instance) -> bool {
        let is_cleanup = self.state.steps.get(instance).is_some_and(|step| step.is_cleanup);
        is_halted(self.state, &instance.scope(&self.state.plan), is_cleanup)
    }

    pub(super) fn close(&mut self, scope: &Scope) -> Result<(), IllegalTransition> {
        if let Some((instance, round)) = scope.round_of_loop(&self.state.plan) {
            return self.record(Record::RoundEnded { instance, round });
        }
        match scope.owner(&self.state.plan) {
            Some(owner) => {
                let is_too_large = self.output_byte_count(scope) > VALUE_BYTES_MAX
                    || (self.counts_memory() && self.output_memory_bytes(scope) > VALUE_MEMORY_BYTES_MAX);
                if self.is_bounded() && is_too_large {
                    return self.fail_for_output(&owner, "steps");
                }
                let output = self.output_of(scope);
                self.complete(&owner, output)
            }
            None if self.state.plan.is_finally(scope.block) => self.record(Record::FinallyEnded),
            None => {
                let ending = self.ending_of_all();
                self.record(Record::EndingBegun { ending })
            }
        }
    }

    /// Closes a failing block. If one of its own steps failed, the step around the block fails; if only an outer block
    /// is failing, that step is canceled.
    pub(super) fn close_halted(&mut self, scope: &Scope) -> Result<(), IllegalTransition> {
        if let Some((instance, round)) = scope.round_of_loop(&self.state.plan) {
            return self.record(Record::RoundEnded { instance, round });
        }
        let failed = self.state.blocks.scopes.get(scope).and_then(|here| here.failed.clone());
        let owner = scope.owner(&self.state.plan);
        match (failed, owner) {
            (Some(failed), Some(owner)) => {
                let failure = self.failure_of(&failed);
                self.fail(&owner, failure)
            }
            (None, Some(owner)) => self.cancel_step(&owner, "sibling_failed"),
            (_, None) if self.state.plan.is_finally(scope.block) => self.record(Record::FinallyEnded),
            (failed, None) => {
                let bound = self.state.end.bound_reached.clone();
                let fault = match (&failed, bound) {
                    (_, Some(bound)) => bound,
                    (Some(failed), None) => self.failure_of(failed).into(),
                    (None, None) => return Ok(()),
                };
                let ending = Ending::Failed { fault, instance: failed, stops: false };
                self.record(Record::EndingBegun { ending })
            }
        }
    }

    pub(super) fn failure_of(&self, instance: &Instance) -> Failure {
        let failure = self.state.steps.get(instance).and_then(|step| step.failure.clone());
        failure.unwrap_or_else(|| Failure::new(Class::Internal, "lost_failure", "a failure without a reason"))
    }

    /// Returns the output of a block: for parallel branches an object by step id, for a sequence the output of its last
    /// step.
    fn output_of(&self, scope: &Scope) -> Value {
        let block = self.state.plan.block(scope.block);
        let output = |step: &u32| self.output_of_step(scope, *step);
        match block.order {
            Order::Parallel | Order::Edges(_) => {
                Value::map(block.steps.iter().map(|step| (self.state.plan.id(*step), output(step))))
            }
            Order::Sequence => block.steps.last().map(output).unwrap_or_default(),
        }
    }

    /// Returns the approximate encoded size of a block's output, in bytes, without building the output.
    fn output_byte_count(&self, scope: &Scope) -> usize {
        let block = self.state.plan.block(scope.block);
        let size =
            |step: &u32| self.state.steps.get(&scope.instance(*step)).map_or(1, |step| cbor::byte_count(&step.output));
        match block.order {
            Order::Parallel | Order::Edges(_) => {
                block.steps.iter().map(|step| self.state.plan.id(*step).len() + size(step)).sum()
            }
            Order::Sequence => block.steps.last().map_or(1, size),
        }
    }

    /// Returns the memory size of a block's output, in bytes, without building the output.
    fn output_memory_bytes(&self, scope: &Scope) -> u64 {
        let block = self.state.plan.block(scope.block);
        let size = |step: &u32| self.state.steps.get(&scope.instance(*step)).map_or(0, |step| of_value(&step.output));
        match block.order {
            Order::Parallel | Order::Edges(_) => block.steps.iter().map(size).sum(),
            Order::Sequence => block.steps.last().map_or(0, size),
        }
    }

    /// Fails a container step because the combined output of its inner steps is too large.
    pub(super) fn fail_for_output(&mut self, instance: &Instance, of_its: &str) -> Result<(), IllegalTransition> {
        let id = self.state.plan.id(instance.step);
        let message =
            alloc::format!("step `{id}`: what its {of_its} gave takes more than {VALUE_BYTES_MAX} bytes together");
        self.fail(instance, Failure::new(Class::Policy, "output_too_large", message))
    }

    fn output_of_step(&self, scope: &Scope, step: u32) -> Value {
        self.state.steps.get(&scope.instance(step)).map(|step| step.output.clone()).unwrap_or_default()
    }

    /// Returns the result of an execution whose steps have all ended without a `return`.
    fn ending_of_all(&self) -> Ending {
        let failed = |failure: Failure| Ending::Failed { fault: failure.into(), instance: None, stops: false };
        if let Some(failure) = self.outputs_too_large() {
            return failed(failure);
        }
        let output = match &self.state.plan.output {
            Output::Variables => Value::Map(self.state.outputs.clone()),
            Output::Ends => self.output_of_ends(),
            Output::Given(template) => match self.given_output(template) {
                Ok(output) => output,
                Err(failure) => return failed(failure),
            },
        };
        if let Some(failure) = self.output_too_large(&output) {
            return failed(failure);
        }
        Ending::Completed { output: output.into() }
    }

    /// Returns a failure if the step outputs are too large to be combined into the output of the execution.
    fn outputs_too_large(&self) -> Option<Failure> {
        let size: usize = match &self.state.plan.output {
            Output::Variables => self.state.outputs.values().map(cbor::byte_count).sum(),
            Output::Ends => {
                let output = |step: u32| self.state.steps.get(&Scope::root().instance(step)).map(|step| &step.output);
                self.state.plan.ends().into_iter().filter_map(output).map(cbor::byte_count).sum()
            }
            Output::Given(_) => 0,
        };
        let memory_bytes: u64 = match &self.state.plan.output {
            Output::Variables => self.state.outputs.values().map(of_value).sum(),
            Output::Ends => {
                let output = |step: u32| self.state.steps.get(&Scope::root().instance(step)).map(|step| &step.output);
                self.state.plan.ends().into_iter().filter_map(output).map(of_value).sum()
            }
            Output::Given(_) => 0,
        };
        let takes_memory = self.counts_memory() && memory_bytes > VALUE_MEMORY_BYTES_MAX;
        if !self.is_bounded() || (size <= VALUE_BYTES_MAX && !takes_memory) {
            return None;
        }
        let message = alloc::format!(
            "the outputs of its steps take {size} bytes together, and an execution gives at most {VALUE_BYTES_MAX}"
        );
        Some(Failure::new(Class::Policy, "output_too_large", message))
    }

    fn given_output(&self, template: &Template) -> Result<Value, Failure> {
        template.resolve(&crate::state::View::of_scope(self.state, &Scope::root())).map_err(|miss| {
            let message = alloc::format!("`output`: `@{}` leads nowhere", miss.reference);
            Failure::new(Class::Invalid, "reference_not_found", message)
        })
    }

    fn output_of_ends(&self) -> Value {
        let (plan, root) = (&self.state.plan, Scope::root());
        let ends = plan.ends();
        let output = |step: &u32| self.output_of_step(&root, *step);
        match ends.as_slice() {
            [] => Value::Null,
            [one] => output(one),
            several => Value::map(several.iter().map(|step| (plan.id(*step), output(step)))),
        }
    }
}

/// True if the block or one around it is failing. Cleanup steps are not halted by the failure that they clean up after.
fn is_halted(state: &State, scope: &Scope, mut is_cleanup: bool) -> bool {
    let mut scope = scope.clone();
    loop {
        if state.blocks.scopes.get(&scope).is_none_or(|here| here.is_failing && !is_cleanup) {
            return true;
        }
        let Some(owner) = scope.owner(&state.plan) else { return false };
        if state.blocks.loops.get(&owner).is_some_and(|rounds| rounds.is_failing) {
            return true;
        }
        is_cleanup = state.steps.get(&owner).is_some_and(|step| step.is_cleanup);
        scope = owner.scope(&state.plan);
    }
}
