//! Judges scripted results as the executors judge real ones: a status that a request does not expect, or an exit code
//! other than 0, is a failure. A scripted answer of a model has the keys of a real one.

use mainspring_kernel::{
    definition::nearest,
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    value::Value,
};

/// The keys of a model's answer.
const ANSWER_KEYS: [&str; 6] = ["text", "toolCalls", "usage", "stopReason", "model", "raw"];

/// Words for the parts of a model's answer in the formats of providers.
const ANSWER_WORDS: [(&str, &str); 8] = [
    ("tool_calls", "toolCalls"),
    ("tools", "toolCalls"),
    ("calls", "toolCalls"),
    ("content", "text"),
    ("message", "text"),
    ("answer", "text"),
    ("output", "text"),
    ("finish_reason", "stopReason"),
];

/// Returns the outcome of a call with a scripted result.
pub(super) fn outcome(attempt: &Attempt, result: &Value) -> Result<Outcome, String> {
    if is_model_call(&attempt.step) {
        check_answer(result)?;
    }
    let failure = match attempt.effect.as_str() {
        "http" => status_failure(attempt, result)?,
        "bash" => exit_failure(result)?,
        _ => None,
    };
    Ok(failure.map_or_else(|| Outcome::Done(result.clone()), Outcome::Failed))
}

/// True for the name of a model call of an agent, such as `ask#2`; a tool call is `ask#2.1`.
fn is_model_call(step: &str) -> bool {
    step.rsplit_once('#').is_some_and(|(_, turn)| turn.bytes().all(|byte| byte.is_ascii_digit()))
}

fn check_answer(answer: &Value) -> Result<(), String> {
    let Some(map) = answer.as_map() else { return Ok(()) };
    let Some(unknown) = map.keys().find(|key| !ANSWER_KEYS.contains(&key.as_str())) else { return Ok(()) };
    let word = ANSWER_WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(unknown)).map(|(_, own)| *own);
    let meant = word.or_else(|| nearest(unknown, ANSWER_KEYS));
    let help = match meant.filter(|own| !map.contains_key(*own)) {
        Some(own) => format!("write `{own}`"),
        None => "write {text: …} for what the model says, as JSON where a schema is expected".into(),
    };
    let known = ANSWER_KEYS.join(", ");
    Err(format!("the key {unknown:?} is none of a model's answer ({known}); {help}"))
}

/// Returns the failure of a status that the request does not expect.
fn status_failure(attempt: &Attempt, result: &Value) -> Result<Option<Failure>, String> {
    let Some(given) = result.get("status") else { return Ok(None) };
    let Some(status) = given.as_u64().filter(|status| (100..600).contains(status)) else {
        return Err("the `status` of an answer is a number from 100 to 599".into());
    };
    let expected = attempt.params.get("expect").and_then(Value::as_list);
    let holds = |item: &Value| match item.as_text() {
        Some(class) => class.strip_suffix("xx").is_some_and(|digit| digit.parse() == Ok(status / 100)),
        None => item.as_u64() == Some(status),
    };
    let is_expected = expected.map_or(status / 100 == 2, |expected| expected.iter().any(holds));
    Ok((!is_expected).then(|| {
        let url = attempt.params.get("url").and_then(Value::as_text).unwrap_or("the server");
        let code = format!("http_status:{status}");
        Failure::new(class_of_status(status), code, format!("{url} answered {status}")).with_details(result.clone())
    }))
}

/// Returns the failure of a script that did not end with 0.
fn exit_failure(result: &Value) -> Result<Option<Failure>, String> {
    let Some(given) = result.get("exitCode").filter(|given| **given != Value::Null) else { return Ok(None) };
    match given.as_u64().filter(|code| *code < 256) {
        Some(0) => Ok(None),
        Some(code) => {
            let message = format!("the script exited with code {code}");
            let failure = Failure::new(Class::Failed, format!("bash_exit_code:{code}"), message);
            Ok(Some(failure.with_details(result.clone())))
        }
        None => Err("the `exitCode` of a script is a number from 0 to 255".into()),
    }
}

/// Returns the class of a status that is not expected, on which retries depend.
pub(super) fn class_of_status(status: u64) -> Class {
    match status {
        408 => Class::Timeout,
        429 => Class::RateLimited,
        503 => Class::Unavailable,
        425 | 500..=599 => Class::Transient,
        _ => Class::Failed,
    }
}
