//! The columns of the catalogue that follow from the state of an execution.

use mainspring_kernel::{
    budget::cost_of,
    decide::usage_of,
    input::ORGANIZATION_IN_TRIGGER,
    instance::Instance,
    record::Ending,
    state::{ExecutionStatus, GateState, State},
    value::Value,
};
use mainspring_store::{GateRow, RowDefinition, RowUsage};

/// The facts that a commit stores beside the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) status: ExecutionStatus,
    pub(crate) wake_at: Option<u64>,
    pub(crate) outcome: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) completed_at: Option<u64>,
    pub(crate) usage: Option<RowUsage>,
    pub(crate) definition: Option<RowDefinition>,
}

impl Summary {
    pub(crate) fn of(state: &State) -> Self {
        let status = state.status();
        Self {
            status,
            wake_at: state.wake_at(),
            outcome: outcome(state, status),
            error: error(state),
            completed_at: state.end.ended_at,
            usage: state.end.ended_at.map(|_| usage(state)),
            definition: definition(state),
        }
    }
}

/// The definition of a migrated execution.
fn definition(state: &State) -> Option<RowDefinition> {
    let (start, _) = (state.start.as_ref()?, state.journal.migration.as_ref()?);
    Some(RowDefinition {
        workflow_version: state.workflow_version().map(Into::into),
        workflow_hash: start.workflow_hash.prefixed(),
        plan_hash: start.plan_hash,
    })
}

/// The usage of the agents and children, 0 without them. A cost above a million of the currency, which no budget permits,
/// counts as 0.
fn usage(state: &State) -> RowUsage {
    let account = usage_of(state).unwrap_or_default();
    let used = |name| account.get("used").and_then(|used| used.get(name));
    let tokens = used("tokens").and_then(Value::as_u64).unwrap_or_default().min(i64::MAX as u64);
    RowUsage { tokens, cost: used("cost").and_then(cost_of).unwrap_or_default() }
}

fn outcome(state: &State, status: ExecutionStatus) -> Option<String> {
    (status == ExecutionStatus::Completed && state.end.with_failures).then(|| "with_failures".into())
}

/// A planned ending is not final: a cancel can precede it.
fn error(state: &State) -> Option<String> {
    match state.end.ending.as_ref().filter(|_| state.end.ended_at.is_some())? {
        Ending::Completed { .. } => None,
        Ending::Failed { fault, .. } => Some(fault.code.clone()),
        Ending::Cancelled { reason } => Some(reason.clone()),
    }
}

/// The rows of all open gates. The state does not contain the time of opening, so it is approximated by the last turn.
pub(crate) fn open_gates(state: &State) -> Vec<GateRow> {
    state.open_gates().map(|(instance, gate)| gate_row(state, instance, gate, state.now)).collect()
}

pub(crate) fn gate_row(state: &State, instance: &Instance, gate: &GateState, opened_at: u64) -> GateRow {
    let trigger = state.start.as_ref().map(|start| &start.trigger);
    let organization = trigger.and_then(|trigger| trigger.get(ORGANIZATION_IN_TRIGGER)).and_then(Value::as_text);
    GateRow {
        execution: state.key,
        step: instance.name(&state.plan),
        gate: gate.number,
        organization: organization.map(Into::into),
        opened_at,
        expires_at: gate.expires_at,
        on_timeout: gate.on_timeout.name().into(),
    }
}
