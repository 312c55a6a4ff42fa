//! Begins rollouts: stores a definition as the candidate of a workflow, beside the one that other starts keep.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_store::{Change, Put};

use crate::{
    app::App,
    auth::{caller::Caller, token::random},
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        ActiveRollout, ProposedChange, Rollout, RolloutPlan, RolloutVersion, Source, WatchedRollout, Workflow,
        repository::{Repository, Stored, entry},
        rollout_key, version_id,
    },
    services::{
        approvers::warnings_for_save,
        compile::{check_circle, check_started, compile, keep},
        proposal_review,
        save_workflow::{Origin, Saved, check_owner, document_of, history},
        version_numbers::number,
        workflow_names::PendingChange,
    },
};

/// Workflows of an organization that may have a rollout at a time. A node reads the figures of each every few seconds.
const ROLLOUTS_MAX: usize = 20;

/// A rollout that is about to begin.
#[derive(Debug, Clone)]
pub(crate) struct NewRollout {
    pub id: String,
    pub plan: RolloutPlan,
    /// Treatment of executions that run at the promotion.
    pub while_running: &'static str,
}

impl NewRollout {
    /// A rollout with a new id.
    pub(crate) fn of(plan: RolloutPlan, while_running: &'static str) -> Result<Self> {
        Ok(Self { id: format!("ro-{:013}-{}", now_ms(), random(8)?), plan, while_running })
    }
}

/// Checks that a workflow can begin a rollout with the definition of a proposal.
pub(crate) fn check_can_begin(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    change: &ProposedChange,
) -> Result<()> {
    if workflow.body.drain.is_some() {
        let message = format!(
            "The workflow `{}` drains: wait for the older executions, or end the drain, before a rollout.",
            workflow.id
        );
        return Err(Problem::new(Code::Conflict, message));
    }
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let mut running = 0;
    for stored in repository.all::<Workflow>(Some(Workflow::rolling_out())).take(ROLLOUTS_MAX) {
        running += usize::from(stored.is_ok());
    }
    if running < ROLLOUTS_MAX {
        return check_candidate(app, repository, workflow, change);
    }
    let message = format!("{running} workflows of the organization have rollouts: promote or abort one of them.");
    Err(Problem::new(Code::Conflict, message))
}

/// Refuses a candidate that starts missing or disabled workflows, since no start could take it. The proposal stays approved.
fn check_candidate(
    app: &App,
    repository: Repository<'_>,
    workflow: &Stored<Workflow>,
    change: &ProposedChange,
) -> Result<()> {
    let candidate = Workflow { data: change.data.clone(), hash: change.hash.clone(), ..workflow.body.clone() };
    match check_started(app, repository, &candidate) {
        // The application itself refuses an invalid definition, and the proposal fails.
        Err(problem) if problem.code == Code::InvalidDefinition => Ok(()),
        Err(problem) if matches!(problem.code, Code::ValidationError | Code::WorkflowDisabled | Code::Conflict) => {
            let message = format!(
                "The rollout cannot start, since no execution could use the candidate: {}. Save or enable that workflow, or \
                 propose another definition.",
                problem.message.trim_end_matches('.')
            );
            Err(Problem::new(Code::Conflict, message))
        }
        other => other,
    }
}

/// Prepares the change that begins a rollout with the definition of a proposal.
pub(crate) fn begin(
    app: &App,
    caller: &Caller,
    stored: Stored<Workflow>,
    (proposal, data): (&str, &Data),
    new: &NewRollout,
) -> Result<(Change, Saved)> {
    check_owner(caller, &stored)?;
    let (repository, now) = (Repository::of(app.catalogue(), &caller.organization), now_ms());
    let (id, before) = (stored.id, stored.body);
    let mut candidate = before.clone();
    let document = document_of(&data.0)?;
    let compiled = compile(app, &caller.organization, &document)?;
    candidate.hash = keep(app, repository.organization(), compiled).plan.workflow_hash.prefixed();
    candidate.data = Data(document.value);
    let numbering = number(repository, &id, &candidate, None)?;
    candidate.version = numbering.version;
    let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
    let revision = match numbering.puts {
        Some(numbers) => {
            candidate.revision += 1;
            let origin = Origin { source: Source::ProposalApply, proposal: Some(proposal.into()), drains: false };
            let version = history(&candidate, &id, caller, &origin, now);
            change.puts.push(repository.put(&version_id(&id, candidate.revision), &version, 0)?);
            change.puts.extend(numbers);
            candidate.revision
        }
        None => {
            let known = proposal_review::entry(repository, &id, &candidate.hash)?;
            known.ok_or_else(|| Problem::not_found("version"))?.revision
        }
    };
    let checked = Stored { id: id.clone(), version: stored.version, body: candidate };
    let pending = PendingChange::of([&checked], &[]);
    check_circle(app, repository, &checked.body, &pending)?;
    let warnings = warnings_for_save(app, caller, &checked.body, &pending)?;
    let Workflow { hash, version, revision: newest, .. } = checked.body;
    let tried = RolloutVersion { hash, version };
    let percent = new.plan.percent;
    let active =
        ActiveRollout { id: new.id.clone(), proposal: proposal.into(), percent, candidate: tried.clone(), revision };
    let body = Workflow { rollout: Some(active), revision: newest, updated_at: now, ..before };
    change.puts.insert(0, repository.put(&id, &body, stored.version)?);
    let after = Stored { id, version: stored.version + 1, body };
    change.puts.extend(rows(app, caller, &after, (proposal, tried), new)?);
    change.audit.push(entry(caller, "workflow.rollout_begin", &after.id, detail(proposal, &after.body, new)));
    Ok((change, Saved { stored: after, warnings, ends_drain: false }))
}

/// The rows of a rollout: its own, and the one by which nodes find it.
fn rows(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    (proposal, candidate): (&str, RolloutVersion),
    new: &NewRollout,
) -> Result<Vec<Put>> {
    let Workflow { hash, version, updated_at, .. } = &workflow.body;
    let rollout = Rollout {
        workflow: workflow.id.clone(),
        proposal: proposal.into(),
        plan: new.plan.clone(),
        while_running: new.while_running.into(),
        stable: RolloutVersion { hash: hash.clone(), version: version.clone() },
        candidate,
        by: caller.user.clone(),
        since: *updated_at,
        ended: None,
    };
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let mut puts = vec![repository.put(&rollout_key(&workflow.id, &new.id), &rollout, 0)?];
    if new.plan.compare.is_some() {
        let watched = WatchedRollout { organization: caller.organization.clone(), workflow: workflow.id.clone() };
        puts.push(Repository::of(app.catalogue(), "").put(&new.id, &watched, 0)?);
    }
    Ok(puts)
}

fn detail(proposal: &str, workflow: &Workflow, new: &NewRollout) -> Value {
    let plan = serde_json::to_string(&new.plan).unwrap_or_default();
    let plan = serde_json::from_str::<Data>(&plan).unwrap_or_default().0;
    let candidate = workflow.rollout.as_ref().map(|active| &active.candidate);
    let detail = [
        ("rollout", Value::from(new.id.as_str())),
        ("proposal", proposal.into()),
        ("stable", workflow.hash.as_str().into()),
        ("candidate", candidate.map_or(Value::Null, |candidate| candidate.hash.as_str().into())),
        ("version", candidate.map_or(Value::Null, |candidate| candidate.version.as_str().into())),
        ("whileRunning", new.while_running.into()),
        ("plan", plan),
    ];
    Value::map(detail)
}
