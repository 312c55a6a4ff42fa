//! Executions as the API shows them: builds responses from rows and journals.

mod included;
pub(crate) mod listed;

use mainspring_engine::{
    EngineError, envelope,
    family::{Family, OpenGate},
    load::Loader,
};
use mainspring_kernel::{
    frame::Frame,
    input::NAME_IN_TRIGGER,
    record::Record,
    state::{ExecutionStatus, State},
    trace::Trace,
    value::Value,
};
use mainspring_store::ExecutionRow;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use included::{Include, RuntimeState, snapshot};

use crate::{
    app::App,
    body::{Data, Written},
    clock,
    identity::{Caller, Permission},
    problem::{Answer, Problem},
};

/// An execution in a list: what its row says.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionSummary {
    /// Its id.
    pub id: String,
    /// The workflow; null for one that an execution of an older release has started.
    pub workflow_id: Option<String>,
    /// What people called the workflow when it was started, else the name in its definition; null for neither.
    pub workflow_name: Option<String>,
    /// The trigger, if one has started it.
    pub trigger_id: Option<String>,
    /// What people call the trigger; null in this build, which has none.
    pub trigger_name: Option<String>,
    /// The execution that has started it, if one has.
    pub parent_execution_id: Option<String>,
    /// The member whose it is.
    pub user_id: Option<String>,
    /// `pending`, `running`, `waiting_approval`, `cancel_requested`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// `with_failures` for a completed one in which a failure was let through.
    pub outcome: Option<String>,
    /// The code of the error, or the reason of the end.
    pub error_code: Option<String>,
    /// `manual`, `webhook`, `schedule`, `subworkflow`; `subworkflow_detached` where what started it does not wait.
    pub trigger_type: String,
    /// Who started it, by kind.
    pub initiator_type: String,
    /// Who started it.
    pub initiator_user_id: Option<String>,
    /// The workflow's version.
    pub workflow_version: Option<String>,
    /// `sha256:…` of the definition that it began with.
    pub workflow_hash: String,
    /// Unique for the workflow.
    pub idempotency_key: Option<String>,
    /// The session that it is bound to.
    pub session_id: Option<String>,
    /// How often it was dispatched, from 1.
    pub attempt_count: u32,
    /// When it was accepted.
    pub started_at: String,
    /// When it ended.
    pub completed_at: Option<String>,
}

impl From<&ExecutionRow> for ExecutionSummary {
    fn from(row: &ExecutionRow) -> Self {
        Self {
            id: row.id.clone(),
            workflow_id: row.workflow_id.clone(),
            workflow_name: row.workflow_name.clone().or_else(|| row.workflow.clone()),
            trigger_id: row.trigger_id.clone(),
            trigger_name: None,
            parent_execution_id: row.started_by(),
            user_id: row.initiator_user_id.clone(),
            status: row.status.clone(),
            outcome: row.outcome.clone(),
            error_code: row.error.clone(),
            trigger_type: row.trigger_type.clone(),
            initiator_type: row.initiator_type.clone(),
            initiator_user_id: row.initiator_user_id.clone(),
            workflow_version: row.workflow_version.clone(),
            workflow_hash: row.workflow_hash.clone(),
            idempotency_key: row.idempotency_key.clone(),
            session_id: row.session_id.clone(),
            attempt_count: row.attempt_count,
            started_at: clock::text(row.started_at),
            completed_at: row.completed_at.map(clock::text),
        }
    }
}

/// An execution in a list, with why it ended as it did.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionListed {
    #[serde(flatten)]
    pub summary: ExecutionSummary,
    /// Why it ended as it did: `{code, class, message, details}`; null until it has, and if nothing failed. The execution by
    /// itself says the step as well; class and message are null where they are not found at the end of the journal.
    #[schema(value_type = Option<Object>)]
    pub error: Data,
}

/// An execution, whole.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionBody {
    #[serde(flatten)]
    pub summary: ExecutionSummary,
    /// What a pending one waits for before its work begins: `user`, `organization` or `workflow`, of which as many are
    /// running as may when it was accepted; `admission` where that is being found out. Null for one whose work has begun.
    pub waiting_for: Option<&'static str>,
    /// More about what started it; null for what an execution has started.
    #[schema(value_type = Option<Object>)]
    pub trigger_metadata: Data,
    /// What it began with: `@vars`. An object, or null where it was erased; another value only where an execution gave it
    /// one and it failed of that.
    #[schema(value_type = serde_json::Value)]
    pub variables: Data,
    /// What it began with: `@input`, any value; null for none, or where it was erased.
    #[schema(value_type = serde_json::Value)]
    pub input: Data,
    /// The output of one that has completed: any value. Until then, and of one that has not, an object with the output
    /// variables that there are.
    #[schema(value_type = serde_json::Value)]
    pub outputs: Data,
    /// Why it ended as it did: `{code, class, message, details, stepId}`; null until it has, and if nothing failed.
    #[schema(value_type = Option<Object>)]
    pub error: Data,
    /// Who has called it off; null if nobody has. What ran then may take its time to stop: the status says whether it has.
    pub cancel_requested: Option<CancelRequested>,
    /// What opens the first open gate, for those who may decide there; null for all others.
    pub resume_token: Option<String>,
    /// The first open gate; null if none is open.
    #[schema(value_type = Option<Object>)]
    pub requires_approval: Data,
    /// All open gates, of what it has started too.
    #[schema(value_type = Vec<Object>)]
    pub approvals: Vec<Data>,
    /// Why it was set aside, if it was: its journal cannot be gone on with.
    pub quarantined: Option<String>,
    /// With `include=steps`: what it did, attempt by attempt, as far as 8 MiB of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    pub steps: Option<Vec<Written>>,
    /// With `include=steps`, where these are not all: the `cursor` with which `GET /api/executions/{id}/steps` goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub steps_cursor: Option<String>,
    /// With `include=workflowSnapshot`: the definition that it runs, as it was saved; null where no history has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub workflow_snapshot: Option<Data>,
    /// With `include=runtimeState`: how it is carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub runtime_state: Option<RuntimeState>,
}

/// Who has called an execution off.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequested {
    /// When.
    pub at: String,
    /// Who.
    pub by: String,
    /// A word for why.
    pub reason: String,
}

impl CancelRequested {
    fn of(frame: &Frame) -> Option<Self> {
        frame.records.iter().find_map(|record| match record {
            Record::CancelRequested { reason, by } => {
                Some(Self { at: clock::text(frame.now), by: by.clone(), reason: reason.clone() })
            }
            _ => None,
        })
    }
}

/// State, gates and cancel request of an execution, read from its journal.
pub(crate) struct Looked {
    pub state: State,
    pub cancel_requested: Option<CancelRequested>,
    pub family: Family,
    pub quarantined: Option<String>,
}

/// Reads an execution's journal.
pub(crate) fn look(app: &App, row: &ExecutionRow) -> Answer<Looked> {
    let loader: &Loader = app.engine.loader();
    let mut cancel_requested = None;
    let each = |_: &State, frame: &Frame| {
        cancel_requested = cancel_requested.take().or_else(|| CancelRequested::of(frame));
    };
    let read = loader.frames(row.key, each).map_err(EngineError::from)?;
    let read = read.ok_or_else(|| Problem::not_found("execution"))?;
    let state = read.journal.state;
    let family = Family::of(loader, app.engine.key(), &state)?;
    Ok(Looked { state, cancel_requested, family, quarantined: read.quarantined })
}

/// One page of attempts in the order of their start, from a position on. New attempts are appended, so that positions
/// stay valid.
pub(crate) fn attempts(app: &App, row: &ExecutionRow, from: usize) -> Answer<Trace> {
    let mut trace = Trace::window(from, ATTEMPTS_MAX, ATTEMPTS_MEMORY_BYTES_MAX);
    let each = |state: &State, frame: &Frame| trace.add(&state.plan, frame);
    let read = app.engine.loader().frames(row.key, each).map_err(EngineError::from)?;
    read.map(|_| trace).ok_or_else(|| Problem::not_found("execution"))
}

/// An execution in the terms of the result envelope (first specification, 6.5).
pub(crate) struct Sight {
    pub status: &'static str,
    pub outcome: Option<&'static str>,
    pub output: Value,
    pub error: Value,
    /// Gates, with resume tokens only if the caller may decide.
    pub gates: Vec<Data>,
    pub trace: Trace,
}

/// Reads an execution's journal once for all fields of its envelope.
pub(crate) fn sight(app: &App, caller: &Caller, row: &ExecutionRow) -> Answer<Sight> {
    let mut trace = Trace::window(0, ATTEMPTS_MAX, ATTEMPTS_MEMORY_BYTES_MAX);
    let loader = app.engine.loader();
    let read = loader.frames(row.key, |state, frame| trace.add(&state.plan, frame)).map_err(EngineError::from)?;
    let state = read.ok_or_else(|| Problem::not_found("execution"))?.journal.state;
    let family = Family::of(loader, app.engine.key(), &state)?;
    let with_failures = state.status() == ExecutionStatus::Completed && state.with_failures;
    Ok(Sight {
        status: envelope::status(&state),
        outcome: with_failures.then_some("with_failures"),
        output: outputs(&state),
        error: envelope::error(&state),
        gates: family.gates.iter().map(|open| Data(gate(open, may_decide(caller, row, open)))).collect(),
        trace,
    })
}

/// Most attempts of a page.
const ATTEMPTS_MAX: usize = 10_000;

/// Most bytes of memory of a page's values before serialization.
const ATTEMPTS_MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// True if the caller may decide at a gate: a named approver, or without names the execution's owner or an admin.
pub(crate) fn may_decide(caller: &Caller, row: &ExecutionRow, open: &OpenGate) -> bool {
    may_decide_among(caller, row, &open.gate.approvers)
}

/// As [`may_decide`], for a gate with these named approvers.
pub(crate) fn may_decide_among(caller: &Caller, row: &ExecutionRow, named: &[String]) -> bool {
    let is_named = named.contains(&caller.user);
    let is_owner = row.initiator_user_id.as_deref().is_some_and(|user| caller.may_act_for(user));
    let may = if named.is_empty() { is_owner } else { is_named };
    may && caller.is_person() && caller.has(Permission::ApprovalsDecide)
}

/// The response for an execution, as the caller may see it.
pub(crate) fn body(caller: &Caller, row: &ExecutionRow, looked: &Looked) -> ExecutionBody {
    let state = &looked.state;
    let start = state.start.as_ref();
    let metadata = start.and_then(|start| start.trigger.get("metadata")).cloned().unwrap_or_default();
    let approvals: Vec<Data> =
        looked.family.gates.iter().map(|open| Data(gate(open, may_decide(caller, row, open)))).collect();
    let first = looked.family.gates.first().filter(|open| may_decide(caller, row, open));
    // Rows of older releases lack the workflow's display name; the journal has it.
    let named = start.and_then(|start| start.trigger.get(NAME_IN_TRIGGER)).and_then(Value::as_text);
    let mut summary = ExecutionSummary::from(row);
    summary.workflow_name = named.map(Into::into).or(summary.workflow_name);
    ExecutionBody {
        summary,
        waiting_for: state.queue.map(mainspring_kernel::input::Queue::name),
        trigger_metadata: Data(metadata),
        variables: Data(start.map(|start| start.variables.clone()).unwrap_or_default()),
        input: Data(start.map(|start| start.input.clone()).unwrap_or_default()),
        outputs: Data(outputs(state)),
        error: Data(envelope::error(state)),
        cancel_requested: looked.cancel_requested.clone(),
        resume_token: first.map(|open| open.token.clone()),
        requires_approval: approvals.first().cloned().unwrap_or_default(),
        approvals,
        quarantined: looked.quarantined.clone(),
        steps: None,
        steps_cursor: None,
        workflow_snapshot: None,
        runtime_state: None,
    }
}

/// The final output, or the output variables so far.
fn outputs(state: &State) -> Value {
    state.output().cloned().unwrap_or_else(|| Value::Map(state.outputs.clone()))
}

/// Output, first open gate and error of an execution; null for each that does not exist yet.
pub(crate) fn so_far(app: &App, caller: &Caller, row: &ExecutionRow, state: &State) -> Answer<(Value, Value, Value)> {
    let is_something = state.ended_at.is_some() || !state.outputs.is_empty();
    let output = if is_something { outputs(state) } else { Value::Null };
    let family = Family::of(app.engine.loader(), app.engine.key(), state)?;
    let first = family.gates.first().map(|open| gate(open, may_decide(caller, row, open)));
    Ok((output, first.unwrap_or_default(), envelope::error(state)))
}

/// The JSON form of a gate, with the resume token only if asked for.
pub(crate) fn gate(open: &OpenGate, with_token: bool) -> Value {
    let mut value = envelope::gate_value(open);
    if let (Value::Map(map), false) = (&mut value, with_token) {
        map.remove("resumeToken");
    }
    value
}
