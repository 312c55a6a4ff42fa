//! Logs: every line is an object with the relevant ids, and contains no inputs or outputs of steps.

use std::io::BufRead;

use mainspring_kernel::{json, value::Value};
use rustix::process::{Pid, Signal, kill_process};

use super::{support::TestDir, *};

#[track_caller]
fn line(text: &str) -> Value {
    let value = json::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).value;
    let timestamp = value.get("timestamp").and_then(Value::as_text).expect("a time");
    assert!(timestamp.ends_with('Z') && timestamp.len() == 27 && &timestamp[10..11] == "T", "{timestamp}");
    for key in ["level", "message", "target"] {
        assert!(value.get(key).is_some(), "{text}");
    }
    value
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_text).unwrap_or_default()
}

#[test]
fn lines_have_ids_in_fields_and_no_payload() {
    let dir = TestDir::new();
    let definition_text = r#"
name: told
steps: [{id: work, type: bash, env: {A: confidential-value}, command: "echo confidential-output"}]
"#;
    definition(&dir, "told", definition_text);
    let command = dir.mainspring(&["run", "told.yaml", "--log", "debug", "--log-format", "json", "--id", "night"]);
    let (code, _, stderr) = Running::start(command).end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("confidential"), "{stderr}");
    let lines: Vec<Value> = stderr.lines().map(line).collect();
    let [(key, _)] = &journals(&dir)[..] else { panic!("one execution") };
    let key = key.to_string();
    let of = |message: &str| {
        let found = lines.iter().find(|line| text(line, "message") == message);
        found.unwrap_or_else(|| panic!("{message:?} is not told: {stderr}"))
    };
    for message in
        ["an execution has started", "an execution has ended", "an attempt has started", "an attempt has ended"]
    {
        assert_eq!(text(of(message), "execution"), key, "{message}");
    }
    let begun = of("an execution has started");
    assert_eq!((text(begun, "execution_id"), text(begun, "workflow")), ("night", "told"));
    let ended = of("an attempt has ended");
    assert_eq!((text(ended, "step"), text(ended, "outcome")), ("work", "done"));
    assert_eq!(ended.get("attempt").and_then(Value::as_u64), Some(1));
    assert_eq!(text(of("an execution has ended"), "status"), "completed");
    assert_eq!(text(of("the engine starts"), "level"), "INFO");
}

#[test]
fn commands_log_nothing_by_default_and_reject_wrong_levels() {
    let dir = TestDir::new();
    definition(&dir, "told", "steps: [{id: work, type: bash, command: 'true'}]");
    let (code, _, stderr) = Running::start(dir.mainspring(&["run", "told.yaml"])).end();
    assert_eq!((code, &*stderr), (Some(0), ""));
    let (code, _, stderr) = Running::start(dir.mainspring(&["run", "told.yaml", "--log", "loud"])).end();
    assert_eq!(code, Some(10), "{stderr}");
    assert!(stderr.contains("off, error, warn, info or debug"), "{stderr}");
}

#[test]
fn a_node_logs_its_start_and_end_unless_off() {
    for (level, told) in [(None, true), (Some("off"), false)] {
        let dir = TestDir::new();
        let mut command = dir.mainspring(&["node", "--log-format", "json"]);
        command.envs(level.map(|level| ("MAINSPRING_LOG", level)));
        let mut running = Running::start(command);
        let mut said = String::new();
        while !said.contains("working on") {
            assert!(running.stderr.read_line(&mut said).unwrap() > 0, "{said}");
        }
        kill_process(Pid::from_child(&running.child), Signal::TERM).unwrap();
        let (code, _, rest) = running.end();
        assert_eq!(code, Some(0), "{rest}");
        let all = said + &rest;
        assert_eq!(all.contains("the engine starts") && all.contains("the engine ends"), told, "{all}");
    }
}
