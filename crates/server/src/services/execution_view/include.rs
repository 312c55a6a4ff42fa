//! Optional parts of an execution, selected with the query parameter `include`.

use mainspring_effects::live_progress::AttemptProgress;
use mainspring_kernel::{state::State, time::rfc3339};
use mainspring_store::{ExecutionRow, ReadLimit};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission},
    http::{
        body::{Data, RawJson},
        problem::{Problem, Result},
        timestamps,
    },
    resources::{
        Version,
        repository::{Listing, Repository},
    },
};

/// The optional parts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Include {
    pub steps: bool,
    pub workflow_snapshot: bool,
    pub runtime_state: bool,
    pub progress: bool,
}

/// Values of `include`.
const PARTS: [&str; 4] = ["steps", "workflowSnapshot", "runtimeState", "progress"];

impl Include {
    /// Parses a list that is separated by commas. The definition requires the permission to read workflows.
    pub(crate) fn read(caller: &Caller, list: Option<&str>) -> Result<Self> {
        let mut include = Self::default();
        for part in list.into_iter().flat_map(|list| list.split(',')) {
            match part {
                "steps" => include.steps = true,
                "workflowSnapshot" => include.workflow_snapshot = true,
                "runtimeState" => include.runtime_state = true,
                "progress" => include.progress = true,
                other => {
                    let message = format!("`{other}` is none of {}", PARTS.join(", "));
                    return Err(Problem::field("include", message));
                }
            }
        }
        if include.workflow_snapshot {
            caller.require(Permission::WorkflowsRead)?;
        }
        Ok(include)
    }
}

/// The definition of an execution as it was saved; null if the history lacks it.
pub(crate) fn snapshot(app: &App, caller: &Caller, row: &ExecutionRow) -> Result<Data> {
    let Some(workflow) = &row.workflow_id else { return Ok(Data::default()) };
    let name = Some(("hash", format!("{workflow}/{}", row.workflow_hash)));
    let listing = Listing { name, is_descending: true, most: ReadLimit::of(1), ..Listing::default() };
    let mut found = Repository::of(app.catalogue(), &caller.organization).list::<Version>(listing)?.rows;
    Ok(found.pop().map(|stored| stored.body.data).unwrap_or_default())
}

/// The optional parts of an execution; each is missing unless the request includes it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IncludedParts {
    /// With `include=steps`: the first attempts, up to 8 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    pub steps: Option<Vec<RawJson>>,
    /// With `include=steps`: `cursor` of `GET /api/executions/{id}/steps` for the remaining attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub steps_cursor: Option<String>,
    /// With `include=workflowSnapshot`: the definition of the execution as saved; null if the history lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub workflow_snapshot: Option<Data>,
    /// With `include=runtimeState`: runtime details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub runtime_state: Option<RuntimeState>,
    /// With `include=progress`: progress of running attempts, as far as this server knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressBody>,
}

/// Progress of an execution on the server that is asked. It is not stored, and other servers may know more.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressBody {
    /// Last text that the session of the execution reported; null if there is none.
    message: Option<String>,
    /// Time of the text, RFC 3339; null if there is none.
    reported_at: Option<String>,
    /// Scripts that run in a sandbox.
    attempts: Vec<AttemptProgressBody>,
}

/// Output of a running script.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptProgressBody {
    /// Step instance.
    step_id: String,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// Bytes of its standard output.
    stdout_bytes: u64,
    /// Bytes of its standard error.
    stderr_bytes: u64,
    /// Last line of either, up to 200 characters; empty for a script with secrets.
    line: String,
}

impl ProgressBody {
    pub(crate) fn of(app: &App, row: &ExecutionRow) -> Self {
        let (report, attempts) = app.engine.live_progress().of(row.key);
        let attempts = attempts.into_iter().map(|AttemptProgress { step, number, output }| AttemptProgressBody {
            step_id: step,
            attempt: number,
            stdout_bytes: output.stdout_bytes,
            stderr_bytes: output.stderr_bytes,
            line: output.line,
        });
        Self {
            reported_at: report.as_ref().map(|report| rfc3339(report.at_ms)),
            message: report.map(|report| report.text),
            attempts: attempts.collect(),
        }
    }
}

/// Runtime details of an execution (second specification, `RuntimeState`).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuntimeState {
    /// Dispatch of the execution.
    executor: ExecutorState,
    /// Effective bounds; null before the start.
    policy: Option<PolicyState>,
    /// Number of started steps, containers and nested steps included.
    step_count: u32,
    /// Number of attempts with external effects.
    call_count: u32,
    /// Steps with an open attempt.
    open_steps: Vec<String>,
    /// Steps that wait for an approval, a time, a signal or their next attempt.
    waiting_steps: Vec<String>,
    /// Time of the next timer, RFC 3339; null if there is none.
    next_timer_at: Option<String>,
    /// Time of the timeout, RFC 3339; null without a timeout, or while its clock is stopped.
    deadline_at: Option<String>,
}

/// Dispatch of an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExecutorState {
    /// Number of dispatches, from 1.
    dispatch_count: u32,
    /// Time of acceptance, RFC 3339.
    first_enqueued_at: String,
    /// Id of the session of the execution.
    session_id: String,
    /// `manual`, `webhook`, `schedule`, `subworkflow` or `subworkflow_detached`.
    trigger_type: String,
    /// Error code, or the reason of the end.
    last_error: Option<String>,
}

/// Bounds of an execution, including defaults.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PolicyState {
    /// Timeout in milliseconds; null for none.
    timeout_ms: Option<u64>,
    /// Maximum number of visited steps.
    max_steps: u32,
    /// Maximum number of concurrent branches.
    max_parallel: u32,
    /// Maximum bytes of a step's output; null for the limit of the language.
    max_output_bytes: Option<u32>,
}

/// Most steps in a list of names; an execution may have a million open ones.
const NAMED_MAX: usize = 1_000;

impl RuntimeState {
    /// Builds it from the row and the state of an execution.
    pub(crate) fn of(row: &ExecutionRow, state: &State) -> Self {
        let names = |steps: &std::collections::BTreeSet<mainspring_kernel::instance::Instance>| {
            steps.iter().take(NAMED_MAX).map(|instance| instance.name(&state.plan)).collect()
        };
        let is_over = state.end.ended_at.is_some();
        Self {
            executor: ExecutorState {
                dispatch_count: row.attempt_count,
                first_enqueued_at: timestamps::text(row.started_at),
                session_id: row.session(),
                trigger_type: row.trigger_type.clone(),
                last_error: row.error.clone(),
            },
            policy: state.start.as_ref().map(|start| PolicyState {
                timeout_ms: start.policy.timeout_ms,
                max_steps: start.policy.max_steps,
                max_parallel: start.policy.max_parallel,
                max_output_bytes: start.policy.max_output_bytes,
            }),
            step_count: state.counts.visits,
            call_count: state.counts.calls,
            open_steps: names(&state.open.attempts),
            waiting_steps: names(&state.open.waits),
            next_timer_at: state.next_timer().filter(|_| !is_over).map(|(at, _)| rfc3339(*at)),
            deadline_at: state.end.deadline.filter(|_| !is_over).map(rfc3339),
        }
    }
}
