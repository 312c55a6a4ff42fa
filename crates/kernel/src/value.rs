//! JSON values: the data of inputs, outputs, templates and payloads. Numbers and nesting have fixed limits, and
//! equality does not depend on how a value was written.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::cmp::Ordering;

/// An object. Sorted by key, so that nothing depends on the order of insertion.
pub type Map = BTreeMap<String, Value>;

/// A JSON value.
///
/// Its nesting is at most [`DEPTH_MAX`](crate::limits::DEPTH_MAX); all readers of the kernel reject deeper values.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; see [`Number`] for its range.
    Number(Number),
    /// Text of Unicode scalar values. Lone surrogates are not possible.
    Text(String),
    /// An ordered list.
    List(Vec<Value>),
    /// An object; keys are unique.
    Map(Map),
}

/// A finite number: an integer from -2⁶³ to 2⁶⁴-1 exactly, anything else as an IEEE 754 double.
///
/// Each number has one representation: a double that is an integer in that range is stored as that integer, and -0 as
/// 0. The texts 1, 1.0 and 1e0 therefore give equal values with equal encodings.
#[derive(Debug, Clone, Copy)]
pub struct Number(Form);

#[derive(Debug, Clone, Copy)]
enum Form {
    Whole(i128),
    Double(f64),
}

impl Number {
    /// Creates a number from an integer; `None` outside -2⁶³..2⁶⁴.
    pub fn whole(number: i128) -> Option<Self> {
        (i64::MIN as i128..=u64::MAX as i128).contains(&number).then_some(Self(Form::Whole(number)))
    }

    /// Creates a number from a double; `None` for NaN and the infinities, which JSON does not have.
    pub fn double(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let whole = number as i128;
        let exact = if whole as f64 == number { Self::whole(whole) } else { None };
        Some(exact.unwrap_or(Self(Form::Double(number))))
    }

    /// Returns the integer; `None` for other numbers.
    pub fn as_whole(self) -> Option<i128> {
        match self.0 {
            Form::Whole(number) => Some(number),
            Form::Double(_) => None,
        }
    }

    /// Returns the nearest double, which RFC 8785 uses for hashes and JavaScript for computation.
    pub fn as_double(self) -> f64 {
        match self.0 {
            Form::Whole(number) => number as f64,
            Form::Double(number) => number,
        }
    }

    /// True if a double represents the number exactly.
    pub fn is_exact_double(self) -> bool {
        match self.0 {
            Form::Whole(number) => (number as f64) as i128 == number,
            Form::Double(_) => true,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Form::Whole(a), Form::Whole(b)) => a.cmp(&b),
            (Form::Double(a), Form::Double(b)) => a.total_cmp(&b),
            (Form::Whole(a), Form::Double(b)) => compare_whole_with_double(a, b),
            (Form::Double(a), Form::Whole(b)) => compare_whole_with_double(b, a).reverse(),
        }
    }
}

/// Compares exactly, where a conversion to double would make neighboring integers equal. The double has a fraction or
/// is outside the range of integers.
fn compare_whole_with_double(whole: i128, double: f64) -> Ordering {
    let cut = double as i128;
    whole.cmp(&cut).then_with(|| {
        if double > cut as f64 {
            Ordering::Less
        } else if double < cut as f64 {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    })
}

impl Value {
    /// Creates a text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates an object. If keys repeat, the last entry wins, so callers should pass each key once.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// True if a part of the value lies more than this many levels below it.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let is_inner_deeper = |inner: &Self| levels == 0 || inner.is_deeper_than(levels - 1);
        match self {
            Self::List(items) => items.iter().any(is_inner_deeper),
            Self::Map(map) => map.values().any(is_inner_deeper),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => false,
        }
    }

    /// Returns a field, if the value is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// Returns the text; `None` for other kinds.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean; `None` for other kinds.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// Returns the number; `None` for other kinds.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the integer if it is from 0 to 2⁶⁴-1; `None` for anything else.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_whole).and_then(|number| u64::try_from(number).ok())
    }

    /// Returns the list; `None` for other kinds.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the object; `None` for other kinds.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// True unless the value is null, false, 0 or the empty text. Conditions without an operator use this.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(bool) => *bool,
            Self::Number(number) => number.as_double() != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(_) | Self::Map(_) => true,
        }
    }

    /// Returns the kind of the value with its article, for messages to authors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(Number(Form::Whole(number.into())))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::from(u64::from(number))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Number(Form::Whole(number.into())))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_one_form() {
        assert_eq!(Number::double(1.0), Number::whole(1));
        assert_eq!(Number::double(-0.0), Number::whole(0));
        assert_eq!(Number::double(1e300).unwrap().as_whole(), None);
        assert_eq!(Number::double(f64::NAN), None);
        assert_eq!(Number::double(f64::INFINITY), None);
        assert_eq!(Number::whole(i128::from(u64::MAX) + 1), None);
        assert_eq!(Number::whole(i128::from(i64::MIN) - 1), None);
    }

    #[test]
    fn whole_numbers_and_doubles_compare_exactly() {
        let whole = |number| Number::whole(number).unwrap();
        let double = |number| Number::double(number).unwrap();
        assert!(whole(1) < double(1.5) && double(0.5) < whole(1) && double(-1.5) < whole(-1));
        assert!(whole(-2) < double(-1.5));
        assert_eq!(double((1u64 << 60) as f64).as_whole(), Some(1 << 60));
        assert!(whole((1 << 60) + 1) > double((1u64 << 60) as f64));
        assert!(double(1e300) > whole(u64::MAX.into()) && double(-1e300) < whole(i64::MIN.into()));
        assert!(!whole((1 << 53) + 1).is_exact_double() && whole(1 << 53).is_exact_double());
    }

    #[test]
    fn truth() {
        for (value, truthy) in [
            (Value::Null, false),
            (Value::from(false), false),
            (Value::from(0u64), false),
            (Value::from(""), false),
            (Value::List(Vec::new()), true),
            (Value::Map(Map::new()), true),
            (Value::from("false"), true),
            (Value::from(-1i64), true),
        ] {
            assert_eq!(value.is_truthy(), truthy, "{value:?}");
        }
    }
}
