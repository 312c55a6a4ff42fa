//! The envelope: the JSON object with the result of a call (first specification, 6.2 and 6.5). This module formats
//! given values and reads no store.

use mainspring_kernel::{
    decide::usage_of,
    diagnostic::{Diagnostic, Severity},
    failure::Failure,
    history::{AttemptHistory, History},
    instance::Instance,
    plan::Plan,
    record::{Ending, Purpose},
    state::{ExecutionStatus, State},
    time::rfc3339,
    value::{Map, Value},
};

use crate::execution_tree::OpenGate;

/// The envelope of an execution in any state, with the open approvals of it and of its children.
pub fn of_execution(state: &State, history: &History, gates: &[OpenGate]) -> Value {
    let status = status(state);
    let gates: Vec<Value> = gates.iter().map(gate_value).collect();
    let mut map = Map::new();
    map.insert("ok".into(), (status != "failed").into());
    map.insert("status".into(), status.into());
    map.insert("executionId".into(), state.start.as_ref().map(|start| start.execution_id.as_str()).into());
    map.insert("workflowHash".into(), state.plan.workflow_hash.prefixed().into());
    map.insert("output".into(), state.output().cloned().unwrap_or_else(|| Value::Map(state.outputs.clone())));
    map.insert("steps".into(), history.attempts.iter().map(AttemptHistory::to_value).collect::<Vec<_>>().into());
    map.insert("requiresApproval".into(), gates.first().cloned().unwrap_or_default());
    map.insert("approvals".into(), gates.into());
    map.insert("error".into(), error(state));
    if state.status() == ExecutionStatus::Completed && state.end.with_failures {
        map.insert("outcome".into(), "with_failures".into());
    }
    if let Some(usage) = usage_of(state) {
        map.insert("usage".into(), usage);
    }
    Value::Map(map)
}

/// The envelope of a call that did not arrive at an execution, or lost the connection to it.
pub fn of_refusal(execution_id: Option<&str>, failure: &Failure) -> Value {
    Value::map([
        ("ok", false.into()),
        ("status", "failed".into()),
        ("executionId", execution_id.into()),
        ("output", Map::new().into()),
        ("steps", Vec::new().into()),
        ("requiresApproval", Value::Null),
        ("approvals", Vec::new().into()),
        ("error", failure.to_value()),
    ])
}

/// The envelope of a valid definition: its hash, the order of its steps, and warnings.
pub fn of_plan(plan: &Plan, warnings: &[Diagnostic]) -> Value {
    // The model and the calls of an agent are not steps of the author, and the body of a `forEach` has its id.
    let is_written = |number: &u32| {
        let is_body = plan.parent(*number).is_some_and(|parent| plan.id(parent) == plan.id(*number));
        plan.agent_part(*number).is_none() && !is_body
    };
    let order: Vec<Value> = (0..plan.steps.len() as u32).filter(is_written).map(|step| plan.id(step).into()).collect();
    Value::map([
        ("ok", true.into()),
        ("status", "valid".into()),
        ("workflowHash", plan.workflow_hash.prefixed().into()),
        ("errors", Vec::new().into()),
        ("warnings", warnings.iter().map(Diagnostic::to_value).collect::<Vec<_>>().into()),
        ("stepOrder", order.into()),
    ])
}

/// The envelope of an invalid definition.
pub fn of_diagnostics(diagnostics: &[Diagnostic]) -> Value {
    let of = |severity| -> Vec<Value> {
        diagnostics.iter().filter(|found| found.severity == severity).map(Diagnostic::to_value).collect()
    };
    Value::map([
        ("ok", false.into()),
        ("status", "invalid".into()),
        ("workflowHash", Value::Null),
        ("errors", of(Severity::Error).into()),
        ("warnings", of(Severity::Warning).into()),
        ("stepOrder", Value::Null),
    ])
}

/// The envelope of a definition whose warnings count as errors: each is listed in `errors` with that severity.
pub fn of_strict(warnings: Vec<Value>) -> Value {
    let mut errors = warnings;
    for error in &mut errors {
        if let Value::Map(error) = error {
            error.insert("severity".into(), Severity::Error.name().into());
        }
    }
    let mut envelope = of_diagnostics(&[]);
    if let Value::Map(envelope) = &mut envelope {
        envelope.insert("errors".into(), errors.into());
    }
    envelope
}

/// The status in the envelope: `ok`, `needs_approval`, `cancelled`, `failed`, or `running` for an unfinished execution.
pub fn status(state: &State) -> &'static str {
    match state.status() {
        ExecutionStatus::Completed => "ok",
        ExecutionStatus::WaitingApproval => "needs_approval",
        ExecutionStatus::Cancelled => "cancelled",
        ExecutionStatus::Failed => "failed",
        ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested => "running",
    }
}

/// The JSON of a gate. A gate of a child also has the child's id and the path.
pub fn gate_value(open: &OpenGate) -> Value {
    let gate = &open.gate;
    let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>();
    let mut value = Value::map([
        ("stepId", open.step.as_str().into()),
        ("prompt", gate.prompt.as_str().into()),
        ("items", gate.items.clone()),
        ("approvers", texts(&gate.approvers).into()),
        ("count", gate.count.into()),
        ("approvedBy", texts(&gate.approved_by).into()),
        ("expiresAt", rfc3339(gate.expires_at).into()),
        ("resumeToken", open.token.as_str().into()),
    ]);
    if let (Value::Map(map), Purpose::Form) = (&mut value, gate.purpose) {
        map.insert("purpose".into(), "form".into());
    }
    if let (Value::Map(map), Some(child)) = (&mut value, &open.child_id) {
        map.insert("executionId".into(), child.as_str().into());
        map.insert("path".into(), open.path.as_str().into());
    }
    value
}

/// The error that ended an execution, with the failed step. Null until it has ended.
pub fn error(state: &State) -> Value {
    let (mut error, step) = match state.end.ending.as_ref().filter(|_| state.end.ended_at.is_some()) {
        Some(Ending::Failed { fault, instance, .. }) => (fault.failure().to_value(), instance.as_ref()),
        Some(Ending::Cancelled { reason }) => (Failure::of_cancel(reason).to_value(), None),
        _ => return Value::Null,
    };
    if let (Value::Map(error), Some(step)) = (&mut error, step) {
        error.insert("stepId".into(), innermost(state, step).name(&state.plan).into());
    }
    error
}

/// The innermost step whose failure caused the failure of its blocks.
fn innermost<'a>(state: &'a State, failed: &'a Instance) -> &'a Instance {
    let blocks = state.plan.step(failed.step).work.branches();
    let is_inside =
        |instance: &&Instance| blocks.iter().any(|(_, block)| state.plan.step(instance.step).block == *block);
    let reason = |instance: &Instance| state.steps.get(instance).and_then(|step| step.failure.as_ref());
    let inner = state.steps.keys().filter(is_inside).find(|inner| {
        let is_tolerated = state.steps.get(*inner).is_some_and(|step| step.tolerated);
        !is_tolerated && reason(inner).is_some() && reason(inner) == reason(failed)
    });
    inner.map_or(failed, |inner| innermost(state, inner))
}
