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
    auth::{caller::Caller, token::TokenText},
    http::{
        body::{Body, Tagged, check_seen, double_option, if_match},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        FEATURES, Limits, Organization,
        repository::{Repository, Stored, apply, entry},
    },
    services::bootstrap::{NewOrganization, check_id, check_member_id, organization_change},
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

/// Settings to change. Omitted settings keep their values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Features by name: `workflow_runtime_v1` permits starts, `proposal_four_eyes` requires another member than the
    /// author to approve a proposal, `proposal_shadow` requires a shadow run before the approval.
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
    #[serde(default, deserialize_with = "double_option")]
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
) -> Result<Tagged<OrganizationBody>> {
    let seen = if_match(&headers)?;
    check(&body)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), "");
        let mut stored = repository.require::<Organization>(&caller.organization)?;
        check_seen(seen, Some(stored.tag()))?;
        let before = stored.body.clone();
        stored.body.name = body.name.unwrap_or(stored.body.name);
        stored.body.limits = body.limits.unwrap_or_default().over(stored.body.limits);
        stored.body.features.extend(body.features.unwrap_or_default());
        let puts = vec![repository.put(&stored.id, &stored.body, stored.version)?];
        let audit = vec![entry(&caller, "organization.update", &stored.id, changed(&before, &stored.body))];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        app.engine.limits_changed(&stored.id);
        stored.version += 1;
        Ok(tagged(&stored))
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
    let fields: [(&str, Option<Value>); 3] = [
        ("name", (now.name != before.name).then(|| now.name.as_str().into())),
        ("features", (!features.is_empty()).then(|| features.into())),
        ("limits", (!limits.is_empty()).then(|| limits.into())),
    ];
    Value::map(fields.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

fn check(body: &Update) -> Result<()> {
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

fn check_name(name: Option<&str>) -> Result<()> {
    if name.is_some_and(|name| !(1..=200).contains(&name.chars().count())) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    Ok(())
}

fn check_features(features: Option<&BTreeMap<String, bool>>) -> Result<()> {
    let mut others = features.into_iter().flat_map(BTreeMap::keys).filter(|name| !FEATURES.contains(&name.as_str()));
    match others.next() {
        Some(other) => {
            Err(Problem::field("features", format!("`{other}` is no feature; there are {}", FEATURES.join(", "))))
        }
        None => Ok(()),
    }
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
