//! The report of the last shadow run of a proposal.

use serde::{Deserialize, Serialize};

use crate::{http::body::Data, resources::repository::Resource};

/// Stored form of a report. It has the id of its proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalShadow {
    /// Id of the workflow.
    pub workflow: String,
    /// The report, without values.
    pub report: Data,
}

/// A shadow run, as its proposal refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowSummary {
    /// `sha256:…` of the report.
    pub hash: String,
    /// Id of the member who ran it.
    pub by: String,
    /// Milliseconds since 1970.
    pub at: u64,
}

impl Resource for ProposalShadow {
    const KIND: &'static str = "proposal shadow";
    const DISPLAY_NAME: &'static str = "shadow run";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("workflow", self.workflow.clone(), false)]
    }
}
