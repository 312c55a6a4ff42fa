//! A tombstone of a removed member. It keeps a sign-in through the OpenID Connect provider from adding the member
//! again.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// Marks the member with this id as removed. Deleted when an admin adds the member again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedMember {
    /// Milliseconds since 1970.
    pub removed_at: u64,
}

impl Resource for RemovedMember {
    const KIND: &'static str = "departed";
    const DISPLAY_NAME: &'static str = "removed member";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
