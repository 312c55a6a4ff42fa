//! Migrations of running executions to another definition of their workflow: the preview, the begin at the application of a
//! proposal, and the check of one execution. `migration_rounds` does the work.

use std::sync::Arc;

use mainspring_engine::journal_loader::{LoadError, StateWithin};
use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    migration::{Reason, check},
    plan::{Plan, PlanBytes},
    state::State,
};
use mainspring_store::{ExecutionRow, Filter, Put};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Data,
        problem::{Problem, Result},
    },
    resources::{
        MigrationRun, OpenMigration, Proposal, StayReason, StayedExecution, Workflow, proposal_key,
        repository::{Repository, Stored},
    },
    services::{compile::request_of, drains::UNFINISHED},
};

/// Largest journal that a preview reads, in bytes. A page of them is read by one request.
const PREVIEW_JOURNAL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reasons that are stored for one execution. The first ones explain the others.
const REASONS_STORED_MAX: usize = 4;

/// The definition with which executions continue, as a plan with the rules for its calls.
pub(super) struct Target {
    pub plan: Arc<Plan>,
    pub bytes: PlanBytes,
    pub plan_hash: Hash,
    /// `sha256:…` of the definition.
    pub hash: String,
}

impl Target {
    /// Prepares a definition of a workflow as a start does.
    pub(super) fn of(app: &App, organization: &str, workflow: &Workflow) -> Result<Self> {
        let repository = Repository::of(app.catalogue(), organization);
        let request = request_of(app, repository, workflow, (&workflow.user, ""))?;
        let stored = request.stored_plans().into_iter().next();
        let stored = stored.ok_or_else(|| Problem::not_found("plan"))?;
        let (bytes, plan_hash) = (PlanBytes(stored.bytes), stored.hash);
        Ok(Self { plan: request.plan, bytes, plan_hash, hash: workflow.hash.clone() })
    }

    /// The reasons for which an execution stays; none if it can continue with this definition.
    pub(super) fn reasons(&self, state: &State) -> Vec<StayReason> {
        let reasons = check(state, &self.plan, self.bytes.0.len()).err().unwrap_or_default();
        reasons.into_iter().map(of_kernel).collect()
    }
}

fn of_kernel(reason: Reason) -> StayReason {
    StayReason { code: reason.code.into(), step_id: reason.step, message: reason.message }
}

/// A reason about an execution that was not compared.
pub(super) fn reason(code: &str, message: &str) -> StayReason {
    StayReason { code: code.into(), step_id: None, message: message.into() }
}

/// An execution that stays, with the reasons that are stored.
pub(super) fn stays(row: &ExecutionRow, mut reasons: Vec<StayReason>) -> StayedExecution {
    reasons.truncate(REASONS_STORED_MAX);
    StayedExecution { execution_id: row.id.clone(), reasons }
}

/// A page of the unfinished executions of a workflow, the newest first.
pub(super) fn unfinished(
    app: &App,
    organization: &str,
    workflow: &str,
    after: Option<ExecutionKey>,
    most: usize,
) -> Result<Vec<ExecutionRow>> {
    let filter = Filter {
        statuses: UNFINISHED.map(String::from).into(),
        organization: Some(organization.into()),
        workflow_id: Some(workflow.into()),
        ..Filter::default()
    };
    Ok(app.engine.store().executions(&filter, after, most)?)
}

/// An execution in a preview.
pub(crate) struct Previewed {
    pub execution_id: String,
    /// None if it would continue with the definition.
    pub reasons: Vec<StayReason>,
}

/// A page of a preview.
pub(crate) struct Preview {
    pub executions: Vec<Previewed>,
    pub next_cursor: Option<String>,
}

/// Compares unfinished executions of a workflow with a proposed definition. Nothing changes.
pub(crate) fn preview(
    app: &App,
    organization: &str,
    (workflow, proposal): (&Stored<Workflow>, &Proposal),
    (after, most): (Option<ExecutionKey>, usize),
) -> Result<Preview> {
    let change = &proposal.change;
    let body = Workflow { data: Data(change.data.0.clone()), hash: change.hash.clone(), ..workflow.body.clone() };
    let target = Target::of(app, organization, &body)?;
    let rows = unfinished(app, organization, &workflow.id, after, most)?;
    let next_cursor = rows.last().filter(|_| rows.len() >= most).map(|last| last.key.to_string());
    let mut executions = Vec::with_capacity(rows.len());
    for row in rows.into_iter().filter(|row| row.workflow_hash != target.hash) {
        let reasons = reasons_within(app, &row, &target)?;
        executions.push(Previewed { execution_id: row.id, reasons });
    }
    Ok(Preview { executions, next_cursor })
}

/// The reasons for which an execution would stay, if its journal is small enough for a request.
fn reasons_within(app: &App, row: &ExecutionRow, target: &Target) -> Result<Vec<StayReason>> {
    match app.engine.loader().state_within(row.key, PREVIEW_JOURNAL_BYTES_MAX) {
        Ok(StateWithin::Read(state)) => Ok(target.reasons(&state)),
        Ok(StateWithin::TooLarge) => {
            Ok(vec![reason("not_compared", "its journal is too large for a preview; the application compares it")])
        }
        Ok(StateWithin::Missing) => Ok(vec![reason("execution_ending", "the execution has ended")]),
        Ok(StateWithin::Quarantined) => Ok(vec![reason("quarantined", "the execution is quarantined")]),
        Err(LoadError::Store(error)) => Err(error.into()),
        Err(error) => Ok(vec![reason("journal_unreadable", &error.to_string())]),
    }
}

/// The rows of a migration that begins with an application.
pub(super) fn begin(app: &App, caller: &Caller, proposal: &str, workflow: &Stored<Workflow>) -> Result<Vec<Put>> {
    let run = MigrationRun {
        workflow: workflow.id.clone(),
        hash: workflow.body.hash.clone(),
        version: workflow.body.version.clone(),
        by: caller.user.clone(),
        after: None,
        asked: Vec::new(),
        migrated: 0,
        stayed: 0,
        stays: Vec::new(),
        since: workflow.body.updated_at,
        ended: None,
    };
    let organization = caller.organization.clone();
    let open = OpenMigration { organization, workflow: workflow.id.clone(), proposal: proposal.into() };
    let repository = Repository::of(app.catalogue(), &caller.organization);
    Ok(vec![
        repository.put(&proposal_key(&workflow.id, proposal), &run, 0)?,
        Repository::of(app.catalogue(), "").put(&open.id(), &open, 0)?,
    ])
}
