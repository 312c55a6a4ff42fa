//! Secrets of the organization: lists, sets and removes them. No response contains a value.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_effects::secrets::SecretValue;
use mainspring_kernel::secret::is_secret_name;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Secret,
        repository::{Listing, Repository, Stored},
    },
    services::{
        stored_secrets::{NewSecret, WORKFLOWS_MAX, remove, set},
        workflow_names::resolve,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, delete))
}

/// A secret without its value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SecretBody {
    /// Name, as in `{secret: NAME}`.
    name: String,
    /// Ids of the workflows that may use it; null for all workflows.
    workflows: Option<Vec<String>>,
    /// Id of the member who set it last.
    set_by: String,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
}

impl From<&Stored<Secret>> for SecretBody {
    fn from(stored: &Stored<Secret>) -> Self {
        let Secret { workflows, set_by, created_at, updated_at, .. } = stored.body.clone();
        let (created_at, updated_at) = (timestamps::text(created_at), timestamps::text(updated_at));
        Self { name: stored.id.clone(), workflows, set_by, created_at, updated_at }
    }
}

/// A page of secrets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Secrets {
    /// Secrets in the order of their names.
    secrets: Vec<SecretBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// The value of a secret, and the workflows that may use it.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SetSecret {
    /// The value: 8 bytes to 32 KiB of text.
    #[schema(min_length = 8, max_length = 32768)]
    value: String,
    /// Ids or slugs of the workflows that may use it; null for all workflows of the organization.
    workflows: Option<Vec<String>>,
}

/// List the secrets of the organization. Values are not returned.
#[utoipa::path(get, path = "/api/secrets", tag = "secrets", params(PageQuery),
    extensions(("x-permission" = json!("secrets:read"))),
    responses((status = 200, body = Secrets)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Secrets>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let listing = Listing { after: page.cursor, most, ..Listing::default() };
        let found = Repository::of(app.catalogue(), &caller.organization).list::<Secret>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(Secrets { secrets: found.rows.iter().map(SecretBody::from).collect(), next_cursor }))
    })
    .await
}

/// Set a secret: create it, or replace its value and its workflows. It is stored encrypted and never returned.
#[utoipa::path(put, path = "/api/secrets/{name}", tag = "secrets", params(("name" = String, Path)),
    request_body = SetSecret, extensions(("x-permission" = json!("secrets:write"))),
    responses((status = 200, body = SecretBody), (status = 201, body = SecretBody),
        (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    PathParams(name): PathParams<String>,
    Body(body): Body<SetSecret>,
) -> Result<(StatusCode, Json<SecretBody>)> {
    if !is_secret_name(&name) {
        return Err(Problem::field("name", "use 1 to 64 letters, digits, `-`, `_` and `.`"));
    }
    let value = SecretValue::new(&body.value).map_err(|why| Problem::field("value", why))?;
    if body.workflows.as_ref().is_some_and(|workflows| !(1..=WORKFLOWS_MAX).contains(&workflows.len())) {
        let message = format!("name 1 to {WORKFLOWS_MAX} workflows, or null for all");
        return Err(Problem::field("workflows", message));
    }
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let id_of = |name: &String| match resolve(repository, &caller.user, name)? {
            Some(workflow) => Ok((workflow.id, workflow.body.created_at)),
            None => Err(Problem::field("workflows", format!("there is no workflow `{name}`"))),
        };
        let ids = body.workflows.as_ref().map(|workflows| workflows.iter().map(id_of).collect::<Result<Vec<_>>>());
        let new = NewSecret { name: &name, value: &value, workflows: ids.transpose()? };
        let (stored, is_new) = set(app.catalogue(), &app.settings.encryption_keys, &caller, &new)?;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok((status, Json(SecretBody::from(&stored))))
    })
    .await
}

/// Remove a secret. Steps that use it fail from then on.
#[utoipa::path(delete, path = "/api/secrets/{name}", tag = "secrets", params(("name" = String, Path)),
    extensions(("x-permission" = json!("secrets:write"))),
    responses((status = 204), (status = 404, body = ProblemBody)))]
async fn delete(State(app): State<App>, caller: Caller, PathParams(name): PathParams<String>) -> Result<StatusCode> {
    app.run(move |app| {
        remove(app.catalogue(), app.engine.key(), &caller, &name)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
