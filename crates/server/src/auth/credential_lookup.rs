//! Looks credentials up in the catalogue: at authentication, and again for requests that have waited.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Catalogue, Change, ExecutionRow, Store, is_final};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        credential::Credential,
        execution_access::check_origin,
        permission::{Permission, Role},
        refusals::CredentialOwner,
        session_token::SessionToken,
    },
    http::problem::{Code, Problem, Result},
    resources::{
        Member, RemovedMember, RevokedToken, Token,
        repository::{Repository, Stored},
    },
};

/// Granularity of the stored time of last use: most requests write nothing to the store.
const LAST_USED_STEP_MS: u64 = 60_000;

/// Most by which the clock of the node that started an execution may be behind that of the node that added its member.
const CLOCKS_MS: u64 = 10_000;

/// The response to a request without a valid credential.
pub(crate) fn unauthorized() -> Problem {
    Problem::new(Code::Unauthorized, "Send a token that is known and has not expired: `Authorization: Bearer msp_…`.")
}

/// Result of looking up a credential.
pub(crate) enum Lookup {
    /// The credential and its member are current.
    Valid(Box<Caller>),
    /// Genuine, but no longer valid: it was revoked or has expired, or its member was removed.
    Ended(CredentialOwner),
    /// Unknown, or the secret is wrong.
    Unknown,
}

/// The caller of a credential; `None` if it is not valid.
pub(crate) fn valid_caller(app: &App, credential: &Credential) -> Result<Option<Caller>> {
    Ok(match look_up(app, credential)? {
        Lookup::Valid(caller) => Some(*caller),
        Lookup::Ended(_) | Lookup::Unknown => None,
    })
}

/// Looks a credential up in the catalogue.
pub(crate) fn look_up(app: &App, credential: &Credential) -> Result<Lookup> {
    let text = match credential {
        Credential::Bearer(text) | Credential::Cookie(text) => text,
        Credential::Session(token) => return look_up_session(app, token),
    };
    let installation = Repository::of(app.catalogue(), "");
    let owner = |organization: &str, user: &str| CredentialOwner {
        organization: organization.into(),
        user: user.into(),
        token: text.id.clone(),
    };
    // A revoked token that was put back into the store stays revoked.
    let revoked = installation.get::<RevokedToken>(&text.id)?;
    let stored = installation.get::<Token>(&text.id)?.filter(|_| revoked.is_none());
    let Some(stored) = stored else {
        let revoked = revoked.filter(|revoked| revoked.body.fits(text));
        return Ok(
            revoked.map_or(Lookup::Unknown, |Stored { body, .. }| Lookup::Ended(owner(&body.organization, &body.user)))
        );
    };
    let (token, now) = (&stored.body, now_ms());
    let (fits, sign_in) = match credential {
        Credential::Bearer(_) => (token.secret_hash().is_some_and(|hash| text.fits(&hash)), None),
        Credential::Cookie(_) | Credential::Session(_) => {
            let sign_in = token.sign_in(text, now).map(|one| one.hash.clone());
            (sign_in.is_some(), sign_in)
        }
    };
    if !fits {
        let has_ended = matches!(credential, Credential::Cookie(text) if token.had_sign_in(text));
        return Ok(if has_ended { Lookup::Ended(owner(&token.organization, &token.user)) } else { Lookup::Unknown });
    }
    if token.expires_at.is_some_and(|at| at <= now) {
        return Ok(Lookup::Ended(owner(&token.organization, &token.user)));
    }
    let Some(member) = present_member(app.catalogue(), &token.organization, &token.user)? else {
        return Ok(Lookup::Ended(owner(&token.organization, &token.user)));
    };
    let caller = Caller {
        organization: token.organization.clone(),
        user: token.user.clone(),
        role: member.body.role,
        kind: token.session_of.clone().map_or(Kind::Person, |execution| Kind::Session { execution }),
        token: stored.id.clone(),
        sign_in,
        scopes: token.scopes.clone(),
        is_operator: member.body.is_operator,
        made_by: token.other_maker().map(Into::into),
        known_to: secret_known_to(app.catalogue(), token)?,
        expires_at: token.expires_at,
    };
    record_use(app, &stored, now)?;
    Ok(Lookup::Valid(Box::new(caller)))
}

/// Looks up the token of a session. It is valid until its execution has ended, and not while that is quarantined.
fn look_up_session(app: &App, token: &SessionToken) -> Result<Lookup> {
    if !token.is_genuine(app.engine.key()) {
        return Ok(Lookup::Unknown);
    }
    match app.engine.store().execution(token.execution())? {
        None => Ok(Lookup::Unknown),
        Some(row) => {
            check_origin(app, &row)?;
            caller_of(&**app.engine.store(), &row)
        }
    }
}

/// The caller of a session with the current role of its member; `None` if its execution has ended or is quarantined, or
/// its member was removed.
pub(crate) fn current_session_caller(app: &App, execution: ExecutionKey) -> Result<Option<Caller>> {
    let Some(row) = app.engine.store().execution(execution)? else { return Ok(None) };
    check_origin(app, &row)?;
    Ok(match caller_of(&**app.engine.store(), &row)? {
        Lookup::Valid(caller) => Some(*caller),
        Lookup::Ended(_) | Lookup::Unknown => None,
    })
}

/// A member, unless a later removal is recorded: a removed member that was put back into the store stays removed.
fn present_member(catalogue: &dyn Catalogue, organization: &str, user: &str) -> Result<Option<Stored<Member>>> {
    let members = Repository::of(catalogue, organization);
    let Some(member) = members.get::<Member>(user)? else { return Ok(None) };
    let removed = members.get::<RemovedMember>(user)?;
    let is_removed = removed.is_some_and(|removed| removed.body.removed_at >= member.body.created_at);
    Ok((!is_removed).then_some(member))
}

/// True if the member of that id existed when the execution was started: an id may be given to another person later.
fn was_member(created_at: u64, started_at: u64) -> bool {
    created_at <= started_at.saturating_add(CLOCKS_MS)
}

fn caller_of(store: &dyn Store, row: &ExecutionRow) -> Result<Lookup> {
    let (Some(organization), Some(user)) = (row.organization.clone(), row.initiator_user_id.clone()) else {
        return Ok(Lookup::Unknown);
    };
    let token = row.key.session_id();
    let member = present_member(store.catalogue(), &organization, &user)?;
    let is_current = |member: &Stored<Member>| was_member(member.body.created_at, row.started_at);
    // A quarantined execution does not run, so no step of it acts.
    let is_quarantined = store.head(row.key)?.is_none_or(|head| head.quarantined.is_some());
    let is_active = !is_final(&row.status) && !is_quarantined;
    let Some(member) = member.filter(|member| is_active && is_current(member)) else {
        return Ok(Lookup::Ended(CredentialOwner { organization, user, token }));
    };
    Ok(Lookup::Valid(Box::new(Caller {
        organization,
        user,
        role: member.body.role,
        kind: Kind::Session { execution: row.id.clone() },
        token,
        sign_in: None,
        scopes: Vec::new(),
        is_operator: false,
        made_by: None,
        known_to: None,
        expires_at: None,
    })))
}

/// Stores the time of the last use of a token, at most once per [`LAST_USED_STEP_MS`].
fn record_use(app: &App, stored: &Stored<Token>, now: u64) -> Result<()> {
    if stored.body.last_used_at.is_some_and(|at| now.saturating_sub(at) < LAST_USED_STEP_MS) {
        return Ok(());
    }
    let used = Token { last_used_at: Some(now), ..stored.body.clone() };
    let puts = vec![Repository::of(app.catalogue(), "").put(&stored.id, &used, stored.version)?];
    // The result is ignored: a concurrent request writes the same, and a busy store loses a minute of precision. The
    // write bypasses the catalogue watch, because it changes nothing that authentication depends on.
    let _ = app.engine.store().catalogue().change(&Change { puts, ..Change::default() });
    Ok(())
}

/// The admin who knows the secret of a credential in addition to its member. Credentials from before this was stored
/// fall back to their maker, even if the maker was demoted or removed since: creating one for another member required
/// the admin role. A maker who was never a member had access to the data folder.
fn secret_known_to(catalogue: &dyn Catalogue, token: &Token) -> Result<Option<String>> {
    let is_stored = token.known_to.is_some() || token.is_by_owner;
    let Some(maker) = token.other_maker().filter(|_| !is_stored) else { return Ok(token.known_to.clone()) };
    let members = Repository::of(catalogue, &token.organization);
    let is_counted = match members.get::<Member>(maker)? {
        Some(member) => member.body.role != Role::Owner,
        None => members.get::<RemovedMember>(maker)?.is_some(),
    };
    Ok(is_counted.then(|| maker.to_string()))
}

/// True if an earlier authenticated credential is still valid and still has a permission that it had.
pub(crate) fn is_still_valid(app: &App, caller: &Caller, permission: Permission) -> Result<bool> {
    Ok(current_caller(app, caller)?.is_some_and(|now| now.has(permission)))
}

/// The caller of a request that has waited, with the current role and scopes.
///
/// # Errors
/// Fails with 401 if the credential is no longer valid, and with 403 if it no longer has the permission.
pub(crate) fn reauthorize(app: &App, caller: &Caller, permission: Permission) -> Result<Caller> {
    let now = current_caller(app, caller)?.ok_or_else(unauthorized)?;
    now.require(permission)?;
    Ok(now)
}

/// An authenticated caller with the current role and scopes; `None` if the credential is no longer valid.
pub(crate) fn current_caller(app: &App, caller: &Caller) -> Result<Option<Caller>> {
    if let Some(execution) = ExecutionKey::of_session_id(&caller.token) {
        return current_session_caller(app, execution);
    }
    let token = Repository::of(app.catalogue(), "").get::<Token>(&caller.token)?;
    let member = Repository::of(app.catalogue(), &caller.organization).get::<Member>(&caller.user)?;
    let is_unexpired = |token: &Token| {
        let is_current =
            |hash: &String| token.sign_ins.iter().any(|one| one.hash == *hash && one.expires_at > now_ms());
        token.expires_at.is_none_or(|at| at > now_ms()) && caller.sign_in.as_ref().is_none_or(is_current)
    };
    let (Some(token), Some(member)) = (token, member) else { return Ok(None) };
    let Member { role, is_operator, .. } = member.body;
    let now = Caller { role, is_operator, scopes: token.body.scopes.clone(), ..caller.clone() };
    Ok(is_unexpired(&token.body).then_some(now))
}

#[cfg(test)]
mod tests {
    use mainspring_store::{memory::MemoryStore, prelude::*};

    use super::*;
    use crate::{
        resources::repository::apply,
        services::execution_sessions::tests::{row, store},
    };

    #[test]
    fn the_caller_of_a_session_follows_its_execution_and_its_member() {
        let started = |at: u64| ExecutionRow { started_at: at, ..row(1, None) };
        let members = |role: Role, created_at: u64| {
            let member = Member { role, name: None, is_operator: true, created_at };
            let store = store([row(1, None)]);
            let puts = vec![Repository::of(&store, "acme").put("ada", &member, 0).unwrap()];
            apply(&store, &Change { puts, ..Change::default() }).unwrap().unwrap();
            store
        };
        let caller = |store: &MemoryStore, row: &ExecutionRow| match caller_of(store, row).unwrap() {
            Lookup::Valid(caller) => Some(*caller),
            Lookup::Ended(owner) => {
                assert_eq!((owner.organization.as_str(), owner.user.as_str()), ("acme", "ada"));
                None
            }
            Lookup::Unknown => panic!("it is genuine"),
        };
        for role in [Role::Owner, Role::Member, Role::Viewer] {
            let found = caller(&members(role, 1), &started(1)).expect("the execution runs");
            assert_eq!(
                (found.role, found.kind, found.token),
                (role, Kind::Session { execution: "run 1".into() }, row(1, None).key.session_id())
            );
            assert!(!found.is_operator && found.scopes.is_empty());
        }
        for status in ["pending", "running", "waiting_approval", "cancel_requested"] {
            assert!(caller(&members(Role::Member, 1), &ExecutionRow { status: status.into(), ..started(1) }).is_some());
        }
        for status in ["completed", "failed", "cancelled"] {
            assert!(caller(&members(Role::Member, 1), &ExecutionRow { status: status.into(), ..started(1) }).is_none());
        }
        assert!(caller(&members(Role::Member, 1 + CLOCKS_MS + 1), &started(1)).is_none(), "another person");
        assert!(caller(&store([row(1, None)]), &started(1)).is_none(), "no member");
        let quarantined = members(Role::Member, 1);
        quarantined.quarantine(row(1, None).key, "broken").unwrap();
        assert!(caller(&quarantined, &started(1)).is_none(), "it does not run");
    }

    #[test]
    fn a_member_added_after_the_token_is_another_person() {
        assert!(was_member(1_000, 1_000) && was_member(11_000, 1_000) && was_member(0, 1_000));
        assert!(!was_member(11_001, 1_000));
    }

    #[test]
    fn the_creator_of_an_old_token_is_assumed_to_know_it() {
        let table = [
            (Some(Role::Owner), false, false),
            (Some(Role::Admin), false, true),
            (Some(Role::Member), false, true),
            (None, true, true),
            // Made by the command `mainspring token`.
            (None, false, false),
        ];
        for (role, was_removed, is_known) in table {
            let store = MemoryStore::new();
            let members = Repository::of(&store, "acme");
            let member = |role| Member { role, name: None, is_operator: false, created_at: 0 };
            let put = role.map(|role| members.put("mal", &member(role), 0).unwrap());
            let gone = was_removed.then(|| members.put("mal", &RemovedMember { removed_at: 0 }, 0).unwrap());
            let change = Change { puts: put.into_iter().chain(gone).collect(), ..Change::default() };
            apply(&store, &change).unwrap().unwrap();
            let token = |is_by_owner| Token {
                organization: "acme".into(),
                user: "p".into(),
                name: "t".into(),
                hash: String::new(),
                made_by: "mal".into(),
                scopes: Vec::new(),
                session_of: None,
                created_at: 0,
                expires_at: None,
                last_used_at: None,
                sign_ins: Vec::new(),
                signed_in_by: None,
                known_to: None,
                is_by_owner,
            };
            let known = secret_known_to(&store, &token(false)).unwrap();
            assert_eq!(known.as_deref(), is_known.then_some("mal"), "{role:?} {was_removed}");
            assert_eq!(secret_known_to(&store, &token(true)).unwrap(), None, "an owner made it");
        }
    }
}
