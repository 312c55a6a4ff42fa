//! Starts steps: evaluates the `when` condition, and records what the step does or waits for.

use alloc::format;
use core::cmp::Reverse;

use crate::{
    apply::IllegalTransition,
    cbor,
    condition::Unreadable,
    failure::{Class, Failure},
    hash::Hash,
    instance::{Instance, Scope},
    limits::{FINALLY_STEPS_MAX, RESULT_DEPTH_MAX, VALUE_BYTES_MAX, VALUE_MEMORY_BYTES_MAX, WAIT_MAX_MS},
    plan::Work,
    record::{Ending, HaltReason, Record, SkipReason},
    reference::Miss,
    template::Template,
    time::parse_rfc3339,
    value::Value,
};

use super::{Decider, fault};

impl Decider<'_> {
    /// Starts the step at an index of a block, unless its condition is false. Effects only become ready here; they are
    /// dispatched when everything else of the turn is settled.
    pub(super) fn begin(&mut self, scope: &Scope, place: u32) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.block(scope.block).steps[place as usize];
        let instance = scope.instance(step);
        let step = plan.step(step);
        match step.when.as_ref().map(|when| when.holds(&self.view(&instance))) {
            Some(Err(unreadable)) => return self.fail(&instance, unreadable_condition(&step.id, "when", &unreadable)),
            Some(Ok(false)) => {
                return self.record(Record::StepSkipped { instance, reason: SkipReason::ConditionFalse });
            }
            Some(Ok(true)) | None => {}
        }
        if step.work.goes_out() {
            let waiting = self.agenda.waiting.entry(scope.clone()).or_insert((0, place));
            *waiting = (waiting.0 + 1, place);
            self.agenda.ready.insert(self.rank(&instance));
            return Ok(());
        }
        if self.agenda.is_beginning && self.is_bounded() && matches!(step.work, Work::Code { .. }) {
            // Functions do not run in the first turn, so that the start of the execution is durable and visible before
            // they do.
            self.agenda.ends_early = true;
            return Ok(());
        }
        if self.is_out_of_steps()? {
            return Ok(());
        }
        match &step.work {
            Work::Conditional { condition, then, otherwise } => {
                self.started(&instance, Value::Null, None)?;
                match condition.holds(&self.view(&instance)) {
                    Err(unreadable) => self.fail(&instance, unreadable_condition(&step.id, "condition", &unreadable)),
                    Ok(answer) => self.take_branch(&instance, if answer { Some(*then) } else { *otherwise }),
                }
            }
            Work::Parallel { .. } => self.started(&instance, Value::Null, None),
            Work::Loop(of) => self.begin_loop(&instance, of),
            Work::Code { input, .. } => self.begin_code(&instance, input),
            Work::Approval(gate) => self.open_approval(&instance, gate),
            Work::Sleep { duration_ms } => self.sleep(&instance, duration_ms),
            Work::SleepUntil { time } => self.sleep_until(&instance, time),
            Work::Signal { name } => self.wait_for_signal(&instance, name),
            Work::Return { output } => self.return_from(&instance, output),
            Work::Effect { .. } | Work::Subworkflow { .. } => Ok(()),
        }
    }

    /// Returns the position of a step instance among the ready ones.
    pub(super) fn rank(&self, instance: &Instance) -> (Reverse<i32>, Instance) {
        (Reverse(self.state.plan.step(instance.step).priority), instance.clone())
    }

    fn take_branch(&mut self, instance: &Instance, block: Option<u32>) -> Result<(), IllegalTransition> {
        self.record(Record::BranchTaken { instance: instance.clone(), block })?;
        match block {
            Some(_) => Ok(()),
            None => self.complete(instance, Value::Null),
        }
    }

    fn return_from(&mut self, instance: &Instance, output: &Template) -> Result<(), IllegalTransition> {
        let output = match output.resolve(&self.view(instance)) {
            Ok(output) => output,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        if let Some(failure) = self.output_too_large(&output) {
            return self.fail(instance, failure);
        }
        self.started(instance, output.clone(), None)?;
        self.complete(instance, output.clone())?;
        if self.is_end_settled() {
            return Ok(());
        }
        self.record(Record::EndingBegun { ending: Ending::Completed { output: output.into() } })
    }

    /// Returns the failure of an execution whose output is too large. The output of a child becomes a step output of
    /// its parent, so the limit for step outputs applies to it.
    pub(super) fn output_too_large(&self, output: &Value) -> Option<Failure> {
        if !self.is_bounded() {
            return None;
        }
        if self.is_too_deep(output) {
            return Some(too_deep("the output of the execution"));
        }
        let is_step = self.state.lineage.parent.is_some();
        let bytes_max = if is_step { self.output_bytes_max() } else { VALUE_BYTES_MAX };
        let size = cbor::byte_count(output);
        let reader = if is_step { " to the execution that waits for it" } else { "" };
        let message = format!(
            "the output of the execution takes {size} bytes, and it may give at most {bytes_max}{reader}; write it to a file and give its name"
        );
        (size > bytes_max || self.is_too_large(output, size))
            .then(|| Failure::new(Class::Policy, "output_too_large", message))
    }

    fn sleep(&mut self, instance: &Instance, duration_ms: &Template) -> Result<(), IllegalTransition> {
        let duration = match duration_ms.resolve(&self.view(instance)) {
            Ok(duration) => duration,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let Some(milliseconds) = duration.as_u64().filter(|milliseconds| *milliseconds <= WAIT_MAX_MS) else {
            let message = format!(
                "step `{}`: `durationMs` must be a whole number of milliseconds up to {WAIT_MAX_MS}, not {}",
                self.state.plan.id(instance.step),
                crate::json::compact(&duration)
            );
            return self.fail(instance, Failure::new(Class::Invalid, "invalid_duration", message));
        };
        self.started(instance, duration, None)?;
        let until = Some(self.agenda.now.saturating_add(milliseconds));
        self.record(Record::WaitStarted { instance: instance.clone(), until })
    }

    /// Starts a wait for a point in time. A time in the past completes the step at once.
    fn sleep_until(&mut self, instance: &Instance, time: &Template) -> Result<(), IllegalTransition> {
        let time = match time.resolve(&self.view(instance)) {
            Ok(time) => time,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let latest = self.agenda.now.saturating_add(WAIT_MAX_MS);
        let at = time.as_u64().or_else(|| time.as_text().and_then(parse_rfc3339));
        let Some(at) = at.filter(|at| *at <= latest) else {
            let message = format!(
                "step `{}`: `until` must be a time like 2026-02-07T12:00:00Z or milliseconds since 1970, at most ten years ahead, not {}",
                self.state.plan.id(instance.step),
                crate::json::compact(&time)
            );
            return self.fail(instance, Failure::new(Class::Invalid, "invalid_time", message));
        };
        self.started(instance, time, None)?;
        if at <= self.agenda.now {
            return self.complete(instance, Value::Null);
        }
        self.record(Record::WaitStarted { instance: instance.clone(), until: Some(at) })
    }

    pub(super) fn started(
        &mut self,
        instance: &Instance,
        input: Value,
        intent: Option<Hash>,
    ) -> Result<(), IllegalTransition> {
        self.record(Record::StepStarted { instance: instance.clone(), input: input.into(), intent })
    }

    /// Ends the execution and returns true if no step visits are left. Running attempts are awaited.
    pub(super) fn is_out_of_steps(&mut self) -> Result<bool, IllegalTransition> {
        let max_steps = self.state.start.as_ref().map_or(0, |start| start.policy.max_steps);
        let more = if self.state.is_cleaning_up() { FINALLY_STEPS_MAX } else { 0 };
        if self.state.counts.visits < max_steps.saturating_add(more) {
            return Ok(false);
        }
        self.out_of_steps(max_steps).map(|()| true)
    }

    /// Ends the execution because it has used up its step visits.
    pub(super) fn out_of_steps(&mut self, max_steps: u32) -> Result<(), IllegalTransition> {
        if self.state.is_cleaning_up() {
            return self.halt_cleanup(HaltReason::Limit, None);
        }
        let message = format!("more than {max_steps} steps were to run; raise maxSteps if that is meant");
        let fault = fault(Class::Policy, &format!("max_steps_exceeded:{max_steps}"), message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: false } })
    }

    /// Fails a step and returns true if its input is too large, or nested too deep to be read again.
    pub(super) fn refuses_input(
        &mut self,
        instance: &Instance,
        input: &Value,
        encoded_bytes: usize,
    ) -> Result<bool, IllegalTransition> {
        if self.is_too_large(input, encoded_bytes) {
            self.fail_for_size(instance)?;
            return Ok(true);
        }
        let is_refused = self.is_too_deep(input);
        if is_refused {
            let failure = too_deep(&format!("step `{}`: its input", self.state.plan.id(instance.step)));
            self.fail(instance, failure)?;
        }
        Ok(is_refused)
    }

    fn fail_for_size(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let id = self.state.plan.id(instance.step);
        let message = format!(
            "step `{id}`: its input is larger than {VALUE_BYTES_MAX} bytes, or takes more than {VALUE_MEMORY_BYTES_MAX} bytes of memory"
        );
        self.fail(instance, Failure::new(Class::Policy, "input_too_large", message))
    }

    pub(super) fn fail_for_miss(&mut self, instance: &Instance, miss: &Miss) -> Result<(), IllegalTransition> {
        let message = format!(
            "step `{}`: `@{}` leads nowhere; the value it is to be read from has no such part",
            self.state.plan.id(instance.step),
            miss.reference
        );
        self.fail(instance, Failure::new(Class::Invalid, "reference_not_found", message))
    }
}

/// Returns the failure of a value that no reader of values accepts.
pub fn too_deep(value: &str) -> Failure {
    let message =
        format!("{value} is nested more than {RESULT_DEPTH_MAX} deep; flatten it, or give deep data as a text of JSON");
    Failure::new(Class::Policy, "value_too_deep", message)
}

pub(super) fn unreadable_condition(step: &str, key: &str, unreadable: &Unreadable) -> Failure {
    let message = format!("step `{step}`: its `{key}` cannot be read: {}", unreadable.message);
    Failure::new(Class::Invalid, "condition_unreadable", message)
}
