//! The key that encrypts new values. It is a resource of the installation, so that all nodes encrypt with the same key from
//! one commit on.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// The id of the resource.
pub const PRIMARY_KEY: &str = "primary";

/// Stored form of the choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrimaryKey {
    /// Identifies the key; see `services::encryption_keys`.
    pub key_id: String,
    /// Id of the member who chose it.
    pub activated_by: String,
    /// Milliseconds since 1970.
    pub activated_at: u64,
}

impl Resource for PrimaryKey {
    const KIND: &'static str = "encryption key";
    const DISPLAY_NAME: &'static str = "primary encryption key";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
