//! Ends rollouts by a promotion or an abort, of a person or of the server at the stated thresholds.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{limits::REASON_CHARS_MAX, value::Value};
use mainspring_store::{Change, Removal};

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission},
    http::problem::{Code, Problem, Result},
    resources::{
        ActiveRollout, BothFigures, Proposal, Rollout, RolloutEnd, RolloutStatus, Source, Version, VersionReturn,
        WatchedRollout, Workflow, proposal_key,
        repository::{Repository, Resource, Stored, entry, with_retries},
        rollout_key,
    },
    services::{
        drains::{self, check_can_drain},
        proposal_checks::{check_decides, check_text},
        proposals::{TRIES, check_reviewed},
        rollout_choice::version_of,
        rollout_figures::{figures, figures_value},
        save_workflow::return_id,
    },
};

/// A decision about a rollout.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    /// `Promoted` or `Aborted`.
    pub status: RolloutStatus,
    pub reason: String,
    /// True if the server decided at the thresholds.
    pub automatic: bool,
    /// The figures that led to it; `None` to read them.
    pub figures: Option<BothFigures>,
}

impl Decision {
    /// The decision of a person.
    pub(crate) fn of_person(status: RolloutStatus, reason: String) -> Result<Self> {
        check_text("reason", Some(&reason), REASON_CHARS_MAX)?;
        Ok(Self { status, reason, automatic: false, figures: None })
    }

    fn is_promotion(&self) -> bool {
        self.status == RolloutStatus::Promoted
    }
}

/// Ends a rollout. The decision and its effect are one transaction.
pub(crate) fn end(
    app: &App,
    caller: &Caller,
    id: &str,
    decision: &Decision,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<Stored<Rollout>> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let (rollout, drains) = with_retries(app.catalogue(), TRIES, || {
        let workflow = find()?;
        // The server aborts also for a member who may no longer decide.
        if !decision.automatic || decision.is_promotion() {
            caller.require(Permission::ApprovalsDecide)?;
            check_decides(caller, &workflow)?;
        }
        let rollout = repository.require::<Rollout>(&rollout_key(&workflow.id, id))?;
        if let Some(ended) = &rollout.body.ended {
            let message = format!("The rollout `{id}` is already {}.", ended.status.name());
            return Err(Problem::new(Code::Conflict, message));
        }
        let active = workflow.body.rollout.clone().filter(|active| active.id == id);
        let active = active.ok_or_else(|| Problem::new(Code::Conflict, "The rollout is of a deleted workflow."))?;
        let both = decision.figures.clone().map_or_else(|| figures(app, &caller.organization, &rollout), Ok)?;
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        let after = match decision.is_promotion() {
            true => promoted(app, caller, &workflow, &rollout.body, &active, &mut change)?,
            false => Workflow { rollout: None, updated_at: now_ms(), ..workflow.body.clone() },
        };
        change.puts.push(repository.put(&workflow.id, &after, workflow.version)?);
        change.audit.push(entry(caller, action(decision), &workflow.id, detail(&rollout, decision, &both)));
        let ended = RolloutEnd {
            status: decision.status,
            by: caller.user.clone(),
            automatic: decision.automatic,
            reason: decision.reason.clone(),
            figures: both,
            at: now_ms(),
        };
        let body = Rollout { ended: Some(ended), ..rollout.body };
        change.puts.push(repository.put(&rollout.id, &body, rollout.version)?);
        if body.plan.compare.is_some() {
            let (kind, organization) = (WatchedRollout::KIND.into(), String::new());
            change.removals.push(Removal { kind, organization, id: id.into(), expected: None });
        }
        Ok((change, (Stored { id: rollout.id, version: rollout.version + 1, body }, after.drain.is_some())))
    })?;
    if drains {
        app.engine.limits_changed(&caller.organization);
    }
    Ok(rollout)
}

fn action(decision: &Decision) -> &'static str {
    if decision.is_promotion() { "workflow.rollout_promote" } else { "workflow.rollout_abort" }
}

fn detail(stored: &Stored<Rollout>, decision: &Decision, both: &BothFigures) -> Value {
    let rollout = &stored.body;
    let id = stored.id.split_once('/').map_or(stored.id.as_str(), |(_, id)| id);
    let detail = [
        ("rollout", Value::from(id)),
        ("proposal", rollout.proposal.as_str().into()),
        ("stable", rollout.stable.hash.as_str().into()),
        ("candidate", rollout.candidate.hash.as_str().into()),
        ("automatic", decision.automatic.into()),
        ("reason", decision.reason.as_str().into()),
        ("figures", figures_value(both)),
    ];
    Value::map(detail)
}

/// The workflow after a promotion, with the entry of its history about it.
fn promoted(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    rollout: &Rollout,
    active: &ActiveRollout,
    change: &mut Change,
) -> Result<Workflow> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let proposal = repository.require::<Proposal>(&proposal_key(&workflow.id, &rollout.proposal))?.body;
    check_reviewed(app, caller, &proposal, workflow)?;
    let Version { data, hash, version, .. } = version_of(repository, &workflow.id, active)?;
    let (now, before) = (now_ms(), &workflow.body);
    let drain = match rollout.while_running.as_str() {
        "drain" => {
            check_can_drain(app, caller, workflow)?;
            Some(drains::begin(before, &hash, &rollout.proposal, caller, now))
        }
        _ => before.drain.clone(),
    };
    let returned = VersionReturn {
        workflow: workflow.id.clone(),
        hash: hash.clone(),
        from_hash: before.hash.clone(),
        source: Source::RolloutPromote,
        source_proposal_id: Some(rollout.proposal.clone()),
        created_by: caller.user.clone(),
        created_at: now,
    };
    change.puts.push(repository.put(&return_id(&workflow.id, now)?, &returned, 0)?);
    Ok(Workflow { data, hash, version, drain, rollout: None, updated_at: now, ..before.clone() })
}
