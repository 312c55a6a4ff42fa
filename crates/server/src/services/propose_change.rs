//! The tool `propose_change` of agents: proposes a change of the workflow that the agent is part of.
//!
//! The execution proposes as its own session, so it can do no more than a script with the session's token. The id of the
//! proposal follows from the intent of the call, so that a repeated call proposes nothing twice.

use std::sync::{Arc, OnceLock, Weak};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    definition::{self, Syntax},
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    plan::PROPOSE_TOOL,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;

use crate::{
    app::{App, Shared},
    auth::{caller::Caller, credential_lookup::current_session_caller, permission::Permission},
    http::{
        body::Data,
        problem::{Code, Problem, Result},
        request_slots::{Account, Kind, on_account},
    },
    resources::{
        Workflow,
        repository::{Repository, Stored},
    },
    services::{
        compile::CompileError,
        proposals::{self, NewProposal, Shown},
    },
};

/// The arguments of the tool.
const ARGUMENTS: [&str; 4] = ["proposedWorkflow", "baseWorkflowHash", "summary", "rationale"];

/// Diagnostics in a failure, which the model gets as its result.
const DIAGNOSTICS_MAX: usize = 10;

/// Performs calls of the tool. It needs the server, which is made after the engine that has this executor.
#[derive(Default)]
pub struct ProposeChange(OnceLock<Weak<Shared>>);

impl ProposeChange {
    /// Makes an executor that performs nothing before it is bound.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Binds the server. A second call has no effect.
    pub fn bind(&self, app: &App) {
        let _ = self.0.set(app.downgrade());
    }

    async fn run(&self, attempt: &Attempt) -> Result<Value> {
        let absent = || Problem::new(Code::Unavailable, "The server is starting or stopping.");
        let app = App::of(self.0.get().and_then(Weak::upgrade).ok_or_else(absent)?);
        let organization = attempt.organization.clone().unwrap_or_default();
        let account = Account { kind: Kind::Compiling, key: organization, member: String::new() };
        let attempt = attempt.clone();
        on_account(account, app.run(move |app| propose(app, &attempt))).await
    }
}

impl Executor for ProposeChange {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == PROPOSE_TOOL
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let done = tokio::select! {
                biased;
                // The request continues and may still create the proposal, which is reviewed before it changes anything.
                () = stop.requested() => return Outcome::Stopped(Value::Null),
                done = self.run(attempt) => done,
            };
            done.map_or_else(|problem| Outcome::Failed(failure(attempt, problem)), Outcome::Done)
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        // A repeated call finds the proposal of the first one.
        Box::pin(async { Adopted::NeverStarted })
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

fn propose(app: &App, attempt: &Attempt) -> Result<Value> {
    let gone = || Problem::new(Code::Forbidden, "The session of the execution may not act any more.");
    let caller = current_session_caller(app, attempt.execution)?.ok_or_else(gone)?;
    caller.require(Permission::ProposalsWrite)?;
    let arguments = arguments(&attempt.params)?;
    let find = || own_workflow(app, &caller, attempt);
    let Some(definition) = arguments.get("proposedWorkflow") else {
        let workflow = find()?.body;
        return Ok(Value::map([("workflowHash", workflow.hash.into()), ("definition", workflow.data.0)]));
    };
    let text = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.to_string())),
        Some(_) => Err(Problem::field(key, "it must be text")),
    };
    let row = app.engine.store().execution(attempt.execution)?.ok_or_else(gone)?;
    let started_at = attempt.execution.created_at_ms();
    let new = NewProposal {
        id: Some(format!("pr-{started_at:013}-{}", &attempt.intent.hex()[..16])),
        base_hash: base_of(&row, arguments)?,
        data: Data(definition_value(definition)?),
        summary: text("summary")?,
        rationale: text("rationale")?,
        execution: Some(row.id),
        expires_at: None,
        written: None,
    };
    proposals::create(app, &caller, &new, find).map(|shown| result(&shown))
}

/// The definition that the agent changes: the one that it names, because it has read it, else the one that it runs. A
/// definition that it has not seen is never reverted.
fn base_of(row: &ExecutionRow, arguments: &Map) -> Result<String> {
    match arguments.get("baseWorkflowHash") {
        None | Some(Value::Null) => Ok(row.workflow_hash.clone()),
        Some(Value::Text(hash)) => Ok(hash.to_string()),
        Some(_) => Err(Problem::field("baseWorkflowHash", "it must be text")),
    }
}

/// A definition as an object, or as text in YAML or JSON.
fn definition_value(definition: &Value) -> Result<Value> {
    match definition {
        Value::Text(text) => definition::read(text.as_bytes(), Syntax::Guess)
            .map(|document| document.value)
            .map_err(|found| CompileError::Invalid(vec![found]).into()),
        value => Ok(value.clone()),
    }
}

/// The workflow of the execution in its present state.
fn own_workflow(app: &App, caller: &Caller, attempt: &Attempt) -> Result<Stored<Workflow>> {
    let id = attempt.workflow_id.as_deref().ok_or_else(|| Problem::not_found("workflow"))?;
    Repository::of(app.catalogue(), &caller.organization).require::<Workflow>(id)
}

fn arguments(params: &Value) -> Result<&Map> {
    let refused = |message: &str| Problem::field("arguments", message);
    let map = params.as_map().ok_or_else(|| refused("they must be an object"))?;
    match map.keys().find(|key| !ARGUMENTS.contains(&key.as_str())) {
        Some(key) => {
            Err(refused(&format!("`{}` is not known; known are {}", key.escape_debug(), ARGUMENTS.join(", "))))
        }
        None => Ok(map),
    }
}

/// The result for the model.
fn result(shown: &Shown) -> Value {
    let subject = shown.subject.as_ref();
    let failure = shown.body.scenario_failure.as_deref();
    Value::map([
        ("proposalId", Value::from(shown.id.as_str())),
        ("status", shown.status.name().into()),
        ("proposedWorkflowHash", shown.body.change.hash.as_str().into()),
        ("risk", subject.map_or(Value::Null, |subject| subject.report.risk.name().into())),
        ("scenarioFailure", failure.map_or(Value::Null, Value::from)),
    ])
}

fn failure(attempt: &Attempt, problem: Problem) -> Failure {
    let class = match problem.code {
        Code::Unavailable | Code::InternalError => Class::Unavailable,
        Code::RateLimited => Class::RateLimited,
        Code::Forbidden | Code::Unauthorized => Class::Policy,
        _ => Class::Invalid,
    };
    let listed = problem.details.get("diagnostics").and_then(serde_json::Value::as_array);
    let said: Vec<String> = listed.into_iter().flatten().take(DIAGNOSTICS_MAX).map(diagnostic).collect();
    let message = match said.is_empty() {
        true => problem.message,
        false => format!("{}\n{}", problem.message, said.join("\n")),
    };
    Failure::new(class, "change_not_proposed", format!("step `{}`: {message}", attempt.step))
}

/// A diagnostic in one line, with its help.
fn diagnostic(found: &serde_json::Value) -> String {
    let text = |key: &str| found.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    format!("{}: {} ({})", text("path"), text("message"), text("help"))
}
