//! The columns of the catalogue that follow from the state of an execution.

use mainspring_kernel::{
    input::ORGANIZATION_IN_TRIGGER,
    instance::Instance,
    record::Ending,
    state::{ExecutionStatus, GateState, State},
    value::Value,
};
use mainspring_store::GateRow;

/// The facts that a commit stores beside the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) status: ExecutionStatus,
    pub(crate) wake_at: Option<u64>,
    pub(crate) outcome: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) completed_at: Option<u64>,
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
        }
    }
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
