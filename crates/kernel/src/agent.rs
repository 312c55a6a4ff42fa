//! The conversation of an agent: its turns as values, and the final answer read from a model's text.
//!
//! A turn is `{answer, results, rejected}`: the output of the model call, the results of its tool calls in their order,
//! and what is wrong with a final answer. The turns are folded from the receipts in the journal; a request refers to them
//! by the hash of all turns before it, so the journal grows with the conversation and not with its square.

use alloc::{format, string::String, vec::Vec};

use crate::{
    cbor,
    hash::Hash,
    instance::{Instance, Scope},
    json,
    limits::AGENT_TOOL_TOKENS,
    plan::Agent,
    state::{Message, State},
    value::{Map, Value},
};

mod read;

pub use read::{NoAnswer, read_answer};

/// The stop reason of an interrupted model call.
const INTERRUPTED: &str = "interrupted";

/// Returns the tool calls of an answer; none if it asks for none.
pub(crate) fn tool_calls(answer: &Value) -> &[Value] {
    answer.get("toolCalls").and_then(Value::as_list).unwrap_or_default()
}

/// Returns the text of an answer. An answer without `text` is its own text, so that a scripted effect may return a plain
/// value.
pub(crate) fn text_of(answer: &Value) -> String {
    let text = answer.get("text").or_else(|| answer.as_text().is_some().then_some(answer));
    match text.and_then(Value::as_text) {
        Some(text) => text.into(),
        None if answer.get("toolCalls").is_some() || *answer == Value::Null => String::new(),
        None => json::compact(answer),
    }
}

/// Returns the hash of a conversation that has become one turn longer.
pub(crate) fn extended(conversation: &Hash, part: &Value) -> Hash {
    Hash::of_parts(&[&conversation.0, &cbor::encode(part)])
}

/// Returns the number of turns whose answer was rejected.
pub(crate) fn rejections(turns: &[Value]) -> usize {
    turns.iter().filter(|turn| turn.get("rejected").is_some()).count()
}

/// Returns the output of an agent from its turns: `{text, value, usage, turns, stopReason}`.
pub(crate) fn output(turns: &[Value], value: Value) -> Value {
    let null = Value::Null;
    let answer = turns.last().and_then(|turn| turn.get("answer")).unwrap_or(&null);
    let stop_reason = answer.get("stopReason").and_then(Value::as_text).unwrap_or("end");
    Value::map([
        ("text", text_of(answer).into()),
        ("value", value),
        ("usage", usage(turns)),
        ("turns", (turns.len() as u64).into()),
        ("stopReason", stop_reason.into()),
    ])
}

/// Adds up the numbers in the `usage` of all answers.
fn usage(turns: &[Value]) -> Value {
    let mut sums = Map::new();
    let of_turns = turns.iter().filter_map(|turn| turn.get("answer")?.get("usage")?.as_map());
    for (key, tokens) in of_turns.flatten() {
        let Some(tokens) = tokens.as_u64() else { continue };
        let sum = sums.get(key).and_then(Value::as_u64).unwrap_or_default();
        sums.insert(key.clone(), sum.saturating_add(tokens).into());
    }
    Value::Map(sums)
}

/// Estimates the tokens of a value from above. A token of prose has four bytes, one of data two or three.
pub fn tokens_of(value: &Value) -> u64 {
    cbor::byte_count(value) as u64 / 2 + 1
}

/// Estimates the tokens of the next request of a conversation. The provider has counted the last one, so only the tool
/// results and messages after it are estimated. `before` are the tokens of what was said before the first turn. Counts above
/// `plausible` are ignored.
pub(crate) fn input_estimate(settings: &Value, before: u64, turns: &[Value], agent: &Agent, plausible: u64) -> u64 {
    let last = turns.last();
    let is_plausible = |tokens: &u64| (1..=plausible).contains(tokens);
    let counted = |key: &str| last?.get("answer")?.get("usage")?.get(key)?.as_u64().filter(is_plausible);
    let of = |part: Option<&Value>| part.map_or(0, tokens_of);
    match counted("inputTokens") {
        Some(input) => {
            let news: u64 =
                ["results", "rejected", "messages"].map(|key| of(last.and_then(|turn| turn.get(key)))).iter().sum();
            input.saturating_add(counted("outputTokens").unwrap_or_default()).saturating_add(news)
        }
        None => {
            let tools = agent.tools.len() as u64 * AGENT_TOOL_TOKENS;
            let said = before + turns.iter().map(tokens_of).sum::<u64>();
            tokens_of(settings) + of(agent.answer_schema.as_ref()) + tools + said
        }
    }
}

/// Returns the part of a conversation that an agent has said.
pub(crate) fn past_part(settings: &Value, opening: &[Value], turns: &[Value]) -> Value {
    let said = ["goal", "context"].into_iter().filter_map(|key| Some((key, settings.get(key)?.clone())));
    let messages = (!opening.is_empty()).then(|| ("messages", opening.to_vec().into()));
    Value::map(said.chain(messages).chain([("turns", to_value(turns))]))
}

/// Returns the texts of messages as a part of a conversation.
pub(crate) fn contents(messages: &[Message]) -> Value {
    messages.iter().map(|message| message.content.clone()).collect::<Vec<_>>().into()
}

/// The answer of a model call that a message has interrupted.
pub(crate) fn interrupted_answer() -> Value {
    let calls = Value::from(Vec::new());
    Value::map([("text", "".into()), ("toolCalls", calls), ("stopReason", INTERRUPTED.into())])
}

/// True if a message has interrupted the call of an answer.
pub(crate) fn is_interrupted(answer: &Value) -> bool {
    answer.get("stopReason").and_then(Value::as_text) == Some(INTERRUPTED)
}

/// Returns the message by which an answer is rejected.
pub(crate) fn rejection(why: &str) -> String {
    format!(
        "The answer is not accepted: {why}. Answer again, with one JSON value that matches the schema and nothing else."
    )
}

/// Returns the turns as a value for a request.
pub(crate) fn to_value(turns: &[Value]) -> Value {
    turns.to_vec().into()
}

/// Returns the turn that has ended, from the steps in its block.
pub(crate) fn ended_turn(state: &State, scope: &Scope) -> Value {
    let Some(steps) = state.plan.agent_steps(scope.block) else { return Value::Null };
    let answer = state.steps.get(&scope.instance(steps.model)).map(|model| model.output.clone()).unwrap_or_default();
    let calls = scope.instance(steps.calls);
    let results = (0..tool_calls(&answer).len() as u32).map(|place| {
        let call = Instance { step: steps.call, rounds: calls.round(place) };
        let step = state.steps.get(&call);
        match step.and_then(|step| step.failure.as_ref()) {
            Some(failure) => Value::map([(
                "error",
                Value::map([("code", failure.code.as_str().into()), ("message", failure.message.as_str().into())]),
            )]),
            None => Value::map([("output", step.map(|step| step.output.clone()).unwrap_or_default())]),
        }
    });
    let results: Vec<Value> = results.collect();
    Value::map([("answer", answer), ("results", results.into())])
}
