//! Audit entries of changes without a server credential: by a user with access to the store and its key, by the timeout
//! of a gate, or by an execution that starts another one. Entries for requests of a server come with the requests.

use mainspring_kernel::{
    cbor,
    decide::PeriodRaise,
    input::{Input, ORGANIZATION_IN_TRIGGER, Timer},
    record::Record,
    state::State,
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, ExecutionRow};

use crate::clock::now_ms;

/// The actor of a timeout. No member can have this name.
const NOBODY_IN_TIME: &str = "(timeout)";

/// The entry for an act of a user of the operating system. `None` for an execution without an organization.
pub fn of_user(row: &ExecutionRow, user: &str, action: &str, detail: Map) -> Option<AuditEntry> {
    let organization = row.organization.clone()?;
    let (actor, target, at) = (user.into(), row.id.clone(), now_ms());
    Some(AuditEntry { organization, at, actor, action: action.into(), target, detail: with(detail, "command line") })
}

/// The entry for an input that comes from a timer or another execution, if it needs one.
pub(crate) fn of_itself(state: &State, input: &Input, records: &[Record]) -> Option<AuditEntry> {
    of_timeout(state, input, records).or_else(|| of_child(state, input))
}

/// The entry for a detached child. `None` without an organization. A child that its parent waits for is a part of the
/// parent and has no entry, like the steps of the parent.
fn of_child(state: &State, input: &Input) -> Option<AuditEntry> {
    let Input::Start(start) = input else { return None };
    let is_detached = start.lineage.as_ref().is_some_and(|lineage| lineage.depth > 0 && lineage.parent.is_none());
    let said = |key: &str| start.trigger.get(key).cloned().unwrap_or_default();
    let organization = said(ORGANIZATION_IN_TRIGGER).as_text().filter(|_| is_detached)?.to_string();
    let detail = ["parentExecutionId", "parentStepId"].map(|key| (key.into(), said(key)));
    Some(AuditEntry {
        organization,
        at: state.now,
        actor: start.by.clone(),
        action: "execution.start".into(),
        target: start.execution_id.clone(),
        detail: with(Map::from(detail), "workflow"),
    })
}

/// The entry for a raise of the budget of a period, beside that of the decision. `None` for an execution without an
/// organization.
pub(crate) fn of_raise(state: &State, raise: &PeriodRaise) -> Option<AuditEntry> {
    let start = state.start.as_ref()?;
    let organization = start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text)?.to_string();
    let detail = Map::from([
        ("period".into(), raise.period.as_str().into()),
        ("workflow".into(), raise.workflow.as_deref().into()),
        ("raisedTo".into(), raise.to.to_value()),
    ]);
    Some(AuditEntry {
        organization,
        at: state.now,
        actor: raise.by.clone(),
        action: "budget.raise".into(),
        target: start.execution_id.clone(),
        detail: with(detail, "approval"),
    })
}

/// The entry for a gate that has expired, if these records close it. `None` for an execution without an organization.
fn of_timeout(state: &State, input: &Input, records: &[Record]) -> Option<AuditEntry> {
    let Input::Timer(Timer::Gate(instance, _)) = input else { return None };
    let start = state.start.as_ref()?;
    let organization = start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text)?.to_string();
    let decision = records.iter().find_map(|record| match record {
        Record::GateDecided { decision, .. } => Some(decision.name()),
        _ => None,
    })?;
    let step = instance.name(&state.plan);
    let detail = Map::from([("step".into(), step.into()), ("decision".into(), decision.into())]);
    Some(AuditEntry {
        organization,
        at: state.now,
        actor: NOBODY_IN_TIME.into(),
        action: "approval.decide".into(),
        target: start.execution_id.clone(),
        detail: with(detail, "timeout"),
    })
}

/// Adds the credential or the source of the act to the detail. A server names a token there.
fn with(mut detail: Map, by: &str) -> Vec<u8> {
    detail.insert("by".into(), by.into());
    cbor::encode(&Value::Map(detail))
}
