//! The second look at a definition: each step by itself, against the outline of all.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    kinds::{COMMON_KEYS, EFFECT_KEYS, KINDS, Kind, LATER_KEYS},
    outline::{Entry, Outline, check_name},
    references::Reader,
    report::{Fields, Report},
    retry,
};
use crate::{
    diagnostic,
    limits::{
        AGENT_TIMEOUT_DEFAULT_MS, SHELL_TIMEOUT_DEFAULT_MS, SHELL_TIMEOUT_MAX_MS, TOOL_TIMEOUT_DEFAULT_MS, WAIT_MAX_MS,
    },
    plan::{OnError, OnInterrupted, Retry, Step, Work},
};

/// Reads every step of an outline. Steps with mistakes are left out: the result is of use only if there were none.
pub(super) fn read<'a>(outline: &Outline<'a>, report: &mut Report<'a>) -> Vec<Step> {
    let mut searches = 0;
    let numbers = 0..outline.entries.len() as u32;
    numbers.filter_map(|number| Reader { outline, number, report, searches: &mut searches }.step()).collect()
}

impl Reader<'_, '_> {
    fn step(&mut self) -> Option<Step> {
        let Entry { fields, kind, id, block, .. } = &self.outline.entries[self.number as usize];
        if let Some(kind) = kind {
            self.check_keys(kind, fields);
        }
        self.report.text(fields, "name");
        self.report.text(fields, "description");
        let when = fields.get("when").map(|when| self.condition(when, &fields.path.key("when")));
        let on_error = self.report.word(fields, "onError", &OnError::ALL.map(|on_error| (on_error.name(), on_error)));
        let output_variable = self.report.filled_text(fields, "outputVariable");
        if let Some(name) = output_variable {
            check_name(name, "outputVariable", &fields.path, self.report);
        }
        let kind = (*kind)?;
        let (retry, timeout_ms, on_interrupted) = self.effect_keys(kind, fields);
        let work = self.work(kind, fields)?;
        Some(Step {
            id: id.clone(),
            block: *block,
            when: when.flatten(),
            timeout_ms: timeout_of(&work, timeout_ms, fields),
            work,
            retry,
            on_error: on_error.unwrap_or(OnError::Fail),
            on_interrupted,
            output_variable: output_variable.map(ToString::to_string),
        })
    }

    fn effect_keys(&mut self, kind: &Kind, fields: &Fields<'_>) -> (Retry, Option<u64>, OnInterrupted) {
        if !kind.is_effect {
            return (Retry::never(), None, OnInterrupted::Retry);
        }
        let retry = retry::read(fields, self.report);
        let is_shell = kind.name == "bash" || super::work::is_shell_tool(kind, fields);
        let longest_ms = if is_shell { SHELL_TIMEOUT_MAX_MS } else { WAIT_MAX_MS };
        let timeout_ms = self.report.whole(fields, "timeoutMs", 1..=longest_ms);
        let words = OnInterrupted::ALL.map(|on_interrupted| (on_interrupted.name(), on_interrupted));
        let on_interrupted = self.report.word(fields, "onInterrupted", &words);
        (retry, timeout_ms, on_interrupted.unwrap_or(OnInterrupted::Retry))
    }

    /// Each key is known and in its place, or it is refused.
    fn check_keys(&mut self, kind: &Kind, fields: &Fields<'_>) {
        for key in fields.map.keys().map(String::as_str) {
            if COMMON_KEYS.contains(&key) || kind.keys.contains(&key) || kind.is_effect && EFFECT_KEYS.contains(&key) {
                continue;
            }
            if EFFECT_KEYS.contains(&key) {
                self.misplaced_key(kind, fields, key);
            } else if !kind.runs {
                // What belongs to a type that does not run is decided when it does.
            } else if LATER_KEYS.contains(&key) {
                self.report.later_key(&fields.path, key);
            } else {
                self.unknown_step_key(kind, fields, key);
            }
        }
    }

    fn misplaced_key(&mut self, kind: &Kind, fields: &Fields<'_>, key: &str) {
        let message = format!("`{key}` is for steps that do work, and `{}` does none by itself", kind.name);
        let mend = match (kind.branches, kind.name, key) {
            ([_, ..], ..) => "put it on the steps inside".to_string(),
            (_, "approval", "timeoutMs") => "write `ttlMs`: how long the gate stays open".to_string(),
            (_, "sleep", "timeoutMs") => "write `durationMs`".to_string(),
            _ => "leave it out".to_string(),
        };
        self.report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key(key), message, mend);
    }

    fn unknown_step_key(&mut self, kind: &Kind, fields: &Fields<'_>, key: &str) {
        let owners: Vec<_> = KINDS.iter().filter(|other| other.keys.contains(&key)).map(|kind| kind.name).collect();
        if owners.is_empty() {
            return self.report.unknown_key(&fields.path, key, kind.all_keys());
        }
        let message = format!("`{key}` is no key of `{}` steps", kind.name);
        let mend = format!("it belongs to: {}", owners.join(", "));
        self.report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key(key), message, mend);
    }
}

fn timeout_of(work: &Work, given_ms: Option<u64>, fields: &Fields<'_>) -> Option<u64> {
    let Work::Effect { effect, .. } = work else { return None };
    let awaited_ms = fields.get("await_timeout_ms").and_then(crate::value::Value::as_u64);
    Some(match effect.as_str() {
        "bash" => given_ms.unwrap_or(SHELL_TIMEOUT_DEFAULT_MS),
        "tool" => given_ms.unwrap_or(TOOL_TIMEOUT_DEFAULT_MS),
        _ => awaited_ms.or(given_ms).unwrap_or(AGENT_TIMEOUT_DEFAULT_MS),
    })
}

/// Refuses a step of a type that does not run, with the mistakes that can be told all the same.
pub(super) fn refuse_type(kind: &Kind, fields: &Fields<'_>, report: &mut Report<'_>) {
    for key in kind.required.iter().filter(|key| !fields.has(key)) {
        report.missing(fields, key, format!("a `{}` step needs it", kind.name));
    }
    let message = format!("`{}` steps are not in this build yet", kind.name);
    let runs: Vec<_> = KINDS.iter().filter(|kind| kind.runs).map(|kind| kind.name).collect();
    report.error(
        diagnostic::NOT_IN_BUILD,
        &fields.path.key("type"),
        message,
        format!("in this build: {}", runs.join(", ")),
    );
}
