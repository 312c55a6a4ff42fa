//! The scenarios of a workflow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resources::repository::{Resource, Versioned};

/// Stored form of the scenarios of a workflow. It has the id of the workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowScenarios {
    /// Texts of scenario files, by name.
    pub files: BTreeMap<String, String>,
    /// Id of the member who saved them.
    pub updated_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
}

impl Resource for WorkflowScenarios {
    const KIND: &'static str = "workflow scenarios";
    const DISPLAY_NAME: &'static str = "scenarios of the workflow";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

impl Versioned for WorkflowScenarios {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
