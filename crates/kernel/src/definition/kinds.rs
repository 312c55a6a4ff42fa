//! The step types of the language: one row for each, with the keys that it takes.

/// A step type.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its word.
    pub name: &'static str,
    /// Whether this build runs it. The keys of a type that does not run are not looked at.
    pub runs: bool,
    /// The keys of its own.
    pub keys: &'static [&'static str],
    /// The keys of [`MODIFIERS`] that it takes.
    pub modifiers: &'static [&'static str],
    /// The keys that hold steps, in the order of numbering, and whether those run at the same time.
    pub branches: &'static [(&'static str, bool)],
}

/// The keys that every step takes.
pub(super) const COMMON_KEYS: [&str; 10] =
    ["id", "type", "name", "description", "when", "onError", "continueOnError", "outputVariable", "priority", "needs"];

/// The keys that most steps take, and that mean the same wherever they stand.
pub(super) const MODIFIERS: [&str; 10] = [
    "retry",
    "retryPolicy",
    "timeoutMs",
    "onInterrupted",
    "outputSchema",
    "transform",
    "keyPer",
    "forEach",
    "bail",
    "config",
];

/// Of what goes out to the world.
const EFFECT: &[&str] = &MODIFIERS;

/// Of what does work without going out to the world.
const WORK: &[&str] =
    &["retry", "retryPolicy", "timeoutMs", "onInterrupted", "outputSchema", "forEach", "bail", "config"];

/// Of what waits.
const WAIT: &[&str] = &["forEach", "bail"];

/// Where the steps inside a step of an unknown type stand; looked into so that their mistakes are told as well.
pub(super) const BRANCHES_OF_UNKNOWN: &[(&str, bool)] = &[("then", false), ("else", false), ("steps", false)];

const NONE: Kind = Kind { name: "", runs: true, keys: &[], modifiers: WAIT, branches: &[] };

/// Every step type.
pub(super) static KINDS: [Kind; 16] = [
    Kind { name: "bash", modifiers: EFFECT, keys: &["command", "cwd", "env"], ..NONE },
    Kind { name: "tool", modifiers: EFFECT, keys: &["tool", "arguments"], ..NONE },
    Kind {
        name: "http",
        modifiers: EFFECT,
        keys: &[
            "method",
            "url",
            "query",
            "headers",
            "body",
            "expect",
            "followRedirects",
            "maxResponseBytes",
            "idempotencyHeader",
        ],
        ..NONE
    },
    Kind { name: "agent", modifiers: EFFECT, keys: &["goal", "content", "message", "context"], ..NONE },
    Kind {
        name: "agent_message",
        modifiers: EFFECT,
        keys: &["content", "message", "goal", "interrupt", "await_response", "await_timeout_ms"],
        ..NONE
    },
    Kind { name: "code", modifiers: WORK, keys: &["code", "input"], ..NONE },
    Kind {
        name: "subworkflow",
        modifiers: &[
            "retry",
            "retryPolicy",
            "timeoutMs",
            "onInterrupted",
            "outputSchema",
            "transform",
            "forEach",
            "bail",
            "config",
        ],
        keys: &["workflow", "input", "variables", "wait"],
        ..NONE
    },
    Kind {
        name: "conditional",
        keys: &["condition", "then", "else"],
        branches: &[("then", false), ("else", false)],
        ..NONE
    },
    Kind { name: "parallel", keys: &["steps"], branches: &[("steps", true)], ..NONE },
    Kind {
        name: "loop",
        keys: &["steps", "forEach", "while", "until", "maxRounds"],
        modifiers: &["bail"],
        branches: &[("steps", false)],
        ..NONE
    },
    Kind { name: "approval", keys: &["prompt", "items", "approvers", "count", "ttlMs", "onTimeout"], ..NONE },
    Kind { name: "sleep", keys: &["durationMs", "until"], ..NONE },
    Kind { name: "signal", keys: &["signal"], modifiers: &["timeoutMs", "forEach", "bail"], ..NONE },
    Kind { name: "return", keys: &["input"], modifiers: &[], ..NONE },
    Kind { name: "event", runs: false, ..NONE },
    Kind { name: "emit", runs: false, ..NONE },
];

impl Kind {
    /// The type of a word.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether a step of this type takes a modifier.
    pub(super) fn takes(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Whether a step that has this key of another step in it is meant.
    pub(super) fn is_container(&self) -> bool {
        !self.branches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_table_is_consistent() {
        for kind in &KINDS {
            assert_eq!(Kind::of(kind.name).map(|found| found.name), Some(kind.name), "names are unique");
            assert!(kind.branches.iter().all(|(key, _)| kind.keys.contains(key)), "{}: a branch is a key", kind.name);
            assert!(kind.modifiers.iter().all(|key| MODIFIERS.contains(key)), "{}", kind.name);
            let own: Vec<_> = kind.keys.iter().filter(|key| **key != "forEach").collect();
            assert!(own.iter().all(|key| !COMMON_KEYS.contains(key) && !MODIFIERS.contains(key)), "{}", kind.name);
        }
    }
}
