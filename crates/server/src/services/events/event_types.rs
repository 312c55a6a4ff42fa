//! The types of events, and the patterns by which a subscription selects them.

use mainspring_triggers::limits::EVENT_TYPES_MAX;

use crate::http::problem::{Problem, Result};

/// The types of events with their meaning, for the check of patterns and for the reference.
pub(crate) const EVENT_TYPES: [(&str, &str); 16] = [
    ("workflow.execution.enqueued", "An execution was accepted and is durable."),
    ("workflow.execution.started", "It began to run, at once or after it had waited for a concurrency limit."),
    ("workflow.execution.cancel_requested", "A cancellation was requested; steps are ending."),
    ("workflow.execution.migrated", "It continues with another definition, as `version` and `reason` say."),
    ("workflow.execution.finished", "It ended. `status` is `completed`, `failed` or `cancelled`."),
    ("workflow.step.started", "An attempt of a step started."),
    ("workflow.step.retrying", "An attempt failed, and another one follows at `retryAt`."),
    ("workflow.step.completed", "A step completed."),
    ("workflow.step.failed", "A step failed. `disposition` says if the execution fails with it."),
    ("workflow.step.skipped", "A step was skipped."),
    ("workflow.step.cancelled", "A step was canceled."),
    ("workflow.approval.required", "An approval gate opened."),
    ("workflow.approval.approved", "A member approved at a gate."),
    ("workflow.approval.denied", "A member denied at a gate."),
    ("workflow.budget.warning", "Agents have used a large part of a budget."),
    ("workflow.budget.raised", "A member raised a budget."),
];

/// The type of the event of a test delivery.
pub(crate) const TEST_TYPE: &str = "workflow.subscription.test";

/// True if one of the patterns selects a type.
pub(crate) fn selects(patterns: &[String], event_type: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, event_type))
}

fn matches(pattern: &str, event_type: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => event_type.starts_with(prefix),
        None => pattern == event_type,
    }
}

/// Checks the patterns of a subscription: types, or prefixes with `.*`. Each must select a type.
pub(crate) fn check_patterns(patterns: &[String]) -> Result<()> {
    if !(1..=EVENT_TYPES_MAX).contains(&patterns.len()) {
        let message = format!("name 1 to {EVENT_TYPES_MAX} types, or `workflow.*` for all");
        return Err(Problem::field("types", message));
    }
    let is_known = |pattern: &&String| {
        let has_form = pattern.find('*').is_none_or(|at| at + 1 == pattern.len() && pattern.ends_with(".*"));
        has_form && EVENT_TYPES.iter().any(|(event_type, _)| matches(pattern, event_type))
    };
    match patterns.iter().find(|pattern| !is_known(pattern)) {
        None => Ok(()),
        Some(unknown) => {
            let shown: String = unknown.chars().take(100).collect();
            let message = format!(
                "`{shown}` selects no event: name a type such as `workflow.execution.finished`, or a prefix such as \
                 `workflow.step.*`"
            );
            Err(Problem::field("types", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn patterns_select_types_and_prefixes() {
        let all = |pattern: &str| {
            let selected = EVENT_TYPES.iter().filter(|(event_type, _)| selects(&patterns(&[pattern]), event_type));
            selected.count()
        };
        assert_eq!(all("workflow.*"), EVENT_TYPES.len());
        assert_eq!((all("workflow.step.*"), all("workflow.execution.*")), (6, 5));
        assert_eq!((all("workflow.step.failed"), all("workflow.step.fail"), all("workflow.step")), (1, 0, 0));
        assert!(selects(&patterns(&["workflow.step.failed", "workflow.budget.*"]), "workflow.budget.raised"));
    }

    #[test]
    fn the_reference_has_every_type() {
        let reference = include_str!("../../../../../docs/reference/events.md");
        for (event_type, meaning) in EVENT_TYPES {
            let row = format!("| `{event_type}` | {meaning} |");
            assert!(reference.contains(&row), "{row}");
        }
        let named = reference.lines().filter(|line| line.starts_with("| `workflow.")).count();
        assert_eq!(named, EVENT_TYPES.len());
    }

    #[test]
    fn a_pattern_without_events_is_refused_by_name() {
        assert!(check_patterns(&patterns(&["workflow.*", "workflow.step.failed"])).is_ok());
        for wrong in ["*", "", "workflow.step", "workflow.st*", "workflow.*.failed", "workflow.step.fail", "step.*"] {
            let refused = check_patterns(&patterns(&["workflow.*", wrong])).unwrap_err();
            assert!(refused.message.contains(&format!("`{wrong}`")), "{}", refused.message);
        }
        assert!(check_patterns(&[]).is_err());
        assert!(check_patterns(&vec!["workflow.*".to_string(); EVENT_TYPES_MAX + 1]).is_err());
    }
}
