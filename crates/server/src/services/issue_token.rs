//! Creates credentials with direct access to the store, for installations in which no member can sign in.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Catalogue, Change, ChangeOutcome};

use crate::{
    auth::token::TokenText,
    http::problem::{Code, Problem, Result},
    resources::{
        Member, Organization, Token,
        repository::{Repository, Resource},
    },
};

/// Most ids in a message.
const LISTED_MAX: usize = 20;

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
    if Repository::of(catalogue, organization).get::<Member>(user)?.is_none() {
        return Err(no_member(catalogue, organization, user));
    }
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

/// The problem of an unknown member or organization, with those that exist. The caller has the store, so nothing is
/// revealed.
fn no_member(catalogue: &dyn Catalogue, organization: &str, user: &str) -> Problem {
    let installation = Repository::of(catalogue, "");
    let message = match installation.get::<Organization>(organization) {
        Ok(Some(_)) => {
            let members = ids::<Member>(Repository::of(catalogue, organization));
            format!("There is no member `{user}` in the organization `{organization}`. Its members are {members}.")
        }
        Ok(None) => {
            let organizations = ids::<Organization>(installation);
            format!("There is no organization `{organization}`. There are {organizations}.")
        }
        Err(problem) => return problem,
    };
    Problem::new(Code::NotFound, message)
}

fn ids<T: Resource>(repository: Repository<'_>) -> String {
    let mut ids: Vec<String> = repository.all::<T>(None).flatten().take(LISTED_MAX + 1).map(|one| one.id).collect();
    let more = if ids.len() > LISTED_MAX { ", …" } else { "" };
    ids.truncate(LISTED_MAX);
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    if ids.is_empty() { "none".into() } else { ids.join(", ") + more }
}
