//! Access to executions: the execution that a caller may see or control, and the gates at which a caller may decide.

use mainspring_engine::execution_tree::OpenGate;
use mainspring_kernel::{key::ExecutionKey, record::Purpose, value::Value};
use mainspring_store::{ExecutionRow, StoreError};

use crate::{
    app::App,
    auth::{
        caller::{Caller, Kind},
        permission::Permission,
    },
    http::problem::{Code, Problem, Result},
};

/// The row of an execution that the caller may see, by its id.
pub(crate) fn visible_execution(app: &App, caller: &Caller, id: &str) -> Result<ExecutionRow> {
    let unknown = || Problem::not_found("execution");
    let row = match ExecutionKey::parse(id) {
        Some(key) => app.engine.store().execution(key)?,
        None => app.engine.store().execution_by_id(id)?,
    };
    let row = row.ok_or_else(unknown)?;
    if row.organization.as_deref() == Some(&caller.organization) { Ok(row) } else { Err(unknown()) }
}

/// The execution of [`visible_execution`], for a caller who acts on it.
pub(crate) fn actionable_execution(app: &App, caller: &Caller, id: &str) -> Result<ExecutionRow> {
    let row = visible_execution(app, caller, id)?;
    check_origin(app, &row)?;
    Ok(row)
}

/// Checks the columns that decide who may act on an execution against its journal: they have no seal. An execution whose
/// journal cannot be read passes, since the engine refuses every input for it.
pub(crate) fn check_origin(app: &App, row: &ExecutionRow) -> Result<()> {
    let Some(origin) = app.execution_origins.get(&app.engine, row.key) else { return Ok(()) };
    if origin.fits(row) {
        return Ok(());
    }
    tracing::error!(execution = %row.key, "organization or initiator of an execution contradict its journal");
    let why = "organization or initiator of the execution contradict its journal, so something other than Mainspring has changed \
               the store";
    Err(Problem::from(StoreError::Damaged(why.into())))
}

/// Checks that the caller may control an execution: their own one, or any as an admin. A session may control only its
/// own execution.
pub(crate) fn check_control(caller: &Caller, row: &ExecutionRow) -> Result<()> {
    let is_theirs = row.initiator_user_id.as_deref().is_some_and(|user| caller.may_act_for(user));
    let is_its_own = match &caller.kind {
        Kind::Person => true,
        Kind::Session { execution } => *execution == row.id,
    };
    if is_theirs && is_its_own {
        return Ok(());
    }
    let message = match &caller.kind {
        Kind::Session { .. } if is_theirs => "The token of a session may only control its own execution.",
        _ => "This execution is another member's; its owner or an admin may do that.",
    };
    Err(Problem::new(Code::Forbidden, message))
}

/// True if only admins may decide at a gate: the budget of a day or a month is not the execution's own.
pub(crate) fn is_for_admins(purpose: Purpose, items: &Value) -> bool {
    purpose == Purpose::Budget && items.get("period").is_some()
}

/// True if the caller may decide at a gate: a named approver, or without names the execution's owner or an admin.
pub(crate) fn may_decide(caller: &Caller, row: &ExecutionRow, open: &OpenGate) -> bool {
    may_decide_among(caller, row, &open.gate.approvers, is_for_admins(open.gate.purpose, &open.gate.items))
}

/// As [`may_decide`], for a gate with these named approvers.
pub(crate) fn may_decide_among(caller: &Caller, row: &ExecutionRow, named: &[String], is_for_admins: bool) -> bool {
    let is_named = named.contains(&caller.user);
    let is_owner = row.initiator_user_id.as_deref().is_some_and(|user| caller.may_act_for(user));
    let may = if named.is_empty() { is_owner } else { is_named };
    may && (!is_for_admins || caller.role.is_admin()) && caller.is_person() && caller.has(Permission::ApprovalsDecide)
}
