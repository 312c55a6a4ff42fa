//! Declared variables, and the check of given values against their declarations.

use alloc::{format, string::String, vec::Vec};

use crate::{
    failure::{Class, Failure},
    value::{Map, Value},
};

/// A declared variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// The part after `@vars.`.
    pub name: String,
    /// The type of its value.
    pub kind: VariableType,
    /// True if an execution cannot start without it.
    pub is_required: bool,
    /// True if its value must not leave the organization.
    pub is_private: bool,
    /// The value if none is given.
    pub default: Option<Value>,
}

/// Kinds of values that a variable may be declared to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableType {
    /// Any text.
    String,
    /// An integer or a double.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A map with text keys.
    Object,
    /// A list.
    Array,
    /// A value of any type.
    Any,
}

/// All types with their names in a definition.
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
    /// Returns the name of the type in a definition.
    pub fn name(self) -> &'static str {
        VARIABLE_TYPES.iter().find(|(_, kind)| *kind == self).map_or("any", |(name, _)| name)
    }

    /// True if a value is of this type.
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

/// Fills in the defaults of declared variables. The failure lists all mistakes in the given ones.
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
