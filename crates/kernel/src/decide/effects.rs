//! Effects: how they go out, what their receipts do, how they are tried again.

use alloc::format;

use crate::{
    apply::Illegal,
    cbor::{self, Writer},
    effect::Outcome,
    failure::{Class, Failure},
    hash::Hash,
    instance::Instance,
    limits::{OUTPUT_BYTES_MAX, VALUE_BYTES_MAX},
    plan::{OnInterrupted, Work},
    record::{Record, StopReason},
    value::Value,
};

use super::{Action, Decider, open_attempt};

impl Decider<'_> {
    /// Sends out an effect whose turn has come, unless something of this turn has forbidden it since.
    pub(super) fn dispatch(&mut self, instance: &Instance) -> Result<(), Illegal> {
        let scope = instance.scope(&self.state.plan);
        if self.is_halted(&scope) {
            // Its block may have nothing else that is open, and has to be closed.
            self.dirty.insert(scope);
            return Ok(());
        }
        if self.is_out_of_steps()? {
            return Ok(());
        }
        let plan = self.state.plan.clone();
        let Work::Effect { effect, params } = &plan.step(instance.step).work else { return Ok(()) };
        let params = match params.resolve(&*self.state) {
            Ok(params) => params,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let encoded = cbor::encode(&params);
        if encoded.len() > VALUE_BYTES_MAX {
            let message =
                format!("step `{}`: its input is larger than {VALUE_BYTES_MAX} bytes", plan.id(instance.step));
            return self.fail(instance, Failure::new(Class::Policy, "input_too_large", message));
        }
        let intent = self.intent(instance, effect, &encoded);
        self.started(instance, params, Some(intent))?;
        self.hand_out(instance, 1)
    }

    /// The identity of the work: who asks, where, for what. Nothing of the attempt, so that the world can tell a repeat.
    fn intent(&self, instance: &Instance, effect: &str, params: &[u8]) -> Hash {
        let mut writer = Writer::default();
        writer.array(4);
        writer.byte_string(&self.state.key.0);
        writer.text(&instance.name(&self.state.plan));
        writer.text(effect);
        writer.byte_string(params);
        Hash::of(&writer.bytes)
    }

    /// Starts an attempt.
    pub(super) fn hand_out(&mut self, instance: &Instance, attempt: u32) -> Result<(), Illegal> {
        let timeout = self.state.plan.step(instance.step).timeout_ms;
        let timeout_at = timeout.map(|timeout| self.now.saturating_add(timeout));
        self.record(Record::AttemptStarted { instance: instance.clone(), attempt, timeout_at })?;
        if let Some(attempt) = open_attempt(self.state, instance) {
            self.turn.actions.push(Action::Perform { instance: instance.clone(), attempt });
        }
        Ok(())
    }

    /// A receipt counts only for the attempt that is out.
    pub(super) fn receipt(&mut self, instance: &Instance, attempt: u32, outcome: &Outcome) -> Result<(), Illegal> {
        let is_out = self.state.open_attempts.contains(instance);
        let Some(step) = self.state.steps.get(instance).filter(|step| is_out && step.attempt == attempt) else {
            return Ok(());
        };
        match (outcome, step.stopping) {
            (Outcome::Done(output), _) => self.done(instance, output),
            (_, Some(StopReason::Ending)) => self.call_off(instance, "execution_ending"),
            (Outcome::Failed(failure), None) => self.attempt_failed(instance, attempt, failure.clone()),
            (outcome, Some(StopReason::Timeout)) => {
                let failure = self.timeout(instance, outcome);
                self.attempt_failed(instance, attempt, failure)
            }
            (Outcome::Stopped(_) | Outcome::Interrupted, None) => self.interrupted(instance, attempt),
        }
    }

    fn done(&mut self, instance: &Instance, output: &Value) -> Result<(), Illegal> {
        let size = cbor::encode(output).len();
        if size <= OUTPUT_BYTES_MAX {
            return self.complete(instance, output.clone());
        }
        let message = format!(
            "step `{}`: its output takes {size} bytes and at most {OUTPUT_BYTES_MAX} are kept; write it to a file and give its name",
            self.state.plan.id(instance.step)
        );
        self.fail(instance, Failure::new(Class::Policy, "output_too_large", message))
    }

    fn timeout(&self, instance: &Instance, outcome: &Outcome) -> Failure {
        let step = self.state.plan.step(instance.step);
        let limit = step.timeout_ms.unwrap_or_default();
        let code = match step.work.kind() {
            "bash" => format!("bash_timeout:{limit}"),
            _ => "timeout".into(),
        };
        let details = match outcome {
            Outcome::Stopped(details) => details.clone(),
            Outcome::Failed(failure) => failure.details.clone(),
            Outcome::Done(_) | Outcome::Interrupted => Value::Null,
        };
        let message = format!("step `{}`: no result within {limit} ms; raise timeoutMs if it needs longer", step.id);
        Failure::new(Class::Timeout, code, message).with_details(details)
    }

    /// Tries again if the policy allows it and there is time; otherwise the step has failed.
    fn attempt_failed(&mut self, instance: &Instance, attempt: u32, failure: Failure) -> Result<(), Illegal> {
        let retry = &self.state.plan.step(instance.step).retry;
        let delay = retry.delay_ms(attempt + 1, self.entropy(instance, attempt));
        let retry_at = self.now.saturating_add(delay);
        if !self.may_try_again(instance) || !retry.allows(failure.class, attempt) || self.is_past_deadline(retry_at) {
            return self.fail(instance, failure);
        }
        let (instance, fault) = (instance.clone(), failure.into());
        self.record(Record::AttemptFailed { instance, attempt, fault, retry_at: Some(retry_at) })
    }

    /// An attempt whose outcome nobody knows is used up.
    fn interrupted(&mut self, instance: &Instance, attempt: u32) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        let failure = interruption(&step.id, attempt);
        match step.on_interrupted {
            _ if !self.may_try_again(instance) => self.fail(instance, failure),
            OnInterrupted::Retry if attempt < step.retry.max_attempts => {
                let fault = failure.into();
                self.record(Record::AttemptFailed { instance: instance.clone(), attempt, fault, retry_at: None })?;
                self.hand_out(instance, attempt + 1)
            }
            OnInterrupted::Ask => {
                let fault = failure.into();
                self.record(Record::AttemptFailed { instance: instance.clone(), attempt, fault, retry_at: None })?;
                self.open_interruption(instance, attempt)
            }
            OnInterrupted::Retry | OnInterrupted::Fail => self.fail(instance, failure),
        }
    }

    pub(super) fn attempt_timed_out(&mut self, instance: &Instance, attempt: u32) -> Result<(), Illegal> {
        self.stop(instance, attempt, StopReason::Timeout)
    }

    pub(super) fn stop(&mut self, instance: &Instance, attempt: u32, reason: StopReason) -> Result<(), Illegal> {
        self.record(Record::AttemptStopping { instance: instance.clone(), attempt, reason })?;
        self.turn.actions.push(Action::Stop { instance: instance.clone(), attempt });
        Ok(())
    }

    fn may_try_again(&self, instance: &Instance) -> bool {
        self.state.ending.is_none() && !self.is_halted(&instance.scope(&self.state.plan))
    }

    fn is_past_deadline(&self, at: u64) -> bool {
        self.state.deadline.is_some_and(|deadline| at >= deadline)
    }

    /// What decides the jitter of a delay: the work and the attempt, so that a replay draws the same.
    fn entropy(&self, instance: &Instance, attempt: u32) -> Hash {
        let intent = self.state.steps.get(instance).and_then(|step| step.intent).unwrap_or_default();
        Hash::of_parts(&[&intent.0, &attempt.to_be_bytes()])
    }
}

/// The failure of an attempt whose outcome nobody knows.
pub(super) fn interruption(step: &str, attempt: u32) -> Failure {
    let message = format!("step `{step}`: attempt {attempt} was interrupted; whether it was done is unknown");
    Failure::new(Class::Unavailable, "interrupted", message)
}
