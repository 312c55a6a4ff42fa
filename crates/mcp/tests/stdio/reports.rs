//! Attempts that report before their end: pinned tools, forms and tasks. A new [`Tools`] stands for a new process of the
//! engine, since only the attempt carries the reports.

use mainspring_effects::{Adopted, CancelHandle, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome, Progress, Report},
    hash::Hash,
    json,
    value::Value,
};
use mainspring_mcp::executor::Tools;

use super::{Bench, shown, until};

fn value(text: &str) -> Value {
    json::value(text.as_bytes()).unwrap()
}

/// An attempt of an execution that has pinned the tool, and has reported a call that continues.
fn reported(bench: &Bench, tool: &str, pin: Option<Hash>, handle: Value, answer: &str) -> Attempt {
    let pins = pin.into_iter().map(|pin| (tool.to_owned(), pin)).collect();
    let progress = Progress { pins, handle, answer: value(answer) };
    Attempt { progress: Some(Box::new(progress)), ..bench.attempt(tool, "{}") }
}

fn perform(bench: &Bench, tools: &Tools, attempt: &Attempt) -> Outcome {
    let (_stopper, stop) = CancelHandle::pair();
    bench.perform_until(tools, attempt, stop)
}

fn adopted(bench: &Bench, tools: &Tools, attempt: &Attempt) -> Adopted {
    bench.runtime.block_on(tools.adopt(attempt))
}

/// The digest of a tool, as the executor reports it at its first use.
fn pin_of(bench: &Bench, tools: &Tools, tool: &str) -> Hash {
    let attempt = reported(bench, tool, None, Value::Null, "null");
    match perform(bench, tools, &attempt) {
        Outcome::Reported(report) => match *report {
            Report::Tools(tools) => {
                assert_eq!(tools[0].name, tool);
                tools[0].digest
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Performs the first part of a call of a pinned tool, and returns its report.
fn begun(bench: &Bench, tools: &Tools, tool: &str) -> (Hash, Report) {
    let pin = pin_of(bench, tools, tool);
    match perform(bench, tools, &reported(bench, tool, Some(pin), Value::Null, "null")) {
        Outcome::Reported(report) => (pin, *report),
        other => panic!("{other:?}"),
    }
}

fn asked(bench: &Bench, tools: &Tools, tool: &str) -> (Hash, Value, Value) {
    match begun(bench, tools, tool) {
        (pin, Report::Asked { question, handle }) => (pin, question, handle),
        (_, other) => panic!("{other:?}"),
    }
}

pub(crate) fn a_tool_is_pinned_before_its_first_call(bench: &Bench) {
    let tools = bench.tools();
    let first = reported(bench, "test.echo", None, Value::Null, "null");
    let pin = pin_of(bench, &tools, "test.echo");
    assert_eq!(bench.log(), "", "nothing was called");
    assert_eq!(adopted(bench, &tools, &first), Adopted::NeverStarted);
    let pinned = reported(bench, "test.echo", Some(pin), Value::Null, "null");
    assert_eq!(adopted(bench, &tools, &pinned), Adopted::Interrupted, "it may have been called");
    assert!(shown(&perform(bench, &tools, &pinned)).starts_with("done ["));
    assert_eq!(bench.log().lines().count(), 1);
}

pub(crate) fn a_tool_that_changed_or_is_gone_is_not_called(bench: &Bench) {
    let tools = bench.tools();
    let changed = reported(bench, "test.echo", Some(Hash::of(b"another")), Value::Null, "null");
    let outcome = shown(&perform(bench, &tools, &changed));
    assert!(
        outcome.starts_with("failed policy tool_changed: step `call`: the tool `test.echo` is not the one"),
        "{outcome}"
    );
    let gone = reported(bench, "test.none", Some(Hash::of(b"another")), Value::Null, "null");
    let outcome = shown(&perform(bench, &tools, &gone));
    assert!(outcome.starts_with("failed policy tool_gone: step `call`: the tool `test.none`"), "{outcome}");
    let gone = reported(bench, "none", Some(Hash::of(b"another")), Value::Null, "null");
    assert!(shown(&perform(bench, &tools, &gone)).starts_with("failed policy tool_gone"));
    assert_eq!(bench.log(), "", "nothing was called");
}

pub(crate) fn a_form_is_answered_over_the_open_call(bench: &Bench) {
    let tools = bench.tools();
    let (pin, question, handle) = asked(bench, &tools, "test.form");
    assert_eq!(
        json::canonical(&question),
        r#"{"form":{"properties":{"name":{"minLength":1,"type":"string"}},"required":["name"],"type":"object"},"message":"Who?\\u{1b}[31m","server":"test","tool":"form"}"#
    );
    let answer = r#"{"action": "accept", "content": {"name": "Ann"}}"#;
    let answered = reported(bench, "test.form", Some(pin), handle, answer);
    let outcome = shown(&perform(bench, &tools, &answered));
    assert!(outcome.contains(r#"{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}"#), "{outcome}");
    assert_eq!(bench.log().lines().count(), 1, "it is one call");
}

pub(crate) fn a_form_whose_call_was_lost_with_its_process_is_interrupted(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = asked(bench, &tools, "test.form");
    let answered = reported(bench, "test.form", Some(pin), handle, r#"{"action": "decline"}"#);
    let other_process = bench.tools();
    assert_eq!(adopted(bench, &other_process, &answered), Adopted::Interrupted);
    assert_eq!(perform(bench, &other_process, &answered), Outcome::Interrupted);
    assert_eq!(bench.log().lines().count(), 1, "the call is not repeated");
}

pub(crate) fn a_call_that_ends_without_the_answer_is_noticed(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = asked(bench, &tools, "test.form");
    let attempt = reported(bench, "test.form", Some(pin), handle, r#"{"action": "decline"}"#);
    let (_stopper, stop) = CancelHandle::pair();
    let ended = bench.runtime.block_on(async {
        let watched = tools.watch(&attempt, stop);
        let (_stopper, stop) = CancelHandle::pair();
        let finish = bench.attempt("test.finish", "{}");
        let (ended, finished) = tokio::join!(watched, tools.perform(&finish, stop));
        assert!(shown(&finished).starts_with("done"), "{finished:?}");
        ended
    });
    let outcome = shown(&ended.expect("the call has ended"));
    assert!(outcome.contains("gave up"), "{outcome}");
    // An answer that was given at the same time gets the same outcome.
    assert!(shown(&perform(bench, &tools, &attempt)).contains("gave up"));
}

pub(crate) fn a_stop_ends_a_call_that_is_held_open(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = asked(bench, &tools, "test.form");
    let attempt = reported(bench, "test.form", Some(pin), handle, "null");
    let (stopper, stop) = CancelHandle::pair();
    stopper.cancel();
    assert_eq!(bench.runtime.block_on(tools.watch(&attempt, stop)), None);
    bench.runtime.block_on(until(|| bench.log().contains("cancelled")));
}

pub(crate) fn a_call_that_needs_input_is_sent_again_with_it(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, question, handle) = asked(bench, &tools, "test.needs-input");
    assert_eq!(question.get("message"), Some(&"First?".into()));
    // Another process continues it: the state of the call is in the report.
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let first = reported(bench, "test.needs-input", Some(pin), handle, r#"{"action": "accept", "content": {"n": 1}}"#);
    assert_eq!(adopted(bench, &tools, &first), Adopted::NeverStarted, "a further form is asked for");
    let Outcome::Reported(report) = perform(bench, &tools, &first) else { panic!("a second form") };
    let Report::Asked { question, handle } = *report else { panic!("a second form") };
    assert_eq!(question.get("message"), Some(&"Second?".into()));
    let second = reported(bench, "test.needs-input", Some(pin), handle, r#"{"action": "decline"}"#);
    assert_eq!(adopted(bench, &tools, &second), Adopted::Interrupted, "the call may have been sent again");
    let outcome = shown(&perform(bench, &tools, &second));
    assert!(
        outcome.contains(r#"{\"a\":{\"action\":\"accept\",\"content\":{\"n\":1}},\"b\":{\"action\":\"decline\"}} s1"#),
        "{outcome}"
    );
    assert_eq!(bench.log().lines().count(), 2, "it was sent twice");
}

fn task(bench: &Bench, tools: &Tools) -> (Hash, Value) {
    match begun(bench, tools, "test.task") {
        (pin, Report::Continued(handle)) => (pin, handle),
        (_, other) => panic!("{other:?}"),
    }
}

pub(crate) fn a_task_is_asked_for_and_not_repeated(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, handle) = task(bench, &tools);
    assert_eq!(handle.get("id"), Some(&"t1".into()));
    // Its process ended between the record and the wait.
    drop(tools);
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let attempt = reported(bench, "test.task", Some(pin), handle, "null");
    assert_eq!(adopted(bench, &tools, &attempt), Adopted::NeverStarted, "it may be asked for again");
    let outcome = shown(&perform(bench, &tools, &attempt));
    assert!(outcome.contains("task done"), "{outcome}");
    let log = bench.log();
    assert_eq!(log.lines().filter(|line| line.starts_with("call")).count(), 1, "{log}");
    assert!(log.contains("tasks/get t1"), "{log}");
}

pub(crate) fn a_task_that_its_server_has_lost_is_interrupted(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, _) = task(bench, &tools);
    let handle = value(r#"{"kind":"task","server":"test","tool":"task","id":"t9","pending":[],"answers":{}}"#);
    let attempt = reported(bench, "test.task", Some(pin), handle, "null");
    assert_eq!(perform(bench, &tools, &attempt), Outcome::Interrupted);
}

pub(crate) fn a_stop_cancels_a_task_unless_the_process_only_leaves(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, handle) = task(bench, &tools);
    let attempt = reported(bench, "test.task", Some(pin), handle, "null");
    let (leaver, stop) = CancelHandle::pair();
    leaver.leave();
    assert_eq!(shown(&bench.perform_until(&tools, &attempt, stop)), "stopped");
    assert!(!bench.log().contains("tasks/cancel"), "{}", bench.log());
    let (stopper, stop) = CancelHandle::pair();
    stopper.cancel();
    assert_eq!(shown(&bench.perform_until(&tools, &attempt, stop)), "stopped");
    assert!(bench.log().contains("tasks/cancel t1"), "{}", bench.log());
}
