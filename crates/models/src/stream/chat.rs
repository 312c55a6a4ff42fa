//! The stream of Chat Completions: deltas of one message, and the usage at its end.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{Assembly, Growth, index, invalid, text};
use crate::{error::ModelError, provider::list};

/// A completion so far.
#[derive(Default)]
pub(super) struct Completion {
    has_choice: bool,
    model: String,
    content: String,
    refusal: String,
    calls: Vec<Call>,
    finish_reason: Value,
    usage: Value,
}

/// A tool call so far.
struct Call {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly for Completion {
    fn take(&mut self, data: &Value, growth: &mut Growth) -> Result<bool, ModelError> {
        if self.model.is_empty() {
            growth.extend_silent(&mut self.model, text(data, "model")?)?;
        }
        if let Some(usage) = data.get("usage").filter(|usage| **usage != Value::Null) {
            self.usage = usage.clone();
        }
        for choice in list(data, "choices") {
            // One answer is asked for.
            if index(choice)?.unwrap_or(0) == 0 {
                self.take_choice(choice, growth)?;
            }
        }
        Ok(false)
    }

    /// Some servers leave out the mark of the end. The usage follows the last part of the answer.
    fn may_end(&self) -> bool {
        self.finish_reason != Value::Null && self.usage != Value::Null
    }

    fn body(&mut self) -> Value {
        self.calls.sort_by_key(|call| call.index);
        let calls: Vec<Value> = self.calls.drain(..).map(Call::into_value).collect();
        let mut message = Map::new();
        message.insert("content".into(), std::mem::take(&mut self.content).into());
        message.insert("refusal".into(), std::mem::take(&mut self.refusal).into());
        message.insert("tool_calls".into(), calls.into());
        let choice =
            Value::map([("message", Value::Map(message)), ("finish_reason", std::mem::take(&mut self.finish_reason))]);
        let choices: Vec<Value> = Some(choice).filter(|_| self.has_choice).into_iter().collect();
        let mut body = Map::new();
        body.insert("choices".into(), choices.into());
        body.insert("usage".into(), std::mem::take(&mut self.usage));
        if !self.model.is_empty() {
            body.insert("model".into(), std::mem::take(&mut self.model).into());
        }
        Value::Map(body)
    }
}

impl Completion {
    fn take_choice(&mut self, choice: &Value, growth: &mut Growth) -> Result<(), ModelError> {
        self.has_choice = true;
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        let (content, refusal) = (text(delta, "content")?, text(delta, "refusal")?);
        let calls = list(delta, "tool_calls");
        let has_ended = self.finish_reason != Value::Null;
        if has_ended && !(content.is_empty() && refusal.is_empty() && calls.is_empty()) {
            return Err(invalid("the answer continues after its `finish_reason`"));
        }
        growth.say(&mut self.content, content)?;
        growth.extend(&mut self.refusal, refusal)?;
        for call in calls {
            self.take_call(call, growth)?;
        }
        if let Some(reason) = choice.get("finish_reason").filter(|reason| **reason != Value::Null) {
            self.finish_reason = reason.clone();
        }
        Ok(())
    }

    /// Reads a part of a tool call. Without an index, an id begins a new call, and the last one continues without both.
    fn take_call(&mut self, part: &Value, growth: &mut Growth) -> Result<(), ModelError> {
        let (id, function) = (text(part, "id")?, part.get("function").unwrap_or(&Value::Null));
        let wanted = index(part)?;
        let place = match wanted {
            Some(wanted) => self.calls.iter().position(|call| call.index == wanted),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| call.id == id),
        };
        let place = match place {
            Some(place) => place,
            None if wanted.is_none() && id.is_empty() => {
                return Err(invalid("a tool call has neither an index nor an id"));
            }
            None => {
                growth.add_part(&Value::Null)?;
                let next = self.calls.iter().map(|call| call.index.saturating_add(1)).max().unwrap_or(0);
                let (id, name, arguments) = (String::new(), String::new(), String::new());
                self.calls.push(Call { index: wanted.unwrap_or(next), id, name, arguments });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(place) else { return Ok(()) };
        for (known, more, part) in [(&mut call.id, id, "id"), (&mut call.name, text(function, "name")?, "name")] {
            match known.is_empty() {
                true => growth.extend(known, more)?,
                false if more.is_empty() || more == known => {}
                false => return Err(invalid(format!("tool call {} has two values of `{part}`", call.index))),
            }
        }
        match function.get("arguments") {
            // Some servers send arguments as they are, in one piece.
            Some(whole @ Value::Map(_)) => growth.extend(&mut call.arguments, &json::compact(whole)),
            _ => growth.extend(&mut call.arguments, text(function, "arguments")?),
        }
    }
}

impl Call {
    fn into_value(self) -> Value {
        let function = Value::map([("name", Value::from(self.name)), ("arguments", self.arguments.into())]);
        Value::map([("id", Value::from(self.id)), ("function", function)])
    }
}
