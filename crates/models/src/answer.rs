//! The answer of a model without the form of a provider.

use mainspring_kernel::value::{Map, Value};

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The text, without the texts of tool calls and reasoning.
    pub text: String,
    /// The tool calls that the model requests, in its order.
    pub tool_calls: Vec<ToolCall>,
    /// The reason for the end of the answer.
    pub stop_reason: StopReason,
    /// The tokens that the call took.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The provider's own form of the answer. Present only if it holds parts that the next request has to repeat
    /// unchanged, such as signed reasoning.
    pub raw: Option<Value>,
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id by which the result refers to the call.
    pub id: String,
    /// The full name of the tool, as the step lists it. The model may have made it up.
    pub name: String,
    /// The arguments. Text if they are not JSON.
    pub arguments: Value,
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopReason {
    /// The model has finished.
    #[default]
    End,
    /// The model waits for the results of tool calls.
    ToolCalls,
    /// The answer reached the bound on its tokens.
    MaxTokens,
}

impl StopReason {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::ToolCalls => "tool_calls",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// The tokens that a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the request, those from the provider's cache included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// The tokens of the request that came from the provider's cache.
    pub cached_input_tokens: u64,
}

impl Usage {
    /// Returns `{inputTokens, outputTokens, cachedInputTokens}`.
    pub fn to_value(self) -> Value {
        Value::map([
            ("inputTokens", self.input_tokens.into()),
            ("outputTokens", self.output_tokens.into()),
            ("cachedInputTokens", self.cached_input_tokens.into()),
        ])
    }
}

impl Answer {
    /// Returns `{text, toolCalls, stopReason, usage, model, raw}`, without the absent ones.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("text".into(), self.text.as_str().into());
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(|call| {
                Value::map([
                    ("id", call.id.as_str().into()),
                    ("name", call.name.as_str().into()),
                    ("arguments", call.arguments.clone()),
                ])
            });
            map.insert("toolCalls".into(), calls.collect::<Vec<_>>().into());
        }
        map.insert("stopReason".into(), self.stop_reason.name().into());
        map.insert("usage".into(), self.usage.to_value());
        if let Some(model) = &self.model {
            map.insert("model".into(), model.as_str().into());
        }
        if let Some(raw) = &self.raw {
            map.insert("raw".into(), raw.clone());
        }
        Value::Map(map)
    }

    /// Returns the output of an `agent` step that is one call: `{text, value, usage, turns, stopReason}`.
    pub fn to_output(&self) -> Value {
        Value::map([
            ("text", self.text.as_str().into()),
            ("value", Value::Null),
            ("usage", self.usage.to_value()),
            ("turns", 1u32.into()),
            ("stopReason", self.stop_reason.name().into()),
        ])
    }
}
