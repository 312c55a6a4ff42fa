//! A member of an organization. Journals and audit logs contain its id.

use serde::{Deserialize, Serialize};

use crate::{
    auth::permission::Role,
    resources::repository::{Resource, Versioned},
};

/// Stored form of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Role in the organization.
    pub role: Role,
    /// Display name.
    pub name: Option<String>,
    /// True if the member operates the installation.
    pub is_operator: bool,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

impl Resource for Member {
    const KIND: &'static str = "member";
    const DISPLAY_NAME: &'static str = "member";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("role", self.role.name().into(), false)]
    }
}

impl Versioned for Member {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
