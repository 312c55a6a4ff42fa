//! Messages to conversations: keeps them, has agents read them, and gives answers to the steps that wait for them.

use alloc::{format, string::ToString, vec::Vec};

use super::Decider;
use crate::{
    agent::{interrupted_answer, text_of},
    apply::IllegalTransition,
    decide_version::SENT_MESSAGES_SINCE,
    failure::{Class, Failure},
    instance::{Instance, Scope},
    limits::{AWAIT_DEFAULT_MS, MESSAGE_BYTES_MAX, MESSAGES_AWAITED_MAX, MESSAGES_KEPT_MAX},
    plan::Work,
    record::{Record, StopReason},
    state::{MessageRejection, Status},
    template::text_form,
    value::Value,
};

impl Decider<'_> {
    /// Keeps a person's message. One that is not accepted has no effect.
    pub(super) fn message(
        &mut self,
        id: &str,
        conversation: Option<&str>,
        content: &Value,
        interrupt: bool,
        by: &str,
    ) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let Some(name) = plan.conversation(conversation) else { return Ok(()) };
        if self.state.message_rejection(id, Some(name), content).is_some() {
            return Ok(());
        }
        self.record(Record::MessageKept {
            conversation: name.to_string(),
            from: None,
            by: Some(by.to_string()),
            id: id.to_string(),
            content: content.clone().into(),
        })?;
        if interrupt { self.interrupt(name) } else { Ok(()) }
    }

    /// Sends the message of a step whose attempt has started. The step completes, or waits for an answer.
    pub(super) fn send_message(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let Some(name) = plan.conversation_of_message(instance.step) else { return Ok(()) };
        let params = self.state.steps.get(instance).map(|step| step.input.clone()).unwrap_or_default();
        let is_set = |key: &str| params.get(key).and_then(Value::as_bool) == Some(true);
        let content = Value::Text(params.get("content").map(text_form).unwrap_or_default());
        if let Some(refusal) = self.state.message_refusal(name, &content) {
            let failure = refused(plan.id(instance.step), name, refusal);
            return self.attempt_failed(instance, attempt, failure);
        }
        let is_bounded = is_set("await_response") && self.state.decide_version >= SENT_MESSAGES_SINCE;
        if is_bounded && self.state.senders_that_wait(name) >= MESSAGES_AWAITED_MAX {
            let reason = format!("{MESSAGES_AWAITED_MAX} steps wait for an answer of its agents; send fewer at a time");
            let failure = failure(plan.id(instance.step), name, (Class::RateLimited, "conversation_full"), &reason);
            return self.attempt_failed(instance, attempt, failure);
        }
        self.record(Record::MessageKept {
            conversation: name.to_string(),
            from: Some(instance.clone()),
            by: None,
            id: "".to_string(),
            content: content.into(),
        })?;
        if is_set("interrupt") {
            self.interrupt(name)?;
        }
        if !is_set("await_response") {
            return self.done(instance, &sent(name, Value::Null));
        }
        let timeout_ms = plan.step(instance.step).timeout_ms.unwrap_or(AWAIT_DEFAULT_MS);
        let until = Some(self.agenda.now.saturating_add(timeout_ms));
        self.record(Record::WaitStarted { instance: instance.clone(), until })
    }

    /// Cancels the open model call of a conversation. The turn ends without an answer, and the next one reads the message.
    fn interrupt(&mut self, conversation: &str) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let agent =
            self.state.signals.conversations.by_name.get(conversation).and_then(|of| of.agents.first()).cloned();
        let turn = agent
            .as_ref()
            .and_then(|agent| self.state.blocks.loops.get(agent))
            .and_then(|turns| turns.begun.checked_sub(1));
        let (Some(agent), Some(turn)) = (agent, turn) else { return Ok(()) };
        let Work::Loop(of) = &plan.step(agent.step).work else { return Ok(()) };
        // No turn is left that could read the message, so the answer in progress is not discarded.
        if plan.agent(agent.step).is_some_and(|agent| turn + 1 >= agent.max_turns) {
            return Ok(());
        }
        let scope = Scope::of_round(&agent, of.block, turn);
        let Some(model) = plan.agent_steps(of.block).map(|steps| scope.instance(steps.model)) else { return Ok(()) };
        let Some(step) = self.state.steps.get(&model) else { return Ok(()) };
        match step.status {
            Status::Running if step.stopping.is_none() && self.state.open.attempts.contains(&model) => {
                let attempt = step.attempt;
                self.stop(&model, attempt, StopReason::Message)
            }
            Status::Retrying => self.complete(&model, interrupted_answer()),
            _ => Ok(()),
        }
    }

    /// Has the agent read the messages that a model call carries, whose first attempt starts now.
    pub(super) fn read_sent_messages(&mut self, model: &Instance) -> Result<(), IllegalTransition> {
        let count = self.state.messages_to_send(model).len() as u32;
        match model.agent(&self.state.plan).filter(|_| count > 0) {
            Some(agent) => self.record(Record::MessagesRead { instance: agent, count }),
            None => Ok(()),
        }
    }

    /// Has the agent read the messages that its conversation keeps, before its model call is prepared. Under later rules they
    /// are read when the call is sent.
    pub(super) fn read_messages(&mut self, model: &Instance) -> Result<(), IllegalTransition> {
        if self.state.decide_version >= SENT_MESSAGES_SINCE {
            return Ok(());
        }
        let Some(agent) = model.agent(&self.state.plan) else { return Ok(()) };
        let unread = self.state.conversation_of_agent(&agent).map_or(0, |(_, conversation)| conversation.unread.len());
        if unread == 0 {
            return Ok(());
        }
        self.record(Record::MessagesRead { instance: agent, count: unread as u32 })
    }

    /// Gives the text of an answer to the steps whose messages the model has read. An answer without text answers no step.
    pub(super) fn answer_senders(&mut self, model: &Instance, answer: &Value) -> Result<(), IllegalTransition> {
        let text = text_of(answer);
        let Some(agent) = model.agent(&self.state.plan) else { return Ok(()) };
        let Some((name, conversation)) = self.state.conversation_of_agent(&agent) else { return Ok(()) };
        if text.trim().is_empty() {
            return Ok(());
        }
        let (output, senders) = (sent(name, text.into()), conversation.awaiting.clone());
        for sender in self.that_wait(senders) {
            self.done(&sender, &output)?;
        }
        Ok(())
    }

    /// Lets the next agent of a conversation begin, and fails the steps whose answer can no longer come.
    pub(super) fn agent_has_ended(&mut self, agent: &Instance) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let Some(name) = plan.conversation_of_agent(agent.step) else { return Ok(()) };
        let Some(conversation) = self.state.signals.conversations.by_name.get(name) else { return Ok(()) };
        let mut senders = Vec::new();
        let next = conversation.agents.first();
        if next.is_none_or(|next| self.has_no_turn(next)) {
            // The next agent has read nothing, and an answer to what the ended one has read does not come.
            senders.extend(conversation.awaiting.iter().cloned());
            self.agenda.dirty.loops.extend(next.cloned());
        }
        if !self.state.may_read_messages(name) {
            senders.extend(conversation.unread.iter().filter_map(|message| message.from.clone()));
        }
        for sender in self.that_wait(senders) {
            let failure = refused(plan.id(sender.step), name, MessageRejection::Ended);
            self.fail(&sender, failure)?;
        }
        Ok(())
    }

    fn has_no_turn(&self, agent: &Instance) -> bool {
        self.state.blocks.loops.get(agent).is_none_or(|turns| turns.begun == 0)
    }

    /// Returns the senders that wait for an answer and have not got one in this turn.
    fn that_wait(&self, senders: Vec<Instance>) -> Vec<Instance> {
        let waits = |sender: &Instance| self.status_of(sender) == Status::Waiting && !self.is_asked(sender);
        senders.into_iter().filter(waits).collect()
    }

    /// Fails a step that has waited for an answer as long as it may.
    pub(super) fn answer_is_late(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let step = self.state.plan.step(instance.step);
        let limit = step.timeout_ms.unwrap_or(AWAIT_DEFAULT_MS);
        let message = format!(
            "step `{}`: the agent has not answered within {limit} ms; the message stays in its conversation. Raise await_timeout_ms if it needs longer",
            step.id
        );
        self.fail(instance, Failure::new(Class::Timeout, format!("message_timeout:{limit}"), message))
    }
}

/// Returns the output of a step that has sent a message.
fn sent(conversation: &str, response: Value) -> Value {
    Value::map([("conversation", conversation.into()), ("response", response)])
}

/// Returns the failure of a step whose message is not accepted or not answered.
fn refused(step: &str, conversation: &str, why: MessageRejection) -> Failure {
    let (class, code, reason) = match why {
        MessageRejection::Full => {
            let reason = format!("it keeps {MESSAGES_KEPT_MAX} messages, or too many bytes, that no agent has read");
            (Class::RateLimited, "conversation_full", reason)
        }
        MessageRejection::Size => {
            let reason = format!("a message is a text of 1 to {MESSAGE_BYTES_MAX} bytes");
            (Class::Invalid, "message_size", reason)
        }
        MessageRejection::Ended | MessageRejection::Unknown | MessageRejection::Repeated => {
            (Class::Invalid, "conversation_ended", "its agents have ended, and none can answer".into())
        }
    };
    failure(step, conversation, (class, code), &reason)
}

fn failure(step: &str, conversation: &str, (class, code): (Class, &str), reason: &str) -> Failure {
    Failure::new(class, code, format!("step `{step}`: the conversation `{conversation}`: {reason}"))
}
