//! `mainspring bench`: measures throughput and latency on this machine, and the floor below which they cannot fall.
//!
//! `docs/reference/benchmarks.md` describes the workloads and the fields.

mod disk;
mod effects;
mod http;
mod load_generator;
mod recording_store;
mod recover;
mod replay;
mod report;
mod server_process;
mod test_store;
#[cfg(test)]
mod tests;
mod workload;

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use clap::{Args, ValueEnum};
use mainspring_store::{Batch, PartOutcome, Store};

use self::{
    load_generator::{Bounds, Measured},
    recording_store::{CommitCallback, ObservedStore},
    replay::Recording,
    report::ReportLine,
    test_store::{StoreUrl, TestStore},
    workload::Workload,
};
use crate::{
    context::Context,
    error::{CliError, Exit},
    telemetry::Metrics,
};

/// Measure throughput and latency
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// A workload; repeatable [default: all]
    #[arg(long, value_enum)]
    workload: Vec<Workload>,
    /// Concurrent executions; repeatable [default: 1 and 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    at_a_time: Vec<u32>,
    /// Seconds per line
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Maximum executions per line
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    executions: Option<u64>,
    /// Add a line with executions at a fixed rate: this percentage of the measured throughput
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    load: Option<u32>,
    /// With --store: engines in this process that share the store; not for `recover`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: u32,
    /// The interface that starts executions
    #[arg(long, value_enum, default_value_t = Via::Engine)]
    via: Via,
    /// Do not measure the floor
    #[arg(long)]
    no_floor: bool,
    /// The mode of the process that `recover` kills
    #[arg(long, hide = true, value_name = "N")]
    fill: Option<u32>,
    /// The mode of the server that `--via http` measures
    #[arg(long, hide = true)]
    serve: bool,
    #[command(flatten)]
    metrics: Metrics,
}

/// The interface that starts executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    /// A call in this process
    Engine,
    /// Requests to a server, whose processor time is compared with that of the engine alone
    Http,
}

/// Duration of a recording. Only the shape of the batches matters, so a short one is enough.
const RECORDED: Duration = Duration::from_secs(2);

/// Duration of the disk measurement.
const DISK: Duration = Duration::from_secs(1);

/// Threads of the runtime, as in the other commands.
const THREADS: usize = 2;

/// Runs the measurements in a temporary folder, and prints one JSON line for each.
pub(crate) fn bench(bench: &Bench, context: &Context) -> Result<Exit, CliError> {
    bench.metrics.begin(context.global.json, &context.terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| CliError::internal("no_runtime", error.to_string()))?;
    let home = context.global.home()?;
    let url = context.global.store.clone().map_or(StoreUrl::Sqlite, StoreUrl::Postgres);
    if bench.nodes > 1 && url == StoreUrl::Sqlite {
        return Err(CliError::bad_input("no_store", "several nodes need a store that they share: give --store URL"));
    }
    if let Some(in_flight) = bench.fill {
        return runtime.block_on(recover::fill(&url, home.folder(), in_flight)).map(|()| Exit::Fine);
    }
    if bench.serve {
        return runtime.block_on(server_process::serve(&url, home.folder())).map(|()| Exit::Fine);
    }
    bench.check_via()?;
    let test_store = TestStore::new(home.folder(), url, context.global.telemetry.spans()?)?;
    // An unusable store is an error before any measurement.
    drop(test_store.store("first")?);
    if !bench.no_floor {
        let disk = disk::fdatasync(test_store.folder(), DISK).map_err(|error| test_store::unusable(&error))?;
        let line = ReportLine::new("floor", "fdatasync").with("floor", "fdatasync");
        line.rate("per_s", disk.each.len(), disk.all).times(&disk).print();
    }
    for workload in bench.workloads() {
        for &at_a_time in if bench.at_a_time.is_empty() { &[1, 256] } else { &bench.at_a_time[..] } {
            runtime.block_on(bench.lines(&test_store, workload, at_a_time))?;
        }
    }
    Ok(Exit::Fine)
}

/// Counts the frames and commits that reach a store.
#[derive(Debug, Default)]
struct Traffic {
    frames: AtomicUsize,
    commits: AtomicUsize,
}

impl Traffic {
    fn callback(self: &Arc<Self>) -> CommitCallback {
        let counted = self.clone();
        let callback = move |batch: &Batch, _: &[PartOutcome]| {
            let frames = batch.parts.iter().map(|part| part.frames.len()).sum();
            counted.frames.fetch_add(frames, Ordering::Relaxed);
            counted.commits.fetch_add(1, Ordering::Relaxed);
        };
        Box::new(callback)
    }
}

impl Bench {
    /// The selected workloads, or all that are possible.
    fn workloads(&self) -> Vec<Workload> {
        let is_possible = |workload: &Workload| self.via == Via::Engine || workload.can_be_served();
        match self.workload.is_empty() {
            true => Workload::value_variants().iter().copied().filter(is_possible).collect(),
            false => self.workload.clone(),
        }
    }

    fn bounds(&self) -> Bounds {
        let executions_max = self.executions.unwrap_or(u64::MAX);
        Bounds { duration: Duration::from_secs(self.seconds), executions_max }
    }

    /// Measures one workload at one concurrency.
    async fn lines(&self, test_store: &TestStore, workload: Workload, at_a_time: u32) -> Result<(), CliError> {
        let place = format!("{}-{at_a_time}", workload.name());
        match workload {
            Workload::Recover => {
                let recovered = recover::recover(test_store, &place, at_a_time).await?;
                let line = line("mainspring", test_store, workload, at_a_time).with("in_flight", at_a_time);
                let line = line.number("reopened_s", recovered.reopened.as_secs_f64(), 3);
                let line = line.number("recovered_s", recovered.recovered.as_secs_f64(), 3);
                line.rate("per_s", at_a_time as usize, recovered.recovered).print();
            }
            Workload::Timers => {
                let (measured, _) = self.measure(test_store, &place, workload, at_a_time).await?;
                let timers = measured.each.len();
                let line = line("mainspring", test_store, workload, at_a_time).with("timers", timers as u64);
                line.rate("per_s", timers, measured.all).times(&measured).print();
            }
            _ if self.via == Via::Http => self.through_a_server(test_store, &place, workload, at_a_time).await?,
            _ => self.throughput(test_store, &place, workload, at_a_time).await?,
        }
        Ok(())
    }

    /// Rejects combinations that a server cannot run, before any measurement.
    fn check_via(&self) -> Result<(), CliError> {
        let of_engines = self.workload.iter().any(|workload| !workload.can_be_served());
        if self.via == Via::Http && (of_engines || self.nodes > 1 || self.load.is_some()) {
            let message = "--via http measures starts at one server as fast as they go: leave out --nodes, --load and the \
                workloads timers and recover";
            return Err(CliError::bad_input("bad_via", message));
        }
        Ok(())
    }

    /// Measures a workload whose executions are started by HTTP requests, and compares its processor time with that
    /// of an engine alone.
    async fn through_a_server(
        &self,
        test_store: &TestStore,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<(), CliError> {
        let before = http::cpu_time(std::process::id())?;
        let (own, _) = self.measure(test_store, place, workload, at_a_time).await?;
        let own_cpu = http::cpu_time(std::process::id())?.saturating_sub(before);
        let served = http::measure(test_store, &format!("{place}-http"), workload, at_a_time, self.bounds()).await?;
        let per_execution = |cpu: Duration, measured: &Measured| cpu.as_secs_f64() * 1e6 / measured.each.len() as f64;
        let (engine_us, server_us) = (per_execution(own_cpu, &own), per_execution(served.cpu, &served.starts));
        let executions = served.starts.each.len();
        let line = line("mainspring", test_store, workload, at_a_time).with("via", "http");
        let line = line.with("executions", executions as u64).rate("per_s", executions, served.starts.all);
        let line = line.number("server_cpu_us", server_us, 1).number("engine_cpu_us", engine_us, 1);
        line.number("of_engine", server_us / engine_us, 2).times(&served.starts).print();
        Ok(())
    }

    /// Measures a workload and its floor, and prints the ratio.
    async fn throughput(
        &self,
        test_store: &TestStore,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<(), CliError> {
        let (measured, traffic) = self.measure(test_store, place, workload, at_a_time).await?;
        let executions = measured.each.len();
        let (frames, commits) = (traffic.frames.load(Ordering::Relaxed), traffic.commits.load(Ordering::Relaxed));
        let ours = line("mainspring", test_store, workload, at_a_time).with("nodes", self.nodes);
        let ours = ours.with("executions", executions as u64);
        let ours = ours.rate("per_s", executions, measured.all).rate("frames_per_s", frames, measured.all);
        let mut ours = ours.rate("commits_per_s", commits, measured.all).times(&measured);
        let mut floor = None;
        if !self.no_floor {
            let recording = self.record(test_store, place, workload, at_a_time).await?;
            let (executions, frames) = (recording.executions(), recording.frames());
            let replayed = recording.replay(&*test_store.store(&format!("{place}-statements"))?)?;
            let of_floor = rate(traffic.frames.load(Ordering::Relaxed), &measured) / rate(frames, &replayed);
            ours = ours.number("of_floor", of_floor, 3);
            let line = line("floor", test_store, workload, at_a_time).with("floor", "statements");
            let line = line.with("executions", executions as u64).rate("per_s", executions, replayed.all);
            let line = line.rate("frames_per_s", frames, replayed.all);
            floor = Some(line.rate("commits_per_s", replayed.each.len(), replayed.all).times(&replayed));
        }
        ours.print();
        if let Some(floor) = floor {
            floor.print();
        }
        match self.load {
            Some(percent) => {
                let per_s = rate(executions, &measured) * f64::from(percent) / 100.0;
                self.loaded(test_store, &format!("{place}-load"), workload, percent, per_s).await
            }
            None => Ok(()),
        }
    }

    /// Measures a workload at full speed.
    async fn measure(
        &self,
        test_store: &TestStore,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<(Measured, Arc<Traffic>), CliError> {
        let traffic = Arc::new(Traffic::default());
        let tapped =
            |_| Ok(Arc::new(ObservedStore::new(test_store.store(place)?, traffic.callback())) as Arc<dyn Store>);
        let engines = test_store.engines((0..self.nodes).map(tapped).collect::<Result<_, CliError>>()?).await?;
        let measured = load_generator::closed(&engines, workload, at_a_time, self.bounds()).await?;
        for engine in engines {
            engine.drain().await;
        }
        Ok((measured, traffic))
    }

    /// Runs the workload again for a short time, to record its batches.
    async fn record(
        &self,
        test_store: &TestStore,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<Recording, CliError> {
        let (recording, callback) = Recording::begin();
        let store = test_store.store(&format!("{place}-recorded"))?;
        let engine = test_store.engine(Arc::new(ObservedStore::new(store, callback)), effects::nothing()).await?;
        let bounds = Bounds { duration: self.bounds().duration.min(RECORDED), ..self.bounds() };
        load_generator::closed(std::slice::from_ref(&engine), workload, at_a_time, bounds).await?;
        engine.drain().await;
        Ok(std::mem::take(&mut *recording.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Measures a workload at a fixed rate below its maximum.
    async fn loaded(
        &self,
        test_store: &TestStore,
        place: &str,
        workload: Workload,
        percent: u32,
        per_s: f64,
    ) -> Result<(), CliError> {
        let engine = test_store.engine(test_store.store(place)?, effects::nothing()).await?;
        let measured = load_generator::open(&engine, workload, per_s, self.bounds()).await?;
        engine.drain().await;
        let executions = measured.each.len();
        let line = ReportLine::new("mainspring", workload.name()).with("store", test_store.url().name());
        let line = line.with("load_percent", percent).with("executions", executions as u64);
        line.rate("per_s", executions, measured.all).times(&measured).print();
        Ok(())
    }
}

fn line(system: &str, test_store: &TestStore, workload: Workload, at_a_time: u32) -> ReportLine {
    ReportLine::new(system, workload.name()).with("store", test_store.url().name()).with("at_a_time", at_a_time)
}

fn rate(count: usize, measured: &Measured) -> f64 {
    count as f64 / measured.all.as_secs_f64()
}
