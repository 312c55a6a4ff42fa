//! Starts with a wait, and limits of a single execution.

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
    start::{echo, save},
};

/// Starts a workflow with additional fields of the request and a query.
fn run(client: &Client, workflow: &str, request: &str, query: &str, more: &[(&str, Value)]) -> Reply {
    let name = Value::map([("name", Value::from("Ada"))]);
    let body = [("workflowId", workflow.into()), ("clientRequestId", request.into()), ("variables", name)];
    let body = Value::map(body.into_iter().chain(more.iter().cloned()));
    client.post(&format!("/api/triggers/manual/run{query}"), &body)
}

fn of(reply: &Reply, key: &str) -> Value {
    reply.json().get(key).unwrap_or_else(|| panic!("no `{key}` in {reply:?}")).clone()
}

fn code(id: &str, code: &str) -> Value {
    Value::map([("id", Value::from(id)), ("type", "code".into()), ("code", code.into())])
}

fn gate() -> Value {
    Value::map([("id", Value::from("ask")), ("type", "approval".into()), ("prompt", "Continue?".into())])
}

fn signal() -> Value {
    Value::map([("id", Value::from("go")), ("type", "signal".into()), ("signal", "go".into())])
}

/// The envelope of the first specification (6.2, 6.5), with steps as on the command line.
#[test]
fn an_awaited_start_returns_the_envelope() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let ada = &ours.owner;
        save(ada, "ends", echo());
        save(ada, "fails", Value::List(vec![code("bad", "export default () => { throw new Error('no good'); }")]));
        save(ada, "asks", Value::List(vec![code("first", "export default () => 1"), gate()]));
        save(ada, "waits", Value::List(vec![signal()]));
        for (workflow, status, ok, http, steps) in [
            ("ends", "ok", true, 200, vec!["completed"]),
            ("fails", "failed", false, 200, vec!["failed"]),
            ("asks", "needs_approval", true, 200, vec!["completed", "waiting_approval"]),
            ("waits", "running", true, 202, vec!["waiting"]),
        ] {
            let wait = if http == 200 { "?wait=60000" } else { "?wait=300" };
            let first = run(ada, workflow, "r1", wait, &[]).expect(http);
            assert_eq!((first.text_at("status"), of(&first, "ok")), (status.into(), ok.into()), "{first:?}");
            assert_eq!(of(&first, "existed"), Value::Bool(false));
            let id = first.text_at("executionId");
            let listed = of(&ada.get(&format!("/api/executions/{id}/steps")).expect(200), "steps");
            assert_eq!(of(&first, "steps"), listed, "the steps are those of the route");
            let statuses: Vec<_> = listed.as_list().unwrap().iter().map(|step| step.get("status").cloned()).collect();
            assert_eq!(statuses, steps.iter().map(|word| Some(Value::from(*word))).collect::<Vec<_>>(), "{first:?}");
            assert_eq!(of(&first, "error") == Value::Null, ok, "{first:?}");
            let token = of(&first, "requiresApproval").get("resumeToken").cloned();
            assert_eq!(token.is_some(), status == "needs_approval", "{first:?}");
            // A repeated request returns the same execution with `existed`.
            let again = run(ada, workflow, "r1", if http == 200 { "?wait=60000" } else { "?wait=0" }, &[]).expect(http);
            assert_eq!((again.text_at("executionId"), of(&again, "existed")), (id, Value::Bool(true)));
            assert_eq!(of(&again, "steps"), of(&first, "steps"));
        }
        let ended = run(ada, "ends", "r1", "?wait=0", &[]).expect(200);
        assert_eq!(of(&ended, "output").get("said").and_then(|said| said.get("name").cloned()), Some("Ada".into()));
        // Without `wait` the response has the status of the API and no steps.
        let plain = run(ada, "ends", "r1", "", &[]).expect(200);
        assert_eq!(plain.text_at("status"), "completed");
        assert!(plain.json().get("steps").is_none() && plain.json().get("approvals").is_none(), "{plain:?}");
    });
}

#[test]
fn a_wait_is_bounded_and_needs_the_read_permission() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let ada = &ours.owner;
    save(ada, "asks", Value::List(vec![gate()]));
    assert!(run(ada, "asks", "r1", "?wait=60001", &[]).expect(400).text.contains("at most 60000"));
    run(ada, "asks", "r1", "?wait=-1", &[]).expect(400);
    run(ada, "asks", "r1", "?waits=1", &[]).expect(400);
    let scopes = Value::List(vec!["executions:start".into()]);
    let made = ada.post("/api/tokens", &Value::map([("name", Value::from("ci")), ("scopes", scopes)])).expect(201);
    run(&server.client(&made.text_at("token")), "asks", "r1", "?wait=1", &[]).expect(403);
    let listed = ada.get("/api/executions").expect(200).json();
    assert_eq!(listed.get("executions").and_then(Value::as_list).map(<[_]>::len), Some(0), "nothing was started");
    // A caller who may not decide sees the approval without its token.
    let scopes = Value::List(vec!["executions:start".into(), "executions:read".into()]);
    let made = ada.post("/api/tokens", &Value::map([("name", Value::from("ci")), ("scopes", scopes)])).expect(201);
    let seen = run(&server.client(&made.text_at("token")), "asks", "r1", "?wait=60000", &[]).expect(200);
    assert_eq!(seen.text_at("status"), "needs_approval");
    assert!(seen.text.contains("Continue?") && !seen.text.contains("wrf_rt_"), "{seen:?}");
}

/// Creates a token of the owner with scopes. Returns its id and a client.
fn scoped(server: &Server, owner: &Client, scopes: &[&str]) -> (String, Client) {
    let scopes = Value::List(scopes.iter().map(|scope| Value::from(*scope)).collect());
    let made = owner.post("/api/tokens", &Value::map([("name", Value::from("ci")), ("scopes", scopes)])).expect(201);
    (made.text_at("id"), server.client(&made.text_at("token")))
}

/// Waits until an organization has a number of executions. Returns the first.
fn first_of(owner: &Client, count: usize) -> String {
    let listed = || of(&owner.get("/api/executions").expect(200), "executions").as_list().unwrap().to_vec();
    let all = std::iter::repeat_with(listed).find(|all| all.len() >= count).unwrap();
    all[0].get("id").and_then(Value::as_text).unwrap().to_string()
}

fn go(owner: &Client, id: &str) {
    let body = Value::map([("id", Value::from("s1")), ("name", "go".into()), ("payload", Value::Null)]);
    owner.post(&format!("/api/executions/{id}/signal"), &body).expect(200);
}

#[test]
fn a_credential_revoked_during_a_wait_gets_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "waits", Value::List(vec![signal()]));
    let scopes = ["executions:start", "executions:read"];
    // A caller that starts and waits: it was authenticated before its execution exists.
    let (id, caller) = scoped(&server, &owner, &scopes);
    let started = std::thread::spawn(move || run(&caller, "waits", "r1", "?wait=60000", &[]));
    let execution = first_of(&owner, 1);
    owner.send("DELETE", &format!("/api/tokens/{id}"), &[], None).expect(204);
    // A caller that only waits: it was authenticated when its token was used.
    let (id, caller) = scoped(&server, &owner, &scopes);
    let path = format!("/api/executions/{execution}/wait?timeoutMs=60000");
    let waited = std::thread::spawn(move || caller.get(&path));
    let is_used = || {
        let all = of(&owner.get("/api/tokens").expect(200), "tokens");
        let own = all.as_list().unwrap().iter().find(|one| one.get("id") == Some(&Value::from(id.as_str()))).cloned();
        own.unwrap().get("lastUsedAt") != Some(&Value::Null)
    };
    std::iter::repeat_with(is_used).find(|is_used| *is_used).unwrap();
    owner.send("DELETE", &format!("/api/tokens/{id}"), &[], None).expect(204);
    go(&owner, &execution);
    for reply in [started.join().unwrap(), waited.join().unwrap()] {
        let reply = reply.expect(401);
        assert_eq!((reply.text_at("code"), reply.header("www-authenticate")), ("UNAUTHORIZED".into(), Some("Bearer")));
        assert!(!reply.text.contains(&execution) && !reply.text.contains("Ada"), "{reply:?}");
    }
    assert_eq!(owner.get(&format!("/api/executions/{execution}/wait")).expect(200).text_at("status"), "completed");
}

#[test]
fn waiting_requests_do_not_block_other_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "waits", Value::List(vec![signal()]));
    let large = |body: &str| format!("{body}{}", " ".repeat((4 << 20) - body.len()));
    // The largest bodies, as many as an organization may have in memory.
    let waiting = ["r1", "r2"].map(|request| {
        let (owner, body) = (owner.clone(), format!(r#"{{"workflowId": "waits", "clientRequestId": "{request}"}}"#));
        let body = large(&body);
        std::thread::spawn(move || owner.send("POST", "/api/triggers/manual/run?wait=60000", &[], Some(&body)))
    });
    first_of(&owner, 2);
    let definition = large(r#"{"definition": {"steps": [{"id": "a", "type": "return", "input": 1}]}}"#);
    owner.send("POST", "/api/definitions/validate", &[], Some(&definition)).expect(200);
    let all = of(&owner.get("/api/executions").expect(200), "executions");
    all.as_list().unwrap().iter().for_each(|one| go(&owner, one.get("id").and_then(Value::as_text).unwrap()));
    waiting.into_iter().for_each(|one| assert_eq!(one.join().unwrap().expect(200).text_at("status"), "ok"));
}

#[test]
fn a_repeat_shows_variables_only_with_the_read_permission() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "waits", Value::List(vec![signal()]));
    run(&owner, "waits", "r1", "", &[]).expect(202);
    let blind = scoped(&server, &owner, &["executions:start"]).1;
    let (seen, unseen) =
        (run(&owner, "waits", "r1", "", &[]).expect(200), run(&blind, "waits", "r1", "", &[]).expect(200));
    assert_eq!(of(&seen, "executionId"), of(&unseen, "executionId"));
    assert_eq!(of(&seen, "variables").get("name"), Some(&Value::from("Ada")));
    assert_eq!(of(&unseen, "variables"), Value::Null);
}

fn policy(bounds: &[(&str, Value)]) -> Value {
    Value::map([("policy", Value::map(bounds.iter().cloned().map(|(key, value)| (key.to_string(), value))))])
}

#[test]
fn an_execution_has_the_bounds_of_its_start_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "waits", Value::List(vec![signal()]));
    save(
        &owner,
        "two",
        Value::List(vec![code("a", "export default () => 'abc'"), code("b", "export default () => 2")]),
    );
    for (number, (workflow, key, bound, wanted)) in [
        ("waits", "timeoutMs", 50, "timeout"),
        ("two", "maxSteps", 1, "max_steps"),
        ("two", "maxOutputBytes", 2, "output"),
    ]
    .into_iter()
    .enumerate()
    {
        let runtime = policy(&[(key, Value::from(bound as u64))]);
        let seen = run(&owner, workflow, &format!("r{number}"), "?wait=60000", &[("runtime", runtime)]).expect(200);
        assert_eq!(seen.text_at("status"), "failed", "{key}: {seen:?}");
        assert!(compact(&of(&seen, "error")).contains(wanted), "{key}: {seen:?}");
    }
    let fits = policy(&[("maxSteps", 2u64.into()), ("maxParallel", 1u64.into()), ("timeoutMs", 60_000u64.into())]);
    let seen = run(&owner, "two", "fits", "?wait=60000", &[("runtime", fits)]).expect(200);
    assert_eq!(seen.text_at("status"), "ok", "{seen:?}");
}

#[test]
fn invalid_bounds_are_refused_and_those_of_the_definition_apply() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let constraints = Value::map([("maxSteps", Value::from(3u64)), ("timeoutMs", 1_000u64.into())]);
    let data = Value::map([("steps", Value::List(vec![signal()])), ("constraints", constraints)]);
    owner.post("/api/workflows/sync", &Value::map([("id", Value::from("w")), ("data", data)])).expect(200);
    let refused = |runtime: Value, said: &str| {
        let reply = run(&owner, "w", "r1", "", &[("runtime", runtime)]).expect(400);
        assert!(reply.text.contains(said), "{reply:?}");
    };
    refused(policy(&[("maxSteps", 4u64.into())]), "the definition's `constraints.maxSteps` is 3");
    refused(policy(&[("timeoutMs", 1_001u64.into())]), "the definition's `constraints.timeoutMs` is 1000");
    refused(policy(&[("maxSteps", 0u64.into())]), "runtime.policy.maxSteps: it must be from 1 to");
    refused(policy(&[("maxParallel", 10_001u64.into())]), "runtime.policy.maxParallel: it must be from 1 to 10000");
    refused(policy(&[("maxOutputBytes", 262_145u64.into())]), "from 1 to 262144");
    refused(policy(&[("maxCalls", 1u64.into())]), "maxCalls");
    refused(Value::map([("attempt", Value::from(2u64))]), "runtime.attempt: the server counts");
    refused(Value::map([("idempotencyKey", Value::from("k"))]), "`clientRequestId`: leave it out");
    let listed = owner.get("/api/executions").expect(200).json();
    assert_eq!(listed.get("executions").and_then(Value::as_list).map(<[_]>::len), Some(0), "nothing was started");
    run(&owner, "w", "r1", "", &[("runtime", policy(&[("maxSteps", 3u64.into())]))]).expect(202);
    run(&owner, "w", "r2", "", &[("runtime", Map::new().into())]).expect(202);
}
