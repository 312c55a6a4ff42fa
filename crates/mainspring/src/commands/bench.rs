//! `mainspring bench`: throughput and latency of this machine, beside the floor under them.
//!
//! `docs/benchmarks.md` says what each workload and each field means.

mod disk;
mod drive;
mod effects;
mod ground;
mod line;
mod recover;
mod statements;
mod tap;
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
use mainspring_store::{Answer, Batch, Store};

use self::{
    drive::{Bounds, Measured},
    ground::{Ground, StoreUrl},
    line::Line,
    statements::Recording,
    tap::{Look, Tapped},
    workload::Workload,
};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    seeing::Metrics,
    terminal::Terminal,
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
    /// Executions for each line, if that is reached before its seconds are over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    executions: Option<u64>,
    /// After each line another one, of executions that begin evenly at so much of the throughput just measured
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    load: Option<u32>,
    /// With --store: so many engines in this process, which share the store and the executions; not for `recover`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: u32,
    /// Leave the floor out
    #[arg(long)]
    no_floor: bool,
    /// What the process does that `recover` kills
    #[arg(long, hide = true, value_name = "N")]
    fill: Option<u32>,
    #[command(flatten)]
    metrics: Metrics,
}

/// For how long batches are recorded, at the most: what counts is their shape.
const RECORDED: Duration = Duration::from_secs(2);

/// For how long the disk is measured.
const DISK: Duration = Duration::from_secs(1);

/// Threads of the runtime, as of the other commands.
const THREADS: usize = 2;

/// Measures, a JSON line for each figure, in a folder of its own that is removed at the end.
pub(crate) fn bench(bench: &Bench, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    bench.metrics.begin(global, terminal)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::internal("no_runtime", error.to_string()))?;
    let home = global.home()?;
    let url = global.store.clone().map_or(StoreUrl::Sqlite, StoreUrl::Postgres);
    if bench.nodes > 1 && url == StoreUrl::Sqlite {
        return Err(Refusal::bad_input("no_store", "several nodes need a store that they share: give --store URL"));
    }
    if let Some(in_flight) = bench.fill {
        return runtime.block_on(recover::fill(&url, home.folder(), in_flight)).map(|()| Exit::Fine);
    }
    let ground = Ground::new(home.folder(), url, global.seeing.spans()?)?;
    // A store that cannot be had is said before anything is measured.
    drop(ground.store("first")?);
    if !bench.no_floor {
        let disk = disk::fdatasync(ground.folder(), DISK).map_err(|error| ground::unusable(&error))?;
        let line = Line::new("floor", "fdatasync").with("floor", "fdatasync");
        line.rate("per_s", disk.each.len(), disk.all).times(&disk).print();
    }
    for &workload in if bench.workload.is_empty() { Workload::value_variants() } else { &bench.workload } {
        for &at_a_time in if bench.at_a_time.is_empty() { &[1, 256] } else { &bench.at_a_time[..] } {
            runtime.block_on(bench.lines(&ground, workload, at_a_time))?;
        }
    }
    Ok(Exit::Fine)
}

/// What came to a store.
#[derive(Debug, Default)]
struct Traffic {
    frames: AtomicUsize,
    commits: AtomicUsize,
}

impl Traffic {
    fn look(self: &Arc<Self>) -> Look {
        let counted = self.clone();
        let look = move |batch: &Batch, _: &[Answer]| {
            let frames = batch.parts.iter().map(|part| part.frames.len()).sum();
            counted.frames.fetch_add(frames, Ordering::Relaxed);
            counted.commits.fetch_add(1, Ordering::Relaxed);
        };
        Box::new(look)
    }
}

impl Bench {
    fn bounds(&self) -> Bounds {
        let executions_max = self.executions.unwrap_or(u64::MAX);
        Bounds { duration: Duration::from_secs(self.seconds), executions_max }
    }

    /// The lines of one workload at one number of executions at a time.
    async fn lines(&self, ground: &Ground, workload: Workload, at_a_time: u32) -> Result<(), Refusal> {
        let place = format!("{}-{at_a_time}", workload.name());
        match workload {
            Workload::Recover => {
                let recovered = recover::recover(ground, &place, at_a_time).await?;
                let line = line("mainspring", ground, workload, at_a_time).with("in_flight", at_a_time);
                let line = line.number("reopened_s", recovered.reopened.as_secs_f64(), 3);
                let line = line.number("recovered_s", recovered.recovered.as_secs_f64(), 3);
                line.rate("per_s", at_a_time as usize, recovered.recovered).print();
            }
            Workload::Timers => {
                let (measured, _) = self.measure(ground, &place, workload, at_a_time).await?;
                let timers = measured.each.len();
                let line = line("mainspring", ground, workload, at_a_time).with("timers", timers as u64);
                line.rate("per_s", timers, measured.all).times(&measured).print();
            }
            _ => self.throughput(ground, &place, workload, at_a_time).await?,
        }
        Ok(())
    }

    /// A workload, what it is of its floor, and the floor.
    async fn throughput(
        &self,
        ground: &Ground,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<(), Refusal> {
        let (measured, traffic) = self.measure(ground, place, workload, at_a_time).await?;
        let executions = measured.each.len();
        let (frames, commits) = (traffic.frames.load(Ordering::Relaxed), traffic.commits.load(Ordering::Relaxed));
        let ours = line("mainspring", ground, workload, at_a_time).with("nodes", self.nodes);
        let ours = ours.with("executions", executions as u64);
        let ours = ours.rate("per_s", executions, measured.all).rate("frames_per_s", frames, measured.all);
        let mut ours = ours.rate("commits_per_s", commits, measured.all).times(&measured);
        let mut floor = None;
        if !self.no_floor {
            let recording = self.record(ground, place, workload, at_a_time).await?;
            let (executions, frames) = (recording.executions(), recording.frames());
            let replayed = recording.replay(&*ground.store(&format!("{place}-statements"))?)?;
            let of_floor = rate(traffic.frames.load(Ordering::Relaxed), &measured) / rate(frames, &replayed);
            ours = ours.number("of_floor", of_floor, 3);
            let line = line("floor", ground, workload, at_a_time).with("floor", "statements");
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
                self.loaded(ground, &format!("{place}-load"), workload, percent, per_s).await
            }
            None => Ok(()),
        }
    }

    /// A workload as fast as it goes.
    async fn measure(
        &self,
        ground: &Ground,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<(Measured, Arc<Traffic>), Refusal> {
        let traffic = Arc::new(Traffic::default());
        let tapped = |_| Ok(Arc::new(Tapped::new(ground.store(place)?, traffic.look())) as Arc<dyn Store>);
        let engines = ground.engines((0..self.nodes).map(tapped).collect::<Result<_, Refusal>>()?).await?;
        let measured = drive::closed(&engines, workload, at_a_time, self.bounds()).await?;
        for engine in engines {
            engine.drain().await;
        }
        Ok((measured, traffic))
    }

    /// The same again for a short time, only to see what is committed.
    async fn record(
        &self,
        ground: &Ground,
        place: &str,
        workload: Workload,
        at_a_time: u32,
    ) -> Result<Recording, Refusal> {
        let (recording, look) = Recording::begin();
        let store = ground.store(&format!("{place}-recorded"))?;
        let engine = ground.engine(Arc::new(Tapped::new(store, look)), effects::nothing()).await?;
        let bounds = Bounds { duration: self.bounds().duration.min(RECORDED), ..self.bounds() };
        drive::closed(std::slice::from_ref(&engine), workload, at_a_time, bounds).await?;
        engine.drain().await;
        Ok(std::mem::take(&mut *recording.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A workload at a pace that is not its fastest.
    async fn loaded(
        &self,
        ground: &Ground,
        place: &str,
        workload: Workload,
        percent: u32,
        per_s: f64,
    ) -> Result<(), Refusal> {
        let engine = ground.engine(ground.store(place)?, effects::nothing()).await?;
        let measured = drive::open(&engine, workload, per_s, self.bounds()).await?;
        engine.drain().await;
        let executions = measured.each.len();
        let line = Line::new("mainspring", workload.name()).with("store", ground.url().name());
        let line = line.with("load_percent", percent).with("executions", executions as u64);
        line.rate("per_s", executions, measured.all).times(&measured).print();
        Ok(())
    }
}

fn line(system: &str, ground: &Ground, workload: Workload, at_a_time: u32) -> Line {
    Line::new(system, workload.name()).with("store", ground.url().name()).with("at_a_time", at_a_time)
}

fn rate(count: usize, measured: &Measured) -> f64 {
    count as f64 / measured.all.as_secs_f64()
}
