//! Staged rollouts: starts divided by their keys, figures of both sides, promotion, abort, and decisions at thresholds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use mainspring_kernel::value::{Map, Value};
use mainspring_server::services::rollout_rounds;
use mainspring_store::{
    Store,
    memory::MemoryStore,
    postgres::{PostgresStore, server as postgres},
    sqlite::SqliteStore,
};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
    schedules::Nodes,
    start::start,
    support::{MAINSPRING, call, yaml},
};

/// A definition that ends at once with a number.
pub(super) fn definition(number: u32) -> Value {
    yaml(&format!(
        "constraints: {{allowSelfModification: true}}\nsteps: [{{id: a, type: sleep, durationMs: 1}}]\n\
         output: {{result: {number}}}\n"
    ))
}

/// A definition that fails.
fn failing() -> Value {
    yaml(
        "constraints: {allowSelfModification: true}\n\
         steps: [{id: a, type: code, code: \"export default function () { throw new Error('no'); }\"}]\n",
    )
}

/// A definition that waits for a signal.
pub(super) fn waiting(number: u32) -> Value {
    yaml(&format!(
        "constraints: {{allowSelfModification: true}}\nsteps: [{{id: go, type: signal, signal: go}}]\n\
         output: {{result: {number}}}\n"
    ))
}

pub(super) fn sync(client: &Client, id: &str, data: Value) -> String {
    let body = Value::map([("id", Value::from(id)), ("data", data)]);
    client.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
}

pub(super) fn workflow_of(client: &Client, workflow: &str) -> Value {
    client.get(&format!("/api/workflows/{workflow}")).expect(200).json()
}

/// Proposes a definition and approves it. Returns the path of the proposal.
pub(super) fn approved(client: &Client, workflow: &str, data: Value) -> String {
    let base = workflow_of(client, workflow).get("workflowHash").cloned().unwrap();
    let change = Value::map([("proposedWorkflow", data)]);
    let body = Value::map([("baseWorkflowHash", base), ("proposal", change)]);
    let created = client.post(&format!("/api/workflows/{workflow}/proposals"), &body).expect(201);
    let path = format!("/api/workflows/{workflow}/proposals/{}", created.text_at("id"));
    client.post(&format!("{path}/review"), &Value::map([("approve", Value::Bool(true))])).expect(200);
    path
}

/// Applies a proposal with a request in YAML.
pub(super) fn apply(client: &Client, proposal: &str, request: &str) -> Reply {
    client.post(&format!("{proposal}/apply"), &yaml(request))
}

/// Begins a rollout of a definition. Returns its path.
pub(super) fn start_rollout(client: &Client, workflow: &str, data: Value, rollout: &str) -> String {
    let proposal = approved(client, workflow, data);
    let applied = apply(client, &proposal, &format!("rollout: {rollout}")).expect(200).json();
    let id = text(applied.get("workflow").unwrap().get("rollout").unwrap(), "id");
    let told = applied.get("proposal").unwrap().get("applied").unwrap();
    assert_eq!(text(told, "rolloutId"), id);
    format!("/api/workflows/{workflow}/rollouts/{id}")
}

pub(super) fn decide(client: &Client, rollout: &str, verb: &str) -> Reply {
    client.post(&format!("{rollout}/{verb}"), &Value::map([("reason", Value::from("seen"))]))
}

pub(super) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number `{key}`: {value:?}"))
}

pub(super) fn figures(rollout: &Value, side: &str) -> Value {
    rollout.get(side).and_then(|side| side.get("figures")).cloned().unwrap()
}

pub(super) fn started(client: &Client, workflow: &str, request: &str) -> String {
    let reply = start(client, workflow, request, Map::new());
    assert!([200, 202].contains(&reply.status), "{reply:?}");
    reply.text_at("executionId")
}

pub(super) fn shown(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/executions/{id}")).expect(200).json()
}

pub(super) fn ended(client: &Client, id: &str) -> Value {
    for _ in 0..600 {
        let execution = shown(client, id);
        if ["completed", "failed", "cancelled"].contains(&text(&execution, "status").as_str()) {
            return execution;
        }
        client.get(&format!("/api/executions/{id}/wait?timeoutMs=100")).expect(200);
    }
    panic!("{id} does not end: {:?}", shown(client, id));
}

/// The side that a start took, and its definition.
pub(super) fn side(execution: &Value) -> (String, String) {
    (text(execution.get("rollout").unwrap(), "version"), text(execution, "workflowHash"))
}

/// The audit entries of an action.
pub(super) fn audited(client: &Client, action: &str) -> Vec<Value> {
    let log = client.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    entries.iter().filter(|entry| text(entry, "action") == action).cloned().collect()
}

static NOW: AtomicU64 = AtomicU64::new(0);

pub(super) fn nodes(count: usize, store: Arc<dyn Store>) -> Nodes {
    Nodes::start(count, store, (&NOW, || NOW.load(Ordering::SeqCst)))
}

/// Runs a test on nodes of this process, on SQLite and on PostgreSQL.
fn on_each_store(count: usize, test: impl Fn(&Nodes, &Arc<dyn Store>)) {
    let folder = tempfile::tempdir().unwrap();
    let embedded: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("store.db")).unwrap());
    test(&nodes(1, embedded.clone()), &embedded);
    let options = postgres::Options { fsync: false, ..postgres::Options::default() };
    let server = postgres::Server::start(options).unwrap();
    let scratch = server.scratch();
    let shared: Arc<dyn Store> = Arc::new(PostgresStore::open(&scratch.address()).unwrap());
    test(&nodes(count, shared.clone()), &shared);
}

/// All nodes judge all rollouts at the same time. Returns the number of decisions.
pub(super) fn judged(nodes: &Nodes) -> usize {
    let polls = nodes.apps.iter().cloned().map(|app| {
        nodes.runtime.spawn(async move { rollout_rounds::poll(&app).await.map_err(|problem| problem.full_message()) })
    });
    let polls: Vec<_> = polls.into_iter().collect();
    polls.into_iter().map(|poll| nodes.runtime.block_on(poll).unwrap().unwrap()).sum()
}

#[test]
fn a_thousand_keys_are_divided_and_each_keeps_its_side() {
    on_each_store(1, |nodes, _| {
        let owner = &nodes.owner;
        let stable = sync(owner, "w", definition(1));
        let rollout = start_rollout(owner, "w", definition(2), "{percent: 10}");
        let told = owner.get(&rollout).expect(200).json();
        let candidate = text(told.get("candidate").unwrap(), "workflowHash");
        let ids: Vec<String> = (0..1_000).map(|key| started(owner, "w", &key.to_string())).collect();
        let mut taken = 0;
        for id in &ids {
            let execution = shown(owner, id);
            let why = execution.get("rollout").unwrap();
            let is_candidate = number(why, "bucket") < 1_000;
            let expected = if is_candidate { ("candidate", &candidate) } else { ("stable", &stable) };
            assert_eq!(side(&execution), (expected.0.to_string(), expected.1.clone()), "{execution:?}");
            assert_eq!((text(why, "id"), number(why, "percent")), (text(&told, "id"), 10));
            taken += u32::from(is_candidate);
        }
        // Five standard deviations around 100.
        assert!((52..=148).contains(&taken), "{taken} of 1,000");
        // The same key again, also at another side of a later rollout, is the same execution.
        for key in [0, 500, 999] {
            assert_eq!(started(owner, "w", &key.to_string()), ids[key]);
        }
        ids.iter().for_each(|id| drop(ended(owner, id)));
        let told = owner.get(&rollout).expect(200).json();
        let counts = ["stable", "candidate"].map(|side| number(&figures(&told, side), "starts"));
        assert_eq!(counts, [1_000 - u64::from(taken), u64::from(taken)]);
        let completed = ["stable", "candidate"].map(|side| number(&figures(&told, side), "completed"));
        assert_eq!(completed, counts);
        decide(owner, &rollout, "abort").expect(200);
        for (key, id) in ids.iter().enumerate() {
            assert_eq!(started(owner, "w", &key.to_string()), *id);
        }
        let after = shown(owner, &started(owner, "w", "later"));
        assert_eq!((after.get("rollout"), text(&after, "workflowHash")), (Some(&Value::Null), stable));
    });
}

#[test]
fn a_promotion_makes_the_candidate_the_definition() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let stable = sync(&owner, "w", definition(1));
        let rollout = start_rollout(&owner, "w", definition(2), "{percent: 50}");
        let during = workflow_of(&owner, "w");
        assert_eq!((text(&during, "workflowHash"), text(&during, "version")), (stable.clone(), "1.0.0".into()));
        assert_eq!(text(during.get("rollout").unwrap(), "candidateVersion"), "1.0.1");
        // The candidate is in the history from the beginning.
        let history = owner.get("/api/workflows/w/history").expect(200).json();
        let entries = history.get("history").and_then(Value::as_list).unwrap();
        assert_eq!((entries.len(), text(&entries[0], "workflowVersion")), (2, "1.0.1".into()));
        let promoted = decide(&owner, &rollout, "promote").expect(200).json();
        assert_eq!(text(&promoted, "status"), "promoted");
        let end = promoted.get("ended").unwrap();
        assert_eq!((text(end, "by"), text(end, "reason")), ("owner".into(), "seen".into()));
        assert_eq!(end.get("automatic"), Some(&Value::Bool(false)));
        let after = workflow_of(&owner, "w");
        let candidate = text(during.get("rollout").unwrap(), "candidateHash");
        assert_eq!((text(&after, "workflowHash"), text(&after, "version")), (candidate.clone(), "1.0.1".into()));
        assert_eq!(after.get("rollout"), Some(&Value::Null));
        let execution = ended(&owner, &started(&owner, "w", "x"));
        assert_eq!(execution.get("outputs"), Some(&Value::map([("result", Value::from(2u32))])));
        // The history has no second entry, and the promotion is on record.
        let history = owner.get("/api/workflows/w/history").expect(200).json();
        let entries = history.get("history").and_then(Value::as_list).unwrap();
        let returns = entries[0].get("returns").and_then(Value::as_list).unwrap();
        assert_eq!((entries.len(), returns.len(), text(&returns[0], "source")), (2, 1, "rollout_promote".into()));
        for verb in ["promote", "abort"] {
            assert_eq!(decide(&owner, &rollout, verb).expect(409).text_at("code"), "CONFLICT");
        }
        let entries = audited(&owner, "workflow.rollout_promote");
        let detail = entries[0].get("detail").unwrap();
        assert_eq!((entries.len(), text(detail, "reason"), text(detail, "candidate")), (1, "seen".into(), candidate));
        assert!(detail.get("figures").and_then(|figures| figures.get("candidate")).is_some(), "{detail:?}");
        // The return to the older definition, and another rollout of the same one.
        owner.post("/api/workflows/w/rollback", &Value::map([("workflowHash", Value::from(stable))])).expect(200);
        let again = start_rollout(&owner, "w", definition(2), "{percent: 50}");
        assert_ne!(again, rollout);
        let told = owner.get(&again).expect(200).json();
        assert_eq!(text(told.get("candidate").unwrap(), "version"), "1.0.1");
        decide(&owner, &again, "promote").expect(200);
        let list = owner.get("/api/workflows/w/rollouts").expect(200).json();
        let list = list.get("rollouts").and_then(Value::as_list).unwrap();
        assert_eq!(list.iter().map(|one| text(one, "status")).collect::<Vec<_>>(), ["promoted", "promoted"]);
    });
}

#[test]
fn a_workflow_with_a_rollout_keeps_its_definition() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let stable = sync(&owner, "w", definition(1));
    let other = approved(&owner, "w", definition(3));
    let rollout = start_rollout(&owner, "w", definition(2), "{percent: 10}");
    let before = workflow_of(&owner, "w");
    let candidate = text(before.get("rollout").unwrap(), "candidateHash");
    let refused = |reply: Reply| {
        let reply = reply.expect(409);
        assert!(reply.text_at("error").contains("promote or abort it first"), "{reply:?}");
    };
    let data = |number| Value::map([("data", definition(number))]);
    refused(owner.put("/api/workflows/w", &data(4)));
    refused(owner.put("/api/workflows/w", &data(2)));
    refused(owner.send("DELETE", "/api/workflows/w", &[], None));
    for hash in [&stable, &candidate] {
        let hash = Value::map([("workflowHash", Value::from(hash.as_str()))]);
        refused(owner.post("/api/workflows/w/rollback", &hash));
    }
    for request in ["{}", "rollout: {percent: 10}", "whileRunning: drain"] {
        refused(apply(&owner, &other, request));
    }
    refused(owner.post("/api/workflows/sync-all", &Value::map([("workflows", Value::List(Vec::new()))])));
    assert_eq!(workflow_of(&owner, "w"), before);
    // The proposal has not failed, and the rest of the workflow can change.
    assert_eq!(owner.get(&other).expect(200).text_at("status"), "approved");
    assert_eq!(sync(&owner, "w", definition(1)), stable);
    owner.put("/api/workflows/w", &Value::map([("enabled", Value::Bool(false))])).expect(200);
    assert_eq!(start(&owner, "w", "1", Map::new()).status, 409);
    owner.put("/api/workflows/w", &Value::map([("enabled", Value::Bool(true))])).expect(200);
    decide(&owner, &rollout, "abort").expect(200);
    apply(&owner, &other, "{}").expect(200);
}

#[test]
fn rollout_plans_are_checked_and_conflicting_changes_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    sync(&owner, "w", waiting(1));
    let proposal = approved(&owner, "w", waiting(2));
    for (request, expected) in [
        ("rollout: {percent: 0}", 400),
        ("rollout: {percent: 100}", 400),
        ("rollout: {}", 400),
        ("rollout: {percent: 10, minimum: 0}", 400),
        ("rollout: {percent: 10, compare: {}}", 400),
        ("rollout: {percent: 10, compare: {maxErrors: 1}}", 400),
        ("rollout: {percent: 10, steps: []}", 400),
        ("rollout: {percent: 10, promote: true}", 400),
        ("rollout: {percent: 10}\nwhileRunning: strict", 400),
    ] {
        let reply = apply(&owner, &proposal, request);
        assert_eq!(reply.status, expected, "{request}: {reply:?}");
    }
    assert_eq!(owner.get(&proposal).expect(200).text_at("status"), "approved");
    // A workflow that drains begins no rollout.
    let old = started(&owner, "w", "1");
    apply(&owner, &proposal, "whileRunning: drain").expect(200);
    let next = approved(&owner, "w", waiting(3));
    let reply = apply(&owner, &next, "rollout: {percent: 10}").expect(409);
    assert!(reply.text_at("error").contains("drains"), "{reply:?}");
    owner.send("DELETE", "/api/workflows/w/drain", &[], None).expect(200);
    // A promotion obeys the treatment of the application.
    let applied = apply(&owner, &next, "rollout: {percent: 99}\nwhileRunning: drain").expect(200).json();
    let id = text(applied.get("workflow").unwrap().get("rollout").unwrap(), "id");
    assert_eq!(workflow_of(&owner, "w").get("draining"), Some(&Value::Null));
    decide(&owner, &format!("/api/workflows/w/rollouts/{id}"), "promote").expect(200);
    let held = started(&owner, "w", "2");
    assert_eq!(text(&shown(&owner, &held), "waitingFor"), "draining");
    assert_eq!(text(&shown(&owner, &old), "status"), "running");
}

#[test]
fn subworkflows_take_the_side_of_their_root() {
    on_each_store(1, |nodes, _| {
        let owner = &nodes.owner;
        let stable = sync(owner, "child", definition(1));
        let parent =
            "steps: [{id: a, type: subworkflow, workflow: child}, {id: b, type: subworkflow, workflow: child}]";
        sync(owner, "parent", yaml(parent));
        let rollout = start_rollout(owner, "child", definition(2), "{percent: 50}");
        let mut sides = BTreeMap::new();
        for key in 0..20 {
            let id = started(owner, "parent", &key.to_string());
            let root = ended(owner, &id);
            assert_eq!(root.get("rollout"), Some(&Value::Null), "the parent has no rollout");
            let list = owner.get("/api/workflows/child/executions?limit=200").expect(200).json();
            let list = list.get("executions").and_then(Value::as_list).unwrap();
            let children: Vec<_> = list.iter().filter(|child| text(child, "parentExecutionId") == id).collect();
            assert_eq!(children.len(), 2, "{list:?}");
            let of = |child: &Value| side(&shown(owner, &text(child, "id")));
            assert_eq!(of(children[0]), of(children[1]), "a tree has one version");
            let (side, hash) = of(children[0]);
            assert_eq!(hash == stable, side == "stable");
            *sides.entry(side).or_insert(0) += 2;
        }
        let told = owner.get(&rollout).expect(200).json();
        for side in ["stable", "candidate"] {
            assert_eq!(number(&figures(&told, side), "completed"), sides[side], "{sides:?}");
        }
    });
}

/// Clients promote, abort, apply and save at the same time.
fn race(server: &Server) {
    let owner = server.owner();
    for round in 0..4u32 {
        let name = format!("w{round}");
        let stable = sync(&owner, &name, definition(1));
        let others: Vec<String> = (0..4).map(|number| approved(&owner, &name, definition(10 + number))).collect();
        let rollout = start_rollout(&owner, &name, definition(2), "{percent: 50, compare: {maxFailureRatePercent: 1}}");
        let candidate = text(workflow_of(&owner, &name).get("rollout").unwrap(), "candidateHash");
        let statuses: Vec<(usize, u16)> = thread::scope(|scope| {
            let (owner, rollout, others) = (&owner, &rollout, &others);
            let one = |number: usize| match number % 4 {
                0 | 1 => decide(owner, rollout, "promote").status,
                2 => decide(owner, rollout, "abort").status,
                _ => apply(owner, &others[number / 4], "rollout: {percent: 10}").status,
            };
            let workers: Vec<_> = (0..16).map(|number| scope.spawn(move || (number, one(number)))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(statuses.iter().all(|(_, status)| [200, 409].contains(status)), "{statuses:?}");
        let won = |kinds: &[usize]| {
            statuses.iter().filter(|(number, status)| kinds.contains(&(number % 4)) && *status == 200).count()
        };
        assert_eq!(won(&[0, 1, 2]), 1, "one decision ends the rollout: {statuses:?}");
        assert!(won(&[3]) <= 1, "one application follows at most: {statuses:?}");
        let told = owner.get(&rollout).expect(200).json();
        let is_promoted = won(&[0, 1]) == 1;
        assert_eq!(text(&told, "status"), if is_promoted { "promoted" } else { "aborted" });
        assert_eq!(text(&workflow_of(&owner, &name), "workflowHash"), if is_promoted { candidate } else { stable });
        let list = owner.get(&format!("/api/workflows/{name}/rollouts")).expect(200).json();
        assert_eq!(list.get("rollouts").and_then(Value::as_list).unwrap().len(), 1 + won(&[3]));
        let is_open = workflow_of(&owner, &name).get("rollout") != Some(&Value::Null);
        assert_eq!(is_open, won(&[3]) == 1);
    }
    let decisions = audited(&owner, "workflow.rollout_promote").len() + audited(&owner, "workflow.rollout_abort").len();
    assert_eq!(decisions, 4, "each rollout has one decision in the log");
}

#[test]
fn clients_race_for_the_end_of_a_rollout() {
    everywhere(|place| race(&place.start()));
}

#[test]
fn a_rollout_survives_a_crash() {
    everywhere(|place| {
        let mut server = place.start();
        let owner = server.owner();
        let stable = sync(&owner, "w", definition(1));
        let rollout = start_rollout(&owner, "w", definition(2), "{percent: 50, compare: {maxFailureRatePercent: 1}}");
        let first: Vec<_> = (0..12).map(|key| started(&owner, "w", &key.to_string())).collect();
        let sides: Vec<_> = first.iter().map(|id| side(&shown(&owner, id))).collect();
        server.kill();
        let mut server = place.start();
        let owner = owner.at(&server.address);
        for (key, (id, side_before)) in first.iter().zip(&sides).enumerate() {
            assert_eq!(&started(&owner, "w", &key.to_string()), id);
            assert_eq!(&side(&ended(&owner, id)), side_before);
        }
        let told = owner.get(&rollout).expect(200).json();
        let starts: u64 = ["stable", "candidate"].iter().map(|side| number(&figures(&told, side), "starts")).sum();
        assert_eq!((text(&told, "status"), starts), ("running".into(), 12));
        decide(&owner, &rollout, "abort").expect(200);
        server.kill();
        let server = place.start();
        let owner = owner.at(&server.address);
        assert_eq!(owner.get(&rollout).expect(200).text_at("status"), "aborted");
        assert_eq!(text(&workflow_of(&owner, "w"), "workflowHash"), stable);
        let entries = audited(&owner, "workflow.rollout_abort");
        assert_eq!(entries.len(), 1, "{entries:?}");
    });
}

#[test]
fn a_candidate_that_fails_is_aborted_by_one_node_with_its_figures() {
    on_each_store(3, |nodes, _| {
        let owner = &nodes.owner;
        let stable = sync(owner, "w", definition(1));
        let plan = "{percent: 50, minimum: 5, compare: {maxFailureRatePercent: 20}}";
        let rollout = start_rollout(owner, "w", failing(), plan);
        let (mut failed, mut key) = (0, 0);
        while failed < 5 {
            assert_eq!(judged(nodes), 0, "{failed} of 5");
            let verdict = owner.get(&rollout).expect(200).json().get("verdict").cloned().unwrap();
            assert_eq!(text(&verdict, "status"), "waits");
            let execution = ended(owner, &started(owner, "w", &key.to_string()));
            failed += u32::from(text(&execution, "status") == "failed");
            key += 1;
        }
        let verdict = owner.get(&rollout).expect(200).json().get("verdict").cloned().unwrap();
        assert_eq!(text(&verdict, "status"), "exceeded", "{verdict:?}");
        assert_eq!(judged(nodes), 1, "one node decides");
        assert_eq!(judged(nodes), 0);
        let told = owner.get(&rollout).expect(200).json();
        let end = told.get("ended").unwrap();
        assert_eq!((text(&told, "status"), text(end, "by")), ("aborted".into(), "owner".into()));
        assert_eq!(end.get("automatic"), Some(&Value::Bool(true)));
        assert_eq!(text(end, "reason"), "failure rate in percent: 100.00, at most 20");
        assert_eq!(number(end.get("candidate").unwrap(), "failed"), 5);
        let entries = audited(owner, "workflow.rollout_abort");
        let detail = entries[0].get("detail").unwrap();
        assert_eq!((entries.len(), detail.get("automatic")), (1, Some(&Value::Bool(true))));
        assert!(text(detail, "by").starts_with("rollout/ro-"), "{detail:?}");
        let figures = detail.get("figures").unwrap();
        assert_eq!(number(figures.get("candidate").unwrap(), "failed"), 5, "{figures:?}");
        // New starts take the old definition, and the candidate stays in the history.
        for key in 100..120 {
            let execution = shown(owner, &started(owner, "w", &key.to_string()));
            assert_eq!(text(&execution, "workflowHash"), stable);
        }
        let history = owner.get("/api/workflows/w/history").expect(200).json();
        assert_eq!(history.get("history").and_then(Value::as_list).unwrap().len(), 2);
    });
}

#[test]
fn a_good_candidate_is_promoted_only_if_configured() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let nodes = nodes(1, store);
    let owner = &nodes.owner;
    for promotes in [false, true] {
        let name = format!("w-{promotes}");
        sync(owner, &name, definition(1));
        let plan =
            format!("{{percent: 50, minimum: 3, promote: {promotes}, compare: {{maxFailureRatePointsOver: 10}}}}");
        let rollout = start_rollout(owner, &name, definition(2), &plan);
        let mut counts = BTreeMap::from([("stable".to_string(), 0), ("candidate".to_string(), 0)]);
        let mut key = 0;
        while counts.values().any(|count| *count < 3) {
            assert_eq!(judged(&nodes), 0, "{counts:?}");
            let execution = ended(owner, &started(owner, &name, &key.to_string()));
            *counts.get_mut(&side(&execution).0).unwrap() += 1;
            key += 1;
        }
        assert_eq!(judged(&nodes), usize::from(promotes));
        let expected = if promotes { "promoted" } else { "running" };
        assert_eq!(owner.get(&rollout).expect(200).text_at("status"), expected);
        assert_eq!(audited(owner, "workflow.rollout_promote").len(), usize::from(promotes));
    }
}

#[test]
fn owners_and_admins_decide_and_four_eyes_hold_until_the_promotion() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let owner = &ours.owner;
    sync(owner, "w", waiting(1));
    let execution = started(owner, "w", "1");
    let rollout = start_rollout(owner, "w", waiting(2), "{percent: 50}");
    let outsider = Organization::new(&server, "beside").owner;
    for verb in ["promote", "abort"] {
        for role in ["member", "viewer", "agent"] {
            assert_eq!(decide(&ours.member(&format!("{role}-{verb}"), role), &rollout, verb).status, 403, "{role}");
        }
        assert_eq!(decide(&ours.session_of(&execution), &rollout, verb).status, 403);
        assert_eq!(decide(&outsider, &rollout, verb).status, 404);
        owner.post(&format!("{rollout}/{verb}"), &Value::map([("reason", Value::from(" "))])).expect(400);
        owner.post(&format!("{rollout}/{verb}"), &Value::map([("why", Value::from("x"))])).expect(400);
    }
    // The review was by the author. It no longer suffices, and the candidate can only be taken back.
    let settings = r#"{"features": {"proposal_four_eyes": true}}"#;
    owner.send("PATCH", "/api/organization", &[], Some(settings)).expect(200);
    let reply = decide(owner, &rollout, "promote").expect(409);
    assert!(reply.text_at("error").contains("another member"), "{reply:?}");
    let admin = ours.member("admin", "admin");
    assert_eq!(text(&decide(&admin, &rollout, "abort").expect(200).json(), "status"), "aborted");
}

#[test]
fn rollouts_of_an_organization_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--rate-limit-per-second", "0"]);
    let owner = server.owner();
    let mut rollouts = Vec::new();
    for number in 0..20 {
        let name = format!("w{number}");
        sync(&owner, &name, definition(1));
        rollouts.push(start_rollout(&owner, &name, definition(2), "{percent: 50}"));
    }
    sync(&owner, "one", definition(1));
    let proposal = approved(&owner, "one", definition(2));
    let reply = apply(&owner, &proposal, "rollout: {percent: 50}").expect(409);
    assert!(reply.text_at("error").contains("have rollouts"), "{reply:?}");
    decide(&owner, &rollouts[0], "abort").expect(200);
    apply(&owner, &proposal, "rollout: {percent: 50}").expect(200);
}

#[test]
fn a_member_aborts_a_rollout_with_a_bad_effect() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let stable = sync(&owner, "w", definition(1));
    let proposal = approved(&owner, "w", failing());
    let id = proposal.rsplit('/').next().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(MAINSPRING);
        command.args(arguments).env("MAINSPRING_SERVER", format!("http://{}", server.address));
        call(command_with(command, &owner, folder.path()), b"")
    };
    assert_eq!(run(&["rollout", "show", "w"]).exit, Some(10));
    let refused = run(&["proposals", "apply", "w", id, "--rollout", "10", "--max-cost-ratio", "nan"]);
    assert!(refused.exit == Some(10) && refused.stderr.contains("not a decimal number"), "{refused:?}");
    let applied =
        run(&["proposals", "apply", "w", id, "--rollout", "10", "--minimum", "50", "--max-failure-rate", "60"]);
    assert!(applied.exit == Some(0) && applied.stdout.contains("10% of the starts use 1.0.1"), "{applied:?}");
    // Both sides need an execution, or the row of the other one has no figure.
    let (mut completed, mut failed) = (0, 0);
    for key in 0.. {
        let execution = ended(&owner, &started(&owner, "w", &key.to_string()));
        match text(&execution, "status").as_str() {
            "failed" => failed += 1,
            _ => completed += 1,
        }
        if failed >= 2 && completed >= 1 {
            break;
        }
    }
    let told = run(&["rollout", "show", "w"]);
    assert!(told.exit == Some(0) && told.stdout.contains("failure rate"), "{told:?}");
    let row = told.stdout.lines().find(|line| line.starts_with("failure rate")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["failure", "rate", "0%", "100%"], "{told:?}");
    let done = run(&["rollout", "abort", "w", "--reason", "it fails"]);
    assert!(done.exit == Some(0) && done.stdout.contains("aborted by owner: it fails"), "{done:?}");
    assert_eq!(text(&workflow_of(&owner, "w"), "workflowHash"), stable);
    assert_eq!(
        text(&audited(&owner, "workflow.rollout_abort")[0].get("detail").unwrap().clone(), "reason"),
        "it fails"
    );
    let again = run(&["rollout", "promote", "w", "--reason", "no"]);
    assert!(again.exit != Some(0) && again.stderr.contains("already aborted"), "{again:?}");
}

fn command_with(mut command: std::process::Command, owner: &Client, home: &std::path::Path) -> std::process::Command {
    command.env("MAINSPRING_TOKEN", owner.token()).env("HOME", home);
    command
}
