//! The configured agents: `agents`, a map from names to commands.
//!
//! ```yaml
//! agents:
//!   claude: {command: npx, args: ["-y", "@zed-industries/claude-agent-acp"], env: {ANTHROPIC_API_KEY: {secret: CLAUDE}}}
//! ```

use std::{collections::BTreeMap, fmt};

use mainspring_kernel::{
    secret::SecretReference,
    value::{Map, Value},
};

use crate::limits::AGENTS_MAX;

/// One configured agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The name by which steps refer to it. Rules name its permission requests `NAME.KIND`.
    pub name: String,
    /// The program, as a path or a name in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, in addition to a few variables such as `PATH` and `HOME`.
    pub env: BTreeMap<String, ConfigText>,
}

/// A text of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigText {
    /// The text itself.
    Plain(String),
    /// A reference to a secret, which is read when the agent starts.
    Secret(SecretReference),
}

/// The reason why a configuration is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The place in the configuration, such as `agents.claude.args[2]`.
    pub path: String,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}; {}", self.path, self.message, self.help)
    }
}

impl std::error::Error for ConfigError {}

const KEYS: [&str; 3] = ["args", "command", "env"];

/// Reads the value of `agents`. All errors are returned, in the order of the configuration.
pub fn agents(value: &Value) -> Result<Vec<AgentConfig>, Vec<ConfigError>> {
    let Some(map) = value.as_map() else {
        let help = "write a map from names to commands, such as `claude: {command: npx, args: [...]}`";
        return Err(vec![error("agents", format!("this is {}, not a map", value.kind()), help)]);
    };
    if map.len() > AGENTS_MAX {
        let message = format!("{} agents are more than {AGENTS_MAX}", map.len());
        return Err(vec![error("agents", message, "remove agents that no workflow uses")]);
    }
    let (mut errors, mut agents) = (Vec::new(), Vec::new());
    for (name, value) in map {
        let mut reader = Reader { path: format!("agents.{name}"), errors: &mut errors };
        agents.extend(reader.agent(name, value));
    }
    if errors.is_empty() { Ok(agents) } else { Err(errors) }
}

impl AgentConfig {
    /// Returns the secrets that its environment names.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretReference> {
        self.env.values().filter_map(|text| match text {
            ConfigText::Secret(reference) => Some(reference),
            ConfigText::Plain(_) => None,
        })
    }
}

fn error(path: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> ConfigError {
    ConfigError { path: path.into(), message: message.into(), help: help.into() }
}

/// True for a name that can precede the dot in `NAME.KIND`.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

struct Reader<'a> {
    path: String,
    errors: &'a mut Vec<ConfigError>,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let path = if key.is_empty() { self.path.clone() } else { format!("{}.{key}", self.path) };
        self.errors.push(error(path, message, help));
    }

    fn agent(&mut self, name: &str, value: &Value) -> Option<AgentConfig> {
        let errors_before = self.errors.len();
        if !is_name(name) {
            self.refuse("", "this is not a name of an agent", "use 1 to 64 letters, digits, `-` and `_`");
        }
        let Some(map) = value.as_map() else {
            let help = "write `{command: PROGRAM, args: [...]}`";
            self.refuse("", format!("this is {}, not a map", value.kind()), help);
            return None;
        };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.refuse(key, "this key is not known", format!("the keys are {}", KEYS.join(", ")));
        }
        let command = self.command(map);
        let (args, env) = (self.args(map), self.env(map));
        let agent = AgentConfig { name: name.to_owned(), command: command?, args, env };
        (self.errors.len() == errors_before).then_some(agent)
    }

    fn command(&mut self, map: &Map) -> Option<String> {
        match map.get("command") {
            Some(Value::Text(text)) if !text.trim().is_empty() && !text.contains('\0') => Some(text.clone()),
            other => {
                let kind = other.map_or("missing", Value::kind);
                let help = "name the program that speaks the Agent Client Protocol, such as `npx`";
                self.refuse("command", format!("this is {kind}, not the name of a program"), help);
                None
            }
        }
    }

    fn args(&mut self, map: &Map) -> Vec<String> {
        let Some(value) = map.get("args") else { return Vec::new() };
        let Some(items) = value.as_list() else {
            self.refuse("args", format!("this is {}, not a list", value.kind()), "write a list of texts");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::Text(text) if !text.contains('\0') => texts.push(text.clone()),
                _ => {
                    let message = format!("this is {}, not a text without null characters", item.kind());
                    self.refuse(&format!("args[{index}]"), message, "write it in quotes");
                }
            }
        }
        texts
    }

    fn env(&mut self, map: &Map) -> BTreeMap<String, ConfigText> {
        let Some(value) = map.get("env") else { return BTreeMap::new() };
        let Some(entries) = value.as_map() else {
            self.refuse("env", format!("this is {}, not a map", value.kind()), "write `{NAME: value}`");
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for (name, value) in entries {
            let place = format!("env.{name}");
            if name.is_empty() || name.contains(['=', '\0']) {
                self.refuse(&place, "this is not a name of a variable", "use letters, digits and `_`");
            }
            match (value, SecretReference::read(value)) {
                (Value::Text(text), _) if !text.contains('\0') => {
                    texts.insert(name.clone(), ConfigText::Plain(text.clone()));
                }
                (_, Some(Ok(reference))) => {
                    texts.insert(name.clone(), ConfigText::Secret(reference));
                }
                (_, Some(Err(bad))) => {
                    let (message, help) = bad.explain();
                    self.refuse(&place, message, help);
                }
                _ => {
                    let message = format!("this is {}, not a text without null characters", value.kind());
                    self.refuse(&place, message, "write it in quotes, or `{secret: NAME}`");
                }
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<AgentConfig>, Vec<String>> {
        agents(&json::value(text.as_bytes()).unwrap())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn agents_are_commands_with_secrets_as_references() {
        let text = r#"{"claude": {"command": "npx", "args": ["-y", "p"], "env": {"A": "1", "KEY": {"secret": "S"}}}}"#;
        let secret = SecretReference { name: "S".into(), prefix: String::new() };
        let expected = AgentConfig {
            name: "claude".into(),
            command: "npx".into(),
            args: vec!["-y".into(), "p".into()],
            env: [("A".to_owned(), ConfigText::Plain("1".into())), ("KEY".to_owned(), ConfigText::Secret(secret))]
                .into(),
        };
        assert_eq!(read(text).unwrap(), [expected]);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let check = |text: &str, expected: &str| {
            let errors = read(text).unwrap_err();
            assert!(errors.iter().any(|error| error.contains(expected)), "{text}: {errors:?}");
        };
        check("[]", "agents: this is");
        check(r#"{"a.b": {"command": "x"}}"#, "agents.a.b: this is not a name");
        check(r#"{"a": {}}"#, "agents.a.command: this is missing");
        check(r#"{"a": {"command": " "}}"#, "agents.a.command: this is");
        check(r#"{"a": {"command": "x", "cwd": "y"}}"#, "agents.a.cwd: this key is not known");
        check(r#"{"a": {"command": "x", "args": ["y", 2]}}"#, "agents.a.args[1]: this is");
        check(r#"{"a": {"command": "x", "env": {"K": 1}}}"#, "agents.a.env.K: this is");
        check(r#"{"a": {"command": "x", "env": {"K=": "1"}}}"#, "agents.a.env.K=: this is not a name");
        check(r#"{"a": {"command": "x", "env": {"K": {"secret": 1}}}}"#, "agents.a.env.K: ");
    }
}
