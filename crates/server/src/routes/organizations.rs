//! The caller's organisation, and new ones.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::value::Value;
use mainspring_store::Change;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::{Body, Tagged, if_match},
    clock,
    first::{check_id, check_member_id, organization},
    identity::{Caller, TokenText},
    nouns::{Limits, Organization, RUNTIME_FEATURE},
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::{Held, Shelf, entry, make},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, update)).routes(routes!(create))
}

/// An organisation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationBody {
    /// Its id.
    id: String,
    /// What people call it.
    name: String,
    /// Features by name.
    features: BTreeMap<String, bool>,
    /// How much may be under way at a time.
    limits: Limits,
    /// Since when.
    created_at: String,
}

fn tagged(held: &Held<Organization>) -> Tagged<OrganizationBody> {
    let Organization { name, created_at, features, limits } = held.body.clone();
    let body = OrganizationBody { id: held.id.clone(), name, features, limits, created_at: clock::text(created_at) };
    Tagged { body, version: held.version }
}

/// The caller's organisation.
#[utoipa::path(get, path = "/api/organization", tag = "organizations",
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = OrganizationBody)))]
async fn get(State(app): State<App>, caller: Caller) -> Answer<Tagged<OrganizationBody>> {
    app.run(move |app| Ok(tagged(&Shelf::of(app.catalogue(), "").must(&caller.organization)?))).await
}

/// Settings that are to change. What is not named stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// What people call it.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Features by name: `workflow_runtime_v1`.
    features: Option<BTreeMap<String, bool>>,
    /// How much may be under way at a time.
    limits: Option<Limits>,
}

/// Change settings of the caller's organisation.
#[utoipa::path(patch, path = "/api/organization", tag = "organizations", request_body = Update,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = OrganizationBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    headers: axum::http::HeaderMap,
    Body(body): Body<Update>,
) -> Answer<Tagged<OrganizationBody>> {
    let seen = if_match(&headers)?;
    check(&body)?;
    app.run(move |app| {
        let shelf = Shelf::of(app.catalogue(), "");
        let mut held = shelf.must::<Organization>(&caller.organization)?;
        if seen.is_some_and(|seen| seen != held.version) {
            return Err(Problem::new(
                Code::PreconditionFailed,
                "It has changed since: read it again for its new ETag.",
            ));
        }
        held.body.name = body.name.unwrap_or(held.body.name);
        held.body.limits = body.limits.unwrap_or(held.body.limits);
        held.body.features.extend(body.features.unwrap_or_default());
        let features = held.body.features.iter().map(|(name, is_on)| (name.as_str(), Value::from(*is_on)));
        let detail = Value::map([("features", Value::map(features))]);
        let puts = vec![shelf.put(&held.id, &held.body, held.version)?];
        let audit = vec![entry(&caller, "organization.update", &held.id, detail)];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        make(app.catalogue(), &change)?.map_err(|_| Problem::raced())?;
        app.engine.limits_changed(&held.id);
        held.version += 1;
        Ok(tagged(&held))
    })
    .await
}

fn check(body: &Update) -> Answer<()> {
    if body.name.as_ref().is_some_and(|name| !(1..=200).contains(&name.chars().count())) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    let known = |name: &&String| *name != RUNTIME_FEATURE;
    if let Some(other) = body.features.iter().flat_map(BTreeMap::keys).find(known) {
        return Err(Problem::field("features", format!("`{other}` is no feature; there is {RUNTIME_FEATURE}")));
    }
    let of_nothing =
        |limits: Limits| limits.per_user == 0 || limits.per_organization == 0 || limits.per_workflow == Some(0);
    if body.limits.is_some_and(of_nothing) {
        return Err(Problem::field("limits", "a limit of 0 lets nothing run: turn the feature off instead"));
    }
    Ok(())
}

/// An organisation to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// Its id.
    id: String,
    /// What people call it.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Its first member, who owns it.
    owner: String,
}

/// An organisation that was made. This is the only answer that shows its owner's token.
#[derive(Debug, Serialize, ToSchema)]
struct Created {
    /// Its id.
    id: String,
    /// Its owner.
    owner: String,
    /// The owner's first credential.
    token: String,
}

/// Make an organisation with its owner and a credential of theirs: for those who run the installation.
#[utoipa::path(post, path = "/api/organizations", tag = "organizations", request_body = Create,
    extensions(("x-permission" = json!("installation:write"))),
    responses((status = 201, body = Created), (status = 409, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<Create>,
) -> Answer<(StatusCode, Json<Created>)> {
    check_id("id", &body.id)?;
    check_member_id("owner", &body.owner)?;
    if body.name.as_ref().is_some_and(|name| !(1..=200).contains(&name.chars().count())) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    app.run(move |app| {
        let token = TokenText::new()?;
        let name = body.name.unwrap_or_else(|| body.id.clone());
        let (mut change, _) = organization(app.catalogue(), &body.id, &name, &body.owner, &token, app.engine.key())?;
        change.audit.push(entry(&caller, "organization.create", &body.id, Value::Null));
        let taken = |_| Problem::new(Code::Conflict, format!("There is an organization `{}` already.", body.id));
        make(app.catalogue(), &change)?.map_err(taken)?;
        Ok((StatusCode::CREATED, Json(Created { id: body.id.clone(), owner: body.owner, token: token.reveal() })))
    })
    .await
}
