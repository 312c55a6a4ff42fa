//! Recordings: the conformance vectors of `conformance/vectors/recording.json`, and hostile calls and results.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use mainspring_kernel::{
    decide::{Action, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    hash::Hash,
    input::{Input, Policy, Start},
    json,
    key::ExecutionKey,
    limits::PLAN_STEPS_MAX,
    plan::Plan,
    recording::Recording,
    state::State,
    value::{Map, Value},
};

const FILE: &str = "vectors/recording.json";

/// The tools of a case: a fixed result, or the arguments.
struct Effects(BTreeMap<String, Option<Value>>);

impl Effects {
    fn of(case: &Value) -> Self {
        let effects = case.get("effects").and_then(Value::as_map).into_iter().flatten();
        Self(effects.map(|(tool, effect)| (tool.clone(), effect.get("return").cloned())).collect())
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let effect = self.0.get(tool).unwrap_or_else(|| panic!("the case has no effect for {tool}"));
        effect.clone().unwrap_or_else(|| arguments.clone())
    }
}

fn call(tool: &str, arguments: &Value) -> Value {
    Value::map([("tool", tool.into()), ("args", arguments.clone())])
}

/// Everything that a case can expect.
fn outcome(case: &Value) -> Map {
    let list = |key: &str| case.get(key).and_then(Value::as_list).unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let effects = Effects::of(case);
    let mut recording = Recording::new(case.get("input").cloned().unwrap_or_default());
    for preset in list("preset") {
        recording.set(&text(preset, "step"), preset.get("output").cloned().unwrap_or_default()).expect("it is set");
    }
    let (mut forwarded, mut seen, mut error) = (Vec::new(), Value::Null, String::new());
    for wanted in list("calls") {
        match recording.prepare(&text(wanted, "tool"), wanted.get("args").unwrap_or(&Value::Null)) {
            Ok(prepared) => {
                forwarded.push(call(&prepared.tool, &prepared.arguments));
                let result = effects.call(&prepared.tool, &prepared.arguments);
                recording.record(prepared, result.clone()).expect("it is recorded");
                seen = result;
            }
            Err(why) => error = why.to_string(),
        }
    }
    let mut outcome = Map::from([
        ("forwarded".to_owned(), forwarded.into()),
        ("caller_sees".into(), seen),
        ("caller_sees_error_contains".into(), error.into()),
        ("recorded_steps".into(), recording.definition_steps().into()),
    ]);
    if let Some(again) = case.get("replay") {
        let input = again.get("input").cloned().unwrap_or_default();
        outcome.insert("replay".into(), replay(&recording, input, &effects));
    }
    outcome
}

/// Runs the recorded workflow with another input.
fn replay(recording: &Recording, input: Value, effects: &Effects) -> Value {
    let text = json::pretty(&recording.definition("again"));
    let document = read(text.as_bytes(), Syntax::Json).expect("it reads");
    let plan: Plan = compile(&document).unwrap_or_else(|found| panic!("{text}\n{found:?}")).plan;
    let mut state = State::new(ExecutionKey([7; 16]), Arc::new(plan));
    let mut inputs = vec![Input::Start(Box::new(Start {
        execution_id: "again".into(),
        workflow_hash: Hash::default(),
        plan_hash: Hash::default(),
        input,
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy { max_steps: 1000, max_parallel: 4, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }))];
    let mut forwarded = Vec::new();
    while let Some(input) = inputs.pop() {
        // Steps whose result was set are functions that return their input.
        let answer = |asked: &[&Evaluation]| {
            let answered = asked.iter().map(|evaluation| match evaluation {
                Evaluation::Function(function) => Evaluated::of(Ok(function.input.clone())),
                Evaluation::Check(check) => Evaluated::of(Ok(check.value.clone())),
            });
            answered.collect()
        };
        let turn = decide_with(&mut state, &input, 0, answer).expect("legal");
        for action in turn.actions {
            let Action::Perform { instance, attempt } = action else { continue };
            let tool = attempt.params.get("tool").and_then(Value::as_text).unwrap_or_default();
            let arguments = attempt.params.get("arguments").cloned().unwrap_or_default();
            forwarded.push(call(tool, &arguments));
            let outcome = Outcome::Done(effects.call(tool, &arguments));
            inputs.push(Input::Receipt { instance, attempt: attempt.number, outcome });
        }
        if state.journal.is_split {
            inputs.push(Input::Continue);
        }
    }
    Value::map([("status", state.status().name().into()), ("forwarded", forwarded.into())])
}

#[test]
fn every_case_holds() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let cases = json::value(&fs::read(conformance.join(FILE)).unwrap()).unwrap();
    let cases = cases.get("cases").and_then(Value::as_list).unwrap();
    assert!(cases.len() >= 4, "cases are never removed");
    let mut wrong = Vec::new();
    for case in cases {
        let id = case.get("id").and_then(Value::as_text).unwrap();
        let is = outcome(case);
        for (key, expected) in case.get("expect").and_then(Value::as_map).unwrap() {
            let found = is.get(key).unwrap_or_else(|| panic!("{id}: this test does not know `{key}`"));
            let holds = match (key.as_str(), expected, found) {
                ("caller_sees_error_contains", Value::Text(part), Value::Text(whole)) => whole.contains(part),
                _ => expected == found,
            };
            if !holds {
                wrong.push(format!("{id}: `{key}` is {} and not {}", json::compact(found), json::compact(expected)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn value(text: &str) -> Value {
    json::value(text.as_bytes()).unwrap()
}

/// A text of a tool that looks like a reference stays text: in later calls, and when the workflow runs again.
#[test]
fn a_result_is_never_read_as_a_reference() {
    let hostile = r#"{"text": "@input.secret and @get_1.text @@ {{x}}"}"#;
    let mut recording = Recording::new(value(r#"{"secret": "hidden"}"#));
    let prepared = recording.prepare("GET", &value("{}")).unwrap();
    recording.record(prepared, value(hostile)).unwrap();
    recording.set("known", value(hostile)).unwrap();
    for step in ["get_1", "known"] {
        let used = recording.prepare("SEND", &value(&format!(r#"{{"body": "@{step}.text"}}"#))).unwrap();
        assert_eq!(used.arguments.get("body"), value(hostile).get("text"), "{step}");
    }
    let used = recording.prepare("SEND", &value(r#"{"body": "@known.text"}"#)).unwrap();
    recording.record(used, Value::Null).unwrap();
    let effects = BTreeMap::from([("GET".to_owned(), Some(Value::Null)), ("SEND".to_owned(), Some(Value::Null))]);
    let again = replay(&recording, value(r#"{"secret": "other"}"#), &Effects(effects));
    let sent = again.get("forwarded").and_then(Value::as_list).and_then(|calls| calls.last()).unwrap();
    assert_eq!(sent.get("args").and_then(|args| args.get("body")), value(hostile).get("text"));
    assert_eq!(again.get("status").and_then(Value::as_text), Some("completed"));
}

#[test]
fn steps_have_names_that_references_can_use() {
    let mut recording = Recording::new(Value::Null);
    let mut check = |tool: &str, expected: &str| {
        let prepared = recording.prepare(tool, &value("{}")).unwrap();
        assert_eq!(prepared.step, expected);
        recording.record(prepared, Value::Null).unwrap();
    };
    check("GET_USER", "get_user_1");
    check("get_user", "get_user_2");
    check("github.get-issue", "github_get_issue_1");
    check("7zip", "tool_7zip_1");
    check("größe", "gr__e_1");
    recording.set("get_user_3", Value::Null).unwrap();
    assert_eq!(recording.prepare("GET_USER", &value("{}")).unwrap().step, "get_user_4");
}

#[test]
fn an_unrecordable_call_is_an_error_without_effect() {
    let mut recording = Recording::new(value(r#"{"a": 1}"#));
    let prepared = recording.prepare("GET", &value("{}")).unwrap();
    recording.record(prepared.clone(), value(r#"{"id": 1}"#)).unwrap();
    let before = recording.clone();
    let check = |tool: &str, arguments: &str, expected: &str| {
        let error = recording.prepare(tool, &value(arguments)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("GET", r#"{"id": "@nobody_1.id"}"#, "`@nobody_1.id` leads nowhere");
    check("GET", r#"{"id": "@get_1.name"}"#, "`@get_1.name` leads nowhere");
    check("GET", r#"{"deep": [{"id": "@input.b"}]}"#, "`@input.b` leads nowhere");
    check("GET", r#"{"id": "@vars.a"}"#, "`@vars.a` leads nowhere");
    // In a workflow, these would be references.
    check("GET", r#"{"id": "for @vars.a"}"#, "`@vars.a` leads nowhere");
    check("GET", r#"{"id": "at @ctx.now"}"#, "`@ctx.now` leads nowhere");
    check("GET", "[1]", "not an object");
    check("GET", r#""@get_1.id""#, "not an object");
    check("", "{}", "not a name of a tool");
    check("@input.a", "{}", "not a name of a tool");
    assert!(recording.record(prepared, Value::Null).unwrap_err().to_string().contains("has a step `get_1`"));
    for name in ["input", "a b", "", "1", "@x", "\u{1b}[31m"] {
        let error = recording.set(name, Value::Null).unwrap_err().to_string();
        assert!(error.contains("not a name of a step") && !error.contains('\u{1b}'), "{error}");
    }
    assert_eq!(recording, before);
}

#[test]
fn a_recording_has_at_most_as_many_steps_as_a_workflow() {
    let mut recording = Recording::new(Value::Null);
    for number in 0..PLAN_STEPS_MAX {
        recording.set(&format!("s{number}"), Value::Null).unwrap();
    }
    assert!(recording.set("one_more", Value::Null).is_err());
    assert!(recording.prepare("GET", &value("{}")).is_err());
}
