//! Conversations: named dialogs that agents of an execution continue one after another, and the messages to them.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use super::{State, Status};
use crate::{
    cbor,
    decide_version::{MESSAGES_SINCE, SENT_MESSAGES_SINCE},
    hash::Hash,
    instance::Instance,
    limits::{EXECUTION_MEMORY_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGES_KEPT_BYTES_MAX, MESSAGES_KEPT_MAX},
    plan::AgentPart,
    value::Value,
    value_size,
};

/// The key of the recorded parameters of a model call with the number of messages that it carries.
pub(crate) const MESSAGES_OF_CALL: &str = "messages";

/// The conversations of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversations {
    /// The conversations that an agent or a message has opened, by name.
    pub by_name: BTreeMap<String, Conversation>,
    /// Deduplication ids of the messages that people have sent.
    pub seen: BTreeSet<String>,
}

/// A conversation. One agent at a time continues it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// The running agents of the conversation, in the order of their start. The first one continues it, and the others
    /// wait for their turn.
    pub agents: Vec<Instance>,
    /// The parts of the agents that have completed, as `{goal, context, messages, turns}`.
    pub past: Vec<Value>,
    /// Encoded size of `past`, in bytes.
    pub past_bytes: u64,
    /// The hash of `past`.
    pub hash: Hash,
    /// Messages that no agent has read, in order of arrival.
    pub unread: Vec<Message>,
    /// The steps whose message the current agent has read, and that wait for its answer.
    pub awaiting: Vec<Instance>,
}

/// A message that no agent has read.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The text.
    pub content: Value,
    /// The step that sent it; `None` for a message of a person.
    pub from: Option<Instance>,
}

/// Reason for which a message is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRejection {
    /// A message with the same id was accepted before. The sender can treat this as success.
    Repeated,
    /// The workflow has no conversation of this name. Without a name: it has none, or several.
    Unknown,
    /// All agents of the conversation have ended, or the execution is ending.
    Ended,
    /// The unread messages have reached their limit in number or bytes.
    Full,
    /// The message is empty or too large.
    Size,
}

impl MessageRejection {
    /// Returns the reason as a clause whose subject is the execution.
    pub fn words(self) -> &'static str {
        match self {
            Self::Repeated => "has had a message of this identity",
            Self::Unknown => "has no such conversation; an agent gets messages if its step has a `conversation`",
            Self::Ended => "has no agent that can still read a message in this conversation",
            Self::Full => "keeps as many messages as it may until the agent has read them",
            Self::Size => "takes messages of 1 to 65536 bytes",
        }
    }
}

impl State {
    /// Returns the conversation to which a step sends a message. `None` if the step is another one, or an effect.
    pub fn conversation_of_message(&self, step: u32) -> Option<&str> {
        self.plan.conversation_of_message(step).filter(|_| self.decide_version >= MESSAGES_SINCE)
    }

    /// Returns the conversation that an agent continues, once it is its turn.
    pub fn conversation_of_agent(&self, agent: &Instance) -> Option<(&str, &Conversation)> {
        let name = self.plan.conversation_of_agent(agent.step)?;
        let conversation = self.signals.conversations.by_name.get(name)?;
        (conversation.agents.first() == Some(agent)).then_some((name, conversation))
    }

    /// Returns the reason for which a person's message would not be accepted; `None` if it would be kept.
    pub fn message_rejection(&self, id: &str, conversation: Option<&str>, content: &Value) -> Option<MessageRejection> {
        if self.signals.conversations.seen.contains(id) {
            return Some(MessageRejection::Repeated);
        }
        if self.end.ending.is_some() && !self.is_cleaning_up() {
            return Some(MessageRejection::Ended);
        }
        match self.plan.conversation(conversation).filter(|_| self.decide_version >= MESSAGES_SINCE) {
            Some(name) => self.message_refusal(name, content),
            None => Some(MessageRejection::Unknown),
        }
    }

    /// Returns the reason for which a conversation takes no such message.
    pub(crate) fn message_refusal(&self, conversation: &str, content: &Value) -> Option<MessageRejection> {
        let bytes = cbor::byte_count(content);
        let is_text = content.as_text().is_some_and(|text| !text.trim().is_empty());
        if !is_text || bytes > MESSAGE_BYTES_MAX {
            return Some(MessageRejection::Size);
        }
        if !self.may_read_messages(conversation) {
            return Some(MessageRejection::Ended);
        }
        let unread =
            self.signals.conversations.by_name.get(conversation).map_or(&[][..], |conversation| &conversation.unread);
        let unread_bytes: usize = unread.iter().map(|message| cbor::byte_count(&message.content)).sum();
        let takes_memory = self.counts.memory_bytes + value_size::of_value(content) > EXECUTION_MEMORY_BYTES_MAX;
        let is_full = unread.len() >= MESSAGES_KEPT_MAX || unread_bytes + bytes > MESSAGES_KEPT_BYTES_MAX;
        (is_full || takes_memory).then_some(MessageRejection::Full)
    }

    /// True if an agent of the conversation works or can still start. An agent in a running loop can.
    pub(crate) fn may_read_messages(&self, conversation: &str) -> bool {
        let plan = &self.plan;
        plan.agents_of_conversation(conversation).any(|step| {
            let outermost = plan.loops_around(step).last().unwrap_or(step);
            let is_reached = !self.is_cleaning_up() || plan.is_in_finally(step);
            is_reached && !self.step_status(&Instance::of_step(outermost)).is_final()
        })
    }

    /// Returns the messages that a model call carries if its first attempt starts now. Messages that arrived since the call
    /// was prepared are for the next one.
    pub(crate) fn messages_to_send(&self, model: &Instance) -> &[Message] {
        if self.plan.agent_part(model.step) != Some(AgentPart::Model) || self.decide_version < SENT_MESSAGES_SINCE {
            return &[];
        }
        let agent = model.agent(&self.plan);
        let conversation = agent.as_ref().and_then(|agent| self.conversation_of_agent(agent));
        let unread = conversation.map_or(&[][..], |(_, conversation)| &conversation.unread);
        let turns = agent.as_ref().and_then(|agent| self.blocks.loops.get(agent));
        let count = match self.steps.get(model) {
            _ if turns.is_none_or(|turns| turns.read_in == turns.begun) => 0,
            Some(step) if step.intent.is_some() => {
                let counted = step.input.get(MESSAGES_OF_CALL).and_then(Value::as_u64).unwrap_or_default();
                (counted as usize).min(unread.len())
            }
            _ => unread.len(),
        };
        &unread[..count]
    }

    /// Returns the number of steps that wait for an answer of a conversation.
    pub(crate) fn senders_that_wait(&self, conversation: &str) -> usize {
        let Some(conversation) = self.signals.conversations.by_name.get(conversation) else { return 0 };
        let unread = conversation.unread.iter().filter_map(|message| message.from.as_ref());
        let waits = |sender: &&Instance| self.step_status(sender) == Status::Waiting;
        unread.filter(waits).count() + conversation.awaiting.len()
    }

    /// True if an agent has messages to read in the conversation that it continues.
    pub(crate) fn has_unread_messages(&self, agent: &Instance) -> bool {
        self.conversation_of_agent(agent).is_some_and(|(_, conversation)| !conversation.unread.is_empty())
    }
}
