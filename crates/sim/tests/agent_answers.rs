//! Runs the vectors of `conformance/vectors/agent_answers.json`: an agent that answers with the text of a case.

use std::{fs, path::Path};

use mainspring_kernel::{json, value::Value};
use mainspring_sim::{run_case, scenario};

/// Returns the scenario of a case: an agent with the schema, and a model that always answers with the text.
fn scenario(case: &Value) -> Value {
    let part = |key: &str| case.get(key).cloned().unwrap_or_default();
    let step = Value::map([
        ("id", "ask".into()),
        ("type", "agent".into()),
        ("goal", "answer".into()),
        ("outputSchema", part("schema")),
        ("outputVariable", "out".into()),
    ]);
    let expect = match case.get("accepted").and_then(Value::as_bool) {
        Some(true) => {
            let value = Value::map([("value", part("value")), ("turns", 1u32.into())]);
            Value::map([("status", "completed".into()), ("output_contains", Value::map([("out", value)]))])
        }
        Some(false) => {
            let contains = case.get("error_contains").cloned().unwrap_or_else(|| Vec::new().into());
            // The first answer and two repairs.
            Value::map([("status", "failed".into()), ("error_contains", contains), ("call_count", 3u32.into())])
        }
        None => panic!("a case without `accepted`: {case:?}"),
    };
    let answer = Value::map([("return", Value::map([("text", part("text"))]))]);
    Value::map([
        ("name", part("id")),
        ("why", part("why")),
        ("definition", Value::map([("steps", Value::from(vec![step]))])),
        ("effects", Value::map([("ask", answer)])),
        ("expect", expect),
    ])
}

#[test]
fn every_answer_has_the_verdict_of_its_case() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors/agent_answers.json");
    let cases = json::value(&fs::read(file).expect("the vectors are there")).expect("JSON");
    let cases = cases.get("cases").and_then(Value::as_list).expect("a list of cases");
    assert!(cases.len() >= 4, "{}", cases.len());
    let scenarios: Vec<Value> = cases.iter().map(scenario).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("agent_answers.scenario.json");
    fs::write(&path, json::compact(&Value::map([("cases", Value::from(scenarios))]))).expect("the file is written");
    for case in scenario::read(&path).unwrap_or_else(|error| panic!("{error}")) {
        let report = run_case(&case);
        assert!(report.holds(), "{}: {}", report.name, report.failures.join("\n"));
    }
}
