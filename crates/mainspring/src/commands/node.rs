//! `mainspring node`: an engine without a server, alone on a data folder or as one of several nodes of a shared
//! store.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use clap::Args;
use mainspring_effects::shell::{GRACE_DEFAULT, contain::Scripts, end_leftovers};
use mainspring_engine::{Engine, Ground as EngineGround, Reach, Sharing, home::Home, lease::Terms};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_server::marks;

use crate::{
    cli::Global,
    evaluating::evaluator,
    exit::{Exit, Refusal},
    ground::Ground,
    naming::{block_on, engine_with},
    runner::{self, REACH_HELP, Rules, Signals, executors_with},
    scripts::{ScriptFlags, close_folder, close_this_process, words},
    seeing::Metrics,
    settings::LEASE_SECONDS,
    terminal::{Terminal, say},
};

/// Run executions until stopped
#[derive(Debug, Args)]
#[command(after_help = REACH_HELP)]
pub(crate) struct Node {
    /// With --store: seconds without a heartbeat after which other nodes take over
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(LEASE_SECONDS))]
    lease_seconds: u64,
    /// Concurrent scripts and requests, divided fairly between organizations; others wait [default: a quarter of the
    /// open file limit, less 256]
    #[arg(long, value_name = "N", env = "MAINSPRING_EFFECTS_AT_A_TIME", value_parser = clap::value_parser!(u32).range(1..))]
    effects_at_a_time: Option<u32>,
    #[command(flatten)]
    scripts: ScriptFlags,
    #[command(flatten)]
    metrics: Metrics,
}

/// The interval in which changes of the node's state are polled, to print them.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// Runs until a signal stops it, or the store becomes unusable.
pub(crate) fn node(node: &Node, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    close_this_process()?;
    node.metrics.begin(global, terminal)?;
    let scripts = node.scripts.rules()?.in_force(global, true)?;
    if !global.json {
        let (mode, why) = words(&scripts);
        terminal.remark(&format!("scripts: {mode} ({why})"));
    }
    close_folder(global.home()?.folder())?.iter().for_each(|said| terminal.remark(said));
    // An execution that was enqueued with the key, and not by a server, has a workspace only if its request named
    // one.
    let needs_workspace = !matches!(scripts, Scripts::Uncontained);
    let rules = Rules { scripts, needs_workspace };
    block_on(async {
        let mut signals = Signals::new()?;
        let ground = Ground::of(global)?;
        let engine = Arc::new(match &ground {
            Ground::Folder(_) => engine_with(global, Reach::All, rules).await?,
            ground => join(node.lease_seconds, ground, global, rules).await?,
        });
        node.effects_at_a_time.into_iter().for_each(|effects| engine.limit_effects(effects as usize));
        let marks = Arc::new(ground.marks(&global.home()?, *engine.key(), true));
        marks::note_and_tell(&engine, &marks).await;
        let noting = tokio::spawn(marks::keep(engine.clone(), marks.clone()));
        let told = until_stopped(&engine, global, terminal, &mut signals).await;
        engine.drain().await;
        noting.abort();
        marks::note_and_tell(&engine, &marks).await;
        told
    })
}

/// Joins a shared store as a node. Its own folder contains the records of processes that it runs on this machine.
pub(super) async fn join(
    lease_seconds: u64,
    ground: &Ground,
    global: &Global,
    rules: Rules,
) -> Result<Engine, Refusal> {
    let store = ground.store_to_work_on()?;
    let key = ground.key(&*store)?;
    let home = Home::new(global.home()?.folder().join("node"));
    let mut held = home.hold(&key)?;
    // Attempts of other machines are recorded there and not here, so a missing record does not prove that an
    // attempt never started.
    held.same_boot = false;
    // Processes that an earlier incarnation left running here: the nodes that took over count them as interrupted.
    end_leftovers(&home.processes(), GRACE_DEFAULT).await;
    let spans = global.seeing.spans()?;
    let workers = (executors_with(runner::http_allow()?, spans.is_some(), rules, &home, &held), evaluator());
    let sharing = Some(Sharing { terms: Terms { lease_ms: lease_seconds * 1_000 }, place: this_place() });
    let limits = Some(std::sync::Arc::new(mainspring_server::InForce) as std::sync::Arc<_>);
    let ground = EngineGround { home: Some((home, held)), sharing, spans, limits };
    Ok(Engine::run(store, key, workers, ground, Reach::All)?)
}

/// Host name and pid of this node, for display.
fn this_place() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

async fn until_stopped(
    engine: &Engine,
    global: &Global,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<Exit, Refusal> {
    let mut again = tokio::time::interval(LOOK);
    let mut told: Option<(BTreeSet<u32>, Option<String>)> = None;
    loop {
        tokio::select! {
            () = signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(mainspring_engine::EngineError::Stopped(why).into());
        }
        let now = (engine.held(), engine.trouble().map(|trouble| trouble.why));
        if told.as_ref() != Some(&now) {
            tell(&now, global, terminal);
            told = Some(now);
        }
    }
}

fn tell((held, trouble): &(BTreeSet<u32>, Option<String>), global: &Global, terminal: &Terminal) {
    if global.json {
        let held: Vec<Value> = held.iter().map(|partition| Value::from(u64::from(*partition))).collect();
        let trouble = trouble.as_deref().map_or(Value::Null, Value::from);
        say!("{}", compact(&Value::map([("held", Value::List(held)), ("trouble", trouble)])));
        return;
    }
    let partitions = if held.len() == 1 { "1 partition".to_string() } else { format!("{} partitions", held.len()) };
    terminal.remark(&format!("working on {partitions}"));
    if let Some(trouble) = trouble {
        terminal.remark(&format!("error of the shared store: {trouble}"));
    }
}
