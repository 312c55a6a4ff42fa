//! Limits, budgets, tolerated failures, schemas, variables and the output of the plan as a whole.

use std::collections::BTreeSet;

use mainspring_kernel::{
    document::Path,
    limits::{EXECUTIONS_DEFAULT, OUTPUT_BYTES_MAX, PARALLEL_DEFAULT},
    plan::Verdict,
    value::{Map, Value},
};

use super::{Sides, finding, quoted};
use crate::{
    finding::{
        BUDGET_RAISED, DEFAULT_CHANGED, FAILURE_TOLERATED, Finding, FindingCode, LIMIT_RAISED, ORDER_CHANGED,
        OUTPUT_CHANGED, POLICY_WEAKENED, SCHEMA_CHANGED, SELF_MODIFICATION_ENABLED, TIMEOUT_LOOSENED, TRUST_CLEARED,
    },
    outline::{Outline, renamed},
};

/// A number that has no bound if a definition does not give it.
const UNBOUNDED: u64 = u64::MAX;

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    constraints(sides, found);
    policy(sides, found);
    effect_rules(sides, found);
    checks(sides, found);
    let (old, new) = (&sides.old.root, &sides.new.root);
    let changed = |key: &str| old.get(key).map(|value| renamed(value, &sides.pairs.names)) != new.get(key).cloned();
    if changed("defaultContext") {
        found.push(finding(&DEFAULT_CHANGED, at(sides, &["defaultContext"]), "A default value of a variable differs."));
    }
    if changed("output") {
        found.push(finding(&OUTPUT_CHANGED, at(sides, &["output"]), "The output of the execution differs."));
    }
    if changed("order") {
        let reason = "The outermost steps run in another order: one after another, or by their edges.";
        found.push(finding(&ORDER_CHANGED, at(sides, &["order"]), reason));
    }
}

/// Returns the path of a part in the new version, or the path of the same part in the old one.
fn at(sides: Sides<'_, '_>, keys: &[&str]) -> Path {
    let path = keys.iter().fold(Path::root(), |path, key| path.key(key));
    if sides.new.at(&path).is_some() || sides.old.at(&path).is_some() { path } else { Path::root() }
}

fn part<'o>(outline: &'o Outline<'_>, key: &str) -> Option<&'o Map> {
    outline.root.get(key).and_then(Value::as_map)
}

fn constraints(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let number = |outline: &Outline<'_>, key: &str, default: u64| {
        part(outline, "constraints").and_then(|map| map.get(key)).and_then(Value::as_u64).unwrap_or(default)
    };
    let limits: [(&str, u64, u64, &'static FindingCode); 6] = [
        ("maxSteps", sides.old.max_steps_default, sides.new.max_steps_default, &LIMIT_RAISED),
        ("maxParallel", u64::from(PARALLEL_DEFAULT), u64::from(PARALLEL_DEFAULT), &LIMIT_RAISED),
        ("maxCalls", UNBOUNDED, UNBOUNDED, &LIMIT_RAISED),
        ("maxExecutions", u64::from(EXECUTIONS_DEFAULT), u64::from(EXECUTIONS_DEFAULT), &LIMIT_RAISED),
        ("maxOutputBytes", OUTPUT_BYTES_MAX as u64, OUTPUT_BYTES_MAX as u64, &LIMIT_RAISED),
        ("timeoutMs", UNBOUNDED, UNBOUNDED, &TIMEOUT_LOOSENED),
    ];
    for (key, old_default, new_default, code) in limits {
        let (before, after) = (number(sides.old, key, old_default), number(sides.new, key, new_default));
        if after > before {
            let reason = format!("`{key}` was {} and is {}.", shown(before), shown(after));
            found.push(finding(code, at(sides, &["constraints", key]), reason));
        }
    }
    let flag = |outline: &Outline<'_>| {
        part(outline, "constraints").and_then(|map| map.get("allowSelfModification")).and_then(Value::as_bool)
    };
    if flag(sides.new) == Some(true) && flag(sides.old) != Some(true) {
        let path = at(sides, &["constraints", "allowSelfModification"]);
        found.push(finding(&SELF_MODIFICATION_ENABLED, path, "`allowSelfModification` is true and was not."));
    }
    let budget = |outline: &Outline<'_>| part(outline, "constraints").and_then(|map| map.get("budget")).cloned();
    let (before, after) = (budget(sides.old), budget(sides.new));
    if is_budget_raised(before.as_ref(), after.as_ref()) {
        found.push(finding(&BUDGET_RAISED, at(sides, &["constraints", "budget"]), "The budget is higher or gone."));
    }
}

/// True if a budget is gone, or one of its numbers is higher, gone or no number.
pub(super) fn is_budget_raised(before: Option<&Value>, after: Option<&Value>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(Value::Map(before)), Some(Value::Map(after))) => {
            before.iter().any(|(key, value)| is_budget_raised(Some(value), after.get(key)))
        }
        (Some(before), Some(after)) => match (before.as_number(), after.as_number()) {
            (Some(before), Some(after)) => after > before,
            _ => before != after,
        },
    }
}

fn shown(number: u64) -> String {
    if number == UNBOUNDED { "unlimited".into() } else { number.to_string() }
}

fn policy(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let is_open = |outline: &Outline<'_>| {
        part(outline, "policy").and_then(|map| map.get("failOpen")).and_then(Value::as_bool).unwrap_or_default()
    };
    if is_open(sides.new) && !is_open(sides.old) {
        let path = at(sides, &["policy", "failOpen"]);
        found.push(finding(&FAILURE_TOLERATED, path, "`failOpen` tolerates every failure."));
    }
    for key in ["maxNodeFailures", "maxRetriesExhausted"] {
        let number = |outline: &Outline<'_>| {
            part(outline, "policy").and_then(|map| map.get(key)).and_then(Value::as_u64).unwrap_or(UNBOUNDED)
        };
        let (before, after) = (number(sides.old), number(sides.new));
        if after > before {
            let reason = format!("`{key}` was {} and is {}.", shown(before), shown(after));
            found.push(finding(&FAILURE_TOLERATED, at(sides, &["policy", key]), reason));
        }
    }
}

/// The rules of a definition only tighten those of the installation, so a rule that is gone or milder loosens calls.
fn effect_rules(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let strictness = |outline: &Outline<'_>, name: &str| {
        let word = part(outline, "effectRules").and_then(|rules| rules.get(name)).and_then(Value::as_text);
        word.and_then(Verdict::parse)
    };
    for name in part(sides.old, "effectRules").into_iter().flat_map(Map::keys) {
        let (before, after) = (strictness(sides.old, name), strictness(sides.new, name));
        if before > after && before > Some(Verdict::Allow) {
            let shown = |verdict: Option<Verdict>| verdict.map_or("gone", Verdict::name);
            let reason = format!("The rule for {} was `{}` and is {}.", quoted(name), shown(before), shown(after));
            found.push(finding(&POLICY_WEAKENED, at(sides, &["policy", "effects"]), reason));
        }
    }
}

fn checks(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    for (key, word) in [("inputSchema", "The input"), ("variables", "A variable")] {
        let (before, after) = (sides.old.root.get(key), sides.new.root.get(key));
        let path = at(sides, &[key]);
        match (before, after) {
            (Some(_), None) => {
                found.push(finding(&TRUST_CLEARED, path, format!("{word} is no longer checked: `{key}` is gone.")));
            }
            (before, after) if before != after => {
                found.push(finding(&SCHEMA_CHANGED, path, format!("{word} is checked against another `{key}`.")));
            }
            _ => {}
        }
    }
    let after = private_variables(sides.new);
    for name in private_variables(sides.old).difference(&after) {
        let reason = format!("The variable {} is no longer private, so it may reach any call.", quoted(name));
        found.push(finding(&TRUST_CLEARED, at(sides, &["variables", name]), reason));
    }
}

fn private_variables<'o>(outline: &'o Outline<'_>) -> BTreeSet<&'o str> {
    let declared = outline.root.get("variables").and_then(Value::as_list).unwrap_or_default();
    let private = declared.iter().filter(|variable| variable.get("private").and_then(Value::as_bool) == Some(true));
    private.filter_map(|variable| variable.get("name").and_then(Value::as_text)).collect()
}
