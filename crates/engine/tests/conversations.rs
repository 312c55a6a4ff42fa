//! Long conversations of agents: the journal grows with their turns, and not with their square, and a conversation of a
//! thousand turns is resumed from its journal.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{Engine, EngineResources, EngineScope, evaluator::InProcess, start_request::StartRequest};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    key::ExecutionKey,
    stored_frame::StoredFrame,
    value::Value,
};
use mainspring_store::{ReadLimit, Store, sqlite::SqliteStore};

/// A timeout that only turns a hang into a failure.
const BOUND: Duration = Duration::from_secs(300);

const AGENT: &str =
    "name: long\nsteps: [{id: a, type: agent, goal: g, tools: [bash], maxTurns: 2000, maxToolCalls: 5000}]";

/// A model that asks for a tool call in each turn and does not answer in the last one, and the tool.
struct Talk {
    turns: usize,
    model_calls: AtomicU64,
    tool_calls: AtomicU64,
    /// Calls of the model that wait.
    waiting: AtomicU64,
}

impl Talk {
    fn of(turns: usize) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self { turns, model_calls: zero(), tool_calls: zero(), waiting: zero() })
    }
}

impl Executor for Talk {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if attempt.effect != "agent" {
                self.tool_calls.fetch_add(1, Ordering::SeqCst);
                return Outcome::Done(Value::map([("stdout", "r".repeat(200).into()), ("exitCode", 0u32.into())]));
            }
            let turns = attempt.params.get("turns").and_then(Value::as_list).unwrap_or_default().len();
            self.model_calls.fetch_add(1, Ordering::SeqCst);
            if turns == self.turns {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            let arguments = Value::map([("command", Value::from("true"))]);
            let call = Value::map([("id", "c".into()), ("name", "bash".into()), ("arguments", arguments)]);
            let usage = Value::map([("inputTokens", 10u32.into()), ("outputTokens", 5u32.into())]);
            Outcome::Done(Value::map([
                ("text", "t".repeat(200).into()),
                ("toolCalls", vec![call].into()),
                ("usage", usage),
                ("stopReason", "tool_calls".into()),
            ]))
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::NeverStarted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

fn engine(store: Arc<dyn Store>, talk: &Arc<Talk>) -> Engine {
    let workers = (Executors::new(vec![talk.clone() as Arc<dyn Executor>]), Arc::new(InProcess) as Arc<_>);
    Engine::run(store, [1; 32], workers, EngineResources::default(), EngineScope::All).unwrap()
}

async fn until_it_waits(talk: &Talk) {
    let asking = async {
        while talk.waiting.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(BOUND, asking).await.expect("the last call of the model begins");
}

/// Frames and bytes of a journal with its values.
fn size_of(store: &dyn Store, execution: ExecutionKey) -> (usize, usize) {
    let (mut frames, mut bytes) = (0, 0);
    loop {
        let page = store.frames(execution, frames as u64, ReadLimit::of(100)).unwrap();
        if page.is_empty() {
            return (frames, bytes);
        }
        frames += page.len();
        bytes += page.iter().map(StoredFrame::byte_count).sum::<usize>();
    }
}

/// Has a conversation of some turns, and resumes it in a second engine. Returns the size of its journal.
async fn talk(turns: usize) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("journal.db")).unwrap());
    let first = Talk::of(turns);
    let running = engine(store.clone(), &first);
    let plan = compile(&read(AGENT.as_bytes(), Syntax::Yaml).unwrap()).unwrap().plan;
    let execution = running.start(StartRequest::new(Arc::new(plan), "me")).await.unwrap().execution;
    until_it_waits(&first).await;
    assert_eq!(first.model_calls.load(Ordering::SeqCst), turns as u64 + 1);
    assert_eq!(first.tool_calls.load(Ordering::SeqCst), turns as u64);
    // Dropped without a drain, as a process that crashes.
    drop(running);
    let size = size_of(&*store, execution);
    let second = Talk::of(turns);
    let began = Instant::now();
    let resumed = engine(store.clone(), &second);
    until_it_waits(&second).await;
    println!("{turns} turns: {} frames, {} bytes, resumed in {:?}", size.0, size.1, began.elapsed());
    assert_eq!(second.model_calls.load(Ordering::SeqCst), 1, "the open call alone is made again");
    assert_eq!(second.tool_calls.load(Ordering::SeqCst), 0);
    drop(resumed);
    size
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_grows_with_the_turns_of_a_conversation() {
    let sizes = [talk(10).await, talk(100).await, talk(1_000).await];
    let [ten, hundred, thousand] = sizes;
    assert_eq!((thousand.0 - hundred.0) / 900, (hundred.0 - ten.0) / 90, "frames of a turn: {sizes:?}");
    let of_turn = |more: (usize, usize), less: (usize, usize), turns: usize| (more.1 - less.1) / turns;
    let (early, late) = (of_turn(hundred, ten, 90), of_turn(thousand, hundred, 900));
    // Names and numbers become longer by some digits.
    assert!(late <= early + early / 20, "a turn takes {early} bytes, and later {late}: {sizes:?}");
}
