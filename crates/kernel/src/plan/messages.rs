//! Messages to conversations: which step sends to which conversation, and which agents continue it.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{Agent, Loop, Over, Plan, Work};
use crate::flow::literal;

/// The effect of a step that sends a message.
pub(crate) const MESSAGE_EFFECT: &str = "agent_message";

impl Plan {
    /// Returns the agent that a step is.
    pub fn agent(&self, step: u32) -> Option<&Agent> {
        match &self.step(step).work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => Some(agent),
            _ => None,
        }
    }

    /// Returns the conversation that an agent step continues; `None` for agents without one and for other steps.
    pub fn conversation_of_agent(&self, step: u32) -> Option<&str> {
        self.agent(step)?.conversation.as_deref()
    }

    /// Returns the agent steps of a conversation.
    pub fn agents_of_conversation<'p>(&'p self, name: &'p str) -> impl Iterator<Item = u32> + 'p {
        (0..self.steps.len() as u32).filter(move |step| self.conversation_of_agent(*step) == Some(name))
    }

    /// Returns the conversation of a name, or the only one if none is named.
    pub fn conversation(&self, name: Option<&str>) -> Option<&str> {
        let mut names = (0..self.steps.len() as u32).filter_map(|step| self.conversation_of_agent(step));
        match name {
            Some(name) => names.find(|known| *known == name),
            None => {
                let first = names.next()?;
                names.all(|other| other == first).then_some(first)
            }
        }
    }

    /// Returns the conversation to which a step sends a message. `None` for other steps, and in a plan without such a
    /// conversation, where `agent_message` is an effect like any other.
    pub fn conversation_of_message(&self, step: u32) -> Option<&str> {
        match &self.step(step).work {
            Work::Effect { effect, params } if effect == MESSAGE_EFFECT => {
                self.conversation(literal(params, "conversation"))
            }
            _ => None,
        }
    }

    /// Returns the steps that write to a conversation, by its name: its agents, and the messages to it.
    pub(crate) fn speakers(&self) -> BTreeMap<&str, Vec<u32>> {
        let steps = || 0..self.steps.len() as u32;
        let mut speakers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (name, agent) in steps().filter_map(|step| Some((self.conversation_of_agent(step)?, step))) {
            speakers.entry(name).or_default().push(agent);
        }
        let only = speakers.keys().copied().next().filter(|_| speakers.len() == 1);
        for step in steps() {
            let Work::Effect { effect, params } = &self.step(step).work else { continue };
            if effect == MESSAGE_EFFECT
                && let Some(name) = literal(params, "conversation").or(only)
                && let Some(of_conversation) = speakers.get_mut(name)
            {
                of_conversation.push(step);
            }
        }
        speakers
    }
}
