//! The keys of the language with their descriptions: the kernel lists the keys, and the JSON Schema has the rest.

use mainspring_kernel::{
    definition::{Notation, keys},
    json,
    value::Value,
};

use crate::schemas::SCHEMAS;

/// The language as data.
#[derive(Debug)]
pub struct Language {
    definitions: Value,
}

/// A key of a step, of the definition, or of another object.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The key as written.
    pub name: &'static str,
    /// One or two sentences; empty if the schema lacks the key.
    pub description: String,
    /// A description of the accepted values.
    pub kind: String,
    /// The accepted words, if the values are words of a list, `true` and `false` included.
    pub words: Vec<String>,
    /// The default value as compact JSON.
    pub default: Option<String>,
    /// An example value as compact JSON.
    pub example: Option<String>,
    /// True if the object must have the key.
    pub is_required: bool,
}

/// An object of the language that is not a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// The name in the JSON Schema, which is mostly the key under which the object stands.
    pub name: &'static str,
    /// The keys in the order of the compiler's table.
    pub keys: &'static [&'static str],
}

/// All objects that are not steps, except definitions and conditions.
pub const OBJECTS: [Object; 10] = [
    Object { name: "constraints", keys: &keys::CONSTRAINTS },
    Object { name: "policy", keys: &keys::POLICY },
    Object { name: "budget", keys: &keys::BUDGET },
    Object { name: "variable", keys: &keys::VARIABLE },
    Object { name: "edge", keys: &keys::EDGE },
    Object { name: "action", keys: &keys::ACTION },
    Object { name: "config", keys: &keys::CONFIG },
    Object { name: "retry", keys: &keys::RETRY },
    Object { name: "retryableErrors", keys: &keys::RETRYABLE_ERRORS },
    Object { name: "forEach", keys: &keys::FOR_EACH },
];

/// All notations.
pub const NOTATIONS: [Notation; 3] = [Notation::Sequence, Notation::Dataflow, Notation::Graph];

/// Schemas that several keys share, in words.
const SHARED: [(&str, &str); 16] = [
    ("filled", "text"),
    ("plainName", "text"),
    ("name", "a name"),
    ("id", "a name"),
    ("reference", "a reference"),
    ("object", "an object, or a reference to one"),
    ("source", "source of a function"),
    ("jsonSchema", "a JSON Schema"),
    ("condition", "a condition"),
    ("matchers", "list of classes and `code:CODE`"),
    ("bareMatchers", "list of classes and codes"),
    ("retryableErrors", "list of classes and codes, or {allow, deny}"),
    ("method", "an HTTP method"),
    ("variable", "a variable"),
    ("retry", "an object (`mainspring explain retry`)"),
    ("budget", "an object (`mainspring explain budget`)"),
];

impl Default for Language {
    fn default() -> Self {
        let schema = json::read(SCHEMAS[0].text.as_bytes()).map(|document| document.value).unwrap_or_default();
        Self { definitions: schema.get("$defs").cloned().unwrap_or_default() }
    }
}

impl Language {
    /// Returns the keys at the root of a definition.
    pub fn root(&self, notation: Notation) -> Vec<Key> {
        self.keys(&keys::root(notation), self.definitions.get(notation.name()))
    }

    /// Returns the keys of a step, its own first.
    pub fn step(&self, notation: Notation, step_type: &str) -> Vec<Key> {
        let schema = self.definitions.get(&format!("{}-{step_type}", notation.name()));
        self.keys(&keys::step(notation, step_type, false), schema)
    }

    /// Returns the keys of a dataflow step with an action that sets this step type.
    pub fn step_with_action(&self, step_type: &str) -> Vec<Key> {
        let schema = self.definitions.get(&format!("dataflow-action-{step_type}"));
        self.keys(&keys::step(Notation::Dataflow, step_type, true), schema)
    }

    /// Returns the keys of an object that is no step.
    pub fn object(&self, object: Object) -> Vec<Key> {
        self.keys(object.keys, self.definitions.get(object.name))
    }

    /// Returns the keys of all forms of a condition.
    pub fn condition(&self) -> Vec<Key> {
        let forms = self.definitions.get("condition").and_then(|condition| condition.get("else"));
        let forms = forms.and_then(|forms| forms.get("allOf")).and_then(Value::as_list).unwrap_or_default();
        let of_form = |(at, form): (usize, &&'static str)| {
            self.keys(&keys::condition(form), forms.get(at).and_then(|form| form.get("then")))
        };
        keys::CONDITION_FORMS.iter().enumerate().flat_map(of_form).collect()
    }

    /// Returns the description of a step type.
    pub fn step_type(&self, name: &str) -> String {
        let schema = self.definitions.get(&format!("sequence-{name}")).and_then(|schema| schema.get("properties"));
        text(schema.and_then(|properties| properties.get("type")), "description")
    }

    fn keys(&self, names: &[&'static str], schema: Option<&Value>) -> Vec<Key> {
        let properties = schema.and_then(|schema| schema.get("properties"));
        let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_list).unwrap_or_default();
        let key = |name: &&'static str| {
            let fragment = properties.and_then(|properties| properties.get(name));
            let compact = |key: &str| fragment.and_then(|fragment| fragment.get(key)).map(json::compact);
            let examples = fragment.and_then(|fragment| fragment.get("examples")).and_then(Value::as_list);
            Key {
                name,
                description: text(fragment, "description"),
                kind: fragment.map(|fragment| self.kind(fragment)).unwrap_or_default(),
                words: fragment.map(|fragment| self.words(fragment)).unwrap_or_default(),
                default: compact("default"),
                example: examples.and_then(<[Value]>::first).map(json::compact),
                is_required: required.iter().any(|required| required.as_text() == Some(name)),
            }
        };
        names.iter().map(key).collect()
    }

    fn shared<'s>(&'s self, fragment: &'s Value) -> Option<(&'s str, &'s Value)> {
        let name = fragment.get("$ref")?.as_text()?.strip_prefix("#/$defs/")?;
        Some((name, self.definitions.get(name)?))
    }

    fn kind(&self, fragment: &Value) -> String {
        if let Some((name, _)) = self.shared(fragment) {
            let words = SHARED.iter().find(|(shared, _)| *shared == name).map(|(_, words)| *words);
            return words.map_or_else(|| "an object".into(), str::to_string);
        }
        let words = self.words(fragment);
        if !words.is_empty() {
            return words.join(" or ");
        }
        if let Some(constant) = fragment.get("const") {
            return json::compact(constant);
        }
        if let Some(parts) = fragment.get("anyOf").and_then(Value::as_list) {
            let mut kinds: Vec<String> = parts.iter().map(|part| self.kind(part)).collect();
            kinds.dedup();
            return kinds.join(", or ");
        }
        match fragment.get("type") {
            Some(Value::Text(kind)) => self.simple_kind(kind, fragment),
            Some(Value::List(kinds)) => kinds.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(" or "),
            _ => "any value".into(),
        }
    }

    fn simple_kind(&self, kind: &str, fragment: &Value) -> String {
        let number = |key: &str| fragment.get(key).map(json::compact);
        let range = match (number("minimum"), number("maximum")) {
            (Some(minimum), Some(maximum)) => format!(", {minimum} to {maximum}"),
            (Some(minimum), None) => format!(", from {minimum}"),
            _ => String::new(),
        };
        match kind {
            "string" => "text".into(),
            "integer" => format!("whole number{range}"),
            "number" => format!("number{range}"),
            "object" => "an object".into(),
            "array" => match fragment.get("items") {
                Some(items) if is_step(items) => "list of steps".into(),
                Some(items) if items.get("anyOf").is_some() => format!("list whose items are {}", self.kind(items)),
                Some(items) => format!("list of {}", self.kind(items)),
                None => "a list".into(),
            },
            other => other.into(),
        }
    }

    fn words(&self, fragment: &Value) -> Vec<String> {
        if text(Some(fragment), "type") == "boolean" {
            return vec!["true".into(), "false".into()];
        }
        let words = fragment.get("enum").and_then(Value::as_list).unwrap_or_default();
        words.iter().map(|word| word.as_text().map_or_else(|| json::compact(word), str::to_string)).collect()
    }
}

fn is_step(items: &Value) -> bool {
    text(Some(items), "$ref").ends_with("-step")
}

fn text(fragment: Option<&Value>, key: &str) -> String {
    fragment.and_then(|fragment| fragment.get(key)).and_then(Value::as_text).unwrap_or_default().to_string()
}
