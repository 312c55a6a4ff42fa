//! The workload `recover`: kills a process with many executions in flight, and measures their recovery in another
//! one.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mainspring_effects::Executors;
use mainspring_engine::{Engine, EngineError};
use mainspring_store::{Batch, PartOutcome};
use tokio::sync::Notify;

use super::{
    effects::{self, Endless},
    recording_store::{CommitCallback, ObservedStore},
    test_store::{self, StoreUrl, TestStore},
    workload::Workload,
};
use crate::{error::CliError, output::terminal::print_out};

/// The line that the killed process prints once all executions are in flight.
const FILLED: &str = "filled";

/// Executions that are started concurrently while the store is filled; enough to fill a commit.
const SUBMITTED_AT_A_TIME: u64 = 2048;

/// The polling interval that detects a stopped engine.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The durations of a recovery.
pub(super) struct Recovered {
    /// From opening the store to an engine that accepts new executions.
    pub(super) reopened: Duration,
    /// From opening the store to the last durable completion.
    pub(super) recovered: Duration,
}

/// Kills a process with `in_flight` executions, and measures the recovery.
pub(super) async fn recover(test_store: &TestStore, place: &str, in_flight: u32) -> Result<Recovered, CliError> {
    fill_and_kill(test_store, place, in_flight)?;
    let (ends, callback) = Ends::expected(u64::from(in_flight));
    let began = Instant::now();
    let store = Arc::new(ObservedStore::new(test_store.store(place)?, callback));
    let engine = test_store::engine(store, effects::nothing(), None).await?;
    engine.pending().await;
    let reopened = began.elapsed();
    while tokio::time::timeout(POLL_INTERVAL, ends.all.notified()).await.is_err() {
        if let Some(why) = engine.why_stopped() {
            return Err(EngineError::Stopped(why).into());
        }
    }
    let recovered = began.elapsed();
    engine.drain().await;
    Ok(Recovered { reopened, recovered })
}

/// Counts completed executions.
struct Ends {
    left: AtomicU64,
    all: Notify,
}

impl Ends {
    fn expected(count: u64) -> (Arc<Self>, CommitCallback) {
        let ends = Arc::new(Self { left: AtomicU64::new(count), all: Notify::new() });
        let counted = ends.clone();
        let callback = move |batch: &Batch, answers: &[PartOutcome]| {
            let durable = batch.parts.iter().zip(answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
            let changes = durable.filter_map(|(part, _)| part.change.as_ref());
            let ended = changes.filter(|change| change.completed_at.is_some()).count() as u64;
            if ended > 0 && counted.left.fetch_sub(ended, Ordering::Relaxed) == ended {
                counted.all.notify_one();
            }
        };
        (ends, Box::new(callback))
    }
}

/// Starts another process of this executable, so that a whole process is killed.
fn fill_and_kill(test_store: &TestStore, place: &str, in_flight: u32) -> Result<(), CliError> {
    let failed = |what: &str| CliError::internal("bench_failed", format!("the process that is to be killed: {what}"));
    let mut command = Command::new("/proc/self/exe");
    command.args(["bench", "--fill", &in_flight.to_string(), "--dir"]).arg(test_store.place(place));
    // The address is passed in the environment: other users can read arguments, and it may contain a password.
    match test_store.url() {
        StoreUrl::Sqlite => command.env_remove("MAINSPRING_STORE"),
        StoreUrl::Postgres(address) => command.env("MAINSPRING_STORE", address),
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
    let mut said = String::new();
    let read = child.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut said));
    let ended = kill(&mut child);
    match (read, ended) {
        (Some(Ok(_)), Ok(())) if said.trim() == FILLED => Ok(()),
        (Some(Err(error)), _) | (_, Err(error)) => Err(failed(&error.to_string())),
        _ => Err(failed("it has exited; its output is above")),
    }
}

fn kill(child: &mut Child) -> std::io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

/// The process to be killed: fills its store, reports that, and waits.
pub(super) async fn fill(url: &StoreUrl, folder: &Path, in_flight: u32) -> Result<(), CliError> {
    let endless = Endless::new(u64::from(in_flight));
    let engine =
        test_store::engine(test_store::store_at(url, folder)?, Executors::new(vec![endless.clone()]), None).await?;
    let request = Workload::Recover.request()?;
    let numbers = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..SUBMITTED_AT_A_TIME.min(u64::from(in_flight)))
        .map(|_| {
            let (engine, request, numbers): (Arc<Engine>, _, _) = (engine.clone(), request.clone(), numbers.clone());
            tokio::spawn(async move {
                while numbers.fetch_add(1, Ordering::Relaxed) < u64::from(in_flight) {
                    engine.start(request.clone()).await?;
                }
                Ok::<_, EngineError>(())
            })
        })
        .collect();
    for caller in callers {
        caller.await.map_err(|error| CliError::internal("bench_failed", error.to_string()))??;
    }
    endless.all_begun().await;
    print_out!("{FILLED}");
    // The parent kills this process. If the parent dies first, the input ends, and so does this process.
    let wait = || std::io::stdin().lock().read_to_end(&mut Vec::new());
    let _ = tokio::task::spawn_blocking(wait).await;
    Ok(())
}
