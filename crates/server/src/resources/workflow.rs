//! A workflow: a named, owned and versioned definition that can be started.

use serde::{Deserialize, Serialize};

use crate::{
    http::body::Data,
    resources::repository::{Resource, Versioned},
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
}

impl Workflow {
    /// Index value that makes a slug unique per member.
    pub fn own_slug(user: &str, slug: &str) -> String {
        format!("{user}/{slug}")
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
        names
    }
}

impl Versioned for Workflow {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
