//! Scenarios by the API: run, saved with a workflow, and checked before a proposal is applied.

use mainspring_kernel::value::Value;

use super::{
    client::{Client, Reply},
    process::{Organization, Server},
};

/// A workflow that asks for a name and runs one command.
const GREETS: &str = "constraints: {allowSelfModification: true}\n\
    steps: [{id: greet, type: bash, command: 'echo hello', onInterrupted: retry}]\n";

/// As [`GREETS`], with another command.
const PARTS: &str = "constraints: {allowSelfModification: true}\n\
    steps: [{id: greet, type: bash, command: 'echo goodbye', onInterrupted: retry}]\n";

/// A scenario of [`GREETS`]. The call has its arguments, so that another command violates it.
const GREETING: &str = "name: greets\ndefinition: flow.yaml\neffects: {greet: {return: {stdout: hello}}}\n\
    expect: {status: completed, calls: [{tool: bash, args: {command: echo hello, env: {}}}]}\n";

fn post(client: &Client, path: &str, fields: &[(&str, Value)]) -> Reply {
    client.post(path, &Value::map(fields.iter().cloned()))
}

fn run(client: &Client, fields: &[(&str, Value)]) -> Reply {
    post(client, "/api/scenarios/run", fields)
}

fn first_case(reply: &Reply) -> Value {
    reply.json().get("cases").and_then(Value::as_list).expect("cases")[0].clone()
}

fn failures(reply: &Reply) -> String {
    let case = first_case(reply);
    let failures = case.get("failures").and_then(Value::as_list).expect("failures");
    failures.iter().filter_map(Value::as_text).collect::<Vec<_>>().join("\n")
}

fn sync(client: &Client, id: &str, text: &str) -> String {
    let fields = [("id", Value::from(id)), ("data", text.into())];
    post(client, "/api/workflows/sync", &fields).expect(200).text_at("workflowHash")
}

fn put(client: &Client, files: &[(&str, &str)]) -> Reply {
    let files = Value::map(files.iter().map(|(name, text)| (*name, Value::from(*text))));
    let body = mainspring_kernel::json::compact(&Value::map([("files", files)]));
    client.send("PUT", "/api/workflows/w/scenarios", &[], Some(&body))
}

#[test]
fn scenarios_run_with_the_definition_of_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let passed = run(&owner, &[("scenarios", GREETING.into()), ("definition", GREETS.into())]).expect(200);
    let case = first_case(&passed);
    assert_eq!((passed.json().get("ok"), case.get("ok")), (Some(&true.into()), Some(&true.into())), "{passed:?}");
    assert_eq!(case.get("modes").and_then(Value::as_list).map(<[_]>::len), Some(4));
    let failed = run(&owner, &[("scenarios", GREETING.into()), ("definition", PARTS.into())]).expect(200);
    assert_eq!(failed.json().get("failed"), Some(&1u64.into()));
    assert!(failures(&failed).contains("echo goodbye"), "{failed:?}");
    let other = run(&owner, &[("scenarios", GREETING.into()), ("definition", GREETS.into()), ("only", "x".into())]);
    assert_eq!(other.expect(200).json().get("cases").and_then(Value::as_list).map(<[_]>::len), Some(0));
    // A definition with a mistake is a result, and one that a workflow has needs no text.
    let wrong = run(&owner, &[("scenarios", GREETING.into()), ("definition", "steps: [{type: nothing}]".into())]);
    assert!(failures(&wrong.expect(200)).contains("the definition was refused"));
    sync(&owner, "w", GREETS);
    let stored = run(&owner, &[("scenarios", GREETING.into()), ("workflowId", "w".into())]).expect(200);
    assert_eq!(stored.json().get("passed"), Some(&1u64.into()));
    let both = [("scenarios", GREETING.into()), ("workflowId", "w".into()), ("definition", GREETS.into())];
    run(&owner, &both).expect(400);
    run(&owner, &[("scenarios", GREETING.into()), ("workflowId", "none".into())]).expect(404);
}

#[test]
fn a_scenario_reads_no_file_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let file = folder.path().join("secret.yaml");
    std::fs::write(&file, "steps: [{id: found, type: return, input: planted}]\n").unwrap();
    for path in [file.display().to_string(), "../../etc/passwd".into()] {
        let text = format!("name: n\ndefinition: {path}\nexpect: {{status: completed}}\n");
        let refused = run(&owner, &[("scenarios", text.as_str().into())]).expect(400);
        assert!(refused.text_at("error").contains("a server reads no files"), "{refused:?}");
        let text = format!(
            "name: n\ndefinition: {{steps: [{{id: a, type: subworkflow, workflow: w}}]}}\nworkflows: {{w: {path}}}\n\
             expect: {{status: completed}}\n"
        );
        let refused = run(&owner, &[("scenarios", text.as_str().into())]).expect(400);
        assert!(!refused.text.contains("planted"), "{refused:?}");
    }
    // A workflow is found by its name in the store, and not beside a file.
    let parent =
        "name: n\ndefinition: {steps: [{id: a, type: subworkflow, workflow: secret}]}\nexpect: {status: completed}\n";
    let missing = run(&owner, &[("scenarios", parent.into())]).expect(200);
    assert!(failures(&missing).contains("`secret` is started and not given"), "{missing:?}");
    sync(&owner, "secret", "steps: [{id: b, type: return, input: 1}]\n");
    let found = run(&owner, &[("scenarios", parent.into())]).expect(200);
    assert_eq!(found.json().get("passed"), Some(&1u64.into()), "{found:?}");
}

#[test]
fn scenarios_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let case = |name: usize| format!("{{name: c{name}, definition: f, expect: {{status: completed}}}}");
    let cases = (0..201).map(case).collect::<Vec<_>>().join(", ");
    let refused =
        run(&owner, &[("scenarios", format!("cases: [{cases}]").as_str().into()), ("definition", GREETS.into())]);
    assert!(refused.expect(400).text.contains("at most 200"));
    // They are counted before they are read: these have mistakes as well.
    let wrong =
        run(&owner, &[("scenarios", format!("cases:\n{}", "- {}\n".repeat(2_000)).as_str().into())]).expect(400);
    assert!(wrong.text.contains("there are 2000 cases") && !wrong.text.contains("is missing"), "{wrong:?}");
    let inbox = format!("name: n\ndefinition: f\ninbox: [{}0]\nexpect: {{status: completed}}\n", "0, ".repeat(999));
    let wrong = run(&owner, &[("scenarios", inbox.as_str().into()), ("definition", GREETS.into())]).expect(400);
    assert!(wrong.text_at("error").trim_end().ends_with("and 950 more"), "{wrong:?}");
    // Thirty rounds with 200 KB each are more than the journals may have.
    let large = "x".repeat(200_000);
    let list: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    let list = list.join(", ");
    let rounds = "steps: [{id: each, type: loop, forEach: {ref: '@input.list'}, steps: [{id: big, type: bash, command: ls, onInterrupted: retry}]}]\n";
    let text = format!(
        "name: n\ndefinition: f\ninput: {{list: [{list}]}}\neffects: {{big: {{return: {{stdout: {large}}}}}}}\nexpect: {{status: completed}}\n"
    );
    let bounded = run(&owner, &[("scenarios", text.as_str().into()), ("definition", rounds.into())]).expect(200);
    assert!(failures(&bounded).contains("more than 4194304 bytes"), "{}", failures(&bounded));
    assert!(bounded.text.len() < 200_000);
    let unreadable = run(&owner, &[("scenarios", "name: [".into())]).expect(400);
    assert!(unreadable.text_at("error").contains("cannot be read"), "{unreadable:?}");
}

#[test]
fn scenarios_of_a_workflow_decide_whether_a_proposal_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let owner = &ours.owner;
    let base = sync(owner, "w", GREETS);
    owner.get("/api/workflows/w/scenarios").expect(404);
    put(&ours.member("bob", "member"), &[("a", GREETING)]).expect(403);
    for files in [&[][..], &[("", GREETING)], &[("a/b", GREETING)]] {
        put(owner, files).expect(400);
    }
    put(owner, &[("a.scenario.yaml", "name: [")]).expect(400);
    let saved = put(owner, &[("a.scenario.yaml", GREETING)]).expect(200);
    let results = saved.json().get("results").cloned().unwrap();
    assert_eq!(results.get("ok"), Some(&true.into()));
    let path = |id: &str, verb: &str| format!("/api/workflows/w/proposals/{id}{verb}");
    let propose = |text: &str| {
        let change = Value::map([("proposedWorkflow", definition(text)), ("summary", "s".into())]);
        let body = [("baseWorkflowHash", Value::from(base.as_str())), ("proposal", change)];
        post(owner, "/api/workflows/w/proposals", &body).expect(201)
    };
    let approve = |id: &str| post(owner, &path(id, "/review"), &[("approve", true.into())]).expect(200);
    let apply = |id: &str| owner.send("POST", &path(id, "/apply"), &[], Some("{}"));
    // The author is told at once, and the definition stays as it is.
    let failing = propose(PARTS);
    assert!(failing.text_at("scenarioFailure").contains("echo goodbye"), "{failing:?}");
    let id = failing.text_at("id");
    approve(&id);
    let refused = apply(&id).expect(409);
    assert!(refused.text_at("error").contains("1 of 1 scenarios"), "{refused:?}");
    let failed = owner.get(&path(&id, "")).expect(200);
    assert_eq!(failed.text_at("status"), "failed");
    assert_eq!(owner.get("/api/workflows/w").expect(200).text_at("workflowHash"), base);
    // Scenarios that change after the review void it.
    let id = propose(PARTS).text_at("id");
    approve(&id);
    let parting = GREETING.replace("echo hello", "echo goodbye");
    let results = put(owner, &[("a.scenario.yaml", &parting)]).expect(200).json();
    assert_eq!(results.get("results").and_then(|results| results.get("failed")), Some(&1u64.into()));
    assert!(apply(&id).expect(409).text_at("error").contains("The review is void"));
    approve(&id);
    apply(&id).expect(200);
    let run = post(owner, "/api/workflows/w/scenarios/run", &[]).expect(200);
    assert_eq!(run.json().get("ok"), Some(&true.into()));
    let before = post(owner, "/api/workflows/w/scenarios/run", &[("definition", GREETS.into())]).expect(200);
    assert_eq!(before.json().get("ok"), Some(&false.into()));
    // They go with the workflow.
    owner.send("DELETE", "/api/workflows/w", &[], None).expect(204);
    sync(owner, "w", GREETS);
    owner.get("/api/workflows/w/scenarios").expect(404);
}

/// A definition as a value.
fn definition(text: &str) -> Value {
    mainspring_kernel::definition::read(text.as_bytes(), mainspring_kernel::definition::Syntax::Yaml).unwrap().value
}
