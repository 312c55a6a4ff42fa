//! What an organisation's audit log says of what is done to its executions without a credential of its server: by whoever
//! has the store and its key at hand, and by the end of a gate's time.

use mainspring_kernel::{
    cbor,
    input::{Input, ORGANIZATION_IN_TRIGGER, Timer},
    record::Record,
    state::State,
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, ExecutionRow};

use crate::engine::now_ms;

/// The actor where nobody has decided in time. No member can have this name.
const NOBODY_IN_TIME: &str = "(timeout)";

/// The entry of an act of a user of the operating system; `None` for an execution that is no organisation's.
pub fn of_user(row: &ExecutionRow, user: &str, action: &str, detail: Map) -> Option<AuditEntry> {
    let organization = row.organization.clone()?;
    let (actor, target, at) = (user.into(), row.id.clone(), now_ms());
    Some(AuditEntry { organization, at, actor, action: action.into(), target, detail: with(detail, "command line") })
}

/// The entry of a gate of which the time is over, if these records of that decide it; `None` for an execution that is no
/// organisation's.
pub(crate) fn of_timeout(state: &State, input: &Input, records: &[Record]) -> Option<AuditEntry> {
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

/// The detail with what has let the act in, where a server names a token.
fn with(mut detail: Map, by: &str) -> Vec<u8> {
    detail.insert("by".into(), by.into());
    cbor::encode(&Value::Map(detail))
}
