//! `mainspring node`: an engine without a server, alone on a data folder or as one of several nodes of a shared
//! store.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use clap::Args;
use mainspring_effects::{
    git::Repositories,
    http::{Http, HttpOptions},
    shell::{GRACE_DEFAULT, contain::Scripts, end_leftovers},
};
use mainspring_engine::{
    ClusterOptions, Engine, EngineResources, EngineScope, clock::now_ms, data_dir::DataDir, lease::LeaseTiming,
};
use mainspring_kernel::{effect_policy::EffectPolicy, json::compact, value::Value};
use mainspring_server::{
    App, Configured, Outgoing, Settings as Served,
    http::rate_limit::Rates,
    services::{
        audit_marks, encryption_keys::EncryptionKeys, events::webhook_client::WebhookClient,
        prompts::orchestrators::Orchestrators, propose_change::ProposeChange, scenario_runner::Scenarios,
        stored_secrets::StoredSecrets,
    },
};
use tokio::time::MissedTickBehavior;

use crate::{
    backend::read_store::engine_with,
    context::{Context, Global, block_on},
    error::{CliError, Exit},
    evaluator::evaluator,
    models,
    output::terminal::print_out,
    period_budgets, repositories,
    runner::{self, REACH_HELP, Rules, executors_with},
    runners,
    scripts::{ScriptFlags, close_folder, close_this_process, words},
    secrets::NodeSecrets,
    server_settings::{LEASE_SECONDS, object_settings},
    simulated::Simulated,
    store_location::StoreLocation,
    telemetry::Metrics,
    tool_policy,
    tool_servers::{self, ToolServers},
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

/// The interval in which workspaces of ended executions and old packs are removed, so that a full disk has room again soon.
pub(super) const SWEEP: Duration = Duration::from_secs(20);

/// The interval in which changes of the node's state are polled, to print them.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Runs until a signal stops it, or the store becomes unusable.
pub(crate) fn node(node: &Node, context: &Context) -> Result<Exit, CliError> {
    close_this_process()?;
    node.metrics.begin(context.global.json, &context.terminal)?;
    let scripts = node.scripts.rules()?.in_force(&context.global, true)?;
    if !context.global.json {
        let (mode, why) = words(&scripts);
        context.terminal.note(&format!("scripts: {mode} ({why})"));
    }
    close_folder(context.global.home()?.folder())?.iter().for_each(|said| context.terminal.note(said));
    // An execution that was enqueued with the key, and not by a server, has a workspace only if its request named
    // one.
    let needs_workspace = !matches!(scripts, Scripts::Uncontained);
    let settings = object_settings()?;
    let secrets = NodeSecrets::of(&settings)?;
    let sandboxes = runner::profiles(&settings)?;
    let ToolServers { executor, source, .. } = tool_servers::open(&settings, (&scripts, &sandboxes), Some(&secrets))?;
    let agents = Some(models::executor(&settings, source, Some(&secrets)));
    let runners = Some(runners::executor(&settings, (&scripts, &sandboxes), Some(&secrets)));
    models::mistakes(&settings)
        .chain(period_budgets::unpriced(&settings))
        .for_each(|mistake| context.terminal.note(&mistake));
    let changes = ProposeChange::new();
    let effect_policy = Arc::new(tool_policy::of_settings(&settings)?);
    let budgets = period_budgets::of_settings(&settings)?;
    let repositories =
        repositories::open(&settings, (&scripts, &sandboxes), &secrets, context.global.home()?.folder())?;
    let rules = Rules {
        scripts,
        needs_workspace,
        tools: executor,
        agents,
        runners,
        changes: Some(changes.clone()),
        secrets: Some(secrets.clone()),
        repositories: repositories.clone(),
        budgets,
        sandboxes,
    };
    block_on(async {
        context.signals.install()?;
        let location = StoreLocation::of(&context.global)?;
        let engine = Arc::new(match &location {
            StoreLocation::Folder(_) => engine_with(&context.global, EngineScope::All, rules).await?,
            location => join(node.lease_seconds, location, &context.global, rules).await?,
        });
        let keys = location.encryption_keys(*engine.key());
        secrets.bind(StoredSecrets::new(engine.store().clone(), keys.clone()));
        let app = App::new(engine.clone(), evaluator(), without_routes(effect_policy, keys, &context.global)?);
        changes.bind(&app);
        node.effects_at_a_time.into_iter().for_each(|effects| engine.limit_effects(effects as usize));
        let marks = Arc::new(location.marks(&context.global.home()?, *engine.key(), true));
        audit_marks::record_and_log(&engine, &marks).await;
        let marks_task = tokio::spawn(audit_marks::keep(engine.clone(), marks.clone()));
        let tidying = tokio::spawn(tidy(repositories));
        let told = until_stopped(&engine, context).await;
        engine.drain().await;
        marks_task.abort();
        tidying.abort();
        audit_marks::record_and_log(&engine, &marks).await;
        told
    })
}

/// Removes old packs of repositories periodically.
async fn tidy(repositories: Repositories) {
    let mut again = tokio::time::interval(SWEEP);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        let repositories = repositories.clone();
        let _ = tokio::task::spawn_blocking(move || repositories.tidy()).await;
    }
}

/// The settings of a server without routes, for the work that a node does for it.
fn without_routes(
    effect_policy: Arc<EffectPolicy>,
    encryption_keys: Arc<EncryptionKeys>,
    global: &Global,
) -> Result<Served, CliError> {
    Ok(Served {
        base: String::new(),
        workspaces: global.home()?.folder().join("workspaces"),
        tools_use_workspaces: false,
        release: env!("CARGO_PKG_VERSION"),
        rates: Rates::default(),
        connections_max: 1,
        oidc: None,
        marks: None,
        configured: Configured { effect_policy, ..Configured::default() },
        scenarios: Some(Scenarios(Arc::new(Simulated))),
        outgoing: Outgoing {
            webhooks: WebhookClient::new(Arc::new(Http::new(HttpOptions {
                allow: runner::http_allow()?,
                ..HttpOptions::default()
            }))),
            orchestrators: Orchestrators::default(),
        },
        encryption_keys,
        clock: now_ms,
    })
}

/// Joins a shared store as a node. Its own folder contains the records of processes that it runs on this machine.
pub(super) async fn join(
    lease_seconds: u64,
    location: &StoreLocation,
    global: &Global,
    rules: Rules,
) -> Result<Engine, CliError> {
    let store = location.store_for_engine()?;
    let key = location.key(&*store)?;
    let seal_note = Some(location.seal_note(&global.home()?, true));
    let home = DataDir::new(global.home()?.folder().join("node"));
    let mut held = home.hold(&key)?;
    // Attempts of other machines are recorded there and not here, so a missing record does not prove that an
    // attempt never started.
    held.same_boot = false;
    // Processes that an earlier incarnation left running here: the nodes that took over count them as interrupted.
    end_leftovers(&home.processes(), GRACE_DEFAULT).await;
    let spans = global.telemetry.spans()?;
    let budgets = Some(period_budgets::source(rules.budgets.clone()));
    let workers = (executors_with(runner::http_allow()?, spans.is_some(), rules, &home, &held), evaluator());
    let sharing = Some(ClusterOptions { terms: LeaseTiming { lease_ms: lease_seconds * 1_000 }, place: this_place() });
    let limits = Some(std::sync::Arc::new(mainspring_server::StoredLimits) as std::sync::Arc<_>);
    let resources = EngineResources { data_dir: Some((home, held)), sharing, spans, limits, budgets, seal_note };
    Ok(Engine::run(store, key, workers, resources, EngineScope::All)?)
}

/// Host name and pid of this node, for display.
fn this_place() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

async fn until_stopped(engine: &Engine, context: &Context) -> Result<Exit, CliError> {
    let mut again = tokio::time::interval(POLL_INTERVAL);
    let mut told: Option<(BTreeSet<u32>, Option<String>)> = None;
    loop {
        tokio::select! {
            () = context.signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(mainspring_engine::EngineError::Stopped(why).into());
        }
        let now = (engine.owned_partitions(), engine.problem().map(|error| error.why));
        if told.as_ref() != Some(&now) {
            tell(&now, context);
            told = Some(now);
        }
    }
}

fn tell((held, error): &(BTreeSet<u32>, Option<String>), context: &Context) {
    if context.global.json {
        let partitions: Vec<Value> = held.iter().map(|partition| Value::from(u64::from(*partition))).collect();
        let error = error.as_deref().map_or(Value::Null, Value::from);
        print_out!("{}", compact(&Value::map([("partitions", Value::List(partitions)), ("error", error)])));
        return;
    }
    let partitions = if held.len() == 1 { "1 partition".to_string() } else { format!("{} partitions", held.len()) };
    context.terminal.note(&format!("working on {partitions}"));
    if let Some(error) = error {
        context.terminal.note(&format!("error of the shared store: {error}"));
    }
}
