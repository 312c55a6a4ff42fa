//! The configured tool servers: `mcpServers`, a map from names to servers, in the shape that MCP clients use.
//!
//! ```yaml
//! mcpServers:
//!   files: {command: mcp-server-filesystem, args: ["."], env: {LOG: warn}}
//!   issues: {url: "https://mcp.example.com/mcp", headers: {Authorization: {secret: ISSUES, prefix: "Bearer "}}}
//! ```

use std::{collections::BTreeMap, fmt};

use mainspring_kernel::{
    secret::SecretReference,
    value::{Map, Value},
};

use crate::limits::SERVERS_MAX;

/// One configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name: letters, digits, `-` and `_`. The first part of the full name of a tool, `SERVER.TOOL`.
    pub name: String,
    /// The way to reach it.
    pub transport: TransportConfig,
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportConfig {
    /// A process that speaks on its standard input and output.
    Stdio(StdioConfig),
    /// A server over streamable HTTP.
    Http(HttpConfig),
}

/// A server that is started as a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioConfig {
    /// The program, as a path or a name in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, in addition to a few variables such as `PATH` and `HOME`.
    pub env: BTreeMap<String, ConfigText>,
    /// Its working directory, relative to the workspace of the execution; the workspace itself by default.
    pub cwd: Option<String>,
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address of its MCP endpoint, `http` or `https`.
    pub url: String,
    /// Headers of every request, by name in lower case.
    pub headers: BTreeMap<String, ConfigText>,
}

/// A text of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigText {
    /// The text itself.
    Plain(String),
    /// A reference to a secret, which is read when the server is connected to.
    Secret(SecretReference),
}

impl From<String> for ConfigText {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

/// The reason why a configuration is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The place in the configuration, such as `mcpServers.files.args[2]`.
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

const STDIO_KEYS: [&str; 5] = ["type", "command", "args", "env", "cwd"];
const HTTP_KEYS: [&str; 3] = ["type", "url", "headers"];

/// Headers that the protocol or the connection sets.
const RESERVED_HEADERS: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// Reads the value of `mcpServers`. All errors are returned, in the order of the configuration.
pub fn servers(value: &Value) -> Result<Vec<ServerConfig>, Vec<ConfigError>> {
    let Some(map) = value.as_map() else {
        let help = "write a map from names to servers, such as `files: {command: mcp-server-filesystem}`";
        return Err(vec![error("mcpServers", format!("this is {}, not a map", value.kind()), help)]);
    };
    if map.len() > SERVERS_MAX {
        let message = format!("{} servers are more than {SERVERS_MAX}", map.len());
        return Err(vec![error("mcpServers", message, "remove servers that no workflow uses")]);
    }
    let mut errors = Vec::new();
    let mut servers = Vec::new();
    for (name, value) in map {
        let mut reader = Reader { path: format!("mcpServers.{name}"), errors: &mut errors };
        if let Some(transport) = reader.server(name, value) {
            servers.push(ServerConfig { name: name.clone(), transport });
        }
    }
    if errors.is_empty() { Ok(servers) } else { Err(errors) }
}

fn error(path: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> ConfigError {
    ConfigError { path: path.into(), message: message.into(), help: help.into() }
}

/// True for a name that can precede the dot in `SERVER.TOOL`.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// True for a text that no header can hold. The value of a secret is checked when it is read.
fn has_control_characters(text: &ConfigText) -> bool {
    let is_control = |byte: u8| byte < 0x20 && byte != b'\t' || byte == 0x7f;
    matches!(text, ConfigText::Plain(text) if text.bytes().any(is_control))
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

    fn server(&mut self, name: &str, value: &Value) -> Option<TransportConfig> {
        let errors_before = self.errors.len();
        if !is_name(name) {
            self.refuse("", "this is not a name of a server", "use 1 to 64 letters, digits, `-` and `_`");
        }
        let Some(map) = value.as_map() else {
            let help = "write `{command: …, args: […]}` or `{url: …}`";
            self.refuse("", format!("this is {}, not a map", value.kind()), help);
            return None;
        };
        let transport = match (map.get("command"), map.get("url")) {
            (Some(_), None) => self.stdio(map).map(TransportConfig::Stdio),
            (None, Some(_)) => self.http(map).map(TransportConfig::Http),
            (Some(_), Some(_)) => {
                self.refuse("", "it has both `command` and `url`", "keep one: a server is a process or an address");
                None
            }
            (None, None) => {
                self.refuse(
                    "",
                    "it has neither `command` nor `url`",
                    "add `command` (a process) or `url` (an address)",
                );
                None
            }
        };
        transport.filter(|_| self.errors.len() == errors_before)
    }

    fn stdio(&mut self, map: &Map) -> Option<StdioConfig> {
        self.unknown(map, &STDIO_KEYS);
        self.check_type(map, &["stdio"]);
        let command = self.text(map, "command")?;
        let args = match map.get("args") {
            None => Vec::new(),
            Some(value) => self.texts("args", value),
        };
        let env = self.text_map(map, "env");
        for name in env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                self.refuse(&format!("env.{name}"), "this is not a name of a variable", "use letters, digits and `_`");
            }
        }
        let cwd = if map.contains_key("cwd") { self.text(map, "cwd") } else { None };
        Some(StdioConfig { command, args, env, cwd })
    }

    fn http(&mut self, map: &Map) -> Option<HttpConfig> {
        self.unknown(map, &HTTP_KEYS);
        self.check_type(map, &["http", "streamable-http"]);
        let url = self.text(map, "url")?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            self.refuse("url", "this is not an address of HTTP", "begin it with `https://` or `http://`");
        }
        let mut headers = BTreeMap::new();
        for (name, value) in self.text_map(map, "headers") {
            let lower = name.to_ascii_lowercase();
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                self.refuse(
                    &format!("headers.{name}"),
                    "this is not a name of a header",
                    "use letters, digits and `-`",
                );
            } else if RESERVED_HEADERS.contains(&lower.as_str()) {
                self.refuse(&format!("headers.{name}"), "the protocol sets this header", "remove it");
            } else if has_control_characters(&value) {
                self.refuse(&format!("headers.{name}"), "a header has no control characters", "remove them");
            } else if headers.insert(lower, value).is_some() {
                self.refuse(&format!("headers.{name}"), "this header is given twice", "keep one");
            }
        }
        Some(HttpConfig { url, headers })
    }

    fn unknown(&mut self, map: &Map, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.refuse(key, "this key is not known", format!("the keys are {}", known.join(", ")));
        }
    }

    /// `type` is optional in the configurations of MCP clients, and repeats what `command` and `url` say.
    fn check_type(&mut self, map: &Map, allowed: &[&str]) {
        match map.get("type") {
            None => {}
            Some(Value::Text(text)) if allowed.contains(&text.as_str()) => {}
            Some(Value::Text(text)) if text == "sse" => {
                let help = "use the server's streamable HTTP endpoint with `type: http`";
                self.refuse("type", "the transport `sse` of 2024 is not supported", help);
            }
            Some(_) => {
                self.refuse(
                    "type",
                    "this type does not fit the server",
                    format!("remove it, or write `{}`", allowed[0]),
                );
            }
        }
    }

    fn text(&mut self, map: &Map, key: &str) -> Option<String> {
        match map.get(key) {
            Some(Value::Text(text)) if !text.trim().is_empty() && !text.contains('\0') => Some(text.clone()),
            Some(Value::Text(_)) => {
                self.refuse(key, "this text is empty or has a null character", "give its value");
                None
            }
            other => {
                let kind = other.map_or("missing", Value::kind);
                self.refuse(key, format!("this is {kind}, not text"), "give its value as text");
                None
            }
        }
    }

    fn texts(&mut self, key: &str, value: &Value) -> Vec<String> {
        let Some(items) = value.as_list() else {
            self.refuse(key, format!("this is {}, not a list", value.kind()), "write a list of texts");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::Text(text) if !text.contains('\0') => texts.push(text.clone()),
                _ => {
                    let message = format!("this is {}, not a text without null characters", item.kind());
                    self.refuse(&format!("{key}[{index}]"), message, "write it in quotes");
                }
            }
        }
        texts
    }

    fn text_map(&mut self, map: &Map, key: &str) -> BTreeMap<String, ConfigText> {
        let Some(value) = map.get(key) else { return BTreeMap::new() };
        let Some(entries) = value.as_map() else {
            self.refuse(key, format!("this is {}, not a map", value.kind()), "write `{NAME: value}`");
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for (name, value) in entries {
            match (value, SecretReference::read(value)) {
                (Value::Text(text), _) if !text.contains('\0') => {
                    texts.insert(name.clone(), ConfigText::Plain(text.clone()));
                }
                (_, Some(Ok(reference))) => {
                    texts.insert(name.clone(), ConfigText::Secret(reference));
                }
                (_, Some(Err(bad))) => {
                    let (message, help) = bad.explain();
                    self.refuse(&format!("{key}.{name}"), message, help);
                }
                _ => {
                    let message = format!("this is {}, not a text without null characters", value.kind());
                    self.refuse(&format!("{key}.{name}"), message, "write it in quotes");
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

    fn read(text: &str) -> Result<Vec<ServerConfig>, Vec<String>> {
        servers(&json::value(text.as_bytes()).unwrap())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn servers_are_read_as_mcp_clients_write_them() {
        let text = r#"{
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"A": "1"}, "cwd": "docs"},
            "web": {"url": "https://example.com/mcp", "headers": {"X-Team": "a", "Authorization": {"secret": "S", "prefix": "Bearer "}}}
        }"#;
        let secret = SecretReference { name: "S".into(), prefix: "Bearer ".into() };
        let expected = vec![
            ServerConfig {
                name: "files".into(),
                transport: TransportConfig::Stdio(StdioConfig {
                    command: "npx".into(),
                    args: vec!["-y".into(), "server".into()],
                    env: [("A".to_owned(), "1".to_owned().into())].into(),
                    cwd: Some("docs".into()),
                }),
            },
            ServerConfig {
                name: "web".into(),
                transport: TransportConfig::Http(HttpConfig {
                    url: "https://example.com/mcp".into(),
                    headers: [
                        ("authorization".to_owned(), ConfigText::Secret(secret)),
                        ("x-team".to_owned(), "a".to_owned().into()),
                    ]
                    .into(),
                }),
            },
        ];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let check = |text: &str, expected: &str| {
            let errors = read(text).unwrap_err();
            assert!(errors.iter().any(|error| error.contains(expected)), "{text}: {errors:?}");
        };
        check("[]", "mcpServers: this is");
        check(r#"{"a.b": {"command": "x"}}"#, "mcpServers.a.b: this is not a name");
        check(r#"{"a": {}}"#, "mcpServers.a: it has neither");
        check(r#"{"a": {"command": "x", "url": "http://x"}}"#, "mcpServers.a: it has both");
        check(r#"{"a": {"command": 1}}"#, "mcpServers.a.command: this is");
        check(r#"{"a": {"command": "x", "args": ["y", 2]}}"#, "mcpServers.a.args[1]: this is");
        check(r#"{"a": {"command": "x", "timeout": 3}}"#, "mcpServers.a.timeout: this key is not known");
        check(r#"{"a": {"command": "x", "env": {"A=B": "c"}}}"#, "mcpServers.a.env.A=B: this is not a name");
        check(
            r#"{"a": {"command": "x", "env": {"A": {"secret": "a b"}}}}"#,
            "mcpServers.a.env.A: this is not the name of a",
        );
        check(r#"{"a": {"url": "ftp://x"}}"#, "mcpServers.a.url: this is not an address");
        check(r#"{"a": {"url": "http://x", "headers": {"Host": "y"}}}"#, "the protocol sets this header");
        check(r#"{"a": {"url": "http://x", "headers": {"A": "b\nc"}}}"#, "no control characters");
        check(r#"{"a": {"url": "http://x", "headers": {"A": "b", "a": "c"}}}"#, "given twice");
        check(r#"{"a": {"url": "http://x", "type": "sse"}}"#, "`sse` of 2024 is not supported");
    }
}
