//! A former state of a workflow. It is written with the change that made it, and never again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{body::Data, shelf::Noun};

/// A version as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// The workflow, which may be gone.
    pub workflow: String,
    /// Counted from 1 for each workflow.
    pub revision: u64,
    /// The semantic version.
    pub version: String,
    /// `sha256:…` of the normalised definition.
    pub hash: String,
    /// The definition.
    pub data: Data,
    /// What made it.
    pub source: Source,
    /// The proposal that made it, if one did.
    pub source_proposal_id: Option<String>,
    /// What its author says of it.
    pub notes: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

/// What makes versions (second specification, `workflow_version_history`).
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
    /// The server itself.
    System,
}

/// The id of a version: versions of a workflow stand in the order of their numbers.
pub fn version_id(workflow: &str, revision: u64) -> String {
    format!("{workflow}/{revision:012}")
}

impl Noun for Version {
    const NOUN: &'static str = "version";
    const WORD: &'static str = "version";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false), ("hash", format!("{}/{}", self.workflow, self.hash), false)]
    }
}
