//! Starts executions of a store: compiles the definition, and runs or enqueues the execution.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mainspring_engine::{Engine, EngineError, StartAnswer, inbox, journal_loader::Loader, start_request::StartRequest};
use mainspring_kernel::{
    json,
    plan::Plan,
    state::State,
    value::{Map, Value},
};
use mainspring_store::{ExecutionRow, Origin, Store};

use super::{
    contract::RunRequest,
    delegate::taken_in,
    engine_follow::{From, Gates, follow},
    subworkflows,
};
use crate::{
    context::Context,
    definitions::compiled,
    error::{CliError, Exit},
    evaluator::evaluator,
    idempotency::RequestFingerprint,
    output::{
        terminal::{bold, dim, print_out},
        text::shown,
    },
    paths, read_limited,
    store_location::StoreLocation,
    tool_policy,
};

/// Compiles the definition, and checks the request. Prints the diagnostics of an invalid definition, and returns
/// `None`.
pub(super) fn prepare(
    request: &RunRequest<'_>,
    context: &Context,
) -> Result<Option<(StartRequest, RequestFingerprint)>, CliError> {
    if request.is_saved_first {
        let message = "--save saves at a server: name one with --server, or run the file here without it";
        return Err(CliError::contract("no_server", message));
    }
    let Some(compiled) = compiled(request.workflow, context)? else { return Ok(None) };
    let policy = tool_policy::of_machine(&[&compiled.plan])?;
    if !tool_policy::is_permitted(&compiled, &policy, request.workflow, context)? {
        return Ok(None);
    }
    let plan = Arc::new(compiled.plan);
    let workflows = subworkflows::find(&plan, request.workflow, request.subworkflows, context)?;
    let start = StartRequest { workflows, ..engine_request(request, with_calls(plan, request.bounds.max_calls))? };
    let start = start.guarded(&policy, None).map_err(|why| CliError::from(why.to_string()))?;
    start.admit(&*evaluator()).map_err(CliError::unfit)?;
    let fingerprint = RequestFingerprint::of(&start, request.workspace.is_some());
    Ok(Some((start, fingerprint)))
}

/// Help for a repeated id with another request.
const OTHERWISE: &str = "`mainspring resume ID` continues it with its first request, another --id starts another";

/// Runs the execution on an engine of this process until it has settled.
pub(super) async fn attached(
    engine: &Engine,
    request: StartRequest,
    fingerprint: &RequestFingerprint,
    yes: bool,
    context: &Context,
) -> Result<Exit, CliError> {
    let (title, key) = (title(&request), request.idempotency_key.clone());
    let StartAnswer { execution, existed, .. } = engine.start(request).await?;
    if existed {
        let state = engine.state(execution)?;
        fingerprint.check(&state, OTHERWISE)?;
        note_reuse(fingerprint, key.as_deref(), &state, context);
    }
    engine.activate(execution);
    if !context.global.json {
        let row = engine.store().execution(execution).map_err(EngineError::from)?;
        let id = row.map(|row| row.id).unwrap_or_default();
        let again = if existed { ", which exists" } else { "" };
        print_out!("{} {}", bold(&title), dim(&shown(&format!("{id}{again}"))));
    }
    let gates = if yes { Gates::Approve } else { Gates::Ask };
    let from = if existed { From::Now } else { From::Frame(0) };
    follow(engine, execution, gates, from, context).await
}

/// Says so if an idempotency key has started an execution with another request.
fn note_reuse(fingerprint: &RequestFingerprint, key: Option<&str>, state: &State, context: &Context) {
    if let Some(note) = fingerprint.reuse(key, state) {
        context.terminal.note(&shown(&note));
    }
}

/// A plan with another limit of calls. The limit is part of the plan that the execution pins; the hash of the
/// definition stays the same.
fn with_calls(plan: Arc<Plan>, max_calls: Option<u32>) -> Arc<Plan> {
    let Some(max_calls) = max_calls else { return plan };
    let mut plan = Arc::unwrap_or_clone(plan);
    plan.constraints.max_calls = Some(max_calls);
    Arc::new(plan)
}

fn engine_request(request: &RunRequest<'_>, plan: Arc<Plan>) -> Result<StartRequest, CliError> {
    if request.repository.is_some() {
        let message = "--repository and --ref need a server, which checks the repository out: give --server";
        return Err(CliError::bad_input("no_server", message));
    }
    let folder = request.workspace.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    Ok(StartRequest {
        execution_id: request.execution_id.map(ToString::to_string),
        input: input(request.input, plan.input_schema.as_ref())?,
        variables: request.variables.clone(),
        bounds: request.bounds,
        idempotency_key: request.idempotency_key.map(ToString::to_string),
        workspace: Some(paths::text(&paths::workspace(&folder)?)?),
        ..StartRequest::new(plan, paths::user())
    })
}

fn title(request: &StartRequest) -> String {
    let name = request.plan.name.as_deref().unwrap_or("workflow");
    let version = request.plan.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    shown(&format!("{name}{version}"))
}

/// Parses the input. If none is given and the schema requires an object, it is an empty object, so that defaults
/// apply.
pub(crate) fn input(given: Option<&str>, schema: Option<&Value>) -> Result<Value, CliError> {
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

/// Delegates the execution to the process that owns the data folder, or to one that is started for it. Returns once
/// the execution was received, so every later command finds it.
pub(super) fn detach(
    request: StartRequest,
    fingerprint: &RequestFingerprint,
    context: &Context,
) -> Result<Exit, CliError> {
    let row = enqueue(request, fingerprint, context)?;
    print_detached(&row.id, &row.status, context);
    Ok(Exit::Fine)
}

/// Prints the id of a detached execution.
pub(super) fn print_detached(id: &str, status: &str, context: &Context) {
    if context.global.json {
        let told = [("executionId", Value::from(id)), ("status", status.into())];
        print_out!("{}", json::compact(&Value::map(told)));
    } else {
        let id = shown(id);
        print_out!("{id}\n{}", dim(&format!("mainspring tail {id}")));
    }
}

/// Enqueues the start of the execution, and waits until it was received.
pub(super) fn enqueue(
    request: StartRequest,
    fingerprint: &RequestFingerprint,
    context: &Context,
) -> Result<ExecutionRow, CliError> {
    let location = StoreLocation::of(&context.global)?;
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
            taken_in(&location, context, || Ok(store.execution(key)?.or(existing(&*store)?)))?
        }
    };
    let row = row.ok_or_else(|| {
        CliError::internal("not_taken_in", format!("enqueued, and no engine has received it yet; {}", location.help()))
    })?;
    let read = Loader::new(store, key).journal(row.key).map_err(EngineError::from)?;
    let state = read.ok_or(EngineError::NoSuchExecution)?.journal.state;
    fingerprint.check(&state, OTHERWISE)?;
    note_reuse(fingerprint, idempotency.as_ref().map(|(_, key)| key.as_str()), &state, context);
    Ok(row)
}

/// Adds the help of `--detach` to the error for a folder in use.
pub(super) fn with_detach_help(mut error: CliError, file: &Path) -> CliError {
    if error.failure.code == "folder_in_use" {
        let help = format!(
            "; `mainspring run --detach {}` hands the execution to it, --dir names another folder",
            file.display()
        );
        error.failure.message.push_str(&help);
    }
    error
}
