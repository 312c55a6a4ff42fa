//! Permission requests (`session/request_permission`): the kind, the question to people, and the options.

use mainspring_kernel::{
    json,
    plan::{EffectClass, ToolKind, Verdict},
    value::{Map, Value},
};

use crate::{
    error::visible,
    handle::digest,
    limits::{ID_BYTES_MAX, OPTIONS_MAX, PERMISSION_BYTES_MAX, TITLE_BYTES_MAX},
    transcript::{DETAILS, Transcript},
};

/// A permission request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Permission {
    pub(crate) kind: ToolKind,
    /// The call in the words of the agent, as people see it. `None` if it is too large for anyone to read.
    shown: Option<Map>,
    /// The digest of these words before they are escaped.
    pub(crate) digest: String,
    /// The option that allows the call once.
    allow: Option<String>,
    /// The option that rejects it.
    reject: Option<String>,
}

impl Permission {
    /// Reads the parameters of a request. The error is a clause: the agent breaks the protocol.
    pub(crate) fn read(runner: &str, params: &Value, transcript: &Transcript) -> Result<Self, String> {
        let call = params.get("toolCall").filter(|call| call.as_map().is_some());
        let call = call.ok_or("it asked for a permission without a tool call")?;
        let id = call.get("toolCallId").and_then(Value::as_text).unwrap_or_default();
        let known = transcript.tool_call(id);
        let kinds = [call.get("kind").and_then(Value::as_text), known.and_then(|call| call.kind.as_deref())];
        let kind = match kinds {
            [Some(asked), Some(known)] if asked != known => ToolKind::Other,
            [Some(kind), _] | [None, Some(kind)] => ToolKind::parse(kind),
            [None, None] => ToolKind::Other,
        };
        let title = call.get("title").and_then(Value::as_text).or(known.map(|call| call.title.as_str()));
        let title = title.unwrap_or_default();
        let mut words = Map::from([("title".to_owned(), Value::from(title))]);
        for key in DETAILS {
            let value = call.get(key).or_else(|| known?.details.get(key));
            words.extend(value.filter(|value| **value != Value::Null).map(|value| (key.to_owned(), value.clone())));
        }
        let class = kind.class().unwrap_or(EffectClass::Destructive);
        words.insert("kind".into(), kind.name().into());
        words.insert("class".into(), class.name().into());
        let is_small =
            title.len() <= TITLE_BYTES_MAX && json::compact(&words.clone().into()).len() <= PERMISSION_BYTES_MAX;
        let digest = digest(runner, &words.clone().into());
        let shown = is_small.then(|| shown(words));
        let [allow, reject] = options(params)?;
        Ok(Self { kind, shown, digest, allow, reject })
    }

    /// Returns the question to people. `None` if they could not read it.
    pub(crate) fn question(&self, runner: &str) -> Option<Value> {
        let mut permission = self.shown.clone()?;
        permission.insert("digest".into(), self.digest.as_str().into());
        let message = format!(
            "The agent {runner} asks for the permission to use a tool of the kind {}. The words in `permission` are the agent's.",
            self.kind.name()
        );
        let form = Value::map([("type", "object".into()), ("properties", Value::Map(Map::new()))]);
        Some(Value::map([
            ("runner", runner.into()),
            ("message", message.into()),
            ("form", form),
            ("permission", permission.into()),
        ]))
    }

    /// Returns the outcome for the agent. An option that would allow more than this call is never chosen; without one for
    /// this call alone, the call is canceled.
    pub(crate) fn outcome(&self, is_allowed: bool) -> Value {
        match if is_allowed { &self.allow } else { &self.reject } {
            Some(option) => {
                let selected = [("outcome", "selected".into()), ("optionId", option.as_str().into())];
                Value::map([("outcome", Value::map(selected))])
            }
            None => canceled(),
        }
    }
}

/// The outcome of a request in a turn that was canceled.
pub(crate) fn canceled() -> Value {
    Value::map([("outcome", Value::map([("outcome", "cancelled".into())]))])
}

/// Returns the verdict for a kind in the parameters of an attempt. Without one, people are asked.
pub(crate) fn verdict(permissions: &Value, kind: ToolKind) -> Verdict {
    permissions.get(kind.name()).and_then(Value::as_text).and_then(Verdict::parse).unwrap_or(Verdict::Ask)
}

/// Returns the options that allow and that reject once.
fn options(params: &Value) -> Result<[Option<String>; 2], String> {
    let options = params.get("options").and_then(Value::as_list).unwrap_or_default();
    if options.len() > OPTIONS_MAX {
        return Err(format!("it asked for a permission with more than {OPTIONS_MAX} options"));
    }
    let mut read: Vec<(&str, &str)> = Vec::new();
    for option in options {
        let text = |key: &str| option.get(key).and_then(Value::as_text);
        let (Some(id), Some(kind)) = (text("optionId"), text("kind")) else {
            return Err("it asked for a permission with an option without id or kind".into());
        };
        if id.len() > ID_BYTES_MAX || read.iter().any(|(other, _)| *other == id) {
            return Err("it asked for a permission with options of the same id, or a long one".into());
        }
        read.push((id, kind));
    }
    let of = |wanted: &str| read.iter().find(|(_, kind)| *kind == wanted).map(|(id, _)| (*id).to_owned());
    Ok([of("allow_once"), of("reject_once").or_else(|| of("reject_always"))])
}

/// Escapes all texts.
fn shown(words: Map) -> Map {
    words.into_iter().map(|(key, value)| (visible(&key), shown_value(value))).collect()
}

fn shown_value(value: Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(visible(&text)),
        Value::List(items) => Value::List(items.into_iter().map(shown_value).collect()),
        Value::Map(map) => Value::Map(shown(map)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = r#"[{"optionId": "all", "name": "No", "kind": "allow_always"},
        {"optionId": "a", "name": "No", "kind": "allow_once"}, {"optionId": "r", "name": "Yes", "kind": "reject_once"}]"#;

    fn read(call: &str, options: &str, updates: &[&str]) -> Result<Permission, String> {
        let params = format!(r#"{{"sessionId": "s", "toolCall": {call}, "options": {options}}}"#);
        let mut transcript = Transcript::default();
        updates.iter().for_each(|update| transcript.update(&json::value(update.as_bytes()).unwrap()));
        Permission::read("r", &json::value(params.as_bytes()).unwrap(), &transcript)
    }

    #[test]
    fn the_strictest_named_kind_counts() {
        let update = r#"{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "rm", "kind": "execute"}"#;
        for (call, expected) in [
            (r#"{"toolCallId": "1"}"#, ToolKind::Execute),
            (r#"{"toolCallId": "1", "kind": "execute"}"#, ToolKind::Execute),
            (r#"{"toolCallId": "1", "kind": "read"}"#, ToolKind::Other),
            (r#"{"toolCallId": "2", "kind": "read"}"#, ToolKind::Read),
            (r#"{"toolCallId": "2", "kind": "sudo"}"#, ToolKind::Other),
            (r#"{"toolCallId": "2"}"#, ToolKind::Other),
        ] {
            assert_eq!(read(call, OPTIONS, &[update]).unwrap().kind, expected, "{call}");
        }
    }

    #[test]
    fn options_are_chosen_by_kind_and_allow_one_call_only() {
        let permission = read(r#"{"toolCallId": "1"}"#, OPTIONS, &[]).unwrap();
        assert!(json::compact(&permission.outcome(true)).contains(r#""optionId":"a""#));
        assert!(json::compact(&permission.outcome(false)).contains(r#""optionId":"r""#));
        let always = r#"[{"optionId": "all", "kind": "allow_always"}]"#;
        let permission = read(r#"{"toolCallId": "1"}"#, always, &[]).unwrap();
        assert_eq!(permission.outcome(true), canceled());
        let twice = r#"[{"optionId": "x", "kind": "reject_once"}, {"optionId": "x", "kind": "allow_once"}]"#;
        assert!(read(r#"{"toolCallId": "1"}"#, twice, &[]).is_err());
        assert!(read("null", OPTIONS, &[]).is_err());
    }

    #[test]
    fn displayed_text_is_escaped_and_bounded() {
        let call = r#"{"toolCallId": "1", "kind": "execute", "title": "ls\u001b[2K\u202e", "rawInput": {"c\u0007": "\u200b"}}"#;
        let permission = read(call, OPTIONS, &[]).unwrap();
        let question = json::canonical(&permission.question("r").unwrap());
        assert!(!question.chars().any(mainspring_kernel::diagnostic::is_obeyed), "{question}");
        assert!(question.contains("\\\\u{1b}[2K\\\\u{202e}") && question.contains("\\\\u{200b}"), "{question}");
        let long = "x".repeat(PERMISSION_BYTES_MAX);
        let call = format!(r#"{{"toolCallId": "1", "kind": "execute", "rawInput": "{long}"}}"#);
        assert_eq!(read(&call, OPTIONS, &[]).unwrap().question("r"), None);
    }

    #[test]
    fn the_digest_covers_the_input_of_the_call() {
        let digest = |call: &str| read(call, OPTIONS, &[]).unwrap().digest;
        let first = digest(r#"{"toolCallId": "1", "title": "ls", "rawInput": {"c": "ls"}}"#);
        assert_eq!(first, digest(r#"{"toolCallId": "2", "title": "ls", "rawInput": {"c": "ls"}}"#));
        assert_ne!(first, digest(r#"{"toolCallId": "1", "title": "ls", "rawInput": {"c": "rm"}}"#));
    }
}
