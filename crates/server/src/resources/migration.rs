//! Migrations: the executions of a workflow that continue with the definition of an applied proposal.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::repository::Resource;

/// A migration of the executions that were unfinished when a proposal was applied. Its id is that of the proposal, see
/// [`proposal_key`](super::proposal_key).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrationRun {
    /// Id of the workflow.
    pub workflow: String,
    /// `sha256:…` of the definition with which they continue.
    pub hash: String,
    /// Version of that definition in the workflow.
    pub version: String,
    /// Id of the member who applied the proposal.
    pub by: String,
    /// Key of the last execution that was read; `None` before the first.
    pub after: Option<String>,
    /// Keys of executions whose node was asked to migrate them, and has not yet.
    pub asked: Vec<String>,
    /// Executions that continued with the definition.
    pub migrated: u64,
    /// Executions that stayed with their definition.
    pub stayed: u64,
    /// The first of those that stayed.
    pub stays: Vec<StayedExecution>,
    /// Milliseconds since 1970.
    pub since: u64,
    /// The end; `None` while executions are left.
    pub ended: Option<MigrationEnd>,
}

/// The reason and the time at which nothing more is migrated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrationEnd {
    /// The reason, if executions are left that were not read.
    pub reason: Option<String>,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// An execution that stays with its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StayedExecution {
    /// Execution, as in `/api/executions/{id}`.
    pub execution_id: String,
    /// The reasons, at least one.
    pub reasons: Vec<StayReason>,
}

/// A reason for which an execution stays with its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StayReason {
    /// Code of the reason, such as `step_missing`.
    pub code: String,
    /// Name of the step instance; null if the reason is about the whole execution.
    pub step_id: Option<String>,
    /// A sentence for people.
    pub message: String,
}

impl Resource for MigrationRun {
    const KIND: &'static str = "migration";
    const DISPLAY_NAME: &'static str = "migration";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

/// A migration that has not ended, in the installation: nodes find those of all organizations in one list. Its id is that of
/// the proposal behind its organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenMigration {
    /// Id of the organization.
    pub organization: String,
    /// Id of the workflow.
    pub workflow: String,
    /// Id of the proposal.
    pub proposal: String,
}

impl OpenMigration {
    /// Formats the id under which it is stored.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.organization, self.workflow, self.proposal)
    }
}

impl Resource for OpenMigration {
    const KIND: &'static str = "open migration";
    const DISPLAY_NAME: &'static str = "migration";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
