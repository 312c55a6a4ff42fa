//! Approval gates: opens them and processes decisions and expiry.

use alloc::{format, string::ToString};

use crate::{
    apply::IllegalTransition,
    cbor,
    decide_version::{BUDGETS_SINCE, CLASSIFY_HINT_SINCE},
    effect_policy::Call,
    failure::{Class, Failure},
    hash::Hash,
    instance::Instance,
    limits::APPROVAL_TTL_DEFAULT_MS,
    plan::{Decision, Gate, Guard},
    record::{Ending, Payload, Purpose, Record},
    state::{GateState, Status},
    value::Value,
};

use super::{Decider, effects::interruption, no_reason, reports::unfit_answer};

pub(super) use crate::record::DENIALS;

impl Decider<'_> {
    /// Opens the gate of an approval step. The data shown to approvers is resolved now and does not change.
    pub(super) fn open_approval(&mut self, instance: &Instance, gate: &Gate) -> Result<(), IllegalTransition> {
        let question = gate
            .prompt
            .resolve(&self.view(instance))
            .and_then(|prompt| Ok((prompt, gate.items.resolve(&self.view(instance))?)));
        let (prompt, items) = match question {
            Ok(question) => question,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let prompt = crate::template::text_form(&prompt);
        let question = Value::map([("prompt", Value::Text(prompt)), ("items", items)]);
        if self.is_bounded() && self.refuses_input(instance, &question, cbor::byte_count(&question))? {
            return Ok(());
        }
        self.started(instance, question.clone(), None)?;
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate: 1,
            question: question.into(),
            approvers: gate.approvers.clone(),
            count: gate.count,
            expires_at: self.agenda.now.saturating_add(gate.ttl_ms),
            on_timeout: gate.on_timeout,
            purpose: Purpose::Approval,
        })
    }

    /// Opens a gate that asks if an interrupted attempt is to be repeated. Only a person can find out if the effect
    /// took place.
    pub(super) fn open_interruption(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        let step = self.state.steps.get(instance);
        let gate = step.and_then(|step| step.gate.as_ref()).map_or(1, |gate| gate.number + 1);
        let input = step.map(|step| step.input.clone()).unwrap_or_default();
        let prompt = format!(
            "Attempt {attempt} of step `{}` was interrupted, and whether it was done is unknown. Repeat it?",
            self.state.plan.id(instance.step)
        );
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate,
            question: Value::map([("prompt", Value::Text(prompt)), ("items", input)]).into(),
            approvers: alloc::vec::Vec::new(),
            count: 1,
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Interrupted,
        })
    }

    /// Opens a gate before a call that the policy asks about. The items are the resolved parameters, which all attempts
    /// of the step use, and their hash; no text of a tool or a model is among them.
    pub(super) fn open_call(
        &mut self,
        instance: &Instance,
        guard: Guard,
        params: Value,
        intent: Hash,
    ) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        let in_agent = plan.agent_of_call(instance.step).is_some();
        let tool = match Call::of(&step.work) {
            _ if in_agent => params.get("params").and_then(|params| params.get("tool")).and_then(Value::as_text),
            Some(Call::Tool(tool)) => Some(tool),
            _ => None,
        };
        let effect = match params.get("effect").and_then(Value::as_text) {
            Some(effect) if in_agent => effect,
            _ => step.work.kind(),
        };
        let call = match tool {
            // The name is the model's, within the tools that the step lists.
            Some(tool) if in_agent => format!("the tool {}", crate::diagnostic::quoted(tool)),
            Some(tool) => format!("the tool `{tool}`"),
            None => format!("`{effect}`"),
        };
        let class = guard.class.name();
        let why = match guard.is_assumed {
            true if self.state.decide_version >= CLASSIFY_HINT_SINCE => {
                ", which is assumed because no rule classifies the tool (settings: `policy: {classes: {\"SERVER.TOOL\": CLASS}}`)"
            }
            true => ", which is assumed because no rule classifies the tool",
            false => "",
        };
        let name = if in_agent { instance.name(&plan) } else { step.id.clone() };
        let label = guard.label.map(|label| format!(" Its input has {label} values.")).unwrap_or_default();
        let prompt = format!("Step `{name}` calls {call}. Its class is {class}{why}.{label} Allow this call?");
        let items = Value::map([
            ("class", class.into()),
            ("effect", effect.into()),
            ("input", params.clone()),
            ("inputHash", Hash::of(&cbor::encode(&params)).prefixed().into()),
        ]);
        let question = Value::map([("prompt", Value::Text(prompt)), ("items", items)]);
        if self.is_bounded() && self.refuses_input(instance, &question, cbor::byte_count(&question))? {
            return Ok(());
        }
        self.started(instance, params, Some(intent))?;
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate: 1,
            question: question.into(),
            approvers: alloc::vec::Vec::new(),
            count: 1,
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Call,
        })
    }

    /// Opens a gate with a question of a model. The text is the model's, and is shown as data.
    pub(super) fn open_question(&mut self, instance: &Instance, input: Value) -> Result<(), IllegalTransition> {
        if self.state.decide_version < BUDGETS_SINCE {
            let message = "questions need a newer release on every node; upgrade the other nodes";
            return self.fail(instance, Failure::new(Class::Unavailable, "agents_need_upgrade", message));
        }
        let question = input.get("params").and_then(|params| params.get("question")).cloned().unwrap_or_default();
        let prompt = format!(
            "The model of step `{}` asks a question. Approve with the answer as the reason, or deny.",
            instance.name(&self.state.plan)
        );
        let question = Value::map([("prompt", Value::Text(prompt)), ("items", Value::map([("question", question)]))]);
        self.started(instance, input, None)?;
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate: 1,
            question: question.into(),
            approvers: alloc::vec::Vec::new(),
            count: 1,
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Question,
        })
    }

    /// Gives the answer of a person to the model. A denial and the end of the time are results of the tool call.
    fn answered(
        &mut self,
        instance: &Instance,
        decision: Decision,
        by: Option<&str>,
        reason: &Value,
    ) -> Result<(), IllegalTransition> {
        let text = reason.as_text().filter(|text| !text.trim().is_empty());
        match (decision, by) {
            (Decision::Approve, by) => {
                self.complete(instance, Value::map([("answer", text.unwrap_or("yes").into()), ("by", by.into())]))
            }
            (Decision::Deny, Some(_)) => {
                let why = text.map_or_else(|| ".".into(), |text| format!(": {text}"));
                let message = format!("the person declined to answer{why}");
                self.fail(instance, Failure::new(Class::Failed, "question_declined", message))
            }
            (Decision::Deny, None) => {
                let message = "the question was not answered in its time";
                self.fail(instance, Failure::new(Class::Timeout, "question_unanswered", message))
            }
        }
    }

    /// Fails a step whose call the policy denies. Nothing was called.
    pub(super) fn fail_for_policy(&mut self, instance: &Instance, guard: Guard) -> Result<(), IllegalTransition> {
        let id = self.state.plan.id(instance.step);
        let label = guard.label.map(|label| format!(" with {label} values")).unwrap_or_default();
        let message = format!(
            "step `{id}`: the policy denies calls of the class {}{label}; change the rule, or remove the step",
            guard.class.name()
        );
        self.fail(instance, Failure::new(Class::Policy, "policy_denied", message))
    }

    /// Processes a decision. It counts if the gate is open and not expired, and if the user may decide and has not
    /// approved yet.
    pub(super) fn decision(
        &mut self,
        instance: &Instance,
        gate: u32,
        decision: Decision,
        by: &str,
        reason: &Value,
    ) -> Result<(), IllegalTransition> {
        // The gate of a canceled step is unchanged, but it accepts no decisions.
        let waiting = self.state.steps.get(instance).filter(|step| step.status == Status::WaitingApproval);
        let open = waiting.and_then(|step| step.gate.as_ref());
        let Some(open) = open.filter(|open| open.accepts(gate, by, self.agenda.now)) else { return Ok(()) };
        let purpose = open.purpose;
        if purpose == Purpose::Form && unfit_answer(open, decision, reason).is_some() {
            return Ok(());
        }
        self.record(Record::GateDecided {
            instance: instance.clone(),
            gate,
            decision,
            by: Some(by.to_string()),
            reason: Payload::Known(reason.clone()),
        })?;
        match decision {
            _ if purpose == Purpose::Question => self.answered(instance, decision, Some(by), reason),
            _ if purpose == Purpose::Form => self.resume(instance),
            Decision::Deny => self.denied(instance, purpose, "approval_denied"),
            Decision::Approve if self.is_open(instance) => Ok(()),
            Decision::Approve => self.approved(instance, purpose),
        }
    }

    pub(super) fn gate_expired(&mut self, instance: &Instance, gate: u32) -> Result<(), IllegalTransition> {
        let open = self.state.steps.get(instance).and_then(|step| step.gate.as_ref());
        let Some(open) = open.filter(|open| open.is_open && open.number == gate) else { return Ok(()) };
        let (decision, purpose) = (open.on_timeout, open.purpose);
        let reason = no_reason();
        self.record(Record::GateDecided { instance: instance.clone(), gate, decision, by: None, reason })?;
        match decision {
            _ if purpose == Purpose::Form => self.resume(instance),
            _ if purpose == Purpose::Question => self.answered(instance, decision, None, &Value::Null),
            Decision::Deny => self.denied(instance, purpose, "approval_timeout"),
            Decision::Approve => self.approved(instance, purpose),
        }
    }

    fn approved(&mut self, instance: &Instance, purpose: Purpose) -> Result<(), IllegalTransition> {
        let step = self.state.steps.get(instance);
        let attempt = step.map_or(0, |step| step.attempt);
        match purpose {
            Purpose::Interrupted if !self.may_try_again(instance) => Ok(()),
            Purpose::Interrupted => self.hand_out(instance, attempt + 1),
            Purpose::Call => self.allowed(instance),
            Purpose::Budget => self.raise_budget(instance),
            // `decision` has answered them.
            Purpose::Question | Purpose::Form => Ok(()),
            Purpose::Approval => {
                let gate = step.and_then(|step| step.gate.as_ref());
                let by = gate.map(|gate| gate.approved_by.iter().map(|by| Value::from(by.as_str())).collect());
                let by = Value::List(by.unwrap_or_default());
                let at = crate::time::rfc3339(self.agenda.now).into();
                self.complete(instance, Value::map([("decision", "approve".into()), ("by", by), ("at", at)]))
            }
        }
    }

    /// Starts the first attempt of a call that a person has allowed, unless the execution is ending or has used up its
    /// calls in the meantime.
    fn allowed(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        if !self.may_try_again(instance) || self.is_out_of_calls()? {
            return Ok(());
        }
        self.hand_out(instance, 1)
    }

    /// Processes a denial. At an approval step it cancels the execution. For an interrupted attempt it only means that
    /// the attempt is not repeated, so the step fails.
    fn denied(&mut self, instance: &Instance, purpose: Purpose, reason: &str) -> Result<(), IllegalTransition> {
        match purpose {
            Purpose::Interrupted => {
                let attempt = self.state.steps.get(instance).map_or(0, |step| step.attempt);
                let failure = interruption(self.state.plan.id(instance.step), attempt);
                self.fail(instance, failure)
            }
            Purpose::Budget => self.budget_denied(instance),
            Purpose::Question | Purpose::Form => Ok(()),
            Purpose::Approval | Purpose::Call => self.cancel_for_denial(instance, reason),
        }
    }

    /// Cancels the step and the execution. A parent that waits for this execution receives the reason code and is
    /// canceled as well, even if other steps still run there.
    pub(super) fn cancel_for_denial(&mut self, instance: &Instance, reason: &str) -> Result<(), IllegalTransition> {
        self.cancel_step(instance, reason)?;
        if self.state.end.ending.is_some() {
            return Ok(());
        }
        self.record(Record::EndingBegun { ending: Ending::Cancelled { reason: reason.into() } })
    }

    fn is_open(&self, instance: &Instance) -> bool {
        self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).is_some_and(|gate| gate.is_open)
    }
}

impl GateState {
    /// True if a decision of this user at this time would count.
    pub fn accepts(&self, gate: u32, by: &str, now: u64) -> bool {
        let may = self.approvers.is_empty() || self.approvers.iter().any(|approver| approver == by);
        let has = self.approved_by.iter().any(|approver| approver == by);
        self.is_open && self.number == gate && now < self.expires_at && may && !has
    }
}
