//! Proposals: created, reviewed, applied, and taken back by a rollback.

use std::{collections::BTreeMap, thread};

use mainspring_kernel::value::{Map, Value};
use mainspring_store::postgres::server as postgres;

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
    start::{save, start},
    support::{MAINSPRING, call},
};

/// A definition that returns a number, and permits proposals.
fn definition(number: u64) -> Value {
    let code = format!("export default function () {{ return {number}; }}");
    let step = [("id", Value::from("a")), ("type", "code".into()), ("code", code.into())];
    with_steps(vec![Value::map(step)])
}

/// A definition that waits for a number of milliseconds. It compiles without a worker.
fn waiting(number: u64) -> Value {
    let step = [("id", Value::from("a")), ("type", "sleep".into()), ("durationMs", number.into())];
    with_steps(vec![Value::map(step)])
}

fn with_steps(steps: Vec<Value>) -> Value {
    let constraints = Value::map([("allowSelfModification", Value::Bool(true))]);
    Value::map([("steps", steps.into()), ("constraints", constraints)])
}

fn sync(client: &Client, id: &str, data: Value) -> String {
    let body = Value::map([("id", Value::from(id)), ("data", data)]);
    client.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
}

fn hash_of(client: &Client, id: &str) -> String {
    client.get(&format!("/api/workflows/{id}")).expect(200).text_at("workflowHash")
}

fn propose(client: &Client, workflow: &str, base: &str, data: Value) -> Reply {
    let change = Value::map([("proposedWorkflow", data), ("summary", "s".into())]);
    let body = Value::map([("baseWorkflowHash", Value::from(base)), ("proposal", change)]);
    client.post(&format!("/api/workflows/{workflow}/proposals"), &body)
}

fn path(workflow: &str, id: &str, verb: &str) -> String {
    format!("/api/workflows/{workflow}/proposals/{id}{verb}")
}

fn review(client: &Client, workflow: &str, id: &str, approve: bool) -> Reply {
    client.post(&path(workflow, id, "/review"), &Value::map([("approve", Value::Bool(approve))]))
}

fn apply(client: &Client, workflow: &str, id: &str) -> Reply {
    client.send("POST", &path(workflow, id, "/apply"), &[], Some("{}"))
}

fn status(client: &Client, workflow: &str, id: &str) -> String {
    client.get(&path(workflow, id, "")).expect(200).text_at("status")
}

/// The ids of a workflow's proposals with a status.
fn listed(client: &Client, workflow: &str, status: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/workflows/{workflow}/proposals?limit=7&status={status}{cursor}");
        let page = client.get(&path).expect(200).json();
        let rows = page.get("proposals").and_then(Value::as_list).unwrap();
        found.extend(rows.iter().map(|row| row.get("id").and_then(Value::as_text).unwrap().to_string()));
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[test]
fn a_proposal_is_reviewed_applied_and_rolled_back() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let base = sync(&owner, "w", definition(1));
        let created = propose(&owner, "w", &base, definition(2)).expect(201);
        let id = created.text_at("id");
        assert_eq!((created.text_at("status"), created.text_at("baseWorkflowHash")), ("pending".into(), base.clone()));
        let report = created.json().get("report").cloned().unwrap();
        assert_eq!(report.get("risk"), Some(&"low".into()));
        let codes = report.get("findings").and_then(Value::as_list).unwrap();
        assert_eq!(codes[0].get("code"), Some(&"code_changed".into()));
        assert_eq!(codes[0].get("path"), Some(&"steps[0].code".into()));
        // A review names what it has seen. Another hash is refused, and the right one is recorded.
        let other = Value::map([("approve", Value::Bool(true)), ("reviewHash", "sha256:0".into())]);
        owner.post(&path("w", &id, "/review"), &other).expect(409);
        apply(&owner, "w", &id).expect(409);
        let seen = created.text_at("reviewHash");
        let approval = [("approve", Value::Bool(true)), ("reviewHash", seen.as_str().into()), ("notes", "good".into())];
        let approved = owner.post(&path("w", &id, "/review"), &Value::map(approval)).expect(200);
        assert_eq!((approved.text_at("status"), approved.text_at("reviewNotes")), ("approved".into(), "good".into()));
        review(&owner, "w", &id, false).expect(409);
        let applied = apply(&owner, "w", &id).expect(200).json();
        assert_eq!(applied.get("workflow").and_then(|w| w.get("version")), Some(&"1.0.1".into()));
        apply(&owner, "w", &id).expect(409);
        assert_eq!(status(&owner, "w", &id), "applied");
        assert_eq!(listed(&owner, "w", "applied"), [id.as_str()]);
        // The history has one entry for each hash, and the rollback is on record.
        let body = Value::map([("workflowHash", Value::from(base.as_str()))]);
        let back = owner.post("/api/workflows/w/rollback", &body).expect(200).json();
        assert_eq!((back.get("alreadyAtVersion"), back.get("version")), (Some(&false.into()), Some(&"1.0.0".into())));
        let again = owner.post("/api/workflows/w/rollback", &body).expect(200).json();
        assert_eq!(again.get("alreadyAtVersion"), Some(&true.into()));
        let history = owner.get("/api/workflows/w/history").expect(200).json();
        let entries = history.get("history").and_then(Value::as_list).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].get("source"), Some(&"proposal_apply".into()));
        assert_eq!(entries[0].get("sourceProposalId"), Some(&id.as_str().into()));
        let returns = entries[1].get("returns").and_then(Value::as_list).unwrap();
        assert_eq!((returns.len(), returns[0].get("source")), (1, Some(&"rollback".into())));
        let unknown = Value::map([("workflowHash", Value::from(format!("sha256:{}", "0".repeat(64))))]);
        owner.post("/api/workflows/w/rollback", &unknown).expect(404);
    });
}

#[test]
fn a_change_of_the_workflow_supersedes_and_fails_proposals() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let base = sync(&owner, "w", definition(1));
    let approved = propose(&owner, "w", &base, definition(2)).expect(201).text_at("id");
    let pending = propose(&owner, "w", &base, definition(3)).expect(201).text_at("id");
    review(&owner, "w", &approved, true).expect(200);
    sync(&owner, "w", definition(4));
    assert_eq!([&approved, &pending].map(|id| status(&owner, "w", id)), ["superseded", "superseded"]);
    review(&owner, "w", &pending, true).expect(409);
    let current = hash_of(&owner, "w");
    apply(&owner, "w", &approved).expect(409);
    assert_eq!(hash_of(&owner, "w"), current, "a failed application changes nothing");
    let failed = owner.get(&path("w", &approved, "")).expect(200);
    assert_eq!(failed.text_at("status"), "failed");
    assert!(failed.text_at("failure").contains("base hash"), "{failed:?}");
    // The definition that it changes is back, and so is the pending proposal.
    sync(&owner, "w", definition(1));
    assert_eq!([&approved, &pending].map(|id| status(&owner, "w", id)), ["failed", "pending"]);
    review(&owner, "w", &pending, false).expect(200);
    apply(&owner, "w", &pending).expect(409);
    assert_eq!(status(&owner, "w", &pending), "rejected");
    // A deleted workflow takes its proposals along: another one with its id does not have them.
    let open = propose(&owner, "w", &base, definition(5)).expect(201).text_at("id");
    owner.send("DELETE", "/api/workflows/w", &[], None).expect(204);
    owner.get(&path("w", &open, "")).expect(404);
    sync(&owner, "w", definition(1));
    assert_eq!(status(&owner, "w", &open), "superseded");
    review(&owner, "w", &open, true).expect(409);
}

#[test]
fn proposals_are_refused_that_cannot_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let base = sync(&owner, "w", definition(1));
    let code = |reply: Reply| (reply.status, reply.text_at("code"));
    let invalid = |text: &str| (400, text.to_string());
    assert_eq!(code(propose(&owner, "w", "sha256:dead", definition(2))), invalid("VALIDATION_ERROR"));
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(code(propose(&owner, "w", &other, definition(2))), (409, "CONFLICT".into()));
    assert_eq!(code(propose(&owner, "w", &base, definition(1))), invalid("VALIDATION_ERROR"));
    let unknown = with_steps(vec![Value::map([("type", Value::from("nothing"))])]);
    assert_eq!(code(propose(&owner, "w", &base, unknown)), invalid("INVALID_DEFINITION"));
    let send = |body: &str| code(owner.send("POST", "/api/workflows/w/proposals", &[], Some(body)));
    assert_eq!(send("{}"), invalid("VALIDATION_ERROR"));
    assert_eq!(send(&format!(r#"{{"baseWorkflowHash": "{base}", "proposal": null}}"#)), invalid("VALIDATION_ERROR"));
    let whole = |more: &str| {
        format!(
            r#"{{"baseWorkflowHash": "{base}", "proposal": {{"proposedWorkflow": {}{more}}}"#,
            mainspring_kernel::json::compact(&definition(2))
        )
    };
    for more in [r#", "x": 1"#, r#", "summary": " ""#, r#", "baseHash": "sha256:0""#] {
        assert_eq!(send(&(whole(more) + "}")), invalid("VALIDATION_ERROR"), "{more}");
    }
    for expires in ["2000-01-01T00:00:00Z", "nope", "2999-01-01T00:00:00Z"] {
        assert_eq!(send(&format!(r#"{}, "expiresAt": "{expires}"}}"#, whole(""))), invalid("VALIDATION_ERROR"));
    }
    assert_eq!(send(&format!(r#"{}, "executionId": "none"}}"#, whole(""))), (404, "NOT_FOUND".into()));
    // The whole result of `workflow propose` is accepted.
    let result = whole(&format!(r#", "baseHash": "{base}", "riskLevel": "low", "diff": "-", "summary": "s""#)) + "}";
    owner.send("POST", "/api/workflows/w/proposals", &[], Some(&result)).expect(201);
    save(
        &owner,
        "closed",
        Value::List(vec![Value::map([("type", Value::from("sleep")), ("durationMs", 1u64.into())])]),
    );
    assert_eq!(code(propose(&owner, "closed", &hash_of(&owner, "closed"), definition(2))), (409, "CONFLICT".into()));
}

#[test]
fn a_changed_workflow_that_it_starts_voids_the_review() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    sync(&owner, "child", definition(1));
    let base = sync(&owner, "w", definition(1));
    let starts = [("id", Value::from("sub")), ("type", "subworkflow".into()), ("workflow", "child".into())];
    let id = propose(&owner, "w", &base, with_steps(vec![Value::map(starts)])).expect(201).text_at("id");
    review(&owner, "w", &id, true).expect(200);
    sync(&owner, "child", definition(2));
    let refused = apply(&owner, "w", &id).expect(409);
    assert!(refused.text_at("error").contains("review is void"), "{refused:?}");
    assert_eq!((status(&owner, "w", &id), hash_of(&owner, "w")), ("pending".into(), base));
    apply(&owner, "w", &id).expect(409);
    review(&owner, "w", &id, true).expect(200);
    apply(&owner, "w", &id).expect(200);
}

#[test]
fn a_strict_application_waits_for_open_executions() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let gate = Value::map([("id", Value::from("gate")), ("type", "approval".into())]);
    let base = sync(&owner, "w", with_steps(vec![gate]));
    let execution = start(&owner, "w", "1", Map::new()).expect(202).text_at("executionId");
    let id = propose(&owner, "w", &base, definition(2)).expect(201).text_at("id");
    review(&owner, "w", &id, true).expect(200);
    let apply_with = |treatment: &str| {
        owner.post(&path("w", &id, "/apply"), &Value::map([("whileRunning", Value::from(treatment))]))
    };
    apply_with("later").expect(400);
    let refused = apply_with("strict").expect(409);
    assert!(refused.text.contains(&execution), "{refused:?}");
    assert_eq!((status(&owner, "w", &id), hash_of(&owner, "w")), ("approved".into(), base));
    let cancel = Value::map([("reason", Value::from("enough"))]);
    owner.post(&format!("/api/executions/{execution}/cancel"), &cancel).expect(200);
    owner.get(&format!("/api/executions/{execution}/wait")).expect(200);
    apply_with("strict").expect(200);
}

#[test]
fn four_eyes_need_two_people() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "ours");
    let admin = ours.member("admin", "admin");
    let base = sync(&ours.owner, "w", definition(1));
    let early = propose(&ours.owner, "w", &base, definition(3)).expect(201).text_at("id");
    review(&ours.owner, "w", &early, true).expect(200);
    let settings = r#"{"features": {"proposal_four_eyes": true}}"#;
    ours.owner.send("PATCH", "/api/organization", &[], Some(settings)).expect(200);
    // An approval by the author alone, from before the setting, is void.
    apply(&ours.owner, "w", &early).expect(409);
    let id = propose(&ours.owner, "w", &base, definition(2)).expect(201).text_at("id");
    review(&ours.owner, "w", &id, true).expect(403);
    assert_eq!(status(&ours.owner, "w", &id), "pending");
    review(&admin, "w", &id, true).expect(200);
    apply(&ours.owner, "w", &id).expect(200);
    // The admin has made the credential that proposes, so the admin counts as the author.
    ours.owner.put("/api/members/zoe", &Value::map([("role", Value::from("member"))])).expect(200);
    let made =
        admin.post("/api/tokens", &Value::map([("userId", Value::from("zoe")), ("name", "t".into())])).expect(201);
    let zoe = server.client(&made.text_at("token"));
    let own = propose(&zoe, "w", &hash_of(&ours.owner, "w"), definition(5)).expect(201).text_at("id");
    review(&admin, "w", &own, true).expect(403);
    review(&ours.owner, "w", &own, true).expect(200);
    apply(&admin, "w", &own).expect(200);
    // The author may withdraw.
    let next = propose(&ours.owner, "w", &hash_of(&ours.owner, "w"), definition(4)).expect(201).text_at("id");
    review(&ours.owner, "w", &next, false).expect(200);
}

/// Superseded proposals count, because a rollback can make them current again. So they can be rejected.
#[test]
fn superseded_proposals_can_be_rejected_and_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let base = sync(&owner, "w", waiting(1));
    let ids: Vec<String> =
        (2..102).map(|number| propose(&owner, "w", &base, waiting(number)).expect(201).text_at("id")).collect();
    let next = sync(&owner, "w", waiting(200));
    assert_eq!(status(&owner, "w", &ids[0]), "superseded");
    propose(&owner, "w", &next, waiting(201)).expect(429);
    review(&owner, "w", &ids[0], true).expect(409);
    review(&owner, "w", &ids[0], false).expect(200);
    assert_eq!(status(&owner, "w", &ids[0]), "rejected");
    propose(&owner, "w", &next, waiting(201)).expect(201);
    // Those of a deleted workflow can never be current again.
    owner.send("DELETE", "/api/workflows/w", &[], None).expect(204);
    let base = sync(&owner, "w", waiting(1));
    propose(&owner, "w", &base, waiting(2)).expect(201);
}

#[test]
fn a_shadow_run_is_part_of_the_review() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let steps = |sent: &str| {
            let wait = [("id", Value::from("wait")), ("type", "signal".into()), ("signal", "go".into())];
            let code = format!("export default function () {{ return {sent}; }}");
            let send = [("id", Value::from("send")), ("type", "code".into()), ("code", code.into())];
            with_steps(vec![Value::map(wait), Value::map(send)])
        };
        let base = sync(&owner, "w", steps("1"));
        let execution = start(&owner, "w", "1", Map::new()).expect(202).text_at("executionId");
        let signal = Value::map([("name", Value::from("go")), ("id", "s1".into())]);
        owner.post(&format!("/api/executions/{execution}/signal"), &signal).expect(200);
        owner.get(&format!("/api/executions/{execution}/wait")).expect(200);
        let id = propose(&owner, "w", &base, steps("2")).expect(201).text_at("id");
        let route = path("w", &id, "/shadow");
        owner.get(&route).expect(404);
        let before = owner.get(&path("w", &id, "")).expect(200).text_at("reviewHash");
        // The organization requires a shadow run: without one there is no approval.
        let settings = r#"{"features": {"proposal_shadow": true}}"#;
        owner.send("PATCH", "/api/organization", &[], Some(settings)).expect(200);
        review(&owner, "w", &id, true).expect(409);
        let ran = owner.post(&route, &Value::map([("last", Value::from(5u64))])).expect(200);
        let report = ran.json().get("report").cloned().unwrap();
        let executions = report.get("executions").and_then(Value::as_list).unwrap().to_vec();
        assert_eq!(executions.len(), 1, "{report:?}");
        assert_eq!(executions[0].get("grade"), Some(&"other_output".into()), "{report:?}");
        // The report has places and no values.
        let difference = &executions[0].get("differences").and_then(Value::as_list).unwrap()[0];
        assert_eq!((difference.get("step"), difference.get("before")), (Some(&"send".into()), Some(&Value::Null)));
        let shown = owner.get(&path("w", &id, "")).expect(200);
        assert_eq!(shown.text_at("shadowHash"), ran.text_at("hash"));
        assert_ne!(shown.text_at("reviewHash"), before, "the review covers the shadow run");
        assert_eq!(owner.get(&route).expect(200).text_at("hash"), ran.text_at("hash"));
        for (body, said) in [
            (Value::map([("last", Value::from(0u64))]), "last"),
            (Value::map([("last", Value::from(51u64))]), "last"),
            (Value::map([("executionIds", Value::List(Vec::new()))]), "executionIds"),
        ] {
            let refused = owner.post(&route, &body).expect(400);
            assert!(refused.text.contains(said), "{refused:?}");
        }
        let seen = Value::map([("approve", Value::Bool(true)), ("reviewHash", before.as_str().into())]);
        owner.post(&path("w", &id, "/review"), &seen).expect(409);
        review(&owner, "w", &id, true).expect(200);
        // An approved proposal keeps its report: another one would void the approval.
        owner.post(&route, &Value::map([("last", Value::from(5u64))])).expect(409);
        apply(&owner, "w", &id).expect(200);
    });
}

#[test]
fn a_session_proposes_and_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "ours");
    let gate = || Value::map([("id", Value::from("gate")), ("type", "approval".into())]);
    let base = sync(&ours.owner, "w", with_steps(vec![gate()]));
    let other = sync(&ours.owner, "other", definition(1));
    let execution = start(&ours.owner, "w", "1", Map::new()).expect(202).text_at("executionId");
    let session = ours.session_of(&execution);
    let agent = ours.member("robot", "agent");
    let member = ours.member("member", "member");
    let id = propose(&session, "w", &base, with_steps(vec![gate(), gate_named("b")])).expect(201);
    assert_eq!((id.text_at("executionId"), id.text_at("proposedBy")), (execution, "ada".into()));
    // Expired proposals do not count, so a program must not make them expire.
    let short = format!(
        r#"{{"baseWorkflowHash": "{base}", "expiresAt": "{}", "proposal": {{"proposedWorkflow": {}}}}}"#,
        mainspring_kernel::time::rfc3339(mainspring_engine::clock::now_ms() + 2 * 3_600_000),
        mainspring_kernel::json::compact(&with_steps(vec![gate()]))
    );
    session.send("POST", "/api/workflows/w/proposals", &[], Some(&short)).expect(400);
    let id = id.text_at("id");
    for (client, workflow, expected) in [(&session, "other", 403), (&agent, "w", 201), (&member, "w", 201)] {
        let hash = if workflow == "w" { &base } else { &other };
        let reply = propose(client, workflow, hash, definition(7));
        assert_eq!(reply.status, expected, "{reply:?}");
    }
    let outsider = Organization::new(&server, "beside").owner;
    let hash = Value::map([("workflowHash", Value::from(base.as_str()))]);
    for (name, client) in [("session", &session), ("agent", &agent), ("member", &member), ("outsider", &outsider)] {
        let expected = if name == "outsider" { 404 } else { 403 };
        for approve in [true, false] {
            assert_eq!(review(client, "w", &id, approve).status, expected, "{name}");
        }
        assert_eq!(apply(client, "w", &id).status, expected, "{name}");
        let back = client.post("/api/workflows/w/rollback", &hash).status;
        assert_eq!(back, expected, "{name}");
    }
    assert_eq!(status(&ours.owner, "w", &id), "pending");
    review(&ours.owner, "w", &id, true).expect(200);
    for client in [&session, &agent, &member] {
        assert_eq!(apply(client, "w", &id).status, 403);
    }
    assert_eq!(hash_of(&ours.owner, "w"), base);
    apply(&ours.owner, "w", &id).expect(200);
}

fn gate_named(id: &str) -> Value {
    Value::map([("id", Value::from(id)), ("type", "approval".into())])
}

#[test]
fn open_proposals_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--rate-limit-per-second", "0"]);
    let owner = server.owner();
    let base = sync(&owner, "w", waiting(1));
    let ids: Vec<String> =
        (0..100).map(|n| propose(&owner, "w", &base, waiting(n + 2)).expect(201).text_at("id")).collect();
    propose(&owner, "w", &base, waiting(500)).expect(429);
    review(&owner, "w", &ids[0], false).expect(200);
    propose(&owner, "w", &base, waiting(500)).expect(201);
}

#[test]
fn a_member_leaves_room_for_the_proposals_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--rate-limit-per-second", "0"]);
    let ours = Organization::new(&server, "acme");
    let base = sync(&ours.owner, "w", waiting(1));
    let [zoe, sam] = ["zoe", "sam"].map(|user| ours.member(user, "member"));
    (0..40).for_each(|n| drop(propose(&zoe, "w", &base, waiting(n + 2)).expect(201)));
    let refused = propose(&zoe, "w", &base, waiting(500)).expect(429);
    assert!(refused.text_at("error").contains("40 open proposals of yours"), "{refused:?}");
    propose(&sam, "w", &base, waiting(500)).expect(201);
    propose(&ours.owner, "w", &base, waiting(501)).expect(201);
}

/// Sessions and members with the role `agent` have few places in sum, so that they cannot take those of people.
#[test]
fn programs_leave_room_for_the_proposals_of_people() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let owner = &ours.owner;
    let base = sync(owner, "w", waiting(3_600_000));
    let execution = start(owner, "w", "r", Map::new()).expect(202).text_at("executionId");
    let (session, agent) = (ours.session_of(&execution), ours.member("bot", "agent"));
    let by_agent = propose(&agent, "w", &base, waiting(1)).expect(201).text_at("id");
    for number in 0..19 {
        propose(&session, "w", &base, waiting(number + 2)).expect(201);
    }
    for program in [&session, &agent] {
        let refused = propose(program, "w", &base, waiting(500)).expect(429);
        assert!(refused.text_at("error").contains("20 open proposals of sessions and agents"), "{refused:?}");
    }
    propose(owner, "w", &base, waiting(500)).expect(201);
    propose(&ours.member("zoe", "member"), "w", &base, waiting(501)).expect(201);
    review(owner, "w", &by_agent, false).expect(200);
    propose(&session, "w", &base, waiting(502)).expect(201);
}

/// 64 clients propose, approve and apply changes of one workflow at the same time, and roll it back.
fn race(server: &Server) {
    let owner = server.owner();
    let first = sync(&owner, "w", waiting(1));
    let results: Vec<Option<(String, String)>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..64u64)
            .map(|number| {
                let (owner, first) = (&owner, &first);
                scope.spawn(move || {
                    if number % 16 == 0 {
                        let body = Value::map([("workflowHash", Value::from(first.as_str()))]);
                        let status = owner.post("/api/workflows/w/rollback", &body).status;
                        assert!([200, 409].contains(&status), "{status}");
                        return None;
                    }
                    let base = hash_of(owner, "w");
                    let created = propose(owner, "w", &base, waiting(number + 100));
                    if created.status != 201 {
                        assert_eq!(created.status, 409, "{created:?}");
                        return None;
                    }
                    let id = created.text_at("id");
                    let reviewed = review(owner, "w", &id, true);
                    assert!([200, 409].contains(&reviewed.status), "{reviewed:?}");
                    let applied = apply(owner, "w", &id);
                    assert!([200, 409].contains(&applied.status), "{applied:?}");
                    (applied.status == 200).then_some((id, base))
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let applied: BTreeMap<String, String> = results.into_iter().flatten().collect();
    assert!(!applied.is_empty(), "at least the first one is applied");
    // Each base is left once, except the first, to which rollbacks return.
    let mut by_base: BTreeMap<&String, u32> = BTreeMap::new();
    applied.values().for_each(|base| *by_base.entry(base).or_default() += 1);
    let history = owner.get("/api/workflows/w/history?limit=200").expect(200).json();
    let entries = history.get("history").and_then(Value::as_list).unwrap();
    let returns: usize = entries.iter().map(|entry| entry.get("returns").and_then(Value::as_list).unwrap().len()).sum();
    for (base, count) in by_base {
        let bound = if *base == first { 1 + returns as u32 } else { 1 };
        assert!(count <= bound, "{count} proposals were applied to {base}, with {returns} rollbacks");
    }
    let from_proposals = entries.iter().filter(|entry| entry.get("source") == Some(&"proposal_apply".into())).count();
    assert_eq!(from_proposals, applied.len(), "the history has exactly the applied proposals");
    let mut listed = listed(&owner, "w", "applied");
    listed.sort();
    assert_eq!(listed, applied.into_keys().collect::<Vec<_>>());
    owner.get("/api/audit/verify").expect(200);
}

#[test]
fn one_of_many_clients_applies_to_each_version() {
    let unlimited = ["--rate-limit-per-second", "0"];
    let folder = tempfile::tempdir().unwrap();
    race(&Server::start_with(folder.path(), &unlimited));
    let database = postgres::Server::start(postgres::Options { fsync: false, ..postgres::Options::default() }).unwrap();
    let (folder, address) = (tempfile::tempdir().unwrap(), database.scratch().address());
    race(&Server::start_with(folder.path(), &["--store", &address, "--rate-limit-per-second", "0"]));
}

#[test]
fn the_commands_propose_review_apply_and_roll_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let base = sync(&owner, "w", definition(1));
    let file = folder.path().join("new.json");
    std::fs::write(&file, mainspring_kernel::json::compact(&definition(2))).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(MAINSPRING);
        command.args(arguments).env("MAINSPRING_SERVER", format!("http://{}", server.address));
        command.env("MAINSPRING_TOKEN", owner.token()).env("HOME", folder.path());
        call(command, b"")
    };
    let proposed = run(&["propose", "w", "--from", file.to_str().unwrap(), "--rationale", "because", "--json"]);
    assert_eq!(proposed.exit, Some(0), "{proposed:?}");
    let proposed = mainspring_kernel::json::read(proposed.stdout.as_bytes()).unwrap().value;
    let id = proposed.get("id").and_then(Value::as_text).unwrap();
    let listed = run(&["proposals", "list", "w", "--status", "pending"]);
    assert!(listed.exit == Some(0) && listed.stdout.contains(id), "{listed:?}");
    let shown = run(&["proposals", "show", "w", id]);
    for part in ["because", "code_changed", "steps[0].code", "risk: low"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let early = run(&["proposals", "apply", "w", id]);
    assert_eq!(early.exit, Some(20), "{early:?}");
    let other = run(&["proposals", "approve", "w", id, "--review-hash", "sha256:0"]);
    assert_eq!(other.exit, Some(20), "{other:?}");
    assert_eq!(run(&["proposals", "approve", "w", id, "--notes", "good"]).exit, Some(0));
    let applied = run(&["proposals", "apply", "w", id]);
    assert!(applied.exit == Some(0) && applied.stdout.contains("1.0.1"), "{applied:?}");
    let back = run(&["rollback", "w", &base]);
    assert!(back.exit == Some(0) && back.stdout.contains("1.0.0"), "{back:?}");
    assert!(run(&["rollback", "w", &base]).stdout.contains("already"));
    assert_eq!(hash_of(&owner, "w"), base);
    assert_eq!(run(&["proposals", "reject", "w", id]).exit, Some(20));
}
