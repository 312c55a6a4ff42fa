//! Reads and changes the caller's organization, and creates organizations.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::value::Value;
use mainspring_store::Change;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, token::TokenText},
    http::{
        body::{Body, Tagged, check_seen, if_match},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Limits, Organization,
        repository::{Repository, Stored, apply, entry},
    },
    services::{
        bootstrap::{NewOrganization, check_id, check_member_id, organization_change},
        organization_settings::{self, Update, check, check_features, check_name},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, update)).routes(routes!(create))
}

/// An organization.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationBody {
    /// Unique id.
    id: String,
    /// Display name.
    name: String,
    /// Features by name.
    features: BTreeMap<String, bool>,
    /// Limits of concurrent executions.
    limits: Limits,
    /// Time of creation, RFC 3339.
    created_at: String,
}

fn tagged(stored: &Stored<Organization>) -> Tagged<OrganizationBody> {
    let Organization { name, created_at, features, limits, .. } = stored.body.clone();
    let body =
        OrganizationBody { id: stored.id.clone(), name, features, limits, created_at: timestamps::text(created_at) };
    Tagged { body, tag: stored.tag() }
}

/// Get the caller's organization.
#[utoipa::path(get, path = "/api/organization", tag = "organizations",
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = OrganizationBody)))]
async fn get(State(app): State<App>, caller: Caller) -> Result<Tagged<OrganizationBody>> {
    app.run(move |app| Ok(tagged(&Repository::of(app.catalogue(), "").require(&caller.organization)?))).await
}

/// Change settings of the caller's organization.
#[utoipa::path(patch, path = "/api/organization", tag = "organizations", request_body = Update,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = OrganizationBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    headers: axum::http::HeaderMap,
    Body(body): Body<Update>,
) -> Result<Tagged<OrganizationBody>> {
    let seen = if_match(&headers)?;
    check(&body)?;
    app.run(move |app| {
        let stored = Repository::of(app.catalogue(), "").require::<Organization>(&caller.organization)?;
        check_seen(seen, Some(stored.tag()))?;
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        let stored = organization_settings::add(app, &caller, stored, body, &mut change)?;
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        app.engine.limits_changed(&stored.id);
        Ok(tagged(&stored))
    })
    .await
}

/// An organization to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateOrganization {
    /// Unique id.
    id: String,
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Id of the first member, who gets the role `owner`.
    owner: String,
    /// Features by name: `workflow_runtime_v1`, which permits starts. Omitted features are off.
    #[serde(default)]
    features: BTreeMap<String, bool>,
}

/// A created organization. Only this response contains the owner's token.
#[derive(Debug, Serialize, ToSchema)]
struct Created {
    /// Unique id.
    id: String,
    /// Id of the first member.
    owner: String,
    /// The owner's first credential.
    token: String,
}

/// Create an organization with an owner and a credential of the owner. Requires an operator of the installation.
/// Executions cannot start until the feature `workflow_runtime_v1` is enabled, by `features` here or by `PATCH
/// /api/organization`.
#[utoipa::path(post, path = "/api/organizations", tag = "organizations", request_body = CreateOrganization,
    extensions(("x-permission" = json!("installation:write"))),
    responses((status = 201, body = Created), (status = 409, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateOrganization>,
) -> Result<(StatusCode, Json<Created>)> {
    check_id("id", &body.id)?;
    check_member_id("owner", &body.owner)?;
    check_name(body.name.as_deref())?;
    check_features(Some(&body.features))?;
    app.run(move |app| {
        let token = TokenText::new()?;
        let name = body.name.unwrap_or_else(|| body.id.clone());
        let new = NewOrganization { id: &body.id, name: &name, owner: &body.owner, features: body.features };
        let mut change = organization_change(app.catalogue(), new, &token, app.engine.key(), Some(&caller))?;
        change.audit.push(entry(&caller, "organization.create", &body.id, Value::Null));
        let taken = |_| Problem::new(Code::Conflict, format!("There is an organization `{}` already.", body.id));
        apply(app.catalogue(), &change)?.map_err(taken)?;
        Ok((StatusCode::CREATED, Json(Created { id: body.id.clone(), owner: body.owner, token: token.reveal() })))
    })
    .await
}
