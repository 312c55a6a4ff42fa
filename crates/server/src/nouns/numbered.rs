//! The definition behind a version number of a workflow. Written once, when the number is assigned.

use serde::{Deserialize, Serialize};

use crate::shelf::Noun;

/// Stored form of a version number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// `sha256:…` of the normalized definition.
    pub hash: String,
}

/// The id of a version number of a workflow.
pub fn numbered_id(workflow: &str, version: &str) -> String {
    format!("{workflow}/{version}")
}

impl Noun for Numbered {
    const NOUN: &'static str = "version number";
    const WORD: &'static str = "version number";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
