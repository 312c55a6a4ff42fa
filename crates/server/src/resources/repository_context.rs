//! The repository of executions, as a workflow, a trigger or a request names it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The repository that a workflow or a trigger names. Its commit is resolved and pinned when an execution starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RepositoryContext {
    /// HTTPS address at a host that the operator permits: `https://github.com/acme/app.git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub url: Option<String>,
    /// Instead of `url`: name at the first permitted host, such as `acme/app`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub full_name: Option<String>,
    /// Branch, tag, full ref such as `refs/heads/main`, or commit; default: the default branch.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub reference: Option<String>,
    /// Triggers only, instead of `ref`: the path of the ref or commit in the event, such as `$.pull_request.head.sha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_from: Option<String>,
    /// Secret with which the repository is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<RepositoryCredential>,
}

/// The secret with which a repository is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RepositoryCredential {
    /// Name of the secret, whose value is a token or a password.
    pub secret: String,
    /// User of the basic authentication; default `x-access-token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100)]
    pub user: Option<String>,
}

/// The repository that a manual start names. It completes what trigger and workflow leave open, and has no credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RequestedRepository {
    /// HTTPS address at a host that the operator permits, if neither trigger nor workflow names a repository.
    #[schema(max_length = 1024)]
    pub url: Option<String>,
    /// Instead of `url`: name at the first permitted host, such as `acme/app`.
    #[schema(max_length = 1024)]
    pub full_name: Option<String>,
    /// Branch, tag, full ref or commit, if neither trigger nor workflow names one.
    #[serde(rename = "ref")]
    #[schema(max_length = 255)]
    pub reference: Option<String>,
}

impl From<RequestedRepository> for RepositoryContext {
    fn from(requested: RequestedRepository) -> Self {
        let RequestedRepository { url, full_name, reference } = requested;
        Self { url, full_name, reference, ref_from: None, credential: None }
    }
}
