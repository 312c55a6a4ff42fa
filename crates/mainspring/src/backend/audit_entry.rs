//! Audit entries for changes that the command line makes to executions of an organization, in the format of a
//! server. An execution without organization has none.

use mainspring_engine::{audit::of_user, execution_tree::OpenGate};
use mainspring_kernel::{plan::Decision, value::Map, value::Value};
use mainspring_store::{AuditEntry, ExecutionRow};

/// The entry of a decision.
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

pub(crate) fn cancel(row: &ExecutionRow, reason: &str, by: &str) -> Option<AuditEntry> {
    of_user(row, by, "execution.cancel", map([("reason", reason.into())]))
}

pub(crate) fn signal(row: &ExecutionRow, name: &str, by: &str) -> Option<AuditEntry> {
    of_user(row, by, "execution.signal", map([("name", name.into())]))
}

pub(crate) fn message(row: &ExecutionRow, conversation: Option<&str>, interrupt: bool, by: &str) -> Option<AuditEntry> {
    let detail = [("conversation", conversation.into()), ("interrupt", interrupt.into())];
    of_user(row, by, "execution.message", map(detail))
}

fn map<const N: usize>(detail: [(&str, Value); N]) -> Map {
    Map::from(detail.map(|(key, value)| (key.to_string(), value)))
}
