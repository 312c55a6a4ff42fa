//! The triggers of a folder, and those of a server. The file name is the name of the trigger.
//!
//! ```yaml
//! workflow: release
//! config: {type: webhook, path: github/release, secret: {secret: GITHUB_WEBHOOK}, signature: {scheme: github}}
//! variableMapping: {tag: $.release.tag_name}
//! ```

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mainspring_effects::secrets::{Purpose, SecretSource, SecretUser};
use mainspring_kernel::value::{Map, Value};
use mainspring_server::services::trigger_config::{normalized, warnings};

use super::{
    change::{Action, Change, Field, Kind, fields},
    folder::{document, stem, unreadable},
};
use crate::{
    client::{Client, response::Response},
    commands::triggers::all,
    context::{Context, block_on},
    error::CliError,
    output::text::shown,
    secrets::NodeSecrets,
    server_settings::object_settings,
};

/// The keys of a file.
const KEYS: [&str; 4] = ["workflow", "enabled", "config", "variableMapping"];

/// The value in place of a secret while files are compared. It is valid for all schemes of signatures.
const PLACEHOLDER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The path of the field that stands for the values of secrets.
const SECRET_VALUES: &str = "config.secrets";

/// A trigger file.
pub(super) struct Local {
    path: PathBuf,
    /// The configuration as the file has it, with references to secrets.
    config: Value,
    /// All fields with their defaults, and without secrets.
    canonical: Value,
}

/// A trigger of the server whose executions run as the caller.
pub(super) struct Remote {
    id: String,
    updated_at: String,
    canonical: Value,
}

impl Local {
    fn field(&self, key: &str) -> Value {
        self.canonical.get(key).cloned().unwrap_or_default()
    }
}

/// Reads trigger files, by name.
pub(super) fn locals(files: &[PathBuf]) -> Result<BTreeMap<String, Local>, CliError> {
    let mut found = BTreeMap::new();
    for file in files {
        let name = stem(file)?;
        if found.insert(name.clone(), local(file)?).is_some() {
            return Err(unreadable(file, &format!("another trigger has the name `{name}` too")));
        }
    }
    Ok(found)
}

fn local(file: &Path) -> Result<Local, CliError> {
    let document = document(file)?;
    let Value::Map(map) = &document else { return Err(unreadable(file, "it is not a map")) };
    if let Some(other) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(unreadable(file, &format!("`{other}` is not known; a trigger has {}", KEYS.join(", "))));
    }
    let config = map.get("config").cloned().unwrap_or_default();
    let shown = with_secrets(&config, &mut |_| Ok(PLACEHOLDER.into())).map_err(|why| unreadable(file, &why))?;
    let shown = normalized(&shown).map_err(|why| unreadable(file, &why))?;
    let workflow = match map.get("workflow") {
        None | Some(Value::Null) => Value::Null,
        Some(Value::Text(slug)) => slug.as_str().into(),
        Some(other) => return Err(unreadable(file, &format!("workflow: this is {}, not a slug", other.kind()))),
    };
    let enabled = match map.get("enabled") {
        None => true,
        Some(Value::Bool(enabled)) => *enabled,
        Some(other) => return Err(unreadable(file, &format!("enabled: this is {}, not true or false", other.kind()))),
    };
    let mapping = map.get("variableMapping").cloned().unwrap_or_else(|| Value::Map(Map::new()));
    if mapping.as_map().is_none_or(|paths| paths.values().any(|path| path.as_text().is_none())) {
        return Err(unreadable(file, "variableMapping: this is not a map of variables with paths"));
    }
    Ok(Local { path: file.to_owned(), config, canonical: canonical(workflow, enabled, &shown, mapping) })
}

/// The fields that are compared.
fn canonical(workflow: Value, enabled: bool, config: &Value, mapping: Value) -> Value {
    let mut config = config.as_map().cloned().unwrap_or_default();
    // These depend on the release of the server, and on the number of secrets.
    config.remove("timezoneData");
    config.remove("hasSecret");
    Value::map([
        ("workflow", workflow),
        ("enabled", enabled.into()),
        ("config", Value::Map(config)),
        ("variableMapping", mapping),
    ])
}

/// Replaces the references to secrets in a configuration by values. A literal value is refused.
fn with_secrets(config: &Value, read: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Value, String> {
    let Value::Map(map) = config else { return Err("config: it is missing, or is not a map".into()) };
    let mut value = |place: &str, reference: &Value| {
        let name = reference.as_map().filter(|map| map.len() == 1).and_then(|map| map.get("secret")?.as_text());
        let refused = || format!("config.{place}: a folder has no values of secrets: write {{secret: NAME}}");
        read(name.ok_or_else(refused)?).map(Value::from)
    };
    let mut config = map.clone();
    if let Some(reference) = map.get("secret") {
        config.insert("secret".into(), value("secret", reference)?);
    }
    if let Some(list) = map.get("secrets") {
        let list = list.as_list().ok_or("config.secrets: this is not a list")?;
        let values = list.iter().map(|reference| value("secrets", reference)).collect::<Result<Vec<_>, _>>()?;
        config.insert("secrets".into(), values.into());
    }
    if let Some(headers) = map.get("headers") {
        let headers = headers.as_map().ok_or("config.headers: this is not a map")?;
        let values = headers.iter().map(|(name, reference)| Ok((name.clone(), value("headers", reference)?)));
        config.insert("headers".into(), Value::Map(values.collect::<Result<_, String>>()?));
    }
    Ok(Value::Map(config))
}

fn has_secrets(config: &Value) -> bool {
    ["secret", "secrets", "headers"].iter().any(|key| config.get(key).is_some())
}

/// The caller's triggers at the server, by name. `slug` gives the slug of one of the caller's workflows.
pub(super) fn remotes(
    client: &Client,
    user: &str,
    slug: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Vec<Remote>>, CliError> {
    let found = block_on(async { Ok(all(client, None).await?) })?;
    let mut remotes: BTreeMap<String, Vec<Remote>> = BTreeMap::new();
    for trigger in &found {
        let answer = Response::new(client, "a trigger", trigger);
        if answer.text("userId")? != user {
            continue;
        }
        let workflow = answer.maybe_text("workflowId")?.map(|id| slug(&id).unwrap_or(id));
        let (config, mapping) = (answer.any("config"), answer.any("variableMapping"));
        let canonical = canonical(workflow.as_deref().into(), answer.flag("enabled")?, &config, mapping);
        let remote = Remote { id: answer.text("id")?, updated_at: answer.text("updatedAt")?, canonical };
        remotes.entry(answer.text("name")?).or_default().push(remote);
    }
    Ok(remotes)
}

/// The differences. Triggers of workflows that are `gone` from the folder are deleted with them, and are left out. With
/// `resends_secrets` each trigger with secrets counts as changed, since a server does not show their values.
pub(super) fn changes(
    local: &BTreeMap<String, Local>,
    remote: &BTreeMap<String, Vec<Remote>>,
    gone: impl Fn(&str) -> bool,
    (with_deletions, resends_secrets): (bool, bool),
) -> Result<Vec<Change>, CliError> {
    let mut changes = Vec::new();
    for (name, local) in local {
        let before = match remote.get(name).map(Vec::as_slice) {
            None | Some([]) => {
                let created = fields(&Value::Map(Map::new()), &local.canonical);
                changes.push(Change::new(Kind::Trigger, name, Action::Create, created));
                continue;
            }
            Some([one]) => one,
            Some(several) => {
                let why =
                    format!("the server has {} triggers named `{name}`: rename or delete all but one", several.len());
                return Err(unreadable(&local.path, &why));
            }
        };
        if before.canonical.get("workflow") != local.canonical.get("workflow") {
            let why = "a trigger keeps its workflow, and the server has one of this name for another: rename the file";
            return Err(unreadable(&local.path, why));
        }
        let mut changed = fields(&before.canonical, &local.canonical);
        if resends_secrets && has_secrets(&local.config) {
            let (sent, path) = (Some("sent again".into()), SECRET_VALUES.into());
            changed.push(Field { path, before: Some("not shown".into()), after: sent });
        }
        if !changed.is_empty() {
            let id = Some(before.id.clone());
            changes.push(Change { id, ..Change::new(Kind::Trigger, name, Action::Update, changed) });
        }
    }
    for (name, own) in remote.iter().filter(|(name, _)| with_deletions && !local.contains_key(*name)) {
        let stays = |one: &&Remote| !one.canonical.get("workflow").and_then(Value::as_text).is_some_and(&gone);
        changes.extend(own.iter().filter(stays).map(|one| {
            let id = Some(one.id.clone());
            Change { id, ..Change::new(Kind::Trigger, name, Action::Delete, Vec::new()) }
        }));
    }
    Ok(changes)
}

/// The field `triggers` of a request that makes these changes, with the values of secrets from the settings of this
/// machine.
pub(super) fn sync_body(
    changes: &[Change],
    local: &BTreeMap<String, Local>,
    remote: &BTreeMap<String, Vec<Remote>>,
) -> Result<Vec<Value>, CliError> {
    let mut parts = Vec::new();
    for change in changes.iter().filter(|change| change.kind == Kind::Trigger) {
        let own = remote.get(&change.name).map(Vec::as_slice).unwrap_or_default();
        let remote = own.iter().find(|one| Some(&one.id) == change.id.as_ref());
        let mut part = Map::from([("name".to_string(), Value::from(change.name.as_str()))]);
        if let Some(remote) = remote {
            part.insert("id".into(), remote.id.as_str().into());
            part.insert("compared".into(), remote.updated_at.as_str().into());
        }
        match local.get(&change.name) {
            Some(local) => {
                part.insert("workflowId".into(), local.field("workflow"));
                part.insert("enabled".into(), local.field("enabled"));
                part.insert("variableMapping".into(), local.field("variableMapping"));
                part.insert("config".into(), config_to_send(local)?);
            }
            None => {
                part.insert("delete".into(), true.into());
            }
        }
        parts.push(Value::Map(part));
    }
    Ok(parts)
}

/// Prints the warnings about the triggers of a request, which has the values of secrets.
pub(super) fn note_warnings(parts: &[Value], context: &Context) {
    for part in parts {
        let name = part.get("name").and_then(Value::as_text).unwrap_or_default();
        for warning in part.get("config").map(warnings).unwrap_or_default() {
            context.terminal.note(&format!("warning: the trigger {}: {warning}", shown(name)));
        }
    }
}

/// The configuration with the values of secrets. A webhook without references has no secrets, also if it had some.
fn config_to_send(local: &Local) -> Result<Value, CliError> {
    let refused = |why: String| unreadable(&local.path, &why);
    let mut config = match has_secrets(&local.config) {
        false => local.config.clone(),
        true => {
            let settings = object_settings()?;
            let secrets = NodeSecrets::of(&settings)?;
            let purpose = Purpose::Settings(local.path.display().to_string());
            let by = SecretUser { organization: None, purpose };
            let read = &mut |name: &str| {
                let read = block_on(async { Ok(SecretSource::read(&*secrets, name, &by).await) });
                let value = read.map_err(|error| error.failure.message)?;
                let value = value.map_err(|error| format!("the secret `{name}` cannot be used: {error}"))?;
                Ok(value.expose().to_owned())
            };
            with_secrets(&local.config, read).map_err(refused)?
        }
    };
    if let Value::Map(map) = &mut config
        && map.get("type").and_then(Value::as_text) == Some("webhook")
    {
        if !map.contains_key("secret") {
            map.entry("secrets".into()).or_insert_with(|| Vec::<Value>::new().into());
        }
        map.entry("headers".into()).or_insert_with(|| Value::Map(Map::new()));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn secrets_of_a_file_are_references() {
        let check = |config: &str, expected: &str| {
            let config = json::value(config.as_bytes()).unwrap();
            let read = with_secrets(&config, &mut |name| Ok(format!("value of {name}")));
            let shown = read.map_or_else(|why| why, |value| json::compact(&value));
            assert!(shown.contains(expected), "{config:?}: {shown}");
        };
        check(r#"{"secret": {"secret": "A"}}"#, r#""secret":"value of A""#);
        check(r#"{"secrets": [{"secret": "A"}, {"secret": "B"}]}"#, r#"["value of A","value of B"]"#);
        check(r#"{"headers": {"X-Key": {"secret": "A"}}}"#, r#"{"X-Key":"value of A"}"#);
        check(r#"{"secret": "the value"}"#, "config.secret: a folder has no values");
        check(r#"{"secrets": ["the value"]}"#, "config.secrets: a folder has no values");
        check(r#"{"headers": {"X-Key": "the value"}}"#, "config.headers: a folder has no values");
        check(r#"{"secret": {"secret": "A", "prefix": "b"}}"#, "config.secret: a folder has no values");
        check("[]", "config: it is missing");
    }
}
