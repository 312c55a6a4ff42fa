//! Runs executions on an engine from many concurrent callers, and measures each.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use mainspring_engine::{Engine, EngineError, shard::CommittedFrame, start_request::StartRequest};
use mainspring_kernel::{record::Record, state::ExecutionStatus};

use super::workload::Workload;
use crate::error::CliError;

/// The limits of a measurement. The first one that is reached ends it; started executions are completed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) duration: Duration,
    pub(super) executions_max: u64,
}

/// The result of a measurement.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The duration of each execution; for timers the lateness of each.
    pub(super) each: Vec<Duration>,
    /// The time from the first start to the last end.
    pub(super) all: Duration,
}

/// A closed loop: `at_a_time` callers each run one execution after another. The callers are distributed over the
/// engines.
pub(super) async fn closed(
    engines: &[Arc<Engine>],
    workload: Workload,
    at_a_time: u32,
    bounds: Bounds,
) -> Result<Measured, CliError> {
    let request = workload.request()?;
    let (began, numbers) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = engines
        .iter()
        .cycle()
        .take(at_a_time as usize)
        .map(|engine| {
            let (engine, request, numbers) = (engine.clone(), request.clone(), numbers.clone());
            tokio::spawn(async move {
                let mut each = Vec::new();
                while began.elapsed() < bounds.duration {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    if number >= bounds.executions_max {
                        break;
                    }
                    each.push(one(&engine, workload, &request, number, Instant::now()).await?);
                }
                Ok::<_, EngineError>(each)
            })
        })
        .collect();
    let mut each = Vec::new();
    for caller in callers {
        let done = caller.await.map_err(|error| CliError::internal("bench_failed", error.to_string()))?;
        each.extend(done?);
    }
    Ok(Measured { each, all: began.elapsed() })
}

/// An open loop: executions start at a fixed rate, even if earlier ones have not ended. Each is measured from its
/// scheduled start, so that queueing counts as latency (no coordinated omission).
pub(super) async fn open(
    engine: &Arc<Engine>,
    workload: Workload,
    per_s: f64,
    bounds: Bounds,
) -> Result<Measured, CliError> {
    let request = workload.request()?;
    let count = (per_s * bounds.duration.as_secs_f64()).round().clamp(1.0, bounds.executions_max as f64) as u64;
    let runtime = tokio::runtime::Handle::current();
    let each = Arc::new(Mutex::new(Vec::new()));
    let (engine, kept) = (engine.clone(), each.clone());
    let began = Instant::now();
    // A separate thread, since the runtime's timers have a resolution of a millisecond, which is longer than the
    // interval.
    let clock = move || {
        let mut executions = Vec::new();
        for number in 0..count {
            let begins = began + Duration::from_secs_f64(number as f64 / per_s);
            std::thread::sleep(begins.saturating_duration_since(Instant::now()));
            let (engine, request, kept) = (engine.clone(), request.clone(), kept.clone());
            executions.push(runtime.spawn(async move {
                let took = one(&engine, workload, &request, number, begins).await?;
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                Ok::<_, EngineError>(())
            }));
        }
        executions
    };
    let failed = |error: tokio::task::JoinError| CliError::internal("bench_failed", error.to_string());
    for execution in tokio::task::spawn_blocking(clock).await.map_err(failed)? {
        execution.await.map_err(failed)??;
    }
    let each = std::mem::take(&mut *each.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Measured { each, all: began.elapsed() })
}

/// The time from the start to the notification of the durable completion; for timers from the due time.
async fn one(
    engine: &Engine,
    workload: Workload,
    request: &StartRequest,
    number: u64,
    began: Instant,
) -> Result<Duration, EngineError> {
    let request = StartRequest { input: workload.input(number), ..request.clone() };
    let key = engine.new_key()?;
    let mut watch = engine.watch(key);
    engine.start_as(key, request).await?;
    let mut until_ms = None;
    while let Some(moment) = watch.recv().await {
        until_ms = until_ms.or_else(|| timer_of(&moment));
        if moment.status == ExecutionStatus::Completed {
            return Ok(until_ms.map_or_else(|| began.elapsed(), since));
        }
    }
    Err(EngineError::Stopped(engine.why_stopped().unwrap_or_else(|| "an execution did not complete".into())))
}

/// The due time of a timer in a frame.
fn timer_of(moment: &CommittedFrame) -> Option<u64> {
    moment.records.iter().find_map(|record| match record {
        Record::WaitStarted { until, .. } => *until,
        _ => None,
    })
}

/// The time since a point in milliseconds since the epoch.
fn since(at_ms: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(at_ms))
}
