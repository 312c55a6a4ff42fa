//! The stream of Gemini: each event is a response with the next parts of the answer.

use mainspring_kernel::value::{Map, Value};

use super::{Assembly, Growth, text};
use crate::{error::ModelError, provider::list};

/// An answer so far.
#[derive(Default)]
pub(super) struct Content {
    has_candidate: bool,
    parts: Vec<Value>,
    finish_reason: Value,
    /// The other fields, each as it was sent last.
    fields: Map,
}

/// The fields of a response beside its candidates.
const FIELDS: [&str; 3] = ["modelVersion", "promptFeedback", "usageMetadata"];

impl Assembly for Content {
    fn take(&mut self, data: &Value, growth: &mut Growth) -> Result<bool, ModelError> {
        for field in FIELDS {
            if let Some(value) = data.get(field).filter(|value| **value != Value::Null) {
                self.fields.insert(field.into(), value.clone());
            }
        }
        if let Some(candidate) = list(data, "candidates").first() {
            self.has_candidate = true;
            for part in candidate.get("content").map(|content| list(content, "parts")).unwrap_or_default() {
                self.take_part(part, growth)?;
            }
            if let Some(reason) = candidate.get("finishReason").filter(|reason| **reason != Value::Null) {
                self.finish_reason = reason.clone();
            }
        }
        Ok(false)
    }

    /// The provider marks no end beside the reason of it.
    fn may_end(&self) -> bool {
        self.finish_reason != Value::Null || !self.has_candidate && self.fields.contains_key("promptFeedback")
    }

    fn body(&mut self) -> Value {
        let content = Value::map([("parts", Value::from(std::mem::take(&mut self.parts)))]);
        let candidate = Value::map([("content", content), ("finishReason", std::mem::take(&mut self.finish_reason))]);
        let mut body = std::mem::take(&mut self.fields);
        if self.has_candidate {
            body.insert("candidates".into(), vec![candidate].into());
        }
        Value::Map(body)
    }
}

impl Content {
    /// Adds a part. Plain texts of the same kind that follow each other are one part; a part with a signature stays by
    /// itself, since the next request has to repeat it.
    fn take_part(&mut self, part: &Value, growth: &mut Growth) -> Result<(), ModelError> {
        let is_thought = |part: &Value| part.get("thought").and_then(Value::as_bool) == Some(true);
        let is_plain =
            |part: &Value| part.as_map().is_some_and(|map| map.keys().all(|key| key == "text" || key == "thought"));
        let more = text(part, "text")?;
        if is_plain(part) && more.is_empty() {
            return Ok(());
        }
        if !is_thought(part) {
            growth.text.push_str(more);
        }
        let joins = |last: &&mut Value| is_plain(last) && is_plain(part) && is_thought(last) == is_thought(part);
        if let Some(Value::Map(last)) = self.parts.last_mut().filter(joins)
            && let Some(Value::Text(text)) = last.get_mut("text")
        {
            return growth.extend(text, more);
        }
        growth.add_part(part)?;
        self.parts.push(part.clone());
        Ok(())
    }
}
