//! Acceptance criteria 2 and 3 of the first specification: gates, who may decide there, and what a decision does.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    process::{Organization, everywhere},
    starts::{save, start},
};

fn gate(more: &[(&str, Value)]) -> Value {
    let gate = [("id", Value::from("gate")), ("type", "approval".into()), ("prompt", "Ship @vars.version?".into())];
    let gate = Value::map(gate.into_iter().chain(more.iter().cloned()));
    let code = "export default function () { return 1; }";
    let after = [("id", "after"), ("type", "code"), ("code", code), ("outputVariable", "after")];
    Value::List(vec![gate, Value::map(after.map(|(key, value)| (key, Value::from(value))))])
}

/// Starts an execution and waits until it asks.
fn asking(client: &Client, request: &str) -> String {
    let variables = Map::from([("version".to_string(), Value::from("1.2"))]);
    let id = start(client, "ship", request, variables).expect(202).text_at("executionId");
    let seen = client.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(seen.text_at("status"), "waiting_approval");
    id
}

fn decide(client: &Client, id: &str, token: &str, approve: bool) -> Reply {
    let body = [("approve", Value::Bool(approve)), ("resumeToken", token.into()), ("reason", "because".into())];
    client.post(&format!("/api/executions/{id}/approve"), &Value::map(body))
}

#[test]
fn a_gate_shows_what_is_approved_to_those_who_may_and_opens_once() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        save(&ours.owner, "ship", gate(&[]));
        let (other, viewer) = (ours.member("bob", "member"), ours.member("eve", "viewer"));
        let id = asking(&ours.owner, "r1");
        let listed = ours.owner.get("/api/approvals").expect(200);
        assert!(listed.text.contains("Ship 1.2?"), "{listed:?}");
        let token = ours.owner.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        assert!(token.starts_with("wrf_rt_"));
        for client in [&other, &viewer, &ours.session_of(&id)] {
            let seen = client.get(&format!("/api/executions/{id}")).expect(200);
            assert!(seen.text.contains("Ship 1.2?") && !seen.text.contains("wrf_rt_"), "{seen:?}");
            decide(client, &id, &token, true).expect(403);
        }
        let unknown = decide(&ours.owner, &id, "wrf_rt_guess", true).expect(409);
        assert_eq!(unknown.text_at("code"), "INVALID_RESUME_TOKEN");
        decide(&ours.owner, &id, &token, true).expect(200);
        decide(&ours.owner, &id, &token, true).expect(409);
        let ended = ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed");
        let steps = ours.owner.get(&format!("/api/executions/{id}/steps")).expect(200);
        assert!(steps.text.contains("approve by ada: because"), "{steps:?}");
        let none = ours.owner.get("/api/approvals").expect(200).json();
        assert_eq!(none.get("approvals"), Some(&Value::List(Vec::new())));
        let audit = ours.owner.get("/api/audit").expect(200);
        assert!(audit.text.contains("approval.decide") && audit.text.contains("execution.start"), "{audit:?}");
        let proof = ours.owner.get("/api/audit/verify").expect(200).json();
        assert_eq!(proof.get("ok"), Some(&Value::Bool(true)), "{proof:?}");
    });
}

#[test]
fn a_denial_cancels() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "ship", gate(&[]));
        let id = asking(&owner, "r1");
        let list = owner.get("/api/approvals").expect(200).json();
        let first = &list.get("approvals").and_then(Value::as_list).unwrap()[0];
        let name = first.get("id").and_then(Value::as_text).unwrap();
        let body = Value::map([("approve", Value::Bool(false))]);
        owner.post(&format!("/api/approvals/{name}/decide"), &body).expect(200);
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(
            (ended.text_at("status"), ended.text_at("errorCode")),
            ("cancelled".into(), "approval_denied".into())
        );
        owner.post(&format!("/api/approvals/{name}/decide"), &body).expect(404);
    });
}

#[test]
fn named_approvers_decide_and_nobody_else_and_as_many_as_are_asked_for() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let named = Value::List(vec!["bob".into(), "cem".into()]);
        save(&ours.owner, "ship", gate(&[("approvers", named), ("count", 2u64.into())]));
        let (bob, cem) = (ours.member("bob", "member"), ours.member("cem", "member"));
        let id = asking(&ours.owner, "r1");
        assert!(!ours.owner.get(&format!("/api/executions/{id}")).text.contains("wrf_rt_"), "the owner is not named");
        let token = |client: &Client| client.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        let first = token(&bob);
        decide(&ours.owner, &id, &first, true).expect(403);
        decide(&bob, &id, &first, true).expect(200);
        decide(&bob, &id, &first, true).expect(409);
        assert_eq!(ours.owner.get(&format!("/api/executions/{id}")).text_at("status"), "waiting_approval");
        decide(&cem, &id, &token(&cem), true).expect(200);
        let ended = ours.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed");
    });
}

#[test]
fn what_was_acknowledged_before_a_power_cut_is_there_after_it() {
    everywhere(|place| {
        let mut server = place.start();
        let (owner, token) = (server.owner(), server.token.clone().unwrap());
        save(&owner, "ship", gate(&[]));
        let (going, denied) = (asking(&owner, "r1"), asking(&owner, "r2"));
        let opener = |id: &str| owner.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        let (first, second) = (opener(&going), opener(&denied));
        decide(&owner, &going, &first, true).expect(200);
        decide(&owner, &denied, &second, false).expect(200);
        let started = start(&owner, "ship", "r3", Map::from([("version".to_string(), Value::from("2"))])).expect(202);
        server.kill();
        let server = place.start();
        assert_eq!(server.token, None, "an owner is made once");
        let owner = server.client(&token);
        let status = |id: &str| owner.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        assert_eq!(status(&going), "completed");
        assert_eq!(status(&denied), "cancelled");
        assert_eq!(status(&started.text_at("executionId")), "waiting_approval");
        decide(&owner, &going, &first, true).expect(409);
    });
}
