//! The help of a diagnostic while it is made: a text, and the change that it names.

use alloc::{format, string::String};

use crate::{document::Path, fix::Fix, json, value::Value};

/// The help of a diagnostic.
#[derive(Debug, Default)]
pub(super) struct Help {
    /// The suggestion in words.
    pub text: String,
    /// The same suggestion as a change; empty if the author has to choose or to add something.
    pub fix: Fix,
}

impl Help {
    /// A text with the change that it names.
    pub(super) fn new(text: impl Into<String>, fix: Fix) -> Self {
        Self { text: text.into(), fix }
    }

    /// Names another key for the value at a path.
    pub(super) fn key(path: &Path, key: &str) -> Self {
        Self::new(format!("write {}", crate::diagnostic::quoted(key)), Fix::rename(path, key))
    }

    /// Names another value.
    pub(super) fn value(path: &Path, value: impl Into<Value>) -> Self {
        let value = value.into();
        Self::new(format!("write {}", json::compact(&value)), Fix::replace(path, value))
    }
}

impl From<&str> for Help {
    fn from(text: &str) -> Self {
        Self::new(text, Fix::default())
    }
}

impl From<String> for Help {
    fn from(text: String) -> Self {
        Self::new(text, Fix::default())
    }
}
