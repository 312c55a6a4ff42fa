//! A credential. It belongs to the installation, because it is looked up before anybody knows whose it is.

use mainspring_kernel::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::{
    identity::{Permission, TokenText},
    shelf::Noun,
};

/// A credential as it is stored: nothing here lets anybody in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// For which organisation.
    pub organization: String,
    /// Of which member.
    pub user: String,
    /// What its owner calls it.
    pub name: String,
    /// The hash of the secret, in hexadecimal digits.
    pub hash: String,
    /// Who made it.
    pub made_by: String,
    /// The only permissions that it carries; empty for all of the member's.
    pub scopes: Vec<Permission>,
    /// The execution whose session it is for, if it is a session's.
    pub session_of: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// Milliseconds since 1970, at most a minute behind; `None` for never.
    pub last_used_at: Option<u64>,
    /// The browsers that are signed in with it, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sign_ins: Vec<SignIn>,
    /// The provider that vouched for whoever signed in, if it was made for that sign-in alone: nobody knows its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in_by: Option<String>,
}

/// A browser that is signed in. It is kept with its token and ends with it; nothing here lets anybody in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The hash of the cookie's secret, in hexadecimal digits.
    pub hash: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub expires_at: u64,
}

impl Token {
    /// The hash of its secret.
    pub fn secret_hash(&self) -> Option<Hash> {
        Hash::parse(&format!("sha256:{}", self.hash))
    }

    /// The sign-in of a cookie's secret, if it lasts.
    pub fn sign_in(&self, text: &TokenText, now: u64) -> Option<&SignIn> {
        let fits = |one: &SignIn| Hash::parse(&one.hash).is_some_and(|hash| text.fits(&hash));
        self.sign_ins.iter().find(|one| one.expires_at > now && fits(one))
    }

    /// The name by which a member's credentials are found.
    pub fn of_member(organization: &str, user: &str) -> String {
        format!("{organization}/{user}")
    }
}

impl Noun for Token {
    const NOUN: &'static str = "token";
    const WORD: &'static str = "token";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![
            ("organization", self.organization.clone(), false),
            ("member", Self::of_member(&self.organization, &self.user), false),
        ]
    }
}
