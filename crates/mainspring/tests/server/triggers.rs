//! Triggers as a resource: fields, refusals, rights, runs on request, and the commands.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    commands::Caller,
    process::{Organization, Server},
    start::{echo, save},
};

pub(crate) fn create(client: &Client, workflow: &str, config: &str, more: &str) -> Reply {
    let body = format!(r#"{{"workflowId": "{workflow}", "name": "n", "config": {config}{more}}}"#);
    client.send("POST", "/api/triggers", &[], Some(&body))
}

fn field(reply: &Reply) -> String {
    let body = reply.json();
    let field = body.get("details").and_then(|details| details.get("field")).and_then(Value::as_text);
    field.unwrap_or_else(|| panic!("{reply:?}")).to_string()
}

#[test]
fn a_trigger_is_shown_changed_and_deleted_with_its_workflow() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    let hook = create(&owner, "w1", r#"{"type": "webhook", "path": "/ci/build", "secret": "s3cret"}"#, "").expect(201);
    assert!(!hook.text.contains("s3cret"), "{hook:?}");
    assert_eq!(hook.text_at("webhookUrl"), format!("http://{}/webhooks/ci/build", server.address));
    let daily = r#"{"type": "schedule", "cron": "0 9 * * *", "timezone": "europe/berlin"}"#;
    let schedule = create(&owner, "w1", daily, "").expect(201);
    assert!(schedule.text.contains("Europe/Berlin"), "{schedule:?}");
    let runs = |reply: &Reply| reply.json().get("nextRuns").and_then(Value::as_list).unwrap().len();
    assert_eq!((runs(&hook), runs(&schedule)), (0, 5));
    let id = schedule.text_at("id");
    let path = format!("/api/triggers/{id}");
    let tag = owner.get(&path).expect(200).header("etag").unwrap().to_string();
    let patched = owner.send("PATCH", &path, &[("if-match", &tag)], Some(r#"{"name": "morning"}"#)).expect(200);
    assert_eq!(patched.text_at("name"), "morning");
    owner.send("PATCH", &path, &[("if-match", &tag)], Some(r#"{"name": "x"}"#)).expect(412);
    let disabled = owner.post(&format!("{path}/disable"), &Value::Map(Map::new())).expect(200);
    assert_eq!(runs(&disabled), 0);
    assert_eq!(runs(&owner.post(&format!("{path}/enable"), &Value::Map(Map::new())).expect(200)), 5);
    let listed = owner.get("/api/triggers?workflowId=w1&limit=1").expect(200).json();
    assert!(listed.get("nextCursor").and_then(Value::as_text).is_some());
    // A change without a secret keeps the stored one.
    let hook_path = format!("/api/triggers/{}", hook.text_at("id"));
    let moved = r#"{"config": {"type": "webhook", "path": "ci/moved"}}"#;
    let moved = owner.send("PATCH", &hook_path, &[], Some(moved)).expect(200);
    assert!(moved.text.contains(r#""hasSecret":true"#), "{moved:?}");
    create(&owner, "w1", r#"{"type": "webhook", "path": "ci/moved"}"#, "").expect(409);
    create(&owner, "w1", r#"{"type": "webhook", "path": "ci/build"}"#, "").expect(201);
    owner.send("DELETE", "/api/workflows/w1", &[], None).expect(204);
    owner.get(&path).expect(404);
    owner.get(&hook_path).expect(404);
    server.nobody().post("/webhooks/ci/moved", &Value::Null).expect(404);
    assert_eq!(owner.get("/api/triggers").expect(200).json().get("triggers"), Some(&Value::List(Vec::new())));
    let audit = owner.get("/api/audit?limit=200").expect(200).text;
    for action in ["trigger.create", "trigger.update", "trigger.disable", "trigger.enable", "trigger.delete"] {
        assert!(audit.contains(action), "{action}");
    }
}

#[test]
fn a_faulty_trigger_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    let table = [
        (r#"{"type": "schedule", "cron": "61 9 * * *"}"#, "config.cron"),
        (r#"{"type": "schedule", "cron": "0 9 * * *", "timezone": "Mars/Base"}"#, "config.timezone"),
        (r#"{"type": "schedule", "cron": "0 9 * * *", "jitterMs": 3600001}"#, "config.jitterMs"),
        (r#"{"type": "schedule", "cron": "0 9 * * *", "prompt": "x"}"#, "config.prompt"),
        (r#"{"type": "webhook", "path": "../etc"}"#, "config.path"),
        (r#"{"type": "webhook", "path": "a//b"}"#, "config.path"),
        (r#"{"type": "webhook", "path": "p", "method": "GET"}"#, "config.method"),
        (r#"{"type": "webhook", "path": "p", "method": "TRACE"}"#, "config.method"),
        (r#"{"type": "webhook", "path": "p", "signature": {"scheme": "github"}}"#, "config.secret"),
        (
            r#"{"type": "webhook", "path": "p", "secret": "!", "signature": {"scheme": "standard_webhooks"}}"#,
            "config.signature",
        ),
        (r#"{"type": "webhook", "path": "p", "secret": ""}"#, "config.secrets"),
    ];
    for (config, place) in table {
        assert_eq!(field(&create(&owner, "w1", config, "").expect(400)), place, "{config}");
    }
    let mapping = r#", "variableMapping": {"a": "$..a..b"}"#;
    assert_eq!(field(&create(&owner, "w1", r#"{"type": "manual"}"#, mapping).expect(400)), "variableMapping");
    let orchestrator = r#"{"type": "schedule", "cron": "0 9 * * *", "target": "orchestrator", "prompt": "x"}"#;
    assert_eq!(field(&create(&owner, "w1", orchestrator, "").expect(400)), "workflowId");
    let body = format!(r#"{{"name": "t", "config": {orchestrator}}}"#);
    owner.send("POST", "/api/triggers", &[], Some(&body)).expect(501);
    create(&owner, "nope", r#"{"type": "manual"}"#, "").expect(404);
    create(&owner, "w1", r#"{"type": "manual", "cron": "* * * * *"}"#, "").expect(400);
}

#[test]
fn only_the_owner_of_the_workflow_and_admins_change_its_triggers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "ours");
    let theirs = Organization::new(&server, "theirs").owner;
    let (ann, bob) = (ours.member("ann", "member"), ours.member("bob", "member"));
    save(&ann, "w1", echo());
    let manual = r#"{"type": "manual"}"#;
    let id = create(&ann, "w1", manual, "").expect(201).text_at("id");
    create(&bob, "w1", manual, "").expect(403);
    create(&ours.owner, "w1", manual, "").expect(201);
    let path = format!("/api/triggers/{id}");
    bob.get(&path).expect(200);
    bob.send("PATCH", &path, &[], Some("{}")).expect(403);
    bob.send("DELETE", &path, &[], None).expect(403);
    theirs.get(&path).expect(404);
    theirs.send("DELETE", &path, &[], None).expect(404);
    // A path belongs to one trigger of all organizations.
    let hook = r#"{"type": "webhook", "path": "shared"}"#;
    create(&ann, "w1", hook, "").expect(201);
    save(&theirs, "w1", echo());
    create(&theirs, "w1", hook, "").expect(409);
    // A credential that may not start executions gets no trigger that starts them.
    let scopes = Value::List(vec!["workflows:write".into(), "workflows:read".into()]);
    let body = Value::map([("name", Value::from("narrow")), ("scopes", scopes)]);
    let narrow = ann.with_token(&ann.post("/api/tokens", &body).expect(201).text_at("token"));
    create(&narrow, "w1", manual, "").expect(403);
}

#[test]
fn a_narrow_credential_gains_no_rights_through_a_trigger() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "ours");
    let owner = &ours.owner;
    let gate = [("id", Value::from("gate")), ("type", "approval".into())];
    let script = [("id", Value::from("run")), ("type", "bash".into()), ("command", "true".into())];
    save(owner, "w1", Value::List(vec![Value::map(gate), Value::map(script)]));
    let narrow = |scopes: &[&str]| {
        let scopes = Value::List(scopes.iter().map(|scope| Value::from(*scope)).collect());
        let body = Value::map([("name", Value::from("narrow")), ("scopes", scopes)]);
        owner.with_token(&owner.post("/api/tokens", &body).expect(201).text_at("token"))
    };
    // A response with the output needs the permission to read it.
    let writer = narrow(&["workflows:write", "workflows:read", "executions:start"]);
    let waits = r#"{"type": "webhook", "path": "narrow", "respond": "wait"}"#;
    let refused = create(&writer, "w1", waits, "").expect(403);
    assert!(refused.text.contains("executions:read"), "{refused:?}");
    let own = create(&writer, "w1", r#"{"type": "webhook", "path": "narrow"}"#, "").expect(201).text_at("id");
    let patch = format!(r#"{{"config": {waits}}}"#);
    writer.send("PATCH", &format!("/api/triggers/{own}"), &[], Some(&patch)).expect(403);
    // A repetition of a delivery runs scripts only for those who may start them.
    let id = create(owner, "w1", r#"{"type": "webhook", "path": "p"}"#, "").expect(201).text_at("id");
    let started = server.nobody().send("POST", "/webhooks/p", &[], Some("{}")).expect(202).text_at("executionId");
    let log = owner.get(&format!("/api/triggers/{id}/deliveries")).expect(200).json();
    let run = log.get("deliveries").and_then(Value::as_list).unwrap()[0].get("id").and_then(Value::as_text).unwrap();
    let redeliver =
        |by: &Client| by.post(&format!("/api/triggers/{id}/deliveries/{run}/redeliver"), &Value::Map(Map::new()));
    let starter = narrow(&["executions:start", "executions:read"]);
    for by in [&starter, &ours.session_of(&started)] {
        let refused = redeliver(by).expect(403);
        assert!(refused.text.contains("scripts:run"), "{refused:?}");
    }
    redeliver(owner).expect(202);
}

#[test]
fn a_run_on_request_maps_its_event() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "w1", echo());
    let mapping = r#", "variableMapping": {"name": "$.who.name", "miss": "$.no"}"#;
    let id = create(&owner, "w1", r#"{"type": "manual"}"#, mapping).expect(201).text_at("id");
    let event = r#"{"body": {"who": {"name": "Ada"}}}"#;
    let tested = owner.send("POST", &format!("/api/triggers/{id}/test"), &[], Some(event)).expect(200);
    assert!(
        tested.text.contains(r#""variables":{"name":"Ada"}"#) && tested.text.contains("has no key `no`"),
        "{tested:?}"
    );
    let run = |body: &str| owner.send("POST", &format!("/api/triggers/{id}/run"), &[], Some(body));
    let body = format!(r#"{{"clientRequestId": "1", "event": {event}}}"#);
    let execution = run(&body).expect(202).text_at("executionId");
    assert_eq!(run(&body).expect(200).text_at("executionId"), execution);
    let ended = owner.get(&format!("/api/executions/{execution}/wait")).expect(200);
    assert!(ended.text.contains(r#""said":{"name":"Ada"}"#), "{ended:?}");
    assert_eq!((ended.text_at("triggerId"), ended.text_at("triggerType")), (id.clone(), "manual".into()));
    let own = run(r#"{"variables": {"name": "Bob"}}"#).expect(202);
    assert!(own.text.contains("Bob"), "{own:?}");
    let log = owner.get(&format!("/api/triggers/{id}/deliveries")).expect(200);
    assert!(log.text.contains("variables without a value: `miss`"), "{log:?}");
}

/// The input of a triggered execution is an empty object if the schema refuses null: its fields may have defaults.
#[test]
fn an_execution_of_a_trigger_gets_the_defaults_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let save_with = |id: &str, schema: &str| {
        let steps = r#"[{"id": "r", "type": "return", "input": {"version": "@input.version"}}]"#;
        let body = format!(r#"{{"id": "{id}", "data": {{"inputSchema": {schema}, "steps": {steps}}}}}"#);
        owner.send("POST", "/api/workflows/sync", &[], Some(&body)).expect(200);
    };
    let daily = r#"{"type": "schedule", "cron": "0 9 * * *"}"#;
    let object = r#"{"type": "object", "required": ["version"], "properties": {"version": {"type": "string", "default": "latest"}}}"#;
    save_with("defaults", object);
    let created = create(&owner, "defaults", daily, "").expect(201);
    assert!(created.text.contains(r#""warnings":[]"#), "{created:?}");
    let run =
        |id: &str| owner.send("POST", &format!("/api/triggers/{id}/run"), &[], Some(r#"{"clientRequestId": "1"}"#));
    let started = run(&created.text_at("id")).expect(202).text_at("executionId");
    let ended = owner.get(&format!("/api/executions/{started}/wait")).expect(200);
    assert!(ended.text.contains(r#""version":"latest""#), "{ended:?}");
    let without = Value::map([("workflowId", Value::from("defaults")), ("clientRequestId", "2".into())]);
    owner.post("/api/triggers/manual/run", &without).expect(202);
    assert!(!owner.post("/api/triggers/manual/run", &without).expect(200).text.contains(r#""differs":["input"]"#));
    save_with("strict", &object.replace(r#", "default": "latest""#, ""));
    let warned = create(&owner, "strict", daily, "").expect(201);
    assert!(warned.text.contains("the `inputSchema` of `strict` requires one"), "{warned:?}");
    let refused = run(&warned.text_at("id")).expect(400);
    assert!(refused.text.contains("version"), "{refused:?}");
}

#[test]
fn commands_manage_triggers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    save(&server.owner(), "w1", echo());
    let caller = Caller::owner(&server);
    let call = |arguments: &[&str], code: i32| {
        let output = caller.command(&[&["triggers"], arguments].concat()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?} {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    };
    let json = |text: &str| json::read(text.as_bytes()).unwrap().value;
    std::fs::write(caller.folder().join("secret"), "s3cret\n").unwrap();
    std::fs::write(caller.folder().join("event.json"), r#"{"who": "Ada"}"#).unwrap();
    let hook =
        ["create", "w1", "--name", "hook", "--webhook", "ci/build", "--secret-file", "secret", "--scheme", "github"];
    let created = call(&[&hook[..], &["--map", "name=$.who", "--json"]].concat(), 0);
    let id = json(&created).get("id").and_then(Value::as_text).unwrap().to_string();
    let daily = ["create", "w1", "--name", "daily", "--cron", "0 9 * * *", "--overlap", "cancel-previous"];
    assert!(call(&daily, 0).contains("next run"));
    let listed = call(&["list", "--workflow", "w1"], 0);
    assert!(listed.contains("/webhooks/ci/build") && listed.contains("daily"), "{listed}");
    assert!(call(&["test", &id, "--event", "event.json"], 0).contains("Ada"));
    assert!(call(&["run", &id, "--event", "event.json"], 0).contains("started"));
    assert!(call(&["deliveries", &id], 0).contains("manual"));
    assert!(call(&["disable", &id], 0).contains("disabled"));
    assert!(call(&["enable", &id], 0).contains("webhook enabled"));
    call(&["delete", &id], 0);
    call(&["show", &id], 10);
    call(&["create", "w1", "--name", "bad", "--cron", "61 * * * *"], 10);
}
