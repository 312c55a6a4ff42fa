//! The return of a workflow to a definition of its history. Written once, with the change that returned to it.
//!
//! The history has one entry for each definition, so a rollback adds none: it is on record here.

use serde::{Deserialize, Serialize};

use crate::resources::{repository::Resource, version::Source};

/// Stored form of a return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionReturn {
    /// Id of the workflow.
    pub workflow: String,
    /// `sha256:…` of the definition that it returned to.
    pub hash: String,
    /// `sha256:…` of the definition before.
    pub from_hash: String,
    /// The kind of change.
    pub source: Source,
    /// Id of the applied proposal, if any.
    pub source_proposal_id: Option<String>,
    /// Id of the member who made the change.
    pub created_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

impl Resource for VersionReturn {
    const KIND: &'static str = "version return";
    const DISPLAY_NAME: &'static str = "return to a version";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false)]
    }
}
