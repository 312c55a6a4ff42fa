//! A staged rollout of a definition: some of the new starts take it, until it is promoted or aborted.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resources::repository::Resource;

/// Stored form of a rollout. It is written at its begin and at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Id of the workflow.
    pub workflow: String,
    /// Id of the applied proposal.
    pub proposal: String,
    /// The share, and the conditions of decisions.
    pub plan: RolloutPlan,
    /// The treatment of executions that run at the promotion: `pin` or `drain`.
    pub while_running: String,
    /// The definition that the other starts take.
    pub stable: RolloutVersion,
    /// The definition that is tried.
    pub candidate: RolloutVersion,
    /// Id of the member who applied the proposal.
    pub by: String,
    /// Milliseconds since 1970.
    pub since: u64,
    /// The decision; `None` while it runs.
    pub ended: Option<RolloutEnd>,
}

/// A definition in the history of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutVersion {
    /// `sha256:…` of the definition.
    pub hash: String,
    /// Semantic version.
    pub version: String,
}

/// The share of a rollout, and the conditions of decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutPlan {
    /// Percentage of the new starts that take the candidate, 1 to 99.
    #[schema(minimum = 1, maximum = 99)]
    pub percent: u32,
    /// Number of root executions that must have an execution that completed or failed before something is decided or
    /// compared, 1 to 5,000; default 20.
    #[serde(default = "minimum_default")]
    #[schema(minimum = 1, maximum = 5000)]
    pub minimum: u32,
    /// Thresholds at which the candidate is aborted. Without them only people decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Thresholds>,
    /// True to promote the candidate when all thresholds are kept; default false.
    #[serde(default)]
    pub promote: bool,
}

fn minimum_default() -> u32 {
    20
}

/// Thresholds of a candidate. One at least is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Thresholds {
    /// Most percent of its executions that may fail, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_failure_rate_percent: Option<f64>,
    /// Most percentage points by which its failure rate may exceed that of the stable definition, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_failure_rate_points_over: Option<f64>,
    /// Largest ratio of the median durations of completed executions, above 0 and up to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_duration_p50_ratio: Option<f64>,
    /// Largest ratio of the 95th percentiles of these durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_duration_p95_ratio: Option<f64>,
    /// Largest ratio of the mean costs of ended executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_cost_ratio: Option<f64>,
}

/// The decision that ended a rollout, with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutEnd {
    /// The decision.
    pub status: RolloutStatus,
    /// Id of the member who decided, or in whose name the server did.
    pub by: String,
    /// True if the server decided at the thresholds.
    pub automatic: bool,
    /// The reason of the member, or the thresholds.
    pub reason: String,
    /// The figures at the decision.
    pub figures: BothFigures,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// The state of a rollout, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutStatus {
    /// Some of the starts take the candidate.
    Running,
    /// All starts take the candidate.
    Promoted,
    /// No start takes the candidate.
    Aborted,
}

impl RolloutStatus {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Promoted => "promoted",
            Self::Aborted => "aborted",
        }
    }
}

/// The figures of both sides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BothFigures {
    /// Those of the stable definition.
    pub stable: SideFigures,
    /// Those of the candidate.
    pub candidate: SideFigures,
}

/// Figures of the newest 5,000 executions of one side since the rollout began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SideFigures {
    /// Executions that started.
    pub starts: u64,
    /// True if there are more than were read.
    pub starts_more: bool,
    /// Executions that completed.
    pub completed: u64,
    /// Executions that failed, and those that were canceled since their parent failed or its step timed out.
    pub failed: u64,
    /// Executions that were canceled otherwise.
    pub cancelled: u64,
    /// Starts, each counted once, that the candidate refused and the stable definition would have accepted. They have no
    /// execution.
    #[serde(default)]
    #[schema(required = true)]
    pub refused: u64,
    /// Root executions whose trees have an execution that completed or failed, and refused starts, counted up to `minimum`
    /// of the plan.
    #[serde(default)]
    #[schema(required = true)]
    pub roots: u64,
    /// Executions of the candidate that have been unfinished for longer than the slowest completed one of the stable
    /// definition took; 0 for the stable definition.
    #[serde(default)]
    #[schema(required = true)]
    pub overdue: u64,
    /// Percentage of failed executions and refused starts among these and completed executions; null if there are none.
    pub failure_rate_percent: Option<f64>,
    /// Median duration of completed executions in milliseconds; null if there are none.
    pub duration_p50_ms: Option<u64>,
    /// 95th percentile of these durations.
    pub duration_p95_ms: Option<u64>,
    /// Mean cost of ended executions, in units of the currency; null if there are none.
    pub cost_mean: Option<f64>,
    /// Cost of all of them.
    pub cost_total: f64,
    /// Mean number of tokens of ended executions; null if there are none.
    pub tokens_mean: Option<f64>,
    /// Tokens of all of them.
    pub tokens_total: u64,
}

/// Formats the id under which a rollout is stored.
pub fn rollout_key(workflow: &str, rollout: &str) -> String {
    format!("{workflow}/{rollout}")
}

impl Resource for Rollout {
    const KIND: &'static str = "rollout";
    const DISPLAY_NAME: &'static str = "rollout";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false)]
    }
}

/// A running rollout with thresholds, in the installation: nodes find those of all organizations in one list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchedRollout {
    /// Id of the organization.
    pub organization: String,
    /// Id of the workflow.
    pub workflow: String,
}

impl Resource for WatchedRollout {
    const KIND: &'static str = "watched rollout";
    const DISPLAY_NAME: &'static str = "watched rollout";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
