//! A secret of an organization, encrypted. Its id is its name.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Stored form of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The encrypted value; see `services::stored_secrets`.
    pub sealed: String,
    /// Identifies the key that encrypted it.
    pub key_id: String,
    /// Ids of the workflows that may use it. `None` for all workflows of the organization.
    pub workflows: Option<Vec<String>>,
    /// Id of the member who set it last.
    pub set_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
}

impl Resource for Secret {
    const KIND: &'static str = "secret";
    const DISPLAY_NAME: &'static str = "secret";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
