//! The state of a trigger that its runs change. It is a resource of its own, so that a run does not change the ETag of
//! the trigger. Its id is that of the trigger.

use mainspring_triggers::limits::RUN_LOG_ENTRIES_MAX;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resources::repository::Resource;

/// Stored form of the state of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerState {
    /// Id of its [`DueSchedule`](crate::resources::DueSchedule), if it is an enabled schedule.
    pub due: Option<String>,
    /// Time of the last started execution, in milliseconds since 1970.
    pub last_run_at: Option<u64>,
    /// Id of the last started execution.
    pub last_execution: Option<String>,
    /// Reason why the server has stopped the trigger.
    pub stopped: Option<Stopped>,
    /// The newest runs, oldest first.
    pub runs: Vec<Run>,
    /// The prompts of a schedule with the target `orchestrator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptState>,
}

/// The prompts of a trigger that wait for their delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptState {
    /// Number of prompts that are not delivered yet.
    pub waiting: u32,
    /// The last failed attempt since the last delivery.
    pub last_failure: Option<PromptFailure>,
}

/// A failed attempt to deliver a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptFailure {
    /// Id of the prompt.
    pub prompt: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// Error code, or the reason why no request was sent.
    pub error: String,
    /// Number of failed attempts of this prompt.
    pub attempts: u32,
    /// Time of the next attempt, in milliseconds since 1970.
    pub next_at: u64,
}

/// Reason why the server has stopped a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// Error code.
    pub code: String,
    /// Reason and remedy.
    pub message: String,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// One event of a trigger with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Random id.
    pub id: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// `webhook`, `schedule` or `manual`.
    pub source: String,
    /// An execution, or the reason why there is none.
    pub outcome: RunOutcome,
    /// HTTP status of the response: that of a delivery or request, or that of the orchestrator. `None` for ticks.
    pub status: Option<u16>,
    /// Id of the execution that was started or found.
    pub execution: Option<String>,
    /// Id that the sender gave the delivery, or the UTC minute of the tick.
    pub delivery: Option<String>,
    /// Reason of a refusal, or the variables without a value.
    pub reason: Option<String>,
    /// Id of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// It started an execution.
    Started,
    /// An earlier event with the same identity had started the execution.
    Duplicate,
    /// It was refused: the signature, the body or the variables are wrong, or the workflow cannot start.
    Refused,
    /// The tick did not run, because an execution of the trigger was active.
    Skipped,
    /// Ticks did not run, because no node was there in time.
    Missed,
    /// Its prompt was accepted and waits for its delivery to the orchestrator.
    Queued,
    /// The orchestrator has accepted the prompt.
    Delivered,
    /// The prompt was not delivered in the time of its retries, and is not sent any more.
    Failed,
}

impl TriggerState {
    /// Adds a run, and removes the oldest ones beyond the bound.
    pub fn add(&mut self, run: Run) {
        if matches!(run.outcome, RunOutcome::Started | RunOutcome::Queued) {
            self.last_run_at = self.last_run_at.max(Some(run.at));
            self.last_execution.clone_from(&run.execution);
        }
        self.runs.push(run);
        let surplus = self.runs.len().saturating_sub(RUN_LOG_ENTRIES_MAX);
        self.runs.drain(..surplus);
    }
}

impl Resource for TriggerState {
    const KIND: &'static str = "trigger state";
    const DISPLAY_NAME: &'static str = "state of a trigger";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
