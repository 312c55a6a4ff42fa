//! A proposed change of a workflow, with its reviews.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    http::body::Data,
    resources::{proposal_shadow::ShadowSummary, repository::Resource},
};

/// Stored form of a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// Id of the workflow.
    pub workflow: String,
    /// Time of creation of the workflow: another workflow may get the id of a deleted one.
    pub workflow_created_at: u64,
    /// The author, by credential.
    pub author: Author,
    /// The definition before and after.
    pub change: ProposedChange,
    /// The model that wrote it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Status as it was last written. Expiry and new versions change it without a write.
    pub status: ProposalStatus,
    /// Reviews, the oldest first.
    pub reviews: Vec<Review>,
    /// The application, if it was applied.
    pub applied: Option<Applied>,
    /// Reason of a failed application.
    pub failure: Option<String>,
    /// The last shadow run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowSummary>,
    /// The reason for which scenarios of the workflow failed with the definition when it was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario_failure: Option<String>,
    /// Milliseconds since 1970.
    pub expires_at: u64,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
}

/// The author of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// Id of the member, also for a program or a session that acts for the member.
    pub user: String,
    /// Id of the execution whose session proposed it.
    pub execution: Option<String>,
    /// Id of the session's credential.
    pub session: Option<String>,
    /// An admin who knows the secret of the author's credential, since that admin has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_to: Option<String>,
}

impl Author {
    /// True if a review by this member is one by the author, for the rule of four eyes.
    pub(crate) fn is(&self, user: &str) -> bool {
        self.user == user || self.known_to.as_deref() == Some(user)
    }
}

/// The change of a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedChange {
    /// `sha256:…` of the definition that it changes.
    pub base_hash: String,
    /// `sha256:…` of the proposed definition.
    pub hash: String,
    /// The proposed definition.
    pub data: Data,
    /// One sentence of the author.
    pub summary: Option<String>,
    /// Reasons of the author.
    pub rationale: Option<String>,
}

/// A change that a language model has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The change in prose, as the author requested it.
    pub intent: String,
    /// The model, as its provider names it.
    pub model: String,
    /// Number of calls.
    pub calls: u64,
    /// Tokens of the requests.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
}

/// A review of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Id of the reviewer.
    pub by: String,
    /// True for an approval.
    pub approve: bool,
    /// Notes of the reviewer.
    pub notes: Option<String>,
    /// `sha256:…` over all that was reviewed.
    pub hash: String,
    /// True if something that was reviewed has changed since.
    pub is_void: bool,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// The application of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Applied {
    /// Id of the member who applied it.
    pub by: String,
    /// The version that it created or returned to.
    pub version: String,
    /// The treatment of executions that ran: `pin`, `strict`, `drain`, `migrate`. `None` in proposals of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_running: Option<String>,
    /// Id of the rollout that it began, if it began one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<String>,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// Status of a proposal (second specification, `workflow_mutation_proposals`; the last two are additions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProposalStatus {
    /// It waits for a review.
    Pending,
    /// It was approved and can be applied.
    Approved,
    /// It was rejected.
    Rejected,
    /// The workflow has its definition.
    Applied,
    /// It was approved and could not be applied.
    Failed,
    /// Its time was over before it was applied.
    Expired,
    /// The workflow has another definition than the one that it changes.
    Superseded,
}

impl ProposalStatus {
    /// All values.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Approved, Self::Rejected, Self::Applied, Self::Failed, Self::Expired, Self::Superseded];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }

    /// True if it can still be reviewed or applied.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved)
    }
}

/// Formats the id under which a proposal is stored.
pub fn proposal_key(workflow: &str, proposal: &str) -> String {
    format!("{workflow}/{proposal}")
}

impl Resource for Proposal {
    const KIND: &'static str = "proposal";
    const DISPLAY_NAME: &'static str = "proposal";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        let mut names = vec![("workflow", self.workflow.clone(), false)];
        if self.status.is_open() {
            names.push(("open", self.workflow.clone(), false));
        }
        names
    }
}
