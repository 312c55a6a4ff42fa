//! Executions as the API shows them: builds responses from rows and journals.

mod include;
pub(crate) mod listed_error;

use mainspring_engine::{
    EngineError, envelope,
    execution_tree::{ExecutionTree, OpenGate},
    journal_loader::Loader,
    start_request::rollout_of,
};
use mainspring_kernel::{
    decide::usage_of,
    frame::Frame,
    history::History,
    input::{NAME_IN_TRIGGER, REPOSITORY_IN_TRIGGER},
    record::Record,
    state::{ExecutionStatus, State},
    value::Value,
};
use mainspring_store::ExecutionRow;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use include::{Include, IncludedParts, ProgressBody, RuntimeState, snapshot};

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::may_decide},
    http::{
        body::Data,
        problem::{Problem, Result},
        timestamps,
    },
};

/// An execution without its values.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionSummary {
    /// Unique id.
    pub id: String,
    #[serde(flatten)]
    pub workflow: ExecutionWorkflow,
    #[serde(flatten)]
    pub trigger: ExecutionTrigger,
    /// Id of the parent execution; null without one.
    pub parent_execution_id: Option<String>,
    /// Id of the owner.
    pub user_id: Option<String>,
    /// `pending`, `running`, `waiting_approval`, `cancel_requested`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// `with_failures` for a completed execution with tolerated failures; null otherwise.
    pub outcome: Option<String>,
    /// Error code, or the reason of the end.
    pub error_code: Option<String>,
    /// Id of the session of the execution, see `GET /api/sessions/{id}`.
    pub session_id: String,
    /// Number of dispatches, from 1.
    pub attempt_count: u32,
    /// Time of acceptance, RFC 3339.
    pub started_at: String,
    /// End of the execution, RFC 3339; null if it has not ended.
    pub completed_at: Option<String>,
}

/// The workflow of an execution as of the start, or of its last migration.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionWorkflow {
    /// Id of the workflow; null for child executions of older releases.
    pub workflow_id: Option<String>,
    /// Display name of the workflow when the execution was started, else the name in the definition; null if neither
    /// exists.
    pub workflow_name: Option<String>,
    /// Semantic version of the workflow.
    pub workflow_version: Option<String>,
    /// Hash of the definition: `sha256:…`.
    pub workflow_hash: String,
}

/// The cause of an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionTrigger {
    /// Id of the trigger; null without one.
    pub trigger_id: Option<String>,
    /// Display name of the trigger. Null in this release.
    pub trigger_name: Option<String>,
    /// `manual`, `webhook`, `schedule`, `subworkflow`, or `subworkflow_detached` if the parent does not wait.
    pub trigger_type: String,
    /// Kind of the initiator.
    pub initiator_type: String,
    /// Id of the initiator.
    pub initiator_user_id: Option<String>,
    /// Idempotency key, unique per workflow.
    pub idempotency_key: Option<String>,
}

impl From<&ExecutionRow> for ExecutionSummary {
    fn from(row: &ExecutionRow) -> Self {
        Self {
            id: row.id.clone(),
            workflow: ExecutionWorkflow {
                workflow_id: row.workflow_id.clone(),
                workflow_name: row.names.workflow_name.clone().or_else(|| row.workflow.clone()),
                workflow_version: row.workflow_version.clone(),
                workflow_hash: row.workflow_hash.clone(),
            },
            trigger: ExecutionTrigger {
                trigger_id: row.trigger_id.clone(),
                trigger_name: None,
                trigger_type: row.trigger_type.clone(),
                initiator_type: row.initiator_type.clone(),
                initiator_user_id: row.initiator_user_id.clone(),
                idempotency_key: row.idempotency_key.clone(),
            },
            parent_execution_id: row.started_by(),
            user_id: row.initiator_user_id.clone(),
            status: row.status.clone(),
            outcome: row.outcome.clone(),
            error_code: row.error.clone(),
            session_id: row.session(),
            attempt_count: row.attempt_count,
            started_at: timestamps::text(row.started_at),
            completed_at: row.completed_at.map(timestamps::text),
        }
    }
}

/// An execution in a list, with its error.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionListed {
    #[serde(flatten)]
    pub summary: ExecutionSummary,
    /// Error: `{code, class, message, details}`; null if the execution has not ended or nothing failed. Class and
    /// message are null if they are not found at the end of the journal. The step is only in the response for a single
    /// execution.
    #[schema(value_type = Option<Object>)]
    pub error: Data,
}

/// An execution with all details.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionBody {
    #[serde(flatten)]
    pub summary: ExecutionSummary,
    /// Reason why a pending execution has not started: the concurrency limit of the `user`, the `organization` or the
    /// `workflow`, `draining` while older executions of its workflow have not ended, or `admission` before the limits were
    /// checked. Null after the start.
    pub waiting_for: Option<&'static str>,
    /// Metadata of the trigger; null for child executions.
    #[schema(value_type = Option<Object>)]
    pub trigger_metadata: Data,
    /// Variables of the start (`@vars`), an object; null if they were erased. Another JSON value only if a parent
    /// passed an invalid one, which failed the execution.
    #[schema(value_type = serde_json::Value)]
    pub variables: Data,
    /// Input of the start (`@input`), any JSON value; null if there is none or it was erased.
    #[schema(value_type = serde_json::Value)]
    pub input: Data,
    /// Output of a completed execution, any JSON value. In all other states an object with the output variables so far.
    #[schema(value_type = serde_json::Value)]
    pub outputs: Data,
    /// Error: `{code, class, message, details, stepId}`; null if the execution has not ended or nothing failed.
    #[schema(value_type = Option<Object>)]
    pub error: Data,
    #[serde(flatten)]
    pub changes: ExecutionChanges,
    /// Resume token of the first open approval, for callers who may decide; null otherwise.
    pub resume_token: Option<String>,
    /// First open approval; null if none is open.
    #[schema(value_type = Option<Object>)]
    pub requires_approval: Data,
    /// All open approvals, including those of child executions. Each has `id` and `decideUrl`, as in `/api/approvals`.
    #[schema(value_type = Vec<Object>)]
    pub approvals: Vec<Data>,
    /// Usage of its agents and its ended children: `{used, reserved, limits, left, raised, steps}`, each with `tokens`,
    /// `cost`, `modelCalls`, `toolCalls` and `timeMs`. `limits` and `left` only if there is a budget. `steps` has the used
    /// amounts of each step by its id. Null for an execution without agents.
    #[schema(value_type = Option<Object>)]
    pub usage: Data,
    #[serde(flatten)]
    pub pinned: PinnedAtStart,
    /// Reason of the quarantine; null if the execution is not quarantined.
    pub quarantined: Option<String>,
    #[serde(flatten)]
    pub included: IncludedParts,
}

/// The choices of the start that hold for the whole execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PinnedAtStart {
    /// The rollout that chose its definition: `{id, version, percent, bucket}`, `version` being `candidate` or `stable`. The
    /// bucket is a hash of the key of the start, 0 to 9999; the candidate has those below the percentage. Null if the
    /// workflow had no rollout.
    #[schema(value_type = Option<Object>)]
    pub rollout: Data,
    /// Name of its repository, such as `acme/app`; null without one.
    pub source_repo_full_name: Option<String>,
    /// Full name of the ref of its repository, such as `refs/heads/main`; null without one.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Commit of its repository, as the ref was at the start; null without one.
    pub commit_sha: Option<String>,
}

impl PinnedAtStart {
    fn of(state: &State) -> Self {
        let trigger = state.start.as_ref().map(|start| &start.trigger);
        let rollout = trigger.and_then(|trigger| rollout_of(trigger, state.lineage.depth > 0));
        let repository = trigger.and_then(|trigger| trigger.get(REPOSITORY_IN_TRIGGER));
        let text = |key: &str| repository?.get(key).and_then(Value::as_text).map(Into::into);
        Self {
            rollout: Data(rollout.cloned().unwrap_or_default()),
            source_repo_full_name: text("sourceRepoFullName"),
            reference: text("ref"),
            commit_sha: text("commitSha"),
        }
    }
}

/// Requests of people that changed an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionChanges {
    /// Cancel request; null if there is none. Attempts may take time to stop, so the status shows whether the execution
    /// has ended.
    pub cancel_requested: Option<CancelRequested>,
    /// Migrations to other definitions, the oldest first. `workflowHash` and `workflowVersion` are those of the last.
    pub migrations: Vec<Migrated>,
}

/// A migration of an execution to another definition.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Migrated {
    /// Time, RFC 3339.
    pub at: String,
    /// Hash of the definition before.
    pub from_workflow_hash: String,
    /// Hash of the definition since.
    pub to_workflow_hash: String,
}

impl Migrated {
    fn all(state: &State) -> Vec<Self> {
        let (Some(start), Some(last)) = (&state.start, &state.journal.migration) else { return Vec::new() };
        let next = last.earlier.iter().skip(1).map(|plan| plan.workflow_hash).chain([start.workflow_hash]);
        let migrated =
            |(before, after): (&mainspring_kernel::state::EarlierPlan, mainspring_kernel::hash::Hash)| Self {
                at: timestamps::text(before.until),
                from_workflow_hash: before.workflow_hash.prefixed(),
                to_workflow_hash: after.prefixed(),
            };
        last.earlier.iter().zip(next).map(migrated).collect()
    }
}

/// A recorded cancel request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequested {
    /// Time, RFC 3339.
    pub at: String,
    /// Id of the member or component that acted.
    pub by: String,
    /// Reason of the cancellation.
    pub reason: String,
}

impl CancelRequested {
    fn of(frame: &Frame) -> Option<Self> {
        frame.records.iter().find_map(|record| match record {
            Record::CancelRequested { reason, by } => {
                Some(Self { at: timestamps::text(frame.now), by: by.clone(), reason: reason.clone() })
            }
            _ => None,
        })
    }
}

/// State, gates and cancel request of an execution, read from its journal.
pub(crate) struct ExecutionDetails {
    pub state: State,
    pub cancel_requested: Option<CancelRequested>,
    pub tree: ExecutionTree,
    pub quarantined: Option<String>,
}

/// Reads an execution's journal.
pub(crate) fn read_details(app: &App, row: &ExecutionRow) -> Result<ExecutionDetails> {
    let loader: &Loader = app.engine.loader();
    let mut cancel_requested = None;
    let each = |_: &State, frame: &Frame| {
        cancel_requested = cancel_requested.take().or_else(|| CancelRequested::of(frame));
    };
    let read = loader.frames(row.key, each).map_err(EngineError::from)?;
    let read = read.ok_or_else(|| Problem::not_found("execution"))?;
    let state = read.journal.state;
    let tree = ExecutionTree::of(loader, app.engine.key(), &state)?;
    Ok(ExecutionDetails { state, cancel_requested, tree, quarantined: read.quarantined })
}

/// One page of attempts in the order of their start, from a position on. New attempts are appended, so that positions
/// stay valid.
pub(crate) fn attempts(app: &App, row: &ExecutionRow, from: usize) -> Result<History> {
    attempts_and_state(app, row, from).map(|(history, _)| history)
}

/// As [`attempts`], with the state of the execution.
pub(crate) fn attempts_and_state(app: &App, row: &ExecutionRow, from: usize) -> Result<(History, State)> {
    let mut history = History::window(from, ATTEMPTS_MAX, ATTEMPTS_MEMORY_BYTES_MAX);
    let each = |state: &State, frame: &Frame| history.add(&state.plan, frame);
    let read = app.engine.loader().frames(row.key, each).map_err(EngineError::from)?;
    let read = read.ok_or_else(|| Problem::not_found("execution"))?;
    Ok((history, read.journal.state))
}

/// An execution in the terms of the result envelope (first specification, 6.5).
pub(crate) struct Envelope {
    pub status: &'static str,
    pub outcome: Option<&'static str>,
    pub output: Value,
    pub error: Value,
    /// Gates, with resume tokens only if the caller may decide.
    pub gates: Vec<Data>,
    pub history: History,
    /// Reason why a pending execution has not started.
    pub waiting_for: Option<&'static str>,
}

/// Reads an execution's journal once for all fields of its envelope.
pub(crate) fn read_envelope(app: &App, caller: &Caller, row: &ExecutionRow) -> Result<Envelope> {
    let mut history = History::window(0, ATTEMPTS_MAX, ATTEMPTS_MEMORY_BYTES_MAX);
    let loader = app.engine.loader();
    let read = loader.frames(row.key, |state, frame| history.add(&state.plan, frame)).map_err(EngineError::from)?;
    let state = read.ok_or_else(|| Problem::not_found("execution"))?.journal.state;
    let tree = ExecutionTree::of(loader, app.engine.key(), &state)?;
    let with_failures = state.status() == ExecutionStatus::Completed && state.end.with_failures;
    Ok(Envelope {
        status: envelope::status(&state),
        outcome: with_failures.then_some("with_failures"),
        output: outputs(&state),
        error: envelope::error(&state),
        waiting_for: state.queue.map(mainspring_kernel::input::Queue::name),
        gates: tree.gates.iter().map(|open| Data(approval(row, open, may_decide(caller, row, open)))).collect(),
        history,
    })
}

/// Most attempts of a page.
const ATTEMPTS_MAX: usize = 10_000;

/// Most bytes of memory of a page's values before serialization.
const ATTEMPTS_MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The response for an execution, as the caller may see it.
pub(crate) fn body(caller: &Caller, row: &ExecutionRow, details: &ExecutionDetails) -> ExecutionBody {
    let state = &details.state;
    let start = state.start.as_ref();
    let metadata = start.and_then(|start| start.trigger.get("metadata")).cloned().unwrap_or_default();
    let approvals: Vec<Data> =
        details.tree.gates.iter().map(|open| Data(approval(row, open, may_decide(caller, row, open)))).collect();
    let first = details.tree.gates.first().filter(|open| may_decide(caller, row, open));
    // Rows of older releases do not have the workflow's display name; the journal has it.
    let named = start.and_then(|start| start.trigger.get(NAME_IN_TRIGGER)).and_then(Value::as_text);
    let mut summary = ExecutionSummary::from(row);
    summary.workflow.workflow_name = named.map(Into::into).or(summary.workflow.workflow_name);
    ExecutionBody {
        summary,
        waiting_for: state.queue.map(mainspring_kernel::input::Queue::name),
        trigger_metadata: Data(metadata),
        variables: Data(start.map(|start| start.variables.clone()).unwrap_or_default()),
        input: Data(start.map(|start| start.input.clone()).unwrap_or_default()),
        outputs: Data(outputs(state)),
        error: Data(envelope::error(state)),
        changes: ExecutionChanges {
            cancel_requested: details.cancel_requested.clone(),
            migrations: Migrated::all(state),
        },
        resume_token: first.map(|open| open.token.clone()),
        requires_approval: approvals.first().cloned().unwrap_or_default(),
        approvals,
        usage: Data(usage_of(state).unwrap_or_default()),
        pinned: PinnedAtStart::of(state),
        quarantined: details.quarantined.clone(),
        included: IncludedParts::default(),
    }
}

/// The final output, or the output variables so far.
fn outputs(state: &State) -> Value {
    state.output().cloned().unwrap_or_else(|| Value::Map(state.outputs.clone()))
}

/// Output, first open gate and error of an execution; null for each that does not exist yet.
pub(crate) fn envelope_so_far(
    app: &App,
    caller: &Caller,
    row: &ExecutionRow,
    state: &State,
) -> Result<(Value, Value, Value)> {
    let is_something = state.end.ended_at.is_some() || !state.outputs.is_empty();
    let output = if is_something { outputs(state) } else { Value::Null };
    let tree = ExecutionTree::of(app.engine.loader(), app.engine.key(), state)?;
    let first = tree.gates.first().map(|open| approval(row, open, may_decide(caller, row, open)));
    Ok((output, first.unwrap_or_default(), envelope::error(state)))
}

/// The JSON of a gate with the id of its approval and the path that decides it.
fn approval(row: &ExecutionRow, open: &OpenGate, with_token: bool) -> Value {
    let mut value = gate(open, with_token);
    let id = approval_id(open.child_id.as_deref().unwrap_or(&row.id), open);
    if let Value::Map(map) = &mut value {
        map.insert("decideUrl".into(), decide_url(&id).into());
        map.insert("id".into(), id.into());
    }
    value
}

/// The id of the approval of a gate: `EXECUTION:STEP:NUMBER`.
pub(crate) fn approval_id(execution: &str, open: &OpenGate) -> String {
    format!("{execution}:{}:{}", open.step, open.gate.number)
}

/// The path of the API that decides an approval.
pub(crate) fn decide_url(id: &str) -> String {
    let of_byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    format!("/api/approvals/{}/decide", id.bytes().map(of_byte).collect::<String>())
}

/// The JSON form of a gate, with the resume token only if asked for.
pub(crate) fn gate(open: &OpenGate, with_token: bool) -> Value {
    let mut value = envelope::gate_value(open);
    if let (Value::Map(map), false) = (&mut value, with_token) {
        map.remove("resumeToken");
    }
    value
}
