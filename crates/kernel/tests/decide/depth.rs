//! Values that are nested too deep: no frame contains one that no reader accepts.

use mainspring_kernel::{
    decide::{DECIDE_VERSION, DEPTH_SINCE},
    effect::{ChildEnd, RECEIPT_UNDECODABLE},
    frame::Frame,
    limits::{DEPTH_MAX, FAILURE_CODE_BYTES_MAX, FAILURE_MESSAGE_BYTES_MAX, RESULT_DEPTH_MAX, VALUE_MEMORY_BYTES_MAX},
};

use super::*;

/// A value whose innermost part lies this many levels below it.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| Value::List(vec![inner]))
}

/// Runs a step `a` with the deepest result, and returns the turn of its receipt, with the state after it.
fn after_deep_result(steps: &str, decide_version: u32) -> (State, Turn, Frame) {
    let mut state = State { decide_version, ..fresh(KEY, steps) };
    take_in(&mut state, &start(Value::Null), 0);
    let instance = at(&state.plan, "a");
    let outcome = Outcome::Done(nested(RESULT_DEPTH_MAX)).decodable();
    let input = Input::Receipt { instance, attempt: 1, outcome };
    let turn = take_in(&mut state, &input, 0);
    let (before, results) = (Hash::default(), Vec::new());
    let frame = Frame { sequence: 1, before, now: 0, input, results, records: turn.records.clone() };
    (state, turn, frame)
}

/// The code of the failure in a turn, that of a step or of the execution.
fn code_in(turn: &Turn) -> Option<String> {
    turn.records.iter().find_map(|record| match record {
        Record::StepFailed { fault, .. } | Record::EndingBegun { ending: Ending::Failed { fault, .. } } => {
            Some(fault.code.clone())
        }
        _ => None,
    })
}

#[test]
fn a_value_that_cannot_be_decoded_fails_its_step() {
    let a = "- {id: a, type: bash, command: date}";
    for (name, steps) in [
        ("an input", format!("{a}\n- {{id: b, type: tool, tool: s.t, arguments: {{x: {{y: {{z: '@a'}}}}}}}}")),
        ("the input of code", format!("{a}\n- {{id: b, type: code, code: 'export default 1', input: {{x: '@a'}}}}")),
        ("a question", format!("{a}\n- {{id: b, type: approval, prompt: Go?, items: [{{x: '@a'}}]}}")),
        ("an output", format!("{a}\n- {{id: b, type: return, input: {{x: '@a'}}}}")),
        ("the output of a block", format!("- {{id: p, type: parallel, steps: [{}]}}", &a[2..])),
    ] {
        let (_, turn, frame) = after_deep_result(&steps, DECIDE_VERSION);
        assert_eq!(code_in(&turn).as_deref(), Some("value_too_deep"), "{name}");
        assert_eq!(Frame::read(&frame.store(&|_| [0; 16]).0).map(|(read, _)| read), Ok(frame), "{name}");
        // Executions of older releases keep their rules: a replay makes the same records.
        if !steps.contains("type: code") {
            assert_eq!(code_in(&after_deep_result(&steps, DEPTH_SINCE - 1).1), None, "{name}");
        }
    }
    // The deepest result itself is an output.
    let (_, turn, frame) = after_deep_result(a, DECIDE_VERSION);
    assert_eq!(code_in(&turn), None);
    assert_eq!(Frame::read(&frame.store(&|_| [0; 16]).0).map(|(read, _)| read), Ok(frame));
}

/// The reason for the limit: what a turn wrote before could not be read again.
#[test]
fn a_frame_of_older_rules_with_such_a_value_cannot_be_read() {
    let steps = "- {id: a, type: bash, command: date}\n\
                 - {id: b, type: tool, tool: s.t, arguments: {a: {b: {c: {d: {e: {f: {g: '@a'}}}}}}}}";
    let (_, turn, frame) = after_deep_result(steps, DEPTH_SINCE - 1);
    assert!(turn.records.iter().any(|record| matches!(record, Record::AttemptStarted { .. })));
    assert!(Frame::read(&frame.store(&|_| [0; 16]).0).is_err());
    const { assert!(DEPTH_MAX < RESULT_DEPTH_MAX + 8) };
}

fn code_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(_) => "done".into(),
        Outcome::Failed(failure) => failure.code,
        Outcome::Child { end, .. } | Outcome::ChildWithUsage { end, .. } => code_of(end.into()),
        Outcome::Stopped(_) | Outcome::Interrupted | Outcome::Cancelled(_) => "stopped".into(),
        Outcome::Reported(_) => "reported".into(),
    }
}

#[test]
fn an_outcome_that_no_journal_could_contain_becomes_a_failure() {
    let large = || Value::Text("x".repeat(VALUE_BYTES_MAX));
    // Empty objects take the most memory for their bytes.
    let hungry = || {
        let object = Value::map([("a", Value::Null)]);
        Value::List(vec![object; (VALUE_MEMORY_BYTES_MAX / 500) as usize])
    };
    let child = |end| Outcome::Child { end, executions: 3 };
    let reported = |report| Outcome::Reported(Box::new(report));
    for (outcome, expected) in [
        (Outcome::Done(nested(RESULT_DEPTH_MAX)), "done"),
        (Outcome::Done(nested(RESULT_DEPTH_MAX + 1)), RECEIPT_UNDECODABLE),
        (Outcome::Done(large()), RECEIPT_UNDECODABLE),
        (Outcome::Done(hungry()), RECEIPT_UNDECODABLE),
        (child(ChildEnd::Done(nested(RESULT_DEPTH_MAX + 1))), RECEIPT_UNDECODABLE),
        (child(ChildEnd::Done(Value::Null)), "done"),
        (child(ChildEnd::Cancelled("why".into())), "stopped"),
        (Outcome::Stopped(nested(1_000)), "stopped"),
        (reported(Report::Continued("task".into())), "reported"),
        (reported(Report::Continued(nested(RESULT_DEPTH_MAX + 1))), RECEIPT_UNDECODABLE),
        (reported(Report::Asked { question: large(), handle: Value::Null }), RECEIPT_UNDECODABLE),
    ] {
        assert_eq!(code_of(outcome.decodable()), expected);
    }
    let Outcome::Child { executions: 3, .. } = child(ChildEnd::Done(nested(1_000))).decodable() else {
        panic!("the executions are counted still")
    };
    assert_eq!(Outcome::Stopped(nested(1_000)).decodable(), Outcome::Stopped(Value::Null));
}

/// An effect that has failed says so with its own code.
#[test]
fn a_failure_loses_only_the_details_that_no_journal_could_contain() {
    let failed = |code: String, message: String, details| {
        let failure = Failure::new(Class::Transient, code, message).with_details(details);
        match Outcome::Failed(failure).decodable() {
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    };
    let deep = failed("tool_error".into(), "no".into(), nested(RESULT_DEPTH_MAX + 1));
    assert_eq!((deep.code.as_str(), deep.class, deep.details), ("tool_error", Class::Transient, Value::Null));
    let kept = failed("tool_error".into(), "no".into(), nested(RESULT_DEPTH_MAX));
    assert_eq!(kept.details, nested(RESULT_DEPTH_MAX));
    let long = failed("c".repeat(FAILURE_CODE_BYTES_MAX + 1), "é".repeat(FAILURE_MESSAGE_BYTES_MAX), Value::Null);
    assert_eq!((long.code.as_str(), long.message.len()), (RECEIPT_UNDECODABLE, FAILURE_MESSAGE_BYTES_MAX));
}

/// The step and the attempt precede the outcome, so a receipt settles its attempt also if the rest is garbage.
#[test]
fn the_head_of_a_receipt_is_decoded_alone() {
    let receipt = |outcome| Input::Receipt { instance: Instance { step: 3, rounds: vec![1, 2] }, attempt: 4, outcome };
    let (honest, deep) = (receipt(Outcome::Interrupted), receipt(Outcome::Done(nested(DEPTH_MAX + 1))));
    let head = Some((Instance { step: 3, rounds: vec![1, 2] }, 4));
    assert!(Input::decode(&deep.encode()).is_err());
    for bytes in [honest.encode(), deep.encode()] {
        assert_eq!(Input::decode_receipt_head(&bytes), head);
    }
    let mut garbage = honest.encode();
    garbage.pop();
    garbage.extend(b"\xff\xff");
    assert!(Input::decode(&garbage).is_err());
    assert_eq!(Input::decode_receipt_head(&garbage), head);
    let others = [Input::Admit, Input::Cancel { reason: "r".into(), by: "b".into() }, start(Value::Null)];
    let others = others.map(|input| input.encode());
    for bytes in others.iter().map(Vec::as_slice).chain([&b""[..], b"\x84", b"\x84\x01", b"\x84\x01\x80\x01", b"\xff"])
    {
        assert_eq!(Input::decode_receipt_head(bytes), None, "{bytes:?}");
    }
}
