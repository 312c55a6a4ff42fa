//! Names of things outside of a definition: unknown workflows, inputs that they refuse, and unknown secrets are warnings of a
//! save and of a validation, and a later save makes them known.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    process::{Organization, everywhere},
    start::{echo, save, start},
};

fn data(text: &str) -> Value {
    mainspring_kernel::definition::read(text.as_bytes(), mainspring_kernel::definition::Syntax::Yaml).unwrap().value
}

/// Saves a definition, and returns its warnings as `CODE PATH: HELP`.
fn warnings(client: &Client, slug: &str, definition: &str) -> Vec<String> {
    let body = Value::map([("slug", Value::from(slug)), ("data", data(definition))]);
    shown(&client.post("/api/workflows/sync", &body).expect(200).json())
}

fn shown(answer: &Value) -> Vec<String> {
    let found = answer.get("warnings").and_then(Value::as_list).expect("warnings");
    let text = |warning: &Value, key: &str| warning.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    found
        .iter()
        .map(|found| format!("{} {}: {}", text(found, "code"), text(found, "path"), text(found, "help")))
        .collect()
}

#[test]
fn unknown_names_are_warnings_until_they_are_known() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let ada = &ours.owner;
        save(ada, "deploy", echo());
        let starts = |name: &str| format!("steps: [{{id: a, type: subworkflow, workflow: {name}}}]");
        assert_eq!(warnings(ada, "one", &starts("deplyo")), ["unknown_workflow steps[0].workflow: write \"deploy\""]);
        assert_eq!(warnings(ada, "one", &starts("deploy")), [] as [&str; 0]);
        let later = warnings(ada, "two", &starts("nightly-report"));
        assert!(later.len() == 1 && later[0].contains("save that workflow before"), "{later:?}");
        let allowed = format!("allow: [unknown_workflow]\n{}", starts("nightly-report"));
        assert_eq!(warnings(ada, "two", &allowed), [] as [&str; 0]);
        let agent = "steps: [{id: a, type: agent, goal: Go, tools: [{workflow: deplyo}]}]";
        let found = warnings(ada, "agent", agent);
        assert!(found.iter().any(|found| found.contains("unknown_workflow steps[0].tools[0].workflow")), "{found:?}");
        // Both are known once they are saved, in the same change too.
        let whole = |slug: &str, text: &str| Value::map([("slug", Value::from(slug)), ("data", data(text))]);
        let child = "inputSchema: {type: object, required: [city], properties: {city: {type: string}}}\n\
            steps: [{id: r, type: return, input: {wind: 3}}]\noutput: {wind: 3}";
        let parent = "steps:\n  - {id: a, type: subworkflow, workflow: weather, input: {town: Bern}}\n";
        let all = Value::List(vec![whole("parent", parent), whole("weather", child)]);
        let body = Value::map([("workflows", all), ("keepOthers", true.into())]);
        let saved = ada.post("/api/workflows/sync-all", &body).expect(200).json();
        let saved = saved.get("workflows").and_then(Value::as_list).unwrap().to_vec();
        let found = shown(&saved[0]);
        assert!(found.len() == 1 && found[0].starts_with("value_not_in_schema steps[0].input"), "{found:?}");
        let definition = Value::map([("definition", Value::from(parent))]);
        let found = shown(&ada.post("/api/definitions/validate", &definition).expect(200).json());
        assert!(found.len() == 1 && found[0].starts_with("value_not_in_schema steps[0].input"), "{found:?}");
        let secret = "steps: [{id: a, type: http, url: \"https://example.com\", headers: {X: {secret: TOKEN}}}]";
        let found = warnings(ada, "secret", secret);
        assert!(found.len() == 1 && found[0].starts_with("unknown_secret steps[0].headers.X.secret"), "{found:?}");
        let refused = start(ada, "two", "r1", Map::new()).expect(400);
        assert!(refused.text_at("error").contains("no such workflow here"), "{refused:?}");
    });
}

#[test]
fn a_repeated_request_says_in_what_it_differs() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        save(&ours.owner, "ends", echo());
        let run = |name: &str, input: Value| {
            let body = [("workflowId", Value::from("ends")), ("clientRequestId", "r1".into())];
            let more = [("variables", Value::map([("name", Value::from(name))])), ("input", input)];
            ours.owner.post("/api/triggers/manual/run", &Value::map(body.into_iter().chain(more)))
        };
        let differs = |answer: &Value| answer.get("differs").and_then(Value::as_list).unwrap().to_vec();
        assert_eq!(differs(&run("Ada", Value::Null).expect(202).json()), Vec::<Value>::new());
        assert_eq!(differs(&run("Ada", Value::Null).expect(200).json()), Vec::<Value>::new());
        let other = run("Bob", Value::from(1u64)).expect(200).json();
        assert_eq!(differs(&other), vec![Value::from("input"), "variables.name".into()], "{other:?}");
    });
}
