//! `workflow propose` against a scripted model.

use std::fs;

use mainspring_kernel::{
    definition::{Syntax, read},
    json::compact,
    value::Value,
};

mod support;
use support::{Answer, TestDir, call, hash_of};

const BASE: &str = "constraints: {allowSelfModification: true}\nsteps: [{id: wait, type: sleep, durationMs: 1}]\n";
const CHANGED: &str = "constraints: {allowSelfModification: true}\nsteps: [{id: wait, type: sleep, durationMs: 2}]\n";
const UNKNOWN: &str = "constraints: {allowSelfModification: true}\nsteps: [{id: wait, type: sleep, duration: 2}]\n";

fn value(text: &str) -> Value {
    read(text.as_bytes(), Syntax::Yaml).unwrap().value
}

fn answer(definition: &str) -> String {
    let summary = "Waits longer.".into();
    compact(&Value::map([("workflow", value(definition)), ("summary", summary)]))
}

/// A folder whose settings have a model with these answers.
fn folder(answers: &[(&str, String)]) -> TestDir {
    let dir = TestDir::new();
    let entry = |(when, text): &(&str, String)| {
        let when = Some(*when).filter(|when| !when.is_empty()).map(|when| ("when", Value::from(when)));
        Value::map([("text", Value::from(text.as_str()))].into_iter().chain(when))
    };
    let script = Value::map([("answers", Value::List(answers.iter().map(entry).collect()))]);
    fs::write(dir.root().join("script.json"), compact(&script)).unwrap();
    let settings =
        "models: {test: {provider: openai, model: m, script: script.json}}\npolicy: {verdicts: {execute: deny}}\n";
    fs::write(dir.root().join("config.yaml"), settings).unwrap();
    dir
}

fn propose(dir: &TestDir, hash: &str, intent: &str, stdin: &[u8]) -> Answer {
    let arguments = ["propose", "--workflow-id", "wf_release", "--base-hash", hash, "--intent", intent];
    let mut command = dir.workflow(&arguments);
    command.env("MAINSPRING_CONFIG", dir.root().join("config.yaml"));
    call(command, stdin)
}

fn proposed(dir: &TestDir, base: &str) -> Answer {
    propose(dir, &hash_of(&value(base)), "Wait longer.", &input(base))
}

/// The request with a definition.
fn input(base: &str) -> Vec<u8> {
    support::request(&value(base))
}

#[test]
fn a_change_is_proposed_after_mistakes_are_fixed() {
    let dir = folder(&[("", "Done.".into()), ("no JSON object", answer(UNKNOWN)), ("unknown_key", answer(CHANGED))]);
    let answer = proposed(&dir, BASE).expect(0, "proposal_created");
    assert_eq!(answer.at("ok"), Value::Bool(true));
    assert_eq!(answer.text("proposal.baseHash"), hash_of(&value(BASE)));
    assert_eq!(answer.at("proposal.proposedWorkflow"), value(CHANGED));
    assert_eq!(
        (answer.text("proposal.summary"), answer.text("proposal.riskLevel")),
        ("Waits longer.".into(), "low".into())
    );
    assert!(answer.text("proposal.diff").contains("durationMs"), "{answer:?}");
    let events: Vec<String> =
        answer.events().iter().map(|event| support::at(event, "type").as_text().unwrap().into()).collect();
    assert_eq!(events, ["proposal.model_call", "proposal.model_answer"].repeat(3));
    let last = answer.events().pop().unwrap();
    assert_eq!(support::at(&last, "used.tokens").as_u64(), Some(15), "{last:?}");
}

#[test]
fn unusable_answers_create_no_proposal() {
    let bash = "constraints: {allowSelfModification: true}\nsteps: [{id: wait, type: bash, command: id}]\n";
    for (text, expected) in [
        ("{\"approve\": true}".to_string(), "`workflow` is missing"),
        (answer(BASE), "nothing is changed"),
        (answer(bash), "policy_denied"),
    ] {
        let dir = folder(&[("", text.clone()), ("", text.clone()), ("", text)]);
        let failed = proposed(&dir, BASE).expect(40, "proposal_failed");
        assert_eq!((failed.at("proposal"), failed.text("error.code")), (Value::Null, "proposal_not_written".into()));
        assert!(failed.text("error.message").contains(expected), "{failed:?}");
    }
}

#[test]
fn invalid_requests_call_no_model() {
    let dir = folder(&[("", answer(CHANGED))]);
    let hash = hash_of(&value(BASE));
    let closed = "steps: [{id: wait, type: sleep, durationMs: 1}]\n";
    let zeros = format!("sha256:{}", "0".repeat(64));
    let long = "x".repeat(4_001);
    let cases: [(&str, &str, Vec<u8>, i32, &str); 8] = [
        (&hash, "x", Vec::new(), 10, "bad_request"),
        (&hash, "x", b"[]".to_vec(), 10, "bad_request"),
        (&hash, "x", br#"{"workflow": {}, "model": "m"}"#.to_vec(), 10, "bad_request"),
        (&hash, " ", input(BASE), 10, "bad_request"),
        (&hash, &long, input(BASE), 10, "bad_request"),
        (&zeros, "x", input(BASE), 20, "hash_mismatch"),
        ("x", "x", input(BASE), 20, "hash_mismatch"),
        (&hash_of(&value(closed)), "x", input(closed), 30, "self_modification_disabled"),
    ];
    for (hash, intent, stdin, exit, code) in cases {
        let refused = propose(&dir, hash, intent, &stdin).expect(exit, "proposal_failed");
        assert_eq!(refused.text("error.code"), code, "{refused:?}");
        assert!(refused.events().is_empty(), "{refused:?}");
    }
    fs::write(dir.root().join("config.yaml"), "{}").unwrap();
    let refused = proposed(&dir, BASE).expect(40, "proposal_failed");
    assert_eq!(refused.text("error.code"), "model_unknown");
    assert!(refused.text("error.message").contains("no model is configured"), "{refused:?}");
}
