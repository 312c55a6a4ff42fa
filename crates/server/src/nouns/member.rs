//! A member of an organisation. Its id is what journals and audit logs call them.

use serde::{Deserialize, Serialize};

use crate::{
    identity::Role,
    shelf::{Dated, Noun},
};

/// A member as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// What they are there.
    pub role: Role,
    /// What people call them.
    pub name: Option<String>,
    /// Whether they run the installation.
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
