//! API tokens: lists, creates and revokes them.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::{Change, Removal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        caller::Caller,
        permission::{Permission, Role},
        token::TokenText,
    },
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{Code, Problem, ProblemBody, Result},
        request_slots::SLOTS_MAX,
        timestamps,
    },
    resources::{
        Member, RevokedToken, Token,
        repository::{Listing, Repository, Stored, apply, entry, with_retries},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// Attempts of a change of a member or a credential: as many as there are request slots, so that each of that many
/// concurrent changes succeeds.
pub(super) const TRIES: usize = SLOTS_MAX;

/// Most active tokens of one member without those of sign-ins and sessions, and most of one execution's sessions. Few
/// enough to scan when one is created.
const TOKENS_MAX: usize = 50;

/// Most tokens of one member for execution sessions, over all executions. Removing a member revokes all of them in one
/// change.
const SESSION_TOKENS_MAX: usize = 1_000;

/// Most expired tokens of one member that stay listed. Creating a token removes older ones, so that short-lived tokens
/// do not accumulate.
const EXPIRED_MAX: usize = 50;

/// A credential without its token.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenBody {
    /// Unique id.
    id: String,
    /// Id of the member.
    user_id: String,
    /// Display name.
    name: String,
    /// Id of the member who created it.
    made_by: String,
    /// Permissions that the credential is restricted to; empty for all permissions of the member.
    scopes: Vec<Permission>,
    /// Id of the execution, for a credential of an execution's session; null otherwise.
    session_of: Option<String>,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Expiration time, RFC 3339; null if the credential does not expire.
    expires_at: Option<String>,
    /// Time of the last use, RFC 3339, up to a minute late.
    last_used_at: Option<String>,
}

impl From<&Stored<Token>> for TokenBody {
    fn from(stored: &Stored<Token>) -> Self {
        let Token { user, name, made_by, scopes, session_of, created_at, expires_at, last_used_at, .. } =
            stored.body.clone();
        Self {
            id: stored.id.clone(),
            user_id: user,
            name,
            made_by,
            scopes,
            session_of,
            created_at: timestamps::text(created_at),
            expires_at: expires_at.map(timestamps::text),
            last_used_at: last_used_at.map(timestamps::text),
        }
    }
}

/// A page of credentials.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    /// Members in the order of their ids.
    tokens: Vec<TokenBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// A credential to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateToken {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Id of the member; default: the caller. Only admins can create credentials for other members.
    user_id: Option<String>,
    /// Restricts the credential to these permissions; by default it has all permissions of the member.
    #[serde(default)]
    scopes: Vec<Permission>,
    /// Id of the execution, for the credential of its session. Such a credential does not represent a person.
    session_of: Option<String>,
    /// Expiration time, such as 2026-02-07T12:00:00Z; by default the credential does not expire.
    expires_at: Option<String>,
}

/// A created credential. Only this response contains the token.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Created {
    /// Token for `Authorization: Bearer …`.
    token: String,
    /// Unique id.
    id: String,
    /// Id of the member.
    user_id: String,
    /// Expiration time, RFC 3339; null if the credential does not expire.
    expires_at: Option<String>,
}

/// List the caller's credentials; for admins, all credentials of the organization.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", params(PageQuery),
    extensions(("x-permission" = json!("tokens:own"))),
    responses((status = 200, body = Tokens)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Tokens>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let name = if caller.role.is_admin() {
            ("organization", caller.organization.clone())
        } else {
            ("member", Token::of_member(&caller.organization, &caller.user))
        };
        let listing = Listing { name: Some(name), after: page.cursor, most, ..Listing::default() };
        let found = Repository::of(app.catalogue(), "").list::<Token>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(Tokens { tokens: found.rows.iter().map(TokenBody::from).collect(), next_cursor }))
    })
    .await
}

/// Create a credential. A credential with scopes cannot create one with further scopes.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = CreateToken,
    extensions(("x-permission" = json!("tokens:own"))),
    responses((status = 201, body = Created), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateToken>,
) -> Result<(StatusCode, Json<Created>)> {
    if !(1..=200).contains(&body.name.chars().count()) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    let expires_at = body.expires_at.as_deref().map(|text| timestamps::read("expiresAt", text)).transpose()?;
    if expires_at.is_some_and(|at| at <= now_ms()) {
        return Err(Problem::field("expiresAt", "it has passed already"));
    }
    app.run(move |app| {
        // A new credential expires no later than the credential that creates it.
        let expires_at = [expires_at, caller.expires_at].into_iter().flatten().min();
        let text = with_retries(app.catalogue(), TRIES, || create_change(app, &caller, &body, expires_at))?;
        let user_id = body.user_id.unwrap_or(caller.user);
        let (token, expires_at) = (text.reveal(), expires_at.map(timestamps::text));
        Ok((StatusCode::CREATED, Json(Created { token, id: text.id, user_id, expires_at })))
    })
    .await
}

/// The change that creates a credential, and its text.
fn create_change(
    app: &App,
    caller: &Caller,
    body: &CreateToken,
    expires_at: Option<u64>,
) -> Result<(Change, TokenText)> {
    let user = body.user_id.as_deref().unwrap_or(&caller.user);
    let (installation, members) =
        (Repository::of(app.catalogue(), ""), Repository::of(app.catalogue(), &caller.organization));
    let member = members.get::<Member>(user)?;
    check_owner(caller, user, member.as_ref())?;
    check_scopes(caller, &body.scopes)?;
    let member = member.ok_or_else(|| no_member(user))?;
    let mut session_of = None;
    if let Some(execution) = &body.session_of {
        let row = crate::auth::execution_access::actionable_execution(app, caller, execution)?;
        crate::auth::execution_access::check_control(caller, &row)?;
        session_of = Some(row.id);
    }
    let expired = check_count(installation, &caller.organization, user, session_of.as_deref())?;
    let own = installation.get::<Token>(&caller.token)?;
    let own = own.ok_or_else(|| Problem::new(Code::Unauthorized, "This credential has just been revoked."))?;
    let text = TokenText::new()?;
    let token = Token {
        organization: caller.organization.clone(),
        user: user.into(),
        name: body.name.clone(),
        // Inherits the creator of the credential in use, so that deriving a credential does not hide that creator.
        made_by: caller.made_by.clone().filter(|_| user == caller.user).unwrap_or_else(|| caller.user.clone()),
        hash: text.hash().hex(),
        scopes: body.scopes.clone(),
        session_of,
        created_at: now_ms(),
        expires_at,
        last_used_at: None,
        sign_ins: Vec::new(),
        signed_in_by: None,
        known_to: known_to(caller, user),
        is_by_owner: caller.role == Role::Owner,
    };
    // Writes the member and the caller's credential unchanged too, so that a concurrent removal, promotion or
    // revocation makes this change fail.
    let mut puts = vec![
        installation.put(&text.id, &token, 0)?,
        installation.put(&own.id, &own.body, own.version)?,
        members.put(user, &member.body, member.version)?,
    ];
    let mut removals = Vec::new();
    for stored in expired.iter().filter(|stored| stored.id != own.id) {
        puts.push(installation.put(&stored.id, &RevokedToken::of(&stored.body, now_ms()), 0)?);
        removals.push(Removal { expected: None, ..installation.removal(stored) });
    }
    let audit = vec![entry(caller, "token.create", &text.id, described(&token))];
    Ok((Change { puts, removals, audit, sealing: *app.engine.key() }, text))
}

/// Rejects one more token of a member with many. Concurrent creations conflict, because each writes the member. Returns
/// the oldest expired tokens, which are too many to stay listed.
fn check_count(
    installation: Repository<'_>,
    organization: &str,
    user: &str,
    session_of: Option<&str>,
) -> Result<Vec<Stored<Token>>> {
    let (now, mut count, mut of_sessions, mut expired) = (now_ms(), 0, 0, Vec::new());
    for stored in installation.all::<Token>(Some(("member", Token::of_member(organization, user)))) {
        let stored = stored?;
        let Token { expires_at, session_of: of, signed_in_by, .. } = &stored.body;
        match (expires_at, signed_in_by) {
            // Tokens of sign-ins have a bound of their own.
            (_, Some(_)) => {}
            (Some(at), None) if *at <= now => expired.push(stored),
            _ => {
                count += usize::from(of.as_deref() == session_of);
                of_sessions += usize::from(of.is_some());
            }
        }
    }
    let is_over = session_of.is_some() && of_sessions >= SESSION_TOKENS_MAX;
    if count < TOKENS_MAX && !is_over {
        expired.sort_by_key(|stored| std::cmp::Reverse(stored.body.expires_at));
        return Ok(expired.split_off(EXPIRED_MAX.min(expired.len())));
    }
    let most = if is_over { SESSION_TOKENS_MAX } else { TOKENS_MAX };
    let message = format!(
        "`{user}` has {most} valid tokens of this kind: revoke unused ones (`GET /api/tokens` has the time of their last use, \
         `DELETE /api/tokens/{{id}}` revokes one), or create them with an end (`expiresAt`)."
    );
    Err(Problem::new(Code::Conflict, message))
}

/// The admin who knows the secret of a new credential. Owners are omitted: they may change the approvers anyway.
fn known_to(caller: &Caller, user: &str) -> Option<String> {
    let is_made_for_another = user != caller.user && caller.role != Role::Owner;
    caller.known_to.clone().or_else(|| is_made_for_another.then(|| caller.user.clone()))
}

/// The audit detail of a credential: its member and its restrictions.
fn described(token: &Token) -> Value {
    let scopes: Vec<Value> = token.scopes.iter().map(|scope| scope.name().into()).collect();
    let fields: [(&str, Option<Value>); 5] = [
        ("user", Some(token.user.as_str().into())),
        ("scopes", (!scopes.is_empty()).then(|| scopes.into())),
        ("knownTo", token.known_to.as_deref().map(Into::into)),
        ("sessionOf", token.session_of.as_deref().map(Into::into)),
        ("expiresAt", token.expires_at.map(|at| timestamps::text(at).into())),
    ];
    Value::map(fields.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

/// Checks whose credentials the caller may manage: their own; as an admin those of all members except owners; those of
/// operators only as an operator.
fn check_owner(caller: &Caller, user: &str, member: Option<&Stored<Member>>) -> Result<()> {
    if user == caller.user {
        return Ok(());
    }
    if !caller.role.is_admin() {
        return Err(Problem::new(Code::Forbidden, "Only an admin creates or revokes credentials of others."));
    }
    let member = member.ok_or_else(|| no_member(user))?;
    if member.body.role == Role::Owner && caller.role != Role::Owner {
        return Err(Problem::new(Code::Forbidden, "Only an owner creates or revokes credentials of an owner."));
    }
    if member.body.is_operator && !caller.has(Permission::InstallationWrite) {
        let message = "Only an operator creates or revokes credentials of other operators.";
        return Err(Problem::new(Code::Forbidden, message));
    }
    Ok(())
}

fn no_member(user: &str) -> Problem {
    let message = format!("There is no member `{user}` in this organization: `GET /api/members` lists its members.");
    Problem::new(Code::NotFound, message)
}

fn check_scopes(caller: &Caller, scopes: &[Permission]) -> Result<()> {
    let is_more = |scope: &&Permission| !caller.scopes.contains(scope);
    if caller.scopes.is_empty() {
        return Ok(());
    }
    if scopes.is_empty() || scopes.iter().any(|scope| is_more(&scope)) {
        let message = "This credential has scopes: a token that it creates must have a subset of them.";
        return Err(Problem::new(Code::Forbidden, message));
    }
    Ok(())
}

/// Revoke a credential. It becomes invalid immediately.
#[utoipa::path(delete, path = "/api/tokens/{id}", tag = "tokens", params(("id" = String, Path)),
    extensions(("x-permission" = json!("tokens:own"))),
    responses((status = 204), (status = 409, body = ProblemBody)))]
async fn revoke(State(app): State<App>, caller: Caller, PathParams(id): PathParams<String>) -> Result<StatusCode> {
    app.run(move |app| {
        let installation = Repository::of(app.catalogue(), "");
        let stored = installation.get::<Token>(&id)?;
        let is_theirs = |stored: &Stored<Token>| {
            stored.body.organization == caller.organization && caller.may_act_for(&stored.body.user)
        };
        let stored = stored.filter(is_theirs).ok_or_else(|| Problem::not_found("token"))?;
        let member = Repository::of(app.catalogue(), &caller.organization).get::<Member>(&stored.body.user)?;
        if member.is_some() {
            check_owner(&caller, &stored.body.user, member.as_ref())?;
        }
        let removals = vec![installation.removal(&stored)];
        let audit = vec![entry(&caller, "token.revoke", &id, Value::Null)];
        // Ignores the version, because the time of last use may be updated concurrently.
        let removals = removals.into_iter().map(|removal| Removal { expected: None, ..removal });
        let puts = vec![installation.put(&id, &RevokedToken::of(&stored.body, now_ms()), 0)?];
        let change = Change { removals: removals.collect(), puts, audit, sealing: *app.engine.key() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::not_found("token"))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;

    use super::*;

    fn token(expires_at: Option<u64>, session_of: Option<String>) -> Token {
        Token {
            organization: "acme".into(),
            user: "vic".into(),
            name: "n".into(),
            hash: String::new(),
            made_by: "vic".into(),
            scopes: Vec::new(),
            session_of,
            created_at: 0,
            expires_at,
            last_used_at: None,
            sign_ins: Vec::new(),
            signed_in_by: None,
            known_to: None,
            is_by_owner: false,
        }
    }

    #[test]
    fn sessions_of_all_executions_and_expired_tokens_have_a_bound() {
        let store = MemoryStore::new();
        let installation = Repository::of(&store, "");
        let keep = |tokens: Vec<(String, Token)>| {
            let puts = tokens.iter().map(|(id, token)| installation.put(id, token, 0).unwrap()).collect();
            apply(&store, &Change { puts, ..Change::default() }).unwrap().unwrap();
        };
        let check = |session_of: Option<&str>| check_count(installation, "acme", "vic", session_of);
        keep((1..=60).map(|number| (format!("old{number}"), token(Some(number), None))).collect());
        let mut retired: Vec<_> =
            check(None).unwrap().into_iter().map(|stored| stored.body.expires_at.unwrap()).collect();
        retired.sort_unstable();
        assert_eq!(retired, (1..=10).collect::<Vec<_>>(), "the oldest go");
        let of = |number: usize| Some(format!("execution{number}"));
        keep((1..SESSION_TOKENS_MAX).map(|number| (format!("s{number}"), token(None, of(number)))).collect());
        assert!(check(Some("new")).is_ok() && check(None).is_ok());
        keep(vec![("last".into(), token(None, of(0)))]);
        assert!(check(Some("new")).is_err_and(|problem| problem.message.contains("1000")));
        assert!(check(None).is_ok(), "tokens of no session have a bound of their own");
    }
}
