//! Loops: starts rounds, and ends the loop when no further round starts.

use alloc::format;

use super::{Decider, begin::unreadable_condition};
use crate::{
    apply::IllegalTransition,
    cbor,
    condition::Condition,
    failure::{Class, Failure},
    instance::Instance,
    limits::{FINALLY_STEPS_MAX, LOOP_ITEMS_MAX, VALUE_BYTES_MAX},
    plan::{Loop, Over, Work},
    record::Record,
    reference::{Reference, resolve},
    state::View,
    value::Value,
};

impl Decider<'_> {
    /// Starts a loop. Its list, if it has one, is resolved now and does not change.
    pub(super) fn begin_loop(&mut self, instance: &Instance, of: &Loop) -> Result<(), IllegalTransition> {
        match &of.over {
            Over::Items(list) => self.begin_items(instance, list),
            Over::While { .. } | Over::Until { .. } => self.started(instance, Value::Null, None),
            Over::Turns(agent) => self.begin_agent(instance, agent),
            Over::Calls => self.begin_calls(instance),
        }
    }

    fn begin_items(&mut self, instance: &Instance, list: &Reference) -> Result<(), IllegalTransition> {
        let items = match resolve(list, &self.view(instance)) {
            Ok(items) => items,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let id = self.state.plan.id(instance.step);
        let failure = match items.as_list() {
            None => {
                let message = format!("step `{id}`: `{list}` must be a list to go through, not {}", items.kind());
                Failure::new(Class::Invalid, "not_a_list", message)
            }
            Some(list) if list.len() > LOOP_ITEMS_MAX => {
                let message = format!("step `{id}`: {} items, more than {LOOP_ITEMS_MAX}", list.len());
                Failure::new(Class::Policy, "too_many_items", message)
            }
            Some(_) => return self.started(instance, items, None),
        };
        self.fail(instance, failure)
    }

    /// Examines a loop: starts rounds that may start, or ends the loop.
    pub(super) fn consider_loop(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let (Some(rounds), Work::Loop(of)) = (self.state.blocks.loops.get(instance), &plan.step(instance.step).work)
        else {
            return Ok(());
        };
        if rounds.is_failing || self.is_instance_halted(instance) {
            let failed = rounds.failed.clone();
            return match failed {
                _ if rounds.open > 0 => Ok(()),
                Some(failed) => {
                    let failure = self.failure_of(&failed);
                    self.fail(instance, failure)
                }
                None => self.cancel_step(instance, "sibling_failed"),
            };
        }
        match &of.over {
            Over::Items(_) => {
                let (count, begun, open) = (rounds.count.unwrap_or_default(), rounds.begun, rounds.open);
                let is_too_large = rounds.output_bytes > VALUE_BYTES_MAX as u64;
                if is_too_large && self.counts_memory() {
                    return if open == 0 { self.fail_for_output(instance, "rounds") } else { Ok(()) };
                }
                if begun == count && open == 0 {
                    let outputs = rounds.outputs.clone();
                    return self.complete_loop(instance, outputs.into());
                }
                let has_room = open < of.concurrency.min(self.max_parallel());
                let next = (begun < count && has_room).then(|| (instance.clone(), begun));
                next.map_or(Ok(()), |(instance, round)| self.record(Record::RoundStarted { instance, round }))
            }
            Over::While { condition, max_rounds } if rounds.open == 0 => {
                self.next_round(instance, rounds.begun, condition, *max_rounds, true)
            }
            Over::Until { max_rounds, .. } if rounds.begun == 0 => self.begin_round(instance, 0, *max_rounds),
            Over::Until { condition, max_rounds } if rounds.open == 0 => {
                self.next_round(instance, rounds.begun, condition, *max_rounds, false)
            }
            Over::While { .. } | Over::Until { .. } => Ok(()),
            Over::Turns(agent) => self.consider_agent(instance, agent),
            Over::Calls => self.consider_calls(instance, of),
        }
    }

    /// Starts another round if the result of the condition equals `continues`; otherwise completes the loop.
    fn next_round(
        &mut self,
        instance: &Instance,
        begun: u32,
        condition: &Condition,
        max_rounds: u32,
        continues: bool,
    ) -> Result<(), IllegalTransition> {
        let last = begun.checked_sub(1);
        // In a `while` condition `@index` is the round that would start, in an `until` condition the round that has
        // ended.
        let index = if continues { begun } else { last.unwrap_or_default() };
        let view = View::of_last_round(self.state, instance, last, index);
        match condition.holds(&view) {
            Err(unreadable) => {
                let key = if continues { "while" } else { "until" };
                self.fail(instance, unreadable_condition(self.state.plan.id(instance.step), key, &unreadable))
            }
            Ok(answer) if answer == continues => self.begin_round(instance, begun, max_rounds),
            Ok(_) => {
                let rounds = self.state.blocks.loops.get(instance);
                let last = rounds.and_then(|rounds| rounds.outputs.first()).cloned().unwrap_or_default();
                self.complete_loop(instance, last)
            }
        }
    }

    fn begin_round(&mut self, instance: &Instance, round: u32, max_rounds: u32) -> Result<(), IllegalTransition> {
        let max_steps = self.state.start.as_ref().map_or(0, |start| start.policy.max_steps);
        let more = if self.state.is_cleaning_up() { FINALLY_STEPS_MAX } else { 0 };
        if self.is_bounded() && round >= max_steps.saturating_add(more) {
            // A round in which all steps are skipped makes no visit, so the limit on visits applies to rounds as well.
            return self.out_of_steps(max_steps);
        }
        if round < max_rounds {
            return self.record(Record::RoundStarted { instance: instance.clone(), round });
        }
        let id = self.state.plan.id(instance.step);
        let message =
            format!("step `{id}`: {max_rounds} rounds have not ended the loop; raise maxRounds if it needs more");
        self.fail(instance, Failure::new(Class::Policy, format!("max_rounds_exceeded:{max_rounds}"), message))
    }

    fn complete_loop(&mut self, instance: &Instance, output: Value) -> Result<(), IllegalTransition> {
        if !self.is_too_large(&output, cbor::byte_count(&output)) {
            return self.complete(instance, output);
        }
        self.fail_for_output(instance, "rounds")
    }
}
