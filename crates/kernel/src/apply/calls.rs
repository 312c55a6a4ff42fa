//! Pinned tools, and calls that continue in a tool server.

use alloc::string::String;

use crate::{
    effect::PinnedTool,
    instance::Instance,
    plan::Decision,
    record::Purpose,
    state::{State, StepState},
    value::Value,
};

use super::size;

/// Keeps the digests of tools. The first digest of a name counts.
pub(super) fn pin(state: &mut State, tools: &[PinnedTool]) {
    for PinnedTool { name, digest } in tools {
        if !state.journal.pinned_tools.contains_key(name) {
            state.counts.memory_bytes += size::of_pin(name);
            state.journal.pinned_tools.insert(name.clone(), *digest);
        }
    }
}

/// True if the attempt is the last one of its step, and either runs or has asked people to fill in a form.
pub(super) fn may_continue(state: &State, instance: &Instance, attempt: u32) -> bool {
    let Some(step) = state.steps.get(instance).filter(|step| step.attempt == attempt) else { return false };
    let has_asked = step.gate.as_ref().is_some_and(|gate| gate.purpose == Purpose::Form && !gate.is_open);
    state.open.attempts.contains(instance) || has_asked
}

pub(super) fn proceed(step: &mut StepState, handle: Value) {
    step.call.handle = handle;
    step.call.answer = Value::Null;
    step.call.reports = step.call.reports.saturating_add(1);
}

/// Begins an attempt. After an interruption, the answer that may have been lost is kept.
pub(super) fn begin(step: &mut StepState) {
    let was_interrupted = step.failure.as_ref().is_some_and(|failure| failure.code == "interrupted");
    let call = core::mem::take(&mut step.call);
    if was_interrupted && call.answer != Value::Null {
        step.call.carried = call.answered;
    }
    step.times.asked_at = None;
}

/// Continues an attempt. The time that it spent waiting for a person does not count as its own. Without such a wait it has
/// reported tools, which counts as a report.
pub(super) fn resume(step: &mut StepState, timeout_at: Option<u64>, now: u64) {
    let asked_at = step.times.asked_at.take();
    step.call.reports = step.call.reports.saturating_add(u32::from(asked_at.is_none()));
    let waited_ms = asked_at.map_or(0, |asked_at| now.saturating_sub(asked_at));
    step.times.handed_out_at = step.times.handed_out_at.saturating_add(waited_ms);
    step.times.timeout_at = timeout_at;
}

/// Keeps the decision at the gate of a form as the answer for the tool server.
pub(super) fn answer(step: &mut StepState, decision: Decision, by: Option<&str>, reason: &Value) {
    let Some(gate) = step.gate.as_ref().filter(|gate| gate.purpose == Purpose::Form) else { return };
    if step.call.carried.get("question") == Some(&gate.items) {
        step.call.carried = Value::Null;
    }
    step.call.answered = match by {
        Some(by) => Value::map([
            ("question", gate.items.clone()),
            ("decision", decision.name().into()),
            ("by", by.into()),
            ("reason", reason.clone()),
        ]),
        None => Value::Null,
    };
    let action = |action: &str| Value::map([("action", Value::Text(String::from(action)))]);
    let says_cancel = reason.get("action").and_then(Value::as_text) == Some("cancel");
    step.call.answer = match decision {
        Decision::Approve => {
            Value::map([("action", "accept".into()), ("content", reason.get("content").cloned().unwrap_or_default())])
        }
        Decision::Deny if by.is_none() || says_cancel => action("cancel"),
        Decision::Deny => action("decline"),
    };
}
