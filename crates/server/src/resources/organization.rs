//! An organization, the unit of isolation: two organizations share no resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::resources::repository::{Resource, Versioned};

/// Feature that permits starting executions (first specification, 12.1).
pub const RUNTIME_FEATURE: &str = "workflow_runtime_v1";

/// Feature that requires another member than the author to approve a proposal.
pub const FOUR_EYES_FEATURE: &str = "proposal_four_eyes";

/// Feature that requires a shadow run before the approval of a proposal.
pub const SHADOW_FEATURE: &str = "proposal_shadow";

/// All features.
pub const FEATURES: [&str; 3] = [RUNTIME_FEATURE, FOUR_EYES_FEATURE, SHADOW_FEATURE];

/// Stored form of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// Display name.
    pub name: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Features by name; a missing one is off.
    pub features: BTreeMap<String, bool>,
    /// Concurrency limits.
    pub limits: Limits,
    /// Its own rules for calls of workflows: verdicts by class or pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, String>,
}

/// Limits of concurrent executions. Further executions wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Executions of one member.
    pub per_user: u32,
    /// Executions of the organization.
    pub per_organization: u32,
    /// Executions of each workflow of the organization; null for no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_workflow: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_user: 5, per_organization: 50, per_workflow: None }
    }
}

impl Organization {
    /// True if a feature is on.
    pub fn has(&self, feature: &str) -> bool {
        self.features.get(feature).copied().unwrap_or(false)
    }
}

impl Resource for Organization {
    const KIND: &'static str = "organization";
    const DISPLAY_NAME: &'static str = "organization";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

impl Versioned for Organization {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
