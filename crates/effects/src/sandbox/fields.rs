//! Reads objects of the other side. No field may be missing or left over.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

/// The fields of an object that is read, each taken once.
pub(super) struct Fields(Map);

impl Fields {
    /// Reads a message and its type.
    pub(super) fn of(line: &[u8]) -> Result<(String, Self), String> {
        let value = json::data(line).map_err(|_| "a message is no JSON")?;
        let mut fields = Self::of_value(value)?;
        Ok((fields.text("type")?, fields))
    }

    pub(super) fn of_value(value: Value) -> Result<Self, String> {
        match value {
            Value::Map(map) => Ok(Self(map)),
            _ => Err("a message is no object".into()),
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Value, String> {
        self.0.remove(name).ok_or_else(|| format!("a message lacks `{name}`"))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        match self.take(name)? {
            Value::Text(text) => Ok(text),
            _ => Err(format!("`{name}` is no text")),
        }
    }

    pub(super) fn text_or_null(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            _ => Err(format!("`{name}` is no text")),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<u64, String> {
        self.take(name)?.as_u64().ok_or_else(|| format!("`{name}` is no whole number"))
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<bool, String> {
        self.take(name)?.as_bool().ok_or_else(|| format!("`{name}` is neither true nor false"))
    }

    /// Refuses fields that were not taken.
    pub(super) fn end(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err("a message has an unknown field".into()) }
    }
}
