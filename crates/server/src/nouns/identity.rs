//! Who a member is to a provider of sign-ins, by the id of the member.

use serde::{Deserialize, Serialize};

use crate::shelf::Noun;

/// The subject of a member's first sign-in (OpenID Connect Core 1.0, 2: `iss` and `sub` together name a person, and an e-mail
/// address may become another's). It goes when the member is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
}

impl Noun for Identity {
    const NOUN: &'static str = "identity";
    const WORD: &'static str = "identity";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
