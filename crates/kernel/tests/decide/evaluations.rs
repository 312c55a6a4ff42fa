//! Tests of evaluations: the requests to functions and schema checks, and the effect of their results.

use mainspring_kernel::{
    cbor,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    limits::{CODE_TIMEOUT_DEFAULT_MS, OUTPUT_BYTES_MAX},
    value::Value,
};

use super::{KEY, fresh, input, records_words, start, take_in_whole};

/// The limit of outputs is lower than that of inputs.
#[test]
fn an_output_has_an_exact_limit() {
    let around = cbor::encode(&Value::Text("x".repeat(100_000))).len() - 100_000;
    for (bytes, decided) in [
        (OUTPUT_BYTES_MAX, "Started, StepStarted a, StepCompleted a, EndingBegun completed, Ended"),
        (
            OUTPUT_BYTES_MAX + 1,
            "Started, StepStarted a, StepFailed a output_too_large, EndingBegun failed output_too_large, Ended",
        ),
        (
            OUTPUT_BYTES_MAX + 2,
            "Started, StepStarted a, StepFailed a output_too_large, EndingBegun failed output_too_large, Ended",
        ),
    ] {
        let mut state = fresh(KEY, "- {id: a, type: code, code: f}");
        let answer = |_: &[&Evaluation]| vec![Evaluated::of(Ok(Value::Text("x".repeat(bytes - around))))];
        let turn = take_in_whole(&mut state, &start(Value::Null), 0, answer);
        assert_eq!(records_words(&state.plan, &turn), decided, "{bytes}");
    }
}

/// The timeout of a code step applies to its function. The timeout of an effect does not apply to its transform, which
/// runs afterwards.
#[test]
fn a_function_has_the_time_of_its_step() {
    for (steps, expected) in [
        ("- {id: a, type: code, code: f, timeoutMs: 7}", 7),
        ("- {id: a, type: code, code: f}", CODE_TIMEOUT_DEFAULT_MS),
        ("- {id: a, type: tool, tool: T, timeoutMs: 7, transform: f}", CODE_TIMEOUT_DEFAULT_MS),
    ] {
        let mut asked_ms = Vec::new();
        let mut answer = |asked: &[&Evaluation]| {
            let of = |evaluation: &&Evaluation| match evaluation {
                Evaluation::Function(function) => function.timeout_ms,
                Evaluation::Check(_) => panic!("nothing is to be checked"),
            };
            asked_ms.extend(asked.iter().map(of));
            vec![Evaluated::of(Ok(Value::Null)); asked.len()]
        };
        let mut state = fresh(KEY, steps);
        let done = input(&state.plan, "a#1 done");
        for given in [start(Value::Null), done] {
            take_in_whole(&mut state, &given, 0, &mut answer);
        }
        assert_eq!(asked_ms, [expected], "{steps}");
    }
}

/// A failure message names the step and the function. A violated schema has a code of its own.
#[test]
fn a_failure_of_an_evaluation_names_its_step() {
    let found = || Failure::new(Class::Internal, "found", "not like this");
    for (steps, code, class, message) in [
        ("- {id: a, type: code, code: f}", "found", Class::Internal, "step `a`: not like this"),
        (
            "- {id: a, type: tool, tool: T, transform: f}",
            "found",
            Class::Internal,
            "step `a`: its transform: not like this",
        ),
        (
            "- {id: a, type: tool, tool: T, outputSchema: {type: object}}",
            "invalid_output",
            Class::Invalid,
            "step `a`: its output does not fit its outputSchema: not like this",
        ),
    ] {
        let mut state = fresh(KEY, steps);
        let done = input(&state.plan, "a#1 done");
        for given in [start(Value::Null), done] {
            take_in_whole(&mut state, &given, 0, |asked| vec![Evaluated::of(Err(found())); asked.len()]);
        }
        let failure = state.steps.values().next().and_then(|step| step.failure.clone()).expect("it has failed");
        assert_eq!((failure.code.as_str(), failure.class, failure.message.as_str()), (code, class, message));
    }
}
