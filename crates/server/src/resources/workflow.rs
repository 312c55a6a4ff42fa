//! A workflow: a named, owned and versioned definition that can be started.

use serde::{Deserialize, Serialize};

use crate::{
    http::body::Data,
    resources::{
        repository::{Resource, Versioned},
        repository_context::RepositoryContext,
        rollout::RolloutVersion,
    },
};

/// Stored form of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Id of the owner.
    pub user: String,
    /// Readable id, unique among the owner's workflows.
    pub slug: Option<String>,
    /// Display name.
    pub name: String,
    /// Purpose, as its author describes it.
    pub description: Option<String>,
    /// Semantic version, set by the owner or incremented by a change.
    pub version: String,
    /// The definition.
    pub data: Data,
    /// `sha256:…` of the normalized definition.
    pub hash: String,
    /// True if it can be started.
    pub enabled: bool,
    /// Tags for filtering.
    pub tags: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
    /// Number of its newest entry in the version history.
    pub revision: u64,
    /// The drain, if the workflow drains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// The rollout, if a candidate is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<ActiveRollout>,
    /// The repository of its executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryContext>,
}

/// A rollout that runs: the part of it that a start needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveRollout {
    /// Id of the rollout.
    pub id: String,
    /// Id of the applied proposal.
    pub proposal: String,
    /// Percentage of the starts that take the candidate.
    pub percent: u32,
    /// The definition that these starts take.
    pub candidate: RolloutVersion,
    /// Number of the candidate's entry in the version history.
    pub revision: u64,
}

/// A drain: executions of the new definitions wait until none of an older one is unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Milliseconds since 1970. It distinguishes the drains of a workflow.
    pub since: u64,
    /// Id of the member who applied the proposal.
    pub by: String,
    /// Id of the applied proposal.
    pub proposal: String,
    /// `sha256:…` of the definition before.
    pub from: String,
    /// `sha256:…` of the definitions since.
    pub new: Vec<String>,
}

impl Drain {
    /// True for a definition that waits for older executions.
    pub fn holds(&self, hash: &str) -> bool {
        self.new.iter().any(|new| new == hash)
    }
}

impl Workflow {
    /// Index value that makes a slug unique per member.
    pub fn own_slug(user: &str, slug: &str) -> String {
        format!("{user}/{slug}")
    }

    /// The index entry of workflows with a rollout.
    pub fn rolling_out() -> (&'static str, String) {
        ("rolling out", "yes".into())
    }

    /// The index entry of workflows that drain.
    pub fn draining() -> (&'static str, String) {
        ("draining", "yes".into())
    }
}

impl Resource for Workflow {
    const KIND: &'static str = "workflow";
    const DISPLAY_NAME: &'static str = "workflow";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        let mut names = vec![("user", self.user.clone(), false), ("name", self.name.clone(), false)];
        if let Some(slug) = &self.slug {
            names.push(("own slug", Self::own_slug(&self.user, slug), true));
            names.push(("slug", slug.clone(), false));
        }
        if self.drain.is_some() {
            let (field, value) = Self::draining();
            names.push((field, value, false));
        }
        if self.rollout.is_some() {
            let (field, value) = Self::rolling_out();
            names.push((field, value, false));
        }
        names
    }
}

impl Versioned for Workflow {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
