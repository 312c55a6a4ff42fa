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
    let progress = Progress { pins, handle, answer: value(answer), is_stopping: false };
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
fn first_report(bench: &Bench, tools: &Tools, tool: &str) -> (Hash, Report) {
    let pin = pin_of(bench, tools, tool);
    match perform(bench, tools, &reported(bench, tool, Some(pin), Value::Null, "null")) {
        Outcome::Reported(report) => (pin, *report),
        other => panic!("{other:?}"),
    }
}

fn expect_question(bench: &Bench, tools: &Tools, tool: &str) -> (Hash, Value, Value) {
    match first_report(bench, tools, tool) {
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

pub(crate) fn a_changed_or_removed_tool_is_not_called(bench: &Bench) {
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
    let (pin, question, handle) = expect_question(bench, &tools, "test.form");
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

pub(crate) fn a_form_of_a_lost_call_is_interrupted(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = expect_question(bench, &tools, "test.form");
    let answered = reported(bench, "test.form", Some(pin), handle, r#"{"action": "decline"}"#);
    let other_process = bench.tools();
    assert_eq!(adopted(bench, &other_process, &answered), Adopted::Interrupted);
    assert_eq!(perform(bench, &other_process, &answered), Outcome::Interrupted);
    assert_eq!(bench.log().lines().count(), 1, "the call is not repeated");
}

pub(crate) fn a_call_that_ends_without_the_answer_is_detected(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = expect_question(bench, &tools, "test.form");
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

pub(crate) fn a_stop_ends_an_open_call(bench: &Bench) {
    let tools = bench.tools();
    let (pin, _, handle) = expect_question(bench, &tools, "test.form");
    let attempt = reported(bench, "test.form", Some(pin), handle, "null");
    let (stopper, stop) = CancelHandle::pair();
    stopper.cancel();
    assert_eq!(bench.runtime.block_on(tools.watch(&attempt, stop)), None);
    bench.runtime.block_on(until(|| bench.log().contains("cancelled")));
}

pub(crate) fn a_call_that_needs_input_is_resent_with_it(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, question, handle) = expect_question(bench, &tools, "test.needs-input");
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
    match first_report(bench, tools, "test.task") {
        (pin, Report::Continued(handle)) => (pin, handle),
        (_, other) => panic!("{other:?}"),
    }
}

pub(crate) fn a_task_is_polled_and_not_repeated(bench: &Bench) {
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

pub(crate) fn a_stop_cancels_a_task_except_at_shutdown(bench: &Bench) {
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

/// Performs the first part of a call whose report cannot be kept, and returns its failure.
fn refused(bench: &Bench, tools: &Tools, tool: &str) -> String {
    let pin = pin_of(bench, tools, tool);
    shown(&perform(bench, tools, &reported(bench, tool, Some(pin), Value::Null, "null")))
}

pub(crate) fn an_undisplayable_form_is_not_recorded(bench: &Bench) {
    let tools = bench.tools();
    for (tool, expected) in [
        ("test.form-many", "bytes, more than 32768"),
        ("test.form-hidden", "in its name that are not seen"),
        ("test.form-default", "a default that it does not accept"),
        ("test.form-long", "its message has more than 4096 bytes"),
    ] {
        let outcome = refused(bench, &tools, tool);
        assert!(outcome.starts_with("failed invalid tool_form_invalid") && outcome.contains(expected), "{outcome}");
        assert!(outcome.len() < 1_000, "{outcome}");
    }
    // The protocol has no such form, so the request is refused, and the server continues.
    let outcome = refused(bench, &tools, "test.form-self");
    assert!(outcome.starts_with("done") && outcome.contains("code"), "{outcome}");
    let modern = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let outcome = refused(bench, &modern, "test.needs-many");
    assert!(outcome.contains("tool_answer_invalid") && outcome.contains("9 forms at a time, more than 8"), "{outcome}");
    let outcome = refused(bench, &modern, "test.needs-state");
    assert!(outcome.contains("tool_answer_invalid") && outcome.contains("more than 65536 bytes"), "{outcome}");
}

pub(crate) fn texts_of_a_form_show_hidden_characters(bench: &Bench) {
    let tools = bench.tools();
    let (_, question, _) = expect_question(bench, &tools, "test.form-labels");
    let shown = json::canonical(&question);
    assert!(
        shown.contains(r#""title":"A\\u{202e}\\u{7}""#) && shown.contains(r#""description":"D\\u{200b}""#),
        "{shown}"
    );
    assert!(shown.contains(r#""message":"Labels?\\u{202e}""#) && shown.contains(r#""default":"x""#), "{shown}");
}

pub(crate) fn form_fields_may_have_names_of_built_in_members(bench: &Bench) {
    let tools = bench.tools();
    let (pin, question, handle) = expect_question(bench, &tools, "test.form-proto");
    assert!(json::canonical(&question).contains(r#""__proto__":{"type":"string"}"#));
    let answer = r#"{"action": "accept", "content": {"__proto__": "x", "constructor": "y"}}"#;
    let outcome = shown(&perform(bench, &tools, &reported(bench, "test.form-proto", Some(pin), handle, answer)));
    assert!(outcome.contains(r#"{\"__proto__\":\"x\",\"constructor\":\"y\"}"#), "{outcome}");
}

fn accepted(name: &str) -> String {
    format!(r#"{{"action": "accept", "content": {{"name": "{name}"}}}}"#)
}

/// The forms of one call are asked for one after another, also if the server does not wait.
pub(crate) fn further_forms_of_a_call_are_presented(bench: &Bench) {
    for tool in ["test.forms-in-turn", "test.forms-at-once"] {
        let tools = bench.tools();
        let before = bench.log().lines().count();
        let (pin, question, handle) = expect_question(bench, &tools, tool);
        let message = |question: &Value| question.get("message").and_then(Value::as_text).map(String::from);
        let mut messages = vec![message(&question)];
        let first = reported(bench, tool, Some(pin), handle, &accepted("Ann"));
        let Outcome::Reported(report) = perform(bench, &tools, &first) else { panic!("a second form: {tool}") };
        let Report::Asked { question, handle } = *report else { panic!("a second form: {tool}") };
        messages.push(message(&question));
        // Requests that a server sends at once are read at once, in any order.
        if tool == "test.forms-at-once" {
            messages.sort();
        }
        assert_eq!(messages, ["First?", "Second?"].map(|text| Some(text.to_owned())), "{tool}");
        let outcome = shown(&perform(bench, &tools, &reported(bench, tool, Some(pin), handle, &accepted("Bob"))));
        let (ann, bob) = (outcome.find("Ann").expect("the first answer"), outcome.find("Bob").expect("the second"));
        // The answers to requests that are sent at once arrive in any order as well.
        assert!(outcome.starts_with("done") && (ann < bob || tool == "test.forms-at-once"), "{outcome}");
        assert_eq!(bench.log().lines().count(), before + 1, "it is one call");
    }
}

/// An attempt that is only to be stopped ends what is open in the server, and calls nothing.
pub(crate) fn a_withdrawn_form_ends_its_call_or_its_task(bench: &Bench) {
    let stopping = |attempt: Attempt| {
        let progress = attempt.progress.map(|progress| Box::new(Progress { is_stopping: true, ..*progress }));
        Attempt { progress, ..attempt }
    };
    let tools = bench.tools();
    let (pin, _, handle) = expect_question(bench, &tools, "test.form");
    let attempt = stopping(reported(bench, "test.form", Some(pin), handle, r#"{"action": "cancel"}"#));
    assert_eq!(shown(&perform(bench, &tools, &attempt)), "stopped");
    bench.runtime.block_on(until(|| bench.log().contains("cancelled")));
    // Another process has no such call.
    assert_eq!(adopted(bench, &bench.tools(), &attempt), Adopted::NeverStarted);
    assert_eq!(shown(&perform(bench, &bench.tools(), &attempt)), "stopped");

    let modern = || Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, _, handle) = expect_question(bench, &modern(), "test.needs-input");
    let calls = bench.log().lines().filter(|line| line.starts_with("call")).count();
    let answer = r#"{"action": "cancel"}"#;
    let attempt = stopping(reported(bench, "test.needs-input", Some(pin), handle, answer));
    assert_eq!(shown(&perform(bench, &modern(), &attempt)), "stopped");
    assert_eq!(bench.log().lines().filter(|line| line.starts_with("call")).count(), calls, "it is not sent again");

    let tools = modern();
    let (pin, report) = first_report(bench, &tools, "test.task-asks");
    let Report::Continued(handle) = report else { panic!("{report:?}") };
    let waiting = reported(bench, "test.task-asks", Some(pin), handle, "null");
    let Outcome::Reported(report) = perform(bench, &tools, &waiting) else { panic!("it asks") };
    let Report::Asked { handle, .. } = *report else { panic!("it asks") };
    let attempt = stopping(reported(bench, "test.task-asks", Some(pin), handle, answer));
    assert_eq!(shown(&perform(bench, &modern(), &attempt)), "stopped");
    assert!(bench.log().contains("tasks/cancel asks"), "{}", bench.log());
}

/// The timeout of the step ends the wait, and asking has a least interval.
pub(crate) fn an_endless_task_is_polled_until_it_is_stopped(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, report) = first_report(bench, &tools, "test.task-never");
    let Report::Continued(handle) = report else { panic!("{report:?}") };
    let attempt = reported(bench, "test.task-never", Some(pin), handle, "null");
    let (stopper, stop) = CancelHandle::pair();
    bench.runtime.spawn({
        let log = bench.log_path();
        async move {
            let asked = || std::fs::read_to_string(&log).unwrap_or_default().matches("tasks/get never").count();
            until(|| asked() >= 3).await;
            stopper.cancel();
        }
    });
    let begun = std::time::Instant::now();
    assert_eq!(shown(&bench.perform_until(&tools, &attempt, stop)), "stopped");
    assert!(begun.elapsed() >= 2 * mainspring_mcp::limits::POLL_INTERVALS.0, "the server wants no pause");
    let log = bench.log();
    assert!(log.contains("tasks/cancel never") && log.matches("call task-never").count() == 1, "{log}");
}

pub(crate) fn a_completed_task_is_polled_once(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "modern")]));
    let (pin, report) = first_report(bench, &tools, "test.task-changes");
    let Report::Continued(handle) = report else { panic!("{report:?}") };
    let attempt = reported(bench, "test.task-changes", Some(pin), handle, "null");
    assert!(shown(&perform(bench, &tools, &attempt)).contains("answer 1"));
    assert_eq!(bench.log().matches("tasks/get").count(), 1, "an end is asked for once: {}", bench.log());
}

/// The list changes while the connection is open, after the first call.
pub(crate) fn a_pinned_tool_changed_while_connected_is_not_called(bench: &Bench) {
    for (mode, code) in [("changes", "tool_changed"), ("vanishes", "tool_gone")] {
        let tools = Tools::new(bench.pool(vec![bench.server("test", mode)]));
        let pin = pin_of(bench, &tools, "test.echo");
        let call = reported(bench, "test.echo", Some(pin), Value::Null, "null");
        assert!(shown(&perform(bench, &tools, &call)).starts_with("done"), "{mode}");
        let calls = bench.log().matches("call echo").count();
        let grow = bench.attempt("test.grow", "{}");
        assert!(shown(&perform(bench, &tools, &grow)).starts_with("done"), "{mode}");
        // The notification is read beside the answer. An attempt without a pin reads the list, and calls nothing.
        let unpinned = reported(bench, "test.echo", None, Value::Null, "null");
        let pinned = |outcome| matches!(outcome, Outcome::Reported(report) if matches!(&*report, Report::Tools(tools) if tools[0].digest == pin));
        while pinned(perform(bench, &tools, &unpinned)) {}
        let outcome = shown(&perform(bench, &tools, &call));
        assert!(outcome.starts_with(&format!("failed policy {code}")), "{mode}: {outcome}");
        assert_eq!(bench.log().matches("call echo").count(), calls, "{mode}: nothing was called");
    }
}
