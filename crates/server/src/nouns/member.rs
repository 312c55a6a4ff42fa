//! A member of an organization. Journals and audit logs contain its id.

use serde::{Deserialize, Serialize};

use crate::{
    identity::Role,
    shelf::{Dated, Noun},
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

impl Noun for Member {
    const NOUN: &'static str = "member";
    const WORD: &'static str = "member";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("role", self.role.name().into(), false)]
    }
}

impl Dated for Member {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
