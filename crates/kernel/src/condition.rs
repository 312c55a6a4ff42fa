//! Conditions as structured data. They contain no expression strings, so they need no parser and a form can edit them.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::cmp::Ordering;

use crate::{
    reference::{Found, Lookup, Miss, Reference},
    template::Template,
    value::Value,
};

/// A condition that is true or false, or an error if it cannot be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A fixed result.
    Constant(bool),
    /// A test of the value of a reference.
    About(Reference, Test),
    /// A test of a variable, or of the output variable of that name if there is no such variable: equality with the
    /// given value, or else truthiness.
    Variable(String, Option<Value>),
    /// True if all parts are true.
    All(Vec<Condition>),
    /// True if at least one part is true.
    Any(Vec<Condition>),
    /// True if the part is false.
    Not(Box<Condition>),
}

/// A test of one value.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// True if the value is truthy. A missing value is not.
    Truth,
    /// True if the value exists, or for `Exists(false)` if it does not.
    Exists(bool),
    /// True if all comparisons are true: one, or the two bounds of a range.
    Compares(Vec<(Operator, Template)>),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// Deep equality without conversions: the text `true` is not equal to the boolean.
    Equal,
    /// Negated equality.
    NotEqual,
    /// Greater than.
    Greater,
    /// Greater than or equal.
    GreaterOrEqual,
    /// Less than.
    Less,
    /// Less than or equal.
    LessOrEqual,
    /// Contained in a list.
    In,
}

impl Operator {
    /// All operators.
    pub const ALL: [Self; 7] =
        [Self::Equal, Self::NotEqual, Self::Greater, Self::GreaterOrEqual, Self::Less, Self::LessOrEqual, Self::In];

    /// The key in a definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::NotEqual => "neq",
            Self::Greater => "gt",
            Self::GreaterOrEqual => "gte",
            Self::Less => "lt",
            Self::LessOrEqual => "lte",
            Self::In => "in",
        }
    }

    /// True for lower bounds of a range.
    pub fn is_lower_bound(self) -> bool {
        matches!(self, Self::Greater | Self::GreaterOrEqual)
    }

    /// True for upper bounds of a range.
    pub fn is_upper_bound(self) -> bool {
        matches!(self, Self::Less | Self::LessOrEqual)
    }

    fn holds(self, value: &Value, operand: &Value) -> Result<bool, NotAList> {
        Ok(match self {
            Self::Equal => value == operand,
            Self::NotEqual => value != operand,
            Self::Greater => order(value, operand) == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order(value, operand), Some(Ordering::Greater | Ordering::Equal)),
            Self::Less => order(value, operand) == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order(value, operand), Some(Ordering::Less | Ordering::Equal)),
            Self::In => operand.as_list().ok_or(NotAList)?.contains(value),
        })
    }
}

struct NotAList;

/// Orders two numbers or two texts. Values of other or different kinds have no order.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The error for a condition that cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The reason, which names the reference.
    pub message: String,
}

impl From<Miss> for Unreadable {
    fn from(miss: Miss) -> Self {
        Self { message: format!("`@{}` leads nowhere", miss.reference) }
    }
}

impl Condition {
    /// Evaluates the condition. Parts are evaluated in order until the result is certain.
    pub fn holds(&self, lookup: &dyn Lookup) -> Result<bool, Unreadable> {
        match self {
            Self::Constant(answer) => Ok(*answer),
            Self::About(reference, test) => about(reference, test, lookup),
            Self::Variable(name, equals) => variable(name, equals.as_ref(), lookup),
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(lookup)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(lookup)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(part) => part.holds(lookup).map(|answer| !answer),
        }
    }

    /// Adds all references, in order of occurrence.
    pub fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Constant(_) | Self::Variable(..) => {}
            Self::About(reference, test) => {
                found.push(reference);
                if let Test::Compares(comparisons) = test {
                    comparisons.iter().for_each(|(_, operand)| operand.references(found));
                }
            }
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.references(found)),
            Self::Not(part) => part.references(found),
        }
    }
}

fn about(reference: &Reference, test: &Test, lookup: &dyn Lookup) -> Result<bool, Unreadable> {
    let made;
    // A skipped step reads as null on every path, but there is nothing below that null.
    let leads_nowhere = matches!(test, Test::Exists(_)) && !reference.path.is_empty() && !lookup.finds_below_skipped();
    let value = match lookup.root(reference.root) {
        Found::Kept(value) => reference.follow(value),
        Found::Made(value) => {
            made = value;
            reference.follow(&made)
        }
        Found::Skipped => (!leads_nowhere).then_some(&Value::Null),
        Found::Missing => None,
    };
    match (test, value) {
        (Test::Truth, value) => Ok(value.is_some_and(Value::is_truthy)),
        (Test::Exists(wanted), value) => Ok(value.is_some() == *wanted),
        (Test::Compares(_), None) => Err(Miss { reference: reference.text.clone() }.into()),
        (Test::Compares(comparisons), Some(value)) => {
            for (operator, operand) in comparisons {
                let operand = operand.resolve(lookup)?;
                let holds = operator.holds(value, &operand).map_err(|NotAList| Unreadable {
                    message: format!("`in` asks for a list, not {}: {reference}", operand.kind()),
                })?;
                if !holds {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Looks among the variables first. A variable whose value is null exists.
fn variable(name: &str, equals: Option<&Value>, lookup: &dyn Lookup) -> Result<bool, Unreadable> {
    match (lookup.variable(name).or_else(|| lookup.output(name)), equals) {
        (value, None) => Ok(value.is_some_and(Value::is_truthy)),
        (Some(value), Some(expected)) => Ok(value == expected),
        (None, Some(_)) => Err(Unreadable { message: format!("there is no variable or output variable `{name}`") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, reference::Root};
    use alloc::vec;

    struct Fixture {
        input: Value,
        variables: Value,
        outputs: Value,
    }

    impl Lookup for Fixture {
        fn root(&self, root: Root) -> Found<'_> {
            match root {
                Root::Input => Found::Kept(&self.input),
                Root::Step(0) => Found::Skipped,
                Root::Context => Found::Made(crate::reference::context("e", 1, 0, None)),
                _ => Found::Missing,
            }
        }
        fn variable(&self, name: &str) -> Option<&Value> {
            self.variables.get(name)
        }
        fn output(&self, name: &str) -> Option<&Value> {
            self.outputs.get(name)
        }
    }

    fn value(text: &str) -> Value {
        json::read(text.as_bytes()).unwrap().value
    }

    fn about(reference: &str, test: Test) -> Condition {
        let root = |name: &str| match name {
            "input" => Some(Root::Input),
            "skipped" => Some(Root::Step(0)),
            "ctx" => Some(Root::Context),
            _ => Some(Root::Step(9)),
        };
        Condition::About(Reference::read(reference, &root).unwrap(), test)
    }

    fn compare(reference: &str, operator: Operator, operand: &str) -> Condition {
        about(reference, Test::Compares(vec![(operator, Template::Literal(value(operand)))]))
    }

    fn check(condition: Condition, expected: Result<bool, &str>) {
        let fixture = Fixture {
            input: value(r#"{"n":3,"t":"b","l":[1],"z":null,"f":false}"#),
            variables: value(r#"{"k":null,"on":true}"#),
            outputs: value(r#"{"k":1,"o":2}"#),
        };
        let answer = condition.holds(&fixture);
        match (&answer, expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(*answer, expected, "{condition:?}"),
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error:?}"),
            _ => panic!("{condition:?}: {answer:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn comparisons() {
        use Operator::*;
        for (operator, operand, holds) in [
            (Equal, "3", true),
            (Equal, "3.0", true),
            (Equal, "\"3\"", false),
            (NotEqual, "\"3\"", true),
            (Greater, "2", true),
            (Greater, "3", false),
            (GreaterOrEqual, "3", true),
            (Less, "3", false),
            (LessOrEqual, "3", true),
            (Greater, "\"2\"", false),
            (Less, "\"2\"", false),
            (Less, "null", false),
            (In, "[1,3]", true),
            (In, "[\"3\"]", false),
        ] {
            check(compare("input.n", operator, operand), Ok(holds));
        }
        check(compare("input.t", Greater, "\"a\""), Ok(true));
        check(compare("input.l", Equal, "[1]"), Ok(true));
        check(compare("input.z", Equal, "null"), Ok(true));
        check(compare("input.n", In, "3"), Err("asks for a list"));
        check(compare("input.no", NotEqual, "3"), Err("@input.no"));
        check(compare("skipped.x", Equal, "null"), Ok(true));
        check(compare("other.x", Equal, "null"), Err("other.x"));
        check(compare("ctx.attempt", Equal, "1"), Ok(true));
    }

    #[test]
    fn presence_and_truth() {
        check(about("input.no", Test::Truth), Ok(false));
        check(about("input.no", Test::Exists(true)), Ok(false));
        check(about("input.no", Test::Exists(false)), Ok(true));
        check(about("input.z", Test::Exists(true)), Ok(true));
        check(about("input.f", Test::Truth), Ok(false));
        check(about("skipped.x", Test::Truth), Ok(false));
        check(about("skipped.x", Test::Exists(true)), Ok(false));
        check(about("skipped.x", Test::Exists(false)), Ok(true));
        check(about("skipped", Test::Exists(true)), Ok(true));
        let variable = |name: &str, equals: Option<&str>| Condition::Variable(name.into(), equals.map(value));
        check(variable("k", Some("null")), Ok(true));
        check(variable("o", Some("2")), Ok(true));
        check(variable("on", None), Ok(true));
        check(variable("no", None), Ok(false));
        check(variable("no", Some("null")), Err("no variable"));
    }

    #[test]
    fn combinations() {
        let (yes, no) = (|| Condition::Constant(true), || Condition::Constant(false));
        check(Condition::All(vec![]), Ok(true));
        check(Condition::Any(vec![]), Ok(false));
        check(Condition::All(vec![yes(), no()]), Ok(false));
        check(Condition::Any(vec![no(), yes()]), Ok(true));
        check(Condition::Not(Box::new(no())), Ok(true));
        check(Condition::Any(vec![yes(), compare("input.no", Operator::Less, "1")]), Ok(true));
        check(Condition::All(vec![yes(), compare("input.no", Operator::Less, "1")]), Err("input.no"));
    }
}
