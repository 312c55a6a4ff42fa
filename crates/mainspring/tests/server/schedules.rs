//! Schedules on virtual time: nodes in this process with a clock that the tests set.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use mainspring_effects::{
    Executors,
    git::Repositories,
    http::{Http, HttpOptions},
};
use mainspring_engine::{
    ClusterOptions, Engine, EngineResources, EngineScope, evaluator::InProcess, lease::LeaseTiming,
};
use mainspring_kernel::{
    json::{self, compact},
    time::parse_rfc3339,
    value::Value,
};
use mainspring_server::{
    App, Configured, Outgoing, Settings,
    http::rate_limit::Rates,
    serve,
    services::{
        bootstrap, encryption_keys::EncryptionKeys, events::webhook_client::WebhookClient,
        prompts::orchestrators::Orchestrators, scenario_runner::Scenarios, scheduler,
    },
};
use mainspring_store::{
    Change, ChangeOutcome, Filter, Put, ReadLimit, Removal, ResourceQuery, ResourceRow, SealedStore, Store,
    memory::MemoryStore,
    postgres::{PostgresStore, server as postgres},
};
use tokio::{net::TcpListener, runtime::Runtime};

use super::{
    client::Client,
    start::{save, start},
};

const KEY: [u8; 32] = [7; 32];
const MINUTE_MS: u64 = 60_000;

/// Nodes on one store.
pub(super) struct Nodes {
    pub(super) runtime: Runtime,
    pub(super) store: Arc<dyn Store>,
    pub(super) apps: Vec<App>,
    pub(super) owner: Client,
    pub(super) clock: &'static AtomicU64,
}

/// The services outside that a node calls.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) webhooks: WebhookClient,
    pub(super) orchestrators: Orchestrators,
    pub(super) scenarios: Option<Scenarios>,
    pub(super) repositories: Repositories,
}

impl Outside {
    /// A client for webhooks, no orchestrator, and no runner of scenarios.
    pub(super) fn of(webhooks: WebhookClient) -> Self {
        Self {
            webhooks,
            orchestrators: Orchestrators::default(),
            scenarios: None,
            repositories: Repositories::default(),
        }
    }
}

fn app(store: Arc<dyn Store>, sharing: Option<ClusterOptions>, clock: fn() -> u64, outside: Outside) -> App {
    let Outside { webhooks, orchestrators, scenarios, repositories } = outside;
    let limits = Some(Arc::new(mainspring_server::StoredLimits) as Arc<_>);
    let resources = EngineResources { sharing, limits, ..EngineResources::default() };
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<_>);
    let engine = Arc::new(Engine::run(store, KEY, workers, resources, EngineScope::All).unwrap());
    let settings = Settings {
        base: "http://127.0.0.1".into(),
        workspaces: std::env::temp_dir(),
        tools_use_workspaces: false,
        release: "test",
        rates: Rates { per_token: 0, per_address: 0, trusted_proxies: Vec::new() },
        connections_max: 64,
        oidc: None,
        marks: None,
        configured: Configured { repositories, ..Configured::default() },
        scenarios,
        outgoing: Outgoing { webhooks, orchestrators },
        encryption_keys: Arc::new(EncryptionKeys::of_installation(KEY)),
        clock,
    };
    App::new(engine, Arc::new(InProcess), settings)
}

impl Nodes {
    /// Starts nodes, of which the first one serves requests.
    pub(super) fn start(count: usize, store: Arc<dyn Store>, clock: (&'static AtomicU64, fn() -> u64)) -> Self {
        let outside = Outside::of(WebhookClient::new(Arc::new(Http::new(HttpOptions::default()))));
        Self::start_with(count, store, clock, &outside)
    }

    /// The same, with the services that each node calls.
    pub(super) fn start_with(
        count: usize,
        store: Arc<dyn Store>,
        (clock, read): (&'static AtomicU64, fn() -> u64),
        outside: &Outside,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let sharing = |number: usize| {
            let terms = LeaseTiming { lease_ms: 10_000 };
            (count > 1).then(|| ClusterOptions { terms, place: format!("node {number}") })
        };
        let node = |number| app(store.clone(), sharing(number), read, outside.clone());
        let apps = runtime.block_on(async { (0..count).map(node).collect::<Vec<_>>() });
        let token = bootstrap::create_first_organization(apps[0].catalogue(), &KEY).unwrap().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        runtime.spawn(serve(listener, apps[0].clone(), std::future::pending()));
        Self { runtime, store, apps, owner: Client::new(&address, Some(&token)), clock }
    }

    pub(super) fn set(&self, time: &str) {
        self.clock.store(parse_rfc3339(time).unwrap(), Ordering::SeqCst);
    }

    /// All nodes decide the due ticks at the same time.
    pub(super) fn poll(&self) {
        let polls: Vec<_> = self
            .apps
            .iter()
            .cloned()
            .map(|app| {
                self.runtime.spawn(async move { scheduler::poll(&app).await.map_err(|problem| problem.full_message()) })
            })
            .collect();
        for poll in polls {
            self.runtime.block_on(poll).unwrap().unwrap();
        }
    }

    /// Creates a schedule of a workflow with further settings. Returns its id.
    pub(super) fn schedule(&self, workflow: &str, config: &str) -> String {
        let body =
            format!(r#"{{"workflowId": "{workflow}", "name": "n", "config": {{"type": "schedule", {config}}}}}"#);
        self.owner.send("POST", "/api/triggers", &[], Some(&body)).expect(201).text_at("id")
    }

    /// The UTC minutes of the executions of a trigger, with their statuses.
    fn ticks(&self, trigger: &str) -> Vec<(String, String)> {
        let rows = self.store.executions(&Filter::default(), None, 1_000).unwrap();
        let own = rows.into_iter().filter(|row| row.trigger_id.as_deref() == Some(trigger));
        let mut ticks: Vec<_> = own
            .map(|row| {
                assert_eq!((row.trigger_type.as_str(), row.initiator_type.as_str()), ("schedule", "schedule"));
                let key = row.idempotency_key.unwrap();
                (key.strip_prefix(&format!("schedule:{trigger}:")).unwrap().to_string(), row.status)
            })
            .collect();
        ticks.sort();
        ticks
    }

    pub(super) fn minutes(&self, trigger: &str) -> Vec<String> {
        self.ticks(trigger).into_iter().map(|(minute, _)| minute).collect()
    }

    /// The stored resources of a kind.
    pub(super) fn rows(&self, kind: &str, organization: &str) -> Vec<ResourceRow> {
        let (kind, organization, limit) = (kind.into(), organization.into(), ReadLimit::of(10_000));
        let query = ResourceQuery { kind, organization, limit, ..ResourceQuery::default() };
        self.sealed_store().catalogue().resources(&query).unwrap()
    }

    /// Writes resources over those that are stored, and removes others.
    pub(super) fn overwrite(&self, rows: Vec<ResourceRow>, removed: Vec<ResourceRow>) {
        let store = self.sealed_store();
        let expected = |row: &ResourceRow| store.catalogue().resource(&row.kind, &row.organization, &row.id).unwrap();
        let put = |row: ResourceRow| Put { expected: expected(&row).map_or(0, |stored| stored.version), resource: row };
        let removal = |row: ResourceRow| {
            let ResourceRow { kind, organization, id, version, .. } = row;
            Removal { kind, organization, id, expected: Some(version) }
        };
        let (puts, removals) = (rows.into_iter().map(put).collect(), removed.into_iter().map(removal).collect());
        let change = Change { puts, removals, ..Change::default() };
        assert_eq!(store.catalogue().change(&change).unwrap(), ChangeOutcome::Done);
    }

    /// The store as the servers write it.
    fn sealed_store(&self) -> Arc<dyn Store> {
        SealedStore::over(self.store.clone(), KEY)
    }

    fn trigger(&self, id: &str) -> Value {
        self.owner.get(&format!("/api/triggers/{id}")).expect(200).json()
    }

    /// Outcome and minute of the runs, the oldest first.
    pub(super) fn log(&self, trigger: &str) -> Vec<String> {
        let told = self.owner.get(&format!("/api/triggers/{trigger}/deliveries")).expect(200).json();
        let text = |run: &Value, key: &str| run.get(key).and_then(Value::as_text).unwrap_or("-").to_string();
        let runs = told.get("deliveries").and_then(Value::as_list).unwrap().iter().rev();
        runs.map(|run| format!("{} {}", text(run, "outcome"), text(run, "deliveryId"))).collect()
    }
}

/// A workflow that waits for an approval, and one that ends at once.
pub(super) fn workflows(owner: &Client) {
    let gate = [("id", "gate".into()), ("type", "approval".into()), ("prompt", "?".into())];
    save(owner, "waits", Value::List(vec![Value::map(gate)]));
    save_ending(owner);
}

pub(super) fn save_ending(owner: &Client) {
    let nothing = [("type", "conditional".into()), ("condition", true.into()), ("then", Value::List(Vec::new()))];
    save(owner, "ends", Value::List(vec![Value::map(nothing)]));
}

fn check_polls(store: Arc<dyn Store>, clock: (&'static AtomicU64, fn() -> u64)) {
    clock.0.store(parse_rfc3339("2026-02-24T00:00:00Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(2, store, clock);
    workflows(&nodes.owner);
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let cases = json::read(&fs::read(conformance.join("vectors/cron.json")).unwrap()).unwrap().value;
    let mut checked = 0;
    for case in cases.get("cases").and_then(Value::as_list).unwrap() {
        let texts = |key: &str| -> Option<Vec<String>> {
            case.get(key)?.as_list()?.iter().map(|text| text.as_text().map(Into::into)).collect()
        };
        let (Some(looks), Some(expected)) = (texts("looks"), texts("executions")) else { continue };
        let text = |key: &str| case.get(key).and_then(Value::as_text).unwrap();
        let first_ms = parse_rfc3339(&looks[0]).unwrap() / MINUTE_MS * MINUTE_MS;
        clock.0.store(first_ms - 1, Ordering::SeqCst);
        let config = format!(r#""cron": "{}", "timezone": "{}""#, text("expression"), text("timezone"));
        let trigger = nodes.schedule("ends", &config);
        for look in &looks {
            nodes.set(look);
            nodes.poll();
        }
        assert_eq!(nodes.minutes(&trigger), expected, "{}", compact(case));
        let started = expected.iter().map(|minute| format!("started {minute}")).collect::<BTreeSet<_>>();
        assert_eq!(nodes.log(&trigger).into_iter().collect::<BTreeSet<_>>(), started);
        nodes.owner.send("DELETE", &format!("/api/triggers/{trigger}"), &[], None).expect(204);
        checked += 1;
    }
    assert!(checked >= 2, "cases are never taken away");
}

#[test]
fn a_tick_that_two_nodes_find_starts_one_execution() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    check_polls(Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
}

#[test]
fn a_tick_that_two_nodes_find_starts_one_execution_on_postgresql() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let options = postgres::Options { fsync: false, ..postgres::Options::default() };
    let server = postgres::Server::start(options).unwrap();
    let scratch = server.scratch();
    let store = PostgresStore::open(&scratch.address()).unwrap();
    check_polls(Arc::new(store), (&NOW, || NOW.load(Ordering::SeqCst)));
}

#[test]
fn overlapping_and_missed_ticks_follow_the_settings() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    workflows(&nodes.owner);
    let of = |policy: &str| nodes.schedule("waits", &format!(r#""cron": "* * * * *", {policy}"#));
    let [allow, skip, queue, cancel] =
        ["allow", "skip", "queue", "cancel_previous"].map(|overlap| of(&format!(r#""overlap": "{overlap}""#)));
    for minute in 0..3 {
        nodes.set(&format!("2026-02-24T10:0{minute}:05Z"));
        nodes.poll();
        nodes.poll();
    }
    let minutes = |minutes: &[u64]| minutes.iter().map(|minute| format!("2026-02-24T10:0{minute}")).collect::<Vec<_>>();
    assert_eq!(nodes.minutes(&allow), minutes(&[0, 1, 2]));
    assert_eq!(nodes.minutes(&skip), minutes(&[0]));
    assert_eq!(nodes.log(&skip), ["started 2026-02-24T10:00", "skipped 2026-02-24T10:01", "skipped 2026-02-24T10:02"]);
    assert_eq!(nodes.minutes(&queue), minutes(&[0]));
    assert_eq!(nodes.minutes(&cancel), minutes(&[0, 1, 2]));
    let is_active = |status: &String| !["completed", "cancelled", "failed"].contains(&status.as_str());
    for row in nodes.store.executions(&Filter::default(), None, 100).unwrap() {
        let is_last = row.idempotency_key.as_ref().is_some_and(|key| key.ends_with("10:02"));
        if row.trigger_id.as_deref() == Some(&cancel) && !is_last {
            nodes.owner.get(&format!("/api/executions/{}/wait", row.id)).expect(200);
        }
    }
    let active = nodes.ticks(&cancel).into_iter().filter(|(_, status)| is_active(status)).map(|(minute, _)| minute);
    assert_eq!(active.collect::<Vec<_>>(), minutes(&[2]), "the earlier ones are canceled");
    // The queued ticks start one after another, each when the one before has ended.
    for next in 1..3 {
        for row in nodes.store.executions(&Filter::default(), None, 100).unwrap() {
            if row.trigger_id.as_deref() == Some(&queue) && is_active(&row.status) {
                nodes
                    .owner
                    .post(&format!("/api/executions/{}/cancel", row.id), &Value::map([("reason", Value::from("next"))]))
                    .expect(200);
                nodes.owner.get(&format!("/api/executions/{}/wait", row.id)).expect(200);
            }
        }
        nodes.set(&format!("2026-02-24T10:02:{next}9Z"));
        nodes.poll();
        assert_eq!(nodes.minutes(&queue), minutes(&(0..=next).collect::<Vec<_>>()));
    }
    for id in [&allow, &skip, &queue, &cancel] {
        nodes.owner.post(&format!("/api/triggers/{id}/disable"), &Value::map::<&str>([])).expect(200);
    }
    // No node runs for three minutes.
    let of = |policy: &str| nodes.schedule("ends", &format!(r#""cron": "* * * * *", {policy}"#));
    let [skip, once, all] = ["skip", "once", "all"].map(|missed| of(&format!(r#""missed": "{missed}""#)));
    nodes.set("2026-02-24T10:05:30Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&skip), minutes(&[5]));
    assert_eq!(nodes.log(&skip), ["missed -", "started 2026-02-24T10:05"]);
    assert_eq!(nodes.minutes(&once), minutes(&[5]));
    assert_eq!(nodes.minutes(&all), minutes(&[3, 4, 5]));
    assert_eq!(nodes.minutes(&allow), minutes(&[0, 1, 2]), "a disabled schedule starts nothing");
}

#[test]
fn a_schedule_of_a_removed_owner_stops_with_a_reason() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    let owner = &nodes.owner;
    let body =
        |pairs: &[(&str, &str)]| Value::map(pairs.iter().map(|(key, text)| (key.to_string(), Value::from(*text))));
    owner.put("/api/members/bob", &body(&[("role", "member")])).expect(200);
    let token = owner.post("/api/tokens", &body(&[("name", "t"), ("userId", "bob")])).expect(201).text_at("token");
    let bob = owner.with_token(&token);
    workflows(&bob);
    let trigger = nodes.schedule("ends", r#""cron": "* * * * *""#);
    assert_eq!(
        nodes.trigger(&trigger).get("userId").and_then(Value::as_text),
        Some("bob"),
        "it runs as the workflow's owner"
    );
    nodes.set("2026-02-24T10:00:01Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&trigger), ["2026-02-24T10:00"]);
    let row = &nodes.store.executions(&Filter::default(), None, 1).unwrap()[0];
    assert_eq!(row.initiator_user_id.as_deref(), Some("bob"));
    owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
    nodes.set("2026-02-24T10:01:01Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&trigger), ["2026-02-24T10:00"]);
    let shown = nodes.trigger(&trigger);
    let code = shown.get("stopped").and_then(|stopped| stopped.get("code")).and_then(Value::as_text);
    assert_eq!((code, shown.get("enabled")), (Some("TRIGGER_OWNER_REMOVED"), Some(&Value::Bool(false))));
    assert_eq!(nodes.log(&trigger), ["started 2026-02-24T10:00", "refused 2026-02-24T10:01"]);
    start(owner, "ends", "1", Default::default()).expect(202);
}

/// A node that starts ticks and ends before it moves the row of their schedule leaves the row to the next one.
#[test]
fn ticks_that_a_crash_repeats_cancel_no_later_tick() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    workflows(&nodes.owner);
    let config = r#""cron": "* * * * *", "overlap": "cancel_previous", "missed": "all""#;
    let trigger = nodes.schedule("waits", config);
    let before = [nodes.rows("due schedule", ""), nodes.rows("trigger state", "default")].concat();
    assert_eq!(before.len(), 2);
    nodes.set("2026-02-24T10:02:05Z");
    nodes.poll();
    let is_active = |(_, status): &(String, String)| status == "waiting_approval" || status == "running";
    let wait_for_cancels = || {
        for row in nodes.store.executions(&Filter::default(), None, 100).unwrap() {
            if row.idempotency_key.as_ref().is_some_and(|key| !key.ends_with("10:02")) {
                nodes.owner.get(&format!("/api/executions/{}/wait", row.id)).expect(200);
            }
        }
        nodes.ticks(&trigger).into_iter().filter(is_active).map(|(minute, _)| minute).collect::<Vec<_>>()
    };
    assert_eq!(wait_for_cancels(), ["2026-02-24T10:02"]);
    nodes.overwrite(before, nodes.rows("due schedule", ""));
    nodes.poll();
    assert_eq!(wait_for_cancels(), ["2026-02-24T10:02"]);
    assert_eq!(nodes.minutes(&trigger).len(), 3);
}

#[test]
fn schedules_that_cannot_start_do_not_delay_those_of_others() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    workflows(&nodes.owner);
    let row = |kind: &str, organization: &str, id: &str, body: &str| ResourceRow {
        kind: kind.into(),
        organization: organization.into(),
        id: id.into(),
        version: 0,
        keys: Vec::new(),
        body: body.into(),
    };
    // The state of their trigger cannot be read, so their rows stay the first ones.
    let body = r#"{"organization": "loud", "trigger": "t", "cursor_ms": 0}"#;
    let stuck = (0..1_200).map(|number| row("due schedule", "", &format!("{number:015}/t"), body));
    nodes.overwrite(stuck.chain([row("trigger state", "loud", "t", "?")]).collect(), Vec::new());
    let trigger = nodes.schedule("ends", r#""cron": "* * * * *""#);
    nodes.set("2026-02-24T10:00:05Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&trigger), ["2026-02-24T10:00"]);
    // A tick that cannot start moves its row behind those that are due.
    nodes.runtime.block_on(nodes.apps[0].engine.drain());
    nodes.set("2026-02-24T10:01:05Z");
    nodes.poll();
    let due = nodes.rows("due schedule", "").pop().unwrap().id;
    let retry_ms = parse_rfc3339("2026-02-24T10:01:15Z").unwrap();
    assert_eq!(due, format!("{retry_ms:015}/{trigger}"));
}

/// A trigger that is created while its workflow is deleted outlives it.
#[test]
fn a_trigger_runs_no_definition_of_another_member() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.store(parse_rfc3339("2026-02-24T09:59:30Z").unwrap(), Ordering::SeqCst);
    let nodes = Nodes::start(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)));
    let owner = &nodes.owner;
    let body =
        |pairs: &[(&str, &str)]| Value::map(pairs.iter().map(|(key, text)| (key.to_string(), Value::from(*text))));
    owner.put("/api/members/bob", &body(&[("role", "member")])).expect(200);
    let token = owner.post("/api/tokens", &body(&[("name", "t"), ("userId", "bob")])).expect(201).text_at("token");
    workflows(owner);
    let trigger = nodes.schedule("ends", r#""cron": "* * * * *""#);
    let kinds = [("trigger", "default"), ("trigger state", "default"), ("due schedule", "")];
    let before: Vec<_> = kinds.iter().flat_map(|(kind, organization)| nodes.rows(kind, organization)).collect();
    assert_eq!(before.len(), 3);
    owner.send("DELETE", "/api/workflows/ends", &[], None).expect(204);
    save_ending(&owner.with_token(&token));
    nodes.overwrite(before, Vec::new());
    nodes.set("2026-02-24T10:00:05Z");
    nodes.poll();
    assert_eq!(nodes.minutes(&trigger), Vec::<String>::new());
    let stopped = nodes.trigger(&trigger).get("stopped").cloned().unwrap();
    assert_eq!(stopped.get("code").and_then(Value::as_text), Some("TRIGGER_OWNER_REMOVED"));
}
