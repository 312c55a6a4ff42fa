//! Saves triggers. A change of a trigger also writes the owner of its webhook path, its next tick and its state, in one
//! transaction.

use std::collections::BTreeMap;

use mainspring_engine::evaluator::{ForTenant, evaluate};
use mainspring_kernel::{
    evaluation::{Check, Evaluation},
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, Change, ReadLimit, Removal};
use mainspring_triggers::{
    catch_up::jitter_ms,
    limits::{TRIGGERS_PER_ORGANIZATION_MAX, TRIGGERS_PER_WORKFLOW_MAX},
    schedule::Schedule,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission, token::random},
    http::{
        body::{Tag, check_seen, double_option},
        problem::{Code, Problem, Result},
    },
    resources::{
        DueSchedule, RepositoryContext, Respond, Trigger, TriggerConfig, TriggerState, WebhookPath, Workflow,
        WorkflowScenarios, due_id,
        repository::{Listing, Repository, Stored, entry, with_retries},
    },
    services::{
        compile::plan_of,
        prompts::queue::remove_all,
        repository_context::{self, with_repository},
        trigger_config::{ConfigBody, checked, parse_mapping},
        workflow_names::{PendingChange, resolve, resolve_own},
    },
};

/// The warning for a trigger of a workflow whose `inputSchema` refuses an execution without an input: a trigger sets variables
/// and no input.
pub(crate) fn input_warning(app: &App, organization: &str, trigger: &Trigger) -> Result<Option<String>> {
    let Some(id) = &trigger.workflow else { return Ok(None) };
    let Some(workflow) = Repository::of(app.catalogue(), organization).get::<Workflow>(id)? else { return Ok(None) };
    let compiled = plan_of(app, organization, &workflow.body)?;
    let Some(schema) = &compiled.plan.input_schema else { return Ok(None) };
    let evaluator = ForTenant { evaluator: &*app.evaluator, tenant: organization };
    let accepts = |value: Value| {
        let check = Check { schema: schema.clone(), value, fills_defaults: true };
        evaluate(&Evaluation::Check(check), &evaluator).outcome.is_ok()
    };
    if accepts(Value::Null) || accepts(Value::Map(Map::new())) {
        return Ok(None);
    }
    let message = format!(
        "The executions of a trigger have variables and no input, and the `inputSchema` of `{id}` requires one: give its fields \
         defaults, or use variables (`variableMapping` sets them)."
    );
    Ok(Some(message))
}

/// Attempts of a change that conflicts with concurrent ones.
const TRIES: usize = 5;

/// Characters of the display name.
const NAME_MAX: usize = 200;

/// Fields of the request that creates a trigger.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewTrigger {
    /// Id or slug of the workflow. Only its owner and admins may create triggers of it. A schedule with the target
    /// `orchestrator` has none.
    pub workflow_id: Option<String>,
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// True (default) if events and ticks start executions.
    pub enabled: Option<bool>,
    /// The source of its events.
    pub config: ConfigBody,
    /// Paths into the event by the names of variables: `$.pr.number`, or JSONPath (RFC 9535).
    pub variable_mapping: Option<BTreeMap<String, String>>,
    /// Repository of its executions, which precedes that of the workflow.
    pub repository: Option<RepositoryContext>,
}

/// Fields of a trigger to change. Omitted fields keep their values.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TriggerDraft {
    /// Display name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// True if events and ticks start executions.
    pub enabled: Option<bool>,
    /// The source of its events, as a whole.
    pub config: Option<ConfigBody>,
    /// Paths into the event by the names of variables; null for none.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub variable_mapping: Option<Option<BTreeMap<String, String>>>,
    /// Repository of its executions, which precedes that of the workflow; null for none.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<RepositoryContext>)]
    pub repository: Option<Option<RepositoryContext>>,
}

/// A stored trigger, and the state that its runs change.
pub(crate) struct TriggerWithState {
    pub stored: Stored<Trigger>,
    pub state: TriggerState,
}

/// Reads a trigger of an organization; a missing one is a 404. Entries of the run log that are not written yet are left
/// out.
pub(crate) fn read(app: &App, organization: &str, id: &str) -> Result<TriggerWithState> {
    let repository = Repository::of(app.catalogue(), organization);
    let stored = repository.require::<Trigger>(id)?;
    let state = repository.get::<TriggerState>(id)?.map(|stored| stored.body).unwrap_or_default();
    Ok(TriggerWithState { stored, state })
}

/// Creates a trigger under a random id, for the owner of the workflow or an admin.
pub(crate) fn create(app: &App, caller: &Caller, new: &NewTrigger) -> Result<TriggerWithState> {
    check_name(&new.name)?;
    caller.require(Permission::ExecutionsStart)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let id = format!("trg-{}", random(8)?);
    with_retries(app.catalogue(), TRIES, || {
        let config = checked(new.config.clone(), None, &app.sealer()?, (&caller.organization, &id))?;
        let target = target_of(app, caller, new.workflow_id.as_deref(), &config, None)?;
        check_count(repository, target.0.as_deref(), 0)?;
        creation(app, caller, (&id, new, config), target)
    })
}

/// The writes that create a trigger with a checked configuration, and the trigger. `(workflow, user)`: see [`target_of`].
pub(crate) fn creation(
    app: &App,
    caller: &Caller,
    (id, new, config): (&str, &NewTrigger, TriggerConfig),
    (workflow, user): (Option<String>, String),
) -> Result<(Change, TriggerWithState)> {
    check_name(&new.name)?;
    caller.require(Permission::ExecutionsStart)?;
    check_rights(caller, &user)?;
    check_response(caller, &config)?;
    let mapping = new.variable_mapping.clone().unwrap_or_default();
    check_mapping(&config, &mapping)?;
    check_repository(app, &config, new.repository.as_ref())?;
    let now = app.now_ms();
    let trigger = Trigger {
        workflow,
        user,
        name: new.name.clone(),
        enabled: new.enabled.unwrap_or(true),
        config,
        variable_mapping: mapping,
        repository: new.repository.clone(),
        scopes: caller.scopes.clone(),
        known_to: caller.known_to.clone(),
        created_by: caller.user.clone(),
        created_at: now,
        updated_at: now,
    };
    change_of(app, caller, Edit { id, before: None, after: trigger, action: "trigger.create" })
}

/// The workflow of a new trigger, and the member as whom it acts. A prompt has no workflow, and acts for the caller. With
/// a pending change, the workflow is one of the caller after that change.
pub(crate) fn target_of(
    app: &App,
    caller: &Caller,
    workflow: Option<&str>,
    config: &TriggerConfig,
    pending: Option<&PendingChange<'_>>,
) -> Result<(Option<String>, String)> {
    match (config.prompt(), workflow) {
        (None, Some(name)) => {
            let repository = Repository::of(app.catalogue(), &caller.organization);
            let found = match pending {
                Some(pending) => resolve_own(repository, &caller.user, name, pending)?
                    .ok_or_else(|| Problem::field("workflowId", format!("there is no workflow `{name}`")))?,
                None => resolve(repository, &caller.user, name)?.ok_or_else(|| Problem::not_found("workflow"))?,
            };
            Ok((Some(found.id), found.body.user))
        }
        (None, None) => Err(Problem::field("workflowId", "name the workflow that the trigger starts")),
        (Some(_), Some(_)) => {
            Err(Problem::field("workflowId", "the target `orchestrator` starts no workflow; leave it out"))
        }
        (Some(_), None) => {
            check_orchestrator(app, caller)?;
            Ok((None, caller.user.clone()))
        }
    }
}

fn check_orchestrator(app: &App, caller: &Caller) -> Result<()> {
    if app.settings.outgoing.orchestrators.of(&caller.organization).is_some() {
        return Ok(());
    }
    let message = "This server has no endpoint for the prompts of this organization. Its operator names one under \
                   `orchestrators` in the settings file.";
    Err(Problem::new(Code::NotAvailable, message))
}

/// Checks the mapping of a trigger. A prompt has no variables.
fn check_mapping(config: &TriggerConfig, mapping: &BTreeMap<String, String>) -> Result<()> {
    if config.prompt().is_some() && !mapping.is_empty() {
        return Err(Problem::field("variableMapping", "a prompt has no variables; leave it out"));
    }
    parse_mapping(mapping).map(drop)
}

/// Checks the repository of a trigger. A prompt starts no execution.
fn check_repository(app: &App, config: &TriggerConfig, repository: Option<&RepositoryContext>) -> Result<()> {
    let Some(repository) = repository else { return Ok(()) };
    if config.prompt().is_some() {
        return Err(Problem::field("repository", "a prompt starts no execution; leave it out"));
    }
    repository_context::check(app, repository, true)
}

/// Changes fields of a trigger.
pub(crate) fn update(
    app: &App,
    caller: &Caller,
    id: &str,
    draft: &TriggerDraft,
    seen: Option<Tag>,
) -> Result<TriggerWithState> {
    if let Some(name) = &draft.name {
        check_name(name)?;
    }
    caller.require(Permission::ExecutionsStart)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let action = match draft {
        TriggerDraft { name: None, enabled: Some(true), config: None, variable_mapping: None, repository: None } => {
            "trigger.enable"
        }
        TriggerDraft { name: None, enabled: Some(false), config: None, variable_mapping: None, repository: None } => {
            "trigger.disable"
        }
        _ => "trigger.update",
    };
    with_retries(app.catalogue(), TRIES, || {
        let stored = repository.require::<Trigger>(id)?;
        check_rights(caller, &stored.body.user)?;
        check_seen(seen, Some(stored.tag()))?;
        replacement(app, caller, stored, draft, action)
    })
}

/// The writes that change fields of a trigger, and the trigger after them.
pub(crate) fn replacement(
    app: &App,
    caller: &Caller,
    stored: Stored<Trigger>,
    draft: &TriggerDraft,
    action: &str,
) -> Result<(Change, TriggerWithState)> {
    if let Some(name) = &draft.name {
        check_name(name)?;
    }
    caller.require(Permission::ExecutionsStart)?;
    check_rights(caller, &stored.body.user)?;
    let id = stored.id.clone();
    let TriggerDraft { name, enabled, config, variable_mapping, repository } = draft.clone();
    let is_changed = repository.is_some();
    let mut after = stored.body.clone();
    after.name = name.unwrap_or(after.name);
    after.enabled = enabled.unwrap_or(after.enabled);
    after.variable_mapping = variable_mapping.map_or(after.variable_mapping, Option::unwrap_or_default);
    after.repository = repository.unwrap_or(after.repository);
    if let Some(config) = config {
        after.config = checked(config, Some(&stored.body.config), &app.sealer()?, (&caller.organization, &id))?;
        if after.config.prompt().is_some() == after.workflow.is_some() {
            let message = "a trigger keeps its target; create another one for the other target";
            return Err(Problem::field("config.target", message));
        }
    }
    check_mapping(&after.config, &after.variable_mapping)?;
    if is_changed {
        check_repository(app, &after.config, after.repository.as_ref())?;
    }
    check_response(caller, &after.config)?;
    after.scopes.clone_from(&caller.scopes);
    after.known_to.clone_from(&caller.known_to);
    // Each change has a later time than the one before, also if clocks of nodes differ: clients compare by it.
    after.updated_at = app.now_ms().max(stored.body.updated_at + 1);
    change_of(app, caller, Edit { id: &id, before: Some(stored), after, action })
}

/// Deletes a trigger. Its executions stay.
pub(crate) fn delete(app: &App, caller: &Caller, id: &str, seen: Option<Tag>) -> Result<()> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    with_retries(app.catalogue(), TRIES, || {
        let stored = repository.require::<Trigger>(id)?;
        check_rights(caller, &stored.body.user)?;
        check_seen(seen, Some(stored.tag()))?;
        Ok((deletion(app, caller, &stored)?, ()))
    })
}

/// The change that deletes a trigger.
pub(crate) fn deletion(app: &App, caller: &Caller, stored: &Stored<Trigger>) -> Result<Change> {
    check_rights(caller, &stored.body.user)?;
    let removals = removals(app, &caller.organization, stored)?;
    let audit = vec![entry(caller, "trigger.delete", &stored.id, Value::Null)];
    let mut change = Change { removals, audit, sealing: *app.engine.key(), ..Change::default() };
    if stored.body.config.prompt().is_some() {
        remove_all(app, &caller.organization, &stored.id, &mut change)?;
    }
    Ok(change)
}

/// The removals of the scenarios and of all triggers of a workflow, which is deleted in the same change, with their audit entries.
pub(crate) fn removals_of_workflow(
    app: &App,
    caller: &Caller,
    workflow: &str,
) -> Result<(Vec<Removal>, Vec<AuditEntry>)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let scenarios = repository.get::<WorkflowScenarios>(workflow)?;
    let (mut all, mut audit) = (Vec::from_iter(scenarios.map(|stored| repository.removal(&stored))), Vec::new());
    for stored in repository.all::<Trigger>(Some(("workflow", workflow.into()))) {
        let stored = stored?;
        all.extend(removals(app, &caller.organization, &stored)?);
        let detail = Value::map([("workflowId", workflow.into())]);
        audit.push(entry(caller, "trigger.delete", &stored.id, detail));
    }
    Ok((all, audit))
}

/// The removals of a trigger and of everything that belongs to it.
fn removals(app: &App, organization: &str, stored: &Stored<Trigger>) -> Result<Vec<Removal>> {
    let (own, installation) = (Repository::of(app.catalogue(), organization), Repository::of(app.catalogue(), ""));
    let mut removals = vec![own.removal(stored)];
    if let Some(state) = own.get::<TriggerState>(&stored.id)? {
        if let Some(due) = state.body.due.as_deref().map(|due| installation.get::<DueSchedule>(due)).transpose()? {
            removals.extend(due.map(|due| installation.removal(&due)));
        }
        // A run may be logged at any time; the log goes with the trigger.
        removals.push(Removal { expected: None, ..own.removal(&state) });
    }
    if let TriggerConfig::Webhook(webhook) = &stored.body.config {
        let path = installation.get::<WebhookPath>(&webhook.path)?;
        removals.extend(path.map(|path| installation.removal(&path)));
    }
    Ok(removals)
}

/// A change of a trigger.
struct Edit<'a> {
    id: &'a str,
    before: Option<Stored<Trigger>>,
    after: Trigger,
    action: &'a str,
}

/// The writes of a change, and the trigger after it.
fn change_of(app: &App, caller: &Caller, edit: Edit<'_>) -> Result<(Change, TriggerWithState)> {
    let Edit { id, before, after, action } = edit;
    let own = Repository::of(app.catalogue(), &caller.organization);
    let (version, before) = before.map_or((0, None), |stored| (stored.version, Some(stored.body)));
    let state = own.get::<TriggerState>(id)?;
    let (state_version, mut state) = state.map_or((0, TriggerState::default()), |stored| (stored.version, stored.body));
    let mut change = Change { puts: vec![own.put(id, &after, version)?], ..Change::default() };
    move_path(app, (&caller.organization, id), before.as_ref(), &after, &mut change)?;
    let is_same =
        before.as_ref().is_some_and(|before| before.enabled == after.enabled && before.config == after.config);
    if !is_same {
        state.stopped = None;
        let now = app.now_ms();
        schedule(app, (&caller.organization, id), &after, &mut state, (now, now), &mut change)?;
    }
    change.puts.push(own.put(id, &state, state_version)?);
    let detail = [("type", after.config.type_name()), ("name", after.name.as_str())];
    let detail = detail.map(|(key, text)| (key, Value::from(text))).into_iter();
    let detail = detail.chain([("workflowId", after.workflow.as_deref().into())]);
    let detail = Value::map(detail.chain([("enabled", after.enabled.into())]));
    let detail = with_repository(detail, after.repository.as_ref());
    change.audit.push(entry(caller, action, id, detail));
    change.sealing = *app.engine.key();
    let stored = Stored { id: id.into(), version: version + 1, body: after };
    Ok((change, TriggerWithState { stored, state }))
}

/// Assigns the path of a webhook to the trigger, and frees the former one.
fn move_path(
    app: &App,
    (organization, id): (&str, &str),
    before: Option<&Trigger>,
    after: &Trigger,
    change: &mut Change,
) -> Result<()> {
    let path = |trigger: &Trigger| match &trigger.config {
        TriggerConfig::Webhook(webhook) => Some(webhook.path.clone()),
        _ => None,
    };
    let (from, to) = (before.and_then(path), path(after));
    if from == to {
        return Ok(());
    }
    let installation = Repository::of(app.catalogue(), "");
    if let Some(stored) = from.map(|from| installation.get::<WebhookPath>(&from)).transpose()?.flatten() {
        change.removals.push(installation.removal(&stored));
    }
    if let Some(to) = to {
        if installation.get::<WebhookPath>(&to)?.is_some() {
            let message = format!("The webhook path `{to}` belongs to another trigger. Choose another path.");
            return Err(Problem::new(Code::Conflict, message));
        }
        let owner = WebhookPath { organization: organization.into(), trigger: id.into() };
        change.puts.push(installation.put(&to, &owner, 0)?);
    }
    Ok(())
}

/// Replaces the next tick of a schedule in a change. `(cursor_ms, not_before_ms)`: all ticks up to the cursor are
/// decided, and the next poll is not before the second time. A disabled trigger and other types have no next tick.
pub(crate) fn schedule(
    app: &App,
    (organization, id): (&str, &str),
    trigger: &Trigger,
    state: &mut TriggerState,
    (cursor_ms, not_before_ms): (u64, u64),
    change: &mut Change,
) -> Result<()> {
    let installation = Repository::of(app.catalogue(), "");
    let former = state.due.take().map(|due| installation.get::<DueSchedule>(&due)).transpose()?.flatten();
    let next = match &trigger.config {
        TriggerConfig::Schedule(config) if trigger.enabled => {
            let schedule = Schedule::new(&config.cron, &config.timezone).map_err(|error| {
                Problem::new(Code::InternalError, format!("The stored schedule cannot be read: {error}."))
            })?;
            let tick_ms = schedule.next_after(cursor_ms);
            let delay_ms = jitter_ms(id, config.jitter_ms);
            tick_ms.map(|tick_ms| due_id(tick_ms.saturating_add(delay_ms).max(not_before_ms), id))
        }
        _ => None,
    };
    let is_kept = |former: &Stored<DueSchedule>| Some(&former.id) == next.as_ref();
    let version = former.as_ref().filter(|former| is_kept(former)).map_or(0, |former| former.version);
    change.removals.extend(former.filter(|former| !is_kept(former)).map(|former| installation.removal(&former)));
    if let Some(due) = &next {
        let row = DueSchedule { organization: organization.into(), trigger: id.into(), cursor_ms };
        change.puts.push(installation.put(due, &row, version)?);
    }
    state.due = next;
    Ok(())
}

/// Rejects a webhook that answers with outputs which the credential may not read.
fn check_response(caller: &Caller, config: &TriggerConfig) -> Result<()> {
    match config {
        TriggerConfig::Webhook(webhook) if webhook.respond == Respond::Wait => {
            caller.require(Permission::ExecutionsRead)
        }
        _ => Ok(()),
    }
}

/// Rejects a change by a member who is neither the workflow's owner nor an admin: executions run as the owner.
fn check_rights(caller: &Caller, owner: &str) -> Result<()> {
    if caller.may_act_for(owner) {
        return Ok(());
    }
    let message = format!("The executions of this trigger run as `{owner}`; only `{owner}` or an admin may change it.");
    Err(Problem::new(Code::Forbidden, message))
}

fn check_name(name: &str) -> Result<()> {
    if (1..=NAME_MAX).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(Problem::field("name", format!("it must have 1 to {NAME_MAX} characters")))
}

/// Rejects a trigger beyond the bounds. `more` new ones come before it in the same change.
pub(crate) fn check_count(repository: Repository<'_>, workflow: Option<&str>, more: usize) -> Result<()> {
    let name = workflow.map(|workflow| ("workflow", workflow.to_string()));
    let listing = Listing { name, most: ReadLimit::of(TRIGGERS_PER_WORKFLOW_MAX), ..Listing::default() };
    if workflow.is_some() && repository.list::<Trigger>(listing)?.rows.len() + more >= TRIGGERS_PER_WORKFLOW_MAX {
        let message = format!("The workflow has {TRIGGERS_PER_WORKFLOW_MAX} triggers. Delete one first.");
        return Err(Problem::new(Code::Conflict, message));
    }
    let mut count = more;
    for trigger in repository.all::<Trigger>(None) {
        trigger?;
        count += 1;
    }
    if count >= TRIGGERS_PER_ORGANIZATION_MAX {
        let message = format!("The organization has {TRIGGERS_PER_ORGANIZATION_MAX} triggers. Delete one first.");
        return Err(Problem::new(Code::Conflict, message));
    }
    Ok(())
}
