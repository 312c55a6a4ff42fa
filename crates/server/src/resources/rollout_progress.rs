//! Facts about a running rollout that are written before its decision: refused starts, and a refused decision.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Stored form of the progress of a rollout, under the id of the rollout. It has a row of its own, so that a refused start
/// never conflicts with a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutProgress {
    /// Id of the workflow.
    pub workflow: String,
    /// Buckets of the starts that the candidate refused, ascending. A repeated start has the same bucket and counts once.
    pub refused: Vec<u64>,
    /// The last automatic decision that was refused.
    pub last_refusal: Option<Refusal>,
}

/// The refusal of an automatic decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The reason, a sentence.
    pub message: String,
}

impl Resource for RolloutProgress {
    const KIND: &'static str = "rollout progress";
    const DISPLAY_NAME: &'static str = "rollout progress";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false)]
    }
}
