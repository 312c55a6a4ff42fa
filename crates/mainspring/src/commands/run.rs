//! `mainspring run`: runs a workflow from a file, or delegates it.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueHint};
use mainspring_engine::{
    Engine, EngineError, EngineScope, Submitted, inbox, journal_loader::Loader, start_request::StartRequest,
};
use mainspring_kernel::{
    json,
    limits::OUTPUT_BYTES_MAX,
    plan::{Constraints, Plan},
    value::{Map, Value},
};
use mainspring_store::{ExecutionRow, Origin, Store};

use super::{
    follow::{From, Gates, follow},
    remote,
    resume::leave,
    tail::{Tail, tail},
    validate::compiled,
};
use crate::{
    cli::Global,
    error::{CliError, Exit},
    evaluator::evaluator,
    idempotency::RequestFingerprint,
    output::terminal::{Terminal, bold, dim, print_out},
    output::text::shown,
    paths, read_limited,
    read_store::{block_on, engine},
    runner::Signals,
    store_location::StoreLocation,
    telemetry::Metrics,
    workflows,
};

/// Run a workflow.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The definition, YAML or JSON; with a server, the slug or id of a saved workflow
    #[arg(value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// With a server: save the file first, under its name
    #[arg(long)]
    pub(super) save: bool,
    /// The input, `@input`: JSON, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    pub(super) input: Option<String>,
    /// A variable, `@vars.NAME`: JSON, or else text; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(super) variables: Vec<String>,
    /// A subworkflow that is not in the folder of FILE under its name; repeatable
    #[arg(long = "workflow", value_name = "FILE", value_hint = ValueHint::FilePath)]
    workflows: Vec<PathBuf>,
    /// The execution id, unique in the data folder; an existing execution is resumed
    #[arg(long, value_name = "ID", value_parser = execution_id)]
    id: Option<String>,
    /// The idempotency key; a repeated key returns the first execution
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// The workspace of the steps [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
    /// Return at once; the execution continues in the background
    #[arg(long)]
    pub(super) detach: bool,
    /// Approve every approval as the owner; otherwise `mainspring approvals` lists open ones
    #[arg(long, conflicts_with = "detach")]
    pub(super) yes: bool,
    /// Maximum steps, containers and nested steps included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_steps: Option<u32>,
    /// Maximum attempts of effects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_calls: Option<u32>,
    /// Maximum concurrent branches
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_parallel: Option<u32>,
    /// Timeout of the execution in milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout_ms: Option<u64>,
    /// Maximum bytes of a step's output in binary form
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=OUTPUT_BYTES_MAX as i64))]
    pub(super) max_output_bytes: Option<u32>,
    #[command(flatten)]
    metrics: Metrics,
}

pub(crate) fn run(run: &Run, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    if let Some(client) = global.client()? {
        return remote::run(run, &client, global, terminal);
    }
    if run.save {
        let message = "--save saves at a server: name one with --server, or run the file here without it";
        return Err(CliError::contract("no_server", message));
    }
    let Some(compiled) = compiled(&run.file, global)? else { return Ok(Exit::BadInput) };
    let plan = Arc::new(compiled.plan);
    let workflows = workflows::find(&plan, &run.file, &run.workflows, global)?;
    let request = StartRequest { workflows, ..request(run, with_calls(plan, run.max_calls))? };
    request.admit(&*evaluator()).map_err(CliError::unfit)?;
    let fingerprint = RequestFingerprint::of(&request, run.workspace.is_some());
    if run.detach {
        return detach(request, &fingerprint, global);
    }
    if global.store.is_some() {
        return elsewhere(run, request, &fingerprint, global, terminal);
    }
    run.metrics.begin(global, terminal)?;
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, EngineScope::named()).await.map_err(|error| held(error, &run.file))?;
        let exit = attached(&engine, request, &fingerprint, run.yes, global, terminal, &mut signals).await;
        leave(&engine, exit, terminal, &mut signals).await
    })
}

impl Run {
    /// A given flag that has no meaning at a server.
    pub(super) fn flag_of_this_machine(&self) -> Option<&'static str> {
        let given = [
            ("--workflow", !self.workflows.is_empty()),
            ("--id", self.id.is_some()),
            ("--workspace", self.workspace.is_some()),
            ("--max-calls", self.max_calls.is_some()),
            ("--metrics", self.metrics.is_flag()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// Help for a repeated id with another request.
const OTHERWISE: &str = "`mainspring resume ID` continues it with its first request, another --id starts another";

async fn attached(
    engine: &Engine,
    request: StartRequest,
    fingerprint: &RequestFingerprint,
    yes: bool,
    global: &Global,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<Exit, CliError> {
    let title = title(&request);
    let Submitted { execution, existed, .. } = engine.submit(request).await?;
    let state = engine.state(execution)?;
    if existed {
        fingerprint.check(&state, OTHERWISE)?;
    }
    engine.activate(execution);
    if !global.json {
        let id = state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
        let again = if existed { ", which exists" } else { "" };
        print_out!("{} {}", bold(&title), dim(&shown(&format!("{id}{again}"))));
    }
    let gates = if yes { Gates::Approve } else { Gates::Ask };
    let from = if existed { From::Now } else { From::Frame(0) };
    follow(engine, execution, gates, from, global, terminal, signals).await
}

/// A plan with another limit of calls. The limit is part of the plan that the execution pins; the hash of the
/// definition stays the same.
fn with_calls(plan: Arc<Plan>, max_calls: Option<u32>) -> Arc<Plan> {
    let Some(max_calls) = max_calls else { return plan };
    let mut plan = Arc::unwrap_or_clone(plan);
    plan.constraints.max_calls = Some(max_calls);
    Arc::new(plan)
}

fn request(run: &Run, plan: Arc<Plan>) -> Result<StartRequest, CliError> {
    let folder = run.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    Ok(StartRequest {
        execution_id: run.id.clone(),
        input: input(run.input.as_deref(), plan.input_schema.as_ref())?,
        variables: variables(&run.variables)?,
        bounds: Constraints {
            max_steps: run.max_steps,
            max_parallel: run.max_parallel,
            max_calls: run.max_calls,
            max_executions: None,
            max_output_bytes: run.max_output_bytes,
            timeout_ms: run.timeout_ms,
            allow_self_modification: false,
        },
        idempotency_key: run.idempotency_key.clone(),
        workspace: Some(paths::text(&paths::workspace(&folder)?)?),
        ..StartRequest::new(plan, paths::user())
    })
}

fn title(request: &StartRequest) -> String {
    let name = request.plan.name.as_deref().unwrap_or("workflow");
    let version = request.plan.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    shown(&format!("{name}{version}"))
}

/// Parses the input. If none is given and the schema wants an object, it is an empty object, so that defaults
/// apply.
pub(super) fn input(given: Option<&str>, schema: Option<&Value>) -> Result<Value, CliError> {
    let wanted = schema.and_then(|schema| schema.get("type"));
    let bytes = match given {
        None if wanted.and_then(Value::as_text) == Some("object") => return Ok(Map::new().into()),
        None => return Ok(Value::Null),
        Some("-") => read_limited::stdin(),
        Some(given) => match given.strip_prefix('@') {
            Some(path) => read_limited::file(path.as_ref()),
            None => Ok(given.as_bytes().to_vec()),
        },
    };
    let bytes = bytes.map_err(|why| CliError::bad_input("bad_input", format!("--input: {why}")))?;
    json::data(&bytes).map_err(|error| CliError::bad_input("bad_input", format!("--input is not JSON: {error}")))
}

pub(super) fn variables(given: &[String]) -> Result<Map, CliError> {
    let mut variables = Map::new();
    for pair in given {
        let refused = |why: &str| CliError::bad_input("bad_variable", format!("--var {pair}: {why}"));
        let (name, text) = pair.split_once('=').ok_or_else(|| refused("write NAME=VALUE"))?;
        if !mainspring_kernel::reference::is_name(name) {
            return Err(refused("a name is a letter or _, then letters, digits, _ and -"));
        }
        let value = json::data(text.as_bytes()).unwrap_or_else(|_| Value::from(text));
        if variables.insert(name.into(), value).is_some() {
            return Err(refused("it is given twice"));
        }
    }
    Ok(variables)
}

/// Accepts an id that other commands can take: without control characters, and not `last`.
fn execution_id(text: &str) -> Result<String, String> {
    let is_fine = !text.is_empty() && text.len() <= 200 && !text.chars().any(char::is_control) && text != "last";
    let help = "a name has 1 to 200 bytes, no control characters, and is not `last`";
    if is_fine { Ok(text.to_string()) } else { Err(help.to_string()) }
}

/// Delegates the execution to the process that owns the data folder, or to one that is started for it. Returns once
/// the execution was received, so every later command finds it.
fn detach(request: StartRequest, fingerprint: &RequestFingerprint, global: &Global) -> Result<Exit, CliError> {
    let row = posted(request, fingerprint, global)?;
    detached(&row.id, &row.status, global);
    Ok(Exit::Fine)
}

/// Prints the id of a detached execution.
pub(super) fn detached(id: &str, status: &str, global: &Global) {
    if global.json {
        let told = [("executionId", Value::from(id)), ("status", status.into())];
        print_out!("{}", json::compact(&Value::map(told)));
    } else {
        let id = shown(id);
        print_out!("{id}\n{}", dim(&format!("mainspring tail {id}")));
    }
}

/// Delegates the execution to a node of the shared store, and follows it.
fn elsewhere(
    run: &Run,
    request: StartRequest,
    fingerprint: &RequestFingerprint,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    if run.yes {
        let message = "--yes approves what this process runs; a node runs this: `mainspring approvals` lists its gates, `mainspring approve` decides there";
        return Err(CliError::bad_input("shared_store", message));
    }
    let row = posted(request, fingerprint, global)?;
    tail(&Tail::of(row.key.to_string()), global, terminal)
}

/// Enqueues the start of the execution, and waits until it was received.
fn posted(request: StartRequest, fingerprint: &RequestFingerprint, global: &Global) -> Result<ExecutionRow, CliError> {
    let location = StoreLocation::of(global)?;
    location.home().map_or(Ok(()), |home| home.create())?;
    let store = location.store()?;
    let key = location.key(&*store)?;
    let id = request.execution_id.clone();
    let idempotency = request.idempotency_key.clone().map(|key| (request.plan.name.clone(), key));
    let existing = |store: &dyn Store| -> Result<Option<ExecutionRow>, EngineError> {
        if let Some(row) = id.as_deref().map(|id| store.execution_by_id(id)).transpose()?.flatten() {
            return Ok(Some(row));
        }
        let Some((workflow, key)) = &idempotency else { return Ok(None) };
        Ok(store.execution_by_idempotency_key(&Origin::named(workflow.as_deref()), key)?)
    };
    let row = match existing(&*store)? {
        Some(row) => Some(row),
        None => {
            let key = inbox::enqueue_start(&*store, location.home(), request, &key)?;
            taken_in(&location, global, || Ok(store.execution(key)?.or(existing(&*store)?)))?
        }
    };
    let row = row.ok_or_else(|| {
        CliError::internal("not_taken_in", format!("enqueued, and no engine has received it yet; {}", location.help()))
    })?;
    let read = Loader::new(store, key).journal(row.key).map_err(EngineError::from)?;
    fingerprint.check(&read.ok_or(EngineError::NoSuchExecution)?.journal.state, OTHERWISE)?;
    Ok(row)
}

/// The polling interval for the receipt of a message, and the number of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS: u32 = 200;

/// Waits a bounded time until the engine has processed a message. A background process is started whenever no
/// process owns the data folder, because the owner may end at any moment. Nodes of a shared store are started by
/// operators only.
pub(crate) fn taken_in<T>(
    location: &StoreLocation,
    global: &Global,
    shows: impl Fn() -> Result<Option<T>, EngineError>,
) -> Result<Option<T>, CliError> {
    block_on(async {
        let (mut again, mut started_at) = (tokio::time::interval(POLL_INTERVAL), None);
        for poll in 0..POLLS {
            again.tick().await;
            if let Some(shown) = shows()? {
                return Ok(Some(shown));
            }
            // A started process needs some time to lock the folder.
            let may_start = started_at.is_none_or(|started| poll - started > 20);
            if location.home().is_some_and(|home| home.holder().is_none()) && may_start {
                start_in_background(global)?;
                started_at = Some(poll);
            }
        }
        Ok(None)
    })
}

/// Starts a background process for enqueued messages, in a session of its own, so that it outlives the terminal.
fn start_in_background(global: &Global) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        CliError::internal("not_started", format!("`setsid` cannot start the background process: {error}"))
    };
    let this = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new("setsid");
    command.arg(this).args(["resume", "--posted", "--json", "--dir"]).arg(global.home()?.folder());
    command.args(global.telemetry.otlp.iter().flat_map(|address| ["--otlp", address]));
    // The port belongs to the process that was started with `--metrics`.
    command.env_remove("MAINSPRING_METRICS");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(failed)?;
    Ok(())
}

fn held(mut error: CliError, file: &std::path::Path) -> CliError {
    if error.failure.code == "folder_in_use" {
        let help = format!(
            "; `mainspring run --detach {}` hands the execution to it, --dir names another folder",
            file.display()
        );
        error.failure.message.push_str(&help);
    }
    error
}
