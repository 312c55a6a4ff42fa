//! What the audit log of an organisation says of what is done here to its executions, beside its server and in the words
//! of that; nothing of an execution that is no organisation's.

use mainspring_engine::{family::OpenGate, noting::of_user};
use mainspring_kernel::{plan::Decision, value::Map, value::Value};
use mainspring_store::{AuditEntry, ExecutionRow};

/// Of a decision at a gate.
pub(crate) fn decision(
    row: &ExecutionRow,
    open: &OpenGate,
    decision: Decision,
    reason: &Value,
    by: &str,
) -> Option<AuditEntry> {
    let detail =
        [("step", Value::from(open.path.as_str())), ("decision", decision.name().into()), ("reason", reason.clone())];
    of_user(row, by, "approval.decide", map(detail))
}

/// Of a cancel.
pub(crate) fn cancel(row: &ExecutionRow, reason: &str, by: &str) -> Option<AuditEntry> {
    of_user(row, by, "execution.cancel", map([("reason", reason.into())]))
}

/// Of a signal.
pub(crate) fn signal(row: &ExecutionRow, name: &str, by: &str) -> Option<AuditEntry> {
    of_user(row, by, "execution.signal", map([("name", name.into())]))
}

fn map<const N: usize>(detail: [(&str, Value); N]) -> Map {
    Map::from(detail.map(|(key, value)| (key.to_string(), value)))
}
