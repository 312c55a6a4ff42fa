//! Comparisons that no value of a shape meets: of another type, or outside of the listed values.

use alloc::{format, string::String, vec::Vec};

use super::{Shape, Shapes, walk::kinds_of};
use crate::{
    condition::Operator,
    definition::{fields::Fields, help::Help, references::Reader, report::named},
    diagnostic, json,
    reference::{Reference, Root},
    value::{Number, Value},
};

/// The types and the values that a value can have.
#[derive(Debug, Clone, Default)]
struct Range<'s> {
    /// JSON types; `number` includes whole numbers.
    kinds: Vec<&'s str>,
    /// All values, if they are listed.
    values: Option<Vec<&'s Value>>,
}

/// The depth to which unions in unions are read.
const DEPTH_MAX: usize = 8;

impl Reader<'_, '_> {
    /// Warns about an operand that the value of a reference never equals, or is never ordered with. `false` if it may be.
    pub(in crate::definition) fn check_by_shape(
        &mut self,
        reference: &Reference,
        operator: Operator,
        operand: &Value,
        fields: &Fields<'_>,
    ) -> bool {
        let shapes = self.shapes();
        let Some(range) = shapes.end(reference, self.number).and_then(|shape| shapes.range(&shape, DEPTH_MAX)) else {
            return false;
        };
        // A step that did not run reads as null.
        let may_be_null = matches!(reference.root, Root::Step(_));
        self.check_range(&format!("`{reference}`"), &range, may_be_null, (operator, operand), fields)
    }

    /// Warns about a value that a variable never equals. An output variable may have the same name.
    pub(in crate::definition) fn check_variable_by_type(&mut self, name: &str, operand: &Value, fields: &Fields<'_>) {
        let shapes = self.shapes();
        let Some(range) = shapes.range(&shapes.variable(name), DEPTH_MAX) else { return };
        if !self.outline.outputs.contains_key(name) {
            self.check_range(&named(name), &range, false, (Operator::Equal, operand), fields);
        }
    }

    fn check_range(
        &mut self,
        subject: &str,
        range: &Range<'_>,
        may_be_null: bool,
        (operator, operand): (Operator, &Value),
        fields: &Fields<'_>,
    ) -> bool {
        let can_be = |value: &Value| may_be_null && *value == Value::Null || range.holds(value);
        let can_hold = match (operator, operand) {
            (Operator::Equal, operand) => can_be(operand),
            (Operator::In, Value::List(items)) => items.is_empty() || items.iter().any(can_be),
            (Operator::In | Operator::NotEqual, _) => true,
            (_, Value::Number(_)) => range.has(&["number", "integer"]),
            (_, Value::Text(_)) => range.has(&["string"]),
            _ => true,
        };
        if can_hold {
            return false;
        }
        // `equals` of a variable is an equality as well.
        let key = if fields.has(operator.name()) { operator.name() } else { "equals" };
        let path = fields.path.key(key);
        let is_value = range.values.is_some();
        let what = match &range.values {
            Some(values) => {
                format!("one of {}", values.iter().map(|value| json::compact(value)).collect::<Vec<_>>().join(", "))
            }
            None => format!("of type {}", range.kinds.join(" or ")),
        };
        let message = format!("{subject} is {what}: the comparison with {} never holds", json::compact(operand));
        let meant = (!is_value).then(|| range.converted(operand)).flatten();
        let mut near = || {
            let words: Vec<&str> = range.values.iter().flatten().filter_map(|value| value.as_text()).collect();
            operand.as_text().and_then(|word| self.report.nearest_name(word, words.iter().copied())).map(String::from)
        };
        let help = match (operator, meant.or_else(|| near().map(Value::from))) {
            (Operator::In, _) | (_, None) => format!("compare it with a value that is {what}").into(),
            (_, Some(meant)) => Help::value(&path, meant),
        };
        self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &path, message, help);
        true
    }
}

impl Range<'_> {
    fn has(&self, kinds: &[&str]) -> bool {
        self.kinds.iter().any(|kind| kinds.contains(kind))
    }

    fn holds(&self, value: &Value) -> bool {
        if let Some(values) = &self.values {
            return values.contains(&value);
        }
        match value {
            Value::Null => self.has(&["null"]),
            Value::Bool(_) => self.has(&["boolean"]),
            // Numbers are equal by value, so a whole number may be written as 1.0.
            Value::Number(number) => self.has(&["number"]) || self.has(&["integer"]) && is_whole(*number),
            Value::Text(_) => self.has(&["string"]),
            Value::List(_) => self.has(&["array"]),
            Value::Map(_) => self.has(&["object"]),
        }
    }

    /// Returns the value of the wanted type that an operand writes in another one: the text `"0"` for the number 0.
    fn converted(&self, operand: &Value) -> Option<Value> {
        let value = match operand {
            Value::Text(text) => json::value(text.as_bytes()).ok()?,
            Value::Number(_) | Value::Bool(_) => json::compact(operand).into(),
            _ => return None,
        };
        self.holds(&value).then_some(value)
    }
}

fn is_whole(number: Number) -> bool {
    let double = number.as_double();
    double == (double as i64) as f64
}

impl<'s> Shapes<'s> {
    /// Returns what a value can be; `None` if it can be anything.
    fn range(self, shape: &Shape<'s>, depth: usize) -> Option<Range<'s>> {
        let depth = depth.checked_sub(1)?;
        let of_kind = |kind: &'s str| Some(Range { kinds: [kind].into(), values: None });
        match shape {
            Shape::Any | Shape::Kind("") => None,
            Shape::Kind(kind) => of_kind(kind),
            Shape::Fixed(_) | Shape::Branches(_) | Shape::Answer(..) => of_kind("object"),
            Shape::Rounds(_) => of_kind("array"),
            Shape::Step(step) => self.range(&self.step(*step), depth),
            Shape::OneOf(shapes) => {
                let mut all = Range::default();
                let mut is_listed = true;
                for shape in shapes {
                    let range = self.range(shape, depth)?;
                    is_listed &= range.values.is_some();
                    for kind in range.kinds {
                        if !all.kinds.contains(&kind) {
                            all.kinds.push(kind);
                        }
                    }
                    all.values.get_or_insert_default().extend(range.values.into_iter().flatten());
                }
                all.values = all.values.filter(|_| is_listed);
                Some(all)
            }
            Shape::Schema(schema) => match self.expanded(*schema) {
                Shape::Schema(schema) => {
                    let listed = schema.at.get("enum").and_then(Value::as_list).map(|values| values.iter().collect());
                    let values: Option<Vec<&Value>> = schema.at.get("const").map(|only| [only].into()).or(listed);
                    let kinds = kinds_of(schema.at);
                    (!kinds.is_empty() || values.is_some()).then_some(Range { kinds, values })
                }
                other => self.range(&other, depth),
            },
        }
    }
}

impl<'s> Shapes<'s> {
    /// Returns the types of a value in words; empty if nothing is known.
    pub(super) fn in_words(self, shape: &Shape<'s>) -> String {
        self.range(shape, DEPTH_MAX).map_or_else(String::new, |range| range.kinds.join(" or "))
    }
}
