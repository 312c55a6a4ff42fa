//! Reads `agent_message` steps, and the names of conversations.

use alloc::{
    collections::BTreeSet,
    format,
    string::{String, ToString},
};

use super::{
    fields::Fields,
    outline::Outline,
    references::Reader,
    report::named,
    step_work::{effect, literal},
    suggest::nearest::known_here,
};
use crate::{
    diagnostic,
    limits::{AWAIT_MAX_MS, AWAIT_MIN_MS},
    plan::Work,
    value::Value,
};

/// Returns the names of the conversations in a definition.
pub(super) fn conversations<'o>(outline: &'o Outline<'_>) -> BTreeSet<&'o str> {
    let agents = outline.entries.iter().filter(|entry| entry.kind.is_some_and(|kind| kind.name == "agent"));
    agents.filter_map(|entry| entry.fields.get("conversation").and_then(Value::as_text)).collect()
}

impl Reader<'_, '_> {
    /// Reads the name of the conversation that an agent continues.
    pub(super) fn conversation_name(&mut self, fields: &Fields<'_>) -> Option<String> {
        self.shared_name(fields, "conversation").map(ToString::to_string)
    }

    pub(super) fn agent_message(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let content = self.one_text(fields, ["content", "message", "goal"], "say what the message is");
        let interrupt = self.report.bool(fields, "interrupt").map(literal);
        let await_response = self.report.bool(fields, "await_response").map(literal);
        let await_timeout_ms = self.report.whole(fields, "await_timeout_ms", AWAIT_MIN_MS..=AWAIT_MAX_MS).map(literal);
        let conversation = self.receiver(fields);
        let params = [
            ("content", Some(content?)),
            ("conversation", conversation.map(literal)),
            ("interrupt", interrupt),
            ("await_response", await_response),
            ("await_timeout_ms", await_timeout_ms),
        ];
        Some(effect("agent_message", params))
    }

    /// Reads the conversation of a message. It can stay out if there is one at most.
    fn receiver(&mut self, fields: &Fields<'_>) -> Option<String> {
        let name = self.conversation_name(fields);
        let known = conversations(self.outline);
        let path = fields.path.key("conversation");
        match &name {
            Some(name) if !known.contains(name.as_str()) => {
                let message = format!("no `agent` step has the conversation {}", named(name));
                let help = match self.report.nearest_name(name, known.iter().copied()) {
                    Some(meant) => format!("write {}", named(meant)),
                    None if known.is_empty() => {
                        format!("write `conversation: {name}` at the agent that gets the message")
                    }
                    None => known_here(known.iter().copied()),
                };
                self.report.error(diagnostic::WRONG_VALUE, &path, message, help);
            }
            None if known.len() > 1 && !fields.has("conversation") => {
                self.report.missing(fields, "conversation", known_here(known.iter().copied()));
            }
            _ => {}
        }
        name
    }
}
