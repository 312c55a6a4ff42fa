//! Warns about references below a value that may be null, and about comparisons with a value that may be missing. Both fail
//! the step that reads them.
//!
//! A reference is quiet if a condition of its step, or of a step around it, asks for the same value.

use alloc::{format, string::ToString, vec::Vec};

use super::{
    Shape, Shapes,
    tables::{RARE, SCRIPT},
    walk::kinds_of,
};
use crate::{
    definition::{
        fields::Fields,
        first_round,
        help::Help,
        outline::{Entry, Role},
        references::Reader,
        report::named,
        suggest::adapt::flow,
    },
    diagnostic,
    document::Path,
    fix::Fix,
    plan::Order,
    reference::{self, Part, Reference, Root},
    value::Value,
};

/// The test for which a condition reads a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::definition) enum Asks {
    /// A missing value is an answer.
    Presence,
    /// A missing value is an error.
    Comparison,
}

/// The reason for which a value may be null.
#[derive(Debug, Clone, Copy)]
pub(super) enum Null {
    /// The step may fail, and its `onError` continues.
    Tolerated(u32),
    /// The step, whose output is a part of another one, may be skipped.
    Skipped(u32),
    /// The conditional has no steps for one answer; the other branch ends with this step.
    NotTaken(u32, u32),
    /// The loop may have no round.
    NoRound(u32),
    /// The schema says so.
    Declared,
    /// The node may fail, and an `on_failure` edge handles the failure.
    Handled(u32),
    /// The node may fail, and an edge starts the reader after the failure.
    Outlived(u32),
    /// The step may fail, and the policy tolerates every failure.
    Open(u32),
}

/// Parts of the condition of a loop, and steps of its rounds, that are searched.
const SEARCHED_MAX: usize = 64;

/// Steps before a reference that are searched for one that ends the execution.
const BEFORE_MAX: usize = 64;

/// The depth to which branches in branches are searched.
const DEPTH_MAX: usize = 8;

impl Reader<'_, '_> {
    /// Warns if the path of a reference, which stays in the shape of its value, may lead nowhere.
    pub(super) fn check_presence(&mut self, reference: &Reference, path: &Path) {
        if self.asks == Some(Asks::Presence) {
            return;
        }
        let shapes = self.shapes();
        let (mut null, mut optional, mut in_rounds) = (None, None, false);
        let _ = shapes.follow(reference, self.number, &mut |at, shape| {
            null = null.or_else(|| Some((at, shapes.null(shape, at == 0, DEPTH_MAX)?, in_rounds)));
            in_rounds |= matches!(shape, Shape::Step(step) if matches!(shapes.step(*step), Shape::Rounds(_)));
            optional = optional.or_else(|| shapes.is_optional(shape, &reference.path[at]).then_some(at));
        });
        let failed = match reference.root {
            Root::Step(step) => self.failed_before(step).map(|null| (0, null, false)),
            _ => None,
        };
        match (failed.or(null), optional) {
            (Some((at, null, in_rounds)), _) => self.warn_of_null(reference, at, null, in_rounds, path),
            (_, Some(at)) if reference.root == Root::Input => self.warn_of_missing(reference, at + 1, path),
            _ => self.check_variable_presence(reference, path),
        }
        self.check_rare_field(reference, path);
    }

    /// Warns about a field of a script's output that is there only in some cases.
    fn check_rare_field(&mut self, reference: &Reference, path: &Path) {
        let (Root::Step(step), Some(Part::Name(name))) = (reference.root, reference.path.first()) else { return };
        let Some((_, when)) = RARE.into_iter().find(|(rare, _)| *rare == name.as_str()) else { return };
        let begin = reference.begin(1);
        if !matches!(self.shapes().step(step), Shape::Fixed(fields) if fields == SCRIPT) || self.is_asked_for(begin) {
            return;
        }
        let message = format!("`{reference}` is there only if {when}; without it the reference leads nowhere");
        let help = match self.at_end_of_all {
            true => format!("write `@{}`: the whole output has it if it is there", reference.begin(0)),
            false => format!("ask for it first: write `when: {{ref: \"@{begin}\", exists: true}}`"),
        };
        self.report.warning(diagnostic::VALUE_MAY_BE_MISSING, path, message, help);
    }

    fn warn_of_null(&mut self, reference: &Reference, at: usize, null: Null, in_rounds: bool, path: &Path) {
        let is_cleanup = self.outline.is_in_finally(self.number);
        let asks_of_cleanup = matches!(reference.root, Root::Step(step) if self.outline.is_in_finally(step));
        // An edge may keep the step from running after the failure, and in `finally` every path of such a step reads as null.
        let is_node = |step: u32| self.edges.is_some() && self.outline.entries[step as usize].block == 0;
        let is_kept = |step: u32| is_node(step) && self.failed_before(step).is_none();
        let is_settled = matches!(null, Null::Tolerated(step) if is_kept(step)) || is_cleanup && !asks_of_cleanup;
        if is_settled || self.is_asked_for(reference.begin(0)) {
            return;
        }
        let holder = self.holder(reference, at);
        let id = |step: u32| named(&self.outline.entries[step as usize].id);
        let why = match null {
            Null::Tolerated(step) => format!("{} may fail, which its `onError` tolerates", id(step)),
            Null::Skipped(step) => format!("{} may be skipped", id(step)),
            Null::NotTaken(step, _) => format!("a branch of {} has no steps", id(step)),
            Null::NoRound(step) => format!("{} may have no round", id(step)),
            Null::Declared => "its schema says so".to_string(),
            Null::Handled(step) => format!("{} may fail, which its `on_failure` edge handles", id(step)),
            Null::Outlived(step) => format!("{} may fail, and an edge starts {} then", id(step), id(self.number)),
            Null::Open(step) => format!("{} may fail, which `failOpen` tolerates", id(step)),
        };
        let fails = if self.at_end_of_all { "the execution" } else { "the step" };
        let message = format!("`{reference}`: {holder} may be null, since {why}; a path below null fails {fails}");
        let help = self.instead_of_null(reference, at, null, in_rounds, path);
        self.report.warning(diagnostic::VALUE_MAY_BE_NULL, path, message, help);
    }

    fn instead_of_null(&self, reference: &Reference, at: usize, null: Null, in_rounds: bool, path: &Path) -> Help {
        let direct = match null {
            Null::Skipped(step) | Null::NotTaken(_, step) => Some(&self.outline.entries[step as usize]),
            _ => None,
        };
        if let Some(entry) = direct.filter(|entry| entry.has_own_id && !in_rounds && !self.at_end_of_all) {
            let meant = format!("{}{}", entry.id, &reference.text[reference.begin(at).len()..]);
            let text = format!("write `@{meant}`: a step that did not run reads as null on every path");
            return Help::new(text, self.report.reworded(path, &reference.text, &meant));
        }
        if self.at_end_of_all {
            let begin = reference.begin(at);
            let fix = self.report.reworded(path, &reference.text, begin);
            return Help::new(
                format!("write `@{begin}`: `output` has no condition, and the whole value may be null"),
                fix,
            );
        }
        let asked = Value::map([("ref", Value::from(format!("@{}", reference.begin(at))))]);
        let fields = &self.entry().fields;
        let own = (self.asks.is_none() && self.at_edge.is_none()).then_some(fields);
        match own.filter(|fields| !fields.has("when") && self.entry().role == Role::Whole) {
            Some(fields) => {
                let text = format!("write `when: {}`, which skips the step if it is null", flow(&asked));
                Help::new(text, Fix::add(fields.path.key("when"), asked))
            }
            None => format!("ask for it first: write `{}` in a condition", flow(&asked)).into(),
        }
    }

    /// Warns about a comparison with a property of the input that may be missing.
    fn warn_of_missing(&mut self, reference: &Reference, parts: usize, path: &Path) {
        let begin = reference.begin(parts);
        if self.asks != Some(Asks::Comparison) || self.is_asked_for(begin) {
            return;
        }
        let message = format!(
            "`{reference}`: `@{begin}` is neither required nor has a `default`, and a comparison with a missing value fails the step"
        );
        let help = self.presence_first(begin, "give it a `default` in `inputSchema`", path);
        self.report.warning(diagnostic::VALUE_MAY_BE_MISSING, path, message, help);
    }

    /// Warns about a comparison with a variable that is declared and may not be given.
    fn check_variable_presence(&mut self, reference: &Reference, path: &Path) {
        let (Root::Variables, Some(Part::Name(name))) = (reference.root, reference.path.first()) else { return };
        let begin = reference.begin(1);
        if self.asks != Some(Asks::Comparison) || !self.is_optional_variable(name) || self.is_asked_for(begin) {
            return;
        }
        let message = format!(
            "`{reference}`: {} is neither required nor has a `default`, and a comparison with a missing value fails the step",
            named(name)
        );
        let help = self.presence_first(begin, "give it a `default` in `variables`", path);
        self.report.warning(diagnostic::VALUE_MAY_BE_MISSING, path, message, help);
    }

    /// Warns about `{variable: NAME, equals: …}` if the variable is declared and may not be given.
    pub(in crate::definition) fn check_asked_presence(&mut self, name: &str, path: &Path) {
        if !self.is_optional_variable(name) || self.outline.outputs.contains_key(name) {
            return;
        }
        let message = format!(
            "{} is neither required nor has a `default`, and a comparison with a missing value fails the step",
            named(name)
        );
        let help = format!("give {} a `default` in `variables`, or write `required: true` there", named(name));
        self.report.warning(diagnostic::VALUE_MAY_BE_MISSING, path, message, help);
    }

    /// True if a variable is declared, and may be missing when the execution has started.
    fn is_optional_variable(&self, name: &str) -> bool {
        let declared = self.outline.declared.variables.and_then(|declared| declared.get(name)).and_then(Value::as_map);
        declared.is_some_and(|declared| {
            let is_required = declared.get("required").and_then(Value::as_bool) == Some(true);
            !is_required && !declared.contains_key("default")
        })
    }

    /// Returns the help that asks for a value before it is compared. `path` is that of the `ref` in the condition.
    fn presence_first(&self, begin: &str, otherwise: &str, path: &Path) -> Help {
        let holder = path.parent();
        let exists = Value::map([("ref", Value::from(format!("@{begin}"))), ("exists", true.into())]);
        let text = format!("write `all: [{}, …]` if it does not hold without the value, or {otherwise}", flow(&exists));
        match self.report.part(&holder) {
            // With `neq` the author may well mean that a missing value differs.
            Some(condition) if condition.get("neq").is_none() && condition.get("ref").is_some() => {
                let all = Value::List([exists, condition.clone()].into());
                Help::new(text, Fix::replace(&holder, Value::map([("all", all)])))
            }
            _ => text.into(),
        }
    }

    /// True if a condition of the step or of one around it asks for a value, apart from the reference that is being read.
    fn is_asked_for(&self, begin: &str) -> bool {
        let own = self.number;
        let around = self.outline.way_up(own).filter_map(|(block, _)| self.outline.blocks[block as usize].owner);
        let count = |fields: &Fields<'_>| -> usize {
            let conditions = ["when", "condition", "while", "until", "bail"];
            conditions.iter().filter_map(|key| fields.get(key)).map(|condition| mentions(condition, begin)).sum()
        };
        let entry = |step: u32| &self.outline.entries[step as usize];
        let of_own = count(&entry(own).fields);
        // A body has the fields of its loop, and would be counted twice.
        let above = around.map(entry).filter(|above| above.fields.path != entry(own).fields.path);
        let all = of_own + above.map(|above: &Entry<'_>| count(&above.fields)).sum::<usize>();
        all > usize::from(self.asks.is_some() && self.at_edge.is_none()) || self.is_left_without(begin)
    }

    /// True if a step before ends the execution under a condition that asks for a value: what follows has it.
    fn is_left_without(&self, begin: &str) -> bool {
        let asks = |entry: &Entry<'_>, key: &str| entry.fields.get(key).is_some_and(|asked| mentions(asked, begin) > 0);
        let returns = |entry: &Entry<'_>| entry.kind.is_some_and(|kind| kind.name == "return");
        let leaves = |step: u32| {
            let entry = &self.outline.entries[step as usize];
            let inner = || {
                let blocks = entry.branches.iter().map(|(_, block)| &self.outline.blocks[*block as usize]);
                blocks.flat_map(|block| &block.steps).any(|step| returns(&self.outline.entries[*step as usize]))
            };
            asks(entry, "bail") || returns(entry) && asks(entry, "when") || asks(entry, "condition") && inner()
        };
        self.outline.way_up(self.number).any(|(block, own)| {
            let block = &self.outline.blocks[block as usize];
            let before = block.steps.iter().rev().skip_while(|step| **step >= own).take(BEFORE_MAX);
            matches!(block.order, Order::Sequence) && before.into_iter().any(|step| leaves(*step))
        })
    }
}

impl<'s> Shapes<'s> {
    /// Returns the reason for which a value may be null. The output of a step that a reference names itself reads as null on
    /// every path if the step was skipped.
    fn null(self, shape: &Shape<'s>, is_named: bool, depth: usize) -> Option<Null> {
        let depth = depth.checked_sub(1)?;
        match shape {
            Shape::Step(step) => self.null_step(*step, is_named, depth),
            Shape::Schema(schema) => match self.expanded(*schema) {
                Shape::Schema(schema) => kinds_of(schema.at).contains(&"null").then_some(Null::Declared),
                other => self.null(&other, is_named, depth),
            },
            Shape::OneOf(shapes) => shapes.iter().find_map(|shape| self.null(shape, is_named, depth)),
            _ => None,
        }
    }

    /// True if a loop with `while` may have no round. A condition about the steps of its rounds is usually written so that it
    /// holds before the first one, where they read as null; a large one is not searched for each reference.
    fn may_have_no_round(self, step: u32, entry: &Entry<'_>) -> bool {
        let Some(condition) = entry.fields.get("while") else { return false };
        let steps = entry.branches.iter().flat_map(|(_, block)| &self.outline.blocks[*block as usize].steps);
        let names: Vec<&str> =
            steps.take(SEARCHED_MAX).map(|step| self.outline.entries[*step as usize].id.as_str()).collect();
        let asks_its_rounds = names_one_of(condition, &names, &mut SEARCHED_MAX.clone());
        !asks_its_rounds && first_round::answer_of(self.outline, step, condition) != Some(true)
    }

    fn null_step(self, step: u32, is_named: bool, depth: usize) -> Option<Null> {
        let entry = self.outline.entries.get(step as usize)?;
        let kind = entry.kind?.name;
        if tolerates(entry) && entry.role != Role::Each && kind != "approval" {
            return Some(Null::Tolerated(step));
        }
        let may_skip = entry.fields.get("when").is_some_and(|when| when.as_bool() != Some(true));
        if !is_named && may_skip && entry.role == Role::Whole {
            return Some(Null::Skipped(step));
        }
        if entry.role == Role::Each {
            return None;
        }
        match (kind, self.step(step)) {
            ("conditional", _) => {
                let answer = entry.fields.get("condition").and_then(Value::as_bool);
                let end = |key: &str| self.last(entry, key);
                match (answer, end("then"), end("else")) {
                    (Some(true), Some(end), _) | (Some(false), _, Some(end)) => self.null_step(end, false, depth),
                    (_, Some(end), None) | (_, None, Some(end)) => Some(Null::NotTaken(step, end)),
                    (_, Some(then), Some(other)) => {
                        let depth = depth.checked_sub(1)?;
                        self.null_step(then, false, depth).or_else(|| self.null_step(other, false, depth))
                    }
                    _ => None,
                }
            }
            ("loop", Shape::OneOf(_)) => self.may_have_no_round(step, entry).then_some(Null::NoRound(step)),
            ("loop", Shape::Step(last)) => self.null_step(last, false, depth.checked_sub(1)?),
            (_, schema @ Shape::Schema(_)) => self.null(&schema, is_named, depth),
            _ => None,
        }
    }

    /// True if a part of a value is a property that its schema lists, and neither requires nor gives a default.
    fn is_optional(self, shape: &Shape<'s>, part: &Part) -> bool {
        let (Shape::Schema(schema), Part::Name(name)) = (shape, part) else { return false };
        let Shape::Schema(schema) = self.expanded(*schema) else { return false };
        let required = schema.at.get("required").and_then(Value::as_list).unwrap_or_default();
        let property = schema.at.get("properties").and_then(|properties| properties.get(name));
        let is_required = required.iter().any(|known| known.as_text() == Some(name));
        property.is_some_and(|property| !is_required && property.get("default").is_none())
    }
}

/// True if a condition has a reference whose name begins as one of these, or has more parts than may be searched.
fn names_one_of(condition: &Value, names: &[&str], left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return true };
    *left = rest;
    match condition {
        Value::Text(text) => text.strip_prefix('@').is_some_and(|text| names.iter().any(|name| text.starts_with(name))),
        Value::List(items) => items.iter().any(|item| names_one_of(item, names, left)),
        Value::Map(fields) => fields.values().any(|field| names_one_of(field, names, left)),
        _ => false,
    }
}

/// True if a failure of the step does not end the execution.
pub(super) fn tolerates(entry: &Entry<'_>) -> bool {
    let config = entry.fields.get("config").and_then(|config| config.get("onError"));
    let word = config.or(entry.fields.get("onError")).and_then(Value::as_text);
    word == Some("continue") || entry.fields.get("continueOnError").and_then(Value::as_bool) == Some(true)
}

/// Counts the references in the texts of a value that begin with the given one.
fn mentions(value: &Value, begin: &str) -> usize {
    match value {
        Value::Text(text) => {
            let is_begun = |rest: &str| {
                let length = reference::length(rest).map_or(0, |(_, all)| all);
                let below = rest[..length].strip_prefix(begin);
                below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
            };
            text.match_indices('@').filter(|(at, _)| is_begun(&text[at + 1..])).count()
        }
        Value::List(items) => items.iter().map(|item| mentions(item, begin)).sum(),
        Value::Map(map) => map.values().map(|field| mentions(field, begin)).sum(),
        _ => 0,
    }
}
