//! The binding of a member to an identity of the OpenID Connect provider; its id is that of the member.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// The identity of a member's first sign-in. OpenID Connect Core 1.0, 2: `iss` and `sub` together identify a person,
/// whereas an e-mail address may be reassigned. Deleted with the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
}

impl Resource for Identity {
    const KIND: &'static str = "identity";
    const DISPLAY_NAME: &'static str = "identity";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
