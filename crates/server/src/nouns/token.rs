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
    /// The admin who knows its secret beside its member, because they made it, or made what it was made with. `None` if
    /// nobody does but the member, and an owner who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_to: Option<String>,
    /// Its maker was an owner, or had the store itself in hand. Tokens of earlier versions do not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_owner: bool,
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

    /// Whether a cookie's secret is that of a sign-in, also of one that has ended.
    pub fn had_sign_in(&self, text: &TokenText) -> bool {
        let fits = |one: &SignIn| Hash::parse(&one.hash).is_some_and(|hash| text.fits(&hash));
        self.sign_ins.iter().any(fits)
    }

    /// Who made it, if that is not its member.
    pub fn other_maker(&self) -> Option<&str> {
        Some(self.made_by.as_str()).filter(|maker| *maker != self.user)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_lets_in_until_its_end_and_not_at_it() {
        let text = TokenText::new().unwrap();
        let cookie = TokenText::for_cookie(&text.id).unwrap();
        let sign_in = SignIn { hash: cookie.hash().hex(), created_at: 1_000, expires_at: 2_000 };
        let token = Token {
            organization: "acme".into(),
            user: "ada".into(),
            name: "n".into(),
            hash: text.hash().hex(),
            made_by: "ada".into(),
            scopes: Vec::new(),
            session_of: None,
            created_at: 0,
            expires_at: None,
            last_used_at: None,
            sign_ins: vec![sign_in],
            signed_in_by: None,
            known_to: None,
            is_by_owner: false,
        };
        let lets_in = |now: u64| token.sign_in(&cookie, now).is_some();
        assert_eq!([0, 1_999, 2_000, 2_001].map(lets_in), [true, true, false, false]);
        let other = TokenText::for_cookie(&text.id).unwrap();
        assert!(token.sign_in(&other, 1_500).is_none());
    }
}
