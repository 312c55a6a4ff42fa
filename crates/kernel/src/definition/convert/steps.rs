//! Converts one step: its name, its type or action, and the defaults that differ between notations.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Converter, policies};
use crate::{
    definition::{notation::Notation, step_types::Kind},
    diagnostic,
    document::Path,
    plan::{Loop, Order, Work},
    value::{Map, Value},
};

/// The keys of a shell step that move into `input` if the step is written as an action.
const SHELL_KEYS: [&str; 3] = ["command", "cwd", "env"];

impl Converter<'_> {
    /// Converts the steps of a block.
    pub(super) fn steps(&mut self, steps: &[Value], block: u32, path: &Path) -> Vec<Value> {
        let numbers = self.plan.block(block).steps.clone();
        let steps = steps.iter().zip(numbers).enumerate();
        let steps: Vec<_> = steps.filter_map(|(at, (step, number))| Some((at, step.as_map()?, number))).collect();
        steps.into_iter().map(|(at, step, number)| Value::Map(self.step(step, number, &path.index(at)))).collect()
    }

    fn step(&mut self, written: &Map, number: u32, path: &Path) -> Map {
        // A `forEach` step is two steps of the plan: the loop and its body. The body has the type and the keys as
        // written.
        let number = match &self.plan.step(number).work {
            Work::Loop(Loop { is_each: true, block, .. }) => self.plan.block(*block).steps[0],
            _ => number,
        };
        let mut step = written.clone();
        let type_name = self.without_action(&mut step, path);
        self.name(&mut step, number, path);
        self.retry(&mut step, number, &type_name, path);
        for (key, block) in self.plan.step(number).work.branches() {
            if let Some(Value::List(inside)) = written.get(key) {
                let inside = self.steps(inside, block, &path.key(key));
                step.insert(key.into(), inside.into());
            }
        }
        if let Some(Value::List(needs)) = written.get("needs") {
            let needs: Vec<Value> = needs.iter().map(|id| self.renamed(id)).collect();
            step.insert("needs".into(), needs.into());
        }
        if self.to == Notation::Dataflow {
            into_action(&mut step, &type_name);
        }
        step
    }

    /// Replaces an `action` by a `type` and its keys, and returns the type. A step with a `type` stays as it is.
    fn without_action(&mut self, step: &mut Map, path: &Path) -> String {
        let action = step.get("action").filter(|_| self.from == Notation::Dataflow).and_then(Value::as_map).cloned();
        let Some(mut action) = action else {
            return step.get("type").and_then(Value::as_text).unwrap_or_default().to_string();
        };
        step.remove("action");
        let type_name = match action.remove("toolName") {
            Some(Value::Text(tool)) if tool == "bash" => {
                let input = step.remove("input");
                step.extend(input.as_ref().and_then(Value::as_map).cloned().unwrap_or_default());
                "bash"
            }
            Some(tool) => {
                step.insert("tool".into(), tool);
                let input = step.remove("input");
                step.extend(input.map(|input| ("arguments".to_string(), input)));
                "tool"
            }
            None if action.contains_key("return") => "return",
            None => {
                step.extend(action.remove("code").map(|code| ("code".to_string(), code)));
                "code"
            }
        };
        if let Some(transform) = action.remove("transformCode") {
            if Kind::of(type_name).is_some_and(|kind| kind.takes("transform")) {
                step.insert("transform".into(), transform);
            } else {
                let message =
                    format!("a {} has no words for a `transformCode` of a `{type_name}` step", self.to.name());
                let help = "put what it does into the function, or into a step of its own";
                self.refuse(diagnostic::MISPLACED_KEY, &path.key("action").key("transformCode"), message, help);
            }
        }
        step.insert("type".into(), type_name.into());
        type_name.into()
    }

    fn name(&mut self, step: &mut Map, number: u32, path: &Path) {
        let (old, new) = (&self.plan.step(number).id, self.ids[number as usize].clone());
        let has_own_id = step.contains_key(self.from.id_key());
        if old != &new {
            self.check_unseen(number, path);
            if let Work::Approval(_) = &self.plan.step(number).work
                && !step.contains_key("prompt")
            {
                step.insert("prompt".into(), format!("Approval required for step {old}").into());
            }
        }
        if self.from.id_key() != self.to.id_key() {
            match self.to {
                Notation::Dataflow => keep_title(step),
                Notation::Sequence | Notation::Graph => drop(step.remove("name")),
            }
            step.remove("id");
        }
        // A step whose name is its path has no id to write.
        if has_own_id || old != &new && !new.contains('[') {
            step.insert(self.to.id_key().into(), new.into());
        }
    }

    /// Reports a `parallel` branch without an id. The names of branches are keys in the output of `parallel`, so a new
    /// name would change the output.
    fn check_unseen(&mut self, number: u32, path: &Path) {
        let outer = if self.plan.is_body_of_each(number) { number - 1 } else { number };
        let block = self.plan.block(self.plan.step(outer).block);
        if matches!(block.order, Order::Parallel) {
            let message = format!(
                "this branch is called {} here and would be called {} in a {}; its name is a key of what the \
                 `parallel` step gives",
                self.plan.id(number),
                self.ids[number as usize],
                self.to.name()
            );
            let help = format!("give it {} of its own", if self.from.id_key() == "id" { "an id" } else { "a name" });
            self.refuse(diagnostic::MISSING_KEY, path, message, &help);
        }
    }

    /// Converts the retry policy. Steps of a sequence are retried by default, steps of the other notations are not.
    fn retry(&mut self, step: &mut Map, number: u32, type_name: &str, path: &Path) {
        let takes_retry = Kind::of(type_name).is_some_and(|kind| kind.takes("retry"));
        let has_one_meaning = self.from != Notation::Sequence && self.to != Notation::Sequence;
        let config = step.get("config");
        let has_config =
            ["maxAttempts", "backoffMs"].iter().any(|key| config.and_then(|config| config.get(key)).is_some());
        if !takes_retry || has_one_meaning || has_config {
            return;
        }
        let key = if step.contains_key("retryPolicy") { "retryPolicy" } else { "retry" };
        let is_written = step.remove(key).is_some();
        match policies::written(&self.plan.step(number).retry, self.to) {
            Ok(policy) => step.extend(policy.map(|policy| (key.to_string(), policy))),
            Err(delays) => {
                let why = if is_written { "" } else { ", which is what a sequence does where nothing is said" };
                let message = format!("a {} has no words for retries after {delays}{why}", self.to.name());
                let help = "write delays that follow a rule, as retry: {maxAttempts: 3, initialDelayMs: 10000, \
                            backoff: exponential} for 10 s and 20 s, or retry: {maxAttempts: 1} for none";
                let path = if is_written { path.key(key) } else { path.clone() };
                self.refuse(diagnostic::WRONG_VALUE, &path, message, help);
            }
        }
    }
}

/// Moves a descriptive `name` into `description`, because the `name` of a dataflow step is its id.
fn keep_title(step: &mut Map) {
    let Some(Value::Text(title)) = step.remove("name") else { return };
    let described = match step.get("description").and_then(Value::as_text) {
        Some(description) => format!("{title}: {description}"),
        None => title,
    };
    step.insert("description".into(), described.into());
}

/// Replaces the `type` by an `action` for the types that have one.
fn into_action(step: &mut Map, type_name: &str) {
    let action = match type_name {
        "bash" => {
            let input = SHELL_KEYS.into_iter().filter_map(|key| Some((key, step.remove(key)?))).collect::<Vec<_>>();
            step.insert("input".into(), Value::map(input));
            ("toolName", "bash".into())
        }
        "tool" => {
            let arguments = step.remove("arguments");
            step.extend(arguments.map(|arguments| ("input".to_string(), arguments)));
            ("toolName", step.remove("tool").unwrap_or_default())
        }
        "code" => ("code", step.remove("code").unwrap_or_default()),
        "return" => ("return", true.into()),
        _ => return,
    };
    step.remove("type");
    step.insert("action".into(), Value::map([action]));
}
