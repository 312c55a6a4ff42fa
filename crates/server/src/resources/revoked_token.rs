//! A revoked credential. It does not authenticate, but requests with it are attributed to its member in the audit log.

use mainspring_kernel::hash::Hash;
use serde::{Deserialize, Serialize};

use super::token::Token;
use crate::{auth::token::TokenText, resources::repository::Resource};

/// A revoked credential under its former id. Kept permanently, like its audit entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedToken {
    /// Organization of the credential.
    pub organization: String,
    /// Member of the credential.
    pub user: String,
    /// Hashes of its secret and of its session cookies' secrets, in hexadecimal.
    pub hashes: Vec<String>,
    /// Milliseconds since 1970.
    pub revoked_at: u64,
}

impl RevokedToken {
    /// The tombstone of a token that is revoked at `now`.
    pub fn of(token: &Token, now: u64) -> Self {
        let sign_ins = token.sign_ins.iter().map(|one| one.hash.clone());
        Self {
            organization: token.organization.clone(),
            user: token.user.clone(),
            hashes: std::iter::once(token.hash.clone()).chain(sign_ins).collect(),
            revoked_at: now,
        }
    }

    /// True if a secret was valid before the revocation.
    pub fn fits(&self, text: &TokenText) -> bool {
        let fits = |hash: &String| Hash::parse(hash).is_some_and(|hash| text.fits(&hash));
        self.hashes.iter().any(fits)
    }
}

impl Resource for RevokedToken {
    const KIND: &'static str = "revoked";
    const DISPLAY_NAME: &'static str = "revoked token";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
