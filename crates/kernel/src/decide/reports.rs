//! Reports of attempts before their end: pinned tools, calls that continue in a tool server, and forms.
//!
//! An attempt that asks people to fill in a form waits at a gate. The executor may hold its call open, so the
//! end of the call closes the gate.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    apply::IllegalTransition,
    cbor,
    decide_version::REPORTS_SINCE,
    diagnostic::quoted,
    effect::{Outcome, PinnedTool, Progress, Report},
    failure::{Class, Failure},
    form::Form,
    instance::Instance,
    limits::{
        APPROVAL_TTL_DEFAULT_MS, FORM_MESSAGE_BYTES_MAX, HANDLE_BYTES_MAX, PINNED_TOOLS_MAX, REPORTS_MAX,
        RUNNER_REPORTS_MAX,
    },
    plan::Decision,
    record::{Purpose, Record, StopReason},
    state::{GateState, State, Status, StepState},
    value::{Map, Value},
};

use super::{Action, Decider, open_attempt};

/// Returns what the executor of an attempt needs to continue. `None` under older rules, where nothing can be reported.
pub(super) fn progress_of(state: &State, step: &StepState, effect: &str, params: &Value) -> Option<Progress> {
    if state.decide_version < REPORTS_SINCE {
        return None;
    }
    let pins = match effect {
        "tool" => {
            let name = params.get("tool").and_then(Value::as_text).unwrap_or_default();
            // A name without its server may be that of a tool that is pinned by its full name.
            let is_of =
                |pinned: &str| pinned == name || pinned.strip_suffix(name).is_some_and(|server| server.ends_with('.'));
            let pins = state.journal.pinned_tools.iter().filter(|(pinned, _)| is_of(pinned));
            pins.map(|(pinned, digest)| (pinned.clone(), *digest)).collect()
        }
        "agent" => state.journal.pinned_tools.clone(),
        _ => BTreeMap::new(),
    };
    let is_stopping = step.stopping.is_some();
    Some(Progress { pins, handle: step.call.handle.clone(), answer: step.call.answer.clone(), is_stopping })
}

/// Returns why the answer to the form of a gate cannot be accepted, as a sentence. `None` if it can, or if the gate has no
/// form.
pub fn unfit_answer(gate: &GateState, decision: Decision, reason: &Value) -> Option<String> {
    if gate.purpose != Purpose::Form || decision == Decision::Deny || is_permission(gate) {
        return None;
    }
    let Some(content) = reason.get("content") else {
        return Some("the tool server asks for a form to be filled in: approve with its content, or deny".into());
    };
    let form = Form::of_schema(gate.items.get("form").unwrap_or(&Value::Null));
    form.and_then(|form| form.check(content)).err()
}

/// True if an external agent asks for a permission at the gate, which needs a decision and no content.
pub fn is_permission(gate: &GateState) -> bool {
    gate.purpose == Purpose::Form && gate.items.get("permission").is_some()
}

/// The words of a person at a gate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Words {
    /// A text for the journal and the audit log.
    pub reason: Option<String>,
    /// The content of a form.
    pub content: Option<Value>,
    /// True if a denial means that the person cancels, and does not only decline to answer.
    pub cancels: bool,
}

impl Words {
    /// Returns the reason of a decision as journals have it. The error is a sentence: the words do not fit the gate.
    pub fn to_reason(self, gate: &GateState, decision: Decision) -> Result<Value, String> {
        let Self { reason, content, cancels } = self;
        let text = reason.map(Value::Text);
        if gate.purpose != Purpose::Form {
            return match content.is_some() || cancels {
                true => Err("the approval asks for no form: leave out the content and the cancellation".into()),
                false => Ok(text.unwrap_or_default()),
            };
        }
        let entries = match (decision, content) {
            (Decision::Deny, Some(_)) => return Err("a denial has no content: approve with it, or leave it out".into()),
            (Decision::Approve, _) if cancels => return Err("an approval cannot cancel: deny instead".into()),
            (Decision::Deny, None) => cancels.then(|| ("action", "cancel".into())),
            (Decision::Approve, content) => content.map(|content| ("content", content)),
        };
        let value = match (entries, text) {
            (None, text) => text.unwrap_or_default(),
            (entry, text) => Value::map(entry.into_iter().chain(text.map(|text| ("reason", text)))),
        };
        unfit_answer(gate, decision, &value).map_or(Ok(value), Err)
    }
}

impl Decider<'_> {
    /// Processes a report. The attempt continues, or waits for people.
    pub(super) fn reported(
        &mut self,
        instance: &Instance,
        attempt: u32,
        report: &Report,
    ) -> Result<(), IllegalTransition> {
        let step = self.state.steps.get(instance);
        let reports = step.map_or(0, |step| step.call.reports);
        let is_stopping = step.is_some_and(|step| step.stopping.is_some());
        if let Some(failure) = self.refused(instance, report, reports) {
            self.stop_call(instance, attempt);
            return self.receipt(instance, attempt, &Outcome::Failed(failure));
        }
        match report {
            Report::Tools(tools) => {
                let known = &self.state.journal.pinned_tools;
                let new: Vec<PinnedTool> =
                    tools.iter().filter(|tool| !known.contains_key(&tool.name)).cloned().collect();
                self.record(Record::ToolsPinned { tools: new })?;
                if is_stopping { self.perform_again(instance, attempt, true) } else { self.resume(instance) }
            }
            Report::Continued(handle) => {
                self.continued(instance, attempt, handle)?;
                self.perform_again(instance, attempt, is_stopping)
            }
            Report::Asked { handle, .. } if is_stopping => {
                self.continued(instance, attempt, handle)?;
                self.perform_again(instance, attempt, true)
            }
            Report::Asked { question, handle } => {
                self.continued(instance, attempt, handle)?;
                self.open_form(instance, question)
            }
        }
    }

    /// Returns the failure of an attempt whose report is not accepted.
    fn refused(&self, instance: &Instance, report: &Report, reports: u32) -> Option<Failure> {
        let id = instance.name(&self.state.plan);
        let invalid = |code: &str, why: String| Some(Failure::new(Class::Invalid, code, format!("step `{id}`: {why}")));
        if self.state.decide_version < REPORTS_SINCE {
            let why = "forms and tasks of tool servers need a newer release on every node; upgrade the other nodes";
            return Some(Failure::new(Class::Unavailable, "reports_need_upgrade", format!("step `{id}`: {why}")));
        }
        match self.state.plan.step(instance.step).work.runner() {
            Some(_) if reports >= RUNNER_REPORTS_MAX => {
                let why =
                    format!("the agent asked for more than {RUNNER_REPORTS_MAX} permissions; allow more by `policy`");
                return invalid("runner_requests_exceeded", why);
            }
            None if reports >= REPORTS_MAX => {
                return invalid(
                    "tool_reports_exceeded",
                    format!("the tool server asked more than {REPORTS_MAX} times"),
                );
            }
            _ => {}
        }
        match report {
            Report::Tools(tools) if self.state.journal.pinned_tools.len() + tools.len() > PINNED_TOOLS_MAX => {
                let why = format!(
                    "the execution would use more than {PINNED_TOOLS_MAX} tools of tool servers; name fewer in `tools`"
                );
                invalid("tool_pins_exceeded", why)
            }
            Report::Tools(_) => None,
            Report::Continued(handle) | Report::Asked { handle, .. } if cbor::byte_count(handle) > HANDLE_BYTES_MAX => {
                let why =
                    format!("the tool server describes the rest of the call in more than {HANDLE_BYTES_MAX} bytes");
                invalid("tool_answer_invalid", why)
            }
            Report::Continued(_) => None,
            Report::Asked { question, .. } => {
                let message = question.get("message").and_then(Value::as_text).unwrap_or_default();
                let form = Form::of_schema(question.get("form").unwrap_or(&Value::Null));
                let why = match form {
                    _ if message.len() > FORM_MESSAGE_BYTES_MAX => {
                        format!("its message has more than {FORM_MESSAGE_BYTES_MAX} bytes")
                    }
                    Err(why) => why,
                    Ok(_) => return None,
                };
                invalid("tool_form_invalid", format!("the form of the tool server cannot be shown: {why}"))
            }
        }
    }

    fn continued(&mut self, instance: &Instance, attempt: u32, handle: &Value) -> Result<(), IllegalTransition> {
        let handle = handle.clone().into();
        self.record(Record::AttemptContinued { instance: instance.clone(), attempt, handle })
    }

    /// Opens the gate of a form. The prompt is ours and quotes the server, since lists of approvals show it alone. The
    /// items have the texts unchanged.
    fn open_form(&mut self, instance: &Instance, question: &Value) -> Result<(), IllegalTransition> {
        let prompt = match question.get("permission") {
            Some(permission) => self.permission_prompt(instance, question, permission),
            None => self.form_prompt(instance, question),
        };
        let gate = self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).map_or(1, |gate| gate.number + 1);
        self.record(Record::GateOpened {
            instance: instance.clone(),
            gate,
            question: Value::map([("prompt", Value::Text(prompt)), ("items", question.clone())]).into(),
            approvers: Vec::new(),
            count: 1,
            expires_at: self.agenda.now.saturating_add(APPROVAL_TTL_DEFAULT_MS),
            on_timeout: Decision::Deny,
            purpose: Purpose::Form,
        })?;
        self.answer_again(instance, gate, question)
    }

    /// The prompt for a permission. The words of the agent are quoted.
    fn permission_prompt(&self, instance: &Instance, question: &Value, permission: &Value) -> String {
        let text = |value: &Value, key: &str| quoted(value.get(key).and_then(Value::as_text).unwrap_or_default());
        format!(
            "The agent {} asks in step `{}` for the permission to use a tool of the kind {} (class {}). Approve to allow it \
             once, or deny. The call is in `permission`, in the agent's words: {}.",
            text(question, "runner"),
            instance.name(&self.state.plan),
            text(permission, "kind"),
            text(permission, "class"),
            text(permission, "title"),
        )
    }

    fn form_prompt(&self, instance: &Instance, question: &Value) -> String {
        let text = |key: &str| quoted(question.get(key).and_then(Value::as_text).unwrap_or_default());
        let fields = question.get("form").and_then(|form| form.get("properties")).and_then(Value::as_map);
        let fields: Vec<String> = fields.into_iter().flat_map(Map::keys).map(|name| quoted(name)).collect();
        format!(
            "The tool server {} asks for input to continue the call of {} in step `{}`. Approve with the content of the \
             form, or deny. The message and the form are the server's words: {}; fields: {}.",
            text("server"),
            text("tool"),
            instance.name(&self.state.plan),
            text("message"),
            if fields.is_empty() { "none".into() } else { fields.join(", ") }
        )
    }

    /// Decides the gate of a form as a person did before an interruption, if the form is the same. The answer may not have
    /// reached the tool server.
    fn answer_again(&mut self, instance: &Instance, gate: u32, question: &Value) -> Result<(), IllegalTransition> {
        let step = self.state.steps.get(instance);
        let answered = step.map(|step| step.call.carried.clone()).unwrap_or_default();
        let by = answered.get("by").and_then(Value::as_text);
        let decision = answered.get("decision").and_then(Value::as_text).and_then(Decision::parse);
        let (Some(by), Some(decision)) = (by, decision.filter(|_| answered.get("question") == Some(question))) else {
            return Ok(());
        };
        let mut reason = match answered.get("reason") {
            Some(Value::Map(reason)) => reason.clone(),
            _ => Map::new(),
        };
        reason.insert("reason".into(), "given before the interruption, for the same form".into());
        self.record(Record::GateDecided {
            instance: instance.clone(),
            gate,
            decision,
            by: Some(by.into()),
            reason: Value::Map(reason).into(),
        })?;
        self.resume(instance)
    }

    /// Continues an attempt with a full timeout. An execution that is completing waits for it as for any other attempt.
    pub(super) fn resume(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let attempt = self.state.steps.get(instance).map_or(0, |step| step.attempt);
        let timeout = self.state.plan.step(instance.step).timeout_ms;
        let timeout_at = timeout.map(|timeout| self.agenda.now.saturating_add(timeout));
        self.record(Record::AttemptResumed { instance: instance.clone(), attempt, timeout_at })?;
        self.perform_again(instance, attempt, false)
    }

    fn perform_again(&mut self, instance: &Instance, number: u32, stops: bool) -> Result<(), IllegalTransition> {
        let attempt = open_attempt(self.state, instance).map(Box::new);
        let perform = attempt.map(|attempt| Action::Perform { instance: instance.clone(), attempt });
        self.agenda.turn.actions.extend(perform);
        if stops {
            self.stop_call(instance, number);
        }
        Ok(())
    }

    fn stop_call(&mut self, instance: &Instance, attempt: u32) {
        self.agenda.turn.actions.push(Action::Stop { instance: instance.clone(), attempt });
    }

    /// True if the attempt waits for the content of a form, while its executor may hold the call open.
    pub(super) fn is_held(&self, instance: &Instance, attempt: u32) -> bool {
        self.state.steps.get(instance).is_some_and(|step| {
            let is_asked = step.gate.as_ref().is_some_and(|gate| gate.is_open && gate.purpose == Purpose::Form);
            is_asked && step.status == Status::WaitingApproval && step.attempt == attempt
        })
    }

    /// Closes the gate of a form because the call has ended without an answer, and handles the outcome of the call.
    pub(super) fn held_call_ended(
        &mut self,
        instance: &Instance,
        attempt: u32,
        outcome: &Outcome,
    ) -> Result<(), IllegalTransition> {
        if matches!(outcome, Outcome::Reported(_)) {
            return Ok(());
        }
        self.close_form(instance, attempt, "the call ended before an answer")?;
        self.receipt(instance, attempt, outcome)
    }

    /// Closes the gate of a form without an answer. The attempt runs again.
    fn close_form(&mut self, instance: &Instance, attempt: u32, why: &str) -> Result<(), IllegalTransition> {
        let gate = self.state.steps.get(instance).and_then(|step| step.gate.as_ref()).map_or(0, |gate| gate.number);
        self.record(Record::GateDecided {
            instance: instance.clone(),
            gate,
            decision: Decision::Deny,
            by: None,
            reason: Value::map([("action", "cancel".into()), ("reason", why.into())]).into(),
        })?;
        self.record(Record::AttemptResumed { instance: instance.clone(), attempt, timeout_at: None })
    }

    /// Withdraws the form of a step that is to be canceled while it waits for the content, and returns true. The attempt is
    /// dispatched again to end its call or its task, and the step is canceled with its receipt.
    pub(super) fn withdraw_form(&mut self, instance: &Instance) -> Result<bool, IllegalTransition> {
        let attempt = self.state.steps.get(instance).map_or(0, |step| step.attempt);
        if !self.is_held(instance, attempt) {
            return Ok(false);
        }
        self.close_form(instance, attempt, "the step was canceled")?;
        let (instance, reason) = (instance.clone(), StopReason::Ending);
        self.record(Record::AttemptStopping { instance: instance.clone(), attempt, reason })?;
        self.perform_again(&instance, attempt, true)?;
        Ok(true)
    }

    /// Adds to the failure of an interrupted attempt that the answer of a person may not have reached the tool server.
    pub(super) fn with_lost_answer(&self, instance: &Instance, failure: Failure) -> Failure {
        let Some(step) = self.state.steps.get(instance) else { return failure };
        let Some(action) = step.call.answer.get("action").and_then(Value::as_text) else { return failure };
        let gate = step.gate.as_ref().map_or(0, |gate| gate.number);
        let message = format!(
            "{}; the answer `{action}` to the form of gate {gate} may not have reached the tool server, and is in the decisions \
             of the step",
            failure.message
        );
        Failure { message: message.to_string(), ..failure }
    }
}
