//! One execution within a thousand tokens, for programs that pay for each token that they read.

use std::collections::BTreeMap;

use mainspring_kernel::{
    history::AttemptHistory,
    json::compact,
    state::Status,
    value::{Map, Value},
};

use super::{
    execution_view::ExecutionView,
    text::{counted, one_line, shown},
};

/// Maximum characters of the output, of a message, and number of listed failures and gates. Their sum stays below the
/// bound that the help of `show --brief` names.
const OUTPUT_CHARS_MAX: usize = 900;
const MESSAGE_CHARS_MAX: usize = 160;
const NAME_CHARS_MAX: usize = 60;
const LISTED_MAX: usize = 4;

/// Returns the summary as JSON.
pub(crate) fn value(view: &ExecutionView) -> Value {
    let summary = &view.summary;
    let failures: Vec<Value> = failed(view).take(LISTED_MAX).map(failure).collect();
    let gates = summary.gates.iter().take(LISTED_MAX).map(|gate| {
        let prompt = cut(&gate.prompt, MESSAGE_CHARS_MAX);
        Value::map([("step", cut(&gate.path, NAME_CHARS_MAX).into()), ("prompt", prompt.into())])
    });
    let counts: Map = counts(view).into_iter().map(|(status, count)| (status.into(), count.into())).collect();
    let text = |key: &str| summary.error.get(key).and_then(Value::as_text);
    Value::map([
        ("executionId", cut(&summary.id, NAME_CHARS_MAX).into()),
        ("workflow", cut(&view.name, NAME_CHARS_MAX).into()),
        ("status", summary.status.as_str().into()),
        ("withFailures", summary.with_failures.into()),
        ("durationMs", summary.took_ms.into()),
        ("attempts", counts.into()),
        ("error", text("message").map(|message| cut(message, MESSAGE_CHARS_MAX)).into()),
        ("errorCode", text("code").map(|code| cut(code, NAME_CHARS_MAX)).into()),
        ("failures", failures.into()),
        ("failureCount", (failed(view).count() as u64).into()),
        ("approvals", gates.collect::<Vec<_>>().into()),
        ("output", output(&summary.output).into()),
    ])
}

/// Returns the summary as lines of text.
pub(crate) fn text(view: &ExecutionView) -> String {
    let summary = &view.summary;
    let note = if summary.with_failures { " with tolerated failures" } else { "" };
    let name = cut(&view.name, NAME_CHARS_MAX);
    let id = cut(&summary.id, NAME_CHARS_MAX);
    let mut lines = vec![format!("{name} {id}: {}{note} after {} ms", summary.status, summary.took_ms)];
    let counts: Vec<String> = counts(view).into_iter().map(|(status, count)| format!("{count} {status}")).collect();
    lines.push(format!("attempts: {}", if counts.is_empty() { "none".into() } else { counts.join(", ") }));
    if let Some(message) = summary.error.get("message").and_then(Value::as_text) {
        let code = summary.error.get("code").and_then(Value::as_text).unwrap_or_default();
        lines.push(format!("error: {} {}", cut(code, NAME_CHARS_MAX), cut(&one_line(message), MESSAGE_CHARS_MAX)));
    }
    for attempt in failed(view).take(LISTED_MAX) {
        let words = attempt.failure.as_ref().map(|failure| format!("{}: {}", failure.code, failure.message));
        let words = cut(&one_line(&words.unwrap_or_default()), MESSAGE_CHARS_MAX);
        lines.push(format!("failed: {} #{} {words}", cut(&attempt.step, NAME_CHARS_MAX), attempt.attempt));
    }
    let more = failed(view).count().saturating_sub(LISTED_MAX);
    if more > 0 {
        lines.push(format!("failed: {}", counted(more as u64, "more attempt", "more attempts")));
    }
    for gate in summary.gates.iter().take(LISTED_MAX) {
        let (path, prompt) = (cut(&gate.path, NAME_CHARS_MAX), cut(&one_line(&gate.prompt), MESSAGE_CHARS_MAX));
        lines.push(format!("waits: {path}: {prompt} (mainspring approve {id} --step {path})"));
    }
    if summary.output != Value::Null {
        lines.push(format!("output: {}", output(&summary.output)));
    }
    lines.join("\n")
}

fn failed(view: &ExecutionView) -> impl Iterator<Item = &AttemptHistory> {
    view.attempts.iter().filter(|attempt| attempt.status == Status::Failed)
}

fn failure(attempt: &AttemptHistory) -> Value {
    let failure = attempt.failure.as_ref();
    Value::map([
        ("step", cut(&attempt.step, NAME_CHARS_MAX).into()),
        ("attempt", attempt.attempt.into()),
        ("code", failure.map(|failure| cut(&failure.code, NAME_CHARS_MAX)).into()),
        ("message", failure.map(|failure| cut(&failure.message, MESSAGE_CHARS_MAX)).into()),
    ])
}

fn counts(view: &ExecutionView) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for attempt in &view.attempts {
        *counts.entry(attempt.status.name()).or_default() += 1;
    }
    counts
}

fn output(output: &Value) -> String {
    cut(&compact(output), OUTPUT_CHARS_MAX)
}

/// Escapes a text, shortens it to a number of characters, and adds the number of omitted ones.
fn cut(text: &str, chars_max: usize) -> String {
    let text = shown(text);
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
        None => text,
    }
}
