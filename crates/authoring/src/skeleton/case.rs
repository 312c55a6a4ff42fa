//! Skeletons with their cases, and the results of runs that become their expectations.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::value::{Map, Value};

/// The result of a run, as far as skeletons need it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// The status as a scenario writes it.
    pub status: String,
    /// True if a failure was tolerated.
    pub with_failures: bool,
    /// The output of the execution; null if there is none.
    pub output: Value,
    /// The code of the execution's error.
    pub error_code: Option<String>,
    /// The statuses of the steps outside of loops, by id.
    pub steps: BTreeMap<String, String>,
    /// Ids of the steps that completed at least once.
    pub completed: BTreeSet<String>,
    /// Ids of the steps of which an attempt failed.
    pub failed: BTreeSet<String>,
    /// Ids of the steps that were skipped at least once.
    pub skipped: BTreeSet<String>,
    /// The branches that each conditional took: true for `then`.
    pub branches: BTreeMap<String, BTreeSet<bool>>,
    /// The names of the effects whose results were used.
    pub used: BTreeSet<String>,
    /// The entries of the inbox that had no effect, by number.
    pub missed: BTreeSet<usize>,
    /// All calls in order: the tool or the kind of the effect, and the arguments.
    pub calls: Vec<(String, Value)>,
}

/// A case of a skeleton.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Unique in the file, and says what the case covers.
    pub name: String,
    /// The fields of the case except `name`, `definition` and `expect`.
    pub fields: Map,
    /// The expectations.
    pub expect: Map,
}

/// A skeleton, and the goals that no case reaches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Skeleton {
    /// The cases, the one along the main path first.
    pub cases: Vec<Case>,
    /// Sentences about branches, steps and gates without a case.
    pub uncovered: Vec<String>,
}

/// Returns the expectations that a result fulfills.
pub(super) fn expectations(observed: &Observed) -> Map {
    let mut expect = Map::new();
    expect.insert("status".into(), observed.status.as_str().into());
    if observed.with_failures {
        expect.insert("outcome".into(), "with_failures".into());
    }
    if observed.status == "completed" && observed.output != Value::Null {
        expect.insert("output".into(), observed.output.clone());
    }
    if let Some(code) = &observed.error_code {
        expect.insert("error_contains".into(), vec![Value::from(code.as_str())].into());
    }
    let steps: Map = observed.steps.iter().map(|(id, status)| (id.clone(), status.as_str().into())).collect();
    if !steps.is_empty() {
        expect.insert("steps".into(), steps.into());
    }
    expect
}

/// Leaves out the entries of the inbox that had no effect.
pub(super) fn leave_out_missed(fields: &mut Map, observed: &Observed) {
    if let Some(Value::List(inbox)) = fields.get_mut("inbox") {
        let mut number = 0..;
        inbox.retain(|_| number.next().is_none_or(|number| !observed.missed.contains(&number)));
    }
}

/// Leaves out the results of effects that were not used, and the entries of the inbox that had no effect.
pub(super) fn without_unused(mut fields: Map, observed: &Observed) -> Map {
    if let Some(Value::Map(effects)) = fields.get_mut("effects") {
        effects.retain(|name, _| observed.used.contains(name));
    }
    leave_out_missed(&mut fields, observed);
    let is_empty = |value: &Value| match value {
        Value::Map(map) => map.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => false,
    };
    fields.retain(|key, value| key == "input" || !is_empty(value));
    fields
}
