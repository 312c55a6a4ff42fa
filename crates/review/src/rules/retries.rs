//! Retry policies: repeated more often, sooner, after more failures, without asking, or with another key.

use std::collections::BTreeSet;

use mainspring_kernel::value::Value;

use crate::outline::Node;

/// Classes that are retried if a policy does not list others.
const RETRYABLE: [&str; 4] = ["transient", "rate_limited", "timeout", "unavailable"];

/// Returns the first reason for which the new policy repeats more than the old one.
pub(super) fn loosened(before: &Node, after: &Node) -> Option<&'static str> {
    let (old, new) = (Policy::of(before), Policy::of(after));
    if new.attempts > old.attempts {
        return Some("it has more attempts");
    }
    if new.attempts > 1 && !new.retried.is_subset(&old.retried) {
        return Some("it is retried after more kinds of failures");
    }
    if new.attempts > 1 && !old.excluded.is_subset(&new.excluded) {
        return Some("`neverOn` excludes fewer kinds of failures");
    }
    if new.attempts > 1 && old.attempts > 1 && new.first_delay_ms < old.first_delay_ms {
        return Some("it is retried sooner");
    }
    let rank = |node: &Node| match node.text("onInterrupted") {
        "ask" | "fail" => 0,
        _ => 1,
    };
    if rank(after) > rank(before) {
        return Some("an attempt with an unknown outcome is repeated without asking");
    }
    (after.text("keyPer") != before.text("keyPer") && after.text("keyPer") == "attempt")
        .then_some("each attempt has its own idempotency key, so a service repeats its work")
}

struct Policy {
    attempts: u64,
    retried: BTreeSet<String>,
    excluded: BTreeSet<String>,
    first_delay_ms: u64,
}

impl Policy {
    fn of(node: &Node) -> Self {
        let retry = node.fields.get("retry");
        let field = |name: &str| retry.and_then(|retry| retry.get(name));
        let words = |value: Option<&Value>| -> Option<BTreeSet<String>> {
            Some(value?.as_list()?.iter().filter_map(Value::as_text).map(String::from).collect())
        };
        let delay = field("delay");
        let first = match delay {
            Some(Value::List(delays)) => delays.first().and_then(Value::as_u64),
            Some(formula) => formula.get("initialMs").and_then(Value::as_u64),
            None => None,
        };
        Self {
            attempts: field("maxAttempts").and_then(Value::as_u64).unwrap_or(1),
            retried: words(field("retryOn")).unwrap_or_else(|| RETRYABLE.map(String::from).into()),
            excluded: words(field("neverOn")).unwrap_or_default(),
            first_delay_ms: first.unwrap_or_default(),
        }
    }
}
