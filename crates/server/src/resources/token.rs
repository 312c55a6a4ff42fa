//! A credential. It belongs to the installation and not to an organization, because authentication looks it up by id
//! alone.

use mainspring_kernel::hash::Hash;
use serde::{Deserialize, Serialize};

use crate::{
    auth::{permission::Permission, token::TokenText},
    resources::repository::Resource,
};

/// Stored form of a credential. It contains hashes only, no usable secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Organization of the credential.
    pub organization: String,
    /// Member of the credential.
    pub user: String,
    /// Display name.
    pub name: String,
    /// Hash of the secret, in hexadecimal.
    pub hash: String,
    /// Creator of the credential.
    pub made_by: String,
    /// Restricts the credential to these permissions; empty for all of the member's.
    pub scopes: Vec<Permission>,
    /// Id of the execution, for credentials of an execution's session.
    pub session_of: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// Milliseconds since 1970, up to a minute late; `None` for never.
    pub last_used_at: Option<u64>,
    /// Browser sessions of the credential, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sign_ins: Vec<SignIn>,
    /// Issuer of the OpenID Connect provider, if the credential was created by a sign-in there. Its secret is
    /// discarded, so that only the session cookie works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in_by: Option<String>,
    /// The admin who knows the secret in addition to the member, because the admin created the credential or the one
    /// that it was created with. `None` if only the member knows it, or an owner who created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_to: Option<String>,
    /// True if the creator was an owner or had access to the data folder. Missing in tokens of earlier versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_owner: bool,
}

/// A browser session. It is stored with its token and ends with it; it contains a hash only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// Hash of the cookie's secret, in hexadecimal.
    pub hash: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub expires_at: u64,
}

impl Token {
    /// The hash of the secret; `None` if the stored text is invalid.
    pub fn secret_hash(&self) -> Option<Hash> {
        Hash::parse(&format!("sha256:{}", self.hash))
    }

    /// The unexpired browser session of a cookie's secret.
    pub fn sign_in(&self, text: &TokenText, now: u64) -> Option<&SignIn> {
        let fits = |one: &SignIn| Hash::parse(&one.hash).is_some_and(|hash| text.fits(&hash));
        self.sign_ins.iter().find(|one| one.expires_at > now && fits(one))
    }

    /// True if a cookie's secret is that of a browser session, even of an expired one.
    pub fn had_sign_in(&self, text: &TokenText) -> bool {
        let fits = |one: &SignIn| Hash::parse(&one.hash).is_some_and(|hash| text.fits(&hash));
        self.sign_ins.iter().any(fits)
    }

    /// The creator, if that is not the member.
    pub fn other_maker(&self) -> Option<&str> {
        Some(self.made_by.as_str()).filter(|maker| *maker != self.user)
    }

    /// Index value under which the credentials of a member are found.
    pub fn of_member(organization: &str, user: &str) -> String {
        format!("{organization}/{user}")
    }
}

impl Resource for Token {
    const KIND: &'static str = "token";
    const DISPLAY_NAME: &'static str = "token";

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
    fn a_session_is_valid_before_its_expiry() {
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
        let is_valid = |now: u64| token.sign_in(&cookie, now).is_some();
        assert_eq!([0, 1_999, 2_000, 2_001].map(is_valid), [true, true, false, false]);
        let other = TokenText::for_cookie(&text.id).unwrap();
        assert!(token.sign_in(&other, 1_500).is_none());
    }
}
