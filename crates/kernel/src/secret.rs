//! References to secrets in the parameters of effects: `{secret: NAME}` as a variable of a script, a header or a query
//! parameter.
//!
//! The compiler moves references out of the values of a step into the parameter [`SECRETS`], and an attempt takes them
//! from the plan alone. Data that looks like a reference thus stays data, and no template can copy the value of a secret:
//! only the executor reads it, just before the effect.

use alloc::{string::String, vec::Vec};

use crate::{
    limits::{SECRET_NAME_BYTES_MAX, SECRET_PREFIX_BYTES_MAX},
    template::Template,
    value::{Map, Value},
};

/// The parameter with the references of a step: an object from parameter names to objects from keys to references. The
/// intent of the step covers it, so the names of the secrets are part of the idempotency key.
pub const SECRETS: &str = "secrets";

/// The key of a reference.
pub const SECRET: &str = "secret";

/// The key of the text before the value.
pub const PREFIX: &str = "prefix";

/// The name of the token of the execution's own session. No secret that a person sets can have it.
pub const SESSION_TOKEN: &str = "session:token";

/// The parameters that may contain references, by the step type.
pub const PLACES: [(&str, &str); 3] = [("bash", "env"), ("http", "headers"), ("http", "query")];

/// A reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReference {
    /// The name of the secret.
    pub name: String,
    /// Literal text before the value, such as `Bearer `.
    pub prefix: String,
}

/// A reference with its place in the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSecret {
    /// The parameter: one of [`PLACES`].
    pub parameter: String,
    /// The key inside the parameter, such as the name of a header.
    pub key: String,
    /// The secret.
    pub reference: SecretReference,
}

/// The secrets that an attempt uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretUses {
    /// The workflow of the execution: its id in the catalogue of a server, or the name in its definition where there is no
    /// catalogue.
    pub workflow: Option<String>,
    /// The references, from the plan alone.
    pub references: Vec<PlacedSecret>,
}

/// The reason why a value is no reference to a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadSecret {
    /// It has another key than `secret` and `prefix`.
    UnknownKey,
    /// The name is no text, or not the name of a secret.
    BadName,
    /// The prefix is no text, is too long, or has control characters.
    BadPrefix,
}

impl BadSecret {
    /// Returns the reason and the remedy.
    pub fn explain(self) -> (&'static str, &'static str) {
        match self {
            Self::UnknownKey => (
                "a reference to a secret has only `secret` and `prefix`",
                "write {secret: NAME} or {secret: NAME, prefix: TEXT}",
            ),
            Self::BadName => ("this is not the name of a secret", "use 1 to 64 letters, digits, `-`, `_` and `.`"),
            Self::BadPrefix => (
                "a prefix is literal text of at most 256 bytes without control characters",
                "write {secret: NAME, prefix: \"Bearer \"}",
            ),
        }
    }
}

/// True for a name that a secret can have.
pub fn is_secret_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=SECRET_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with(['.', '-'])
}

impl SecretReference {
    /// Parses a reference. `None` if the value is something else, since it has no key `secret`.
    pub fn read(value: &Value) -> Option<Result<Self, BadSecret>> {
        let map = value.as_map().filter(|map| map.contains_key(SECRET))?;
        Some(Self::of_map(map))
    }

    fn of_map(map: &Map) -> Result<Self, BadSecret> {
        if map.keys().any(|key| key != SECRET && key != PREFIX) {
            return Err(BadSecret::UnknownKey);
        }
        let name =
            map.get(SECRET).and_then(Value::as_text).filter(|name| is_secret_name(name) || *name == SESSION_TOKEN);
        let prefix = match map.get(PREFIX) {
            None => "",
            Some(Value::Text(text)) if text.len() <= SECRET_PREFIX_BYTES_MAX && !text.chars().any(char::is_control) => {
                text
            }
            Some(_) => return Err(BadSecret::BadPrefix),
        };
        Ok(Self { name: name.ok_or(BadSecret::BadName)?.into(), prefix: prefix.into() })
    }

    /// Returns the form that [`read`](Self::read) parses.
    pub fn to_value(&self) -> Value {
        let prefix = (!self.prefix.is_empty()).then(|| (PREFIX, Value::from(self.prefix.as_str())));
        Value::map([(SECRET, Value::from(self.name.as_str()))].into_iter().chain(prefix))
    }
}

/// Returns the references in the parameters of a step, as the plan has them. A malformed one is left out, and the executor
/// then refuses the parameters.
pub fn references_of(params: &Template) -> Vec<PlacedSecret> {
    let placed = match params {
        Template::Literal(value) => value.get(SECRETS),
        Template::Map(fields) => fields.iter().find(|(key, _)| key == SECRETS).and_then(|(_, field)| match field {
            Template::Literal(value) => Some(value),
            _ => None,
        }),
        _ => None,
    };
    let parameters = placed.and_then(Value::as_map).into_iter().flatten();
    let placed = parameters.flat_map(|(parameter, keys)| {
        let keys = keys.as_map().into_iter().flatten();
        keys.filter_map(|(key, value)| {
            let reference = SecretReference::read(value)?.ok()?;
            Some(PlacedSecret { parameter: parameter.clone(), key: key.clone(), reference })
        })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn references_are_maps_with_a_name() {
        let read = |text: &str| SecretReference::read(&json::value(text.as_bytes()).unwrap());
        assert_eq!(read(r#"{"name": "A"}"#), None);
        assert_eq!(read(r#""{secret: A}""#), None);
        assert!(read(r#"{"secret": "session:token"}"#).is_some_and(|read| read.is_ok()));
        assert!(!is_secret_name(SESSION_TOKEN), "a person could set it");
        let reference = SecretReference { name: "A.b-1".into(), prefix: "Bearer ".into() };
        assert_eq!(read(r#"{"secret": "A.b-1", "prefix": "Bearer "}"#), Some(Ok(reference.clone())));
        assert_eq!(SecretReference::read(&reference.to_value()), Some(Ok(reference)));
        for (text, why) in [
            (r#"{"secret": "A", "name": "B"}"#, BadSecret::UnknownKey),
            (r#"{"secret": ""}"#, BadSecret::BadName),
            (r#"{"secret": "a b"}"#, BadSecret::BadName),
            (r#"{"secret": "-a"}"#, BadSecret::BadName),
            (r#"{"secret": "../a"}"#, BadSecret::BadName),
            (r#"{"secret": "session:key"}"#, BadSecret::BadName),
            (r#"{"secret": {"secret": "A"}}"#, BadSecret::BadName),
            (r#"{"secret": "A", "prefix": 1}"#, BadSecret::BadPrefix),
            (r#"{"secret": "A", "prefix": "a\nb"}"#, BadSecret::BadPrefix),
        ] {
            assert_eq!(read(text), Some(Err(why)), "{text}");
        }
    }
}
