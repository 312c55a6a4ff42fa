//! Runs an execution on an engine of this process until it has ended or only approvals are left, and reports its
//! records.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{
    Executor, Executors, LiveProgress,
    git::{InRepository, Repositories},
    http::{ALLOW_VARIABLE, Allowlist, Http, HttpOptions},
    sandbox::{Log, Profiles, SandboxOptions, SandboxRunner, Timing},
    shell::{GRACE_DEFAULT, Shell, ShellOptions, contain::Scripts},
};
use mainspring_engine::{
    Engine, EngineError, EngineOptions, EngineScope,
    data_dir::{DataDir, DirLock},
    execution_tree::ExecutionTree,
    period_budgets::PeriodicBudget,
    shard::CommittedFrame,
    trace_spans::Spans,
};
use mainspring_kernel::{
    frame::Frame,
    history::History,
    json::compact,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::{ExecutionStatus, State},
    value::Value,
};
use mainspring_server::services::{encryption_keys::EncryptionKeys, stored_secrets::StoredSecrets};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    error::CliError,
    evaluator::evaluator,
    paths::{HIDDEN_VARIABLES, HIDDEN_WITH_TRACES},
    period_budgets,
    secrets::NodeSecrets,
    server_settings::{ObjectSettings, object_settings},
    signals::Signals,
    store_location::StoreLocation,
};

/// Help text on [`ALLOW_VARIABLE`], for commands that run `http` steps of several organizations.
pub(crate) const REACH_HELP: &str = "\
Environment:
  MAINSPRING_HTTP_ALLOW  Addresses beyond the public internet that `http` steps may reach, by organization:
                         acme=10.20.0.0/16,acme=build.internal:8443. An entry without an
                         organization is for `default` only (`mainspring explain http`)";

/// Parses [`ALLOW_VARIABLE`] from the environment of this process.
pub fn http_allow() -> Result<Allowlist, CliError> {
    let text = std::env::var(ALLOW_VARIABLE).unwrap_or_default();
    text.parse().map_err(|error| CliError::bad_input("bad_http_allow", format!("{ALLOW_VARIABLE}: {error}")))
}

/// The executors of a node on a user's machine.
pub fn executors(allow: Allowlist, home: &DataDir, held: &DirLock) -> Executors {
    executors_with(allow, false, Rules::default(), home, held)
}

/// Rules for the effects of a node.
#[derive(Clone, Default)]
pub struct Rules {
    /// The mode: in containers, as this user, or off.
    pub scripts: Scripts,
    /// True if scripts run only in executions with a workspace. A server creates a workspace only if the caller may
    /// run scripts.
    pub needs_workspace: bool,
    /// The executor of `tool` steps, if tool servers are configured.
    pub tools: Option<Arc<dyn Executor>>,
    /// The executor of `agent` steps, where models are available.
    pub agents: Option<Arc<dyn Executor>>,
    /// The executor of `agent` steps with `runner`, where commands may be started.
    pub runners: Option<Arc<dyn Executor>>,
    /// The executor of proposals of agents, at nodes of a server.
    pub changes: Option<Arc<dyn Executor>>,
    /// The source of the secrets that steps use.
    pub secrets: Option<Arc<NodeSecrets>>,
    /// The repositories of executions, at nodes of a server. The default refuses scripts of executions with a repository.
    pub repositories: Repositories,
    /// The budgets of the settings file for a day or a month.
    pub budgets: Vec<PeriodicBudget>,
    /// The sandboxes of organizations. Scripts of the others run as `scripts` says.
    pub sandboxes: Profiles,
}

/// The executors with rules for scripts. `traces` makes effects send their trace context to the services that they
/// call.
pub fn executors_with(allow: Allowlist, traces: bool, rules: Rules, home: &DataDir, held: &DirLock) -> Executors {
    let mut hidden_env = HIDDEN_VARIABLES.map(String::from).to_vec();
    if traces {
        hidden_env.extend(HIDDEN_WITH_TRACES.map(String::from));
    }
    let grace: Duration = GRACE_DEFAULT;
    hidden_env.extend(rules.secrets.iter().flat_map(|secrets| secrets.variables().map(String::from)));
    let Rules {
        scripts,
        needs_workspace,
        tools,
        agents,
        runners,
        sandboxes,
        changes,
        secrets,
        repositories,
        budgets: _,
    } = rules;
    let DirLock { same_boot, untrusted_before_ms, .. } = *held;
    let records = home.processes();
    let options =
        ShellOptions { records, same_boot, untrusted_before_ms, hidden_env, grace, traces, scripts, needs_workspace };
    let http = Http::new(HttpOptions { allow, traces, ..HttpOptions::default() });
    let (shell, progress) = (Arc::new(Shell::new(options)), Arc::new(LiveProgress::default()));
    let options = sandbox_options(traces, progress.clone());
    let sandboxes = SandboxRunner::new(sandboxes, shell.clone(), options);
    let in_repository = |executor| Arc::new(InRepository::new(executor, repositories.clone())) as Arc<dyn Executor>;
    let mut executors: Vec<Arc<dyn Executor>> =
        vec![in_repository(Arc::new(sandboxes)), in_repository(shell), Arc::new(http)];
    executors.extend(tools.map(in_repository));
    executors.extend(runners.map(in_repository));
    executors.extend(agents);
    executors.extend(changes);
    Executors::new(executors).with_secrets(secrets.map(|secrets| secrets as Arc<_>)).with_progress(progress)
}

/// The settings of sandboxes that no file has.
pub(crate) fn sandbox_options(traces: bool, progress: Arc<LiveProgress>) -> SandboxOptions {
    SandboxOptions { traces, timing: Timing::default(), log: log(), progress }
}

/// Writes messages for the operator to standard error.
fn log() -> Log {
    use std::io::Write;
    Arc::new(|message| drop(writeln!(std::io::stderr().lock(), "{message}")))
}

/// Reads `sandboxes` of a settings file. A mistake stops the start of a node, since scripts would run elsewhere than meant.
pub(crate) fn profiles(settings: &ObjectSettings) -> Result<Profiles, CliError> {
    Profiles::read(&settings.sandboxes).map_err(|errors| {
        let message = format!("the settings in {}: {}", settings.path.display(), errors.join("\n"));
        CliError::bad_input("bad_settings", message)
    })
}

/// Opens an engine on a data folder with all executors of this executable.
pub async fn open(home: DataDir, key: [u8; 32], reach: EngineScope, spans: Option<Spans>) -> Result<Engine, CliError> {
    let settings = object_settings()?;
    let secrets = NodeSecrets::of(&settings)?;
    let budgets = period_budgets::of_settings(&settings)?;
    let rules = Rules { secrets: Some(secrets.clone()), budgets, ..Rules::default() };
    let engine = open_with(home, key, reach, spans, rules).await?;
    // Executions of a command line have no organization, and so no stored secrets.
    let keys = Arc::new(EncryptionKeys::of_installation(*engine.key()));
    secrets.bind(StoredSecrets::new(engine.store().clone(), keys));
    Ok(engine)
}

/// Like [`open`], with rules for scripts.
pub async fn open_with(
    home: DataDir,
    key: [u8; 32],
    reach: EngineScope,
    spans: Option<Spans>,
    rules: Rules,
) -> Result<Engine, CliError> {
    let (allow, traces) = (http_allow()?, spans.is_some());
    let is_for_all = reach == EngineScope::All;
    let budgets = Some(period_budgets::source(rules.budgets.clone()));
    let limits = is_for_all.then(|| Arc::new(mainspring_server::StoredLimits) as Arc<_>);
    let seal_note = Some(StoreLocation::Folder(home.clone()).seal_note(&home, is_for_all));
    let evaluator = evaluator();
    let options = EngineOptions { data_dir: home, key, scope: reach, evaluator, spans, limits, budgets, seal_note };
    Ok(Engine::open(options, |home, held| executors_with(allow, traces, rules, home, held)).await?)
}

/// The stored state of an execution.
pub struct Snapshot {
    /// The folded state.
    pub state: State,
    /// The attempt history.
    pub history: History,
    /// The sequence of its next frame.
    pub next_sequence: u64,
}

/// Reads an execution from the store, and passes every frame to `each` on the way.
pub fn snapshot(
    engine: &Engine,
    key: ExecutionKey,
    mut each: impl FnMut(&Frame, &State),
) -> Result<Snapshot, EngineError> {
    let mut history = History::default();
    let read = engine.loader().frames(key, |state, frame| {
        history.add(&state.plan, frame);
        each(frame, state);
    })?;
    let journal = read.ok_or(EngineError::NoSuchExecution)?.journal;
    Ok(Snapshot { state: journal.state, history, next_sequence: journal.head.sequence + 1 })
}

/// The reason why [`follow`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The execution has ended, or only approvals are left.
    Settled,
    /// This process was asked to stop.
    Interrupted,
}

/// Passes the records of each committed frame to `show`, beginning with the frame after `from`, until the execution
/// has settled or a signal asks this process to stop. `from` is advanced to the last frame. `signals` must exist
/// before the execution starts, so that no signal is missed.
pub async fn follow(
    engine: &Engine,
    watch: &mut UnboundedReceiver<Arc<CommittedFrame>>,
    from: &mut Snapshot,
    signals: &Signals,
    mut show: impl FnMut(&Plan, &[Record], u64),
) -> Result<Followed, EngineError> {
    if is_tree_settled(engine, &from.state)? {
        return Ok(Followed::Settled);
    }
    loop {
        let moment = tokio::select! {
            biased;
            () = signals.any() => return Ok(Followed::Interrupted),
            moment = watch.recv() => moment,
        };
        let Some(moment) = moment else {
            let why = engine.why_stopped();
            return Err(why.map_or_else(|| quarantined(engine, from.state.key), EngineError::Stopped));
        };
        if moment.sequence < from.next_sequence {
            continue;
        }
        from.next_sequence = moment.sequence + 1;
        show(&moment.plan, &moment.records, moment.now);
        let is_over = match moment.status {
            // Only an open approval needs the journal: children may still run.
            ExecutionStatus::WaitingApproval => is_tree_settled(engine, &engine.state(from.state.key)?)?,
            status => is_settled(status),
        };
        if is_over {
            return Ok(Followed::Settled);
        }
    }
}

fn quarantined(engine: &Engine, key: ExecutionKey) -> EngineError {
    let reason = engine.store().head(key).ok().flatten().and_then(|head| head.quarantined);
    EngineError::Quarantined(reason.unwrap_or_else(|| "it is no longer watched".into()))
}

/// True if the execution cannot continue without a decision, and neither can the executions that it started and
/// waits for.
fn is_tree_settled(engine: &Engine, state: &State) -> Result<bool, EngineError> {
    let status = state.status();
    if status != ExecutionStatus::WaitingApproval {
        return Ok(is_settled(status));
    }
    Ok(!ExecutionTree::of(engine.loader(), engine.key(), state)?.is_about_to_move)
}

pub(crate) fn is_settled(status: ExecutionStatus) -> bool {
    !matches!(status, ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested)
}

/// Writes a line of NDJSON to standard error. A closed pipe does not stop the execution.
pub(crate) fn print_event(event: &Value) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{}", compact(event));
}
