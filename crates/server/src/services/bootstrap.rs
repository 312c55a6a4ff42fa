//! The first start: creates an organization, its owner and a token in one change. Also the creation of later
//! organizations.

use std::collections::BTreeMap;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::{AuditEntry, Catalogue, Change, ChangeOutcome, ReadLimit};

use crate::{
    auth::{caller::Caller, permission::Role, token::TokenText},
    http::problem::{Problem, Result},
    resources::{
        Limits, Member, Organization, RUNTIME_FEATURE, Token,
        repository::{Listing, Repository},
    },
};

/// Id of the organization that the first start creates.
pub const ORGANIZATION: &str = "default";

/// Id of the member that the first start creates.
pub const OWNER: &str = "owner";

/// Creates the first organization unless one exists. Returns its owner's token, which is shown once.
pub fn create_first_organization(catalogue: &dyn Catalogue, sealing: &[u8; 32]) -> Result<Option<String>> {
    if !Repository::of(catalogue, "")
        .list::<Organization>(Listing { most: ReadLimit::of(1), ..Listing::default() })?
        .rows
        .is_empty()
    {
        return Ok(None);
    }
    let token = TokenText::new()?;
    // Unlike later organizations, the first one can start workflows at once.
    let features = BTreeMap::from([(RUNTIME_FEATURE.to_string(), true)]);
    let new = NewOrganization { id: ORGANIZATION, name: "My organization", owner: OWNER, features };
    let change = organization_change(catalogue, new, &token, sealing, None)?;
    match catalogue.change(&change)? {
        ChangeOutcome::Done => Ok(Some(token.reveal())),
        // Another node of the same store was faster, and has shown its token.
        ChangeOutcome::Conflict { .. } | ChangeOutcome::KeyTaken { .. } => Ok(None),
    }
}

/// An organization to create.
pub(crate) struct NewOrganization<'a> {
    pub id: &'a str,
    /// Its display name.
    pub name: &'a str,
    /// The id of its first member, an owner.
    pub owner: &'a str,
    /// Features by name; a missing one is off.
    pub features: BTreeMap<String, bool>,
}

/// The change that creates an organization with its owner and their token. `by` is the caller; `None` at the first
/// start.
pub(crate) fn organization_change(
    catalogue: &dyn Catalogue,
    new: NewOrganization<'_>,
    token: &TokenText,
    sealing: &[u8; 32],
    by: Option<&Caller>,
) -> Result<Change> {
    let (now, NewOrganization { id, name, owner, features }) = (now_ms(), new);
    let (limits, verdicts) = (Limits::default(), BTreeMap::new());
    let organization = Organization { name: name.into(), created_at: now, features, limits, verdicts };
    let member = Member { role: Role::Owner, name: None, is_operator: id == ORGANIZATION, created_at: now };
    let body = Token {
        organization: id.into(),
        user: owner.into(),
        name: "first".into(),
        hash: token.hash().hex(),
        // Qualified, because a member of the new organization may have the same id.
        made_by: by.map_or_else(|| owner.to_string(), |caller| format!("installation/{}", caller.user)),
        scopes: Vec::new(),
        session_of: None,
        created_at: now,
        expires_at: None,
        last_used_at: None,
        sign_ins: Vec::new(),
        signed_in_by: None,
        known_to: None,
        is_by_owner: true,
    };
    let (installation, own) = (Repository::of(catalogue, ""), Repository::of(catalogue, id));
    let puts = vec![
        installation.put(id, &organization, 0)?,
        own.put(owner, &member, 0)?,
        installation.put(&token.id, &body, 0)?,
    ];
    // The log of the new organization names its creator and the credential used.
    let maker = by.map(|caller| ("by", Value::from(caller.token.as_str())));
    let made = [("owner", owner.into()), ("token", token.id.as_str().into())];
    let detail = Value::map(made.into_iter().chain(maker));
    let audit = vec![AuditEntry {
        organization: id.into(),
        at: now,
        actor: by.map_or(owner, |caller| caller.user.as_str()).into(),
        action: "organization.create".into(),
        target: id.into(),
        detail: mainspring_kernel::cbor::encode(&detail),
    }];
    Ok(Change { puts, audit, sealing: *sealing, ..Change::default() })
}

/// Validates the id of a member: as [`check_id`], without colons, which separate ids in keys.
pub(crate) fn check_member_id(field: &str, id: &str) -> Result<()> {
    if id.contains(':') {
        return Err(Problem::field(field, "it must have no colon"));
    }
    check_id(field, id)
}

/// Validates an id chosen by a client: a letter or digit, then up to 127 letters, digits and `. _ : @ + -`.
pub(crate) fn check_id(field: &str, id: &str) -> Result<()> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._:@+-".contains(letter);
    let starts = id.chars().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if starts && id.len() <= 128 && id.chars().all(fits) {
        return Ok(());
    }
    Err(Problem::field(field, "it must be a letter or digit, then up to 127 letters, digits and . _ : @ + -"))
}
