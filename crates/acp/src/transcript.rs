//! The answer and the tool calls of a session, from its updates (`session/update`).

use std::collections::VecDeque;

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use crate::limits::{
    ANSWER_BYTES_MAX, ID_BYTES_MAX, PERMISSION_BYTES_MAX, SHOWN_CALLS_MAX, TITLE_BYTES_MAX, TRACKED_CALLS_MAX,
};

/// The fields of a tool call that people see with a permission request.
pub(crate) const DETAILS: [&str; 3] = ["rawInput", "content", "locations"];

/// The parts of a session that matter to the step.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The message since the last tool call.
    text: String,
    is_too_large: bool,
    /// True if the next text begins another message.
    is_message_over: bool,
    /// The last tool calls, the oldest first.
    calls: VecDeque<ToolCall>,
    calls_count: u64,
    has_prompt: bool,
}

/// A tool call, as the agent describes it.
#[derive(Debug, Default)]
pub(crate) struct ToolCall {
    id: String,
    pub(crate) kind: Option<String>,
    pub(crate) title: String,
    status: String,
    /// Those of [`DETAILS`] that are small enough to be shown.
    pub(crate) details: Map,
}

impl Transcript {
    /// Takes the parameters of an update.
    pub(crate) fn update(&mut self, update: &Value) {
        match update.get("sessionUpdate").and_then(Value::as_text) {
            Some("agent_message_chunk") => {
                let text = update.get("content").and_then(|content| content.get("text")).and_then(Value::as_text);
                self.say(text.unwrap_or_default());
            }
            Some("user_message_chunk") => self.has_prompt = true,
            Some("tool_call" | "tool_call_update") => self.call(update),
            _ => {}
        }
    }

    fn say(&mut self, text: &str) {
        if self.is_message_over {
            self.text.clear();
            (self.is_message_over, self.is_too_large) = (false, false);
        }
        let room = ANSWER_BYTES_MAX - self.text.len();
        self.is_too_large |= text.len() > room;
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn call(&mut self, update: &Value) {
        self.is_message_over = true;
        let text = |key: &str| update.get(key).and_then(Value::as_text);
        let Some(id) = text("toolCallId").filter(|id| id.len() <= ID_BYTES_MAX) else { return };
        let place = match self.calls.iter().position(|call| call.id == id) {
            Some(place) => place,
            None => {
                self.calls_count += 1;
                if self.calls.len() == TRACKED_CALLS_MAX {
                    self.calls.pop_front();
                }
                self.calls.push_back(ToolCall { id: id.to_owned(), ..ToolCall::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(place) else { return };
        if let Some(kind) = text("kind") {
            call.kind = Some(cut(kind, ID_BYTES_MAX));
        }
        if let Some(title) = text("title") {
            call.title = cut(title, TITLE_BYTES_MAX);
        }
        if let Some(status) = text("status") {
            call.status = cut(status, ID_BYTES_MAX);
        }
        for key in DETAILS {
            match update.get(key) {
                None => {}
                Some(value) if json::compact(value).len() <= PERMISSION_BYTES_MAX => {
                    call.details.insert(key.into(), value.clone());
                }
                Some(_) => drop(call.details.insert(key.into(), "too large to be shown".into())),
            }
        }
    }

    /// Returns a tool call by its id.
    pub(crate) fn tool_call(&self, id: &str) -> Option<&ToolCall> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// True if a session that was loaded has a prompt.
    pub(crate) fn has_prompt(&self) -> bool {
        self.has_prompt
    }

    /// Forgets the answer of an earlier turn, which a session that is loaded repeats.
    pub(crate) fn begin_turn(&mut self) {
        self.text.clear();
        (self.is_message_over, self.is_too_large) = (false, false);
    }

    /// True if the answer is not whole.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns the output of the step.
    pub(crate) fn output(&self, stop_reason: &str, usage: Option<&Value>) -> Value {
        let mut counted: Map = usage.and_then(Value::as_map).cloned().unwrap_or_default();
        counted.retain(|_, count| count.as_u64().is_some());
        counted.insert("toolCalls".into(), self.calls_count.into());
        let shown = self.calls.iter().skip(self.calls.len().saturating_sub(SHOWN_CALLS_MAX));
        let calls = shown.map(|call| {
            let kind = call.kind.as_deref().unwrap_or("other");
            let title = cut(&call.title, TITLE_BYTES_MAX / 4);
            Value::map([("title", title.into()), ("kind", kind.into()), ("status", call.status.as_str().into())])
        });
        Value::map([
            ("text", self.text.as_str().into()),
            ("value", Value::Null),
            ("usage", counted.into()),
            ("turns", 1u64.into()),
            ("stopReason", stop_reason.into()),
            ("toolCalls", Value::List(calls.collect())),
        ])
    }
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(updates: &[&str]) -> Transcript {
        let mut transcript = Transcript::default();
        updates.iter().for_each(|update| transcript.update(&json::value(update.as_bytes()).unwrap()));
        transcript
    }

    fn chunk(text: &str) -> String {
        format!(r#"{{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": "{text}"}}}}"#)
    }

    #[test]
    fn the_answer_is_the_message_after_the_last_tool_call() {
        let call = r#"{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "kind": "execute"}"#;
        let done = r#"{"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}"#;
        let transcript = updated(&[&chunk("I look. "), call, done, &chunk("Two "), &chunk("files.")]);
        let output = json::canonical(&transcript.output("end_turn", None));
        assert!(output.contains(r#""text":"Two files.""#), "{output}");
        assert!(output.contains(r#""toolCalls":[{"kind":"execute","status":"completed","title":"ls"}]"#), "{output}");
    }

    #[test]
    fn texts_and_tool_calls_are_bounded() {
        let long = "ä".repeat(ANSWER_BYTES_MAX / 2);
        let transcript = updated(&[&chunk(&long), &chunk("x")]);
        assert!(transcript.is_too_large());
        assert_eq!(transcript.text.len(), ANSWER_BYTES_MAX);
        let mut transcript = Transcript::default();
        for number in 0..2 * TRACKED_CALLS_MAX {
            let call = format!(r#"{{"sessionUpdate": "tool_call", "toolCallId": "{number}", "title": "{long}"}}"#);
            transcript.update(&json::value(call.as_bytes()).unwrap());
        }
        assert_eq!(transcript.calls.len(), TRACKED_CALLS_MAX);
        assert!(json::compact(&transcript.output("end_turn", None)).len() < ANSWER_BYTES_MAX);
    }
}
