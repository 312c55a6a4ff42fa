//! Effects: dispatch of attempts, receipts, retries, timeouts and interruptions.

use alloc::{boxed::Box, format, string::ToString};

use crate::{
    agent::interrupted_answer,
    apply::IllegalTransition,
    cbor::{self, Writer},
    decide_version::{BUDGETS_SINCE, SECOND_RULES},
    effect::Outcome,
    failure::{Class, Failure},
    hash::Hash,
    instance::Instance,
    limits::{FINALLY_STEPS_MAX, WAIT_MAX_MS},
    plan::{AgentPart, Guard, OnInterrupted, WORKFLOW_TOOL, Work},
    record::{Ending, HaltReason, Record, StopReason},
    secret::{SecretUses, references_of},
    state::{CHILD_EFFECT, State},
    value::Value,
};

use super::{
    Action, CHILD_QUARANTINED, Decider,
    agents::{ASK, BUDGET},
    child_key,
    children::cancellation,
    fault,
    gates::DENIALS,
    open_attempt,
};

impl Decider<'_> {
    /// Dispatches a ready step, unless a later change in this turn forbids it.
    pub(super) fn dispatch(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        if self.is_forbidden(instance) {
            // The block may have no other open step and must then be closed.
            self.judge_again(instance);
            self.agenda.dirty.scopes.insert(instance.scope(&self.state.plan));
            return Ok(());
        }
        if self.is_out_of_steps()? || self.is_out_of_calls()? {
            return Ok(());
        }
        let plan = self.state.plan.clone();
        if let Some(part) = plan.agent_part(instance.step) {
            if part == AgentPart::Model {
                self.read_messages(instance)?;
            }
            return match self.agent_call(instance, part) {
                Ok((effect, input)) if effect == ASK => self.open_question(instance, input),
                Ok((effect, input)) if effect == BUDGET => self.show_budget(instance, input),
                Ok((effect, input)) if effect == CHILD_EFFECT => self.start_workflow(instance, input),
                Ok((effect, input)) => self.start_effect(instance, &effect, input),
                Err(failure) => self.fail(instance, failure),
            };
        }
        let (name, params) = match &plan.step(instance.step).work {
            Work::Effect { effect, params } => {
                if let Some(failure) = self.needs_newer_rules(false).filter(|_| effect == "agent") {
                    return self.fail(instance, failure);
                }
                (effect.as_str(), params.resolve(&self.view(instance)))
            }
            Work::Subworkflow { workflow, input, variables, waits } => {
                if let Some(failure) = self.child_refused(instance, workflow, *waits) {
                    return self.fail(instance, failure);
                }
                let view = self.view(instance);
                let parts = input.resolve(&view).and_then(|input| Ok((input, variables.resolve(&view)?)));
                let params = parts.map(|(input, variables)| {
                    Value::map([("workflow", workflow.as_str().into()), ("input", input), ("variables", variables)])
                });
                ("subworkflow", params)
            }
            _ => return Ok(()),
        };
        let params = match params {
            Ok(params) => params,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        self.start_effect(instance, name, params)
    }

    /// Starts the workflow that a model has called, unless it cannot start, which is a result for the model.
    fn start_workflow(&mut self, instance: &Instance, input: Value) -> Result<(), IllegalTransition> {
        if self.state.decide_version < BUDGETS_SINCE {
            let message = "workflows as tools need a newer release on every node; upgrade the other nodes";
            return self.fail(instance, Failure::new(Class::Unavailable, "agents_need_upgrade", message));
        }
        let workflow = input.get("params").and_then(|params| params.get("workflow")).and_then(Value::as_text);
        if let Some(failure) = self.child_refused(instance, workflow.unwrap_or_default(), true) {
            return self.fail(instance, failure);
        }
        self.start_effect(instance, CHILD_EFFECT, input)
    }

    /// Starts the first attempt of a step with its resolved parameters.
    fn start_effect(&mut self, instance: &Instance, name: &str, params: Value) -> Result<(), IllegalTransition> {
        let encoded = cbor::encode(&params);
        self.count_bytes(encoded.len());
        if self.refuses_input(instance, &params, encoded.len())? {
            return Ok(());
        }
        let intent = self.intent(instance, name, &encoded);
        match self.guard(instance, &params) {
            None => {
                self.started(instance, params, Some(intent))?;
                self.hand_out(instance, 1)
            }
            Some(guard) if guard.is_denied => self.fail_for_policy(instance, guard),
            Some(guard) => self.open_call(instance, guard, params, intent),
        }
    }

    /// Returns the guard of a call. The calls of an agent are judged by the tool that the model has chosen.
    fn guard(&self, instance: &Instance, params: &Value) -> Option<Guard> {
        let plan = &self.state.plan;
        let guard = plan.step(instance.step).guard;
        let Some((_, agent)) = plan.agent_of_call(instance.step) else { return guard };
        let effect = params.get("effect").and_then(Value::as_text).unwrap_or(CHILD_EFFECT);
        let of_call = |key: &str| params.get("params")?.get(key)?.as_text();
        match effect {
            "tool" => agent.guard_of(of_call("tool").unwrap_or_default(), guard),
            CHILD_EFFECT => {
                let workflow = of_call("workflow").unwrap_or_default();
                agent.guard_of(&format!("{WORKFLOW_TOOL}{workflow}"), guard)
            }
            effect => agent.guard_of(effect, guard),
        }
    }

    /// Ends the execution and returns true if no calls are left. First attempts and retries both count. Running
    /// attempts are awaited.
    pub(super) fn is_out_of_calls(&mut self) -> Result<bool, IllegalTransition> {
        let Some(max_calls) = self.calls_used_up() else { return Ok(false) };
        if self.state.is_cleaning_up() {
            return self.halt_cleanup(HaltReason::Limit, None).map(|()| true);
        }
        let message = format!("more than {max_calls} calls were to be made; raise maxCalls if that is meant");
        let fault = fault(Class::Policy, &format!("max_calls_exceeded:{max_calls}"), message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: false } })?;
        Ok(true)
    }

    /// Returns the limit on calls, if it is reached.
    fn calls_used_up(&self) -> Option<u32> {
        let more = if self.state.is_cleaning_up() { FINALLY_STEPS_MAX } else { 0 };
        let max_calls = self.state.plan.constraints.max_calls;
        max_calls.filter(|max_calls| self.state.counts.calls >= max_calls.saturating_add(more))
    }

    /// Derives the intent, the idempotency key of the step's effect, from the execution, the step instance, the effect
    /// and its parameters. It does not depend on the attempt, so a service can recognize a repeated call.
    fn intent(&self, instance: &Instance, effect: &str, params: &[u8]) -> Hash {
        let step = instance.name(&self.state.plan);
        // Five CBOR heads of at most nine bytes each.
        let heads = 45;
        let mut writer =
            Writer::with_capacity(heads + self.state.key.0.len() + step.len() + effect.len() + params.len());
        writer.array(4);
        writer.byte_string(&self.state.key.0);
        writer.text(&step);
        writer.text(effect);
        writer.byte_string(params);
        Hash::of(&writer.bytes)
    }

    /// Starts an attempt and dispatches it.
    pub(super) fn hand_out(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let (work, timeout) = (&plan.step(instance.step).work, plan.step(instance.step).timeout_ms);
        if let Work::Code { .. } = work {
            return self.repeat_code(instance, attempt);
        }
        if attempt > 1 && self.is_out_of_calls()? {
            return Ok(());
        }
        let child = self.state.started_workflow(instance).map(|(_, waits)| waits);
        let is_child = child.is_some();
        let is_message = self.state.conversation_of_message(instance.step).is_some();
        // A workflow that a model starts may wait for people, so the timeout of tools is not for it. The timeout of a
        // message is that of its wait.
        let timeout = timeout.filter(|_| !is_message && (!is_child || matches!(work, Work::Subworkflow { .. })));
        if let Some(failure) = self.executions_used_up(instance).filter(|_| is_child) {
            return self.fail(instance, failure);
        }
        let Some(left_ms) = self.reserve(instance, attempt)? else { return Ok(()) };
        let timeout = timeout.into_iter().chain(left_ms).min();
        let timeout_at = timeout.map(|timeout| self.agenda.now.saturating_add(timeout));
        self.read_sent_messages(instance)?;
        self.record(Record::AttemptStarted { instance: instance.clone(), attempt, timeout_at })?;
        match child {
            Some(waits) => {
                let executions = self.give_executions(instance, waits)?;
                let budget = self.give_budget(instance, waits)?;
                self.start_child(instance, attempt, (executions, budget));
                if !waits {
                    let child = child_key(self.state, instance, attempt);
                    return self.complete(instance, Value::map([("executionId", child.to_string().into())]));
                }
            }
            None if is_message => return self.send_message(instance, attempt),
            None => {
                let attempt = open_attempt(self.state, instance);
                let perform =
                    attempt.map(Box::new).map(|attempt| Action::Perform { instance: instance.clone(), attempt });
                self.agenda.turn.actions.extend(perform);
            }
        }
        Ok(())
    }

    /// Processes a receipt. It counts only for the running attempt of the same number.
    pub(super) fn receipt(
        &mut self,
        instance: &Instance,
        attempt: u32,
        outcome: &Outcome,
    ) -> Result<(), IllegalTransition> {
        let is_out = self.state.open.attempts.contains(instance);
        if !is_out && self.is_held(instance, attempt) {
            return self.held_call_ended(instance, attempt, outcome);
        }
        let Some(step) = self.state.steps.get(instance).filter(|step| is_out && step.attempt == attempt) else {
            return Ok(());
        };
        let stopping = step.stopping;
        if let Outcome::Reported(report) = outcome {
            return self.reported(instance, attempt, report);
        }
        self.settle(instance, outcome)?;
        let of_child;
        let outcome = match outcome {
            Outcome::Child { end, executions } | Outcome::ChildWithUsage { end, executions, .. } => {
                self.take_back_executions(instance, *executions)?;
                of_child = end.clone().into();
                &of_child
            }
            // A quarantined child keeps its share of the execution budget, because it can be released and continue.
            Outcome::Failed(failure) if failure.code == CHILD_QUARANTINED && self.counts_memory() => outcome,
            // Receipts of a child that an older release started do not say how many executions the child has started.
            other => {
                self.take_back_executions(instance, 1)?;
                other
            }
        };
        match (outcome, stopping) {
            (Outcome::Done(output), _) => self.done(instance, output),
            (_, Some(StopReason::Ending)) => self.cancel_step(instance, "execution_ending"),
            (_, Some(StopReason::Message)) => self.complete(instance, interrupted_answer()),
            (Outcome::Cancelled(reason), None) if DENIALS.contains(&reason.as_str()) => {
                self.cancel_for_denial(instance, reason)
            }
            (Outcome::Cancelled(reason), None) => self.attempt_failed(instance, attempt, cancellation(reason)),
            (Outcome::Failed(failure), None) => self.attempt_failed(instance, attempt, failure.clone()),
            (outcome, Some(StopReason::Timeout)) => {
                let failure = self.timeout(instance, outcome);
                self.attempt_failed(instance, attempt, failure)
            }
            (
                Outcome::Stopped(_)
                | Outcome::Interrupted
                | Outcome::Child { .. }
                | Outcome::ChildWithUsage { .. }
                | Outcome::Reported(_),
                None,
            ) => self.interrupted(instance, attempt),
        }
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
            Outcome::Done(_)
            | Outcome::Interrupted
            | Outcome::Cancelled(_)
            | Outcome::Child { .. }
            | Outcome::ChildWithUsage { .. }
            | Outcome::Reported(_) => Value::Null,
        };
        let message = format!("step `{}`: no result within {limit} ms; raise timeoutMs if it needs longer", step.id);
        Failure::new(Class::Timeout, code, message).with_details(details)
    }

    /// Schedules the next attempt if the retry policy, the limit on calls and the deadline allow it; otherwise the step
    /// fails.
    pub(super) fn attempt_failed(
        &mut self,
        instance: &Instance,
        attempt: u32,
        failure: Failure,
    ) -> Result<(), IllegalTransition> {
        let retry = &self.state.plan.step(instance.step).retry;
        let asked_ms = failure.details.get("retryAfterMs").and_then(Value::as_u64).unwrap_or(0).min(WAIT_MAX_MS);
        let delay_ms = retry.delay_ms(attempt + 1, self.entropy(instance, attempt)).max(asked_ms);
        let retry_at = self.agenda.now.saturating_add(delay_ms);
        if !self.may_call_again(instance) || !retry.allows(&failure, attempt) || self.is_past_deadline(retry_at) {
            return self.fail(instance, failure);
        }
        let (instance, fault) = (instance.clone(), failure.into());
        self.record(Record::AttemptFailed { instance, attempt, fault, retry_at: Some(retry_at) })
    }

    /// Handles an attempt with an unknown outcome as the step's `onInterrupted` says. The attempt counts as used.
    fn interrupted(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        let failure = self.with_lost_answer(instance, interruption(&step.id, attempt));
        let is_wanted = self.state.decide_version < SECOND_RULES || step.retry.wants(&failure);
        let may_repeat = is_wanted && attempt < step.retry.max_attempts;
        match step.on_interrupted {
            _ if !self.may_call_again(instance) => self.fail(instance, failure),
            OnInterrupted::Retry if may_repeat => {
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

    pub(super) fn attempt_timed_out(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        self.stop(instance, attempt, StopReason::Timeout)
    }

    pub(super) fn stop(
        &mut self,
        instance: &Instance,
        attempt: u32,
        reason: StopReason,
    ) -> Result<(), IllegalTransition> {
        self.record(Record::AttemptStopping { instance: instance.clone(), attempt, reason })?;
        if self.state.started_workflow(instance).is_some() {
            self.stop_child(instance, attempt);
        } else {
            self.agenda.turn.actions.push(Action::Stop { instance: instance.clone(), attempt });
        }
        Ok(())
    }

    pub(super) fn may_try_again(&self, instance: &Instance) -> bool {
        !self.is_ending() && !self.is_instance_halted(instance)
    }

    /// True if another attempt may start and a call is left for it. If none is left, the step fails with its own
    /// failure and not with that of the limit.
    fn may_call_again(&self, instance: &Instance) -> bool {
        let is_call = self.state.plan.step(instance.step).work.goes_out();
        self.may_try_again(instance) && !(is_call && self.calls_used_up().is_some())
    }

    fn is_past_deadline(&self, at: u64) -> bool {
        self.state.end.deadline.is_some_and(|deadline| at >= deadline)
    }

    /// Returns the seed for the jitter of a retry delay. It depends only on the intent and the attempt, so a replay
    /// computes the same delay.
    fn entropy(&self, instance: &Instance, attempt: u32) -> Hash {
        let intent = self.state.steps.get(instance).and_then(|step| step.intent).unwrap_or_default();
        Hash::of_parts(&[&intent.0, &attempt.to_be_bytes()])
    }
}

/// Creates the failure of an attempt with an unknown outcome.
pub(super) fn interruption(step: &str, attempt: u32) -> Failure {
    let message = format!("step `{step}`: attempt {attempt} was interrupted; whether it was done is unknown");
    Failure::new(Class::Unavailable, "interrupted", message)
}

/// Returns the secrets that a step uses. They are those that the author of the plan wrote: the parameters of an agent's tool
/// call come from a model and name none.
pub(super) fn secrets_of(state: &State, instance: &Instance) -> SecretUses {
    let Work::Effect { params, .. } = &state.plan.step(instance.step).work else { return SecretUses::default() };
    if state.plan.agent_part(instance.step).is_some() {
        return SecretUses::default();
    }
    let references = references_of(params);
    if references.is_empty() {
        return SecretUses::default();
    }
    SecretUses { workflow: state.workflow().map(Into::into), references }
}
