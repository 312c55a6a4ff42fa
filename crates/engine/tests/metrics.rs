//! Metrics of rare events: late timers, changes of partitions, late receipts and quarantined executions.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_effects::Executors;
use mainspring_engine::{
    ClusterOptions, Engine, EngineResources, EngineScope,
    admission::{Bounds, Limits},
    clock::now_ms,
    evaluator::InProcess,
    inbox,
    lease::LeaseTiming,
    start_request::StartRequest,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::Outcome,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Store, memory::MemoryStore};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

const KEY: [u8; 32] = [7; 32];

/// Longer than any test takes on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Recorded metrics by name and labels: the sum of a counter, and every value of a histogram.
struct Seen {
    snapshotter: Snapshotter,
    values: BTreeMap<String, Vec<f64>>,
}

impl Seen {
    /// An engine on a store, with its metrics.
    fn engine(store: &MemoryStore, key: [u8; 32], sharing: Option<ClusterOptions>) -> (Engine, Self) {
        Self::engine_on(store, key, EngineResources { sharing, ..EngineResources::default() })
    }

    fn engine_on(store: &MemoryStore, key: [u8; 32], resources: EngineResources) -> (Engine, Self) {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let workers = (Executors::default(), Arc::new(InProcess) as Arc<_>);
        let run = || Engine::run(Arc::new(store.clone()), key, workers, resources, EngineScope::All).unwrap();
        let engine = metrics::with_local_recorder(&recorder, run);
        (engine, Self { snapshotter, values: BTreeMap::new() })
    }

    fn of(&mut self, name: &str) -> Vec<f64> {
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let labels: String = key.key().labels().map(|label| format!(" {}", label.value())).collect();
            let values = self.values.entry(format!("{}{labels}", key.key().name())).or_default();
            match value {
                DebugValue::Counter(0) => {}
                DebugValue::Counter(count) => *values = vec![count as f64 + values.first().unwrap_or(&0.0)],
                DebugValue::Gauge(value) => *values = vec![value.0],
                DebugValue::Histogram(more) => values.extend(more.iter().map(|value| value.0)),
            }
        }
        assert!(self.values.contains_key(name), "{name} is not shown: {:?}", self.values.keys());
        self.values[name].clone()
    }

    /// Waits for the first value of a metric.
    async fn wait_for(&mut self, name: &str) -> Vec<f64> {
        let began = Instant::now();
        loop {
            let values = self.of(name);
            if !values.is_empty() {
                return values;
            }
            assert!(began.elapsed() < BOUND, "{name} is never counted: {:?}", self.values);
            tokio::task::yield_now().await;
        }
    }
}

async fn submit(engine: &Engine, text: &str) -> ExecutionKey {
    let plan = Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan);
    engine.start(StartRequest::new(plan, "me")).await.unwrap().execution
}

const WAITS: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"n"}]}"#;

#[tokio::test]
async fn a_timer_is_late_by_the_downtime() {
    let store = MemoryStore::new();
    let (engine, _) = Seen::engine(&store, KEY, None);
    let text = r#"{"steps":[{"type":"sleep","id":"s","durationMs":40}]}"#;
    let execution = submit(&engine, text).await;
    let due = engine.state(execution).unwrap().wake_at().unwrap();
    engine.drain().await;
    tokio::time::timeout(BOUND, async {
        while now_ms() < due + 50 {
            tokio::task::yield_now().await
        }
    })
    .await
    .unwrap();
    let (engine, mut seen) = Seen::engine(&store, KEY, None);
    let late = seen.wait_for("mainspring_timer_lateness_seconds").await;
    assert!(late.len() == 1 && late[0] >= 0.05 && late[0] < BOUND.as_secs_f64(), "{late:?}");
    assert_eq!(seen.of("mainspring_journal_loads_total journal"), [1.0]);
    assert_eq!(seen.of("mainspring_journal_load_frames"), [1.0]);
    assert_eq!(seen.wait_for("mainspring_executions_finished_total completed").await, [1.0]);
    engine.drain().await;
}

#[tokio::test]
async fn a_receipt_without_effect_counts_as_late() {
    let store = MemoryStore::new();
    let (engine, mut seen) = Seen::engine(&store, KEY, None);
    let execution = submit(&engine, WAITS).await;
    let outcome = Outcome::Done(Value::Null);
    let receipt = Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome };
    inbox::enqueue(&store, None, &KEY, (execution, &receipt), None).unwrap();
    assert_eq!(seen.wait_for("mainspring_late_receipts_total").await, [1.0]);
    assert_eq!(seen.of("mainspring_inbox_messages_consumed_total"), [1.0]);
    assert_eq!(seen.of("mainspring_inputs_ignored_total"), [1.0]);
    assert_eq!(seen.of("mainspring_turns_total start"), [1.0]);
    assert!(seen.of("mainspring_turns_total receipt").is_empty());
    engine.drain().await;
}

#[tokio::test]
async fn a_quarantined_execution_is_counted_once() {
    let store = MemoryStore::new();
    let (engine, _) = Seen::engine(&store, KEY, None);
    let execution = submit(&engine, WAITS).await;
    engine.drain().await;
    // With another key, the seal at the end of the journal is invalid.
    let (engine, mut seen) = Seen::engine(&store, [8; 32], None);
    engine.activate(execution);
    assert_eq!(seen.wait_for("mainspring_executions_quarantined_total").await, [1.0]);
    assert_eq!(seen.of("mainspring_journal_loads_total broken"), [1.0]);
    assert!(store.head(execution).unwrap().unwrap().quarantined.is_some());
    engine.drain().await;
}

#[tokio::test]
async fn partition_changes_and_heartbeats_are_counted() {
    let store = MemoryStore::new();
    store.repartition(4).unwrap();
    let sharing = ClusterOptions { terms: LeaseTiming { lease_ms: 400 }, place: "here".into() };
    let (engine, mut seen) = Seen::engine(&store, KEY, Some(sharing));
    assert_eq!(seen.wait_for("mainspring_partition_changes_total acquired").await, [4.0]);
    assert!(seen.wait_for("mainspring_heartbeats_total ok").await[0] >= 1.0);
    assert!(seen.of("mainspring_partition_changes_total lost").is_empty());
    // The store's clock advances, and the lease of this node expires.
    store.set_now(now_ms());
    assert_eq!(seen.wait_for("mainspring_heartbeats_total expired").await, [1.0]);
    assert_eq!(seen.wait_for("mainspring_partition_changes_total lost").await, [4.0]);
    let began = Instant::now();
    while seen.of("mainspring_partition_changes_total acquired") != [8.0] {
        assert!(began.elapsed() < BOUND, "what was lost is acquired again in the next run");
        tokio::task::yield_now().await;
    }
    engine.drain().await;
}

/// Two executions per organization.
struct TwoEach;

impl Limits for TwoEach {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(Bounds { user: 2, organization: 2, workflow: None, live: 1_000 })
    }
}

#[tokio::test]
async fn admission_gauges_sum_over_organizations() {
    let store = MemoryStore::new();
    let resources = EngineResources { limits: Some(Arc::new(TwoEach)), ..EngineResources::default() };
    let (engine, mut seen) = Seen::engine_on(&store, KEY, resources);
    let plan = Arc::new(compile(&read(WAITS.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan);
    for organization in ["o", "o", "o", "p", "p"] {
        let trigger = Value::map([("type", "manual".into()), ("organizationId", organization.into())]);
        engine.start(StartRequest { trigger, ..StartRequest::new(plan.clone(), "me") }).await.unwrap();
    }
    let began = Instant::now();
    // A snapshot resets the gauges, so both are taken from one snapshot.
    while seen.of("mainspring_admission_executions running") != [4.0]
        || seen.values["mainspring_admission_executions queued"] != [1.0]
    {
        assert!(began.elapsed() < BOUND, "it is never shown: {:?}", seen.values);
        tokio::task::yield_now().await;
    }
    engine.drain().await;
}
