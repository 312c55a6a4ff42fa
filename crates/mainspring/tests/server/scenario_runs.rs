//! Runs of scenarios that a server starts: their number and their end. A runner of the test replaces the simulator.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use mainspring_effects::http::{Http, HttpOptions};
use mainspring_kernel::{json, value::Value};
use mainspring_server::services::{
    events::webhook_client::WebhookClient,
    scenario_runner::{ScenarioReport, ScenarioRun, ScenarioRunner, Scenarios},
};
use mainspring_store::{Change, ChangeOutcome, Put, Store, memory::MemoryStore};

use super::{
    client::{Client, Reply},
    schedules::{Nodes, Outside},
};

static NOW: AtomicU64 = AtomicU64::new(1_771_999_200_000);

fn node(runner: Arc<dyn ScenarioRunner>) -> Nodes {
    let webhooks = WebhookClient::new(Arc::new(Http::new(HttpOptions::default())));
    let outside = Outside { scenarios: Some(Scenarios(runner)), ..Outside::of(webhooks) };
    Nodes::start_with(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &outside)
}

/// A workflow that waits for a number of milliseconds, and permits proposals.
fn waiting(number: u64) -> Value {
    let step = [("id", Value::from("a")), ("type", "sleep".into()), ("durationMs", number.into())];
    let constraints = Value::map([("allowSelfModification", Value::Bool(true))]);
    Value::map([("steps", vec![Value::map(step)].into()), ("constraints", constraints)])
}

fn sync(client: &Client) -> String {
    let body = Value::map([("id", Value::from("w")), ("data", waiting(1))]);
    client.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
}

fn propose(client: &Client, base: &str, number: u64) -> Reply {
    let change = Value::map([("proposedWorkflow", waiting(number)), ("summary", "s".into())]);
    let body = Value::map([("baseWorkflowHash", Value::from(base)), ("proposal", change)]);
    client.post("/api/workflows/w/proposals", &body)
}

fn save_scenarios(client: &Client) {
    let files = Value::map([("a.scenario.yaml", Value::from("name: n"))]);
    client.put("/api/workflows/w/scenarios", &Value::map([("files", files)])).expect(200);
}

/// Runs until it must stop, and sends when it begins and how long it has run.
struct Endless(Sender<Duration>);

impl ScenarioRunner for Endless {
    fn run(&self, run: &ScenarioRun) -> Result<Vec<ScenarioReport>, String> {
        let began = Instant::now();
        self.0.send(Duration::ZERO).unwrap();
        while !(run.is_over)() {
            thread::yield_now();
        }
        self.0.send(began.elapsed()).unwrap();
        Ok(Vec::new())
    }
}

/// The work of a request ends with its connection, and not only after the ten seconds that it may take.
#[test]
fn scenarios_of_a_client_that_disconnects_end() {
    let (sender, events) = channel();
    let node = node(Arc::new(Endless(sender)));
    let body = json::compact(&Value::map([("scenarios", Value::from("name: n"))]));
    let connection = node.owner.open("POST", "/api/scenarios/run", &[], Some(&body));
    events.recv().expect("it begins");
    drop(connection);
    let took = events.recv().expect("it ends");
    // At the end of its time it would have run for ten seconds, less the time before it began.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Counts runs, and writes the stored workflow again during one of them.
#[derive(Default)]
struct Counting {
    runs: AtomicUsize,
    during: Mutex<Option<(usize, Arc<dyn Store>)>>,
}

impl ScenarioRunner for Counting {
    fn run(&self, _: &ScenarioRun) -> Result<Vec<ScenarioReport>, String> {
        let number = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((at, store)) = &*self.during.lock().unwrap()
            && *at == number
        {
            let row = store.catalogue().resource("workflow", "default", "w").unwrap().expect("it is stored");
            let puts = vec![Put { expected: row.version, resource: row }];
            let written = store.catalogue().change(&Change { puts, ..Change::default() }).unwrap();
            assert_eq!(written, ChangeOutcome::Done);
        }
        Ok(Vec::new())
    }
}

#[test]
fn a_proposal_without_room_runs_no_scenarios() {
    let runner = Arc::new(Counting::default());
    let node = node(runner.clone());
    let base = sync(&node.owner);
    save_scenarios(&node.owner);
    for number in 0..100 {
        propose(&node.owner, &base, number + 2).expect(201);
    }
    let runs = || runner.runs.load(Ordering::SeqCst);
    assert_eq!(runs(), 101, "one at the save, and one for each proposal");
    propose(&node.owner, &base, 500).expect(429);
    assert_eq!(runs(), 101);
}

/// The workflow is written while the scenarios run, so the transaction is tried again.
#[test]
fn an_application_that_is_tried_again_runs_its_scenarios_once() {
    let runner = Arc::new(Counting::default());
    let node = node(runner.clone());
    let base = sync(&node.owner);
    save_scenarios(&node.owner);
    let id = propose(&node.owner, &base, 2).expect(201).text_at("id");
    let path = |verb: &str| format!("/api/workflows/w/proposals/{id}{verb}");
    node.owner.post(&path("/review"), &Value::map([("approve", Value::Bool(true))])).expect(200);
    let before = runner.runs.load(Ordering::SeqCst);
    *runner.during.lock().unwrap() = Some((before + 1, node.store.clone()));
    node.owner.send("POST", &path("/apply"), &[], Some("{}")).expect(200);
    assert_eq!(runner.runs.load(Ordering::SeqCst), before + 1);
}
