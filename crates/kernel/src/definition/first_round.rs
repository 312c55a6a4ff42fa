//! The answer of a `while` condition before the first round, as far as the definition decides it: the steps of the rounds
//! read as null then, and `@index` is 0.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    condition::{Condition, Operator, Test},
    reference::{Found, Lookup, Reference, Root},
    template::Template,
    value::Value,
};

/// The parts of an outline that the values before a first round depend on.
pub(super) trait Loops {
    /// True if a step runs in the rounds of a loop, at any depth.
    fn is_inside(&self, step: u32, of: u32) -> bool;

    /// Resolves the name at the start of a reference in a step.
    fn root_of(&self, step: u32, name: &str) -> Option<Root>;
}

/// The values that are known before the first round of a loop.
struct Before<'o> {
    outline: &'o dyn Loops,
    of: u32,
}

impl Before<'_> {
    fn knows(&self, root: Root) -> bool {
        match root {
            Root::Index => true,
            Root::Step(step) => self.outline.is_inside(step, self.of),
            _ => false,
        }
    }
}

impl Lookup for Before<'_> {
    fn root(&self, root: Root) -> Found<'_> {
        match root {
            Root::Index => Found::Made(0u32.into()),
            root if self.knows(root) => Found::Skipped,
            _ => Found::Missing,
        }
    }

    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn output(&self, _: &str) -> Option<&Value> {
        None
    }
}

/// Returns the answer of a condition of a loop before its first round; `None` if the definition does not decide it.
pub(super) fn answer(outline: &dyn Loops, of: u32, condition: &Condition) -> Option<bool> {
    decided(condition, &Before { outline, of })
}

/// Like [`answer`], for a condition as it is written.
pub(super) fn answer_of(outline: &dyn Loops, of: u32, condition: &Value) -> Option<bool> {
    answer(outline, of, &written(outline, of, condition)?)
}

/// Returns the first reference of a condition that is known before the first round.
pub(super) fn known(outline: &dyn Loops, of: u32, condition: &Condition) -> Option<Reference> {
    let mut references = Vec::new();
    condition.references(&mut references);
    let before = Before { outline, of };
    references.into_iter().find(|reference| before.knows(reference.root)).cloned()
}

/// A part that is not known may also fail the step, which starts no round either: one false part of `all` suffices.
fn decided(condition: &Condition, before: &Before<'_>) -> Option<bool> {
    let by = |parts: &[Condition], decisive: bool| {
        let answers: Vec<Option<bool>> = parts.iter().map(|part| decided(part, before)).collect();
        match answers.contains(&Some(decisive)) {
            true => Some(decisive),
            false => answers.iter().all(Option::is_some).then_some(!decisive),
        }
    };
    match condition {
        Condition::Constant(answer) => Some(*answer),
        Condition::About(reference, _) if before.knows(reference.root) => condition.holds(before).ok(),
        Condition::About(..) | Condition::Variable(..) => None,
        Condition::All(parts) => by(parts, false),
        Condition::Any(parts) => by(parts, true),
        Condition::Not(part) => decided(part, before).map(|answer| !answer),
    }
}

/// Reads a condition without reporting its mistakes; `None` if it has some.
fn written(outline: &dyn Loops, of: u32, condition: &Value) -> Option<Condition> {
    let Value::Map(fields) = condition else { return condition.as_bool().map(Condition::Constant) };
    let parts = |parts: &Value| -> Option<Vec<Condition>> {
        parts.as_list()?.iter().map(|part| written(outline, of, part)).collect()
    };
    let root_of = |name: &str| match name {
        "index" => Some(Root::Index),
        name => outline.root_of(of, name),
    };
    let (form, value) = fields.iter().find(|(key, _)| super::keys::CONDITION_FORMS.contains(&key.as_str()))?;
    match form.as_str() {
        "all" => parts(value).map(Condition::All),
        "any" => parts(value).map(Condition::Any),
        "not" => Some(Condition::Not(Box::new(written(outline, of, value)?))),
        "variable" => Some(Condition::Variable(value.as_text()?.into(), fields.get("equals").cloned())),
        _ => {
            let reference = Reference::read(value.as_text()?.strip_prefix('@')?, &root_of)?;
            if let Some(exists) = fields.get("exists") {
                return Some(Condition::About(reference, Test::Exists(exists.as_bool()?)));
            }
            let mut bad = Vec::new();
            let operators =
                Operator::ALL.into_iter().filter_map(|operator| Some((operator, fields.get(operator.name())?)));
            let compares: Vec<_> =
                operators.map(|(operator, operand)| (operator, Template::read(operand, &root_of, &mut bad))).collect();
            let test = if compares.is_empty() { Test::Truth } else { Test::Compares(compares) };
            bad.is_empty().then_some(Condition::About(reference, test))
        }
    }
}
