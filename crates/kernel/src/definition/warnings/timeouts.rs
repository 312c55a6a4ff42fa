//! Times of a step that the execution does not live to see.

use alloc::format;

use crate::{
    definition::{
        outline::{Entry, Role},
        report::{Report, named},
    },
    diagnostic,
    document::Path,
    plan::{Plan, Step},
    value::Value,
};

/// The keys of a step that are times in milliseconds, each with the object that holds it; empty for the step itself. The
/// time of an open gate does not count towards the timeout of an execution, so `ttlMs` is not among them.
const TIMES: [(&str, &str); 4] =
    [("", "timeoutMs"), ("config", "timeoutMs"), ("", "await_timeout_ms"), ("", "durationMs")];

pub(super) fn check(plan: &Plan, _: &Step, entry: &Entry<'_>, report: &mut Report<'_>) {
    let Some(timeout_ms) = plan.constraints.timeout_ms else { return };
    if !matches!(entry.role, Role::Whole | Role::Body) {
        return;
    }
    for (holder, key) in TIMES {
        let fields = &entry.fields;
        let value = if holder.is_empty() { fields.get(key) } else { fields.get(holder).and_then(|held| held.get(key)) };
        let Some(own_ms) = value.and_then(Value::as_u64).filter(|own_ms| *own_ms > timeout_ms) else { continue };
        let path: Path = if holder.is_empty() { fields.path.key(key) } else { fields.path.key(holder).key(key) };
        let message = format!(
            "`{key}` of {} is {own_ms}, and the execution ends after {timeout_ms} ms (`constraints.timeoutMs`)",
            named(&entry.id)
        );
        let help = format!("write at most {timeout_ms}, or raise `constraints.timeoutMs`");
        report.warning(diagnostic::TIMEOUT_ABOVE_EXECUTION, &path, message, help);
    }
}
