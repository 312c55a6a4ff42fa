//! The tools that a model may call, as requests describe them.

use std::collections::BTreeMap;

use mainspring_effects::BoxFuture;
use mainspring_kernel::{
    effect::{Attempt, PinnedTool},
    failure::{Class, Failure},
    hash::Hash,
    plan::{PROPOSE_TOOL, WORKFLOW_TOOL},
    value::{Map, Value},
};

use crate::limits::TOOL_NAME_BYTES_MAX;

/// A tool in a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The full name, such as `issues.get`, `http` or `bash`.
    pub name: String,
    /// The purpose, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// The digest by which executions pin it; `None` for a tool that needs no server.
    pub digest: Option<Hash>,
}

/// Describes tools by their names.
pub trait ToolSource: Send + Sync {
    /// Returns the definitions of the named tools: `SERVER.TOOL`, or `SERVER.*` for all tools of a server.
    fn describe<'a>(
        &'a self,
        names: &'a [String],
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, Failure>>;
}

/// Compares the tools of a request with those that the execution has pinned. Returns the ones to pin; the error is the
/// first tool that was changed or removed. `listed` has the names in the step, also `SERVER.*`.
pub(crate) fn compare_pins(
    tools: &[ToolDefinition],
    listed: &[String],
    pins: &BTreeMap<String, Hash>,
) -> Result<Vec<PinnedTool>, PinError> {
    let mut new = Vec::new();
    for (tool, digest) in tools.iter().filter_map(|tool| Some((tool, tool.digest?))) {
        match pins.get(&tool.name) {
            Some(pinned) if *pinned != digest => return Err(PinError::Changed(tool.name.clone())),
            Some(_) => {}
            None => new.push(PinnedTool { name: tool.name.clone(), digest }),
        }
    }
    let is_listed = |name: &str| {
        let of_server = name.split_once('.').map(|(server, _)| format!("{server}.*"));
        listed.iter().any(|entry| entry == name || Some(entry) == of_server.as_ref())
    };
    let gone = pins.keys().find(|name| is_listed(name) && !tools.iter().any(|tool| tool.name == **name));
    match gone {
        Some(gone) => Err(PinError::Gone(gone.clone())),
        None => Ok(new),
    }
}

/// A tool that is not the pinned one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PinError {
    Changed(String),
    Gone(String),
}

impl PinError {
    pub(crate) fn to_failure(&self, step: &str) -> Failure {
        let (code, message) = match self {
            Self::Changed(tool) => (
                "tool_changed",
                format!(
                    "the tool `{tool}` is not the one that the execution has described to the model before: its server \
                     has changed its description or its schemas; review the tool (`mainspring tools`), and start a new \
                     execution"
                ),
            ),
            Self::Gone(tool) => (
                "tool_gone",
                format!(
                    "the tool `{tool}`, which the execution has described to the model before, is not there any more; \
                     `mainspring tools` lists the tools"
                ),
            ),
        };
        Failure::new(Class::Policy, code, format!("step `{step}`: {message}"))
    }
}

/// The tools that need no server.
pub(crate) fn built_in(name: &str) -> Option<ToolDefinition> {
    let text = || Value::map([("type", Value::from("string"))]);
    let (description, properties, required) = match name {
        "http" => (
            "Sends one HTTP request. The result has status, headers and body.",
            Value::map([
                ("method", Value::map([("type", "string".into()), ("description", "GET by default".into())])),
                ("url", text()),
                ("query", Value::map([("type", Value::from("object"))])),
                ("headers", Value::map([("type", Value::from("object"))])),
                ("body", Value::Map(Map::new())),
            ]),
            "url",
        ),
        "budget" => (
            "Shows what is left of the budget, such as tokens and tool calls. Take it into account.",
            Value::Map(Map::new()),
            "",
        ),
        "ask" => (
            "Asks a person a question, and waits for the answer. The result has answer. An error means that there is none.",
            Value::map([("question", text())]),
            "question",
        ),
        "bash" => (
            "Runs a script with bash in the workspace. The result has exitCode, stdout and stderr.",
            Value::map([("command", text())]),
            "command",
        ),
        PROPOSE_TOOL => (
            "Proposes a change of the workflow that you are part of. A person reviews it; nothing changes before. Without \
             arguments it returns the present definition and its workflowHash, which a change of it names as \
             baseWorkflowHash. Send the whole new definition, and read the diagnostics of a refusal.",
            Value::map([
                ("proposedWorkflow", Value::map([("type", vec![Value::from("object"), "string".into()].into())])),
                ("baseWorkflowHash", text()),
                ("summary", text()),
                ("rationale", text()),
            ]),
            "",
        ),
        _ => return None,
    };
    let input_schema = Value::map([
        ("type", "object".into()),
        ("properties", properties),
        ("required", if required.is_empty() { Vec::new() } else { vec![Value::from(required)] }.into()),
        ("additionalProperties", false.into()),
    ]);
    Some(ToolDefinition { name: name.into(), description: description.into(), input_schema, digest: None })
}

/// A tool that is a workflow. Its schema is pinned when the execution starts.
pub(crate) fn workflow(name: &str, params: &Value) -> Option<ToolDefinition> {
    let workflow = name.strip_prefix(WORKFLOW_TOOL)?;
    let pinned = params.get("inputSchemas").and_then(|schemas| schemas.get(workflow)).cloned();
    let input_schema = pinned.unwrap_or_else(|| Value::map([("type", Value::from("object"))]));
    let said = input_schema.get("description").and_then(Value::as_text).unwrap_or_default();
    let description = format!("Runs the workflow {workflow} and waits for its output. {said}").trim_end().to_owned();
    Some(ToolDefinition { name: name.into(), description, input_schema, digest: None })
}

/// The names of tools in requests. Providers accept letters, digits, `_` and `-` only, up to 64 of them.
#[derive(Debug, Default)]
pub(crate) struct WireNames {
    full: BTreeMap<String, String>,
}

impl WireNames {
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { full: names.into_iter().map(|name| (wire_name(name), name.to_owned())).collect() }
    }

    /// Returns the full name of a tool that a model has named; the given name if no tool has it.
    pub(crate) fn full<'a>(&'a self, wire: &'a str) -> &'a str {
        self.full.get(wire).map_or(wire, String::as_str)
    }
}

/// Returns the name of a tool in requests. A name that has to change ends with a part of its hash, so two names never
/// become one.
pub(crate) fn wire_name(name: &str) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.len() <= TOOL_NAME_BYTES_MAX && !name.is_empty() && name.chars().all(is_allowed) && !name.contains("__") {
        return name.into();
    }
    let plain = name.replacen('.', "__", 1);
    let is_plain = name.matches('.').count() == 1 && !name.contains("__") && plain.chars().all(is_allowed);
    if is_plain && plain.len() <= TOOL_NAME_BYTES_MAX {
        return plain;
    }
    let hash = Hash::of(name.as_bytes()).hex();
    let kept = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' });
    format!("{}__{}", kept.take(TOOL_NAME_BYTES_MAX - 12).collect::<String>(), &hash[..10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_compared_with_the_pinned_ones() {
        let tool = |name: &str, text: &str| ToolDefinition {
            name: name.into(),
            description: text.into(),
            input_schema: Value::Null,
            digest: Some(Hash::of(text.as_bytes())),
        };
        let built_in = built_in("bash").unwrap();
        let pins = BTreeMap::from([("s.a".to_owned(), Hash::of(b"one")), ("t.b".to_owned(), Hash::of(b"two"))]);
        let listed = ["s.*".to_owned(), "bash".to_owned()];
        let compare = |tools: &[ToolDefinition]| compare_pins(tools, &listed, &pins);
        let new = compare(&[tool("s.a", "one"), tool("s.c", "three"), built_in]).unwrap();
        assert_eq!(new, [PinnedTool { name: "s.c".into(), digest: Hash::of(b"three") }]);
        assert_eq!(compare(&[tool("s.a", "changed")]), Err(PinError::Changed("s.a".into())));
        // The tool of the server `t` belongs to another agent.
        assert_eq!(compare(&[tool("s.c", "three")]), Err(PinError::Gone("s.a".into())));
    }

    #[test]
    fn names_in_requests_are_accepted_by_all_providers_and_distinct() {
        let long = "x".repeat(200);
        let names = ["bash", "issues.get", "issues__get", "issues.get.all", "a b", "é", long.as_str()];
        let wires: Vec<String> = names.iter().map(|name| wire_name(name)).collect();
        for wire in &wires {
            assert!(
                wire.len() <= 64 && wire.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
                "{wire}"
            );
        }
        let distinct: std::collections::BTreeSet<_> = wires.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{wires:?}");
        assert_eq!(wires[1], "issues__get");
        let all = WireNames::of(names);
        assert!(names.iter().zip(&wires).all(|(name, wire)| all.full(wire) == *name));
        assert_eq!(all.full("other"), "other");
    }
}
