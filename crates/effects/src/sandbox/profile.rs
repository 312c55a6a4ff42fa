//! The sandboxes of the settings file: `sandboxes`.
//!
//! ```yaml
//! sandboxes:
//!   docker:
//!     command: docker
//!     args: [run, -i, --rm, --name, "{sandbox}", -v, "{workspace}:{workspace}", tools, workflow, serve]
//!     cleanup: [docker, rm, -f, "{sandbox}"]
//!     organizations: [default, acme]
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use mainspring_kernel::value::{Map, Value};

use super::limits::{
    ARGUMENTS_MAX, IDLE_MS_DEFAULT, IDLE_MS_MAX, ORGANIZATIONS_MAX, PROFILES_MAX, START_MS_DEFAULT, START_MS_MAX,
};

/// Is replaced in arguments by the name of the sandbox, a DNS label that no other sandbox has.
const SANDBOX: &str = "{sandbox}";

/// Is replaced in arguments by the workspace of the execution.
const WORKSPACE: &str = "{workspace}";

/// The keys of a sandbox profile.
const KEYS: [&str; 8] =
    ["command", "args", "env", "cleanup", "workspace", "startTimeoutMs", "idleTimeoutMs", "organizations"];

/// A sandbox profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The key in `sandboxes`, 1 to 63 letters, digits, `-` and `_`.
    pub name: String,
    /// The program that starts a sandbox.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to the few that it inherits.
    pub env: BTreeMap<String, String>,
    /// A program with its arguments that removes remains of a sandbox; empty for none.
    pub cleanup: Vec<String>,
    /// The files of scripts.
    pub workspace: WorkspaceMode,
    /// The time until a sandbox says hello.
    pub start_timeout: Duration,
    /// The time for which a sandbox is kept without a script.
    pub idle_timeout: Duration,
    /// The organizations whose scripts it runs.
    pub organizations: BTreeSet<String>,
}

/// The files of the scripts in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// The command shows the folder of the node under the same path.
    Shared,
    /// A folder of the sandbox, which ends with it.
    Own,
}

/// The sandboxes of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles {
    all: Vec<Arc<Profile>>,
    by_organization: BTreeMap<String, Arc<Profile>>,
}

impl Profiles {
    /// Reads the setting `sandboxes`; null is none. The errors are all mistakes with their places.
    pub fn read(setting: &Value) -> Result<Self, Vec<String>> {
        let map = match setting {
            Value::Null => return Ok(Self::default()),
            Value::Map(map) if map.len() <= PROFILES_MAX => map,
            Value::Map(_) => return Err(vec![format!("sandboxes: at most {PROFILES_MAX} sandboxes")]),
            other => return Err(vec![format!("sandboxes: it must map names to sandboxes, and is {}", other.kind())]),
        };
        let (mut found, mut errors) = (Self::default(), Vec::new());
        for (name, value) in map {
            match profile(name, value) {
                Ok(profile) => found.add(profile, &mut errors),
                Err(wrong) => errors.extend(wrong.iter().map(|why| format!("sandboxes.{name}: {why}"))),
            }
        }
        if found.by_organization.len() > ORGANIZATIONS_MAX {
            errors.push(format!("sandboxes: at most {ORGANIZATIONS_MAX} organizations"));
        }
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    fn add(&mut self, profile: Profile, errors: &mut Vec<String>) {
        let profile = Arc::new(profile);
        for organization in &profile.organizations {
            if let Some(other) = self.by_organization.insert(organization.clone(), profile.clone()) {
                let (name, other) = (&profile.name, &other.name);
                errors.push(format!(
                    "sandboxes.{name}: `{organization}` has the sandbox profile `{other}` too: an organization has one sandbox profile"
                ));
            }
        }
        self.all.push(profile);
    }

    /// Returns the sandbox profile of an organization. Executions of the command line belong to none and have no sandbox profile.
    pub fn of(&self, organization: Option<&str>) -> Option<&Arc<Profile>> {
        self.by_organization.get(organization?)
    }

    /// All sandboxes, by name.
    pub fn all(&self) -> &[Arc<Profile>] {
        &self.all
    }
}

impl Profile {
    /// Returns a text of the settings for a sandbox. Other braces stay as they are.
    pub(super) fn filled(text: &str, sandbox: &str, workspace: &str) -> String {
        // The workspace last, so that no path is taken for a placeholder.
        text.replace(SANDBOX, sandbox).replace(WORKSPACE, workspace)
    }
}

fn profile(name: &str, value: &Value) -> Result<Profile, Vec<String>> {
    let Some(map) = value.as_map() else {
        return Err(vec!["write `{command: PROGRAM, args: [...], organizations: [ID]}`".into()]);
    };
    let unknown = map.keys().filter(|key| !KEYS.contains(&key.as_str()));
    let mut errors: Vec<String> =
        unknown.map(|key| format!("`{key}` is unknown; there are {}", KEYS.join(", "))).collect();
    if !is_name(name) {
        errors.push("its name must have 1 to 63 letters, digits, `-` and `_`".into());
    }
    let mut or = |wrong: String| errors.push(wrong);
    let command = match map.get("command").and_then(Value::as_text) {
        Some(command) if !command.is_empty() && !command.contains('\0') => command.to_owned(),
        _ => {
            or("command: name the program that starts a sandbox".into());
            String::new()
        }
    };
    let args = texts(map, "args").unwrap_or_else(|why| {
        or(why);
        Vec::new()
    });
    let cleanup = texts(map, "cleanup").unwrap_or_else(|why| {
        or(why);
        Vec::new()
    });
    let organizations = texts(map, "organizations").unwrap_or_else(|why| {
        or(why);
        Vec::new()
    });
    let env = variables(map).unwrap_or_else(|why| {
        or(why);
        BTreeMap::new()
    });
    let workspace = match map.get("workspace") {
        None => WorkspaceMode::Shared,
        Some(mode) => match mode.as_text() {
            Some("shared") => WorkspaceMode::Shared,
            Some("own") => WorkspaceMode::Own,
            _ => {
                or("workspace: write `shared` or `own`".into());
                WorkspaceMode::Shared
            }
        },
    };
    let mut time = |key: &str, usual: u64, most: u64| match map.get(key) {
        None => usual,
        Some(value) => value.as_u64().filter(|time| (1..=most).contains(time)).unwrap_or_else(|| {
            errors.push(format!("{key}: it must be a whole number from 1 to {most}"));
            usual
        }),
    };
    let start_timeout = Duration::from_millis(time("startTimeoutMs", START_MS_DEFAULT, START_MS_MAX));
    let idle_timeout = Duration::from_millis(time("idleTimeoutMs", IDLE_MS_DEFAULT, IDLE_MS_MAX));
    if !errors.is_empty() {
        return Err(errors);
    }
    let organizations = organizations.into_iter().collect();
    let name = name.to_owned();
    Ok(Profile { name, command, args, env, cleanup, workspace, start_timeout, idle_timeout, organizations })
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&name.len()) && name.bytes().all(fits)
}

fn texts(map: &Map, key: &str) -> Result<Vec<String>, String> {
    let Some(value) = map.get(key) else { return Ok(Vec::new()) };
    let most = if key == "organizations" { ORGANIZATIONS_MAX } else { ARGUMENTS_MAX };
    let text = |value: &Value| value.as_text().filter(|text| !text.contains('\0')).map(str::to_owned);
    let texts = value.as_list().filter(|list| list.len() <= most).and_then(|list| list.iter().map(text).collect());
    texts.ok_or_else(|| format!("{key}: it must be a list of at most {most} texts"))
}

fn variables(map: &Map) -> Result<BTreeMap<String, String>, String> {
    let wrong = || format!("env: it must map at most {ARGUMENTS_MAX} names of variables to texts");
    let Some(value) = map.get("env") else { return Ok(BTreeMap::new()) };
    let env = value.as_map().filter(|env| env.len() <= ARGUMENTS_MAX).ok_or_else(wrong)?;
    let is_variable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let variable = |(name, value): (&String, &Value)| {
        let value = value.as_text().filter(|text| is_variable(name) && !text.contains('\0'))?;
        Some((name.clone(), value.to_owned()))
    };
    env.iter().map(variable).collect::<Option<_>>().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::json;

    fn read(text: &str) -> Result<Profiles, Vec<String>> {
        Profiles::read(&json::data(text.as_bytes()).unwrap())
    }

    #[test]
    fn an_organization_has_the_profile_that_names_it() {
        let found = read(r#"{"a": {"command": "x", "organizations": ["acme", "default"]}, "b": {"command": "y"}}"#);
        let found = found.unwrap();
        let of = |organization| found.of(organization).map(|profile| profile.command.as_str());
        assert_eq!(
            [of(Some("acme")), of(Some("default")), of(Some("globex")), of(None)],
            [Some("x"), Some("x"), None, None]
        );
        assert_eq!(found.all().len(), 2);
        assert_eq!(read("null").unwrap(), Profiles::default());
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        for (text, expected) in [
            (r#"[]"#, "sandboxes: it must map"),
            (r#"{"a": "docker"}"#, "sandboxes.a: write"),
            (r#"{"a b": {"command": "x"}}"#, "sandboxes.a b: its name"),
            (r#"{"a": {}}"#, "sandboxes.a: command:"),
            (r#"{"a": {"command": "x", "args": "y"}}"#, "args: it must be a list"),
            (r#"{"a": {"command": "x", "args": [1]}}"#, "args: it must be a list"),
            (r#"{"a": {"command": "x", "env": {"A=": "y"}}}"#, "env: it must map"),
            (r#"{"a": {"command": "x", "env": {"A": {"secret": "S"}}}}"#, "env: it must map"),
            (r#"{"a": {"command": "x", "workspace": "mine"}}"#, "workspace: write"),
            (r#"{"a": {"command": "x", "startTimeoutMs": 0}}"#, "startTimeoutMs: it must"),
            (r#"{"a": {"command": "x", "idleTimeoutMs": "1"}}"#, "idleTimeoutMs: it must"),
            (r#"{"a": {"command": "x", "image": "y"}}"#, "`image` is unknown"),
            (
                r#"{"a": {"command": "x", "organizations": ["o"]}, "b": {"command": "y", "organizations": ["o"]}}"#,
                "sandboxes.b: `o` has the sandbox profile `a` too",
            ),
        ] {
            let errors = read(text).unwrap_err();
            assert!(errors.len() == 1 && errors[0].contains(expected), "{text}: {errors:?}");
        }
    }

    #[test]
    fn placeholders_are_replaced_once() {
        assert_eq!(Profile::filled("{sandbox}:{workspace}:{x}", "s-1", "/w/{sandbox}"), "s-1:/w/{sandbox}:{x}");
    }
}
