//! Decisions of the server about rollouts: which executions and starts they count, and for whom they are made.

use std::sync::Arc;

use mainspring_kernel::value::{Map, Value};
use mainspring_store::memory::MemoryStore;

use super::{
    client::{Client, Reply},
    rollouts::{
        apply, approved, audited, definition, ended, figures, judged, nodes, number, shown, side, start_rollout,
        started, sync, text, waiting,
    },
    schedules::Nodes,
    start::start,
    support::{MAINSPRING, call, yaml},
};

fn one_node() -> Nodes {
    nodes(1, Arc::new(MemoryStore::new()))
}

fn rollout_of(client: &Client, path: &str) -> Value {
    client.get(path).expect(200).json()
}

fn verdict(client: &Client, path: &str) -> String {
    let rollout = rollout_of(client, path);
    let verdict = rollout.get("verdict").unwrap();
    let reasons = verdict.get("reasons").and_then(Value::as_list).unwrap_or_default();
    format!("{}: {}", text(verdict, "status"), reasons.first().and_then(Value::as_text).unwrap_or_default())
}

fn candidate_figure(client: &Client, path: &str, key: &str) -> u64 {
    number(&figures(&rollout_of(client, path), "candidate"), key)
}

/// Starts executions of a workflow until some of them have taken the candidate. Returns these.
fn candidates(client: &Client, workflow: &str, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for key in 0..1_000 {
        if found.len() == count {
            break;
        }
        let id = started(client, workflow, &key.to_string());
        if side(&shown(client, &id)).0 == "candidate" {
            found.push(id);
        }
    }
    found
}

fn signal(client: &Client, id: &str) {
    let signal = Value::map([("id", Value::from("s")), ("name", "go".into())]);
    client.post(&format!("/api/executions/{id}/signal"), &signal).expect(200);
}

#[test]
fn a_candidate_with_a_missing_subworkflow_starts_no_rollout() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "w", definition(1));
    let parent =
        yaml("constraints: {allowSelfModification: true}\nsteps: [{id: a, type: subworkflow, workflow: nope}]\n");
    let proposal = approved(owner, "w", parent);
    let reply = apply(owner, &proposal, "rollout: {percent: 50}").expect(409);
    assert!(reply.text_at("error").contains("it starts `nope`"), "{reply:?}");
    assert_eq!(owner.get(&proposal).expect(200).text_at("status"), "approved");
}

fn with_input(required: &str) -> Value {
    yaml(&format!(
        "constraints: {{allowSelfModification: true}}\ninputSchema: {{type: object, required: [{required}]}}\n\
         steps: [{{id: a, type: sleep, durationMs: 1}}]\n"
    ))
}

fn start_with(client: &Client, workflow: &str, key: u32, input: &str) -> Reply {
    let body = [("workflowId", Value::from(workflow)), ("clientRequestId", key.to_string().into())];
    client.post("/api/triggers/manual/run", &Value::map(body.into_iter().chain([("input", yaml(input))])))
}

#[test]
fn starts_that_only_the_candidate_refuses_abort_it() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "w", with_input("a"));
    let plan = "{percent: 50, minimum: 3, promote: true, compare: {maxFailureRatePercent: 0}}";
    let rollout = start_rollout(owner, "w", with_input("a, b"), plan);
    // Both definitions refuse these.
    for key in 0..20 {
        let reply = start_with(owner, "w", key, "{}").expect(400);
        assert!(!reply.text_at("error").contains("rollout"), "{reply:?}");
    }
    assert_eq!(candidate_figure(owner, &rollout, "refused"), 0);
    let mut refused = 0;
    for key in 0..100 {
        if refused == 3 {
            break;
        }
        assert_eq!(judged(&nodes), 0, "{refused} of 3");
        let reply = start_with(owner, "w", key, r#"{"a": 1}"#);
        if reply.status != 400 {
            continue;
        }
        refused += 1;
        assert!(reply.text_at("error").contains("The candidate of the rollout `ro-"), "{reply:?}");
        // A repeated start counts once.
        start_with(owner, "w", key, r#"{"a": 1}"#).expect(400);
        assert_eq!(candidate_figure(owner, &rollout, "refused"), refused);
    }
    assert_eq!((refused, judged(&nodes)), (3, 1));
    let told = rollout_of(owner, &rollout);
    assert_eq!(text(&told, "status"), "aborted");
    assert_eq!(number(told.get("ended").unwrap().get("candidate").unwrap(), "refused"), 3);
}

/// A member with a token that the owner has made.
fn member(nodes: &Nodes, id: &str) -> Client {
    put_role(nodes, id, "member");
    let body = Value::map([("name", Value::from("t")), ("userId", id.into())]);
    nodes.owner.with_token(&nodes.owner.post("/api/tokens", &body).expect(201).text_at("token"))
}

fn put_role(nodes: &Nodes, id: &str, role: &str) {
    nodes.owner.put(&format!("/api/members/{id}"), &Value::map([("role", Value::from(role))])).expect(200);
}

/// Forgets the refusal of a decision, as if the time until the next attempt were over.
fn forget_refusals(nodes: &Nodes) {
    nodes.overwrite(Vec::new(), nodes.rows("rollout progress", "default"));
}

fn last_refusal(client: &Client, path: &str) -> Value {
    rollout_of(client, path).get("lastRefusal").cloned().unwrap()
}

const PROMOTES: &str = "{percent: 99, minimum: 1, promote: true, compare: {maxFailureRatePercent: 100}}";

#[test]
fn an_automatic_promotion_needs_current_rights_of_its_member() {
    let nodes = one_node();
    let owner = &nodes.owner;
    let vera = member(&nodes, "vera");
    sync(&vera, "w", definition(1));
    let rollout = start_rollout(&vera, "w", definition(2), PROMOTES);
    // The credential is not her own, which the log says.
    for action in ["proposal.approve", "proposal.apply", "workflow.rollout_begin"] {
        let entries = audited(owner, action);
        assert_eq!(text(entries[0].get("detail").unwrap(), "madeBy"), "owner", "{action}: {entries:?}");
    }
    put_role(&nodes, "vera", "viewer");
    candidates(owner, "w", 1).iter().for_each(|id| drop(ended(owner, id)));
    assert_eq!(judged(&nodes), 0);
    let refusal = last_refusal(owner, &rollout);
    assert!(text(&refusal, "message").contains("approvals:decide"), "{refusal:?}");
    // Another person gets the id.
    owner.send("DELETE", "/api/members/vera", &[], None).expect(204);
    forget_refusals(&nodes);
    assert_eq!((judged(&nodes), last_refusal(owner, &rollout) == Value::Null), (0, false));
    put_role(&nodes, "vera", "member");
    forget_refusals(&nodes);
    assert_eq!((judged(&nodes), last_refusal(owner, &rollout) == Value::Null), (0, false));
    assert_eq!(text(&rollout_of(owner, &rollout), "status"), "running");
}

#[test]
fn a_refused_promotion_is_shown_and_repeated_after_a_minute() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "w", definition(1));
    let rollout = start_rollout(owner, "w", definition(2), PROMOTES);
    let four_eyes = |is_on: bool| {
        let settings = format!(r#"{{"features": {{"proposal_four_eyes": {is_on}}}}}"#);
        owner.send("PATCH", "/api/organization", &[], Some(&settings)).expect(200);
    };
    four_eyes(true);
    candidates(owner, "w", 1).iter().for_each(|id| drop(ended(owner, id)));
    assert_eq!(judged(&nodes), 0);
    let refusal = last_refusal(owner, &rollout);
    assert!(text(&refusal, "message").contains("another member"), "{refusal:?}");
    let home = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(MAINSPRING);
    let server = rollout_server(owner);
    command.args(["rollout", "show", "w"]).env("MAINSPRING_SERVER", server).env("HOME", home.path());
    command.env("MAINSPRING_TOKEN", owner.token());
    let shown = call(command, b"");
    assert!(shown.exit == Some(0) && shown.stdout.contains("refused at"), "{shown:?}");
    // The cause was removed, and the next attempt waits for its minute.
    four_eyes(false);
    assert_eq!((judged(&nodes), last_refusal(owner, &rollout)), (0, refusal));
    forget_refusals(&nodes);
    assert_eq!(judged(&nodes), 1);
    assert_eq!(text(&rollout_of(owner, &rollout), "status"), "promoted");
}

fn rollout_server(client: &Client) -> String {
    format!("http://{}", client.address())
}

#[test]
fn a_child_that_its_parent_cancels_at_a_timeout_has_failed() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "kid", definition(1));
    let plan = "{percent: 99, minimum: 1, compare: {maxFailureRatePercent: 0}}";
    let rollout = start_rollout(owner, "kid", waiting(2), plan);
    // A cancel by a person is no failure of the candidate.
    let by_person = candidates(owner, "kid", 1);
    owner.post(&format!("/api/executions/{}/cancel", by_person[0]), &Value::Map(Map::new())).expect(200);
    ended(owner, &by_person[0]);
    sync(owner, "calm", yaml("steps: [{id: c, type: subworkflow, workflow: kid}]"));
    let parent = started(owner, "calm", "1");
    while candidate_figure(owner, &rollout, "starts") < 2 {
        std::thread::yield_now();
    }
    owner.post(&format!("/api/executions/{parent}/cancel"), &Value::Map(Map::new())).expect(200);
    ended(owner, &parent);
    assert_eq!(["failed", "cancelled"].map(|key| candidate_figure(owner, &rollout, key)), [0, 2]);
    assert_eq!(judged(&nodes), 0);
    let step = "{id: c, type: subworkflow, workflow: kid, timeoutMs: 200, retry: {maxAttempts: 1}}";
    sync(owner, "hasty", yaml(&format!("steps: [{step}]")));
    for key in 0..100 {
        if candidate_figure(owner, &rollout, "failed") > 0 {
            break;
        }
        ended(owner, &started(owner, "hasty", &key.to_string()));
    }
    assert_eq!(judged(&nodes), 1);
    assert_eq!(text(&rollout_of(owner, &rollout), "status"), "aborted");
}

#[test]
fn an_unfinished_execution_of_the_candidate_holds_the_promotion() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "w", definition(1));
    let rollout = start_rollout(owner, "w", waiting(2), PROMOTES);
    let ids = candidates(owner, "w", 2);
    signal(owner, &ids[0]);
    ended(owner, &ids[0]);
    let held = "waits: 1 execution of the candidate is unfinished";
    // A stable execution that took longer than this one has waited holds nothing: some milliseconds pass.
    assert!((0..10_000).any(|_| verdict(owner, &rollout).starts_with(held)), "{}", verdict(owner, &rollout));
    assert_eq!(judged(&nodes), 0);
    signal(owner, &ids[1]);
    ended(owner, &ids[1]);
    assert_eq!(judged(&nodes), 1);
    assert_eq!(text(&rollout_of(owner, &rollout), "status"), "promoted");
}

#[test]
fn the_minimum_counts_root_executions() {
    let nodes = one_node();
    let owner = &nodes.owner;
    sync(owner, "kid", definition(1));
    let plan = "{percent: 50, minimum: 2, promote: true, compare: {maxFailureRatePercent: 0}}";
    let rollout = start_rollout(owner, "kid", definition(2), plan);
    let parent =
        "steps: [{id: l, type: loop, forEach: {ref: '@vars.l'}, steps: [{id: c, type: subworkflow, workflow: kid}]}]";
    sync(owner, "par", yaml(parent));
    let list = Value::List((0..5_u64).map(Value::from).collect());
    for key in 0..100 {
        let (starts, roots) = (candidate_figure(owner, &rollout, "starts"), candidate_figure(owner, &rollout, "roots"));
        assert_eq!(starts, roots * 5);
        if roots == 2 {
            break;
        }
        assert_eq!(judged(&nodes), 0, "{roots} of 2");
        let reply = start(owner, "par", &key.to_string(), Map::from([("l".into(), list.clone())]));
        ended(owner, &reply.text_at("executionId"));
    }
    assert_eq!(judged(&nodes), 1);
    assert_eq!(text(&rollout_of(owner, &rollout), "status"), "promoted");
}
