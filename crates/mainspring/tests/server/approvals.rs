//! Acceptance criteria 2 and 3 of the first specification: approvals, approvers, and the effect of a decision.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    commands::Caller,
    process::{Organization, Server, everywhere},
    start::{save, start},
    support::call,
};

fn gate(more: &[(&str, Value)]) -> Value {
    let gate = [("id", Value::from("gate")), ("type", "approval".into()), ("prompt", "Ship @vars.version?".into())];
    let gate = Value::map(gate.into_iter().chain(more.iter().cloned()));
    let code = "export default function () { return 1; }";
    let after = [("id", "after"), ("type", "code"), ("code", code), ("outputVariable", "after")];
    Value::List(vec![gate, Value::map(after.map(|(key, value)| (key, Value::from(value))))])
}

/// Starts an execution and waits until its approval is open.
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
fn a_gate_is_shown_to_approvers_and_opens_once() {
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
        // The execution names the approval as the list does.
        let shown = owner.get(&format!("/api/executions/{id}")).expect(200).json();
        let gate = &shown.get("approvals").and_then(Value::as_list).unwrap()[0];
        let of_gate = |key: &str| gate.get(key).and_then(Value::as_text).unwrap().to_string();
        assert_eq!((of_gate("id"), of_gate("decideUrl")), (name.into(), format!("/api/approvals/{name}/decide")));
        owner.post(&of_gate("decideUrl"), &body).expect(200);
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(
            (ended.text_at("status"), ended.text_at("errorCode")),
            ("cancelled".into(), "approval_denied".into())
        );
        let late = owner.post(&format!("/api/approvals/{name}/decide"), &body).expect(409);
        let why = late.text_at("error");
        assert!(why.contains("`gate` was already decided: denied by") && why.contains("cancelled"), "{late:?}");
        assert_eq!(of(&of(&late.json(), "details"), "approval"), "decided".into(), "{late:?}");
        let shown = owner.get(&format!("/api/approvals/{name}")).expect(404);
        assert!(shown.text_at("error").contains("already decided"), "{shown:?}");
    });
}

/// An approval with two named approvers, who must both approve.
struct Named {
    ours: Organization,
    bob: Client,
    cem: Client,
    /// The execution that waits for the approval.
    id: String,
}

impl Named {
    fn asking(server: &Server) -> Self {
        let ours = Organization::new(server, "acme");
        let named = Value::List(vec!["bob".into(), "cem".into()]);
        let (bob, cem) = (ours.member("bob", "member"), ours.member("cem", "member"));
        save(&ours.owner, "ship", gate(&[("approvers", named), ("count", 2u64.into())]));
        let id = asking(&ours.owner, "r1");
        Self { ours, bob, cem, id }
    }
}

#[test]
fn only_named_approvers_decide_in_the_required_number() {
    everywhere(|place| {
        let server = place.start();
        let Named { ours, bob, cem, id } = Named::asking(&server);
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
fn acknowledged_decisions_survive_a_power_failure() {
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

fn log_of(client: &Client) -> Vec<Value> {
    let log = client.get("/api/audit").expect(200).json();
    log.get("entries").and_then(Value::as_list).unwrap().to_vec()
}

/// The newest audit entry of an action: actor, target and detail.
#[track_caller]
fn audited(client: &Client, action: &str) -> (String, String, Value) {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_text).unwrap().to_string();
    let entry = log_of(client).into_iter().rev().find(|entry| text(entry, "action") == action);
    let entry = entry.unwrap_or_else(|| panic!("no audit entry for {action}: {:?}", log_of(client)));
    (text(&entry, "actor"), text(&entry, "target"), entry.get("detail").unwrap().clone())
}

fn of(value: &Value, key: &str) -> Value {
    value.get(key).cloned().unwrap_or_default()
}

#[test]
fn decisions_are_listed_with_person_time_and_reason() {
    everywhere(|place| {
        let server = place.start();
        let Named { ours, bob, cem, id } = Named::asking(&server);
        let token = bob.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        decide(&bob, &id, &token, true).expect(200);
        let (actor, target, detail) = audited(&ours.owner, "approval.decide");
        assert_eq!((actor.as_str(), target.as_str(), of(&detail, "reason")), ("bob", id.as_str(), "because".into()));
        let body = Value::map([("approve", Value::Bool(true)), ("resumeToken", token.as_str().into())]);
        cem.post(&format!("/api/executions/{id}/approve"), &body).expect(200);
        assert_eq!(of(&audited(&ours.owner, "approval.decide").2, "reason"), Value::Null);
        let steps = ours.owner.get(&format!("/api/executions/{id}/steps")).expect(200).json();
        let steps = steps.get("steps").and_then(Value::as_list).unwrap();
        let decisions = of(&steps[0], "decisions");
        let told: Vec<_> = decisions.as_list().unwrap().iter().map(|one| (of(one, "by"), of(one, "reason"))).collect();
        assert_eq!(told, [("bob".into(), "because".into()), ("cem".into(), Value::Null)]);
        for one in decisions.as_list().unwrap() {
            assert_eq!(of(one, "decision"), "approve".into());
            assert!(of(one, "at").as_text().is_some_and(|at| at.ends_with('Z')), "{one:?}");
        }
        assert!(steps[1].get("decisions").is_none(), "no approval was opened there");
    });
}

#[test]
fn the_length_of_a_reason_is_bounded() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "ship", gate(&[]));
        let id = asking(&owner, "r1");
        let token = owner.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        let (long, longest) = ("\u{e4}".repeat(2_001), "\u{e4}".repeat(2_000));
        let body = |reason: &str| {
            [("approve", Value::Bool(true)), ("resumeToken", token.as_str().into()), ("reason", reason.into())]
        };
        let refused = owner.post(&format!("/api/executions/{id}/approve"), &Value::map(body(&long))).expect(400);
        assert!(refused.text_at("error").contains("2000"), "{refused:?}");
        let by_name = Value::map([("approve", Value::Bool(true)), ("reason", long.as_str().into())]);
        owner.post(&format!("/api/approvals/{id}:gate:1/decide"), &by_name).expect(400);
        let form = format!("decision=approve&reason={}&resumeToken={token}", "x".repeat(2_001));
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        owner.send("POST", &format!("/approve/{id}:gate:1"), &kind, Some(&form)).expect(400);
        if let Some(mut command) = place.command(&["approve", &id, "--reason", &long]) {
            let refused = command.output().unwrap();
            assert_eq!(refused.status.code(), Some(10), "{refused:?}");
        }
        owner.post(&format!("/api/executions/{id}/approve"), &Value::map(body(&longest))).expect(200);
    });
}

#[test]
fn the_expiry_of_an_approval_is_audited() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "ship", gate(&[("ttlMs", 1u64.into())]));
        let variables = Map::from([("version".to_string(), Value::from("1.2"))]);
        let id = start(&owner, "ship", "r1", variables).expect(202).text_at("executionId");
        let is_over = || owner.get(&format!("/api/executions/{id}/wait")).text_at("status") == "cancelled";
        assert!(std::iter::repeat_with(is_over).any(|is_over| is_over));
        let (actor, target, detail) = audited(&owner, "approval.decide");
        assert_eq!((actor.as_str(), target), ("(timeout)", id));
        assert_eq!((of(&detail, "step"), of(&detail, "decision")), ("gate".into(), "deny".into()));
        assert_eq!(of(&owner.get("/api/audit/verify").expect(200).json(), "ok"), Value::Bool(true));
    });
}

/// Commands with the server's folder and key are audited too, whether the server runs or not.
#[test]
fn local_commands_are_audited() {
    everywhere(|place| {
        let mut server = place.start();
        let (owner, token) = (server.owner(), server.token.clone().unwrap());
        let waits = [("id", Value::from("go")), ("type", "signal".into()), ("signal", "go".into())];
        let steps = gate(&[]).as_list().unwrap().iter().cloned().chain([Value::map(waits)]).collect::<Vec<_>>();
        save(&owner, "ship", Value::List(steps));
        let (posted, cancelled, direct) = (asking(&owner, "r1"), asking(&owner, "r2"), asking(&owner, "r3"));
        let Some(mut approve) = place.command(&["approve", &posted, "--reason", "from here"]) else { return };
        let done = approve.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let (actor, target, detail) = audited(&owner, "approval.decide.posted");
        assert_eq!((of(&detail, "by"), of(&detail, "reason")), ("command line".into(), "from here".into()));
        assert!(target == posted && actor != "owner", "{actor} {target}");
        let arguments: [&[&str]; 2] = [&["signal", &cancelled, "go"], &["cancel", &cancelled, "--reason", "enough"]];
        for (arguments, action) in arguments.iter().zip(["execution.signal.posted", "execution.cancel.posted"]) {
            let done = place.command(arguments).unwrap().output().unwrap();
            assert!(done.status.success(), "{done:?}");
            assert_eq!(audited(&owner, action).1, cancelled);
        }
        assert_eq!(server.stop(), Some(0));
        let done = place.command(&["deny", &direct]).unwrap().output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let server = place.start();
        let owner = server.client(&token);
        let (by, target, detail) = audited(&owner, "approval.decide");
        assert_eq!((by, target, of(&detail, "decision")), (actor, direct, "deny".into()));
        assert_eq!(of(&owner.get("/api/audit/verify").expect(200).json(), "ok"), Value::Bool(true));
    });
}

/// `mainspring approvals` gives the same list through the server and on its folder. `doctor` names approvals
/// without enough approvers.
#[test]
fn the_command_line_lists_open_approvals_and_approvers() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let named = Value::List(vec!["bob".into(), "eve".into()]);
        save(&owner, "ship", gate(&[("approvers", named)]));
        save(&owner, "own", gate(&[]));
        let put = |id: &str, role: &str| {
            owner.put(&format!("/api/members/{id}"), &Value::map([("role", Value::from(role))])).expect(200);
        };
        put("bob", "member");
        put("eve", "viewer");
        let id = asking(&owner, "r1");
        let version = Map::from([("version".to_string(), Value::from("1.2"))]);
        let started = start(&owner, "own", "r1", version).expect(202).text_at("executionId");
        owner.get(&format!("/api/executions/{started}/wait")).expect(200);
        let caller = Caller::owner(&server);
        let answer = |arguments: &[&str]| call(caller.command(arguments), b"");
        let listed = answer(&["approvals"]);
        for said in
            ["bob, eve (cannot)", "owner, whose execution it is, and the admins", "/approve/", "denied by itself"]
        {
            assert!(listed.stdout.contains(said), "{said:?} is not in {listed:?}");
        }
        assert!(!listed.stdout.contains("too few approvers can decide"), "{listed:?}");
        let json = |text: &str| mainspring_kernel::json::read(text.as_bytes()).unwrap().value;
        let whole = json(&answer(&["approvals", "--json"]).stdout);
        let gates = whole.get("approvals").and_then(Value::as_list).unwrap();
        assert_eq!(gates.len(), 2);
        assert!(gates.iter().all(|gate| gate.get("requestedAt").and_then(Value::as_text).is_some()), "{whole:?}");
        let first = json(&answer(&["approvals", "--json", "--limit", "1"]).stdout);
        let cursor = first.get("nextCursor").and_then(Value::as_text).unwrap();
        let second = json(&answer(&["approvals", "--json", "--limit", "1", "--cursor", cursor]).stdout);
        let pages = [&first, &second].map(|page| page.get("approvals").and_then(Value::as_list).unwrap()[0].clone());
        assert_eq!(pages.to_vec(), gates.to_vec());
        // Without Bob no named approver can decide.
        owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
        assert!(answer(&["approvals"]).stdout.contains("too few approvers can decide"));
        let Some(mut beside) = place.command(&["approvals", "--json"]) else { return };
        let beside = json(&String::from_utf8(beside.output().unwrap().stdout).unwrap());
        let now = json(&answer(&["approvals", "--json"]).stdout);
        let without_urls = |value: &Value| {
            let gates = value.get("approvals").and_then(Value::as_list).unwrap().iter();
            let each = gates.map(|gate| {
                Value::Map(
                    gate.as_map()
                        .unwrap()
                        .iter()
                        .filter(|(key, _)| *key != "url")
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect(),
                )
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(without_urls(&beside), without_urls(&now));
        let doctor = place.command(&["doctor", "--json"]).unwrap().output().unwrap();
        let told = String::from_utf8(doctor.stdout).unwrap();
        let check = told.lines().find(|line| line.contains(r#""check":"approvers""#)).unwrap();
        assert!(check.contains("warning") && check.contains(&format!("{id} at gate")), "{check}");
    });
}
