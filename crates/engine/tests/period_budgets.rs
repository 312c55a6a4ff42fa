//! Budgets of a day or a month on real engines: never over the limit with many calls at a time on three nodes, nothing lost
//! between a grant and its record, and raises that repeat no call.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    ClusterOptions, Engine, EngineResources, EngineScope,
    evaluator::InProcess,
    lease::LeaseTiming,
    period_budgets::{Period, PeriodBudgets, PeriodicBudget, WantedLease, lease},
    start_request::StartRequest,
};
use mainspring_kernel::{
    budget::{Budget, Limits, ModelTerm, ModelTerms, Price, Usage},
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    effect_policy::EffectPolicy,
    instance::Instance,
    key::ExecutionKey,
    leases::LeaseChange,
    plan::Decision,
    value::Value,
};
use mainspring_store::{
    Store,
    memory::MemoryStore,
    postgres::{Options, PostgresStore, server},
};

/// A timeout that only turns a hang into a failure.
const BOUND: Duration = Duration::from_secs(180);

const AGENT: &str = "name: one\nsteps: [{id: a, type: agent, goal: g}]";

/// A model that counts its calls and uses a part of what each may use.
#[derive(Default)]
struct Model {
    calls: AtomicU64,
    tokens: AtomicU64,
}

impl Executor for Model {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "agent"
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async {
            // Other calls begin at the same time.
            tokio::task::yield_now().await;
            let call = self.calls.fetch_add(1, Ordering::SeqCst);
            let (input, output) = (1 + call % 3, 10 + call % 40);
            self.tokens.fetch_add(input + output, Ordering::SeqCst);
            let usage = Value::map([("inputTokens", input.into()), ("outputTokens", output.into())]);
            Outcome::Done(Value::map([("text", "t".into()), ("toolCalls", Value::List(vec![])), ("usage", usage)]))
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::NeverStarted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// The budgets of an organization, whatever its name.
struct Fixed(Vec<PeriodicBudget>);

impl PeriodBudgets for Fixed {
    fn budgets(&self, _: &dyn Store, _: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        Ok(self.0.clone())
    }
}

fn month(limits: [Option<u64>; 5], asks: bool) -> PeriodicBudget {
    let budget = Budget { limits: Limits(limits), asks, ..Budget::default() };
    PeriodicBudget { workflow: None, period: Period::Month, budget, set_at: None }
}

fn request(definition: &str, organization: Option<&str>) -> StartRequest {
    let plan = compile(&read(definition.as_bytes(), Syntax::Yaml).unwrap()).unwrap().plan;
    let price = Price { input: 1, cached_input: 1, output: 1 };
    let models = BTreeMap::from([("m".to_string(), ModelTerm { max_tokens: Some(50), price: Some(price) })]);
    let terms = ModelTerms { default: Some("m".into()), models, ..ModelTerms::default() };
    let policy = EffectPolicy::default().with_models(terms).with_leases();
    let mut request = StartRequest::new(Arc::new(plan), "me");
    if let Some(organization) = organization {
        request.trigger = Value::map([
            ("type", "manual".into()),
            ("organizationId", organization.into()),
            ("workflowId", "w".into()),
        ]);
    }
    request.guarded(&policy, organization).unwrap()
}

fn engine(
    store: Arc<dyn Store>,
    model: &Arc<Model>,
    budgets: Arc<dyn PeriodBudgets>,
    sharing: Option<ClusterOptions>,
) -> Engine {
    let workers = (Executors::new(vec![model.clone() as Arc<dyn Executor>]), Arc::new(InProcess) as Arc<_>);
    let resources = EngineResources { sharing, budgets: Some(budgets), ..EngineResources::default() };
    Engine::run(store, [1; 32], workers, resources, EngineScope::All).unwrap()
}

async fn until(is_so: impl Fn() -> bool) {
    let asking = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(BOUND, asking).await.expect("it never comes to be so");
}

fn status(store: &dyn Store, execution: ExecutionKey) -> String {
    store.execution(execution).unwrap().map(|row| row.status).unwrap_or_default()
}

fn has_ended(store: &dyn Store, execution: ExecutionKey) -> bool {
    ["completed", "failed"].contains(&status(store, execution).as_str())
}

/// The account of the month in which the test runs. At its turn, one of two months has an account.
fn used(store: &dyn Store, organization: &str) -> Usage {
    let now = mainspring_engine::clock::now_ms();
    let months = [Period::Month.at(now), Period::Month.at(now - 3_600_000)];
    let account = |month: &String| store.catalogue().period_account(organization, "", month).unwrap();
    months.iter().find_map(account).unwrap_or_default().used
}

/// 64 agents in children and beside each other, in 8 trees on three nodes, and another organization beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_never_use_more_than_the_limit() {
    const AGENTS: u64 = 64;
    let server = server::Server::start(server::Options { fsync: false, tls: false }).unwrap();
    let scratch = server.scratch();
    let model = Arc::new(Model::default());
    let budgets: Arc<dyn PeriodBudgets> =
        Arc::new(Fixed(vec![month([Some(60_000), None, Some(40), None, None], false)]));
    let nodes: Vec<Engine> = (0..3)
        .map(|_| {
            let options = Options { partitions: 12, ..Options::default() };
            let store = Arc::new(PostgresStore::open_with(&scratch.address(), options).unwrap());
            let sharing = ClusterOptions { terms: LeaseTiming { lease_ms: 30_000 }, place: String::new() };
            engine(store, &model, budgets.clone(), Some(sharing))
        })
        .collect();
    until(|| nodes.iter().all(|node| !node.owned_partitions().is_empty())).await;
    let agents: String =
        (0..4).map(|n| format!("      - {{id: a{n}, type: agent, goal: g, onError: continue}}\n")).collect();
    let child = format!("name: child\nsteps:\n  - id: all\n    type: parallel\n    steps:\n{agents}");
    let root = format!(
        "name: root\nsteps:\n  - id: all\n    type: parallel\n    steps:\n{agents}      - {{id: c, type: subworkflow, workflow: child, onError: continue}}\n"
    );
    let mut started = Vec::new();
    for number in 0..AGENTS / 8 {
        let node = &nodes[number as usize % nodes.len()];
        let mut root = request(&root, Some("o"));
        root.workflows.insert("child".into(), request(&child, Some("o")).plan);
        started.push(node.start(root).await.unwrap().execution);
    }
    let other = nodes[0].start(request(AGENT, Some("p"))).await.unwrap().execution;
    let store = nodes[0].store().clone();
    until(|| started.iter().chain([&other]).all(|key| has_ended(&*store, *key))).await;
    assert_eq!(status(&*store, other), "completed", "the other organization has its own budget");
    let used = used(&*store, "o");
    let of_other = self::used(&*store, "p");
    assert_eq!(used.tokens + of_other.tokens, model.tokens.load(Ordering::SeqCst), "all blocks were returned");
    assert_eq!(used.model_calls + of_other.model_calls, model.calls.load(Ordering::SeqCst));
    assert_eq!(used.model_calls, 40, "exactly the limit: {used:?}");
    for node in nodes {
        node.drain().await;
    }
}

/// Grants a lease and blocks its answer, as a node that is killed between the grant and its record.
struct Blocked {
    granted: Mutex<Option<mpsc::Sender<()>>>,
    released: Mutex<Option<mpsc::Receiver<()>>>,
    budgets: Fixed,
}

impl PeriodBudgets for Blocked {
    fn budgets(&self, store: &dyn Store, organization: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        if let Some(released) = self.released.lock().unwrap().take() {
            self.granted.lock().unwrap().take().unwrap().send(()).unwrap();
            let _ = released.recv();
        }
        self.budgets.budgets(store, organization)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unrecorded_lease_is_found_again() {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let limited = || Fixed(vec![month([Some(2_500), None, None, None, None], false)]);
    let (granted, is_granted) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let blocked =
        Blocked { granted: Mutex::new(Some(granted)), released: Mutex::new(Some(released)), budgets: limited() };
    let first = engine(Arc::new(store.clone()), &model, Arc::new(blocked), None);
    let key = first.start(request(AGENT, None)).await.unwrap().execution;
    tokio::task::spawn_blocking(move || is_granted.recv_timeout(BOUND).unwrap()).await.unwrap();
    // The store has granted the lease, and no journal says so.
    let amount = first.state(key).unwrap().counts.budgets.leases.requested.unwrap();
    let wanted = WantedLease { execution: key, root: key, number: 1, amount, at_ms: 0 };
    let now = mainspring_engine::clock::now_ms();
    let change = lease(&store, Some(&limited()), &wanted, now).unwrap().change;
    let Some(LeaseChange::Granted { amount: block, .. }) = change else { panic!("{change:?}") };
    let held = used(&store, "").tokens;
    assert_eq!((Some(held), model.calls.load(Ordering::SeqCst)), (block.0[0], 0));
    // The next process finds the same lease, uses it, and returns the rest.
    let second = engine(Arc::new(store.clone()), &model, Arc::new(limited()), None);
    until(|| has_ended(&store, key)).await;
    assert_eq!((status(&store, key).as_str(), model.calls.load(Ordering::SeqCst)), ("completed", 1));
    assert_eq!(used(&store, "").tokens, model.tokens.load(Ordering::SeqCst));
    drop(release);
    second.drain().await;
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_continues_and_repeats_no_call() {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let budgets = Fixed(vec![month([None, None, Some(1), None, None], true)]);
    let engine = engine(Arc::new(store.clone()), &model, Arc::new(budgets), None);
    let definition = "name: two\nsteps: [{id: a, type: agent, goal: g}, {id: b, type: agent, goal: g}]";
    let key = engine.start(request(definition, None)).await.unwrap().execution;
    until(|| status(&store, key) == "waiting_approval").await;
    assert_eq!((model.calls.load(Ordering::SeqCst), used(&store, "").model_calls), (1, 1));
    let state = engine.state(key).unwrap();
    let (instance, gate): (Instance, u32) =
        state.open_gates().map(|(instance, gate)| (instance.clone(), gate.number)).next().unwrap();
    engine.decide(key, instance, gate, Decision::Approve, "ann", Value::Null).await.unwrap();
    until(|| has_ended(&store, key)).await;
    assert_eq!((status(&store, key).as_str(), model.calls.load(Ordering::SeqCst)), ("completed", 2));
    assert_eq!(used(&store, "").model_calls, 2);
    engine.drain().await;
}

/// Counts how often the budgets are read, and has the given ones.
struct Counted(AtomicU64, Fixed);

impl PeriodBudgets for Counted {
    fn budgets(&self, store: &dyn Store, organization: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.budgets(store, organization)
    }
}

/// Runs executions of an organization one after the other; returns the reads of budgets.
async fn reads(budgets: Vec<PeriodicBudget>, executions: usize) -> u64 {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let source = Arc::new(Counted(AtomicU64::new(0), Fixed(budgets)));
    let engine = engine(Arc::new(store.clone()), &model, source.clone(), None);
    let definition = "name: two\nsteps: [{id: a, type: agent, goal: g}, {id: b, type: agent, goal: g}]";
    for _ in 0..executions {
        let key = engine.start(request(definition, Some("o"))).await.unwrap().execution;
        until(|| has_ended(&store, key)).await;
        assert_eq!(status(&store, key), "completed");
    }
    assert_eq!(model.calls.load(Ordering::SeqCst), 2 * executions as u64);
    engine.drain().await;
    source.0.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_without_a_budget_ask_the_store_once_together() {
    // At the turn of a day, the answer of the day before has ended.
    let few = |reads: u64| (1..=2).contains(&reads);
    let none = reads(vec![], 5).await;
    assert!(few(none), "{none} reads without a budget");
    let of_other = PeriodicBudget { workflow: Some("v".into()), ..month([Some(1), None, None, None, None], false) };
    let other = reads(vec![of_other], 5).await;
    assert!(few(other), "{other} reads with the budget of another workflow");
    let limited = reads(vec![month([Some(1_000_000), None, None, None, None], false)], 5).await;
    assert!(limited >= 5, "{limited} reads with a budget");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_ahead_of_the_clock_gets_a_lease_at_its_time() {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let limits = [Some(1_000_000), None, None, None, None];
    let budgets = || Fixed(vec![PeriodicBudget { period: Period::Day, ..month(limits, false) }]);
    let (granted, is_granted) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let blocked =
        Blocked { granted: Mutex::new(Some(granted)), released: Mutex::new(Some(released)), budgets: budgets() };
    let engine = engine(Arc::new(store.clone()), &model, Arc::new(blocked), None);
    let key = engine.start(request(AGENT, None)).await.unwrap().execution;
    tokio::task::spawn_blocking(move || is_granted.recv_timeout(BOUND).unwrap()).await.unwrap();
    // The clock is at the last millisecond of a day and was two days ahead before.
    let now = mainspring_kernel::time::parse_rfc3339("2026-11-26T23:59:59.999Z").unwrap();
    let at_ms = mainspring_kernel::time::parse_rfc3339("2026-11-28T12:00:00Z").unwrap();
    let amount = engine.state(key).unwrap().counts.budgets.leases.requested.unwrap();
    let until = |at_ms| {
        let wanted = WantedLease { execution: key, root: key, number: 1, amount, at_ms };
        match lease(&store, Some(&budgets()), &wanted, now).unwrap().change {
            Some(LeaseChange::Granted { until, .. }) => until,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(until(0), now + 1, "a lease ends with its day");
    assert_eq!(until(at_ms), at_ms + 300_000);
    drop(release);
    drop(engine);
}

/// The budgets of one request after the other.
struct Changing(Mutex<Vec<PeriodicBudget>>);

impl PeriodBudgets for Changing {
    fn budgets(&self, _: &dyn Store, _: Option<&str>) -> Result<Vec<PeriodicBudget>, String> {
        Ok(self.0.lock().unwrap().clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_budget_counts_use_during_its_absence() {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let of_5 = |set_at| PeriodicBudget { set_at: Some(set_at), ..month([None, None, Some(5), None, None], false) };
    let budgets = Arc::new(Changing(Mutex::new(vec![of_5(1)])));
    let agents = async |executions: usize| {
        // A new engine remembers nothing of the budgets before.
        let engine = engine(Arc::new(store.clone()), &model, budgets.clone(), None);
        for _ in 0..executions {
            let key = engine.start(request(AGENT, Some("o"))).await.unwrap().execution;
            until(|| has_ended(&store, key)).await;
        }
        engine.drain().await;
        model.calls.load(Ordering::SeqCst)
    };
    assert_eq!(agents(3).await, 3);
    budgets.0.lock().unwrap().clear();
    assert_eq!(agents(1).await, 4);
    *budgets.0.lock().unwrap() = vec![of_5(2)];
    assert_eq!(agents(3).await, 5, "the call without a budget counts");
    assert_eq!(used(&store, "o").model_calls, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_ahead_of_the_clock_ends_no_budget_of_others() {
    let store = MemoryStore::new();
    let model = Arc::new(Model::default());
    let (granted, is_granted) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let none = || Fixed(vec![]);
    let blocked = Blocked { granted: Mutex::new(Some(granted)), released: Mutex::new(Some(released)), budgets: none() };
    let engine = engine(Arc::new(store.clone()), &model, Arc::new(blocked), None);
    let key = engine.start(request(AGENT, None)).await.unwrap().execution;
    tokio::task::spawn_blocking(move || is_granted.recv_timeout(BOUND).unwrap()).await.unwrap();
    let now = mainspring_kernel::time::parse_rfc3339("2026-11-26T12:00:00Z").unwrap();
    let amount = engine.state(key).unwrap().counts.budgets.leases.requested.unwrap();
    let wanted = WantedLease { execution: key, root: key, number: 1, amount, at_ms: now + 86_400_000 };
    let answer = lease(&store, Some(&none()), &wanted, now).unwrap();
    assert!(matches!(answer.change, Some(LeaseChange::Granted { until, .. }) if until == wanted.at_ms + 300_000));
    assert_eq!(answer.free.unwrap().until, now + 300_000, "the answer for all follows the clock");
    drop(release);
    drop(engine);
}
