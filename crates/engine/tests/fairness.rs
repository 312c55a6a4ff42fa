//! Effects and functions of many organizations on one node: an organization with many requests does not delay the
//! others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    Engine, EngineResources, EngineScope,
    engine::StartAnswer,
    evaluator::{Evaluator, InProcess},
    limits::EVALUATIONS_AT_A_TIME,
    start_request::StartRequest,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    plan::Plan,
    record::Ending,
    value::Value,
};
use mainspring_sandbox::{Call, Response};
use mainspring_store::memory::MemoryStore;

/// Longer than any test takes on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Concurrent starts of one organization.
const GREEDY: usize = 60;

const MANY: &str = r#"{"constraints":{"maxParallel":200},"steps":[{"type":"loop","id":"l",
    "forEach":{"ref":"@input","concurrency":200},"steps":[{"type":"bash","id":"a","command":"greedy"}]}]}"#;
const ONE: &str = r#"{"steps":[{"type":"bash","id":"a","command":"modest"}]}"#;
const SLOW_CODE: &str = r#"{"steps":[{"type":"code","id":"c","code":"export default () => 'slow'"}]}"#;
const QUICK_CODE: &str = r#"{"steps":[{"type":"code","id":"c","code":"export default () => 'quick'"}]}"#;

fn plan(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

fn request(text: &str, organization: &str) -> StartRequest {
    let trigger = Value::map([("type", "manual".into()), ("organizationId", organization.into())]);
    StartRequest { trigger, ..StartRequest::new(plan(text), "me") }
}

/// Performs `greedy` scripts until they are asked to stop, and all others at once.
#[derive(Default)]
struct Tarpit {
    /// Running, started and finished attempts by command.
    counts: Mutex<BTreeMap<String, [usize; 3]>>,
}

impl Tarpit {
    fn of(&self, command: &str) -> [usize; 3] {
        self.counts.lock().unwrap().get(command).copied().unwrap_or_default()
    }
}

impl Executor for Tarpit {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        let command = attempt.params.get("command").and_then(Value::as_text).unwrap_or_default().to_owned();
        Box::pin(async move {
            if stop.is_requested() {
                return Outcome::Stopped(Value::Null);
            }
            let count = |change: fn(&mut [usize; 3])| {
                change(self.counts.lock().unwrap().entry(command.clone()).or_default());
            };
            count(|counts| (counts[0], counts[1]) = (counts[0] + 1, counts[1] + 1));
            let is_greedy = command == "greedy";
            if is_greedy {
                stop.requested().await;
            }
            count(|counts| (counts[0], counts[2]) = (counts[0] - 1, counts[2] + 1));
            if is_greedy { Outcome::Stopped(Value::Null) } else { Outcome::Done(Value::Null) }
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(async { Adopted::Interrupted })
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// Blocks functions that contain `slow` until it is opened.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    waits: Mutex<usize>,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Opens the gate even if a test fails, so that no thread remains.
struct Opening(Arc<Gate>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Evaluator for Gate {
    fn call(&self, request: &mainspring_sandbox::Request) -> Response {
        if matches!(&request.call, Call::Function(function) if function.source.contains("slow")) {
            *self.waits.lock().unwrap() += 1;
            drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        }
        mainspring_sandbox::evaluate(request)
    }
}

fn on_node(executor: Arc<dyn Executor>, evaluator: Arc<dyn Evaluator>, work: impl AsyncFnOnce(Arc<Engine>)) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
        let (store, workers) = (Arc::new(MemoryStore::new()), (Executors::new(vec![executor]), evaluator));
        let engine = Engine::run(store, [1; 32], workers, EngineResources::default(), EngineScope::All).unwrap();
        let engine = Arc::new(engine);
        work(engine.clone()).await;
        tokio::time::timeout(BOUND, engine.drain()).await.expect("the engine does not end");
    });
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let condition = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(BOUND, condition).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Both organizations have work. Then one starts many executions, and the other one starts a single execution behind
/// them.
#[test]
fn starts_of_one_organization_do_not_block_another() {
    const ROUNDS: &str = r#"{"constraints":{"maxSteps":10000},"steps":[{"type":"loop","id":"l","while":true,"maxRounds":400,"steps":[
        {"type":"conditional","id":"c","condition":true,"then":[]}]}]}"#;
    // A start is sent at its first poll. The driver shares this thread and runs after all are sent.
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<dyn Evaluator>);
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::run(store, [1; 32], workers, EngineResources::default(), EngineScope::All).unwrap();
        for organization in ["greedy", "modest"] {
            engine.start(request(ROUNDS, organization)).await.unwrap();
        }
        let greedy = join_all((0..GREEDY).map(|_| engine.start(request(ROUNDS, "greedy"))));
        let (greedy, modest) = tokio::join!(greedy, engine.start(request(ROUNDS, "modest")));
        // A turn takes more than a millisecond.
        let taken_in_at = |submitted: StartAnswer| engine.state(submitted.execution).unwrap().now;
        let modest = taken_in_at(modest.unwrap());
        let before = greedy.into_iter().filter(|submitted| taken_in_at(submitted.clone().unwrap()) < modest).count();
        assert!(before < GREEDY / 2, "{before} of {GREEDY} were taken in before");
        tokio::time::timeout(BOUND, engine.drain()).await.expect("the engine does not end");
    });
}

#[test]
fn effects_of_one_organization_leave_half_to_others() {
    let tarpit = Arc::new(Tarpit::default());
    on_node(tarpit.clone(), Arc::new(InProcess), async |engine| {
        engine.limit_effects(8);
        let input = Value::from(vec![Value::Null; 200]);
        let greedy = StartRequest { input, ..request(MANY, "greedy") };
        let greedy = engine.start(greedy).await.unwrap().execution;
        until("half of the effects begin", || tarpit.of("greedy")[0] == 4).await;
        // One after the other, while 196 effects of the first organization wait.
        for done in 1..=20 {
            engine.start(request(ONE, "modest")).await.unwrap();
            until("another organization waits", || tarpit.of("modest")[2] == done).await;
            assert_eq!(tarpit.of("greedy")[1], 4, "no more than half for one, whatever waits");
        }
        // Waiting effects are stopped as well, and leave the queue.
        assert!(engine.cancel(greedy, "enough", "me").await.unwrap());
        let has_ended = || engine.state(greedy).is_ok_and(|state| state.end.ended_at.is_some());
        until("what waited was not stopped", has_ended).await;
        assert_eq!(tarpit.of("greedy")[0], 0);
    });
}

/// While the effect waits for a permit, another execution sleeps for longer than the effect may take.
#[test]
fn the_timeout_of_an_effect_starts_with_its_permit() {
    const TIMED: &str =
        r#"{"steps":[{"type":"bash","id":"a","command":"greedy","timeoutMs":1000,"retry":{"maxAttempts":1}}]}"#;
    const CLOCK: &str = r#"{"steps":[{"type":"sleep","id":"s","durationMs":1500}]}"#;
    const BUSY: &str = r#"{"steps":[{"type":"bash","id":"a","command":"greedy"}]}"#;
    let tarpit = Arc::new(Tarpit::default());
    on_node(tarpit.clone(), Arc::new(InProcess), async |engine| {
        engine.limit_effects(1);
        let busy = engine.start(request(BUSY, "one")).await.unwrap().execution;
        until("the effect begins", || tarpit.of("greedy")[0] == 1).await;
        let timed = engine.start(request(TIMED, "one")).await.unwrap().execution;
        let clock = engine.start(request(CLOCK, "one")).await.unwrap().execution;
        let ending = |execution| engine.state(execution).ok().filter(|state| state.end.ended_at.is_some())?.end.ending;
        until("it sleeps", || ending(clock).is_some()).await;
        assert_eq!(engine.state(timed).unwrap().open.attempts.len(), 1, "it is out of time");
        assert!(engine.cancel(busy, "enough", "me").await.unwrap());
        until("it has no timeout", || ending(timed).is_some()).await;
        assert!(matches!(ending(timed), Some(Ending::Failed { .. })), "{:?}", ending(timed));
        assert_eq!(tarpit.of("greedy"), [0, 2, 2], "it began");
    });
}

#[test]
fn functions_of_one_organization_leave_threads_to_others() {
    let gate = Arc::new(Gate::default());
    let _opening = Opening(gate.clone());
    let is_done = Arc::new(AtomicBool::new(false));
    on_node(Arc::new(Tarpit::default()), gate.clone(), async |engine| {
        for _ in 0..EVALUATIONS_AT_A_TIME + 10 {
            let engine = engine.clone();
            tokio::spawn(async move { engine.start(request(SLOW_CODE, "heavy")).await });
        }
        until("half of the threads are taken", || *gate.waits.lock().unwrap() == EVALUATIONS_AT_A_TIME / 2).await;
        let quick = tokio::time::timeout(BOUND, engine.start(request(QUICK_CODE, "small"))).await;
        quick.expect("a small function waits for the heavy ones of others").unwrap();
        assert_eq!(*gate.waits.lock().unwrap(), EVALUATIONS_AT_A_TIME / 2);
        is_done.store(true, Ordering::SeqCst);
        gate.open();
    });
    assert!(is_done.load(Ordering::SeqCst));
}
