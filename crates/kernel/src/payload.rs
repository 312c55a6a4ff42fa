//! Erasable data of records.

use crate::value::Value;

/// User data that can be erased later. A frame holds only a salted hash of it, so erasing the data keeps the hash chain
/// valid.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// The data itself.
    Known(Value),
    /// The data has been erased.
    Erased,
}

static NULL: Value = Value::Null;

impl Payload {
    /// Returns the data, or null if it has been erased.
    pub fn value(&self) -> &Value {
        match self {
            Self::Known(value) => value,
            Self::Erased => &NULL,
        }
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self::Known(value)
    }
}
