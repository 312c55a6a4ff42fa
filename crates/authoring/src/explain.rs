//! Explanations: a topic with its keys and an example, a key with its positions, or an error code.

use std::sync::LazyLock;

use mainspring_kernel::{
    definition::{Notation, keys, meant},
    error_codes::{self, ErrorCode, Origin},
    json,
    value::Value,
};

use crate::{
    language::{Key, Language, NOTATIONS, OBJECTS},
    topics::{Topic, topic, topics},
};

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The name of the topic, the key or the code.
    pub name: String,
    /// The topic, if the query names one.
    pub topic: Option<Topic>,
    /// Keys by the object that has them.
    pub sections: Vec<(String, Vec<Key>)>,
    /// The entries of an error code, one for each origin.
    pub codes: Vec<&'static ErrorCode>,
}

/// The language, which is read from its schema once.
static LANGUAGE: LazyLock<Language> = LazyLock::new(Language::default);

/// Explains a topic, a step type, a key or an error code. For an unknown name, returns the most similar known one.
pub fn explain(query: &str) -> Result<Explanation, Option<String>> {
    let language: &Language = &LANGUAGE;
    let query = query.trim().trim_start_matches('@');
    if let Some(topic) = topic(query) {
        let name = topic.name.to_string();
        let sections = sections_of(topic.name, language);
        return Ok(Explanation { name, topic: Some(topic), sections, codes: error_codes::find(query) });
    }
    let codes = error_codes::find(query);
    if !codes.is_empty() {
        return Ok(Explanation { name: query.into(), topic: None, sections: Vec::new(), codes });
    }
    let sections = places_of(query, language);
    if sections.is_empty() {
        return Err(similar(query, language));
    }
    Ok(Explanation { name: query.into(), topic: None, sections, codes })
}

/// Returns the keys that a topic describes.
fn sections_of(name: &str, language: &Language) -> Vec<(String, Vec<Key>)> {
    let object = |name: &str| {
        let object = OBJECTS.into_iter().find(|object| object.name == name);
        object.map(|object| (format!("Keys of `{name}`"), language.object(object)))
    };
    let some = |names: &[&str]| names.iter().filter_map(|name| object(name)).collect();
    match name {
        "definition" => vec![
            ("Keys of a sequence or a dataflow".into(), language.root(Notation::Sequence)),
            ("Keys of a graph in addition".into(), own_of_graph(language)),
        ],
        "steps" => vec![("Keys of every step".into(), common(language))],
        "notations" => some(&["action"]),
        "conditions" => vec![("Keys of a condition".into(), language.condition())],
        "retry" => some(&["retry", "retryableErrors", "config"]),
        "edges" => some(&["edge"]),
        "variables" => some(&["variable"]),
        "budget" | "constraints" | "policy" => some(&[name]),
        step_type if keys::step_types().any(|known| known == step_type) => {
            let common = common(language);
            let mut own = language.step(Notation::Sequence, step_type);
            own.retain(|key| common.iter().all(|common| common.name != key.name));
            let mut sections = vec![(format!("Keys of `{step_type}`"), own)];
            sections.extend((step_type == "loop").then(|| object("forEach")).flatten());
            sections
        }
        _ => Vec::new(),
    }
}

fn own_of_graph(language: &Language) -> Vec<Key> {
    let shared = language.root(Notation::Sequence);
    let mut own = language.root(Notation::Graph);
    own.retain(|key| shared.iter().all(|shared| shared.name != key.name));
    own
}

/// Returns the keys of every step: those of a `return` without its input, since it takes no others.
fn common(language: &Language) -> Vec<Key> {
    let mut keys = language.step(Notation::Sequence, "return");
    keys.retain(|key| key.name != "input");
    keys
}

/// Returns the objects that have a key, with the key as it is there. Equal entries are listed once.
fn places_of(name: &str, language: &Language) -> Vec<(String, Vec<Key>)> {
    let mut found: Vec<(String, Vec<Key>)> = Vec::new();
    let mut add = |place: String, keys: Vec<Key>| {
        let Some(key) = keys.into_iter().find(|key| key.name.eq_ignore_ascii_case(name)) else { return };
        match found.iter_mut().find(|(_, known)| known[0] == key) {
            Some((places, _)) if places.split(", ").all(|known| known != place) => {
                places.push_str(&format!(", {place}"));
            }
            Some(_) => {}
            None => found.push((place, vec![key])),
        }
    };
    for notation in NOTATIONS {
        add("the definition".into(), language.root(notation));
    }
    for step_type in keys::step_types() {
        add(step_type.into(), language.step(Notation::Sequence, step_type));
    }
    for object in OBJECTS {
        add(object.name.into(), language.object(object));
    }
    add("condition".into(), language.condition());
    found.into_iter().map(|(places, keys)| (format!("In {places}"), keys)).collect()
}

/// Returns the known name that an unknown one may mean.
fn similar(query: &str, language: &Language) -> Option<String> {
    let topics = topics();
    let steps = keys::step_types().flat_map(|step_type| keys::step(Notation::Sequence, step_type, false));
    let objects = OBJECTS.iter().flat_map(|object| object.keys.iter().copied());
    let root = language.root(Notation::Graph).into_iter().map(|key| key.name);
    let known: Vec<&str> = topics
        .iter()
        .map(|topic| topic.name)
        .chain(steps)
        .chain(objects)
        .chain(root)
        .chain(error_codes::all().map(|known| known.code))
        .collect();
    meant(query, known.iter().copied()).map(str::to_string)
}

impl Explanation {
    /// Returns `{name, summary, text, keys, example, codes}`; parts that do not apply are null or empty.
    pub fn to_value(&self) -> Value {
        let sections = self.sections.iter().map(|(title, keys)| {
            let keys: Vec<Value> = keys.iter().map(key_value).collect();
            Value::map([("title", title.as_str().into()), ("keys", keys.into())])
        });
        let topic = self.topic.as_ref();
        Value::map([
            ("name", self.name.as_str().into()),
            ("summary", topic.map(|topic| topic.summary).into()),
            ("text", topic.map(Topic::text).into()),
            ("sections", sections.collect::<Vec<_>>().into()),
            ("example", topic.map(|topic| topic.example).into()),
            ("codes", self.codes.iter().map(|code| code_value(code)).collect::<Vec<_>>().into()),
        ])
    }

    /// Returns the explanation as plain text.
    pub fn render(&self) -> String {
        let mut parts = Vec::new();
        if let Some(topic) = &self.topic {
            parts.push(format!("{}: {}", topic.name, topic.summary));
            parts.extend(Some(topic.text()).filter(|text| !text.is_empty()));
        }
        for (title, keys) in &self.sections {
            let lines: Vec<String> = keys.iter().map(|key| format!("  {}", key.line())).collect();
            parts.push(format!("{title}:\n{}", lines.join("\n")));
        }
        if self.topic.is_some_and(|topic| keys::step_types().any(|known| known == topic.name)) {
            parts.push("All steps also take the keys of `mainspring explain steps`.".into());
        }
        parts.extend(self.topic.map(|topic| format!("Example:\n\n{}", indented(topic.example.trim_end()))));
        parts.extend(self.codes.iter().map(|code| code_text(code)));
        parts.join("\n\n")
    }
}

impl Key {
    /// Returns the key with its kind, its default and its description, on one line.
    pub fn line(&self) -> String {
        let required = if self.is_required { ", required" } else { "" };
        let default = self.default.as_ref().map(|default| format!(", default {default}")).unwrap_or_default();
        let description = if self.description.is_empty() { String::new() } else { format!(": {}", self.description) };
        format!("{} ({}{required}{default}){description}", self.name, self.kind)
    }
}

fn key_value(key: &Key) -> Value {
    Value::map([
        ("key", key.name.into()),
        ("kind", key.kind.as_str().into()),
        ("required", key.is_required.into()),
        ("default", key.default.as_deref().into()),
        ("description", key.description.as_str().into()),
        ("example", key.example.as_deref().into()),
    ])
}

fn code_value(code: &ErrorCode) -> Value {
    Value::map([
        ("code", code.code.into()),
        ("origin", origin(code.origin).into()),
        ("meaning", code.meaning.into()),
        ("help", code.help.into()),
        ("example", Some(code.example).filter(|example| !example.is_empty()).into()),
        ("fixed", Some(code.fixed).filter(|fixed| !fixed.is_empty()).into()),
    ])
}

fn code_text(code: &ErrorCode) -> String {
    let example = match (code.example, code.origin) {
        ("", _) => String::new(),
        (example, Origin::Diagnostic { .. }) => format!("\n\nThe mistake:\n\n{}", indented(example)),
        (example, _) => format!("\n\nFor example:\n\n{}", indented(example)),
    };
    let fixed = match code.fixed {
        "" => String::new(),
        fixed => format!("\n\nFixed:\n\n{}", indented(fixed)),
    };
    format!("{} ({})\n  {}\n  {}{example}{fixed}", code.code, origin(code.origin), code.meaning, code.help)
}

fn origin(origin: Origin) -> String {
    match origin {
        Origin::Execution { class } => format!("failure of a step or an execution, class {}", class.name()),
        Origin::Diagnostic { severity } => format!("{} of a definition", severity.name()),
        Origin::Api { status, exit_code } => format!("answer of the HTTP API, status {status}, exit code {exit_code}"),
        Origin::Command { exit_code } => format!("error of the command line, exit code {exit_code}"),
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!("  {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns all topics with their summaries, as `{name, summary}`.
pub fn list() -> Value {
    let entry = |topic: Topic| Value::map([("name", topic.name.into()), ("summary", topic.summary.into())]);
    topics().into_iter().map(entry).collect::<Vec<_>>().into()
}

/// Returns all topics with their summaries as text: step types, then the others.
pub fn render_list() -> String {
    let is_step_type = |topic: &Topic| keys::step_types().any(|known| known == topic.name);
    let (types, others): (Vec<Topic>, Vec<Topic>) = topics().into_iter().partition(is_step_type);
    let lines = |topics: &[Topic]| {
        let line = |topic: &Topic| format!("  {:14} {}", topic.name, topic.summary);
        topics.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    format!(
        "The language:\n{}\n\nStep types:\n{}\n\n`mainspring explain NAME` also takes a key, such as timeoutMs, and an \
         error code, such as bash_exit_code:3.\nStart with `mainspring explain definition`, or with a file: `mainspring init`.",
        lines(&others),
        lines(&types)
    )
}

/// Returns the whole language as text: an explanation of each topic and step type, with its keys and an example.
pub fn render_language() -> String {
    let explanations = topics().into_iter().filter_map(|topic| explain(topic.name).ok());
    let parts: Vec<String> = explanations.map(|explanation| format!("## {}", explanation.render())).collect();
    parts.join("\n\n")
}

/// Returns the explanation in one envelope.
pub fn envelope(explanation: &Explanation) -> String {
    json::compact(&Value::map([("ok", true.into()), ("explanation", explanation.to_value())]))
}
