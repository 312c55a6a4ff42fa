//! The fuzz targets: one function for each parser or decoder of the kernel. A target may reject its input; it must not
//! panic, hang, or contradict itself. The fuzzer in `fuzz/` and the test `fuzz.rs` call the same functions.

use std::sync::Arc;

use mainspring_kernel::{
    cbor,
    condition::Condition,
    decide::decide_with,
    definition::{Syntax, compile, read},
    diagnostic::{Diagnostic, PATH_NOT_IN_SCHEMA, Severity, is_obeyed},
    document::Document,
    frame::Frame,
    hash::unhex,
    input::Input,
    journal::Fold,
    json,
    key::ExecutionKey,
    plan::Plan,
    reference::{self, Found, Lookup, Reference, Root},
    stored_frame::{StoredFrame, StoredValue},
    template::Template,
    value::{Map, Value},
};

/// A fuzz target.
pub(crate) type Target = fn(&[u8]);

/// All targets by name.
pub(crate) const TARGETS: [(&str, Target); 5] = [
    ("definitions", definitions),
    ("references", references),
    ("conditions", conditions),
    ("schemas", schemas),
    ("frames", frames),
];

/// Reads, compiles and stores the text of a definition.
pub(crate) fn definitions(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let document = match read(bytes, Syntax::Guess) {
        Ok(document) => document,
        Err(found) => return check_findings(&[found], &source),
    };
    let placeless = compile(&Document::placeless(document.value.clone()));
    match compile(&document) {
        Err(found) => {
            check_findings(&found, &source);
            let codes = |found: &[Diagnostic]| {
                let mut codes: Vec<_> = found.iter().map(|one| (one.path.clone(), one.code)).collect();
                codes.sort();
                codes
            };
            let placeless = placeless.expect_err("the same without its text");
            assert_eq!(codes(&found), codes(&placeless), "mistakes do not depend on places");
        }
        Ok(compiled) => {
            let warnings = &compiled.warnings;
            assert!(warnings.iter().all(|warning| warning.severity == Severity::Warning), "{warnings:?}");
            assert_eq!(Plan::decode(&compiled.plan.encode()).as_ref(), Ok(&compiled.plan));
            check_normalised(&document.value, &compiled.normalised);
        }
    }
}

/// Checks that normalization only adds ids.
fn check_normalised(written: &Value, kept: &Value) {
    match (written, kept) {
        (Value::Map(written), Value::Map(kept)) => {
            for (key, kept) in kept {
                match written.get(key) {
                    Some(written) => check_normalised(written, kept),
                    None => assert!(key == "id" || key == "name", "`{key}` was not written"),
                }
            }
            assert!(written.keys().all(|key| kept.contains_key(key)), "a key was lost");
        }
        (Value::List(written), Value::List(kept)) => {
            assert_eq!(written.len(), kept.len());
            written.iter().zip(kept).for_each(|(written, kept)| check_normalised(written, kept));
        }
        (written, kept) => assert_eq!(written, kept),
    }
}

fn check_findings(found: &[Diagnostic], source: &str) {
    assert!(found.iter().any(|one| one.severity == Severity::Error), "refused without a reason");
    assert!(found.iter().map(|one| one.place).is_sorted(), "in the order of the document");
    // Rendering parses the source for each diagnostic, so only some are rendered.
    for one in found.iter().take(20) {
        assert!(!one.message.is_empty() && one.place.is_some(), "{one:?}");
        let shown = one.render(source);
        let is_plain = |letter: char| letter == '\n' || letter == '\t' || !is_obeyed(letter);
        assert!(shown.chars().all(is_plain), "a terminal would obey: {shown:?}");
    }
}

/// The data to which references resolve.
struct Known {
    value: Value,
}

impl Known {
    fn new() -> Self {
        Self { value: json::read(br#"{"a":{"b":[1,null,"x"],"0":true},"n":2.5,"t":"text"}"#).expect("JSON").value }
    }

    fn root_of(name: &str) -> Option<Root> {
        match name {
            "input" => Some(Root::Input),
            "vars" => Some(Root::Variables),
            "ctx" => Some(Root::Context),
            "item" => Some(Root::Item),
            "index" => Some(Root::Index),
            "a" => Some(Root::Step(0)),
            "skipped-step" => Some(Root::Step(1)),
            _ => None,
        }
    }
}

impl Lookup for Known {
    fn root(&self, root: Root) -> Found<'_> {
        match root {
            Root::Index => Found::Made(7u64.into()),
            Root::Context => Found::Made(reference::context("e", 1, 0, None)),
            Root::Step(1) => Found::Skipped,
            Root::Item => Found::Missing,
            Root::Input | Root::Variables | Root::Step(_) => Found::Kept(&self.value),
        }
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    fn output(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }
}

/// Measures, parses and resolves a text with references.
pub(crate) fn references(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (at, _) in text.char_indices() {
        let rest = &text[at..];
        let Some((name, all)) = reference::length(rest) else { continue };
        assert!(0 < name && name <= all && rest.is_char_boundary(all));
        assert!(reference::is_name(&rest[..name]));
        assert_eq!(reference::length(&rest[..all]), Some((name, all)), "what was measured is measured again");
        if let Some(read) = Reference::read(&rest[..all], &Known::root_of) {
            assert_eq!(read.begin(read.path.len()), &rest[..all]);
        }
    }
    let known = Known::new();
    let mut bad = Vec::new();
    let template = Template::read(&Value::text(text.as_ref()), &Known::root_of, &mut bad);
    for bad in &bad {
        bad.why.explain(&bad.reference);
    }
    let resolved = template.resolve(&known);
    if !text.contains('@') {
        assert_eq!(resolved, Ok(Value::text(text.as_ref())), "text without references stays");
    }
    let escaped = Value::text(text.replace('@', "@@"));
    let plain = Template::read(&escaped, &Known::root_of, &mut bad);
    assert_eq!(plain.resolve(&known), Ok(Value::text(text.as_ref())), "`@@` is an `@`");
}

/// Compiles and evaluates a condition in JSON or YAML.
pub(crate) fn conditions(bytes: &[u8]) {
    let Ok(document) = read(bytes, Syntax::Guess) else { return };
    let known = Known::new();
    let Some(condition) = compiled_condition(document.value.clone()) else { return };
    let answer = condition.holds(&known);
    assert_eq!(condition.holds(&known), answer, "the same question has the same answer");
    let not = |condition: Value| Value::map([("not", condition)]);
    // Two more levels may exceed the maximum nesting.
    let Some(twice) = compiled_condition(not(not(document.value))) else { return };
    assert_eq!(twice.holds(&known), answer);
}

fn compiled_condition(condition: Value) -> Option<Condition> {
    let step = |id: &str| Value::map([("id", id.into()), ("type", "tool".into()), ("tool", "T".into())]);
    let Value::Map(mut last) = step("last") else { return None };
    last.insert("when".into(), condition);
    let steps = vec![step("a"), step("skipped-step"), last.into()];
    let compiled = compile(&Document::placeless(Value::map([("steps", steps.into())]))).ok()?;
    assert_eq!(Plan::decode(&compiled.plan.encode()).as_ref(), Ok(&compiled.plan));
    compiled.plan.steps.last()?.when.clone()
}

/// Checks whether a path (first line) leaves a JSON Schema (other lines).
pub(crate) fn schemas(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (path, schema) = text.split_once('\n').unwrap_or(("", &text));
    let Ok(document) = read(schema.as_bytes(), Syntax::Guess) else { return };
    let about = |path: &str, schema: &Value| {
        let refers = |name: &str| Value::from(format!("@{name}{path}"));
        let arguments = Value::map([("input", refers("input")), ("output", refers("fetch"))]);
        let typed = |rest: Vec<(&str, Value)>| {
            Value::map([("type", "tool".into()), ("tool", "T".into())].into_iter().chain(rest))
        };
        let fetch = typed(vec![("id", "fetch".into()), ("outputSchema", schema.clone())]);
        let definition =
            [("inputSchema", schema.clone()), ("steps", vec![fetch, typed(vec![("arguments", arguments)])].into())];
        let found = compile(&Document::placeless(Value::map(definition)));
        let found = found.map_or_else(|found| found, |compiled| compiled.warnings);
        let strays = |end: &str| {
            let of_path = found.iter().filter(|one| one.code == PATH_NOT_IN_SCHEMA);
            of_path.filter(|one| one.path.to_string().ends_with(end)).map(|one| one.severity).collect::<Vec<_>>()
        };
        (strays("arguments.input"), strays("arguments.output"))
    };
    let (input, output) = about(path, &document.value);
    assert_eq!(input, output, "one schema has one meaning");
    assert_eq!(about(path, &Value::Bool(true)), (Vec::new(), Vec::new()), "what allows everything is never left");
    assert_eq!(about("", &document.value), (Vec::new(), Vec::new()), "a path of nothing goes nowhere");
}

/// A journal of the first release with its plan, the context for frames and inputs.
const JOURNAL: &str = include_str!("../journals/0.1.0-5ccb8f0a.json");

/// The key of the execution in that journal.
const KEY: ExecutionKey = ExecutionKey([7; 16]);

/// Decodes stored bytes. The first byte selects the type: a value, a plan, an input or a frame. For inputs and frames
/// it also selects the number of journal frames before them.
pub(crate) fn frames(bytes: &[u8]) {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    match selector % 4 {
        0 => {
            if let Ok(value) = cbor::decode(bytes) {
                assert_eq!(cbor::encode(&value), bytes, "a value has one form");
            }
        }
        1 => {
            if let Ok(plan) = Plan::decode(bytes) {
                assert_eq!(Plan::decode(&plan.encode()).as_ref(), Ok(&plan), "what is kept of a plan is the plan");
                check_graphs(&plan);
            }
        }
        2 => {
            if let Ok(input) = Input::decode(bytes) {
                assert_eq!(input.encode(), bytes, "an input has one form");
                decide_about(&input, usize::from(selector / 4));
            }
        }
        _ => {
            if let Some(stored) = unpacked(bytes, u64::from(selector / 4)) {
                check_frame(&stored);
            }
        }
    }
}

/// Checks that all numbers in a plan refer to existing steps and blocks.
fn check_graphs(plan: &Plan) {
    for (number, step) in plan.steps.iter().enumerate() {
        assert!(plan.block(step.block).steps.contains(&(number as u32)));
        for (_, inner) in step.work.branches() {
            assert_eq!(plan.block(inner).owner, Some(number as u32));
        }
        mainspring_kernel::definition::edges::dependencies(plan, number as u32);
    }
}

fn decide_about(input: &Input, after: usize) {
    let mut state = folded(after).state;
    let now = 1_767_225_600_000 + 100_000;
    if let Ok(turn) = decide_with(&mut state, input, now, |_| Vec::new()) {
        // A repeated input may produce records, but it must not panic.
        let said = turn.records.len();
        assert!(said < 100_000, "{said} records of one input");
        let _ = decide_with(&mut state, input, now, |_| Vec::new());
    }
}

/// Returns the fold of the first frames of the golden journal.
fn folded(after: usize) -> Fold {
    let (plan, journal) = golden();
    let mut fold = Fold::new(KEY, Arc::new(plan));
    for stored in journal.iter().take(after) {
        fold.push(stored).expect("a golden journal");
    }
    fold
}

fn check_frame(stored: &StoredFrame) {
    let Ok((frame, _)) = Frame::read(stored) else { return };
    if Frame::erased(stored).next().is_none() {
        let salts: Vec<[u8; 16]> = stored.values.iter().map(|value| value.salt).collect();
        let (again, _) = frame.store(&|place| salts.get(place).copied().unwrap_or_default());
        assert_eq!(again.frame, stored.frame, "a frame has one form");
    }
    let after = stored.sequence as usize;
    let _ = folded(after).push_deciding(stored);
    let _ = folded(after).push(stored);
}

/// Returns seeds for the target `frames`: for each type, real data with its first byte.
pub(crate) fn seeds_of_frames() -> Vec<Vec<u8>> {
    let (plan, journal) = golden();
    let mut seeds = vec![[vec![1], plan.encode()].concat()];
    for (place, stored) in journal.iter().enumerate() {
        let after = place as u8 * 4;
        let (frame, _) = Frame::read(stored).expect("a golden journal");
        seeds.push([vec![after + 2], frame.input.encode()].concat());
        seeds.push([vec![after + 3], packed(stored)].concat());
        seeds.extend(stored.values.iter().filter_map(|value| Some([vec![0], value.body.clone()?].concat())));
    }
    seeds
}

/// Encodes a frame and its values as one byte string.
fn packed(stored: &StoredFrame) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |part: &[u8]| {
        bytes.extend((part.len() as u16).to_be_bytes());
        bytes.extend(part);
    };
    put(&stored.frame);
    for value in &stored.values {
        put(&[&value.salt, value.body.as_deref().unwrap_or_default()].concat());
    }
    bytes
}

fn unpacked(mut bytes: &[u8], sequence: u64) -> Option<StoredFrame> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (part, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        parts.push(part);
        bytes = rest;
    }
    let (frame, values) = parts.split_first()?;
    let values = values.iter().map(|part| {
        let (salt, body) = part.split_first_chunk::<16>()?;
        Some(StoredValue { salt: *salt, body: Some(body.to_vec()).filter(|body| !body.is_empty()) })
    });
    Some(StoredFrame { sequence, frame: frame.to_vec(), values: values.collect::<Option<_>>()? })
}

fn golden() -> (Plan, Vec<StoredFrame>) {
    fn bytes(value: Option<&Value>) -> Vec<u8> {
        let text = value.and_then(Value::as_text).expect("hexadecimal digits");
        let mut bytes = vec![0; text.len() / 2];
        assert!(unhex(text, &mut bytes));
        bytes
    }
    let document = json::read(JOURNAL.as_bytes()).expect("JSON").value;
    let plan = Plan::decode(&bytes(document.get("plan"))).expect("a plan");
    let stored = |(sequence, frame): (usize, &Value)| {
        let values = frame.get("values").and_then(Value::as_list).expect("values").iter().map(|value| {
            let value = value.as_list().expect("salt and body");
            let salt = bytes(value.first()).try_into().expect("sixteen bytes");
            StoredValue { salt, body: Some(bytes(value.get(1))) }
        });
        StoredFrame { sequence: sequence as u64, frame: bytes(frame.get("frame")), values: values.collect() }
    };
    let frames = document.get("frames").and_then(Value::as_list).expect("frames").iter().enumerate();
    (plan, frames.map(stored).collect())
}

/// Returns the seeds of a target, derived from definitions.
pub(crate) fn seeds_of(target: &str, definitions: &[Value]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    match target {
        "definitions" => seeds.extend(definitions.iter().map(|definition| json::compact(definition).into_bytes())),
        "frames" => seeds.extend(seeds_of_frames()),
        "schemas" => {
            let paths = ["", ".a", ".items[0].name", ".orders.0.id", ".body.orders", "[1]", ".a.b.c"];
            let mut schemas = Vec::new();
            definitions.iter().for_each(|definition| find(definition, &["inputSchema", "outputSchema"], &mut schemas));
            seeds.extend(
                schemas
                    .iter()
                    .enumerate()
                    .map(|(at, schema)| format!("{}\n{}", paths[at % paths.len()], json::compact(schema)).into_bytes()),
            );
        }
        "conditions" => {
            let mut conditions = Vec::new();
            let keys = ["when", "condition", "while", "until", "bail"];
            definitions.iter().for_each(|definition| find(definition, &keys, &mut conditions));
            seeds.extend(conditions.iter().map(|condition| json::compact(condition).into_bytes()));
        }
        _ => definitions.iter().for_each(|definition| texts(definition, &mut seeds)),
    }
    seeds.sort();
    seeds.dedup();
    seeds
}

fn find(value: &Value, keys: &[&str], found: &mut Vec<Value>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| find(item, keys, found)),
        Value::Map(map) => map.iter().for_each(|(key, value): (&String, &Value)| {
            if keys.contains(&key.as_str()) {
                found.push(value.clone());
            }
            find(value, keys, found);
        }),
        _ => {}
    }
}

fn texts(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Text(text) if text.contains('@') => found.push(text.clone().into_bytes()),
        Value::List(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Map(map) => Map::values(map).for_each(|value| texts(value, found)),
        _ => {}
    }
}
