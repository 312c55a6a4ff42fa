//! Reads and changes the caller's organization, and creates organizations.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::value::{Map, Value};
use mainspring_store::Change;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::{Body, Tagged, check_seen, if_match, stated},
    clock,
    first::{New, check_id, check_member_id, organization},
    identity::{Caller, TokenText},
    nouns::{Limits, Organization, RUNTIME_FEATURE},
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::{Held, Shelf, entry, make},
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

fn tagged(held: &Held<Organization>) -> Tagged<OrganizationBody> {
    let Organization { name, created_at, features, limits } = held.body.clone();
    let body = OrganizationBody { id: held.id.clone(), name, features, limits, created_at: clock::text(created_at) };
    Tagged { body, tag: held.tag() }
}

/// Get the caller's organization.
#[utoipa::path(get, path = "/api/organization", tag = "organizations",
    extensions(("x-permission" = json!("organization:read"))),
    responses((status = 200, body = OrganizationBody)))]
async fn get(State(app): State<App>, caller: Caller) -> Answer<Tagged<OrganizationBody>> {
    app.run(move |app| Ok(tagged(&Shelf::of(app.catalogue(), "").must(&caller.organization)?))).await
}

/// Settings to change. Omitted settings keep their values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Features by name: `workflow_runtime_v1`.
    features: Option<BTreeMap<String, bool>>,
    /// Limits of concurrent executions.
    limits: Option<LimitsUpdate>,
}

/// Limits to change. Omitted limits keep their values.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LimitsUpdate {
    /// Executions of one member.
    #[schema(minimum = 1)]
    per_user: Option<u32>,
    /// Executions of the organization.
    #[schema(minimum = 1)]
    per_organization: Option<u32>,
    /// Executions of each workflow of the organization; null for no such limit.
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    per_workflow: Option<Option<u32>>,
}

impl LimitsUpdate {
    fn over(self, before: Limits) -> Limits {
        Limits {
            per_user: self.per_user.unwrap_or(before.per_user),
            per_organization: self.per_organization.unwrap_or(before.per_organization),
            per_workflow: self.per_workflow.unwrap_or(before.per_workflow),
        }
    }
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
) -> Answer<Tagged<OrganizationBody>> {
    let seen = if_match(&headers)?;
    check(&body)?;
    app.run(move |app| {
        let shelf = Shelf::of(app.catalogue(), "");
        let mut held = shelf.must::<Organization>(&caller.organization)?;
        check_seen(seen, Some(held.tag()))?;
        let before = held.body.clone();
        held.body.name = body.name.unwrap_or(held.body.name);
        held.body.limits = body.limits.unwrap_or_default().over(held.body.limits);
        held.body.features.extend(body.features.unwrap_or_default());
        let puts = vec![shelf.put(&held.id, &held.body, held.version)?];
        let audit = vec![entry(&caller, "organization.update", &held.id, changed(&before, &held.body))];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        make(app.catalogue(), &change)?.map_err(|_| Problem::raced())?;
        app.engine.limits_changed(&held.id);
        held.version += 1;
        Ok(tagged(&held))
    })
    .await
}

/// The changed settings with their new values, for the audit log.
fn changed(before: &Organization, now: &Organization) -> Value {
    let limits = |limits: Limits| {
        let Limits { per_user, per_organization, per_workflow } = limits;
        let all =
            [("perUser", Some(per_user)), ("perOrganization", Some(per_organization)), ("perWorkflow", per_workflow)];
        all.map(|(name, limit)| (name, Value::from(limit)))
    };
    let limits = limits(now.limits).into_iter().zip(limits(before.limits)).filter(|(now, before)| now != before);
    let limits: Map = limits.map(|((name, limit), _)| (name.to_string(), limit)).collect();
    let features = now.features.iter().filter(|(name, is_on)| before.features.get(*name) != Some(*is_on));
    let features: Map = features.map(|(name, is_on)| (name.clone(), (*is_on).into())).collect();
    let said: [(&str, Option<Value>); 3] = [
        ("name", (now.name != before.name).then(|| now.name.as_str().into())),
        ("features", (!features.is_empty()).then(|| features.into())),
        ("limits", (!limits.is_empty()).then(|| limits.into())),
    ];
    Value::map(said.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

fn check(body: &Update) -> Answer<()> {
    check_name(body.name.as_deref())?;
    check_features(body.features.as_ref())?;
    let of_nothing = |limits: &LimitsUpdate| {
        [limits.per_user, limits.per_organization, limits.per_workflow.flatten()].contains(&Some(0))
    };
    if body.limits.as_ref().is_some_and(of_nothing) {
        return Err(Problem::field("limits", "a limit of 0 lets nothing run: turn the feature off instead"));
    }
    Ok(())
}

fn check_name(name: Option<&str>) -> Answer<()> {
    if name.is_some_and(|name| !(1..=200).contains(&name.chars().count())) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    Ok(())
}

fn check_features(features: Option<&BTreeMap<String, bool>>) -> Answer<()> {
    let mut others = features.into_iter().flat_map(BTreeMap::keys).filter(|name| *name != RUNTIME_FEATURE);
    match others.next() {
        Some(other) => Err(Problem::field("features", format!("`{other}` is no feature; there is {RUNTIME_FEATURE}"))),
        None => Ok(()),
    }
}

/// An organisation to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// Unique id.
    id: String,
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Its first member, who owns it.
    owner: String,
    /// Features by name: `workflow_runtime_v1`, without which nothing starts. What is not named is off.
    #[serde(default)]
    features: BTreeMap<String, bool>,
}

/// An organisation that was made. This is the only answer that shows its owner's token.
#[derive(Debug, Serialize, ToSchema)]
struct Created {
    /// Unique id.
    id: String,
    /// Its owner.
    owner: String,
    /// The owner's first credential.
    token: String,
}

/// Create an organization with an owner and a credential of the owner. Requires an operator of the installation.
/// Executions cannot start until the feature `workflow_runtime_v1` is enabled, by `features` here or by `PATCH
/// /api/organization`.
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
    check_name(body.name.as_deref())?;
    check_features(Some(&body.features))?;
    app.run(move |app| {
        let token = TokenText::new()?;
        let name = body.name.unwrap_or_else(|| body.id.clone());
        let new = New { id: &body.id, name: &name, owner: &body.owner, features: body.features };
        let mut change = organization(app.catalogue(), new, &token, app.engine.key(), Some(&caller))?;
        change.audit.push(entry(&caller, "organization.create", &body.id, Value::Null));
        let taken = |_| Problem::new(Code::Conflict, format!("There is an organization `{}` already.", body.id));
        make(app.catalogue(), &change)?.map_err(taken)?;
        Ok((StatusCode::CREATED, Json(Created { id: body.id.clone(), owner: body.owner, token: token.reveal() })))
    })
    .await
}
