//! The sessions of executions: their ids, their variables, the routes that show them, and their tokens.

use std::fs;

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    commands::Caller,
    escapes::{output_of, run},
    process::{Organization, Server, everywhere},
    start::{echo, save, start},
    support::yaml,
    triggers::create,
};

/// Starts a workflow, waits until it has ended or only gates are open, and returns its execution.
fn settled(client: &Client, workflow: &str, request: &str) -> Reply {
    let id = start(client, workflow, request, Map::new()).expect(202).text_at("executionId");
    client.get(&format!("/api/executions/{id}/wait")).expect(200)
}

/// The values of a key in a list of a response.
fn column(reply: &Reply, list: &str, key: &str) -> Vec<Value> {
    let body = reply.json();
    let rows = body.get(list).and_then(Value::as_list).unwrap_or_else(|| panic!("no list in {reply:?}"));
    rows.iter().map(|row| row.get(key).cloned().unwrap_or_else(|| panic!("no {key} in {row:?}"))).collect()
}

#[test]
fn every_view_of_an_execution_has_its_session() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "hello", echo());
        let ended = settled(&owner, "hello", "r1");
        let id = ended.text_at("id");
        let session = Value::from(format!("sess_{id}"));
        assert_eq!(ended.json().get("sessionId"), Some(&session));
        let one = owner.get(&format!("/api/executions/{id}?include=runtimeState")).expect(200).json();
        let executor = one.get("runtimeState").and_then(|state| state.get("executor")).unwrap();
        assert_eq!(executor.get("sessionId"), Some(&session));
        for list in ["/api/executions", "/api/workflows/hello/executions"] {
            assert_eq!(
                column(&owner.get(list).expect(200), "executions", "sessionId"),
                std::slice::from_ref(&session),
                "{list}"
            );
        }
    });
}

#[test]
fn a_script_of_a_server_knows_its_session() {
    everywhere(|place| {
        let server = place.start_uncontained();
        let show = "printf '%s|' $IS_WORKFLOW_SESSION $WORKFLOW_ID $WORKFLOW_EXECUTION_ID";
        let (ended, steps) = run(&server.owner(), "shows", &[("show", show)]);
        let id = ended.get("id").and_then(Value::as_text).unwrap();
        assert!(output_of(&steps, "show").contains(&format!("true|shows|{id}|")), "{}", output_of(&steps, "show"));
    });
}

#[test]
fn a_session_is_shown_with_its_key_and_its_parents() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let owner = &ours.owner;
        save(owner, "child", yaml("[{id: gate, type: approval}]"));
        save(owner, "parent", yaml("[{id: start, type: subworkflow, workflow: child}]"));
        save(owner, "hello", echo());
        let done = settled(owner, "hello", "r0").text_at("id");
        let parent = settled(owner, "parent", "r1").text_at("id");
        assert!(column(&owner.get("/api/sessions").expect(200), "sessions", "id").is_empty(), "they are hidden");
        let listed = owner.get("/api/sessions?purpose=workflow").expect(200);
        let key = format!("agent:ada:workflow:parent:run:{parent}");
        // Parent and child may have been started in the same millisecond, so their order is not certain.
        let shown = ["workflowId", "spawnDepth", "spawnedBy", "status", "shareable"]
            .map(|one| column(&listed, "sessions", one));
        let of = |workflow: &str| {
            let at = shown[0].iter().position(|one| *one == Value::from(workflow)).unwrap();
            [1, 2, 3, 4].map(|one| shown[one][at].clone())
        };
        let row = |depth: u64, by: Value, status: &str| [depth.into(), by, status.into(), false.into()];
        assert_eq!(of("hello"), row(0, Value::Null, "terminated"));
        assert_eq!(of("parent"), row(0, Value::Null, "hibernated"));
        assert_eq!(of("child"), row(1, key.as_str().into(), "hibernated"));
        for (filter, expected) in [
            ("workflow&status=terminated", vec![format!("sess_{done}")]),
            ("workflow&status=running", vec![]),
            ("workflow&key=agent:*:workflow:par*:run:*", vec![format!("sess_{parent}")]),
            ("orchestrator,workflow&limit=1&key=agent:*:workflow:hello:run:*", vec![format!("sess_{done}")]),
            ("orchestrator", vec![]),
        ] {
            let found = owner.get(&format!("/api/sessions?purpose={filter}"));
            let ids: Vec<Value> = expected.into_iter().map(Value::from).collect();
            assert_eq!(column(&found.expect(200), "sessions", "id"), ids, "{filter}");
        }
        for wrong in
            ["purpose=shell", "purpose=workflow&status=idle", "key=x", "key=agent:*:workflow:*:run:*:node:*:attempt:*"]
        {
            owner.get(&format!("/api/sessions?{wrong}")).expect(400);
        }
        let by_id = owner.get(&format!("/api/sessions/sess_{parent}")).expect(200);
        let by_key = owner.get(&format!("/api/sessions/{key}")).expect(200);
        assert_eq!((by_id.text.as_str(), by_id.text_at("key")), (by_key.text.as_str(), key.clone()));
        let attempts = owner.get(&format!("/api/sessions/sess_{parent}/attempts")).expect(200);
        assert_eq!(column(&attempts, "attempts", "key"), [Value::from(format!("{key}:node:start:attempt:1"))]);
        assert_eq!(column(&attempts, "attempts", "spawnedBy"), [Value::from(key.as_str())]);
        assert_eq!(column(&attempts, "attempts", "spawnDepth"), [Value::from(1u64)]);
        let child = column(&attempts, "attempts", "childSessionId")[0].clone();
        let child = owner.get(&format!("/api/sessions/{}", child.as_text().unwrap())).expect(200);
        assert_eq!(child.text_at("workflowId"), "child");
        let transcript = &column(&attempts, "attempts", "transcript")[0];
        let step = owner.get(transcript.as_text().unwrap()).expect(200);
        assert_eq!(column(&step, "steps", "stepId"), [Value::from("start")]);
        owner.get(&format!("/api/sessions/{key}:node:start:attempt:1")).expect(400);
        let other = Organization::new(&server, "globex").owner;
        for id in [format!("sess_{parent}"), key.replace("ada", "bob"), key, parent] {
            let client = if id.contains("bob") || !id.contains(['_', ':']) { owner } else { &other };
            client.get(&format!("/api/sessions/{id}")).expect(404);
        }
        ours.member("eve", "viewer").get(&format!("/api/sessions/sess_{done}")).expect(200);
    });
}

/// Writes the token of its session to a file of the test, prints it, and waits at a gate.
fn with_token(file: &std::path::Path) -> Value {
    yaml(&format!(
        "[{{id: use, type: bash, env: {{WORKFLOW_TOKEN: {{secret: 'session:token'}}}}, command: 'printf %s \
         \"$WORKFLOW_TOKEN\" > \"{}\"; echo \"$WORKFLOW_TOKEN\"'}}, {{id: gate, type: approval}}]",
        file.display()
    ))
}

#[test]
fn a_step_acts_with_the_token_of_its_session_until_the_execution_ends() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let server = place.start_uncontained();
        let ours = Organization::new(&server, "acme");
        let bob = ours.member("bob", "member");
        let file = folder.path().join("token");
        save(&bob, "acts", with_token(&file));
        let narrow = Value::map([
            ("name", Value::from("narrow")),
            ("scopes", Value::List(vec!["executions:start".into(), "scripts:run".into()])),
        ]);
        let narrow = server.client(&bob.post("/api/tokens", &narrow).expect(201).text_at("token"));
        let refused = start(&narrow, "acts", "r0", Map::new()).expect(403);
        assert!(refused.text.contains("session:token"), "{refused:?}");
        let gated = settled(&bob, "acts", "r1");
        let (id, resume) = (gated.text_at("id"), gated.text_at("resumeToken"));
        let token = fs::read_to_string(&file).unwrap();
        let session = server.client(&token);
        assert_eq!(session.get("/api/me").expect(200).text_at("userId"), "bob");
        session.get(&format!("/api/executions/{id}")).expect(200);
        // It is no person, writes no workflow, makes no credential, and controls its own execution alone.
        let decide = Value::map([("approve", Value::Bool(true)), ("resumeToken", resume.as_str().into())]);
        session.post(&format!("/api/executions/{id}/approve"), &decide).expect(403);
        let body = Value::map([("id", Value::from("acts")), ("data", Value::map([("steps", echo())]))]);
        session.post("/api/workflows/sync", &body).expect(403);
        session.post("/api/tokens", &Value::map([("name", Value::from("t"))])).expect(403);
        let other = settled(&bob, "acts", "r2").text_at("id");
        let why = Value::map([("reason", Value::from("x"))]);
        session.post(&format!("/api/executions/{other}/cancel"), &why).expect(403);
        session.post("/api/session", &Value::map([("token", Value::from(token.as_str()))])).expect(401);
        // The proof of one execution is not that of another, and not part of any response or audit entry.
        let other_token = fs::read_to_string(&file).unwrap();
        assert_ne!(other_token, token);
        let mixed = [other_token.split_at(37).0, token.split_at(37).1].concat();
        server.client(&mixed).get("/api/me").expect(401);
        let steps = ours.owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
        let audit = ours.owner.get("/api/audit").expect(200).text;
        assert!(steps.contains("***") && !steps.contains("msw_"), "{steps}");
        assert!(audit.contains("session:token") && audit.contains(&id) && !audit.contains("msw_"), "{audit}");
        let node = place.another_uncontained("other");
        let elsewhere = node.as_ref().map(|node| session.moved_to(&node.address));
        elsewhere.iter().for_each(|session| drop(session.get("/api/me").expect(200)));
        ours.owner.put("/api/members/bob", &Value::map([("role", Value::from("viewer"))])).expect(200);
        session.post(&format!("/api/executions/{id}/cancel"), &why).expect(403);
        ours.owner.put("/api/members/bob", &Value::map([("role", Value::from("member"))])).expect(200);
        session.post(&format!("/api/executions/{id}/cancel"), &why).expect(200);
        // It ends with its execution, at each node, although it was accepted a moment before.
        let is_over = || bob.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status") == "cancelled";
        while !is_over() {
            elsewhere.iter().for_each(|session| drop(session.get("/api/me")));
        }
        elsewhere.iter().chain([&session]).for_each(|session| drop(session.get("/api/me").expect(401)));
        // Removing the member ends the tokens of their executions.
        server.client(&other_token).get("/api/me").expect(200);
        ours.owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
        server.client(&other_token).get("/api/me").expect(401);
    });
}

#[test]
fn a_credential_that_an_admin_made_gets_no_session_of_the_member() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--scripts", "uncontained"]);
    let ours = Organization::new(&server, "acme");
    let (adm, bob) = (ours.member("adm", "admin"), ours.member("bob", "member"));
    let made_by_admin = Value::map([("name", Value::from("made_by_admin")), ("userId", "bob".into())]);
    let made_by_admin = server.client(&adm.post("/api/tokens", &made_by_admin).expect(201).text_at("token"));
    let file = folder.path().join("token");
    save(&bob, "acts", with_token(&file));
    save(&bob, "harmless", echo());
    let refused = start(&made_by_admin, "acts", "r1", Map::new()).expect(403);
    assert!(refused.text.contains("`adm` made this credential"), "{refused:?}");
    start(&made_by_admin, "harmless", "r1", Map::new()).expect(202);
    // Neither does a trigger that it saves, until the member saves the trigger.
    let hook = create(&made_by_admin, "acts", r#"{"type": "webhook", "path": "acts"}"#, "").expect(201).text_at("id");
    let deliver = |body: &str| server.nobody().send("POST", "/webhooks/acts", &[], Some(body));
    let refused = deliver(r#"{"n": 1}"#);
    assert!(refused.status >= 400 && !file.exists(), "{refused:?}");
    let log = bob.get(&format!("/api/triggers/{hook}/deliveries")).expect(200).text;
    assert!(log.contains("`adm` made this credential"), "{log}");
    bob.send("PATCH", &format!("/api/triggers/{hook}"), &[], Some(r#"{"name": "mine"}"#)).expect(200);
    deliver(r#"{"n": 2}"#).expect(202);
}

#[test]
fn a_proposal_names_the_session_of_its_execution() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let data = yaml("constraints: {allowSelfModification: true}\nsteps: [{id: gate, type: approval}]\n");
    let body = Value::map([("id", Value::from("w")), ("data", data)]);
    let saved = ours.owner.post("/api/workflows/sync", &body).expect(200);
    let id = settled(&ours.owner, "w", "r1").text_at("id");
    let proposed = Value::map([("proposedWorkflow", yaml("steps: [{id: other, type: approval}]\n"))]);
    let hash = Value::from(saved.text_at("workflowHash"));
    let body = Value::map([("baseWorkflowHash", hash), ("proposal", proposed)]);
    let made = ours.session_of(&id).post("/api/workflows/w/proposals", &body).expect(201);
    assert_eq!(made.text_at("proposedBySessionId"), format!("sess_{id}"));
}

/// The lines of a command with `--json`.
fn lines(caller: &Caller, arguments: &[&str]) -> Vec<Value> {
    let text = caller.fine(&[arguments, &["--json"]].concat());
    text.lines().map(|line| mainspring_kernel::json::value(line.as_bytes()).unwrap()).collect()
}

#[test]
fn a_reaper_gets_matching_ended_sessions_only() {
    everywhere(|place| {
        // Otherwise workspaces of ended executions may be removed before they are read.
        let file = place.configure("scriptsKeepMinutes: 600\n").join("workspace");
        let server = place.start_uncontained();
        let ours = Organization::new(&server, "acme");
        let owner = &ours.owner;
        let works = |last: &str| {
            yaml(&format!(
                "[{{id: work, type: bash, command: 'pwd > \"{}.$WORKFLOW_ID\"'}}, {{id: last, type: {last}}}]",
                file.display()
            ))
        };
        for (workflow, last) in [("nightly", "approval"), ("other", "approval"), ("open", "approval")] {
            save(owner, workflow, works(last));
        }
        let ids: Vec<String> = ["nightly", "other", "open"].map(|one| settled(owner, one, "r1").text_at("id")).into();
        let folder = |workflow: &str| fs::read_to_string(format!("{}.{workflow}", file.display())).unwrap();
        let exists = |workflow: &str| std::path::Path::new(folder(workflow).trim()).exists();
        let tokens: Vec<Client> = ids.iter().map(|id| ours.session_of(id)).collect();
        let why = Value::map([("reason", Value::from("x"))]);
        for id in &ids[..2] {
            owner.post(&format!("/api/executions/{id}/cancel"), &why).expect(200);
            owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        }
        assert!(["nightly", "other", "open"].into_iter().all(exists));
        let all = Value::map([("key", Value::from("agent:*:workflow:*:run:*"))]);
        ours.member("bob", "member").post("/api/sessions/reap", &all).expect(403);
        let caller = Caller::new(&server.address, owner.token());
        let nightly = "agent:*:workflow:night*:run:*";
        let reaped = |sessions: &[Value]| -> Vec<String> {
            let id = |one: &Value| one.get("executionId").and_then(Value::as_text).unwrap().to_owned();
            sessions.iter().map(id).collect()
        };
        // Neither a trial nor a time before the end changes anything.
        let trial = lines(&caller, &["sessions", "reap", nightly, "--dry-run"]);
        assert_eq!(reaped(&trial), ids[..1]);
        assert_eq!(trial[0].get("tokensRevoked"), Some(&Value::from(1u64)));
        assert_eq!(trial[0].get("workspaceRemoved"), Some(&Value::Bool(true)));
        let early = ["sessions", "reap", nightly, "--ended-before", "2020-01-01T00:00:00Z"];
        assert_eq!(reaped(&lines(&caller, &early)), Vec::<String>::new());
        assert!(exists("nightly"));
        tokens[0].get("/api/me").expect(200);

        let taken = lines(&caller, &["sessions", "reap", nightly]);
        assert_eq!(taken, trial);
        assert!(!exists("nightly") && exists("other") && exists("open"));
        tokens[0].get("/api/me").expect(401);
        tokens[1].get("/api/me").expect(200);
        // All that have ended, with the repeated one, and never the one that waits.
        let taken = lines(&caller, &["sessions", "reap", "agent:*:workflow:*:run:*"]);
        assert_eq!(reaped(&taken), [ids[1].clone(), ids[0].clone()]);
        assert_eq!(taken[1].get("tokensRevoked"), Some(&Value::from(0u64)));
        assert!(!exists("other") && exists("open"));
        tokens[2].get("/api/me").expect(200);
        owner.get(&format!("/api/executions/{}/steps", ids[0])).expect(200);
        let audit = owner.get("/api/audit").expect(200).text;
        assert_eq!(audit.matches("session.reap").count(), 2, "{audit}");
        let listed = lines(&caller, &["sessions", "list", "--status", "terminated"]);
        assert_eq!(listed.len(), 2);
        let shown = lines(&caller, &["sessions", "show", &format!("sess_{}", ids[2])]);
        assert_eq!(shown[0].get("status"), Some(&Value::from("hibernated")));
    });
}
