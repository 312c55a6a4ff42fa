//! Help texts for references to unknown names. They cover the mistakes that human authors and language models make
//! often.

use alloc::{format, string::String, vec::Vec};

use super::nearest::meant;
use crate::{
    definition::{help::Help, references::Reader, report::named},
    document::Path,
    reference::{self, OUTCOMES, RESERVED_NAMES},
    value::Value,
};

/// Prefixes before step names in other languages, as in `steps.fetch.output`.
const HOLDERS: [&str; 7] = ["steps", "nodes", "tasks", "jobs", "outputs", "results", "needs"];

/// Parts between a step and a field of its output in other languages.
const OUTPUTS: [&str; 5] = ["output", "outputs", "result", "results", "data"];

/// The beginnings of references in other languages, with the one that means the same. A longer one precedes its
/// prefix.
const BEGINNINGS: [(&str, &str); 14] = [
    ("inputs.parameters", "input"),
    ("workflow.parameters", "input"),
    ("event.data", "input"),
    ("trigger.data", "input"),
    ("github.event.inputs", "input"),
    ("flow_input", "input"),
    ("trigger", "input"),
    ("inputs", "input"),
    ("event", "input"),
    ("params", "vars"),
    ("parameters", "vars"),
    ("variables", "vars"),
    ("var", "vars"),
    ("context", "ctx"),
];

/// References by which authors ask for the outcome of the execution.
const OUTCOME_WORDS: [&str; 8] = [
    "outcome",
    "status",
    "workflow.status",
    "workflow.outcome",
    "execution.status",
    "execution.outcome",
    "ctx.status",
    "run.status",
];

/// The number of steps that a help text lists.
const STEPS_LISTED_MAX: usize = 12;

impl Reader<'_, '_> {
    /// Returns the help for a reference to an unknown name at a path.
    pub(in crate::definition) fn meant_by(&mut self, reference: &str, path: &Path) -> Help {
        let (name_length, _) = reference::length(reference).unwrap_or_default();
        let (name, rest) = reference.split_at(name_length);
        let as_text = format!("or `@@{reference}` if it is meant as text");
        if let Some(help) = self.of_loop(name) {
            return help.into();
        }
        if !self.report.may_search() {
            return format!("write `@@{reference}` if it is meant as text").into();
        }
        if OUTCOME_WORDS.contains(&reference) {
            let outcomes = OUTCOMES.join(", ");
            return match self.outline.is_in_finally(self.number) && !self.at_end_of_all {
                true => {
                    let fix = self.report.reworded(path, reference, "ctx.outcome");
                    Help::new(format!("write `@ctx.outcome`: {outcomes}, {as_text}"), fix)
                }
                false => format!("`@ctx.outcome` is known to steps of `finally: […]` at the root: {outcomes}").into(),
            };
        }
        if let Some(meant) = self.translated(reference) {
            let fix = self.report.reworded(path, reference, &meant);
            return Help::new(format!("write `@{meant}`, {as_text}"), fix);
        }
        if let Some(help) = self.of_output_variable(name, rest).or_else(|| self.of_label(name)) {
            return help.into();
        }
        let reserved = RESERVED_NAMES.into_iter().filter(|name| self.root_of(name).is_some());
        let steps = self.outline.names.keys().filter(|id| reference::is_name(id)).map(String::as_str);
        match meant(name, reserved.chain(steps)) {
            Some(meant) => {
                let fix = self.report.reworded(path, reference, &format!("{meant}{rest}"));
                Help::new(format!("write `@{meant}{rest}`, {as_text}"), fix)
            }
            None => format!("{}; write `@@{reference}` if it is meant as text", self.known_roots()).into(),
        }
    }

    /// Returns the reference that means the same as one of another language; `None` if there is no such name here.
    pub(in crate::definition) fn translated(&self, reference: &str) -> Option<String> {
        let name = &reference[..reference::length(reference)?.0];
        let rest = &reference[name.len()..];
        if let Some(step) = self.behind_holder(name, rest) {
            return Some(step);
        }
        if self.root_of(name).is_some() {
            return None;
        }
        if name == "each" && self.root_of("item").is_some() {
            return Some(format!("item{rest}"));
        }
        if self.outline.declared.variables.is_some_and(|declared| declared.contains_key(name)) {
            return Some(format!("vars.{reference}"));
        }
        let schema = self.outline.declared.input_schema;
        if schema.and_then(|schema| schema.get("properties")?.get(name)).is_some() {
            return Some(format!("input.{reference}"));
        }
        BEGINNINGS.iter().find_map(|(begin, meant)| {
            let rest = reference.strip_prefix(begin).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))?;
            Some(format!("{meant}{rest}"))
        })
    }

    /// Lists the names that references may begin with. The steps that come later are among them: they say how they differ.
    fn known_roots(&self) -> String {
        let in_finally = self.outline.is_in_finally(self.number) && !self.at_end_of_all;
        let outcome = if in_finally { ", outcome" } else { "" };
        let inside = self.entry().inside;
        let of_loop = match (self.at_end_of_all, inside.item, inside.index) {
            (true, ..) | (_, false, false) => "",
            (_, true, _) => ", @item, @index",
            (_, false, true) => ", @index",
        };
        let steps = self.outline.names.keys().filter(|id| reference::is_name(id)).map(String::as_str);
        let steps: Vec<&str> = steps.take(STEPS_LISTED_MAX + 1).collect();
        let rest = if steps.len() > STEPS_LISTED_MAX { ", …" } else { "" };
        let steps: Vec<String> = steps.iter().take(STEPS_LISTED_MAX).map(|id| format!("@{id}")).collect();
        let steps = if steps.is_empty() { String::new() } else { format!(", and the steps {}", steps.join(", ")) };
        format!("known here: @input, @vars, @ctx (executionId, attempt, now{outcome}){of_loop}{steps}{rest}")
    }

    /// Explains `@item` or `@index` outside of a loop.
    fn of_loop(&self, name: &str) -> Option<String> {
        let inside = self.entry().inside;
        let help = match name {
            "item" | "index" if self.at_end_of_all => "refer to the loop: its output is that of its rounds",
            "item" if inside.index => "write `@index`: rounds are counted, and only a `forEach` has items",
            "item" => "`@item` is known inside a `forEach`: refer to the list, or go through it",
            "index" => "`@index` is known inside a loop, counted from 0",
            _ => return None,
        };
        Some(help.into())
    }

    /// Returns the reference to a step after a prefix of another language, as in `@steps.fetch.outputs.stdout`.
    fn behind_holder(&self, name: &str, rest: &str) -> Option<String> {
        let rest = rest.strip_prefix('.').filter(|_| HOLDERS.contains(&name) && self.root_of(name).is_none())?;
        let step = &rest[..reference::length(rest)?.0];
        self.outline.names.get(step)?;
        let below = &rest[step.len()..];
        let output = OUTPUTS.iter().find_map(|output| {
            let field = below.strip_prefix('.')?.strip_prefix(output)?;
            (field.is_empty() || field.starts_with(['.', '['])).then_some(field)
        });
        Some(match output {
            Some(".result") => format!("{step}.stdout"),
            Some(field) => format!("{step}{field}"),
            None => format!("{step}{below}"),
        })
    }

    /// Explains a reference to an output variable. Output variables belong to the output of the execution; steps refer
    /// to the step that writes them.
    fn of_output_variable(&self, name: &str, rest: &str) -> Option<String> {
        let writer = *self.outline.outputs.get(name)?;
        let id = &self.outline.entries[writer as usize].id;
        Some(match reference::is_name(id) {
            true => {
                format!("write `@{id}{rest}`: a reference names the step, and {} is its output variable", named(name))
            }
            false => format!("give the step that writes {} an id, and refer to that", named(name)),
        })
    }

    /// Explains a reference by the `name` of a step in a notation that identifies steps by `id`.
    fn of_label(&self, name: &str) -> Option<String> {
        let key = self.outline.notation.id_key();
        let is_labelled = |label: Option<&Value>| label.and_then(Value::as_text) == Some(name);
        let labelled =
            self.outline.entries.iter().find(|entry| key == "id" && is_labelled(entry.fields.get("name")))?;
        Some(match labelled.has_own_id {
            true => format!("write `@{}`: references know a step by its `id`", labelled.id),
            false => format!("give that step `id: {name}`: its `name` is for readers"),
        })
    }
}
