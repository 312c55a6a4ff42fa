//! Tests of attempts that report before their end: pinned tools, calls that continue, and forms.

use super::*;

const CALL: &str = "- {id: a, type: tool, tool: s.x, timeoutMs: 500, onInterrupted: fail, retry: {maxAttempts: 1}}";
const BEGUN: &str = "0 start: Started, StepStarted a, AttemptStarted a#1";

/// Processes an input and returns the turn.
fn turn(state: &mut State, words: &str, now: u64) -> Turn {
    let plan = state.plan.clone();
    take_in(state, &input(&plan, words), now)
}

/// The progress with which a turn dispatches the only attempt.
fn dispatched(turn: &Turn) -> Progress {
    match turn.actions.as_slice() {
        [Action::Perform { attempt, .. }] => attempt.progress.as_deref().cloned().expect("it can report"),
        other => panic!("no dispatch: {other:?}"),
    }
}

#[test]
fn the_first_digest_of_a_tool_is_pinned() {
    let state = check(
        &format!("{CALL}\n- {{id: b, type: tool, tool: s.x}}\n- {{id: c, type: tool, tool: s.y}}"),
        &format!(
            "{BEGUN}
            1 a#1 pins: ToolsPinned, AttemptResumed a#1
            2 a#1 done: StepCompleted a, StepStarted b, AttemptStarted b#1"
        ),
    );
    let attempt = open_attempt(&state, &at(&state.plan, "b")).expect("it runs");
    let pins = attempt.progress.expect("it can report").pins;
    assert_eq!(pins, [("s.x".to_owned(), Hash::of(b"x"))].into());
    assert_eq!(state.counts.calls, 2, "a report is no call");
}

#[test]
fn a_call_continues_with_its_handle_until_its_end() {
    let mut state = fresh(KEY, CALL);
    turn(&mut state, "start", 0);
    let continued = turn(&mut state, "a#1 continues", 1);
    assert_eq!(dispatched(&continued).handle, "task 1".into());
    // A node that takes over the execution asks for the task.
    let attempt = open_attempt(&state, &at(&state.plan, "a")).expect("it runs");
    assert_eq!(attempt.progress.expect("it can report").handle, "task 1".into());
    // The timeout is that of the call.
    let plan = state.plan.clone();
    let timed_out = take_in(&mut state, &Input::Timer(Timer::Attempt(at(&plan, "a"), 1)), 500);
    assert_eq!(records_words(&plan, &timed_out), "AttemptStopping a#1");
    assert_eq!(
        records_words(&plan, &turn(&mut state, "a#1 stopped", 501)),
        "StepFailed a timeout, EndingBegun failed timeout, Ended"
    );
}

#[test]
fn a_retry_begins_without_the_handle_of_the_attempt_before() {
    let state = check(
        "- {id: a, type: tool, tool: s.x, retry: {maxAttempts: 2, initialDelayMs: 10, jitter: 0, retryOn: [transient]}}",
        &format!(
            "{BEGUN}
            1 a#1 continues: AttemptContinued a#1
            2 a#1 down: AttemptFailed a#1
            12 a#2 due: AttemptStarted a#2"
        ),
    );
    let attempt = open_attempt(&state, &at(&state.plan, "a")).expect("it runs");
    assert_eq!(attempt.progress.expect("it can report").handle, Value::Null);
}

#[test]
fn a_form_accepts_only_valid_content() {
    let mut state = fresh(KEY, CALL);
    let plan = state.plan.clone();
    turn(&mut state, "start", 0);
    let asked = turn(&mut state, "a#1 asks", 1);
    assert_eq!(records_words(&plan, &asked), "AttemptContinued a#1, GateOpened a gate 1");
    assert_eq!(state.status(), ExecutionStatus::WaitingApproval);
    // The timeout of the call does not count while people are asked.
    let timed_out = take_in(&mut state, &Input::Timer(Timer::Attempt(at(&plan, "a"), 1)), 600);
    assert_eq!(records_words(&plan, &timed_out), "nothing");
    for unfit in ["a gate 1 approve ann", "a gate 1 accept x"] {
        assert_eq!(records_words(&plan, &turn(&mut state, unfit, 700)), "nothing", "{unfit}");
    }
    let answered = turn(&mut state, "a gate 1 accept Ann", 800);
    assert_eq!(records_words(&plan, &answered), "GateDecided a gate 1, AttemptResumed a#1");
    let progress = dispatched(&answered);
    let content = Value::map([("name", "Ann".into())]);
    assert_eq!(progress.answer, Value::map([("action", "accept".into()), ("content", content)]));
    assert_eq!(progress.handle, "held".into());
    let done = turn(&mut state, "a#1 done", 900);
    assert_eq!(records_words(&plan, &done), "StepCompleted a, EndingBegun completed, Ended");
}

#[test]
fn a_form_that_is_declined_or_expires_is_answered_as_such() {
    for (words, now, action) in [("a gate 1 deny ann", 5, "decline"), ("a gate 1 due", 86_400_001, "cancel")] {
        let mut state = fresh(KEY, CALL);
        turn(&mut state, "start", 0);
        turn(&mut state, "a#1 asks", 1);
        let progress = dispatched(&turn(&mut state, words, now));
        assert_eq!(progress.answer, Value::map([("action", action.into())]), "{words}");
    }
}

#[test]
fn a_call_that_ends_closes_the_gate_of_its_form() {
    check(
        CALL,
        &format!(
            "{BEGUN}
            1 a#1 asks: AttemptContinued a#1, GateOpened a gate 1
            2 a#1 done: GateDecided a gate 1, AttemptResumed a#1, StepCompleted a, EndingBegun completed, Ended"
        ),
    );
}

/// The call or the task may be open in a tool server, also if another process has begun it. So the attempt ends it, and
/// nothing else.
#[test]
fn a_canceled_step_ends_the_call_that_waits_for_a_form() {
    let mut state = fresh(KEY, CALL);
    turn(&mut state, "start", 0);
    turn(&mut state, "a#1 asks", 1);
    let plan = state.plan.clone();
    let canceled = turn(&mut state, "cancel enough", 2);
    let words = records_words(&plan, &canceled);
    assert!(words.ends_with("GateDecided a gate 1, AttemptResumed a#1, AttemptStopping a#1"), "{words}");
    let [Action::Perform { attempt, .. }, stop] = canceled.actions.as_slice() else { panic!("{:?}", canceled.actions) };
    let progress = attempt.progress.as_deref().expect("it can report");
    assert!(progress.is_stopping && progress.handle == "held".into(), "{progress:?}");
    assert_eq!(*stop, Action::Stop { instance: at(&plan, "a"), attempt: 1 });
    assert_eq!(records_words(&plan, &turn(&mut state, "a gate 1 accept Ann", 3)), "nothing", "it is too late");
    // A report is no end, and opens no gate.
    let asked = turn(&mut state, "a#1 asks", 4);
    assert_eq!(records_words(&plan, &asked), "AttemptContinued a#1");
    let stopped = records_words(&plan, &turn(&mut state, "a#1 stopped", 5));
    assert_eq!(stopped, "StepCancelled a execution_ending, Ended");
}

#[test]
fn a_cancel_ends_a_call_that_continues() {
    let mut state = fresh(KEY, CALL);
    turn(&mut state, "start", 0);
    turn(&mut state, "a#1 continues", 1);
    let plan = state.plan.clone();
    let canceled = turn(&mut state, "cancel enough", 2);
    assert!(records_words(&plan, &canceled).ends_with("AttemptStopping a#1"));
    assert_eq!(canceled.actions, [Action::Stop { instance: at(&plan, "a"), attempt: 1 }]);
    let stopped = records_words(&plan, &turn(&mut state, "a#1 stopped", 3));
    assert_eq!(stopped, "StepCancelled a execution_ending, Ended");
}

/// An execution that completes waits for running attempts, so one that has only reported is dispatched again.
#[test]
fn a_report_in_an_execution_that_completes_is_no_end() {
    let branch = "{id: c, type: conditional, condition: true, then: [{id: w, type: tool, tool: s.y}, {id: r, type: return, input: 1}]}";
    let steps = format!("- {{id: p, type: parallel, steps: [{{id: a, type: tool, tool: s.x}}, {branch}]}}");
    let mut state = fresh(KEY, &steps);
    turn(&mut state, "start", 0);
    let plan = state.plan.clone();
    let returned = turn(&mut state, "w#1 done", 1);
    assert!(records_words(&plan, &returned).contains("EndingBegun completed"));
    let pinned = turn(&mut state, "a#1 pins", 2);
    assert_eq!(records_words(&plan, &pinned), "ToolsPinned, AttemptResumed a#1");
    assert_eq!(dispatched(&pinned).pins, [("s.x".to_owned(), Hash::of(b"x"))].into());
    let words = records_words(&plan, &turn(&mut state, "a#1 done", 3));
    assert!(words.contains("StepCompleted a") && words.ends_with("Ended"), "{words}");
}

#[test]
fn a_receipt_after_the_end_changes_nothing() {
    let mut state = fresh(KEY, CALL);
    let plan = state.plan.clone();
    turn(&mut state, "start", 0);
    turn(&mut state, "a#1 continues", 1);
    turn(&mut state, "a#1 done", 2);
    for late in ["a#1 failed", "a#1 continues", "a#1 asks", "a#1 pins", "a#1 done"] {
        assert_eq!(turn(&mut state, late, 3), Turn::default(), "{late}");
    }
    assert_eq!(records_words(&plan, &turn(&mut state, "a gate 1 accept Ann", 4)), "nothing");
}

#[test]
fn time_at_a_gate_does_not_count_for_the_attempt() {
    let mut state = fresh(KEY, "- {id: a, type: tool, tool: s.x, onInterrupted: ask}");
    turn(&mut state, "start", 0);
    turn(&mut state, "a#1 interrupted", 10);
    turn(&mut state, "a gate 1 approve ann", 1000);
    turn(&mut state, "a#2 pins", 1001);
    assert_eq!(state.steps[&at(&state.plan, "a")].times.handed_out_at, 1000);
}

#[test]
fn an_answer_possibly_lost_by_an_interruption_is_named() {
    let state = check(
        CALL,
        &format!(
            "{BEGUN}
            1 a#1 asks: AttemptContinued a#1, GateOpened a gate 1
            2 a gate 1 accept Ann: GateDecided a gate 1, AttemptResumed a#1
            3 a#1 interrupted: StepFailed a interrupted, EndingBegun failed interrupted, Ended"
        ),
    );
    let failure = state.steps[&at(&state.plan, "a")].failure.clone().expect("it failed");
    assert!(failure.message.contains("the answer `accept` to the form of gate 1 may not have reached"), "{failure:?}");
}

#[test]
fn the_reports_of_an_attempt_are_bounded() {
    let mut state = fresh(KEY, CALL);
    let plan = state.plan.clone();
    turn(&mut state, "start", 0);
    for number in 0..mainspring_kernel::limits::REPORTS_MAX {
        assert_eq!(records_words(&plan, &turn(&mut state, "a#1 continues", 1)), "AttemptContinued a#1", "{number}");
    }
    let exceeded = "StepFailed a tool_reports_exceeded, EndingBegun failed tool_reports_exceeded, Ended";
    assert_eq!(records_words(&plan, &turn(&mut state, "a#1 continues", 1)), exceeded);
    // Tools count as well: a server could list another one each time.
    let mut state = fresh(KEY, CALL);
    turn(&mut state, "start", 0);
    for number in 0..mainspring_kernel::limits::REPORTS_MAX {
        assert_eq!(
            records_words(&plan, &turn(&mut state, "a#1 pins", 1)),
            "ToolsPinned, AttemptResumed a#1",
            "{number}"
        );
    }
    assert_eq!(records_words(&plan, &turn(&mut state, "a#1 pins", 1)), exceeded);
}

#[test]
fn a_report_under_older_rules_fails_the_step() {
    let mut state = State { decide_version: 10, ..fresh(KEY, CALL) };
    let plan = state.plan.clone();
    let begun = turn(&mut state, "start", 0);
    assert!(matches!(begun.actions.as_slice(), [Action::Perform { attempt, .. }] if attempt.progress.is_none()));
    let words = records_words(&plan, &turn(&mut state, "a#1 asks", 1));
    assert!(words.starts_with("StepFailed a reports_need_upgrade"), "{words}");
}

/// The server asks for the same form again after an interruption: the person is not asked twice.
#[test]
fn an_interrupted_form_gets_its_answer_again() {
    let retried = "- {id: a, type: tool, tool: s.x, onInterrupted: retry, retry: {maxAttempts: 3}}";
    let state = check(
        retried,
        &format!(
            "{BEGUN}
            1 a#1 asks: AttemptContinued a#1, GateOpened a gate 1
            2 a gate 1 accept Ann: GateDecided a gate 1, AttemptResumed a#1
            3 a#1 interrupted: AttemptFailed a#1, AttemptStarted a#2
            4 a#2 asks: AttemptContinued a#2, GateOpened a gate 2, GateDecided a gate 2, AttemptResumed a#2"
        ),
    );
    let attempt = open_attempt(&state, &at(&state.plan, "a")).expect("it runs");
    let answer = attempt.progress.expect("it can report").answer;
    assert_eq!(answer.get("content"), Some(&Value::map([("name", "Ann".into())])));
    // The answer is given once, and a second form of the same attempt is another question.
    let mut state = state;
    let plan = state.plan.clone();
    let again = records_words(&plan, &turn(&mut state.clone(), "a#2 asks", 5));
    assert_eq!(again, "AttemptContinued a#2, GateOpened a gate 3");
    let Input::Receipt { instance, attempt, .. } = input(&plan, "a#2 asks") else { unreachable!("it is one") };
    let mut question = form_question();
    if let Value::Map(map) = &mut question {
        map.insert("message".into(), "And who else?".into());
    }
    let report = Report::Asked { question, handle: "held".into() };
    let outcome = Outcome::Reported(Box::new(report));
    let turn = take_in(&mut state, &Input::Receipt { instance, attempt, outcome }, 5);
    assert_eq!(records_words(&plan, &turn), "AttemptContinued a#2, GateOpened a gate 3");
}

/// Without an interruption no answer is repeated: a person consents to each transfer, and corrects a wrong code.
#[test]
fn equal_forms_of_one_attempt_get_separate_answers() {
    check(
        CALL,
        &format!(
            "{BEGUN}
            1 a#1 asks: AttemptContinued a#1, GateOpened a gate 1
            2 a gate 1 accept Ann: GateDecided a gate 1, AttemptResumed a#1
            3 a#1 asks: AttemptContinued a#1, GateOpened a gate 2
            4 a gate 2 accept Ann: GateDecided a gate 2, AttemptResumed a#1"
        ),
    );
}
