//! A workflow: a named, owned, versioned thing that can be started.

use serde::{Deserialize, Serialize};

use crate::{
    body::Data,
    shelf::{Dated, Noun},
};

/// A workflow as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The member whose it is.
    pub user: String,
    /// Another id, for people: unique among the member's.
    pub slug: Option<String>,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The semantic version that its owner gave it, or that a change made of it.
    pub version: String,
    /// The definition.
    pub data: Data,
    /// `sha256:…` of the normalised definition.
    pub hash: String,
    /// Whether it can be started.
    pub enabled: bool,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
    /// The number of its newest version in the history.
    pub revision: u64,
}

impl Workflow {
    /// The name by which a member's slug is unique.
    pub fn own_slug(user: &str, slug: &str) -> String {
        format!("{user}/{slug}")
    }
}

impl Noun for Workflow {
    const NOUN: &'static str = "workflow";
    const WORD: &'static str = "workflow";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        let mut names = vec![("user", self.user.clone(), false), ("name", self.name.clone(), false)];
        if let Some(slug) = &self.slug {
            names.push(("own slug", Self::own_slug(&self.user, slug), true));
            names.push(("slug", slug.clone(), false));
        }
        names
    }
}

impl Dated for Workflow {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
