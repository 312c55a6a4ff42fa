//! Reads references to secrets: `{secret: NAME}` as a value of `env`, `headers` or `query`.

use alloc::{string::String, vec::Vec};

use super::{fields::Fields, inspector::Outside, references::Reader, step_work::literal};
use crate::{
    diagnostic,
    document::Path,
    secret::{PREFIX, SECRET, SecretReference},
    template::Template,
    value::{Map, Value},
};

/// References to secrets by the keys of a parameter.
type Secrets = Vec<(String, SecretReference)>;

impl Reader<'_, '_> {
    /// Parses a reference to a secret. `None` if the value is something else; `Some(None)` after an error was reported.
    pub(super) fn secret(&mut self, value: &Value, path: &Path) -> Option<Option<SecretReference>> {
        let read = SecretReference::read(value)?;
        for key in [SECRET, PREFIX] {
            let text = value.get(key).filter(|text| self.has_reference(text));
            if text.is_some() {
                let message = "a reference to a secret is literal: no value of the execution selects or changes it";
                self.report.error(diagnostic::MISPLACED_REFERENCE, &path.key(key), message, "write the name itself");
                return Some(None);
            }
        }
        match read {
            Ok(reference) => {
                self.check_outside(Outside::Secret, &reference.name, &path.key(SECRET));
                Some(Some(reference))
            }
            Err(bad) => {
                let (message, help) = bad.explain();
                self.report.error(diagnostic::BAD_SECRET, path, message, help);
                Some(None)
            }
        }
    }

    /// Reads an object of values in which references to secrets are allowed. Returns the other values and the references.
    pub(super) fn field_with_secrets(&mut self, fields: &Fields<'_>, key: &str) -> (Option<Template>, Secrets) {
        let Some(map) = fields.get(key).and_then(Value::as_map) else { return (self.field(fields, key), Vec::new()) };
        let path = fields.path.key(key);
        let (mut secrets, mut others) = (Vec::new(), Map::new());
        for (name, value) in map {
            match self.secret(value, &path.key(name)) {
                None => drop(others.insert(name.clone(), value.clone())),
                Some(secret) => secrets.extend(secret.map(|secret| (name.clone(), secret))),
            }
        }
        (Some(self.template(&Value::Map(others), &path)), secrets)
    }
}

/// Returns the parameter with the references of a step; `None` if it has none.
pub(super) fn secrets_param<const N: usize>(places: [(&str, Secrets); N]) -> Option<Template> {
    let places: Map = places
        .into_iter()
        .filter(|(_, secrets)| !secrets.is_empty())
        .map(|(parameter, secrets)| {
            let keys = secrets.into_iter().map(|(key, secret)| (key, secret.to_value()));
            (parameter.into(), Value::Map(keys.collect()))
        })
        .collect();
    (!places.is_empty()).then(|| literal(places))
}
