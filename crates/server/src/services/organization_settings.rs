//! Settings of an organization: changes of them, alone or together with other resources.

use std::collections::BTreeMap;

use mainspring_kernel::value::{Map, Value};
use mainspring_store::Change;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::double_option,
        problem::{Problem, Result},
    },
    resources::{
        FEATURES, Limits, Organization,
        repository::{Repository, Stored, entry},
    },
};

/// Settings to change. Omitted settings keep their values.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Update {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// Features by name: `workflow_runtime_v1` permits starts, `proposal_four_eyes` requires another member than the
    /// author to approve a proposal, `proposal_shadow` requires a shadow run before the approval.
    pub features: Option<BTreeMap<String, bool>>,
    /// Limits of concurrent executions.
    pub limits: Option<LimitsUpdate>,
}

/// Limits to change. Omitted limits keep their values.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LimitsUpdate {
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

/// Adds the writes of an update to a change, and returns the organization after it. The update is checked. The engine
/// learns of the limits when the change is durable (`limits_changed`).
pub(crate) fn add(
    app: &App,
    caller: &Caller,
    mut stored: Stored<Organization>,
    update: Update,
    change: &mut Change,
) -> Result<Stored<Organization>> {
    let before = stored.body.clone();
    stored.body.name = update.name.unwrap_or(stored.body.name);
    stored.body.limits = update.limits.unwrap_or_default().over(stored.body.limits);
    stored.body.features.extend(update.features.unwrap_or_default());
    change.puts.push(Repository::of(app.catalogue(), "").put(&stored.id, &stored.body, stored.version)?);
    change.audit.push(entry(caller, "organization.update", &stored.id, changed(&before, &stored.body)));
    stored.version += 1;
    Ok(stored)
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

pub(crate) fn check(body: &Update) -> Result<()> {
    check_name(body.name.as_deref())?;
    check_features(body.features.as_ref())?;
    let of_nothing = |limits: &LimitsUpdate| {
        [limits.per_user, limits.per_organization, limits.per_workflow.flatten()].contains(&Some(0))
    };
    if body.limits.as_ref().is_some_and(of_nothing) {
        return Err(Problem::field("limits", "a limit of 0 prevents all executions: disable the feature instead"));
    }
    Ok(())
}

pub(crate) fn check_name(name: Option<&str>) -> Result<()> {
    if name.is_some_and(|name| !(1..=200).contains(&name.chars().count())) {
        return Err(Problem::field("name", "it must have 1 to 200 characters"));
    }
    Ok(())
}

pub(crate) fn check_features(features: Option<&BTreeMap<String, bool>>) -> Result<()> {
    let mut others = features.into_iter().flat_map(BTreeMap::keys).filter(|name| !FEATURES.contains(&name.as_str()));
    match others.next() {
        Some(other) => {
            Err(Problem::field("features", format!("`{other}` is no feature; there are {}", FEATURES.join(", "))))
        }
        None => Ok(()),
    }
}
