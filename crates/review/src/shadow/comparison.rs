//! Differences between a recorded execution and its replay, by step.

use std::collections::BTreeSet;

use mainspring_kernel::{json, value::Value};

use super::{
    recording::Recording,
    replay::{Replay, Stop},
    trail::StepTrail,
};
use crate::limits::SHADOW_PLACES_MAX;

/// Characters of a value that a report shows.
const VALUE_CHARS_MAX: usize = 200;

/// A difference of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The step instance.
    pub step: String,
    /// Selects the meaning of `before` and `after`.
    pub kind: DifferenceKind,
    /// The recorded status, branch, reason or value.
    pub before: Option<String>,
    /// The replayed one.
    pub after: Option<String>,
    /// The places inside the value that differ, such as `arguments.url`; at most [`SHADOW_PLACES_MAX`].
    pub places: Vec<String>,
}

/// The property of a step that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The step runs in the replay only.
    Added,
    /// The step ran in the recorded execution only.
    Gone,
    /// Another final status.
    Status,
    /// Another branch of a conditional step.
    Branch,
    /// Another failure code or reason.
    Reason,
    /// Another output.
    Output,
    /// Another input to an effect.
    Input,
}

impl DifferenceKind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Gone => "gone",
            Self::Status => "status",
            Self::Branch => "branch",
            Self::Reason => "reason",
            Self::Output => "output",
            Self::Input => "input",
        }
    }

    /// True for a difference in the path of the execution.
    pub(super) fn is_path(self) -> bool {
        matches!(self, Self::Added | Self::Gone | Self::Status | Self::Branch)
    }
}

/// Compares all steps. Steps that the replay has not reached are left out; their number is the second part.
pub(super) fn differences(recording: &Recording, replay: &Replay, shows_values: bool) -> (Vec<Difference>, usize) {
    let (before, after) = (&recording.trail.steps, &replay.trail.steps);
    let is_whole = replay.stop == Stop::Ended;
    let (mut found, mut not_reached) = (Vec::new(), 0);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let texts = |old: &Value, new: &Value| (text(old, shows_values), text(new, shows_values));
        if let Some((old, new)) = replay.other_inputs.get(name) {
            let (before, after) = texts(old, new);
            let places = places(old, new);
            found.push(Difference { step: name.clone(), kind: DifferenceKind::Input, before, after, places });
        }
        match (before.get(name), after.get(name)) {
            (Some(old), Some(new)) if is_whole || new.status != "running" => {
                found.extend(of_step(name, old, new, shows_values));
            }
            (Some(_), Some(_)) => not_reached += 1,
            (Some(old), None) if is_whole => {
                found.push(difference(name, DifferenceKind::Gone, Some(old.status), None));
            }
            (Some(_), None) => not_reached += 1,
            (None, Some(new)) => found.push(difference(name, DifferenceKind::Added, None, Some(new.status))),
            (None, None) => {}
        }
    }
    (found, not_reached)
}

fn of_step(name: &str, old: &StepTrail, new: &StepTrail, shows_values: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    if old.status != new.status {
        found.push(difference(name, DifferenceKind::Status, Some(old.status), Some(new.status)));
    }
    if old.branch != new.branch {
        found.push(difference(name, DifferenceKind::Branch, old.branch, new.branch));
    }
    if old.reason != new.reason && old.status == new.status {
        found.push(difference(name, DifferenceKind::Reason, old.reason.as_deref(), new.reason.as_deref()));
    }
    if let (Some(old), Some(new)) = (&old.output, &new.output)
        && old != new
    {
        let (before, after) = (text(old, shows_values), text(new, shows_values));
        let places = places(old, new);
        found.push(Difference { step: name.into(), kind: DifferenceKind::Output, before, after, places });
    }
    found
}

fn difference(name: &str, kind: DifferenceKind, before: Option<&str>, after: Option<&str>) -> Difference {
    let (before, after) = (before.map(String::from), after.map(String::from));
    Difference { step: name.into(), kind, before, after, places: Vec::new() }
}

fn text(value: &Value, is_shown: bool) -> Option<String> {
    let text = || json::compact(value);
    is_shown.then(|| {
        let text = text();
        match text.char_indices().nth(VALUE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    })
}

/// Returns the places at which two values differ. The value itself is the place `.`.
fn places(old: &Value, new: &Value) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![(String::new(), old, new)]);
    while let Some((path, old, new)) = open.pop() {
        if found.len() >= SHADOW_PLACES_MAX || old == new {
            continue;
        }
        let inside = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match (old, new) {
            (Value::Map(before), Value::Map(after)) => {
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                let null = &Value::Null;
                for name in names.into_iter().rev() {
                    let sides = (before.get(name), after.get(name));
                    match sides {
                        (Some(before), Some(after)) => open.push((inside(name), before, after)),
                        (before, after) if before != after => {
                            // A key with null differs from no key.
                            open.push((inside(name), before.unwrap_or(null), after.unwrap_or(null)));
                            if before.or(after) == Some(null) {
                                found.push(inside(name));
                            }
                        }
                        _ => {}
                    }
                }
            }
            (Value::List(before), Value::List(after)) if before.len() == after.len() => {
                for (place, (before, after)) in before.iter().zip(after).enumerate().rev() {
                    open.push((format!("{path}[{place}]"), before, after));
                }
            }
            _ if path.is_empty() => found.push(".".into()),
            _ => found.push(path),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_their_positions() {
        let check = |old: &str, new: &str, expected: &[&str]| {
            let read = |text: &str| mainspring_kernel::json::value(text.as_bytes()).expect("the sample is JSON");
            assert_eq!(places(&read(old), &read(new)), expected, "{old} {new}");
        };
        check("1", "2", &["."]);
        check(r#"{"a": 1, "b": {"c": [1, 2]}}"#, r#"{"a": 1, "b": {"c": [1, 3]}}"#, &["b.c[1]"]);
        check(r#"{"a": 1}"#, r#"{"b": 1}"#, &["a", "b"]);
        check(r#"{"a": null}"#, "{}", &["a"]);
        check("[1]", "[1, 2]", &["."]);
        check("[]", "[]", &[]);
    }
}
