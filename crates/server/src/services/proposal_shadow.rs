//! Shadow runs of proposals: runs them, and stores their reports.

use std::sync::Arc;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::document::Document;
use mainspring_review::{limits::SHADOW_EXECUTIONS_MAX, shadow::ShadowReport};
use mainspring_store::{Change, ExecutionRow, Filter};

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::visible_execution},
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Proposal, ProposalShadow, ProposalStatus, ShadowSummary, Workflow, proposal_key,
        repository::{Repository, Stored, with_retries},
    },
    services::{
        compile::compile,
        effect_policies::effect_policy,
        proposal_checks::check_decides,
        proposal_status::status_at,
        proposals::{TRIES, audit},
        shadow_run::{Bounds, ShadowRun, Source},
    },
};

/// The executions of a shadow run.
pub(crate) enum Against {
    /// The last ended executions, at most this number.
    Last(usize),
    /// These executions.
    Executions(Vec<String>),
}

/// A stored report.
pub(crate) struct StoredShadow {
    pub summary: ShadowSummary,
    pub report: Data,
}

/// Returns the report of the last shadow run.
pub(crate) fn show(app: &App, caller: &Caller, workflow: &Stored<Workflow>, id: &str) -> Result<StoredShadow> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let key = proposal_key(&workflow.id, id);
    let proposal = repository.require::<Proposal>(&key)?;
    let summary = proposal.body.shadow.ok_or_else(|| Problem::not_found("shadow run"))?;
    let report = repository.require::<ProposalShadow>(&key)?.body.report;
    Ok(StoredShadow { summary, report })
}

/// Runs a pending proposal against recorded executions of its workflow, and stores the report.
pub(crate) fn run(
    app: &App,
    caller: &Caller,
    id: &str,
    against: &Against,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<StoredShadow> {
    let workflow = find()?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let key = proposal_key(&workflow.id, id);
    let proposal = repository.require::<Proposal>(&key)?;
    check_may_run(caller, &workflow, &proposal.body)?;
    check_pending(&proposal.body, &workflow)?;
    let report = report(app, caller, &workflow, &proposal.body, against)?;
    let summary = ShadowSummary { hash: report.hash().prefixed(), by: caller.user.clone(), at: now_ms() };
    let report = Data(report.to_value());
    with_retries(app.catalogue(), TRIES, || {
        let mut stored = repository.require::<Proposal>(&key)?;
        if stored.body.change.hash != proposal.body.change.hash {
            return Err(Problem::not_found("proposal"));
        }
        check_pending(&stored.body, &find()?)?;
        stored.body.shadow = Some(summary.clone());
        stored.body.updated_at = summary.at;
        let version = repository.get::<ProposalShadow>(&key)?.map_or(0, |before| before.version);
        let shadow = ProposalShadow { workflow: workflow.id.clone(), report: report.clone() };
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        change.puts.push(repository.put(&key, &stored.body, stored.version)?);
        change.puts.push(repository.put(&key, &shadow, version)?);
        let details = [("shadowHash", summary.hash.as_str().into())];
        change.audit.push(audit(caller, "proposal.shadow", id, &stored.body, details));
        Ok((change, ()))
    })?;
    Ok(StoredShadow { summary, report })
}

fn report(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    proposal: &Proposal,
    against: &Against,
) -> Result<ShadowReport> {
    let compiled = compile(app, &caller.organization, &Document::placeless(proposal.change.data.0.clone()))?;
    let plan = effect_policy(app, &caller.organization)?.guarded(&Arc::new(compiled.plan), Some(&caller.organization));
    let mut run = ShadowRun::new(Source {
        store: &**app.engine.store(),
        loader: app.engine.loader(),
        evaluator: &*app.evaluator,
        tenant: &caller.organization,
        clock: now_ms,
        bounds: Bounds::REQUEST,
    });
    let rows = match against {
        Against::Last(count) => {
            let filter = Filter {
                organization: Some(caller.organization.clone()),
                workflow_id: Some(workflow.id.clone()),
                ..Filter::default()
            };
            run.choose(filter, *count)?
        }
        Against::Executions(ids) => named(app, caller, workflow, ids)?,
    };
    Ok(run.run(&plan, &rows, false)?)
}

fn named(app: &App, caller: &Caller, workflow: &Stored<Workflow>, ids: &[String]) -> Result<Vec<ExecutionRow>> {
    if ids.is_empty() || ids.len() > SHADOW_EXECUTIONS_MAX {
        return Err(Problem::field("executionIds", format!("it must have 1 to {SHADOW_EXECUTIONS_MAX} ids")));
    }
    let mut rows: Vec<ExecutionRow> = Vec::with_capacity(ids.len());
    for id in ids {
        let row = visible_execution(app, caller, id)?;
        if row.workflow_id.as_deref() != Some(&workflow.id) {
            let message = format!("`{}` is no execution of the workflow `{}`", row.id, workflow.id);
            return Err(Problem::field("executionIds", message));
        }
        if rows.iter().all(|known| known.key != row.key) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Checks that the caller is the author, or may review.
fn check_may_run(caller: &Caller, workflow: &Stored<Workflow>, proposal: &Proposal) -> Result<()> {
    if proposal.author.user == caller.user { Ok(()) } else { check_decides(caller, workflow) }
}

/// Checks that the proposal waits for a review. A later run would void an approval.
fn check_pending(proposal: &Proposal, workflow: &Stored<Workflow>) -> Result<()> {
    match status_at(proposal, workflow, now_ms()) {
        ProposalStatus::Pending => Ok(()),
        other => {
            let message = format!("A shadow run belongs to a pending proposal; this one is {}.", other.name());
            Err(Problem::new(Code::Conflict, message))
        }
    }
}
