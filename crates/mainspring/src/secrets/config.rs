//! The value of `secrets` in a settings file.

use std::path::PathBuf;

use mainspring_kernel::{
    secret::is_secret_name,
    value::{Map, Value},
};

use super::vault::location::Location;

/// Most secrets of a settings file; they are searched one by one.
const SECRETS_MAX: usize = 1_000;

/// The keys of a secret that name its source.
const SOURCES: [&str; 4] = ["env", "file", "command", "vault"];

const HELP: &str =
    "write {env: VARIABLE}, {file: PATH}, {command: [PROGRAM, ARGUMENTS]} or {vault: {path: PATH, field: FIELD}}";

/// The help for a value that must come from this machine, such as the token for Vault.
const LOCAL_HELP: &str = "write {env: VARIABLE}, {file: PATH} or {command: [PROGRAM, ARGUMENTS]}";

/// A secret of the settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredSecret {
    /// The name, as in `{secret: NAME}`.
    pub(crate) name: String,
    /// The place of the value.
    pub(crate) source: Source,
    /// The workflows that may use it: names of definitions, at a server ids. `None` for all.
    pub(crate) workflows: Option<Vec<String>>,
    /// The organizations of a server that may use it in steps.
    pub(crate) organizations: Vec<String>,
}

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This machine.
    Local(LocalSource),
    /// A field of a secret in HashiCorp Vault.
    Vault(Location),
}

/// A place on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LocalSource {
    /// An environment variable of this process.
    Env(String),
    /// A file with the value as its only content.
    File(PathBuf),
    /// The output of a program, which is started without a shell.
    Command(Vec<String>),
}

impl Source {
    /// Returns a description of the place.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Local(local) => local.shown(),
            Self::Vault(location) => format!("Vault, {location}"),
        }
    }
}

impl LocalSource {
    /// Returns a description of the place.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Env(name) => format!("the variable {name}"),
            Self::File(path) => format!("the file {}", path.display()),
            Self::Command(command) => format!("the command {}", command[0]),
        }
    }

    /// The variable that holds the value, if it is one.
    pub(crate) fn variable(&self) -> Option<&str> {
        match self {
            Self::Env(name) => Some(name),
            _ => None,
        }
    }

    /// Reads `{env: …}`, `{file: …}` or `{command: …}`. The error begins with the rest of the path.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let Some(map) = value.as_map() else {
            return Err(format!(": this is {}, not the source of a value; {LOCAL_HELP}", value.kind()));
        };
        if let Some(unknown) = map.keys().find(|key| !["env", "file", "command"].contains(&key.as_str())) {
            return Err(format!(".{unknown}: this key is not known; {LOCAL_HELP}"));
        }
        match map.keys().next() {
            Some(key) if map.len() == 1 => Self::of(map, key, LOCAL_HELP),
            _ => Err(format!(": a value has one source; {LOCAL_HELP}")),
        }
    }

    fn of(map: &Map, key: &str, help: &str) -> Result<Self, String> {
        let text = || match map.get(key) {
            Some(Value::Text(text)) if !text.trim().is_empty() && !text.contains('\0') => Ok(text.clone()),
            _ => Err(format!(".{key}: this is not a text; {help}")),
        };
        Ok(match key {
            "env" => Self::Env(text()?),
            "file" => Self::File(text()?.into()),
            _ => match texts(map, key)? {
                Some(command) if !command[0].is_empty() => Self::Command(command),
                _ => return Err(format!(".{key}: this is not a list of texts; {help}")),
            },
        })
    }
}

/// Reads the value of `secrets`; null has none. All errors are returned, with their places.
pub(crate) fn read(value: &Value) -> Result<Vec<ConfiguredSecret>, Vec<String>> {
    let map = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Map(map) if map.len() <= SECRETS_MAX => map,
        Value::Map(map) => return Err(vec![format!("secrets: {} are more than {SECRETS_MAX}", map.len())]),
        other => return Err(vec![format!("secrets: this is {}, not a map; {HELP} under each name", other.kind())]),
    };
    let mut errors = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in map {
        match secret(name, value) {
            Ok(secret) => secrets.push(secret),
            Err(why) => errors.push(format!("secrets.{name}{why}")),
        }
    }
    if errors.is_empty() { Ok(secrets) } else { Err(errors) }
}

/// The error begins with the rest of the path.
fn secret(name: &str, value: &Value) -> Result<ConfiguredSecret, String> {
    if !is_secret_name(name) {
        return Err(": this is not the name of a secret; use 1 to 64 letters, digits, `-`, `_` and `.`".into());
    }
    let Some(map) = value.as_map() else {
        return Err(format!(": this is {}, not the source of a value; {HELP}", value.kind()));
    };
    let known = |key: &str| SOURCES.contains(&key) || ["workflows", "organizations"].contains(&key);
    if let Some(unknown) = map.keys().find(|key| !known(key)) {
        return Err(format!(".{unknown}: this key is not known; {HELP}"));
    }
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| map.contains_key(*key)).collect();
    let source = match given.as_slice() {
        ["vault"] => Source::Vault(Location::read(&map["vault"]).map_err(|why| format!(".vault{why}"))?),
        [key] => Source::Local(LocalSource::of(map, key, HELP)?),
        _ => return Err(format!(": a secret has one source; {HELP}")),
    };
    let workflows = texts(map, "workflows")?;
    let organizations = texts(map, "organizations")?.unwrap_or_default();
    Ok(ConfiguredSecret { name: name.into(), source, workflows, organizations })
}

/// Reads an optional list of texts that is not empty.
fn texts(map: &Map, key: &str) -> Result<Option<Vec<String>>, String> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let items = value.as_list().filter(|items| !items.is_empty() && items.len() <= SECRETS_MAX);
    let texts = items.and_then(|items| {
        let text = |item: &Value| item.as_text().filter(|text| !text.contains('\0')).map(String::from);
        items.iter().map(text).collect::<Option<Vec<_>>>()
    });
    texts.map(Some).ok_or_else(|| format!(".{key}: this is not a list of texts; write `{key}: [TEXT]`"))
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn sources_and_permissions_are_read() {
        let value = br#"{
            "A": {"env": "A_VAR", "workflows": ["w"]},
            "B": {"file": "/run/b", "organizations": ["acme"]},
            "C": {"command": ["pass", "show", "c"]},
            "D": {"vault": {"path": "app/d", "field": "key"}}
        }"#;
        let read = read(&json::value(value).unwrap()).unwrap();
        let sources: Vec<String> = read.iter().map(|secret| secret.source.shown()).collect();
        assert_eq!(
            sources,
            ["the variable A_VAR", "the file /run/b", "the command pass", "Vault, `key` of secret/app/d"]
        );
        assert_eq!(read[0].workflows, Some(vec!["w".into()]));
        assert_eq!(read[1].organizations, ["acme"]);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let check = |text: &str, expected: &str| {
            let errors = read(&json::value(text.as_bytes()).unwrap()).unwrap_err();
            assert!(errors[0].starts_with(expected), "{text}: {errors:?}");
        };
        check("[]", "secrets: this is");
        check(r#"{"a b": {"env": "A"}}"#, "secrets.a b: this is not the name");
        check(r#"{"A": "the value itself"}"#, "secrets.A: this is text, not the source");
        check(r#"{"A": {"value": "x"}}"#, "secrets.A.value: this key is not known");
        check(r#"{"A": {"env": "A", "file": "B"}}"#, "secrets.A: a secret has one source");
        check(r#"{"A": {"env": 1}}"#, "secrets.A.env: this is not a text");
        check(r#"{"A": {"command": "pass show"}}"#, "secrets.A.command: this is not a list");
        check(r#"{"A": {"command": [""]}}"#, "secrets.A.command");
        check(r#"{"A": {"vault": {"path": "a"}}}"#, "secrets.A.vault.field: this is not");
        check(r#"{"A": {"vault": {"path": "a", "field": "b"}, "env": "A"}}"#, "secrets.A: a secret has one source");
        check(r#"{"A": {"env": "A", "workflows": "w"}}"#, "secrets.A.workflows: this is not a list");
    }
}
