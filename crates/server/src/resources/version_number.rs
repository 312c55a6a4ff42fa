//! The definition behind a version number of a workflow. Written once, when the number is assigned.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Stored form of a version number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionNumber {
    /// `sha256:…` of the normalized definition.
    pub hash: String,
}

/// Formats the id: `WORKFLOW/VERSION`.
pub fn version_number_id(workflow: &str, version: &str) -> String {
    format!("{workflow}/{version}")
}

impl Resource for VersionNumber {
    const KIND: &'static str = "version number";
    const DISPLAY_NAME: &'static str = "version number";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
