//! The outcomes of scripts as a sandbox reports them: only those that a script can have.

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    value::{Map, Value},
};

use super::{fields::Fields, limits::FAILURE_TEXT_BYTES_MAX};
use crate::shell::STREAM_BYTES_MAX;

/// The failures of a script that was not run or was ended, with their classes. [`EXIT_CODE`] is the other one.
const FAILURES: [(&str, Class); 15] = [
    ("bash_missing_command", Class::Invalid),
    ("bash_command_invalid", Class::Invalid),
    ("bash_environment_invalid", Class::Invalid),
    ("bash_missing_workspace", Class::Invalid),
    ("bash_missing_cwd", Class::Invalid),
    ("bash_too_large", Class::Invalid),
    ("bash_missing", Class::Unavailable),
    ("bash_not_started", Class::Unavailable),
    ("disk_full", Class::Unavailable),
    ("script_not_contained", Class::Unavailable),
    ("scripts_off", Class::Policy),
    ("scripts_not_permitted", Class::Policy),
    ("workspace_not_containable", Class::Policy),
    ("cwd_outside_workspace", Class::Policy),
    ("script_limit_exceeded", Class::Policy),
];

/// The failure of a script that has ended, followed by its exit code.
const EXIT_CODE: &str = "bash_exit_code:";

/// The largest exit code: 128 and the number of the last signal are below.
const EXIT_CODE_MAX: u64 = 255;

/// The form of an outcome in a message.
pub(super) fn value_of(outcome: &Outcome) -> Value {
    let of = |status: &str, name: &str, value: Value| Value::map([("status", Value::from(status)), (name, value)]);
    match outcome {
        Outcome::Done(result) => of("done", "result", result.clone()),
        Outcome::Failed(failure) => of("failed", "failure", failure.to_value()),
        Outcome::Stopped(result) => of("stopped", "result", result.clone()),
        // A script has no other outcome.
        _ => of("stopped", "result", Value::Null),
    }
}

/// Reads an outcome. The error has no text of the sandbox.
pub(super) fn outcome_of(value: Value) -> Result<Outcome, String> {
    let mut fields = Fields::of_value(value)?;
    let outcome = match fields.text("status")?.as_str() {
        "done" => Outcome::Done(result_of(fields.take("result")?, Some(0))?),
        "stopped" => match fields.take("result")? {
            Value::Null => Outcome::Stopped(Value::Null),
            result => Outcome::Stopped(result_of(result, None)?),
        },
        "failed" => Outcome::Failed(failure_of(fields.take("failure")?)?),
        _ => return Err("an outcome has an unknown status".into()),
    };
    fields.end()?;
    Ok(outcome)
}

fn failure_of(value: Value) -> Result<Failure, String> {
    let has_details = value.get("details").is_some();
    let mut fields = Fields::of_value(value)?;
    let (code, class, message) = (fields.text("code")?, fields.text("class")?, fields.text("message")?);
    let details = if has_details { fields.take("details")? } else { Value::Null };
    fields.end()?;
    if message.len() > FAILURE_TEXT_BYTES_MAX {
        return Err("the message of a failure is too long".into());
    }
    let unknown = || "a failure has a code or a class that no script has".to_owned();
    let (expected, details) = match code.strip_prefix(EXIT_CODE) {
        Some(number) => {
            let is_exit_code = |exit: &u64| (1..=EXIT_CODE_MAX).contains(exit) && exit.to_string() == number;
            let exit = number.parse().ok().filter(is_exit_code).ok_or_else(unknown)?;
            (Class::Failed, result_of(details, Some(exit))?)
        }
        None => {
            let (_, class) = FAILURES.into_iter().find(|(known, _)| *known == code).ok_or_else(unknown)?;
            let details = if details == Value::Null { details } else { result_of(details, None)? };
            (class, details)
        }
    };
    match class == expected.name() {
        true => Ok(Failure::new(expected, code, message).with_details(details)),
        false => Err(unknown()),
    }
}

/// Reads the result of a script: `{exitCode, stdout, stderr, durationMs, truncated}`, with lengths if it is truncated.
fn result_of(value: Value, exit_code: Option<u64>) -> Result<Value, String> {
    let is_still_running = value.get("stillRunning").is_some();
    let mut fields = Fields::of_value(value)?;
    let mut map = Map::new();
    let exit = fields.take("exitCode")?;
    if exit != exit_code.map_or(Value::Null, Value::from) {
        return Err("a result has another exit code than its outcome".into());
    }
    map.insert("exitCode".into(), exit);
    for name in ["stdout", "stderr"] {
        let text = fields.text(name)?;
        if text.len() > STREAM_BYTES_MAX {
            return Err(format!("`{name}` has more than {STREAM_BYTES_MAX} bytes"));
        }
        map.insert(name.into(), text.into());
    }
    map.insert("durationMs".into(), fields.number("durationMs")?.into());
    let is_truncated = fields.boolean("truncated")?;
    map.insert("truncated".into(), is_truncated.into());
    if is_truncated {
        for name in ["stdoutBytes", "stderrBytes"] {
            map.insert(name.into(), fields.number(name)?.into());
        }
    }
    if is_still_running {
        map.insert("stillRunning".into(), fields.boolean("stillRunning")?.into());
    }
    fields.end()?;
    Ok(Value::Map(map))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::json;

    fn read(text: &str) -> Result<Outcome, String> {
        outcome_of(json::data(text.as_bytes()).unwrap())
    }

    fn result(exit: &str) -> String {
        format!(r#"{{"exitCode":{exit},"stdout":"a","stderr":"","durationMs":5,"truncated":false}}"#)
    }

    #[test]
    fn outcomes_of_scripts_are_read_back() {
        let exit = format!(
            r#"{{"status":"failed","failure":{{"code":"bash_exit_code:3","class":"failed","message":"m","details":{}}}}}"#,
            result("3")
        );
        let off = r#"{"status":"failed","failure":{"code":"scripts_off","class":"policy","message":"m"}}"#.to_owned();
        let done = format!(r#"{{"status":"done","result":{}}}"#, result("0"));
        let stopped = format!(r#"{{"status":"stopped","result":{}}}"#, result("null"));
        for text in [exit, off, done, stopped, r#"{"status":"stopped","result":null}"#.to_owned()] {
            let value = json::data(text.as_bytes()).unwrap();
            assert_eq!(outcome_of(value.clone()).map(|outcome| value_of(&outcome)), Ok(value), "{text}");
        }
    }

    #[test]
    fn no_other_outcome_is_accepted() {
        let failed = |code: &str, class: &str| {
            format!(r#"{{"status":"failed","failure":{{"code":"{code}","class":"{class}","message":"m"}}}}"#)
        };
        let with = |more: &str| format!(r#"{{"status":"done","result":{{"exitCode":0,{more}}}}}"#);
        let long = "x".repeat(STREAM_BYTES_MAX + 1);
        for text in [
            r#"{"status":"interrupted"}"#.to_owned(),
            r#"{"status":"reported","result":null}"#.to_owned(),
            format!(r#"{{"status":"done","result":{}}}"#, result("1")),
            r#"{"status":"done","result":{"approved":true}}"#.to_owned(),
            with(r#""stdout":"","stderr":"","durationMs":1,"truncated":false,"more":1"#),
            with(r#""stdout":"","stderr":"","durationMs":1,"truncated":true"#),
            with(r#""stdout":1,"stderr":"","durationMs":1,"truncated":false"#),
            with(&format!(r#""stdout":"{long}","stderr":"","durationMs":1,"truncated":false"#)),
            failed("budget_exceeded", "policy"),
            failed("scripts_off", "unavailable"),
            failed("bash_exit_code:3", "failed"),
            failed("bash_exit_code:0", "failed"),
            failed("bash_exit_code:+3", "failed"),
            failed("bash_exit_code:999", "failed"),
        ] {
            assert!(read(&text).is_err(), "{}", &text[..text.len().min(200)]);
        }
    }
}
