//! Who belongs to an organisation.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_engine::engine::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::{Change, Removal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::Body,
    clock,
    extract::{Asked, Named},
    first::check_member_id,
    identity::{Caller, Role},
    nouns::{Member, Token},
    page::{PageQuery, cursor, limit},
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::{Held, Listing, Shelf, entry, make},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, remove)).routes(routes!(me))
}

/// A member.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemberBody {
    /// What journals and the audit log call them.
    id: String,
    /// What they are there.
    role: Role,
    /// What people call them.
    name: Option<String>,
    /// Since when.
    created_at: String,
}

impl From<&Held<Member>> for MemberBody {
    fn from(held: &Held<Member>) -> Self {
        let Member { role, name, created_at, .. } = held.body.clone();
        Self { id: held.id.clone(), role, name, created_at: clock::text(created_at) }
    }
}

/// A page of members.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Members {
    /// By id.
    members: Vec<MemberBody>,
    /// What the next page is asked for with; null if there is none.
    next_cursor: Option<String>,
}

/// Who is asking.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Me {
    /// The organisation.
    organization_id: String,
    /// The member.
    user_id: String,
    /// What they are there.
    role: Role,
    /// Whether a person asks, who can answer for a decision.
    is_person: bool,
    /// What the credential may do.
    permissions: Vec<&'static str>,
}

/// Who the credential is.
#[utoipa::path(get, path = "/api/me", tag = "members", extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = Me)))]
async fn me(caller: Caller) -> Json<Me> {
    let known = crate::identity::PERMISSIONS.iter();
    let permissions = known.filter(|(permission, _, _)| caller.has(*permission)).map(|(_, name, _)| *name).collect();
    Json(Me {
        is_person: caller.is_person(),
        organization_id: caller.organization,
        user_id: caller.user,
        role: caller.role,
        permissions,
    })
}

/// The organisation's members.
#[utoipa::path(get, path = "/api/members", tag = "members", params(PageQuery),
    extensions(("x-permission" = json!("members:read"))),
    responses((status = 200, body = Members)))]
async fn list(State(app): State<App>, caller: Caller, Asked(page): Asked<PageQuery>) -> Answer<Json<Members>> {
    let limit = limit(page.limit)?;
    app.run(move |app| {
        let listing = Listing { after: page.cursor, limit, ..Listing::default() };
        let found = Shelf::of(app.catalogue(), &caller.organization).list::<Member>(listing)?;
        let next_cursor = cursor(&found, limit, |last| last.id.clone());
        Ok(Json(Members { members: found.iter().map(MemberBody::from).collect(), next_cursor }))
    })
    .await
}

/// What a member is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Put {
    /// What they are there.
    role: Role,
    /// What people call them.
    #[schema(max_length = 200)]
    name: Option<String>,
}

/// Owners are made and unmade by owners.
fn check_owners(caller: &Caller, roles: &[Role]) -> Answer<()> {
    if roles.contains(&Role::Owner) && caller.role != Role::Owner {
        return Err(Problem::new(Code::Forbidden, "Only an owner makes or changes owners."));
    }
    Ok(())
}

/// The last owner stays one: an organisation without would be nobody's. It stands in the change itself, because two owners
/// may go at the same moment.
fn check_last(shelf: Shelf<'_>, id: &str) -> Answer<mainspring_store::Put> {
    let owners = shelf.all::<Member>(Some(("role", "owner".into())))?;
    let other = owners.iter().find(|owner| owner.id != id);
    let last = || Problem::new(Code::Conflict, "This is the organization's last owner: make another one first.");
    let other = other.ok_or_else(last)?;
    shelf.put(&other.id, &other.body, other.version)
}

fn tokens_of(app: &App, caller: &Caller, member: &str) -> Answer<Vec<Held<Token>>> {
    let theirs = ("member", Token::of_member(&caller.organization, member));
    Shelf::of(app.catalogue(), "").all::<Token>(Some(theirs))
}

/// Make somebody a member, or change what they are.
#[utoipa::path(put, path = "/api/members/{id}", tag = "members", params(("id" = String, Path)), request_body = Put,
    extensions(("x-permission" = json!("members:write"))),
    responses((status = 200, body = MemberBody), (status = 409, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Put>,
) -> Answer<Json<MemberBody>> {
    check_member_id("id", &id)?;
    if body.name.as_ref().is_some_and(|name| name.is_empty() || name.chars().count() > 200) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    app.run(move |app| {
        let shelf = Shelf::of(app.catalogue(), &caller.organization);
        let before = shelf.get::<Member>(&id)?;
        let was = before.as_ref().map(|before| before.body.role);
        check_owners(&caller, &[Some(body.role), was].into_iter().flatten().collect::<Vec<_>>())?;
        let member = match &before {
            Some(before) => Member {
                role: body.role,
                name: body.name.or(before.body.name.clone()),
                is_operator: before.body.is_operator && body.role == Role::Owner,
                ..before.body.clone()
            },
            None => Member { role: body.role, name: body.name, is_operator: false, created_at: now_ms() },
        };
        let version = before.map_or(0, |before| before.version);
        let mut puts = vec![shelf.put(&id, &member, version)?];
        if was == Some(Role::Owner) && body.role != Role::Owner {
            puts.push(check_last(shelf, &id)?);
        }
        let role = serde_json::to_value(body.role).ok().and_then(|role| Some(role.as_str()?.to_string()));
        let audit = vec![entry(&caller, "member.put", &id, Value::map([("role", role.as_deref().into())]))];
        // What an admin has made for somebody is no way to an owner's rights.
        let rises = body.role == Role::Owner && was.is_some_and(|was| was != Role::Owner);
        let theirs = if rises { tokens_of(app, &caller, &id)? } else { Vec::new() };
        let others = theirs.iter().filter(|token| token.body.made_by != id);
        let removals =
            others.map(|token| Removal { expected: None, ..Shelf::of(app.catalogue(), "").removal(token) }).collect();
        let change = Change { removals, puts, audit, sealing: *app.engine.key() };
        make(app.catalogue(), &change)?.map_err(|_| Problem::raced())?;
        Ok(Json(MemberBody::from(&Held { id, version: version + 1, body: member })))
    })
    .await
}

/// Remove a member: their credentials let nobody in any more. Their workflows stay, as an admin's to change.
#[utoipa::path(delete, path = "/api/members/{id}", tag = "members", params(("id" = String, Path)),
    extensions(("x-permission" = json!("members:write"))),
    responses((status = 204), (status = 409, body = ProblemBody)))]
async fn remove(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Answer<StatusCode> {
    app.run(move |app| {
        let shelf = Shelf::of(app.catalogue(), &caller.organization);
        let held = shelf.must::<Member>(&id)?;
        check_owners(&caller, &[held.body.role])?;
        let puts = if held.body.role == Role::Owner { vec![check_last(shelf, &id)?] } else { Vec::new() };
        let installation = Shelf::of(app.catalogue(), "");
        let tokens = tokens_of(app, &caller, &id)?;
        let of_token = |token| Removal { expected: None, ..installation.removal(token) };
        let removals = [shelf.removal(&held)].into_iter().chain(tokens.iter().map(of_token));
        let removals = removals.collect();
        let audit = vec![entry(&caller, "member.remove", &id, Value::Null)];
        let change = Change { removals, puts, audit, sealing: *app.engine.key() };
        make(app.catalogue(), &change)?.map_err(|_| Problem::raced())?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
