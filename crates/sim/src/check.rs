//! Compares the result of a run with the expectations: one sentence for each difference.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    failure::Failure,
    history::{AttemptHistory, History},
    input::Input,
    instance::Instance,
    json,
    plan::Plan,
    record::{Ending, Purpose, Record},
    state::{ExecutionStatus, GateState, State, Status},
    value::Value,
};
use similar::TextDiff;

use crate::{
    fixture::instance,
    near::meant,
    run::Finished,
    scenario::{CallExpect, End, Expect, StepExpect, duration_text},
    world::Made,
};

/// Returns all differences, in the order in which a scenario writes its expectations.
pub(crate) fn differences(expect: &Expect, finished: &Finished) -> Vec<String> {
    let mut found = Vec::new();
    check_end(expect, finished, &mut found);
    check_output(expect, finished, &mut found);
    let steps = Steps::of(finished);
    for (name, step) in &expect.steps {
        check_step(name, step, (finished, &steps), &mut found);
    }
    check_absent(expect, (finished, &steps), &mut found);
    check_calls(expect, finished, &mut found);
    check_times(expect, finished, &mut found);
    found
}

/// The last attempt of each step instance, including rounds that the state has dropped.
struct Steps(BTreeMap<String, AttemptHistory>);

impl Steps {
    fn of(finished: &Finished) -> Self {
        let mut history = History::default();
        finished.frames.iter().for_each(|frame| history.add(&finished.plan, frame));
        Self(history.attempts.into_iter().map(|attempt| (attempt.step.clone(), attempt)).collect())
    }

    fn status(&self, state: &State, instance: &Instance) -> Status {
        let dropped = self.0.get(&instance.name(&state.plan)).filter(|_| !state.steps.contains_key(instance));
        dropped.map_or_else(|| state.step_status(instance), |attempt| attempt.status)
    }
}

/// Returns expected texts that are missing in the diagnostics of a definition, or in the warnings of an accepted one.
pub(crate) fn missing_words(words: &[String], text: &str) -> Vec<String> {
    let missing = words.iter().filter(|word| !text.contains(word.as_str()));
    missing.map(|word| format!("{word:?} does not appear in the diagnostics:\n{}", indented(text))).collect()
}

fn check_end(expect: &Expect, finished: &Finished, found: &mut Vec<String>) {
    let state = &finished.state;
    let is_anybody_asked = state.open_gates().next().is_some() || !state.open.held_children.is_empty();
    let end = End::of(state.status(), is_anybody_asked);
    let error = error_words(state);
    if let Some(expected) = expect.status.filter(|expected| *expected != end) {
        let because = error.clone().or_else(|| waits_at(state)).map(|why| format!(" ({why})")).unwrap_or_default();
        found.push(format!("status is {}{because}, expected {}", end.name(), expected.name()));
        found.extend(class_help(state));
        if error.as_ref().is_some_and(|error| error.contains("budget_price_missing")) {
            let table = "{date: 2026-11-01, currency: USD, models: {NAME: {input: 3, output: 15}}}";
            found.push(format!("write `prices: {table}` in the case: a test does not read the settings"));
        }
    }
    let outcome = (state.status() == ExecutionStatus::Completed && state.end.with_failures).then_some("with_failures");
    if let Some(expected) = expect.outcome.as_ref().filter(|expected| expected.as_deref() != outcome) {
        let word = |outcome: Option<&str>| outcome.unwrap_or("null").to_string();
        found.push(format!("outcome is {}, expected {}", word(outcome), word(expected.as_deref())));
    }
    for word in &expect.error_contains {
        match &error {
            Some(error) if error.contains(word.as_str()) => {}
            Some(error) => found.push(format!("the error does not contain {word:?}: {error}")),
            None => found.push(format!("there is no error, and {word:?} was expected in it")),
        }
    }
}

/// Returns the steps whose gates are open.
fn waits_at(state: &State) -> Option<String> {
    let name = |(instance, gate): (&Instance, &GateState)| {
        let why = unclassified(gate).map(|tool| format!(": {tool} has no class")).unwrap_or_default();
        format!("{}{why}", instance.name(&state.plan))
    };
    let names: Vec<String> = state.open_gates().map(name).collect();
    (!names.is_empty()).then(|| format!("waits at {}", names.join(", ")))
}

/// Returns the tool whose call waits only because no rule classifies it.
fn unclassified(gate: &GateState) -> Option<&str> {
    let is_assumed = gate.purpose == Purpose::Call && gate.prompt.contains("no rule classifies the tool");
    gate.items.get("input")?.get("tool")?.as_text().filter(|_| is_assumed)
}

/// Returns the line for a case whose calls wait because their tools have no class.
fn class_help(state: &State) -> Option<String> {
    let tools: BTreeSet<&str> = state.open_gates().filter_map(|(_, gate)| unclassified(gate)).collect();
    let classes: Vec<String> = tools.iter().map(|tool| format!("{tool:?}: read")).collect();
    let help = "with the class that each has: a test does not read the settings";
    (!classes.is_empty()).then(|| format!("write `classes: {{{}}}` in the case, {help}", classes.join(", ")))
}

fn check_output(expect: &Expect, finished: &Finished, found: &mut Vec<String>) {
    let output = finished.state.output().cloned().unwrap_or_default();
    if let Some(expected) = expect.output.as_ref().filter(|expected| **expected != output) {
        found.push(format!("the output is another one:\n{}", diff(expected, &output)));
    }
    if let Some(expected) = expect.output_contains.as_ref().filter(|expected| !contains(&output, expected)) {
        found.push(format!("the output does not contain what was expected of it:\n{}", diff(expected, &output)));
    }
}

fn check_step(name: &str, expect: &StepExpect, (finished, steps): (&Finished, &Steps), found: &mut Vec<String>) {
    let state = &finished.state;
    let Some(instance) = instance(&finished.plan, name) else {
        return found.push(format!("the workflow has no step `{name}`{}", meant(&finished.plan, name)));
    };
    let step = steps.0.get(&instance.name(&finished.plan));
    let failure = step.and_then(|step| step.failure.as_ref());
    let status = steps.status(state, &instance);
    if let Some(expected) = expect.status.filter(|expected| *expected != status) {
        let because = failure.map(|failure| format!(" ({})", words(failure, name))).unwrap_or_default();
        found.push(format!("step `{name}` is {}{because}, expected {}", status.name(), expected.name()));
    }
    let attempts = step.map_or(0, |step| u64::from(step.attempt));
    if let Some(expected) = expect.attempts.filter(|expected| *expected != attempts) {
        found.push(format!("step `{name}` had {attempts} attempts, expected {expected}"));
    }
    let output = step.map(|step| step.output.clone()).unwrap_or_default();
    if let Some(expected) = expect.output.as_ref().filter(|expected| **expected != output) {
        found.push(format!("the output of step `{name}` is another one:\n{}", diff(expected, &output)));
    }
    let input = step.map(|step| step.input.clone()).unwrap_or_default();
    let parts = [("output", &expect.output_contains, &output), ("input", &expect.input_contains, &input)];
    for (what, expected, actual) in parts {
        if let Some(expected) = expected.as_ref().filter(|expected| !contains(actual, expected)) {
            let message = format!("the {what} of step `{name}` does not contain what was expected of it");
            found.push(format!("{message}:\n{}", diff(expected, actual)));
        }
    }
    for word in &expect.error_contains {
        match failure.map(|failure| words(failure, name)) {
            Some(error) if error.contains(word.as_str()) => {}
            Some(error) => found.push(format!("the error of step `{name}` does not contain {word:?}: {error}")),
            None => found.push(format!("step `{name}` has no error, and {word:?} was expected in it")),
        }
    }
}

fn check_absent(expect: &Expect, (finished, steps): (&Finished, &Steps), found: &mut Vec<String>) {
    for name in &expect.absent_steps {
        match instance(&finished.plan, name) {
            None => {
                let meant = meant(&finished.plan, name);
                found.push(format!("the workflow has no step `{name}` that could be absent{meant}"));
            }
            Some(instance) => {
                let attempts = steps.0.get(&instance.name(&finished.plan)).map_or(0, |step| step.attempt);
                if attempts > 0 {
                    found.push(format!("step `{name}` was started and must not be"));
                }
            }
        }
    }
}

fn check_calls(expect: &Expect, finished: &Finished, found: &mut Vec<String>) {
    let count = finished.calls.len() as u64;
    if let Some(expected) = expect.call_count.filter(|expected| *expected != count) {
        found.push(format!("{count} calls were made, expected {expected}"));
    }
    if let Some(expected) = expect.calls.as_ref().filter(|expected| !are_same(expected, &finished.calls)) {
        let expected: String = expected.iter().map(|call| call_line(&call.tool, call.arguments.as_ref())).collect();
        let made: String = finished.calls.iter().map(|call| call_line(&call.tool, Some(&call.arguments))).collect();
        found.push(format!("the calls are others:\n{}", text_diff(&expected, &made)));
    }
    let waves = waves(finished);
    if let Some(expected) = &expect.waves {
        let expected: Vec<BTreeSet<String>> = expected.iter().map(|wave| wave.iter().cloned().collect()).collect();
        if expected != waves {
            let lines = |waves: &[BTreeSet<String>]| waves.iter().map(|wave| format!("{wave:?}\n")).collect::<String>();
            found.push(format!("the waves are others:\n{}", text_diff(&lines(&expected), &lines(&waves))));
        }
    }
}

fn check_times(expect: &Expect, finished: &Finished, found: &mut Vec<String>) {
    let listed = |times: &[u64]| times.iter().map(|ms| duration_text(*ms)).collect::<Vec<_>>().join(", ");
    let delays = delays_ms(finished);
    if let Some(expected) = expect.delays_ms.as_ref().filter(|expected| **expected != delays) {
        found.push(format!("the delays between attempts are [{}], expected [{}]", listed(&delays), listed(expected)));
    }
    let start = finished.state.start.as_ref().map_or(0, |start| start.at);
    let duration_ms = finished.state.end.ended_at.unwrap_or(finished.ended_at).saturating_sub(start);
    if let Some(expected) = expect.duration_ms.filter(|expected| *expected != duration_ms) {
        found.push(format!("it took {}, expected {}", duration_text(duration_ms), duration_text(expected)));
    }
}

/// Returns the sets of step instances whose calls each turn has dispatched.
fn waves(finished: &Finished) -> Vec<BTreeSet<String>> {
    let name = |instance: &Instance| instance.name(&finished.plan);
    let mut waves: Vec<BTreeSet<String>> = Vec::new();
    for frame in &finished.frames {
        let sent = frame.records.iter().filter_map(|record| match record {
            Record::AttemptStarted { instance, .. } => Some(name(instance)),
            _ => None,
        });
        let sent: BTreeSet<String> = sent.collect();
        match waves.last_mut() {
            _ if sent.is_empty() => {}
            // The rest of a turn that was split because it was too long for one frame.
            Some(last) if frame.input == Input::Continue => last.extend(sent),
            _ => waves.push(sent),
        }
    }
    waves
}

fn delays_ms(finished: &Finished) -> Vec<u64> {
    let records = finished.frames.iter().flat_map(|frame| frame.records.iter().map(|record| (frame.now, record)));
    let delays = records.filter_map(|(now, record)| match record {
        Record::AttemptFailed { retry_at: Some(at), .. } => Some(at.saturating_sub(now)),
        _ => None,
    });
    delays.collect()
}

fn are_same(expected: &[CallExpect], made: &[Made]) -> bool {
    expected.len() == made.len()
        && expected.iter().zip(made).all(|(expected, made)| {
            expected.tool == made.tool
                && expected.arguments.as_ref().is_none_or(|arguments| *arguments == made.arguments)
        })
}

fn call_line(tool: &str, arguments: Option<&Value>) -> String {
    format!("{tool} {}\n", arguments.map_or("…".into(), json::compact))
}

/// Returns the whole error of an execution: code, class, message and step, or the reason of a cancellation.
fn error_words(state: &State) -> Option<String> {
    match state.end.ending.as_ref().filter(|_| state.end.ended_at.is_some())? {
        Ending::Completed { .. } => None,
        Ending::Cancelled { reason } => Some(reason.clone()),
        Ending::Failed { fault, instance, .. } => {
            let place = instance.as_ref().map(|instance| failing_place(state, instance)).unwrap_or_default();
            Some(words(&fault.failure(), &place))
        }
    }
}

fn words(failure: &Failure, place: &str) -> String {
    let details =
        if failure.details == Value::Null { String::new() } else { format!(" {}", json::compact(&failure.details)) };
    format!("{} [{} {}]{details} {place}", failure.message, failure.class.name(), failure.code).trim_end().into()
}

/// Returns the step that failed the execution, followed by the failed step inside of it.
fn failing_place(state: &State, instance: &Instance) -> String {
    let failed_inside = |owner: &Instance| {
        state.steps.iter().find_map(|(inner, step)| {
            let is_inside = inner.scope(&state.plan).owner(&state.plan).as_ref() == Some(owner);
            let failed = step.status == mainspring_kernel::state::Status::Failed && !step.tolerated && !step.is_handled;
            (is_inside && failed).then_some(inner)
        })
    };
    let name = |instance: &Instance, plan: &Plan| format!("in step `{}`", instance.name(plan));
    let mut place = vec![name(instance, &state.plan)];
    let mut inner = failed_inside(instance);
    while let Some(instance) = inner {
        place.push(name(instance, &state.plan));
        inner = failed_inside(instance);
    }
    place.reverse();
    place.join(" ")
}

/// Returns whether a value contains the expected one: objects may have more keys, everything else must be equal.
fn contains(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Map(value), Value::Map(expected)) => {
            expected.iter().all(|(key, expected)| value.get(key).is_some_and(|value| contains(value, expected)))
        }
        (Value::List(value), Value::List(expected)) => {
            value.len() == expected.len()
                && value.iter().zip(expected).all(|(value, expected)| contains(value, expected))
        }
        _ => value == expected,
    }
}

fn diff(expected: &Value, actual: &Value) -> String {
    text_diff(&(json::pretty(expected) + "\n"), &(json::pretty(actual) + "\n"))
}

/// Formats a diff: `-` marks expected lines, `+` actual ones.
pub(crate) fn text_diff(expected: &str, actual: &str) -> String {
    let diff = TextDiff::from_lines(expected, actual);
    let mut unified = diff.unified_diff();
    indented(&unified.context_radius(3).header("expected", "actual").to_string())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &str, holds: bool) {
        let read = |text: &str| json::read(text.as_bytes()).unwrap().value;
        assert_eq!(contains(&read(value), &read(expected)), holds, "{value} {expected}");
    }

    #[test]
    fn expected_fields_must_be_present() {
        check(r#"{"a":1,"b":2}"#, r#"{"a":1}"#, true);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
        check(r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2}}"#, true);
        check(r#"[{"x":1,"y":2}]"#, r#"[{"x":1}]"#, true);
        check(r"[1,2]", r"[1]", false);
        check("1", "1.0", true);
        check("null", "{}", false);
    }
}
