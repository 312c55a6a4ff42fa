//! Blocks: what of them begins next, and what they give when all of it has ended.

use super::Decider;
use crate::{
    apply::{Illegal, size::of_value},
    cbor,
    failure::{Class, Failure},
    instance::{Instance, Scope},
    limits::{VALUE_BYTES_MAX, VALUE_MEMORY_BYTES_MAX},
    plan::{Order, Output, Work},
    record::{Ending, Record},
    state::State,
    template::Template,
    value::Value,
};

impl Decider<'_> {
    /// Looks at a block: begins what may begin, or closes it.
    pub(super) fn consider(&mut self, scope: &Scope) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let Some(here) = self.state.scopes.get(scope) else { return Ok(()) };
        let order = &plan.block(scope.block).order;
        if let Order::Edges(graph) = order {
            return self.consider_edges(scope, graph);
        }
        if self.is_halted(scope) {
            if self.call_off_waits(scope)? || self.state.scopes.get(scope).is_none_or(|here| here.open > 0) {
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

    /// Begins branches as long as there is room. A `return` needs none: it ends everything.
    fn begin_branches(&mut self, scope: &Scope, waiting: usize) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let steps = &plan.block(scope.block).steps;
        let here = &self.state.scopes[scope];
        let is_return = |place: &&u32| matches!(plan.step(steps[**place as usize]).work, Work::Return { .. });
        // Places come up in order: what has come to the door stands before what has not.
        let from = self.agenda.waiting.get(scope).map_or(0, |(_, last)| last + 1);
        let room = (self.max_parallel() as usize).saturating_sub(here.open as usize + waiting);
        // Returns stand first, before anything else of the block has begun; later there are none left to find.
        let first_other = (0..steps.len() as u32).find(|place| !is_return(&place));
        let is_untouched = waiting == 0 && first_other.is_none_or(|place| here.pending.contains(&place));
        let first = if is_untouched { here.pending.iter().find(is_return) } else { None };
        let next = first.or_else(|| if room == 0 { None } else { here.pending.range(from..).next() });
        let Some(place) = next.copied() else { return Ok(()) };
        self.begin(scope, place)?;
        // One at a time, so that each sees what the one before has changed.
        self.agenda.dirty.insert(scope.clone());
        Ok(())
    }

    /// Work of a block whose turn has come and that is not out yet.
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

    /// Whether nothing new may start in a block: it, or one around it, is going to fail.
    pub(super) fn is_halted(&self, scope: &Scope) -> bool {
        is_halted(self.state, scope, false)
    }

    /// The same for an instance, which may be there to clean up.
    pub(super) fn is_instance_halted(&self, instance: &Instance) -> bool {
        let is_cleanup = self.state.steps.get(instance).is_some_and(|step| step.is_cleanup);
        is_halted(self.state, &instance.scope(&self.state.plan), is_cleanup)
    }

    pub(super) fn close(&mut self, scope: &Scope) -> Result<(), Illegal> {
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
            None => {
                let ending = self.ending_of_all();
                self.record(Record::EndingBegun { ending })
            }
        }
    }

    /// A block in which something failed fails what contains it; one that only stands inside such a block is called off.
    pub(super) fn close_halted(&mut self, scope: &Scope) -> Result<(), Illegal> {
        if let Some((instance, round)) = scope.round_of_loop(&self.state.plan) {
            return self.record(Record::RoundEnded { instance, round });
        }
        let failed = self.state.scopes.get(scope).and_then(|here| here.failed.clone());
        let owner = scope.owner(&self.state.plan);
        match (failed, owner) {
            (Some(failed), Some(owner)) => {
                let failure = self.failure_of(&failed);
                self.fail(&owner, failure)
            }
            (None, Some(owner)) => self.call_off(&owner, "sibling_failed"),
            (failed, None) => {
                let bound = self.state.bound_reached.clone();
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

    /// The failure of a step that has failed.
    pub(super) fn failure_of(&self, instance: &Instance) -> Failure {
        let failure = self.state.steps.get(instance).and_then(|step| step.failure.clone());
        failure.unwrap_or_else(|| Failure::new(Class::Internal, "lost_failure", "a failure without a reason"))
    }

    /// What a block gives: of branches an object by step, of a sequence the output of its last step.
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

    /// Bytes of what a block gives, more or less, without making it.
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

    /// Bytes of memory of what a block gives, without making it.
    fn output_memory_bytes(&self, scope: &Scope) -> u64 {
        let block = self.state.plan.block(scope.block);
        let size = |step: &u32| self.state.steps.get(&scope.instance(*step)).map_or(0, |step| of_value(&step.output));
        match block.order {
            Order::Parallel | Order::Edges(_) => block.steps.iter().map(size).sum(),
            Order::Sequence => block.steps.last().map_or(0, size),
        }
    }

    /// What a step gives that contains others is too large.
    pub(super) fn fail_for_output(&mut self, instance: &Instance, of_its: &str) -> Result<(), Illegal> {
        let id = self.state.plan.id(instance.step);
        let message =
            alloc::format!("step `{id}`: what its {of_its} gave takes more than {VALUE_BYTES_MAX} bytes together");
        self.fail(instance, Failure::new(Class::Policy, "output_too_large", message))
    }

    fn output_of_step(&self, scope: &Scope, step: u32) -> Value {
        self.state.steps.get(&scope.instance(step)).map(|step| step.output.clone()).unwrap_or_default()
    }

    /// How an execution ends in which everything has ended and no `return` was taken.
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

    /// The failure of an execution whose outputs are too large to be put together.
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

/// What cleans up is not halted by the failure that it cleans up after.
fn is_halted(state: &State, scope: &Scope, mut is_cleanup: bool) -> bool {
    let mut scope = scope.clone();
    loop {
        if state.scopes.get(&scope).is_none_or(|here| here.is_doomed && !is_cleanup) {
            return true;
        }
        let Some(owner) = scope.owner(&state.plan) else { return false };
        if state.loops.get(&owner).is_some_and(|rounds| rounds.is_doomed) {
            return true;
        }
        is_cleanup = state.steps.get(&owner).is_some_and(|step| step.is_cleanup);
        scope = owner.scope(&state.plan);
    }
}
