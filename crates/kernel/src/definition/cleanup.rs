//! `finally`: the steps that run when everything else has ended.

use alloc::format;

use super::{
    fields::Fields,
    help::Help,
    outline::Outline,
    references::Reader,
    report::{Report, named},
    step_types::Kind,
    suggest::rewrite_keys::into_finally,
};
use crate::{
    diagnostic,
    document::Path,
    fix::Fix,
    limits::{FINALLY_TIMEOUT_DEFAULT_MS, FINALLY_TIMEOUT_MAX_MS},
    plan::Finally,
    reference::{OUTCOME, Part, Reference},
    value::Value,
};

/// Keys that concern the result of the execution, which is settled before `finally` runs.
const OF_THE_RESULT: [(&str, &str); 3] = [
    ("bail", "leave it out: the execution is ending already"),
    ("outputVariable", "leave it out: the output of the execution is settled before"),
    ("needs", "leave it out: everything outside of `finally` has ended"),
];

/// Reads the list of `finally`; empty if there is none.
pub(super) fn steps_of<'a>(fields: &Fields<'a>, report: &mut Report<'_>) -> &'a [Value] {
    let Some(steps) = report.list(fields, "finally") else {
        if fields.has("finallyTimeoutMs") && !fields.has("finally") {
            let help = "add `finally: […]`, or take `finallyTimeoutMs` out";
            report.missing(fields, "finally", help);
        }
        return &[];
    };
    if steps.is_empty() {
        let path = fields.path.key("finally");
        report.error(diagnostic::EMPTY, &path, "`finally` is empty", "give it at least one step, or take it out");
    }
    steps
}

/// Reads the time of `finally`.
pub(super) fn read(fields: &Fields<'_>, outline: &Outline<'_>, report: &mut Report<'_>) -> Option<Finally> {
    let timeout_ms = report.whole(fields, "finallyTimeoutMs", 1..=FINALLY_TIMEOUT_MAX_MS);
    let timeout_ms = timeout_ms.unwrap_or(FINALLY_TIMEOUT_DEFAULT_MS);
    outline.finally.map(|block| Finally { block, timeout_ms })
}

impl Reader<'_, '_> {
    /// Reports the parts of a step that have no meaning in `finally`.
    pub(super) fn check_in_finally(&mut self, kind: Option<&'static Kind>, fields: &Fields<'_>) {
        if !self.outline.is_in_finally(self.number) {
            return;
        }
        if kind.is_some_and(|kind| kind.name == "return") {
            let message = "a `return` in `finally`: the result is settled before these steps run";
            let list = fields.path.parent();
            let is_only = self.report.document().part(&list).and_then(Value::as_list).is_some_and(|all| all.len() == 1);
            let gone = if is_only && list == Path::root().key("finally") { list } else { fields.path.clone() };
            let help = Help::new("take the step out", Fix::remove(&gone));
            self.report.error(diagnostic::MISPLACED_KEY, &fields.path.key("type"), message, help);
        }
        for (key, help) in OF_THE_RESULT.into_iter().filter(|(key, _)| fields.has(key)) {
            let message = format!("`{key}` of {} has no meaning in `finally`", named(&self.entry().id));
            let at = fields.path.key(key);
            self.report.error_at_key(diagnostic::MISPLACED_KEY, &at, message, Help::new(help, Fix::remove(&at)));
        }
    }

    /// Reports `@ctx.outcome` outside of `finally`, where no outcome is known.
    pub(super) fn check_context(&mut self, reference: &Reference, path: &Path) {
        let asks = matches!(reference.path.first(), Some(Part::Name(name)) if name == OUTCOME);
        if asks && (self.at_end_of_all || !self.outline.is_in_finally(self.number)) {
            let message = format!("`{reference}` is known in `finally` only, when the execution has an outcome");
            let fix = match self.at_end_of_all {
                true => Fix::default(),
                false => into_finally(&self.entry().fields.path, self.report.document()),
            };
            let help = Help::new("move the step that asks for it into `finally: […]` at the root", fix);
            self.report.error(diagnostic::UNKNOWN_REFERENCE, path, message, help);
        }
    }
}
