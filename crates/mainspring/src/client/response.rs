//! Reads the fields of a JSON response. A missing field or a wrong type is an error, and never replaced by a
//! default.

use mainspring_kernel::{time::parse_rfc3339, value::Value};

use super::{Client, ClientError};

/// An object of a response.
#[derive(Clone, Copy)]
pub(crate) struct Response<'a> {
    client: &'a Client,
    /// Names the object in error messages.
    name: &'static str,
    pub(crate) value: &'a Value,
}

impl<'a> Response<'a> {
    pub(crate) fn new(client: &'a Client, name: &'static str, value: &'a Value) -> Self {
        Self { client, name, value }
    }

    /// A required text.
    pub(crate) fn text(&self, key: &str) -> Result<String, ClientError> {
        self.maybe_text(key)?.ok_or_else(|| self.not(key, "a text"))
    }

    /// A text or null.
    pub(crate) fn maybe_text(&self, key: &str) -> Result<Option<String>, ClientError> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.not(key, "a text")),
        }
    }

    /// A required text that is one of these values.
    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T, ClientError> {
        let text = self.text(key)?;
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.not(key, &format!("one of {}", words.join(", ")))
        })
    }

    /// A required time in milliseconds since the epoch.
    pub(crate) fn time(&self, key: &str) -> Result<u64, ClientError> {
        self.maybe_time(key)?.ok_or_else(|| self.not(key, "a time"))
    }

    /// A time or null.
    pub(crate) fn maybe_time(&self, key: &str) -> Result<Option<u64>, ClientError> {
        let Some(text) = self.maybe_text(key)? else { return Ok(None) };
        parse_rfc3339(&text).map(Some).ok_or_else(|| self.not(key, "a time"))
    }

    /// A required whole number.
    pub(crate) fn number(&self, key: &str) -> Result<u64, ClientError> {
        self.value.get(key).and_then(Value::as_u64).ok_or_else(|| self.not(key, "a whole number"))
    }

    /// A required boolean.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, ClientError> {
        self.value.get(key).and_then(Value::as_bool).ok_or_else(|| self.not(key, "true or false"))
    }

    /// A field of any type; null if it is absent.
    pub(crate) fn any(&self, key: &str) -> Value {
        self.value.get(key).cloned().unwrap_or_default()
    }

    /// A required list.
    pub(crate) fn list(&self, key: &str) -> Result<&'a [Value], ClientError> {
        self.value.get(key).and_then(Value::as_list).ok_or_else(|| self.not(key, "a list"))
    }

    /// A required object.
    pub(crate) fn object(&self, key: &str, name: &'static str) -> Result<Response<'a>, ClientError> {
        let value = self.value.get(key).filter(|value| value.as_map().is_some());
        value.map(|value| Response { name, value, ..*self }).ok_or_else(|| self.not(key, "an object"))
    }

    /// A required list of objects.
    pub(crate) fn objects(&self, key: &str, name: &'static str) -> Result<Vec<Response<'a>>, ClientError> {
        Ok(self.list(key)?.iter().map(|value| Response { name, value, ..*self }).collect())
    }

    /// A required list of texts.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, ClientError> {
        let text =
            |value: &Value| value.as_text().map(ToString::to_string).ok_or_else(|| self.not(key, "a list of texts"));
        self.list(key)?.iter().map(text).collect()
    }

    /// The error for a field that is not as expected.
    pub(crate) fn not(&self, key: &str, wanted: &str) -> ClientError {
        self.client.invalid_response(&format!("`{key}` of {} is not {wanted}", self.name))
    }
}
