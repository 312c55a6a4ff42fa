//! An entry in the version history of a workflow. Written once, with the change that created it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{http::body::Data, resources::repository::Resource};

/// Stored form of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Id of the workflow, which may have been deleted.
    pub workflow: String,
    /// Number of the entry, from 1 for each workflow.
    pub revision: u64,
    /// Semantic version.
    pub version: String,
    /// `sha256:…` of the normalized definition.
    pub hash: String,
    /// The definition.
    pub data: Data,
    /// Origin of the version.
    pub source: Source,
    /// Id of the proposal that created it, if any.
    pub source_proposal_id: Option<String>,
    /// Notes of the author.
    pub notes: Option<String>,
    /// Id of the creator.
    pub created_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

/// Origin of a version (second specification, `workflow_version_history`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// It was saved as a whole.
    Sync,
    /// It was changed.
    Update,
    /// A proposal was applied.
    ProposalApply,
    /// An older version was taken up again.
    Rollback,
    /// The candidate of a rollout was promoted.
    RolloutPromote,
    /// The server itself.
    System,
}

/// The id of a version. Ids of a workflow's versions sort by number.
pub fn version_id(workflow: &str, revision: u64) -> String {
    format!("{workflow}/{revision:012}")
}

impl Resource for Version {
    const KIND: &'static str = "version";
    const DISPLAY_NAME: &'static str = "version";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false), ("hash", format!("{}/{}", self.workflow, self.hash), false)]
    }
}
