//! Creates credentials with direct access to the store, for installations in which no member can sign in.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Catalogue, Change, ChangeOutcome};

use crate::{
    auth::token::TokenText,
    http::problem::{Problem, Result},
    resources::{Member, Token, repository::Repository},
};

/// A credential to create.
pub struct NewToken<'a> {
    /// Organization of the member.
    pub organization: &'a str,
    /// Id of the member.
    pub user: &'a str,
    /// Name of the token.
    pub name: &'a str,
    /// Creator for the audit log.
    pub by: &'a str,
    /// Expiry in milliseconds since 1970; `None` for a token that does not expire.
    pub expires_at_ms: Option<u64>,
}

/// Creates a credential of a member.
pub fn issue(catalogue: &dyn Catalogue, sealing: &[u8; 32], new: &NewToken<'_>) -> Result<String> {
    let NewToken { organization, user, name, by, expires_at_ms } = *new;
    Repository::of(catalogue, organization).require::<Member>(user)?;
    let (text, now) = (TokenText::new()?, now_ms());
    let token = Token {
        organization: organization.into(),
        user: user.into(),
        name: name.into(),
        hash: text.hash().hex(),
        made_by: by.into(),
        scopes: Vec::new(),
        session_of: None,
        created_at: now,
        expires_at: expires_at_ms,
        last_used_at: None,
        sign_ins: Vec::new(),
        signed_in_by: None,
        known_to: None,
        is_by_owner: true,
    };
    let detail = Value::map([("user", Value::from(user))]);
    let audit = vec![AuditEntry {
        organization: organization.into(),
        at: now,
        actor: by.into(),
        action: "token.create".into(),
        target: text.id.clone(),
        detail: cbor::encode(&detail),
    }];
    let puts = vec![Repository::of(catalogue, "").put(&text.id, &token, 0)?];
    match catalogue.change(&Change { puts, audit, sealing: *sealing, ..Change::default() })? {
        ChangeOutcome::Done => Ok(text.reveal()),
        ChangeOutcome::Conflict { .. } | ChangeOutcome::KeyTaken { .. } => Err(Problem::concurrent_change()),
    }
}
