//! Updates conversations when an agent of one starts or ends, and when a message is kept or read.

use alloc::{borrow::ToOwned, vec::Vec};

use super::{known, size};
use crate::{
    agent::{extended, past_part},
    cbor,
    decide_version::MESSAGES_SINCE,
    instance::Instance,
    record::Record,
    state::{Conversation, Message, State, Status, StepState},
    value::Value,
    value_size,
};

/// Returns a conversation of the plan, and opens it if it is not open.
fn opened<'s>(state: &'s mut State, name: &str) -> &'s mut Conversation {
    if !state.signals.conversations.by_name.contains_key(name) {
        state.counts.memory_bytes += size::of_conversation(name);
    }
    state.signals.conversations.by_name.entry(name.to_owned()).or_default()
}

/// Adds an agent to its conversation. If no other one has it, the agent continues it at once.
pub(super) fn begin_step(state: &mut State, instance: &Instance) {
    let plan = state.plan.clone();
    let Some(name) = plan.conversation_of_agent(instance.step) else { return };
    let conversation = opened(state, name);
    conversation.agents.push(instance.clone());
    hand_over(state, name);
}

/// Lets the first agent of a conversation continue from the previous messages.
fn hand_over(state: &mut State, name: &str) {
    let Some(conversation) = state.signals.conversations.by_name.get(name) else { return };
    let Some(agent) = conversation.agents.first().and_then(|agent| state.blocks.loops.get_mut(agent)) else { return };
    if agent.begun == 0 && agent.opening.is_empty() {
        agent.conversation = conversation.hash;
    }
}

/// Removes an ended agent from its conversation, which its turns become a part of if it has completed. An ended sender
/// waits for no answer.
pub(super) fn end_step(state: &mut State, instance: &Instance, step: &StepState) {
    let plan = state.plan.clone();
    if let Some(name) = plan.conversation_of_message(instance.step) {
        if let Some(conversation) = state.signals.conversations.by_name.get_mut(name) {
            conversation.awaiting.retain(|sender| sender != instance);
        }
        return;
    }
    let Some(name) = plan.conversation_of_agent(instance.step) else { return };
    let is_current = state.conversation_of_agent(instance).is_some();
    let turns = state.blocks.loops.get(instance).filter(|_| is_current && step.status == Status::Completed);
    let part = turns.map(|turns| past_part(&step.input, &turns.opening, &turns.outputs));
    let Some(conversation) = state.signals.conversations.by_name.get_mut(name) else { return };
    conversation.agents.retain(|agent| agent != instance);
    if let Some(part) = part {
        conversation.hash = extended(&conversation.hash, &part);
        conversation.past_bytes += cbor::byte_count(&part) as u64;
        state.counts.memory_bytes += value_size::of_value(&part);
        conversation.past.push(part);
    }
    hand_over(state, name);
}

/// Keeps a message until an agent reads it.
pub(super) fn keep(state: &mut State, record: &Record) -> Result<(), &'static str> {
    let Record::MessageKept { conversation, from, id, content, .. } = record else { return Err("here") };
    let plan = state.plan.clone();
    if state.decide_version < MESSAGES_SINCE || plan.conversation(Some(conversation)).is_none() {
        return Err("where no conversation is");
    }
    let content = known(state, content);
    let message = Message { content, from: from.clone() };
    if from.is_none() && state.signals.conversations.seen.insert(id.clone()) {
        state.counts.memory_bytes += value_size::of_identity(id);
    }
    state.counts.memory_bytes += size::of_message(&message);
    opened(state, conversation).unread.push(message);
    Ok(())
}

/// Moves messages to the turn of an agent that starts next.
pub(super) fn read(state: &mut State, instance: &Instance, count: usize) {
    let plan = state.plan.clone();
    let Some(name) = plan.conversation_of_agent(instance.step) else { return };
    let Some(conversation) = state.signals.conversations.by_name.get_mut(name) else { return };
    let read: Vec<Message> = conversation.unread.drain(..count).collect();
    let senders = read.iter().filter_map(|message| message.from.as_ref());
    let waits = |sender: &&Instance| state.steps.get(*sender).is_some_and(|step| step.status == Status::Waiting);
    conversation.awaiting.extend(senders.filter(waits).cloned());
    state.counts.memory_bytes -= read.iter().map(size::of_message).sum::<u64>();
    let contents: Vec<Value> = read.into_iter().map(|message| message.content).collect();
    let Some(turns) = state.blocks.loops.get_mut(instance) else { return };
    let added = Value::from(contents.clone());
    turns.read_in = turns.begun;
    turns.conversation = extended(&turns.conversation, &added);
    turns.output_bytes += cbor::byte_count(&added) as u64;
    let memory_bytes = match turns.outputs.last_mut() {
        None => {
            let bytes = contents.iter().map(value_size::of_value).sum();
            turns.opening.extend(contents);
            bytes
        }
        Some(last) => {
            let before = value_size::of_value(last);
            if let Value::Map(turn) = last {
                turn.insert("messages".into(), added);
            }
            value_size::of_value(last) - before
        }
    };
    turns.memory_bytes += memory_bytes;
    state.counts.memory_bytes += memory_bytes;
}
