//! The parts of a folder beside its definitions: triggers, scenarios and settings of the organization. They are changed in
//! the transaction that saves the definitions, against the state that the client has compared.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::value::Value;
use mainspring_store::Change;
use mainspring_triggers::limits::TRIGGERS_PER_ORGANIZATION_MAX;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission, token::random},
    http::{
        problem::{Code, Problem, Result},
        timestamps,
    },
    resources::{
        Limits, Organization, Trigger, WebhookPath, Workflow,
        repository::{Repository, Resource, Stored},
    },
    services::{
        effect_policies::{check_verdicts, set_verdicts},
        organization_settings::{self, LimitsUpdate, Update},
        save_trigger::{NewTrigger, TriggerDraft, check_count, creation, deletion, replacement, target_of},
        scenarios,
        trigger_config::{ConfigBody, checked},
        workflow_names::{PendingChange, resolve_own},
    },
};

/// Most workflows whose scenarios one request changes, as many as a folder has definitions.
const SCENARIOS_MAX: usize = 1_000;

/// The parts of a request.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub triggers: Vec<TriggerPart>,
    pub scenarios: BTreeMap<String, ScenariosPart>,
    pub organization: Option<OrganizationPart>,
}

/// A trigger to create, to replace or to delete.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TriggerPart {
    /// Id of the trigger to replace or to delete. A trigger without it is created, and fails if the member has one of this
    /// name.
    id: Option<String>,
    /// `updatedAt` of the trigger when the client compared it; required with `id`.
    compared: Option<String>,
    /// True to delete it.
    #[serde(default)]
    delete: bool,
    /// Slug of the caller, or id of a workflow, also of one that this request saves. Absent for the target
    /// `orchestrator`, and ignored for a trigger with an id.
    workflow_id: Option<String>,
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// True (default) if events and ticks start executions.
    enabled: Option<bool>,
    /// The source of its events, as a whole; required unless it is deleted.
    config: Option<ConfigBody>,
    /// Paths into the event by the names of variables.
    #[serde(default)]
    variable_mapping: BTreeMap<String, String>,
}

/// The scenarios of a workflow to replace or to remove.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenariosPart {
    /// Texts by name; null to remove the scenarios.
    files: Option<BTreeMap<String, String>>,
    /// `hash` of the scenarios when the client compared them; null if there were none.
    compared: Option<String>,
}

/// Settings of the organization to change.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrganizationPart {
    /// Features by name. Omitted features keep their values.
    features: Option<BTreeMap<String, bool>>,
    /// Limits of concurrent executions. Omitted limits keep their values.
    limits: Option<LimitsUpdate>,
    /// The rules of the organization for calls of its workflows, all of them. Omitted, they stay.
    verdicts: Option<BTreeMap<String, String>>,
    /// The settings when the client compared them.
    compared: OrganizationSettings,
}

/// Settings of an organization, as `GET /api/organization` and `GET /api/policy` show them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrganizationSettings {
    features: BTreeMap<String, bool>,
    limits: Limits,
    /// Required if the change has verdicts.
    verdicts: Option<BTreeMap<String, String>>,
}

/// The workflows of the same change.
pub(crate) struct Workflows<'a> {
    /// Their states after it.
    pub saved: &'a [Stored<Workflow>],
    /// Ids of those that it deletes, with their triggers and scenarios.
    pub deleted: &'a [String],
    pub pending: &'a PendingChange<'a>,
}

impl Parts {
    /// Checks what needs no store: permissions and bounds.
    pub(crate) fn check(&self, caller: &Caller) -> Result<()> {
        if self.triggers.len() > TRIGGERS_PER_ORGANIZATION_MAX {
            return Err(Problem::field("triggers", format!("at most {TRIGGERS_PER_ORGANIZATION_MAX}")));
        }
        if self.scenarios.len() > SCENARIOS_MAX {
            return Err(Problem::field("scenarios", format!("of at most {SCENARIOS_MAX} workflows")));
        }
        if !self.triggers.is_empty() {
            caller.require(Permission::ExecutionsStart)?;
        }
        if let Some(organization) = &self.organization {
            caller.require(Permission::OrganizationWrite)?;
            organization_settings::check(&organization.update())?;
            organization.verdicts.as_ref().map_or(Ok(()), check_verdicts)?;
        }
        Ok(())
    }

    /// Adds the writes of all parts to a change. They are [checked](Self::check).
    pub(crate) fn add(&self, app: &App, caller: &Caller, workflows: &Workflows<'_>, change: &mut Change) -> Result<()> {
        self.add_triggers(app, caller, workflows, change)?;
        self.add_scenarios(app, caller, workflows, change)?;
        let Some(part) = &self.organization else { return Ok(()) };
        let mut stored = Repository::of(app.catalogue(), "").require::<Organization>(&caller.organization)?;
        let present = OrganizationSettings {
            features: stored.body.features.clone(),
            limits: stored.body.limits,
            verdicts: part.verdicts.is_some().then(|| stored.body.verdicts.clone()),
        };
        if present != part.compared {
            return Err(changed("the settings of the organization have changed"));
        }
        if let Some(verdicts) = part.verdicts.clone().filter(|verdicts| *verdicts != stored.body.verdicts) {
            change.audit.push(set_verdicts(caller, &mut stored, verdicts));
        }
        organization_settings::add(app, caller, stored, part.update(), change).map(drop)
    }

    fn add_triggers(&self, app: &App, caller: &Caller, workflows: &Workflows<'_>, change: &mut Change) -> Result<()> {
        let mut others = self.other_triggers(app, caller)?;
        let (mut created, mut seen) = (0, Vec::new());
        for part in &self.triggers {
            let added = match &part.id {
                Some(id) if seen.contains(&id) => Err(Problem::field("triggers", format!("two of them are `{id}`"))),
                Some(id) => {
                    seen.push(id);
                    part.of_stored(app, caller, id, workflows)
                }
                None if part.delete => Err(Problem::field("triggers", "a trigger is deleted by its `id`")),
                None if others.contains(&part.name) => Err(changed("another one of this name was created")),
                None => part.of_new(app, caller, workflows, created),
            };
            let added = added.map_err(|mut problem| {
                problem.message = format!("The trigger `{}`: {}", part.name, problem.message);
                problem
            })?;
            if part.id.is_none() {
                created += 1;
                others.push(part.name.clone());
            }
            change.puts.extend(added.puts);
            change.removals.extend(added.removals);
            change.audit.extend(added.audit);
        }
        check_paths(change)
    }

    /// The names of the member's triggers that this request does not concern.
    fn other_triggers(&self, app: &App, caller: &Caller) -> Result<Vec<String>> {
        let mut names = Vec::new();
        if self.triggers.iter().all(|part| part.id.is_some()) {
            return Ok(names);
        }
        let repository = Repository::of(app.catalogue(), &caller.organization);
        for stored in repository.all::<Trigger>(Some(("user", caller.user.clone()))) {
            let stored = stored?;
            if self.triggers.iter().all(|part| part.id.as_ref() != Some(&stored.id)) {
                names.push(stored.body.name);
            }
        }
        Ok(names)
    }

    fn add_scenarios(&self, app: &App, caller: &Caller, workflows: &Workflows<'_>, change: &mut Change) -> Result<()> {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let by_slug = workflows.saved.iter().filter_map(|saved| {
            let Workflow { user, slug, data, .. } = &saved.body;
            Some((slug.clone().filter(|_| *user == caller.user)?, data.0.clone()))
        });
        let (pending, ends_at) = (Arc::new(by_slug.collect::<BTreeMap<String, Value>>()), scenarios::ends_at());
        for (name, part) in &self.scenarios {
            let missing = || Problem::field("scenarios", format!("there is no workflow `{name}`"));
            let workflow = resolve_own(repository, &caller.user, name, workflows.pending)?.ok_or_else(missing)?;
            let present = scenarios::find(repository, &workflow.id)?.map(|stored| scenarios::hash(&stored.body));
            if present != part.compared {
                return Err(changed(&format!("the scenarios of `{name}` have changed")));
            }
            match &part.files {
                Some(files) => {
                    scenarios::add(app, caller, (&workflow, &pending), (files, ends_at), change).map_err(
                        |mut problem| {
                            problem.message = format!("The scenarios of `{name}`: {}", problem.message);
                            problem
                        },
                    )?;
                }
                None if present.is_none() => {}
                None => scenarios::add_removal(app, caller, &workflow, change)?,
            }
        }
        Ok(())
    }
}

impl TriggerPart {
    /// The change of a stored trigger.
    fn of_stored(&self, app: &App, caller: &Caller, id: &str, workflows: &Workflows<'_>) -> Result<Change> {
        let compared = self.compared.as_deref().unwrap_or_default();
        let compared = timestamps::read("triggers.compared", compared)?;
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let stored = repository.get::<Trigger>(id)?.filter(|stored| stored.body.updated_at == compared);
        let stored = stored.ok_or_else(|| changed("it has changed"))?;
        if stored.body.workflow.as_ref().is_some_and(|workflow| workflows.deleted.contains(workflow)) {
            return Err(Problem::field(
                "triggers",
                "its workflow is deleted by this request, and it with the workflow",
            ));
        }
        if self.delete {
            return deletion(app, caller, &stored);
        }
        let draft = TriggerDraft {
            name: Some(self.name.clone()),
            enabled: Some(self.enabled.unwrap_or(true)),
            config: Some(self.config()?),
            variable_mapping: Some(Some(self.variable_mapping.clone())),
            // A folder names no repository, and the one of the trigger stays.
            repository: None,
        };
        Ok(replacement(app, caller, stored, &draft, "trigger.update")?.0)
    }

    /// The change that creates a trigger, after `created` others of the request.
    fn of_new(&self, app: &App, caller: &Caller, workflows: &Workflows<'_>, created: usize) -> Result<Change> {
        let new = NewTrigger {
            workflow_id: self.workflow_id.clone(),
            name: self.name.clone(),
            enabled: self.enabled,
            config: self.config()?,
            variable_mapping: Some(self.variable_mapping.clone()),
            repository: None,
        };
        let id = format!("trg-{}", random(8)?);
        let config = checked(new.config.clone(), None, &app.sealer()?, (&caller.organization, &id))?;
        let target = target_of(app, caller, new.workflow_id.as_deref(), &config, Some(workflows.pending))?;
        check_count(Repository::of(app.catalogue(), &caller.organization), target.0.as_deref(), created)?;
        Ok(creation(app, caller, (&id, &new, config), target)?.0)
    }

    fn config(&self) -> Result<ConfigBody> {
        self.config.clone().ok_or_else(|| Problem::field("triggers.config", "it is missing"))
    }
}

impl OrganizationPart {
    fn update(&self) -> Update {
        Update { name: None, features: self.features.clone(), limits: self.limits.clone() }
    }
}

/// Rejects a webhook path that two triggers of the same change have.
fn check_paths(change: &Change) -> Result<()> {
    let paths = || change.puts.iter().filter(|put| put.resource.kind == WebhookPath::KIND);
    let twice = paths().find(|put| paths().filter(|other| other.resource.id == put.resource.id).count() > 1);
    match twice {
        Some(put) => Err(Problem::field("triggers", format!("two of them have the path `{}`", put.resource.id))),
        None => Ok(()),
    }
}

/// The problem of a state that is no longer the compared one.
fn changed(what: &str) -> Problem {
    Problem::new(Code::Conflict, format!("Since the folder was compared, {what}: compare again."))
}
