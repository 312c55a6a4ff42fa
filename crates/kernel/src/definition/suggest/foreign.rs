//! Keys of other tools that belong in another object here, or that nothing here corresponds to.

use crate::value::Value;

/// Keys that belong inside another key: the written word, the object, and the key in it. The first object that is known
/// at the place counts.
const HELD: &[(&str, &str, &str)] = &[
    ("concurrency", "forEach", "concurrency"),
    ("concurrency", "constraints", "maxParallel"),
    ("maxconcurrency", "forEach", "concurrency"),
    ("parallelism", "constraints", "maxParallel"),
    ("maxAttempts", "retry", "maxAttempts"),
    ("retries", "retry", "maxAttempts"),
    ("maxretries", "retry", "maxAttempts"),
    ("maxtries", "retry", "maxAttempts"),
    ("attempts", "retry", "maxAttempts"),
    ("initialDelayMs", "retry", "initialDelayMs"),
    ("retrydelay", "retry", "initialDelayMs"),
    ("waitbetweentries", "retry", "initialDelayMs"),
    ("maxDelayMs", "retry", "maxDelayMs"),
    ("backoff", "retry", "backoff"),
    ("jitter", "retry", "jitter"),
    ("retryOn", "retry", "retryOn"),
    ("neverOn", "retry", "neverOn"),
    ("retryableErrors", "retry", "retryableErrors"),
    ("backoffMs", "config", "backoffMs"),
    ("toolName", "action", "toolName"),
    ("transformCode", "action", "transformCode"),
    ("return", "action", "return"),
    ("tool", "action", "toolName"),
    ("code", "action", "code"),
    ("maxSteps", "constraints", "maxSteps"),
    ("maxParallel", "constraints", "maxParallel"),
    ("maxCalls", "constraints", "maxCalls"),
    ("maxExecutions", "constraints", "maxExecutions"),
    ("maxOutputBytes", "constraints", "maxOutputBytes"),
    ("timeoutMs", "constraints", "timeoutMs"),
    ("timeout", "constraints", "timeoutMs"),
    ("timeoutseconds", "constraints", "timeoutMs"),
    ("timeoutminutes", "constraints", "timeoutMs"),
    ("activedeadlineseconds", "constraints", "timeoutMs"),
    ("allowSelfModification", "constraints", "allowSelfModification"),
    ("failOpen", "policy", "failOpen"),
    ("maxNodeFailures", "policy", "maxNodeFailures"),
    ("maxRetriesExhausted", "policy", "maxRetriesExhausted"),
    ("effects", "policy", "effects"),
    ("ref", "forEach", "ref"),
];

/// Keys of other tools without a counterpart. If `is_idle`, a workflow here means the same without the key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::definition) struct Unmatched {
    word: &'static str,
    /// The help text.
    pub help: &'static str,
    /// True if leaving the key out changes nothing here.
    pub is_idle: bool,
}

const fn idle(word: &'static str, help: &'static str) -> Unmatched {
    Unmatched { word, help, is_idle: true }
}

const fn open(word: &'static str, help: &'static str) -> Unmatched {
    Unmatched { word, help, is_idle: false }
}

const ORDERED: &str = "leave it out: steps run in their order, by `needs` or by edges";

const UNMATCHED: &[Unmatched] = &[
    idle("runson", "leave it out: a script runs where the execution runs"),
    idle("hosts", "leave it out: a script runs where the execution runs"),
    idle("taskqueue", "leave it out: executions have no queues"),
    idle("apiversion", "leave it out: a definition has no version of its language"),
    idle("kind", "leave it out: every definition is a workflow"),
    idle("metadata", "leave it out, and write `name: NAME` and `description: TEXT` at the root"),
    idle("language", "leave it out: functions are TypeScript or JavaScript"),
    idle("shell", "leave it out: a `bash` step runs its script with bash"),
    idle("stages", ORDERED),
    idle("stage", ORDERED),
    open("jobs", "put the steps of all jobs into one list `steps`, with `needs` where one waits for another"),
    open("services", "a workflow is a list `steps`, and runs no services"),
    open("states", "put the states into a list `steps`: its order is that of the steps"),
    open("startat", "the first step of `steps` is the first to run"),
    open("on", "leave it out, and create a trigger at a server: a definition has none"),
    open("schedule", "leave it out, and create a trigger at a server: a definition has none"),
    open("image", "a script runs where the execution runs: call `docker run` in its `command`"),
    open("container", "a script runs where the execution runs: call `docker run` in its `command`"),
    open("strategy", "write `forEach: {ref: \"@input.list\"}` at the step, and refer to `@item`"),
    open("matrix", "write `forEach: {ref: \"@input.list\"}` at the step, and refer to `@item`"),
    open("withitems", "write `forEach: {ref: \"@input.list\"}`: a list that is written out belongs into the input"),
    open("next", "steps run as they are written; in a graph, `edges` at the root order them"),
    open("downstream", "the step that comes after says it, with `needs`"),
    open("connections", "write `edges: [{from: a, to: b}]`"),
    open("triggerrule", "the edge into the step says it: `when: always` or `when: on_failure`"),
    open("catch", "write `onError: continue`, or in a graph an edge with `when: on_failure`"),
    open("rescue", "a step says it with `onError: continue`, a graph with an edge `when: on_failure`"),
    open("restart", "write `retry: {maxAttempts: 3, retryOn: [failed]}`"),
    open("retryonfail", "write `retry: {maxAttempts: 3}`"),
    open("backoffrate", "write `backoff: exponential`: each delay is twice the one before"),
    open("backoffcoefficient", "write `backoff: exponential`: each delay is twice the one before"),
    open("factor", "write `backoff: exponential`: each delay is twice the one before"),
    open("disabled", "write `when: false`"),
    open("rules", "write `when: {ref: \"@vars.name\", eq: \"…\"}`"),
    open("elif", "put a `conditional` with the second condition into `else`"),
    open("elseif", "put a `conditional` with the second condition into `else`"),
    open("beforescript", "put the lines at the start of `command`, or write a step before"),
    open("approval", "an approval is a step of its own, before this one"),
    open("environment", "variables of a script are `env` of its step; an approval is a step of its own"),
    open("healthcheck", "a `loop` with `until` and a `sleep` in it waits until something holds"),
    open("parentclosepolicy", "write `wait: false` for a child that outlives its parent"),
    open("notin", "write `in: […]` inside of `{not: …}`"),
    open("matches", "conditions do not search in texts: let a `code` step do it, and ask for its output"),
    open("startswith", "conditions do not search in texts: let a `code` step do it, and ask for its output"),
    open("endswith", "conditions do not search in texts: let a `code` step do it, and ask for its output"),
];

/// Returns the object and the key in it that a key belongs to, if the object is known at the place.
pub(in crate::definition) fn holder<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<(&'static str, &'static str)> {
    let rows = HELD.iter().filter(|(held, ..)| same(held, word));
    let mut known_rows = rows.filter(|(_, holder, _)| known.clone().into_iter().any(|known| known == *holder));
    known_rows.next().map(|(_, holder, key)| (*holder, *key))
}

/// Returns the holder of a key of retries that agrees with those of the keys beside it: `retry` and `config` exclude each
/// other, so `config` is chosen only if it has the other key already.
pub(in crate::definition) fn holder_of_attempts(
    found: (&'static str, &'static str),
    config: Option<&Value>,
) -> (&'static str, &'static str) {
    let has = |key: &str| config.is_some_and(|config| config.get(key).is_some());
    match found {
        ("config", "backoffMs") if !has("maxAttempts") => ("retry", "initialDelayMs"),
        ("retry", "maxAttempts") if has("backoffMs") => ("config", "maxAttempts"),
        other => other,
    }
}

/// Returns the row of a key without a counterpart.
pub(in crate::definition) fn unmatched(word: &str) -> Option<&'static Unmatched> {
    UNMATCHED.iter().find(|row| same(row.word, word))
}

/// True for two spellings of one word: case, `_` and `-` do not count.
pub(in crate::definition) fn same(a: &str, b: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase())
    }
    letters(a).next().is_some() && letters(a).eq(letters(b))
}

/// True if a fix may move a part into the value: it is an object, or not there.
pub(in crate::definition) fn can_hold(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.as_map().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_word() {
        assert!(same("timeout-minutes", "timeoutMinutes"));
        assert!(same("depends_on", "dependsOn"));
        assert!(!same("depends", "depends_on"));
        assert!(!same("-", "_"));
        assert!(same("==", "=="));
    }

    #[test]
    fn a_key_belongs_into_an_object_that_is_known() {
        assert_eq!(holder("max_steps", ["constraints"]), Some(("constraints", "maxSteps")));
        assert_eq!(holder("concurrency", ["constraints"]), Some(("constraints", "maxParallel")));
        assert_eq!(holder("concurrency", ["forEach", "retry"]), Some(("forEach", "concurrency")));
        assert_eq!(holder("maxSteps", ["retry"]), None);
        assert!(unmatched("runs-on").is_some_and(|row| row.is_idle));
        assert!(unmatched("steps").is_none());
    }
}
