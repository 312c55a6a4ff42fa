//! The definition that a version number of a workflow stands for. It is written with the first one that gets the number, and
//! never again.

use serde::{Deserialize, Serialize};

use crate::shelf::Noun;

/// A number as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// `sha256:…` of the normalised definition.
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
