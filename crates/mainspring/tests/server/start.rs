//! Acceptance criteria 1 and 5 of the first specification, and repeated, rejected and concurrent starts.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
};

/// Saves a workflow with some steps.
pub(crate) fn save(client: &Client, id: &str, steps: Value) -> Reply {
    let data = Value::map([("steps", steps)]);
    client.post("/api/workflows/sync", &Value::map([("id", Value::from(id)), ("data", data)])).expect(200)
}

/// A function that returns its input.
pub(crate) fn echo() -> Value {
    let code = "export default function (input) { return input; }";
    let input = Value::map([("name", Value::from("@vars.name"))]);
    let step = [("id", "echo".into()), ("type", "code".into()), ("code", code.into()), ("input", input)];
    let step = step.into_iter().chain([("outputVariable", Value::from("said"))]);
    Value::List(vec![Value::map(step)])
}

pub(crate) fn start(client: &Client, workflow: &str, request: &str, variables: Map) -> Reply {
    let body = Value::map([
        ("workflowId", Value::from(workflow)),
        ("clientRequestId", request.into()),
        ("variables", variables.into()),
    ]);
    client.post("/api/triggers/manual/run", &body)
}

fn named(name: &str) -> Map {
    Map::from([("name".to_string(), Value::from(name))])
}

#[test]
fn an_execution_keeps_its_definition_until_its_end() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let saved = save(&owner, "hello", echo());
        let started = start(&owner, "hello", "r1", named("Ada")).expect(202);
        let id = started.text_at("executionId");
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed");
        assert_eq!(
            ended.json().get("outputs"),
            Some(&Value::map([("said", named("Ada").into())].map(|(key, value): (&str, Value)| (key, value))))
        );
        // A later change of the workflow does not affect the execution.
        let other = Value::map([(
            "data",
            Value::map([(
                "steps",
                Value::List(vec![Value::map([("type", Value::from("sleep")), ("durationMs", 1u64.into())])]),
            )]),
        )]);
        owner.put("/api/workflows/hello", &other).expect(200);
        let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
        assert_eq!(seen.text_at("workflowHash"), saved.text_at("workflowHash"));
        assert_eq!((seen.text_at("workflowVersion"), saved.text_at("version")), ("1.0.0".into(), "1.0.0".into()));
        assert_eq!(owner.get("/api/workflows/hello").text_at("version"), "1.0.1");
        assert_eq!(seen.json().get("variables"), Some(&named("Ada").into()));
        assert_ne!(owner.get("/api/workflows/hello").text_at("workflowHash"), saved.text_at("workflowHash"));
    });
}

#[test]
fn values_of_every_kind_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let waits = [("id", "go".into()), ("type", Value::from("signal")), ("signal", "go".into())];
    let both = Value::List(vec!["@input".into(), "@go".into()]);
    let data = Value::map([("steps", Value::List(vec![Value::map(waits)])), ("output", both)]);
    owner.post("/api/workflows/sync", &Value::map([("id", Value::from("echo")), ("data", data)])).expect(200);
    let values = [Value::Null, true.into(), 7u64.into(), "t".into(), Value::List(vec![1u64.into()]), Map::new().into()];
    for (number, value) in values.into_iter().enumerate() {
        let asked = [("workflowId", "echo".into()), ("clientRequestId", format!("r{number}").into())];
        let asked = asked.into_iter().chain([("input", value.clone())]);
        let id = owner.post("/api/triggers/manual/run", &Value::map(asked)).expect(202).text_at("executionId");
        let signal = [("id", "s".into()), ("name", "go".into()), ("payload", value.clone())];
        owner.post(&format!("/api/executions/{id}/signal"), &Value::map(signal)).expect(200);
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200).json();
        assert_eq!(ended.get("input"), Some(&value));
        assert_eq!(ended.get("outputs"), Some(&Value::List(vec![value.clone(), value.clone()])), "{ended:?}");
        let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).json();
        let steps = steps.get("steps").and_then(Value::as_list).unwrap().to_vec();
        assert_eq!(steps[0].get("output"), Some(&value));
    }
    let asked = [("workflowId", "echo".into()), ("clientRequestId", "r".into()), ("variables", Value::from("text"))];
    owner.post("/api/triggers/manual/run", &Value::map(asked)).expect(400);
}

#[test]
fn a_repeated_request_returns_the_first_execution() {
    everywhere(|place| {
        let mut server = place.start();
        let owner = server.owner();
        save(&owner, "hello", echo());
        let first = start(&owner, "hello", "r1", named("Ada")).expect(202);
        let again = start(&owner, "hello", "r1", named("Bob")).expect(200);
        assert_eq!(again.text_at("executionId"), first.text_at("executionId"));
        assert_eq!(again.json().get("variables"), Some(&named("Ada").into()));
        // A repeated request is accepted even if a new one would be rejected.
        owner.put("/api/workflows/hello", &Value::map([("enabled", Value::Bool(false))])).expect(200);
        start(&owner, "hello", "r1", named("Ada")).expect(200);
        let refused = start(&owner, "hello", "r2", named("Ada")).expect(409);
        assert_eq!(refused.text_at("code"), "WORKFLOW_DISABLED");
        // The same after a restart.
        let token = server.token.clone().unwrap();
        server.kill();
        let server = place.start();
        let again = start(&server.client(&token), "hello", "r1", named("Ada")).expect(200);
        assert_eq!(again.text_at("executionId"), first.text_at("executionId"));
    });
}

fn of(reply: &Reply, key: &str) -> Value {
    reply.json().get(key).unwrap_or_else(|| panic!("no `{key}` in {reply:?}")).clone()
}

/// The first response has no results yet. A repeat shows the current status to callers who may see it.
#[test]
fn a_start_returns_the_envelope_of_its_execution() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let ada = &ours.owner;
        let fails = "export default function () { throw new Error('no good'); }";
        let fails = Value::map([("id", Value::from("bad")), ("type", "code".into()), ("code", fails.into())]);
        let gate =
            Value::map([("id", Value::from("ask")), ("type", "approval".into()), ("prompt", "Continue?".into())]);
        let mut asks = echo().as_list().unwrap().to_vec();
        asks.push(gate.clone());
        save(ada, "ends", echo());
        save(ada, "fails", Value::List(vec![fails]));
        save(ada, "asks", Value::List(asks));
        save(ada, "asks-first", Value::List(vec![gate]));
        // Each workflow with its settled status, and the expected `ok`.
        for (workflow, status, ok) in [
            ("ends", "completed", true),
            ("fails", "failed", false),
            ("asks", "waiting_approval", true),
            ("asks-first", "waiting_approval", true),
        ] {
            let first = start(ada, workflow, "r1", named("Ada")).expect(202);
            assert_eq!(["output", "requiresApproval", "error"].map(|key| of(&first, key)), [const { Value::Null }; 3]);
            assert_eq!((of(&first, "ok"), first.text_at("status")), (Value::Bool(true), "pending".into()));
            let id = first.text_at("executionId");
            let seen = ada.get(&format!("/api/executions/{id}/wait")).expect(200);
            let again = start(ada, workflow, "r1", named("Ada")).expect(200);
            assert_eq!((of(&again, "ok"), again.text_at("status")), (Value::Bool(ok), status.into()), "{workflow}");
            for key in ["requiresApproval", "error"] {
                assert_eq!(of(&again, key), of(&seen, key), "{workflow} {key}");
            }
            let output = if workflow == "asks-first" { Value::Null } else { of(&seen, "outputs") };
            assert_eq!(of(&again, "output"), output, "{workflow}");
            assert_eq!(of(&again, "error") == Value::Null, ok, "{again:?}");
            assert_eq!(again.text.contains("wrf_rt_"), status == "waiting_approval", "{again:?}");
            assert_eq!(of(&again, "warnings"), Value::List(Vec::new()));
        }
        // A token that may only start sees no results, and a caller who may not decide gets no resume token.
        let token = |scopes: &[&str]| {
            let scopes = scopes.iter().map(|scope| Value::from(*scope)).collect::<Vec<_>>();
            let body = Value::map([("name", Value::from("ci")), ("scopes", Value::List(scopes))]);
            server.client(&ada.post("/api/tokens", &body).expect(201).text_at("token"))
        };
        let blind = start(&token(&["executions:start"]), "asks", "r1", Map::new()).expect(200);
        assert_eq!(blind.text_at("status"), "waiting_approval");
        assert_eq!(["output", "requiresApproval", "error"].map(|key| of(&blind, key)), [const { Value::Null }; 3]);
        let looks = start(&token(&["executions:start", "executions:read"]), "asks", "r1", Map::new()).expect(200);
        assert!(looks.text.contains("Continue?") && !looks.text.contains("wrf_rt_"), "{looks:?}");
    });
}

#[test]
fn a_repeated_request_works_with_an_ambiguous_slug() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let save_as = |member: &str, id: &str| {
        let data = Value::map([("steps", echo())]);
        let body = Value::map([("id", Value::from(id)), ("slug", "ship".into()), ("data", data)]);
        ours.member(member, "member").post("/api/workflows/sync", &body).expect(200);
    };
    let ada = &ours.owner;
    save_as("bob", "w-bob");
    let first = start(ada, "ship", "r1", named("Ada")).expect(202);
    save_as("eve", "w-eve");
    let again = start(ada, "ship", "r1", named("Ada")).expect(200);
    assert_eq!(again.text_at("executionId"), first.text_at("executionId"));
    start(ada, "ship", "r2", named("Ada")).expect(409);
    // Both workflows have an execution of this request now, so the slug does not identify one.
    start(ada, "w-eve", "r1", named("Ada")).expect(202);
    start(ada, "ship", "r1", named("Ada")).expect(409);
}

#[test]
fn a_disabled_organization_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "hello", echo());
    let off = Value::map([("features", Value::map([("workflow_runtime_v1", Value::Bool(false))]))]);
    owner.send("PATCH", "/api/organization", &[], Some(&mainspring_kernel::json::compact(&off))).expect(200);
    let refused = start(&owner, "hello", "r1", Map::new()).expect(409);
    assert_eq!(refused.text_at("code"), "WORKFLOW_RUNTIME_DISABLED");
}

#[test]
fn repeated_starts_create_one_execution_per_request() {
    everywhere(|place| {
        const REQUESTS: usize = 40;
        const CLIENTS: usize = 8;
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        save(&ours.owner, "hello", echo());
        let ids = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let owner = ours.owner.clone();
                    scope.spawn(move || {
                        let each = |number: usize| {
                            let request = format!("r{}", (number + client * 7) % REQUESTS);
                            let reply = start(&owner, "hello", &request, named("Ada"));
                            assert!(matches!(reply.status, 200 | 202), "{reply:?}");
                            (request, reply.text_at("executionId"))
                        };
                        (0..REQUESTS).map(each).collect::<std::collections::BTreeMap<_, _>>()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(ids.iter().all(|seen| *seen == ids[0]), "one request, one execution");
        let listed = ours.owner.get("/api/executions?limit=200").expect(200).json();
        assert_eq!(listed.get("executions").and_then(Value::as_list).unwrap().len(), REQUESTS);
    });
}
