//! `workflow run`: starts an execution, or resumes it.

use std::{path::Path, sync::Arc};

use mainspring_engine::{
    Engine, EngineError, EngineScope, data_dir::DataDir, envelope, execution_tree::own_gates, progress::Events,
    start_request::StartRequest,
};
use mainspring_kernel::{
    diagnostic::{Diagnostic, Severity},
    failure::{Class, Failure},
    hash::Hash,
    key::ExecutionKey,
    limits::EXECUTION_STEPS_DEFAULT,
    plan::{Constraints, Plan},
    value::Value,
};

use super::{Answer, arguments::Run, base, block_on, claim, home, payload, say};
use crate::{
    error::{self, CliError, Exit},
    evaluator::{compile, evaluator},
    idempotency::{RequestFingerprint, hash_mismatch},
    paths, period_budgets, read_limited,
    runner::print_event,
    runner::{self, Followed, Snapshot},
    server_settings::object_settings,
    signals::Signals,
    tool_policy,
};

pub(super) fn run(run: &Run) -> Result<Answer, CliError> {
    let bytes = read_limited::stdin().map_err(|why| CliError::bad_input("unreadable", why))?;
    let payload = payload::read(&bytes)?;
    let compiled = compile(&payload.workflow).map_err(|diagnostics| invalid(&diagnostics))?;
    let plan = Arc::new(compiled.plan);
    check_hash(run, &plan)?;
    let workspace = paths::workspace(&run.workspace)?;
    // An invalid name is rejected before anything is stored.
    home(run.state_dir.as_ref(), &run.execution_id)?;
    let request = StartRequest {
        execution_id: Some(run.execution_id.clone()),
        input: payload.input,
        variables: payload.variables,
        bounds: Constraints {
            // This executable has one default for all notations.
            max_steps: run
                .max_steps
                .or(payload.bounds.max_steps)
                .or(plan.constraints.max_steps)
                .or(Some(EXECUTION_STEPS_DEFAULT)),
            max_parallel: run.max_parallel.or(payload.bounds.max_parallel),
            max_calls: None,
            max_executions: None,
            max_output_bytes: payload.bounds.max_output_bytes,
            timeout_ms: run.timeout_ms.or(payload.bounds.timeout_ms),
            budget: None,
            allow_self_modification: false,
        },
        trigger: payload.trigger,
        attempt: payload.attempt,
        idempotency_key: payload.idempotency_key,
        workspace: Some(paths::text(&workspace)?),
        ..StartRequest::new(plan, paths::user())
    };
    let settings = object_settings()?;
    period_budgets::refuse(&settings)?;
    let policy = tool_policy::of_settings(&settings)?;
    let request = request.guarded(&policy, None).map_err(|why| CliError::from(why.to_string()))?;
    request.admit(&*evaluator()).map_err(CliError::unfit)?;
    let first = match &request.idempotency_key {
        Some(key) => {
            let base = base(run.state_dir.as_ref())?;
            claim::first_of(&base, request.plan.name.as_deref(), key, &run.execution_id)?
        }
        None => run.execution_id.clone(),
    };
    let home = home(run.state_dir.as_ref(), &first)?;
    let is_repeat = first != run.execution_id;
    let request = StartRequest { execution_id: Some(first), ..request };
    block_on(async {
        let signals = Signals::default();
        signals.install()?;
        let engine = open(home, &workspace).await?;
        let answer = started(&engine, request, is_repeat, &signals).await;
        engine.drain().await;
        answer
    })
}

/// Opens an engine on the folder of one execution. The engine resumes nothing by itself, since the request is
/// compared with the stored execution first.
pub(super) async fn open(home: DataDir, workspace: &Path) -> Result<Engine, CliError> {
    let key = home.key(&paths::key_file(&[workspace, home.folder()]))?;
    runner::open(home, key, EngineScope::named(), None).await
}

/// Starts or resumes the execution. A request with a known idempotency key has another execution id, so only the
/// definition is compared.
async fn started(
    engine: &Engine,
    request: StartRequest,
    is_repeat: bool,
    signals: &Signals,
) -> Result<Answer, CliError> {
    let mut fingerprint = RequestFingerprint::of(&request, true);
    if is_repeat {
        fingerprint.forget_name();
    }
    let submitted = engine.start(request).await?;
    if submitted.existed {
        let help = "repeat its first request, or give another --execution-id";
        fingerprint.check(&engine.state(submitted.execution)?, help)?;
    }
    to_its_rest(engine, submitted.execution, Beginning::Shown, signals).await
}

/// Selects the past events to print.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Beginning {
    /// All events from the start.
    Shown,
    /// `execution.resumed`, and then events from this frame on.
    Resumed(u64),
}

/// Follows an execution until it has settled, prints its events on standard error, and returns its envelope.
/// `signals` must exist before the execution starts, so that no signal is missed.
pub(super) async fn to_its_rest(
    engine: &Engine,
    key: ExecutionKey,
    beginning: Beginning,
    signals: &Signals,
) -> Result<Answer, CliError> {
    let mut watch = engine.watch(key);
    // The watch must exist before: quarantine closes it.
    engine.activate(key);
    refuse_quarantined(engine, key)?;
    let mut told = Vec::new();
    let mut from = runner::snapshot(engine, key, |frame, state| told.push((frame.clone(), state.plan.clone())))?;
    let id = from.state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
    let mut events = Events::new(&id);
    if beginning != Beginning::Shown {
        print_event(&events.resumed(mainspring_engine::clock::now_ms()));
    }
    for (frame, plan) in told {
        let is_new = !matches!(beginning, Beginning::Resumed(from) if frame.sequence < from);
        let told = frame.records.iter().filter_map(|record| events.of_record(&plan, record, frame.now));
        told.filter(|_| is_new).for_each(|event| print_event(&event));
    }
    let mut is_canceled = false;
    loop {
        let followed = runner::follow(engine, &mut watch, &mut from, signals, |plan, records, now| {
            records
                .iter()
                .filter_map(|record| events.of_record(plan, record, now))
                .for_each(|event| print_event(&event));
        });
        match followed.await? {
            Followed::Settled => return Ok(settled(&runner::snapshot(engine, key, |_, _| ())?, &events, engine)),
            // The first SIGTERM cancels (first specification, 12.1): running steps get their grace time, and the
            // execution ends as `cancelled`. A second one interrupts.
            Followed::Interrupted if signals.is_terminated() && !is_canceled => {
                is_canceled = true;
                engine.cancel(key, TERMINATED, &paths::user()).await?;
            }
            Followed::Interrupted => {
                engine.drain().await;
                return Ok(interrupted(&runner::snapshot(engine, key, |_, _| ())?, engine));
            }
        }
    }
}

/// The reason of a cancel by SIGTERM.
const TERMINATED: &str = "terminated";

/// A quarantined execution is an error, because following it would never return.
fn refuse_quarantined(engine: &Engine, key: ExecutionKey) -> Result<(), EngineError> {
    match engine.store().head(key)?.and_then(|head| head.quarantined) {
        Some(why) => Err(EngineError::Quarantined(why)),
        None => Ok(()),
    }
}

fn settled(snapshot: &Snapshot, events: &Events<'_>, engine: &Engine) -> Answer {
    let Snapshot { state, history, .. } = snapshot;
    let now = state.now;
    let gates: Vec<_> = own_gates(engine.key(), state).collect();
    events.gates(&gates, now).iter().for_each(print_event);
    print_event(&events.finished(state, now));
    (error::of_execution(state), envelope::of_execution(state, history, &gates))
}

/// The envelope after a signal without cancel: running steps are interrupted, and the same command resumes the
/// execution.
fn interrupted(snapshot: &Snapshot, engine: &Engine) -> Answer {
    let gates: Vec<_> = own_gates(engine.key(), &snapshot.state).collect();
    let mut envelope = envelope::of_execution(&snapshot.state, &snapshot.history, &gates);
    let message = "interrupted; run again with the same --execution-id to resume";
    if let Value::Map(map) = &mut envelope {
        map.insert("ok".into(), false.into());
        map.insert("status".into(), "failed".into());
        map.insert("error".into(), Failure::new(Class::Unavailable, "interrupted", message).to_value());
    }
    say(message);
    (Exit::Failed, envelope)
}

fn check_hash(run: &Run, plan: &Plan) -> Result<(), CliError> {
    let Some(wanted) = Hash::parse(&run.workflow_hash) else {
        let message =
            format!("--workflow-hash: {:?} is not a SHA-256; `workflow validate` prints the hash", run.workflow_hash);
        return Err(CliError::contract("hash_mismatch", message));
    };
    if wanted == plan.workflow_hash {
        Ok(())
    } else {
        Err(hash_mismatch("the definition has", plan.workflow_hash, wanted))
    }
}

/// The error for an invalid definition, with all diagnostics.
pub(super) fn invalid(diagnostics: &[Diagnostic]) -> CliError {
    let errors = || diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let lines: Vec<String> = errors().map(ToString::to_string).collect();
    let mut error =
        CliError::bad_input("invalid_definition", format!("the workflow does not compile: {}", lines.join("; ")));
    let details = errors().map(Diagnostic::to_value).collect::<Vec<_>>();
    error.failure.details = Value::map([("errors", details.into())]);
    error
}
