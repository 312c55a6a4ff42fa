//! A credential that was revoked: it lets nobody in, and whose it was is still known when somebody shows it.

use mainspring_kernel::hash::Hash;
use serde::{Deserialize, Serialize};

use super::Token;
use crate::{identity::TokenText, shelf::Noun};

/// A revoked credential by the id that it had. One is kept for each revocation, as its audit entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// The organization that it was for.
    pub organization: String,
    /// The member that it was of.
    pub user: String,
    /// The hashes of its secret and of its sign-ins' secrets, in hexadecimal digits.
    pub hashes: Vec<String>,
    /// Milliseconds since 1970.
    pub revoked_at: u64,
}

impl Revoked {
    /// What is kept of a token that is revoked now.
    pub fn of(token: &Token, now: u64) -> Self {
        let sign_ins = token.sign_ins.iter().map(|one| one.hash.clone());
        Self {
            organization: token.organization.clone(),
            user: token.user.clone(),
            hashes: std::iter::once(token.hash.clone()).chain(sign_ins).collect(),
            revoked_at: now,
        }
    }

    /// Whether a secret is one that let in before.
    pub fn fits(&self, text: &TokenText) -> bool {
        let fits = |hash: &String| Hash::parse(hash).is_some_and(|hash| text.fits(&hash));
        self.hashes.iter().any(fits)
    }
}

impl Noun for Revoked {
    const NOUN: &'static str = "revoked";
    const WORD: &'static str = "revoked token";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
