//! Fields of steps: scripts, functions, inputs, conditions, timeouts, approvals, tolerated failures.

use std::collections::BTreeSet;

use mainspring_kernel::value::Value;

use super::{Sides, finding, plan::is_budget_raised, quoted, retries};
use crate::{
    change::{FieldChange, fields, moved},
    finding::{
        APPROVAL_CONTENT_CHANGED, APPROVAL_TIME_CHANGED, APPROVERS_WEAKENED, BUDGET_RAISED, CODE_CHANGED,
        CONDITION_CHANGED, EFFECT_CHANGED, FAILURE_TOLERATED, Finding, FindingCode, LIMIT_RAISED, ORDER_CHANGED,
        OUTPUT_CHANGED, SCHEMA_CHANGED, SCRIPT_CHANGED, TIMEOUT_LOOSENED, TRUST_CLEARED, VALUE_TO_SHELL, WAIT_CHANGED,
    },
    outline::{Node, renamed},
};

/// Parameters of agents that bound their cost.
const BUDGETS: [&str; 5] = ["budget", "maxTurns", "maxToolCalls", "maxTokens", "maxOutputTokens"];

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    for (index, node) in sides.new.nodes.iter().enumerate() {
        let before = sides.pairs.to_old[index].map(|before| &sides.old.nodes[before]);
        shell(sides, before, node, found);
        match before {
            Some(before) if before.kind() == node.kind() => {
                let mut found = Rules { sides, before, node, found, is_input_changed: false };
                fields(sides.pairs, before, node).iter().for_each(|field| found.field(field));
                found.end();
            }
            _ => added(sides, node, found),
        }
    }
    for (index, node) in sides.old.nodes.iter().enumerate() {
        let after = sides.pairs.to_new[index].map(|after| &sides.new.nodes[after]);
        if is_wait(node) && after.is_none_or(|after| after.kind() != node.kind()) {
            let reason = format!("The wait {} is gone.", quoted(&node.id));
            found.push(finding(&WAIT_CHANGED, node.path.clone(), reason));
        }
    }
    for step in moved(sides.old, sides.new, sides.pairs) {
        let node = &sides.new.nodes[step];
        if node.goes_out() || node.is_gate() || !node.branches.is_empty() || is_wait(node) {
            let reason = format!("The step {} runs at another place.", quoted(&node.id));
            found.push(finding(&ORDER_CHANGED, node.path.clone(), reason));
        }
    }
}

fn is_wait(node: &Node) -> bool {
    matches!(node.kind(), "sleep" | "signal")
}

fn added(sides: Sides<'_, '_>, node: &Node, found: &mut Vec<Finding>) {
    let place = |keys: &[&str]| sides.new.path_of(node, keys);
    match node.kind() {
        "bash" => {
            let reason = format!("The step {} has a new script.", quoted(&node.id));
            found.push(finding(&SCRIPT_CHANGED, place(&["command", "input", "arguments"]), reason));
        }
        "code" => {
            let reason = format!("The step {} has a new function.", quoted(&node.id));
            found.push(finding(&CODE_CHANGED, place(&["code", "action"]), reason));
        }
        _ => {}
    }
    if node.fields.contains_key("trust") {
        let reason = format!("The output of the new step {} loses a label.", quoted(&node.id));
        found.push(finding(&TRUST_CLEARED, place(&["trust"]), reason));
    }
    if node.fields.contains_key("transform") {
        let reason = format!("The step {} has a new function for its result.", quoted(&node.id));
        found.push(finding(&CODE_CHANGED, place(&["transform", "action"]), reason));
    }
}

/// Values that reach the script of a step: references in its environment, in its text and in its folder.
fn shell(sides: Sides<'_, '_>, before: Option<&Node>, node: &Node, found: &mut Vec<Finding>) {
    if node.kind() != "bash" {
        return;
    }
    let known: BTreeSet<String> = before
        .filter(|before| before.kind() == "bash")
        .map(|before| renamed(&Value::Map(before.fields.clone()), &sides.pairs.names))
        .iter()
        .filter_map(|fields| fields.get("params").map(values_of))
        .flatten()
        .collect();
    let params = node.fields.get("params").map(values_of).unwrap_or_default();
    for value in params.difference(&known) {
        let reason = format!("The value `{value}` reaches the script of the step {}.", quoted(&node.id));
        let path = sides.new.path_of(node, &["env", "command", "cwd", "input", "arguments"]);
        found.push(finding(&VALUE_TO_SHELL, path, reason));
    }
}

/// Returns the references in stored parameters.
fn values_of(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Text(text) if text.starts_with('@') => [text.clone()].into(),
        Value::Text(text) if text.starts_with('~') => {
            text.split("@{").skip(1).filter_map(|part| Some(format!("@{}", part.split_once('}')?.0))).collect()
        }
        Value::List(items) => items.iter().flat_map(values_of).collect(),
        Value::Map(map) => map.values().flat_map(values_of).collect(),
        _ => BTreeSet::new(),
    }
}

/// The rules for one step that both versions have.
struct Rules<'a, 'c, 'f> {
    sides: Sides<'a, 'c>,
    before: &'a Node,
    node: &'a Node,
    found: &'f mut Vec<Finding>,
    is_input_changed: bool,
}

impl Rules<'_, '_, '_> {
    fn add(&mut self, code: &'static FindingCode, keys: &[&str], reason: &str) {
        let reason = format!("The step {}: {reason}.", quoted(&self.node.id));
        self.found.push(finding(code, self.sides.new.path_of(self.node, keys), reason));
    }

    fn field(&mut self, field: &FieldChange) {
        let (before, after) = (field.before.as_ref(), field.after.as_ref());
        match (self.node.kind(), field.name.as_str()) {
            ("bash", "command") => {
                self.add(&SCRIPT_CHANGED, &["command", "input", "arguments"], "the script differs");
            }
            // References in a script are variables of its environment, so they change with it.
            ("bash", "env") if self.before.param("command") != self.node.param("command") => {}
            ("approval", "approvers") => self.approvers(before, after),
            ("approval", "count") if number(after) < number(before) => {
                self.add(&APPROVERS_WEAKENED, &["count"], "fewer approvals are required");
            }
            ("approval", "count") => {}
            ("approval", "onTimeout") => {
                if after.and_then(Value::as_text) == Some("approve") {
                    self.add(&APPROVERS_WEAKENED, &["onTimeout"], "the gate approves when its time is over");
                }
            }
            ("approval", "ttlMs") => {
                let reason =
                    format!("the gate was open for {} ms and is open for {} ms", number(before), number(after));
                self.add(&APPROVAL_TIME_CHANGED, &["ttlMs"], &reason);
            }
            ("approval", "prompt" | "items") => {
                self.add(&APPROVAL_CONTENT_CHANGED, &[&field.name], "approvers see something else");
            }
            ("sleep" | "signal", "durationMs" | "until" | "signal") => {
                self.add(&WAIT_CHANGED, &[&field.name], "it waits for something else");
            }
            ("return", "output") => self.add(&OUTPUT_CHANGED, &["input", "action"], "it returns something else"),
            ("agent" | "agent_message", name) if BUDGETS.contains(&name) => {
                if is_budget_raised(before, after) {
                    self.add(&BUDGET_RAISED, &[name], "its budget is higher or gone");
                }
            }
            (_, name) => self.common(name, before, after),
        }
    }

    /// Fields of many step types.
    fn common(&mut self, name: &str, before: Option<&Value>, after: Option<&Value>) {
        match name {
            "source" => self.add(&CODE_CHANGED, &["code", "action"], "the function differs"),
            "transform" if after.is_some() => {
                self.add(&CODE_CHANGED, &["transform", "action"], "the function for its result differs");
            }
            "transform" => self.add(&CODE_CHANGED, &[], "the function for its result is gone"),
            "when" | "condition" | "while" | "until" | "bail" => {
                self.add(&CONDITION_CHANGED, &[name], &format!("`{name}` differs"));
            }
            "forEach" => self.add(&CONDITION_CHANGED, &[name], "it runs over another list"),
            "timeoutMs" if after.is_none() || number(after) > number(before) => {
                self.add(&TIMEOUT_LOOSENED, &["timeoutMs", "config"], "its timeout is longer or gone");
            }
            "retry" | "onInterrupted" | "keyPer" => {}
            "onError" if after.and_then(Value::as_text) == Some("continue") => {
                self.add(&FAILURE_TOLERATED, &["onError", "continueOnError", "config"], "its failure is tolerated");
            }
            "waits" if after.and_then(Value::as_bool) == Some(false) => {
                let reason = "it no longer waits for the workflow, whose failure has no effect here";
                self.add(&FAILURE_TOLERATED, &["wait"], reason);
            }
            "outputSchema" if after.is_none() => {
                self.add(&TRUST_CLEARED, &[], "its output is no longer checked");
            }
            "trust" if words(after).difference(&words(before)).next().is_some() => {
                self.add(
                    &TRUST_CLEARED,
                    &[name],
                    "its output loses a label, so that rules for data from outside no longer hold",
                );
            }
            "trust" => {}
            "outputSchema" => self.add(&SCHEMA_CHANGED, &[name], "its output is checked against another schema"),
            "concurrency" | "maxRounds" if number(after).max(1) > number(before).max(1) => {
                self.add(&LIMIT_RAISED, &[name, "forEach"], &format!("`{name}` is higher"));
            }
            "type" | "effect" | "priority" | "outputVariable" | "onError" | "timeoutMs" | "concurrency"
            | "maxRounds" => {}
            _ => self.is_input_changed = self.is_input_changed || self.node.goes_out(),
        }
    }

    /// Reports the changes that concern several fields.
    fn end(&mut self) {
        if let Some(reason) = retries::loosened(self.before, self.node) {
            let keys = ["retry", "retryPolicy", "config", "onInterrupted", "keyPer"];
            self.add(&crate::finding::RETRY_LOOSENED, &keys, reason);
        }
        if self.is_input_changed {
            self.add(&EFFECT_CHANGED, &[], "its input differs");
        }
    }

    fn approvers(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let names = |value: Option<&Value>| -> BTreeSet<String> {
            let items = value.and_then(Value::as_list).unwrap_or_default();
            items.iter().filter_map(Value::as_text).map(String::from).collect()
        };
        let (before, after) = (names(before), names(after));
        let new: Vec<String> = after.difference(&before).map(|name| quoted(name)).collect();
        if after.is_empty() {
            self.add(&APPROVERS_WEAKENED, &[], "the owner and every admin can approve, and not only the named people");
        } else if !new.is_empty() {
            let reason = format!("{} can approve and could not be named before", new.join(", "));
            self.add(&APPROVERS_WEAKENED, &["approvers"], &reason);
        }
    }
}

/// Returns the words of a stored list.
fn words(value: Option<&Value>) -> BTreeSet<&str> {
    value.and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_text).collect()
}

fn number(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or_default()
}
