//! The place of a value in Vault: a field of a secret of a KV version 2 engine.

use std::fmt;

use mainspring_kernel::value::Value;

/// The mount of the engine that Vault's development server has.
const MOUNT_DEFAULT: &str = "secret";

/// Most bytes of a path. Vault's own limit is of this size.
const PATH_BYTES_MAX: usize = 512;

const HELP: &str = "write {vault: {path: PATH, field: FIELD, mount: MOUNT, version: NUMBER}}";

/// A field of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    /// The mount of the engine.
    pub(super) mount: String,
    /// The path below the mount, without `data/`.
    pub(super) path: String,
    /// The field whose value it is.
    pub(super) field: String,
    /// The version; `None` for the newest one.
    pub(super) version: Option<u64>,
}

impl Location {
    /// Reads the value of `vault` of a secret. The error begins with the rest of the path.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let Some(map) = value.as_map() else { return Err(format!(": this is {}, not a map; {HELP}", value.kind())) };
        if let Some(unknown) = map.keys().find(|key| !["path", "field", "mount", "version"].contains(&key.as_str())) {
            return Err(format!(".{unknown}: this key is not known; {HELP}"));
        }
        let text = |key: &str| map.get(key).and_then(Value::as_text).filter(|text| !text.is_empty());
        let path_of = |key: &str, default: Option<&str>| {
            let given = if map.contains_key(key) { text(key) } else { default };
            let refused = || format!(".{key}: this is not a path such as `app/database`; {HELP}");
            given.and_then(path).ok_or_else(refused)
        };
        let version = match map.get("version") {
            None => None,
            Some(version) => match version.as_u64() {
                Some(version) if version > 0 => Some(version),
                _ => return Err(format!(".version: this is not the number of a version; {HELP}")),
            },
        };
        let field = text("field").filter(|field| field.len() <= PATH_BYTES_MAX);
        Ok(Self {
            mount: path_of("mount", Some(MOUNT_DEFAULT))?,
            path: path_of("path", None)?,
            field: field.ok_or_else(|| format!(".field: this is not the name of a field; {HELP}"))?.into(),
            version,
        })
    }

    /// The segments of the address that reads it, below `v1`.
    pub(super) fn segments(&self) -> impl Iterator<Item = &str> {
        self.mount.split('/').chain(["data"]).chain(self.path.split('/'))
    }
}

/// Checks a path. Segments such as `..` would lead to another place of Vault's API.
pub(super) fn path(text: &str) -> Option<String> {
    let text = text.trim_matches('/');
    let is_segment = |segment: &str| !["", ".", ".."].contains(&segment) && !segment.contains(char::is_control);
    (text.len() <= PATH_BYTES_MAX && text.split('/').all(is_segment)).then(|| text.into())
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` of {}/{}", self.field, self.mount, self.path)?;
        self.version.map_or(Ok(()), |version| write!(out, " in version {version}"))
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn a_location_has_a_path_and_a_field() {
        let check = |text: &str, expected: &str| {
            let read = Location::read(&json::value(text.as_bytes()).unwrap());
            let shown = match read {
                Ok(location) => format!("{location} {}", location.segments().collect::<Vec<_>>().join("/")),
                Err(why) => why,
            };
            assert!(shown.starts_with(expected), "{text}: {shown}");
        };
        check(r#"{"path": "app/db", "field": "p"}"#, "`p` of secret/app/db secret/data/app/db");
        let versioned = r#"{"path": "/a/", "field": "p", "mount": "team/kv", "version": 2}"#;
        check(versioned, "`p` of team/kv/a in version 2 team/kv/data/a");
        check(r#""app/db""#, ": this is text");
        check(r#"{"path": "app/db"}"#, ".field: this is not");
        check(r#"{"field": "p"}"#, ".path: this is not");
        for path in ["..", "a/../b", "a//b", "/", "a/./b", "a/\\u0000"] {
            check(&format!(r#"{{"path": "{path}", "field": "p"}}"#), ".path: this is not");
        }
        check(r#"{"path": "a", "field": "p", "mount": 1}"#, ".mount: this is not");
        check(r#"{"path": "a", "field": "p", "version": 0}"#, ".version: this is not");
        check(r#"{"path": "a", "field": "p", "key": "p"}"#, ".key: this key is not known");
    }
}
