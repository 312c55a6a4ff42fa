//! The conformance vectors of the command line: every case of `conformance/vectors/cli.json`.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};

mod support;
use support::{Answer, WORKFLOW, at, call, missing};

const FILE: &str = "vectors/cli.json";

/// Variables of a case: `workspace`, and values that earlier calls captured.
type Names = BTreeMap<String, String>;

#[test]
fn every_case_that_this_build_covers() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let uncovered = fs::read_to_string(conformance.join("uncovered.txt")).unwrap();
    let is_covered = |id: &str| !uncovered.lines().any(|line| line.trim() == format!("{FILE} :: {id}"));
    let cases = json::read(&fs::read(conformance.join(FILE)).unwrap()).unwrap().value;
    let cases = list(&cases, "cases");
    assert!(cases.len() >= 19, "cases are never taken away");
    let mut wrong = Vec::new();
    for case in cases {
        let id = case.get("id").and_then(Value::as_text).unwrap();
        match (run(case), is_covered(id)) {
            (Err(why), true) => wrong.push(format!("{id}: {why}")),
            (Ok(()), false) => wrong.push(format!("{id} holds: remove it from uncovered.txt")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the calls of a case in one empty folder.
fn run(case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().to_str().unwrap().to_string();
    let mut names = Names::from([("workspace".to_string(), workspace)]);
    for (number, each) in list(case, "calls").iter().enumerate() {
        let mut command = Command::new(WORKFLOW);
        command.args(list(each, "args").iter().map(|argument| with_names(argument.as_text().unwrap(), &names)));
        command.current_dir(folder.path()).env("HOME", folder.path()).env_remove("MAINSPRING_KEY_FILE");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("XDG_")) {
            command.env_remove(name);
        }
        let stdin = match each.get("stdin") {
            None => String::new(),
            Some(Value::Text(text)) => with_names(text, &names),
            Some(value) => with_names(&compact(value), &names),
        };
        let begun = Instant::now();
        let answer = call(command, stdin.as_bytes());
        let wrong = check(each, &answer, begun.elapsed(), folder.path());
        wrong.map_err(|why| format!("call {number}: {why}; it answered {answer:#?}"))?;
        if let Some(Value::Map(captures)) = each.get("capture") {
            for (name, path) in captures {
                let Value::Text(value) = at(&answer.envelope(), path.as_text().unwrap()) else {
                    return Err(format!("call {number}: nothing to capture as {name}"));
                };
                names.insert(name.clone(), value);
            }
        }
    }
    Ok(())
}

/// Each expectation has its own arm, so that an unknown one fails.
fn check(expected: &Value, answer: &Answer, took: Duration, folder: &Path) -> Result<(), String> {
    let lines = |name: &str| fs::read_to_string(folder.join(name)).map_or(0, |text| text.lines().count() as u64);
    for (key, wanted) in expected.as_map().unwrap() {
        let milliseconds = || u128::from(wanted.as_u64().unwrap());
        let is_met = match key.as_str() {
            "args" | "stdin" | "capture" => true,
            "exitCode" => exit_codes(wanted).contains(&answer.exit),
            "envelope" => match missing(&answer.envelope(), wanted, "envelope") {
                Some(why) => return Err(why),
                None => true,
            },
            "stdout_contains" => texts(wanted).all(|text| answer.stdout.contains(text)),
            "stderr_contains" => texts(wanted).all(|text| answer.stderr.contains(text)),
            "stderr_events" => {
                let mut events = answer.events().into_iter();
                texts(wanted).all(|kind| events.any(|event| event.get("type").and_then(Value::as_text) == Some(kind)))
            }
            "no_events" => answer.events().is_empty() == wanted.as_bool().unwrap(),
            "files_absent" => texts(wanted).all(|name| !folder.join(name).exists()),
            "lines_in" => wanted.as_map().unwrap().iter().all(|(name, count)| count.as_u64() == Some(lines(name))),
            "min_wall_ms" => took.as_millis() >= milliseconds(),
            "max_wall_ms" => took.as_millis() <= milliseconds(),
            unknown => panic!("`{unknown}` is an expectation that this test does not know"),
        };
        if !is_met {
            return Err(format!("{key} is to be {}", compact(wanted)));
        }
    }
    Ok(())
}

fn exit_codes(wanted: &Value) -> Vec<Option<i32>> {
    let code = |value: &Value| value.as_u64().and_then(|code| i32::try_from(code).ok());
    match wanted {
        Value::List(codes) => codes.iter().map(code).collect(),
        one => vec![code(one)],
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_list().unwrap().iter().map(|text| text.as_text().unwrap())
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_list).unwrap_or_default()
}

fn with_names(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}
