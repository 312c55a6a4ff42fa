//! The step types of the language: one row for each, with the keys that it takes.

use crate::plan::Order;

/// A step type.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its word.
    pub name: &'static str,
    /// Whether this build runs it. The keys of a type that does not run are not looked at, but for `required`.
    pub runs: bool,
    /// Whether its attempts go out to the world, so that they can be retried, timed out and interrupted.
    pub is_effect: bool,
    /// The keys of its own.
    pub keys: &'static [&'static str],
    /// The keys that must be there, of a type that does not run.
    pub required: &'static [&'static str],
    /// The keys that hold steps, in the order of numbering, and how those run.
    pub branches: &'static [(&'static str, Order)],
}

/// The keys that every step takes.
pub(super) const COMMON_KEYS: [&str; 7] = ["id", "type", "name", "description", "when", "onError", "outputVariable"];

/// The keys that every step takes whose attempts go out to the world.
pub(super) const EFFECT_KEYS: [&str; 3] = ["retry", "timeoutMs", "onInterrupted"];

/// Keys of steps that are part of the language and not of this build.
pub(super) const LATER_KEYS: [&str; 8] =
    ["forEach", "bail", "outputSchema", "priority", "needs", "input", "transform", "keyPer"];

/// Where the steps inside a step of an unknown type stand; looked into so that their mistakes are told as well.
pub(super) const BRANCHES_OF_UNKNOWN: &[(&str, Order)] =
    &[("then", Order::Sequence), ("else", Order::Sequence), ("steps", Order::Sequence)];

const NONE: Kind = Kind { name: "", runs: true, is_effect: false, keys: &[], required: &[], branches: &[] };
const LATER: Kind = Kind { runs: false, ..NONE };

/// Every step type.
pub(super) static KINDS: [Kind; 17] = [
    Kind { name: "bash", is_effect: true, keys: &["command", "cwd", "env"], ..NONE },
    Kind { name: "tool", is_effect: true, keys: &["tool", "arguments"], ..NONE },
    Kind { name: "agent", is_effect: true, keys: &["goal", "content", "message", "context"], ..NONE },
    Kind {
        name: "agent_message",
        is_effect: true,
        keys: &["content", "message", "goal", "interrupt", "await_response", "await_timeout_ms"],
        ..NONE
    },
    Kind {
        name: "conditional",
        keys: &["condition", "then", "else"],
        branches: &[("then", Order::Sequence), ("else", Order::Sequence)],
        ..NONE
    },
    Kind { name: "parallel", keys: &["steps"], branches: &[("steps", Order::Parallel)], ..NONE },
    Kind { name: "approval", keys: &["prompt", "items", "approvers", "count", "ttlMs", "onTimeout"], ..NONE },
    Kind { name: "sleep", keys: &["durationMs"], ..NONE },
    Kind { name: "signal", keys: &["signal"], ..NONE },
    Kind { name: "return", keys: &["input"], ..NONE },
    Kind { name: "http", is_effect: true, ..LATER },
    Kind { name: "code", required: &["code"], ..LATER },
    Kind { name: "loop", required: &["steps"], branches: &[("steps", Order::Sequence)], ..LATER },
    Kind { name: "event", ..LATER },
    Kind { name: "emit", ..LATER },
    Kind { name: "subworkflow", required: &["workflow"], ..LATER },
    Kind { name: "bail", ..LATER },
];

impl Kind {
    /// The type of a word.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Every key that a step of this type takes.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = &'static str> + Clone {
        let effect_keys: &'static [&'static str] = if self.is_effect { &EFFECT_KEYS } else { &[] };
        COMMON_KEYS.into_iter().chain(effect_keys.iter().copied()).chain(self.keys.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        for kind in &KINDS {
            assert_eq!(Kind::of(kind.name).map(|found| found.name), Some(kind.name), "names are unique");
            let own = |key: &str| kind.keys.contains(&key) || kind.required.contains(&key);
            assert!(kind.branches.iter().all(|(key, _)| own(key)), "{}: a branch is a key", kind.name);
            assert!(
                kind.keys.iter().all(|key| !COMMON_KEYS.contains(key) && !EFFECT_KEYS.contains(key)),
                "{}",
                kind.name
            );
        }
    }
}
