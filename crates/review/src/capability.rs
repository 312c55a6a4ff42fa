//! The capabilities of a step: what it calls, with which secrets, and its class of side effects.

use mainspring_kernel::{plan::RUNNER_EFFECT, value::Value};
use url::Url;

use crate::{
    finding::{AGENT_ADDED, FindingCode, HOST_ADDED, MODEL_ADDED, SECRET_ADDED, TOOL_ADDED, WORKFLOW_ADDED},
    outline::Node,
};

/// Classes of side effects, by increasing reach.
pub(crate) const CLASSES: [&str; 6] = ["none", "read", "model", "message", "write", "execute"];

/// Something that a step can reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Capability {
    /// Selects the code of a finding.
    pub kind: Kind,
    /// The name, as reports show it.
    pub name: String,
}

/// Kinds of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A tool of a tool server.
    Tool,
    /// The origin of a URL: scheme, host and port.
    Host,
    /// A secret, by name.
    Secret,
    /// A model, by name.
    Model,
    /// An agent, by name or type.
    Agent,
    /// Another workflow.
    Workflow,
}

impl Kind {
    /// The word in reasons, the code of a new capability, and the keys of the definition that name it.
    pub(crate) fn describe(self) -> (&'static str, &'static FindingCode, &'static [&'static str]) {
        match self {
            Self::Tool => ("tool", &TOOL_ADDED, &["tool", "tools", "action"]),
            Self::Host => ("host", &HOST_ADDED, &["url"]),
            Self::Secret => ("secret", &SECRET_ADDED, &["env", "headers", "arguments", "input"]),
            Self::Model => ("model", &MODEL_ADDED, &["model"]),
            Self::Agent => ("agent", &AGENT_ADDED, &["runner", "agent"]),
            Self::Workflow => ("workflow", &WORKFLOW_ADDED, &["workflow"]),
        }
    }
}

/// Returns the index of a step's class in [`CLASSES`].
pub(crate) fn class_of(node: &Node) -> usize {
    let name = match node.kind() {
        "bash" => "execute",
        "http" => match node.param("method").and_then(Value::as_text) {
            Some("GET" | "HEAD" | "OPTIONS") => "read",
            _ => "write",
        },
        // It runs the commands that its goal asks for.
        RUNNER_EFFECT => "execute",
        "agent" => match tools(node) {
            [] => "model",
            tools if tools.iter().any(|tool| tool.as_text() == Some("bash")) => "execute",
            _ => "write",
        },
        "agent_message" => "message",
        // A tool may do anything that its server allows, and so may an effect that this table does not know.
        _ if node.text("type") == "effect" => "write",
        _ => "none",
    };
    CLASSES.iter().position(|class| *class == name).unwrap_or_default()
}

/// Returns the capabilities of a step.
pub(crate) fn capabilities(node: &Node) -> Vec<Capability> {
    let mut found = Vec::new();
    let mut add = |kind, name: &str| found.push(Capability { kind, name: name.into() });
    let text = |name: &str| node.param(name).and_then(Value::as_text);
    match node.kind() {
        "tool" => add(Kind::Tool, text("tool").unwrap_or_default()),
        "http" => {
            add(Kind::Host, &origin(text("url").unwrap_or_default()));
            if node.param("followRedirects").and_then(Value::as_bool) == Some(true) {
                add(Kind::Host, "any host that a response redirects to");
            }
        }
        "subworkflow" => add(Kind::Workflow, node.text("workflow")),
        RUNNER_EFFECT => add(Kind::Agent, text("runner").unwrap_or_default()),
        kind @ ("agent" | "agent_message") => {
            add(Kind::Agent, text("agent").unwrap_or(kind));
            text("model").into_iter().for_each(|model| add(Kind::Model, model));
            tools(node).iter().filter_map(Value::as_text).for_each(|tool| add(Kind::Tool, tool));
        }
        _ => {}
    }
    node.fields.values().for_each(|field| secrets(field, &mut |name| add(Kind::Secret, name)));
    found
}

/// Returns the tools that an agent may call.
fn tools(node: &Node) -> &[Value] {
    node.param("tools").and_then(Value::as_list).unwrap_or_default()
}

/// Finds each `{secret: NAME}`.
fn secrets(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Map(map) => match map.get("secret").and_then(Value::as_text) {
            Some(name) if map.len() == 1 => found(name),
            _ => map.values().for_each(|field| secrets(field, found)),
        },
        Value::List(items) => items.iter().for_each(|item| secrets(item, found)),
        _ => {}
    }
}

/// Returns the origin of a URL in its stored form. A part of it that comes from a value is shown as the reference: such
/// a request can go anywhere.
fn origin(stored: &str) -> String {
    let (text, has_references) = match stored.strip_prefix('~') {
        Some(text) => (text, true),
        None => (stored.strip_prefix('=').unwrap_or(stored), false),
    };
    if stored.starts_with('@') {
        return format!("{stored}, a value");
    }
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if has_references && authority.contains("@{") {
        return format!("{scheme}://{authority}, with a value");
    }
    let plain = if has_references { authority.replace("@@", "@") } else { authority.into() };
    match Url::parse(&format!("{scheme}://{plain}/")) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => format!("{scheme}://{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_those_that_a_request_reaches() {
        for (stored, expected) in [
            ("https://api.example/v1", "https://api.example"),
            ("HTTPS://API.example:443/", "https://api.example"),
            ("https://good.example@evil.example/x", "https://evil.example"),
            ("~https://good.example@@evil.example/@{vars.x}", "https://evil.example"),
            ("https://good.example\\@evil.example", "https://good.example"),
            ("~https://@{vars.host}/x", "https://@{vars.host}, with a value"),
            ("~https://api.example/@{vars.x}", "https://api.example"),
            ("@vars.url", "@vars.url, a value"),
            ("https://аpi.example", "https://xn--pi-6kc.example"),
            ("http://api.example", "http://api.example"),
        ] {
            assert_eq!(origin(stored), expected, "{stored}");
        }
    }
}
