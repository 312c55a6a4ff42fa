//! Optional parts of an execution, selected with the query parameter `include`.

use mainspring_kernel::{state::State, time::rfc3339};
use mainspring_store::{ExecutionRow, Most};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    body::Data,
    clock,
    identity::{Caller, Permission},
    nouns::Version,
    problem::{Answer, Problem},
    shelf::{Listing, Shelf},
};

/// The optional parts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Include {
    pub steps: bool,
    pub workflow_snapshot: bool,
    pub runtime_state: bool,
}

/// Values of `include`.
const WORDS: [&str; 3] = ["steps", "workflowSnapshot", "runtimeState"];

impl Include {
    /// Parses a list that is separated by commas. The definition requires the permission to read workflows.
    pub(crate) fn read(caller: &Caller, words: Option<&str>) -> Answer<Self> {
        let mut include = Self::default();
        for word in words.into_iter().flat_map(|words| words.split(',')) {
            match word {
                "steps" => include.steps = true,
                "workflowSnapshot" => include.workflow_snapshot = true,
                "runtimeState" => include.runtime_state = true,
                other => {
                    let message = format!("`{other}` is none of {}", WORDS.join(", "));
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
pub(crate) fn snapshot(app: &App, caller: &Caller, row: &ExecutionRow) -> Answer<Data> {
    let Some(workflow) = &row.workflow_id else { return Ok(Data::default()) };
    let name = Some(("hash", format!("{workflow}/{}", row.workflow_hash)));
    let listing = Listing { name, is_descending: true, most: Most::of(1), ..Listing::default() };
    let mut found = Shelf::of(app.catalogue(), &caller.organization).list::<Version>(listing)?.rows;
    Ok(found.pop().map(|held| held.body.data).unwrap_or_default())
}

/// How an execution is carried out (second specification, `RuntimeState`).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuntimeState {
    /// How it was handed out.
    executor: ExecutorState,
    /// The bounds that it runs in; null before it has begun.
    policy: Option<PolicyState>,
    /// Steps that were begun, containers and nested ones included.
    step_count: u32,
    /// Attempts that went out to the world.
    call_count: u32,
    /// Steps of which an attempt is out.
    open_steps: Vec<String>,
    /// Steps that wait: for people, time, signals, their next attempt.
    waiting_steps: Vec<String>,
    /// When it does something by itself again, at the earliest; null where nothing is to come.
    next_timer_at: Option<String>,
    /// When its time is over; null where it has no bound, or while that stands still.
    deadline_at: Option<String>,
}

/// How an execution was handed out.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExecutorState {
    /// How often, from 1.
    dispatch_count: u32,
    /// When it was accepted.
    first_enqueued_at: String,
    /// The session that it is bound to.
    session_id: Option<String>,
    /// What started it.
    trigger_type: String,
    /// The code of the error, or the reason of the end.
    last_error: Option<String>,
}

/// Bounds of an execution, defaults filled in.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PolicyState {
    /// Milliseconds; null for no bound.
    timeout_ms: Option<u64>,
    /// Visits of steps.
    max_steps: u32,
    /// Branches at a time.
    max_parallel: u32,
    /// Bytes of one step's output; null for the limit of the language.
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
        let is_over = state.ended_at.is_some();
        Self {
            executor: ExecutorState {
                dispatch_count: row.attempt_count,
                first_enqueued_at: clock::text(row.started_at),
                session_id: row.session_id.clone(),
                trigger_type: row.trigger_type.clone(),
                last_error: row.error.clone(),
            },
            policy: state.start.as_ref().map(|start| PolicyState {
                timeout_ms: start.policy.timeout_ms,
                max_steps: start.policy.max_steps,
                max_parallel: start.policy.max_parallel,
                max_output_bytes: start.policy.max_output_bytes,
            }),
            step_count: state.visits,
            call_count: state.calls,
            open_steps: names(&state.open_attempts),
            waiting_steps: names(&state.waits),
            next_timer_at: state.next_timer().filter(|_| !is_over).map(|(at, _)| rfc3339(*at)),
            deadline_at: state.deadline.filter(|_| !is_over).map(rfc3339),
        }
    }
}
