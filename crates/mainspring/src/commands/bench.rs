//! `mainspring bench`: throughput and latency of this machine, beside its raw disk.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use mainspring_effects::{Adopted, AttemptName, Executor, Executors, Stop, Work};
use mainspring_engine::{
    Engine, EngineError, Options, Reach,
    engine::{new_key, now_ms},
    home::Home,
    request::Request,
};
use mainspring_kernel::{
    definition::compile,
    document::Document,
    effect::{Attempt, Outcome},
    hash::hex,
    json::compact,
    plan::Plan,
    state::ExecutionStatus,
    value::{Number, Value},
};

use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    terminal::say,
};

/// Measure.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Which workload; may be repeated [default: all]
    #[arg(long, value_enum)]
    workload: Vec<Workload>,
    /// How many executions at a time; may be repeated [default: 1 and 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    at_a_time: Vec<u32>,
    /// Seconds for each line
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Executions of one step of an effect that does nothing
    #[value(name = "steps-1")]
    Steps1,
    /// Executions of three such steps
    #[value(name = "steps-3")]
    Steps3,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Steps1 => "steps-1",
            Self::Steps3 => "steps-3",
        }
    }

    fn steps(self) -> usize {
        match self {
            Self::Steps1 => 1,
            Self::Steps3 => 3,
        }
    }
}

/// Measures, a JSON line for each figure, in a folder of its own that is removed at the end.
pub(crate) fn bench(bench: &Bench, global: &Global) -> Result<Exit, Refusal> {
    let folder = Folder::new(global.home()?.folder())?;
    report("fdatasync", "file", 1, &fdatasync(&folder.0, Duration::from_secs(1)).map_err(|error| disk(&error))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::internal("no_runtime", error.to_string()))?;
    let workloads =
        if bench.workload.is_empty() { Workload::value_variants().to_vec() } else { bench.workload.clone() };
    let at_a_time = if bench.at_a_time.is_empty() { vec![1, 256] } else { bench.at_a_time.clone() };
    for workload in workloads {
        for &count in &at_a_time {
            let home = Home::new(folder.0.join(format!("{}-{count}", workload.name())));
            let measured = runtime.block_on(measure(home, workload, count, Duration::from_secs(bench.seconds)))?;
            report(workload.name(), "sqlite", count, &measured);
        }
    }
    Ok(Exit::Fine)
}

/// What was measured: how long each took, and for how long in all.
struct Measured {
    each: Vec<Duration>,
    all: Duration,
}

async fn measure(home: Home, workload: Workload, at_a_time: u32, duration: Duration) -> Result<Measured, Refusal> {
    let options = Options { home, key: [7; 32], reach: Reach::All, evaluator: crate::evaluating::evaluator() };
    let engine = Engine::open(options, |_, _| Executors::new(vec![Arc::new(Nothing)])).await?;
    let engine = Arc::new(engine);
    let request = Request::new(Arc::new(plan_of(workload)?), "bench");
    let began = Instant::now();
    let tasks: Vec<_> = (0..at_a_time)
        .map(|_| {
            let (engine, request) = (engine.clone(), request.clone());
            tokio::spawn(async move {
                let mut each = Vec::new();
                while began.elapsed() < duration {
                    each.push(one(&engine, request.clone()).await?);
                }
                Ok::<_, EngineError>(each)
            })
        })
        .collect();
    let mut each = Vec::new();
    for task in tasks {
        let done = task.await.map_err(|error| Refusal::internal("bench_failed", error.to_string()))?;
        each.extend(done?);
    }
    let all = began.elapsed();
    engine.drain().await;
    Ok(Measured { each, all })
}

/// From submitting to seeing the completion, which is durable by then.
async fn one(engine: &Engine, request: Request) -> Result<Duration, EngineError> {
    let began = Instant::now();
    let key = new_key(now_ms())?;
    let mut watch = engine.watch(key);
    engine.submit_as(key, request).await?;
    while let Some(moment) = watch.recv().await {
        if moment.status == ExecutionStatus::Completed {
            return Ok(began.elapsed());
        }
    }
    Err(EngineError::Stopped(engine.why_stopped().unwrap_or_else(|| "an execution did not complete".into())))
}

fn plan_of(workload: Workload) -> Result<Plan, Refusal> {
    let step =
        |number| Value::map([("id", format!("s{number}").into()), ("type", "tool".into()), ("tool", "nothing".into())]);
    let steps: Vec<Value> = (0..workload.steps()).map(step).collect();
    let definition = Value::map([("name", workload.name().into()), ("steps", steps.into())]);
    let compiled = compile(&Document::placeless(definition));
    compiled
        .map(|compiled| compiled.plan)
        .map_err(|_| Refusal::internal("bench_failed", "the workload does not compile"))
}

/// An effect that does nothing, at once.
struct Nothing;

impl Executor for Nothing {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: Stop) -> Work<'a, Outcome> {
        Box::pin(std::future::ready(Outcome::Done(Value::Null)))
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> Work<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::NeverStarted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// A block written to the end of a file and synced, again and again: what one durable write costs here at the least.
fn fdatasync(folder: &Path, duration: Duration) -> std::io::Result<Measured> {
    let mut file = File::create(folder.join("fdatasync"))?;
    let (block, mut each, began) = ([0x5a; 4096], Vec::new(), Instant::now());
    while began.elapsed() < duration {
        let one = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        each.push(one.elapsed());
    }
    Ok(Measured { each, all: began.elapsed() })
}

fn report(workload: &str, store: &str, at_a_time: u32, measured: &Measured) {
    let mut each = measured.each.clone();
    each.sort_unstable();
    let percentile = |percent: usize| {
        each.get((each.len() * percent / 100).min(each.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    let rounded = |number: f64, digits: i32| {
        Number::double((number * 10f64.powi(digits)).round() / 10f64.powi(digits)).map_or(Value::Null, Value::Number)
    };
    let line = Value::map([
        ("workload", workload.into()),
        ("store", store.into()),
        ("at_a_time", at_a_time.into()),
        ("per_s", rounded(each.len() as f64 / measured.all.as_secs_f64(), 0)),
        ("p50_ms", rounded(percentile(50).as_secs_f64() * 1000.0, 3)),
        ("p99_ms", rounded(percentile(99).as_secs_f64() * 1000.0, 3)),
    ]);
    say!("{}", compact(&line));
}

/// A folder that goes with the process.
struct Folder(PathBuf);

impl Folder {
    fn new(beside: &Path) -> Result<Self, Refusal> {
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(|error| Refusal::internal("no_randomness", error.to_string()))?;
        let folder = beside.join(format!("bench-{}", hex(&suffix)));
        fs::create_dir_all(&folder).map_err(|error| disk(&error))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn disk(error: &std::io::Error) -> Refusal {
    Refusal::bad_input("folder_unusable", format!("the folder for the measurement cannot be used: {error}"))
}
