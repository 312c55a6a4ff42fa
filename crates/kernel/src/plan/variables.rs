//! The variables that a definition declares.

use alloc::{format, string::String, vec::Vec};

use crate::{
    failure::{Class, Failure},
    value::{Map, Value},
};

/// A declared variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it may hold.
    pub kind: VariableType,
    /// Whether an execution cannot begin without it.
    pub is_required: bool,
    /// What it holds if it is not given.
    pub default: Option<Value>,
}

/// What a variable may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableType {
    /// Text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// An object.
    Object,
    /// A list.
    Array,
    /// Anything.
    Any,
}

/// Every type of a variable with its word.
pub const VARIABLE_TYPES: [(&str, VariableType); 7] = [
    ("string", VariableType::String),
    ("number", VariableType::Number),
    ("integer", VariableType::Integer),
    ("boolean", VariableType::Boolean),
    ("object", VariableType::Object),
    ("array", VariableType::Array),
    ("any", VariableType::Any),
];

impl VariableType {
    /// Its word.
    pub fn name(self) -> &'static str {
        VARIABLE_TYPES.iter().find(|(_, kind)| *kind == self).map_or("any", |(name, _)| name)
    }

    /// Whether a value is of the type.
    pub fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::String, Value::Text(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Object, Value::Map(_))
            | (Self::Array, Value::List(_)) => true,
            (Self::Integer, Value::Number(number)) => number.as_whole().is_some(),
            _ => false,
        }
    }
}

/// What is given for declared variables, with the defaults filled in; what is wrong with it otherwise, all of it.
pub(super) fn filled(declared: &[Variable], given: &Map) -> Result<Value, Failure> {
    let mut wrong: Vec<String> = Vec::new();
    let mut filled = Map::new();
    for name in given.keys().filter(|name| !declared.iter().any(|variable| variable.name == **name)) {
        wrong.push(format!("`{name}` is none of the variables that the workflow declares"));
    }
    for variable in declared {
        match given.get(&variable.name).or(variable.default.as_ref()) {
            Some(value) if variable.kind.holds(value) => drop(filled.insert(variable.name.clone(), value.clone())),
            Some(value) => wrong.push(format!(
                "`{}` must be of type {}, not {}",
                variable.name,
                variable.kind.name(),
                value.kind()
            )),
            None if variable.is_required => wrong.push(format!("`{}` is required and not given", variable.name)),
            None => {}
        }
    }
    if wrong.is_empty() {
        return Ok(filled.into());
    }
    let message = format!("the variables do not fit: {}", wrong.join("; "));
    let details = Value::map([("errors", wrong.into_iter().map(Value::from).collect::<Vec<_>>().into())]);
    Err(Failure::new(Class::Invalid, "invalid_variables", message).with_details(details))
}
