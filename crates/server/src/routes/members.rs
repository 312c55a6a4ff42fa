//! Members of an organization: lists, adds, changes and removes them.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::{Change, Put as Putting, Removal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::tokens::TRIES;
use crate::{
    app::App,
    auth::{
        caller::Caller,
        permission::{Permission, Role},
    },
    http::{
        body::{Body, Tag, Tagged, check_seen, if_match},
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Identity, Member, RemovedMember, RevokedToken, Token,
        repository::{Listing, Repository, Stored, entry, with_retries},
    },
    services::bootstrap::check_member_id,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, remove)).routes(routes!(me))
}

/// A member of the organization.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemberBody {
    /// Id in journals and in the audit log.
    id: String,
    /// Role in the organization.
    role: Role,
    /// Display name.
    name: Option<String>,
    /// True for operators of the installation.
    operator: bool,
    /// Time of creation, RFC 3339.
    created_at: String,
}

impl From<&Stored<Member>> for MemberBody {
    fn from(stored: &Stored<Member>) -> Self {
        let Member { role, name, is_operator, created_at } = stored.body.clone();
        Self { id: stored.id.clone(), role, name, operator: is_operator, created_at: timestamps::text(created_at) }
    }
}

fn tagged(stored: &Stored<Member>) -> Tagged<MemberBody> {
    Tagged { tag: stored.tag(), body: MemberBody::from(stored) }
}

/// A page of members.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Members {
    /// Members in the order of their ids.
    members: Vec<MemberBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// Identity of the caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Me {
    /// Organization that the credential belongs to.
    organization_id: String,
    /// Id of the member.
    user_id: String,
    /// Role in the organization.
    role: Role,
    /// True if the credential represents a person, who can decide approvals.
    is_person: bool,
    /// Permissions of the credential.
    permissions: Vec<&'static str>,
}

/// Get the member and the permissions of the credential. Requires no permission.
#[utoipa::path(get, path = "/api/me", tag = "members", extensions(("x-permission" = json!("credential"))),
    responses((status = 200, body = Me)))]
async fn me(caller: Caller) -> Json<Me> {
    let known = crate::auth::permission::PERMISSIONS.iter();
    let permissions = known.filter(|(permission, _, _)| caller.has(*permission)).map(|(_, name, _)| *name).collect();
    Json(Me {
        is_person: caller.is_person(),
        organization_id: caller.organization,
        user_id: caller.user,
        role: caller.role,
        permissions,
    })
}

/// List the members of the organization.
#[utoipa::path(get, path = "/api/members", tag = "members", params(PageQuery),
    extensions(("x-permission" = json!("members:read"))),
    responses((status = 200, body = Members)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Members>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let listing = Listing { after: page.cursor, most, ..Listing::default() };
        let found = Repository::of(app.catalogue(), &caller.organization).list::<Member>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(Members { members: found.rows.iter().map(MemberBody::from).collect(), next_cursor }))
    })
    .await
}

/// Get a member. The `ETag` also changes when a credential of the member is created.
#[utoipa::path(get, path = "/api/members/{id}", tag = "members", params(("id" = String, Path)),
    extensions(("x-permission" = json!("members:read"))),
    responses((status = 200, body = MemberBody)))]
async fn get(State(app): State<App>, caller: Caller, PathParams(id): PathParams<String>) -> Result<Tagged<MemberBody>> {
    app.run(move |app| Ok(tagged(&Repository::of(app.catalogue(), &caller.organization).require(&id)?))).await
}

/// Desired state of a member. Omitted fields keep their values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Put {
    /// Role in the organization. Required for new members.
    role: Option<Role>,
    /// Display name.
    #[schema(max_length = 200)]
    name: Option<String>,
    /// True to make the member an operator of the installation. Requires the role `owner`; only operators can change
    /// it.
    operator: Option<bool>,
    /// True to forget the identity at the sign-in provider, for example after a change of provider. The next sign-in
    /// with the member's name then binds a new identity. Credentials stay valid.
    #[serde(default, rename = "forgetIdentity")]
    forget_identity: bool,
}

impl Put {
    /// Applies the request to the stored member.
    fn over(&self, before: Option<&Member>) -> Result<Member> {
        let new = || Problem::field("role", "it is required for a new member");
        let role = self.role.or(before.map(|before| before.role)).ok_or_else(new)?;
        let stays = before.is_some_and(|before| before.is_operator) && role == Role::Owner;
        let is_operator = self.operator.unwrap_or(stays);
        if is_operator && role != Role::Owner {
            return Err(Problem::field("operator", "only an owner runs the installation"));
        }
        let name = self.name.clone().or_else(|| before?.name.clone());
        Ok(Member { role, name, is_operator, created_at: before.map_or_else(now_ms, |before| before.created_at) })
    }
}

/// Checks that only owners change owners, and only operators change operators.
fn check_rank<'a>(caller: &Caller, members: impl IntoIterator<Item = &'a Member>) -> Result<()> {
    for member in members {
        if member.role == Role::Owner && caller.role != Role::Owner {
            return Err(Problem::new(Code::Forbidden, "Only an owner adds or changes owners."));
        }
        if member.is_operator && !caller.has(Permission::InstallationWrite) {
            let message = "Only an operator adds or changes operators.";
            return Err(Problem::new(Code::Forbidden, message));
        }
    }
    Ok(())
}

/// A write of another owner who remains, and of another operator if an operator leaves: an organization keeps an owner,
/// and an installation keeps an operator. The remaining member is part of the change, so that two concurrent departures
/// conflict.
fn remaining_owner(
    repository: Repository<'_>,
    id: &str,
    was: &Member,
    is: Option<&Member>,
) -> Result<Option<mainspring_store::Put>> {
    let goes = |holds: fn(&Member) -> bool| holds(was) && !is.is_some_and(holds);
    let operator_goes = goes(|member| member.is_operator);
    if !operator_goes && !goes(|member| member.role == Role::Owner) {
        return Ok(None);
    }
    let owners = repository.all::<Member>(Some(("role", "owner".into())));
    let stays = |other: &Stored<Member>| other.id != id && (other.body.is_operator || !operator_goes);
    let mut others = owners.filter(|other| other.as_ref().map_or(true, stays));
    let what = if operator_goes { "the last operator of the installation" } else { "the organization's last owner" };
    let last = || Problem::new(Code::Conflict, format!("This is {what}: add another one first."));
    let other = others.next().ok_or_else(last)??;
    repository.put(&other.id, &other.body, other.version).map(Some)
}

/// True if a member becomes an owner or an operator, for whom not every admin may create credentials.
fn is_promoted(was: &Member, is: &Member) -> bool {
    was.role != Role::Owner && is.role == Role::Owner || !was.is_operator && is.is_operator
}

/// Revokes all credentials of a member with their sessions: the removals, the tombstones, and the ids for the audit
/// log.
fn revoked(app: &App, caller: &Caller, member: &str) -> Result<(Vec<Removal>, Vec<Putting>, Value)> {
    let installation = Repository::of(app.catalogue(), "");
    let theirs = ("member", Token::of_member(&caller.organization, member));
    let now = now_ms();
    let revoke = |token: Result<Stored<Token>>| {
        let token = token?;
        let kept = installation.put(&token.id, &RevokedToken::of(&token.body, now), 0)?;
        Ok((Removal { expected: None, ..installation.removal(&token) }, kept))
    };
    let revoked = installation.all::<Token>(Some(theirs)).map(revoke).collect::<Result<Vec<_>>>()?;
    let (removals, kept): (Vec<_>, Vec<_>) = revoked.into_iter().unzip();
    let ids: Vec<Value> = removals.iter().map(|removal| removal.id.as_str().into()).collect();
    Ok((removals, kept, ids.into()))
}

/// Create or update a member. Omitted fields keep their values. A member who becomes an owner or an operator loses all
/// existing credentials. With `If-Match`, only if the version matches the `ETag`.
#[utoipa::path(put, path = "/api/members/{id}", tag = "members", params(("id" = String, Path)), request_body = Put,
    extensions(("x-permission" = json!("members:write"))),
    responses((status = 200, body = MemberBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    Body(body): Body<Put>,
) -> Result<Tagged<MemberBody>> {
    check_member_id("id", &id)?;
    if body.name.as_ref().is_some_and(|name| name.is_empty() || name.chars().count() > 200) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let stored = with_retries(app.catalogue(), TRIES, || put_change(app, &caller, &id, &body, seen))?;
        Ok(tagged(&stored))
    })
    .await
}

/// The change that a request makes to a member.
fn put_change(app: &App, caller: &Caller, id: &str, put: &Put, seen: Option<Tag>) -> Result<(Change, Stored<Member>)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let before = repository.get::<Member>(id)?;
    check_seen(seen, before.as_ref().map(Stored::tag))?;
    let version = before.as_ref().map_or(0, |before| before.version);
    let before = before.map(|before| before.body);
    let member = put.over(before.as_ref())?;
    check_rank(caller, before.iter().chain([&member]))?;
    let mut puts = vec![repository.put(id, &member, version)?];
    if let Some(was) = &before {
        puts.extend(remaining_owner(repository, id, was, Some(&member))?);
    }
    let role = serde_json::to_value(member.role).ok().and_then(|role| Some(role.as_str()?.to_string()));
    let mut detail: Vec<(&str, Value)> = vec![("role", role.into()), ("operator", member.is_operator.into())];
    // Earlier credentials must not gain the new rights: others may know their secrets.
    let is_promoted = before.is_some_and(|before| is_promoted(&before, &member));
    let (mut removals, kept, ids) = if is_promoted { revoked(app, caller, id)? } else { Default::default() };
    puts.extend(kept);
    removals.extend(repository.get::<RemovedMember>(id)?.map(|departed| repository.removal(&departed)));
    let forgotten = if put.forget_identity { repository.get::<Identity>(id)? } else { None };
    if let Some(identity) = forgotten {
        removals.push(repository.removal(&identity));
        detail.push(("forgotIssuer", identity.body.issuer.into()));
    }
    detail.extend(is_promoted.then_some(("revoked", ids)));
    let audit = vec![entry(caller, "member.put", id, Value::map(detail))];
    let change = Change { removals, puts, audit, sealing: *app.engine.key() };
    Ok((change, Stored { id: id.into(), version: version + 1, body: member }))
}

/// Remove a member and invalidate the member's credentials. The workflows stay, and admins can change them.
#[utoipa::path(delete, path = "/api/members/{id}", tag = "members", params(("id" = String, Path)),
    extensions(("x-permission" = json!("members:write"))),
    responses((status = 204), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody)))]
async fn remove(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        with_retries(app.catalogue(), TRIES, || {
            let stored = repository.require::<Member>(&id)?;
            check_seen(seen, Some(stored.tag()))?;
            check_rank(&caller, [&stored.body])?;
            let mut puts: Vec<_> = remaining_owner(repository, &id, &stored.body, None)?.into_iter().collect();
            let before = repository.get::<RemovedMember>(&id)?.map_or(0, |departed| departed.version);
            puts.push(repository.put(&id, &RemovedMember { removed_at: now_ms() }, before)?);
            let (mut removals, kept, ids) = revoked(app, &caller, &id)?;
            puts.extend(kept);
            removals.insert(0, repository.removal(&stored));
            // A later sign-in under this id may be another person.
            removals.extend(repository.get::<Identity>(&id)?.map(|identity| repository.removal(&identity)));
            let audit = vec![entry(&caller, "member.remove", &id, Value::map([("revoked", ids)]))];
            Ok((Change { removals, puts, audit, sealing: *app.engine.key() }, ()))
        })?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
