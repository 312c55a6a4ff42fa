//! The way to continue a session after a report of its attempt. Journals keep it, so its form is frozen.

use mainspring_kernel::{hash::Hash, value::Value};

/// A session that continues: `{kind: session, session, loads, asked}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Handle {
    /// The id of the session, which the agent has chosen.
    pub(crate) session: String,
    /// True if another process of the agent can load the session.
    pub(crate) loads: bool,
    /// The digest of the permission that people are asked for.
    pub(crate) asked: Option<String>,
}

impl Handle {
    pub(crate) fn to_value(&self) -> Value {
        let asked = self.asked.as_deref().map_or(Value::Null, Value::from);
        Value::map([
            ("kind", "session".into()),
            ("session", self.session.as_str().into()),
            ("loads", self.loads.into()),
            ("asked", asked),
        ])
    }

    /// Reads a handle; `None` for one of a newer release.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        (value.get("kind")?.as_text()? == "session").then_some(())?;
        Some(Self {
            session: value.get("session")?.as_text()?.to_owned(),
            loads: value.get("loads")?.as_bool()?,
            asked: value.get("asked").and_then(Value::as_text).map(Into::into),
        })
    }
}

/// Returns the digest of a permission, as a handle and a question have it.
pub(crate) fn digest(runner: &str, permission: &Value) -> String {
    Hash::of_parts(&[runner.as_bytes(), mainspring_kernel::json::canonical(permission).as_bytes()]).prefixed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read_back_and_their_form_is_frozen() {
        for (asked, expected) in [
            (None, r#"{"asked":null,"kind":"session","loads":true,"session":"s"}"#),
            (Some("d".to_owned()), r#"{"asked":"d","kind":"session","loads":true,"session":"s"}"#),
        ] {
            let handle = Handle { session: "s".into(), loads: true, asked };
            let value = handle.to_value();
            assert_eq!(mainspring_kernel::json::canonical(&value), expected);
            assert_eq!(Handle::read(&value), Some(handle));
        }
        assert_eq!(Handle::read(&Value::map([("kind", "later".into())])), None);
    }
}
