//! Generates the JSON Schemas of the notations. The compiler supplies the keys, `schemas/keys.yaml` their schemas.

use std::{cell::RefCell, collections::BTreeSet};

use mainspring_kernel::{
    definition::{Notation, keys},
    diagnostic::WARNINGS,
    failure::Class,
    limits,
    plan::{Backoff, EdgeKind, OnError, OnInterrupted, VARIABLE_TYPES},
    reference::RESERVED_NAMES,
    value::{Map, Value},
    yaml,
};

/// The content of `schemas/keys.yaml`, with the entries that were used.
pub(crate) struct Source {
    sections: Value,
    used: RefCell<BTreeSet<(String, String)>>,
}

impl Source {
    /// Parses `schemas/keys.yaml`.
    pub(crate) fn read(text: &str) -> Self {
        let sections = yaml::read(text.as_bytes()).unwrap_or_else(|error| panic!("keys.yaml: {error}")).value;
        Self { sections, used: RefCell::default() }
    }

    /// Returns the entry for a key from the first section that has one.
    fn find(&self, sections: &[&str], key: &str) -> Option<Value> {
        sections.iter().find_map(|section| {
            let said = self.sections.get(section)?.get(key)?;
            self.used.borrow_mut().insert((section.to_string(), key.to_string()));
            Some(resolved(said))
        })
    }

    fn fragment(&self, sections: &[&str], key: &str) -> Value {
        self.find(sections, key).unwrap_or_else(|| panic!("keys.yaml says nothing of `{key}` in {sections:?}"))
    }

    fn section(&self, section: &str) -> Vec<String> {
        let map = self.sections.get(section).and_then(Value::as_map);
        map.unwrap_or_else(|| panic!("keys.yaml has no section {section}")).keys().cloned().collect()
    }

    /// Returns the unused entries: keys that the compiler does not know.
    pub(crate) fn unused(&self) -> Vec<String> {
        let sections = self.sections.as_map().expect("sections");
        let said = sections
            .iter()
            .flat_map(|(section, keys)| keys.as_map().expect("keys").keys().map(|key| (section.clone(), key.clone())));
        said.filter(|key| !self.used.borrow().contains(key)).map(|(section, key)| format!("{section}.{key}")).collect()
    }
}

/// Generates the schema of one notation, or of several that are distinguished by their keys.
pub(crate) fn schema(name: &str, notations: &[Notation], source: &Source) -> Value {
    let mut defs = shared(source);
    for notation in notations {
        defs.extend(definitions_of(*notation, source));
    }
    let mut schema = match notations {
        [notation] => fields([("$ref", format!("#/$defs/{}", notation.name()).into())]),
        _ => by_shape(),
    };
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("$id".into(), format!("urn:mainspring:schema:{name}").into());
    schema.insert("title".into(), format!("Mainspring {name}").into());
    schema.insert("$defs".into(), Value::Map(defs));
    Value::Map(schema)
}

/// Selects the notation: `nodes` means graph, an `action` means dataflow, otherwise sequence.
fn by_shape() -> Map {
    let refer = |notation: Notation| reference(notation.name());
    let has_action = Value::map([("type", "object".into()), ("required", list(["action"]))]);
    let steps = Value::map([("steps", Value::map([("contains", has_action)]))]);
    let is_dataflow = Value::map([("properties", steps), ("required", list(["steps"]))]);
    let other = [("if", is_dataflow), ("then", refer(Notation::Dataflow)), ("else", refer(Notation::Sequence))];
    fields([
        ("if", Value::map([("required", list(["nodes"]))])),
        ("then", refer(Notation::Graph)),
        ("else", Value::map(other)),
    ])
}

/// Generates the parts that are independent of the notation.
fn shared(source: &Source) -> Map {
    let mut defs: Map =
        source.section("shared").iter().map(|key| (key.clone(), source.fragment(&["shared"], key))).collect();
    let objects: [(&str, &[&str], &[&str]); 10] = [
        ("constraints", &keys::CONSTRAINTS, &["constraints"]),
        ("budget", &keys::BUDGET, &["budget"]),
        ("policy", &keys::POLICY, &["policy"]),
        ("variable", &keys::VARIABLE, &["variable"]),
        ("edge", &keys::EDGE, &["edge"]),
        ("config", &keys::CONFIG, &["config"]),
        ("retry", &keys::RETRY, &["retry"]),
        ("retryableErrors", &keys::RETRYABLE_ERRORS, &["retryableErrors"]),
        ("forEach", &keys::FOR_EACH, &["forEach"]),
        ("shell", &keys::SHELL, &["bash"]),
    ];
    for (name, keys, sections) in objects {
        defs.insert(name.into(), object(name, properties(keys, sections, source), source));
    }
    let action = object("action", properties(&keys::ACTION, &["action"], source), source);
    defs.insert("action".into(), action);
    let forms = keys::CONDITION_FORMS.map(|form| {
        let mut form_schema = object(form, properties(&keys::condition(form), &["condition"], source), source);
        if let Value::Map(map) = &mut form_schema {
            map.insert("required".into(), list([form]));
        }
        Value::map([("if", Value::map([("required", list([form]))])), ("then", form_schema)])
    });
    let one_form = keys::CONDITION_FORMS.map(|form| Value::map([("required", list([form]))]));
    let object = [("type", "object".into()), ("oneOf", one_form.to_vec().into()), ("allOf", forms.to_vec().into())];
    let condition = Value::map([
        ("description", "A question as data: never text, never an expression.".into()),
        ("if", Value::map([("type", "boolean".into())])),
        ("else", Value::map(object)),
    ]);
    defs.insert("condition".into(), condition);
    defs
}

/// Generates the definition, its steps, and the step types of a notation.
fn definitions_of(notation: Notation, source: &Source) -> Map {
    let name = notation.name();
    let mut defs = Map::new();
    let mut of_root = properties(&keys::root(notation), &["root"], source);
    let (key, id_key) = match notation {
        Notation::Sequence => ("steps", None),
        Notation::Dataflow => ("steps", Some("name")),
        Notation::Graph => ("nodes", Some("id")),
    };
    let mut outer = fields([("$ref", format!("#/$defs/{name}-step").into())]);
    outer.extend(id_key.map(|id_key| ("required".to_string(), list([id_key]))));
    let mut steps = of_root.remove(key).and_then(|steps| steps.as_map().cloned()).expect("the list of steps");
    steps.extend(fields([("type", "array".into()), ("minItems", 1u64.into()), ("items", Value::Map(outer))]));
    if notation == Notation::Dataflow {
        let has_action = Value::map([("type", "object".into()), ("required", list(["action"]))]);
        steps.insert("contains".into(), has_action);
    }
    of_root.insert(key.into(), Value::Map(steps));
    let mut finally = of_root.remove("finally").and_then(|steps| steps.as_map().cloned()).expect("the list of steps");
    let inner = reference(&format!("{name}-step"));
    finally.extend(fields([("type", "array".into()), ("minItems", 1u64.into()), ("items", inner)]));
    of_root.insert("finally".into(), Value::Map(finally));
    let mut root = object(name, of_root, source);
    if let Value::Map(map) = &mut root {
        map.insert("required".into(), list([key]));
    }
    defs.insert(name.into(), root);
    defs.insert(format!("{name}-step"), step(notation));
    for step_type in keys::step_types() {
        defs.insert(format!("{name}-{step_type}"), step_of_type(notation, step_type, source));
    }
    if notation == Notation::Dataflow {
        for (_, step_type) in keys::actions() {
            defs.insert(format!("{name}-action-{step_type}"), step_with_action(step_type, source));
        }
    }
    defs
}

/// Generates a step of any type; in a dataflow also a step with an action.
fn step(notation: Notation) -> Value {
    let name = notation.name();
    let types: Vec<&str> = keys::step_types().collect();
    let of_type = types.iter().map(|step_type| {
        let is_type = Value::map([("properties", Value::map([("type", constant(step_type))]))]);
        Value::map([("if", is_type), ("then", reference(&format!("{name}-{step_type}")))])
    });
    let of_type = [
        ("required", list(["type"])),
        ("properties", Value::map([("type", Value::map([("enum", list(types.iter().copied()))]))])),
        ("allOf", of_type.collect::<Vec<_>>().into()),
    ];
    let Notation::Dataflow = notation else {
        let object = [("type", Value::from("object"))];
        return Value::map(object.into_iter().chain(of_type));
    };
    let of_action = keys::actions().map(|(key, step_type)| {
        let says = Value::map([("type", "object".into()), ("required", list([key]))]);
        let is_action = Value::map([("properties", Value::map([("action", says)]))]);
        Value::map([("if", is_action), ("then", reference(&format!("{name}-action-{step_type}")))])
    });
    let action = Value::map([("action", reference("action"))]);
    Value::map([
        ("type", "object".into()),
        ("if", Value::map([("required", list(["action"]))])),
        ("then", Value::map([("properties", action), ("allOf", of_action.to_vec().into())])),
        ("else", Value::map(of_type)),
    ])
}

fn step_of_type(notation: Notation, step_type: &str, source: &Source) -> Value {
    let keys = keys::step(notation, step_type, false);
    let mut properties = properties(&keys, &sections(notation, step_type), source);
    let mut says = properties.get("type").and_then(Value::as_map).cloned().unwrap_or_default();
    says.insert("const".into(), step_type.into());
    says.insert("description".into(), source.fragment(&["types"], step_type));
    properties.insert("type".into(), Value::Map(says));
    for key in keys::branches(step_type) {
        let mut steps = properties.remove(key).and_then(|steps| steps.as_map().cloned()).expect("a branch is a key");
        let inner = reference(&format!("{}-step", notation.name()));
        steps.extend(fields([("type", "array".into()), ("items", inner)]));
        if key == "steps" {
            steps.insert("minItems".into(), 1u64.into());
        }
        properties.insert(key.into(), Value::Map(steps));
    }
    object(step_type, properties, source)
}

fn step_with_action(step_type: &str, source: &Source) -> Value {
    let keys = keys::step(Notation::Dataflow, step_type, true);
    let properties = properties(&keys, &sections(Notation::Dataflow, step_type), source);
    object(&format!("action-{step_type}"), properties, source)
}

fn sections(notation: Notation, step_type: &str) -> Vec<&str> {
    let own = (notation == Notation::Dataflow).then_some("dataflow");
    own.into_iter().chain([step_type, "step"]).collect()
}

fn properties(keys: &[&str], sections: &[&str], source: &Source) -> Map {
    keys.iter().map(|key| (key.to_string(), source.fragment(sections, key))).collect()
}

/// Generates an object with these properties, no others, and the rules between them.
fn object(name: &str, properties: Map, source: &Source) -> Value {
    let mut object = fields([
        ("type", "object".into()),
        ("properties", Value::Map(properties)),
        ("additionalProperties", false.into()),
    ]);
    let rules = source.find(&["rules"], name);
    object.extend(rules.and_then(|rules| rules.as_map().cloned()).unwrap_or_default());
    Value::Map(object)
}

/// Replaces names of constants of the kernel by their values.
fn resolved(value: &Value) -> Value {
    match value {
        Value::Text(text) => text.strip_prefix('=').map_or_else(|| value.clone(), of_kernel),
        Value::List(items) => Value::List(items.iter().map(resolved).collect()),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), resolved(value))).collect()),
        other => other.clone(),
    }
}

fn of_kernel(name: &str) -> Value {
    let edge_kinds = EdgeKind::ALL.into_iter().filter(|kind| *kind != EdgeKind::Ended).map(EdgeKind::name);
    let in_any_case = |method: &str| -> String {
        method.chars().map(|letter| format!("[{letter}{}]", letter.to_ascii_lowercase())).collect()
    };
    match name {
        "EXECUTION_STEPS_MAX" => limits::EXECUTION_STEPS_MAX.into(),
        "EXECUTIONS_DEFAULT" => limits::EXECUTIONS_DEFAULT.into(),
        "EXECUTIONS_MAX" => limits::EXECUTIONS_MAX.into(),
        "OUTPUT_BYTES_MAX" => (limits::OUTPUT_BYTES_MAX as u64).into(),
        "EXECUTION_STEPS_DEFAULT" => limits::EXECUTION_STEPS_DEFAULT.into(),
        "PARALLEL_MAX" => limits::PARALLEL_MAX.into(),
        "PARALLEL_DEFAULT" => limits::PARALLEL_DEFAULT.into(),
        "WAIT_MAX_MS" => limits::WAIT_MAX_MS.into(),
        "ATTEMPTS_MAX" => limits::ATTEMPTS_MAX.into(),
        "ROUNDS_MAX" => limits::ROUNDS_MAX.into(),
        "ROUNDS_DEFAULT" => limits::ROUNDS_DEFAULT.into(),
        "APPROVAL_COUNT_MAX" => limits::APPROVAL_COUNT_MAX.into(),
        "APPROVAL_TTL_DEFAULT_MS" => limits::APPROVAL_TTL_DEFAULT_MS.into(),
        "NAME_CHARS_MAX" => (limits::NAME_CHARS_MAX as u64).into(),
        "AWAIT_DEFAULT_MS" => limits::AWAIT_DEFAULT_MS.into(),
        "AWAIT_MAX_MS" => limits::AWAIT_MAX_MS.into(),
        "AWAIT_MIN_MS" => limits::AWAIT_MIN_MS.into(),
        "RESPONSE_BYTES_MAX" => limits::RESPONSE_BYTES_MAX.into(),
        "SHELL_TIMEOUT_MAX_MS" => limits::SHELL_TIMEOUT_MAX_MS.into(),
        "SHELL_TIMEOUT_DEFAULT_MS" => limits::SHELL_TIMEOUT_DEFAULT_MS.into(),
        "TOOL_TIMEOUT_DEFAULT_MS" => limits::TOOL_TIMEOUT_DEFAULT_MS.into(),
        "HTTP_TIMEOUT_DEFAULT_MS" => limits::HTTP_TIMEOUT_DEFAULT_MS.into(),
        "AGENT_TIMEOUT_DEFAULT_MS" => limits::AGENT_TIMEOUT_DEFAULT_MS.into(),
        "AGENT_TURNS_DEFAULT" => limits::AGENT_TURNS_DEFAULT.into(),
        "AGENT_TURNS_MAX" => limits::AGENT_TURNS_MAX.into(),
        "AGENT_TOOL_CALLS_DEFAULT" => limits::AGENT_TOOL_CALLS_DEFAULT.into(),
        "AGENT_TOOL_CALLS_MAX" => limits::AGENT_TOOL_CALLS_MAX.into(),
        "AGENT_TOOLS_MAX" => (limits::AGENT_TOOLS_MAX as u64).into(),
        "BUDGET_MAX" => limits::BUDGET_MAX.into(),
        "BUDGET_WARN_PERCENT_DEFAULT" => limits::BUDGET_WARN_PERCENT_DEFAULT.into(),
        "AGENT_TOKENS_MAX" => limits::AGENT_TOKENS_MAX.into(),
        "CODE_TIMEOUT_MAX_MS" => limits::CODE_TIMEOUT_MAX_MS.into(),
        "CODE_TIMEOUT_DEFAULT_MS" => limits::CODE_TIMEOUT_DEFAULT_MS.into(),
        "RESERVED_NAMES" => list(RESERVED_NAMES),
        "ORDERS" => list(keys::orders()),
        "FINALLY_TIMEOUT_MAX_MS" => limits::FINALLY_TIMEOUT_MAX_MS.into(),
        "FINALLY_TIMEOUT_DEFAULT_MS" => limits::FINALLY_TIMEOUT_DEFAULT_MS.into(),
        "WARNINGS" => list(WARNINGS),
        "VARIABLE_TYPES" => list(VARIABLE_TYPES.map(|(word, _)| word)),
        "EDGE_KINDS" => list(edge_kinds),
        "ON_ERROR" => list(OnError::ALL.map(OnError::name)),
        "ON_INTERRUPTED" => list(OnInterrupted::ALL.map(OnInterrupted::name)),
        "BACKOFFS" => list(Backoff::ALL.map(Backoff::name)),
        "CLASSES" => list(Class::ALL.map(Class::name)),
        "METHODS" => list(keys::METHODS),
        "METHODS_IN_SMALL" => keys::METHODS.map(|method| method.to_ascii_lowercase().into()).to_vec().into(),
        "METHODS_IN_ANY_CASE" => format!("^({})$", keys::METHODS.map(in_any_case).join("|")).into(),
        _ => panic!("keys.yaml: the kernel has no `{name}`"),
    }
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map {
    fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    words.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

fn constant(word: &str) -> Value {
    Value::map([("const", word.into())])
}

fn reference(name: &str) -> Value {
    Value::map([("$ref", format!("#/$defs/{name}").into())])
}
