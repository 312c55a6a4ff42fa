//! The table of step types: one row for each type, with the keys that it takes.

/// A step type.
#[derive(Debug)]
pub(super) struct Kind {
    /// The value of `type`.
    pub name: &'static str,
    /// True if this build can run the type. The keys of other types are not checked.
    pub runs: bool,
    /// Keys that are specific to the type.
    pub keys: &'static [&'static str],
    /// Keys of [`MODIFIERS`] that the type takes.
    pub modifiers: &'static [&'static str],
    /// Keys that hold inner steps, in numbering order; the flag is true if those steps run in parallel.
    pub branches: &'static [(&'static str, bool)],
}

/// Keys of every step type.
pub(super) const COMMON_KEYS: [&str; 12] = [
    "id",
    "type",
    "name",
    "description",
    "when",
    "onError",
    "continueOnError",
    "outputVariable",
    "priority",
    "needs",
    "allow",
    "trust",
];

/// Keys that several step types share, with the same meaning in each.
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

/// Modifiers of steps with external effects.
const EFFECT: &[&str] = &MODIFIERS;

/// Modifiers of steps that do work without external effects.
const WORK: &[&str] =
    &["retry", "retryPolicy", "timeoutMs", "onInterrupted", "outputSchema", "forEach", "bail", "config"];

/// Modifiers of steps that only wait.
const WAIT: &[&str] = &["forEach", "bail"];

/// Branches of a step of unknown type. Its inner steps are read as well, so that their mistakes are reported.
pub(super) const BRANCHES_OF_UNKNOWN: &[(&str, bool)] = &[("then", false), ("else", false), ("steps", false)];

const NONE: Kind = Kind { name: "", runs: true, keys: &[], modifiers: WAIT, branches: &[] };

/// All step types.
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
    Kind {
        name: "agent",
        modifiers: EFFECT,
        keys: &[
            "goal",
            "content",
            "message",
            "runner",
            "context",
            "instructions",
            "model",
            "tools",
            "maxTurns",
            "maxToolCalls",
            "maxTokens",
            "temperature",
            "seed",
            "budget",
            "conversation",
        ],
        ..NONE
    },
    Kind {
        name: "agent_message",
        modifiers: EFFECT,
        keys: &["content", "message", "goal", "conversation", "interrupt", "await_response", "await_timeout_ms"],
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
    /// Returns the type of a name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    pub(super) fn takes(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// True if the type has inner steps. Modifiers that it does not take belong on those.
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
