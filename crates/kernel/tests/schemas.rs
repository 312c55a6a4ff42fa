//! Tests of the JSON Schemas in `schemas/`: they match the generator, accept everything that compiles, and reject every
//! key that the compiler rejects. `MAINSPRING_UPDATE_GOLDEN=1` rewrites them.

mod corpus;
#[path = "schemas/generate.rs"]
mod generate;

use std::{collections::BTreeSet, fs};

use jsonschema::{PatternOptions, Validator};
use mainspring_kernel::{
    definition::{Notation, compile, keys},
    diagnostic::{UNKNOWN_KEY, UNKNOWN_TYPE},
    document::{Document, Path, Segment},
    json,
    value::{Map, Value},
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");

fn source() -> generate::Source {
    generate::Source::read(&fs::read_to_string(format!("{FOLDER}/keys.yaml")).expect("schemas/keys.yaml"))
}

/// The schema files with the notations that each one covers.
const FILES: [(&str, &[Notation]); 4] = [
    ("workflow", &Notation::ALL),
    ("sequence", &[Notation::Sequence]),
    ("dataflow", &[Notation::Dataflow]),
    ("graph", &[Notation::Graph]),
];

#[test]
fn schemas_are_as_generated() {
    let source = source();
    let is_updating = std::env::var_os("MAINSPRING_UPDATE_GOLDEN").is_some_and(|value| value == "1");
    for (name, notations) in FILES {
        let path = format!("{FOLDER}/{name}.schema.json");
        let text = json::pretty(&generate::schema(name, notations, &source)) + "\n";
        if is_updating {
            fs::write(&path, &text).expect("a schema can be written");
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{path} is not what is generated: run `cargo xtask schemas`");
    }
    assert_eq!(source.unused(), Vec::<String>::new(), "keys that the compiler does not know");
}

/// Returns the definitions of the corpus that compile.
fn accepted() -> Vec<(String, Value)> {
    let mut definitions = corpus::all();
    definitions.retain(|(_, definition)| compile(&Document::placeless(definition.clone())).is_ok());
    definitions
}

fn foreign(value: &Value) -> serde_json::Value {
    serde_json::from_str(&json::compact(value)).expect("our JSON is JSON")
}

fn validator(notations: &[Notation]) -> Validator {
    let schema = foreign(&generate::schema("test", notations, &source()));
    jsonschema::meta::validate(&schema).expect("a schema by draft 2020-12");
    // The simplest regular expression engine, without look-around and backreferences, so that the patterns work in all
    // editors.
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(&schema).expect("a schema")
}

fn complaints(validator: &Validator, definition: &Value) -> String {
    let definition = foreign(definition);
    let complaints = validator.iter_errors(&definition).take(3);
    complaints.map(|error| format!("{}: {error}\n", error.instance_path())).collect()
}

#[test]
fn definitions_match_their_schema_and_the_common_one() {
    let all = validator(&Notation::ALL);
    let each = Notation::ALL.map(|notation| (notation, validator(&[notation])));
    let mut counts = [0; 3];
    for (name, definition) in accepted() {
        let own = Notation::of(&definition);
        assert_eq!(complaints(&all, &definition), "", "{name}");
        for (at, (notation, validator)) in each.iter().enumerate() {
            let accepts = validator.is_valid(&foreign(&definition));
            assert_eq!(accepts, *notation == own, "{name}: {notation:?}: {}", complaints(validator, &definition));
            counts[at] += usize::from(accepts);
        }
    }
    assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
}

/// Checks that every key of the language occurs in a definition of the corpus, so that no key goes untested.
#[test]
fn every_key_is_in_some_definition_that_compiles() {
    let mut seen = BTreeSet::new();
    for (_, definition) in accepted() {
        keys_of(&definition, &mut seen);
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for notation in Notation::ALL {
        known.extend(keys::root(notation));
        for step_type in keys::step_types() {
            known.extend(keys::step(notation, step_type, false));
            known.extend(keys::step(notation, step_type, true));
        }
    }
    known.extend(keys::CONDITION_FORMS.iter().flat_map(|form| keys::condition(form)));
    known.extend(keys::CONSTRAINTS.iter().chain(&keys::BUDGET).chain(&keys::POLICY).chain(&keys::VARIABLE));
    known.extend(keys::EDGE.iter().chain(&keys::ACTION).chain(&keys::CONFIG));
    known.extend(keys::RETRY.iter().chain(&keys::RETRYABLE_ERRORS).chain(&keys::FOR_EACH));
    let missing: Vec<_> = known.into_iter().filter(|key| !seen.contains(*key)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

fn keys_of(value: &Value, seen: &mut BTreeSet<String>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| keys_of(item, seen)),
        Value::Map(map) => map.iter().for_each(|(key, value)| {
            seen.insert(key.clone());
            keys_of(value, seen);
        }),
        _ => {}
    }
}

/// Mutates one key of one object at a time: misspelled, added, removed, or with another value. The schema must reject
/// keys that the compiler calls unknown, and accept everything that compiles.
#[test]
fn the_schema_refuses_every_unknown_key_and_nothing_that_compiles() {
    let all = validator(&Notation::ALL);
    let each = Notation::ALL.map(validator_of);
    let (mut unknown, mut compiled, mut seen) = (0, 0, BTreeSet::new());
    // Uses every eighth of the similar cases to keep the test short.
    let is_taken = |at: usize, name: &str| at.is_multiple_of(8) || name.ends_with(".yaml");
    let definitions = accepted().into_iter().enumerate();
    for (name, definition) in definitions.filter(|(at, (name, _))| is_taken(*at, name)).map(|(_, named)| named) {
        for changed in mutations(&definition).into_iter().filter(|changed| seen.insert(json::compact(changed))) {
            let (is_unknown, is_accepted) = match compile(&Document::placeless(changed.clone())) {
                Ok(_) => (false, true),
                Err(found) => (found.iter().any(|one| [UNKNOWN_KEY, UNKNOWN_TYPE].contains(&one.code)), false),
            };
            if !is_unknown && !is_accepted {
                continue;
            }
            let (own, shown) = (Notation::of(&changed), json::compact(&changed));
            let (_, own) = each.iter().find(|(notation, _)| *notation == own).expect("each notation");
            for validator in [&all, own] {
                let accepts = validator.is_valid(&foreign(&changed));
                assert!(!(is_unknown && accepts), "{name}: has an unknown key and is accepted: {shown}");
                let complaints = || complaints(validator, &changed);
                assert!(!is_accepted || accepts, "{name}: compiles and is refused: {shown}\n{}", complaints());
            }
            unknown += usize::from(is_unknown);
            compiled += usize::from(is_accepted);
        }
    }
    assert!(unknown >= 2_000 && compiled >= 500, "{unknown} with unknown keys, {compiled} compiled");
}

fn validator_of(notation: Notation) -> (Notation, Validator) {
    (notation, validator(&[notation]))
}

/// Returns all mutations of one key.
fn mutations(definition: &Value) -> Vec<Value> {
    let mut objects = Vec::new();
    objects_of(definition, &Path::root(), &mut objects);
    let mut changed = Vec::new();
    for path in &objects {
        let map = part(definition, path).as_map().expect("an object");
        let mut push = |map: Map| changed.push(with(definition, path.segments(), Value::Map(map)));
        push(added(map, "unknown_key", true.into()));
        for (key, value) in map {
            let without: Map =
                map.iter().filter(|(other, _)| *other != key).map(|(k, v)| (k.clone(), v.clone())).collect();
            for other in [format!("{key}s"), key[..key.len().saturating_sub(1)].to_string(), key.to_uppercase()] {
                push(added(&without, &other, value.clone()));
            }
            push(without);
            for other in
                ["text".into(), 7u64.into(), Value::Null, true.into(), Value::List(Vec::new()), Map::new().into()]
            {
                push(added(map, key, other));
            }
        }
    }
    changed
}

fn added(map: &Map, key: &str, value: Value) -> Map {
    let mut map = map.clone();
    map.insert(key.to_string(), value);
    map
}

fn objects_of(value: &Value, path: &Path, found: &mut Vec<Path>) {
    match value {
        Value::List(items) => {
            items.iter().enumerate().for_each(|(at, item)| objects_of(item, &path.index(at), found));
        }
        Value::Map(map) => {
            found.push(path.clone());
            map.iter().for_each(|(key, value)| objects_of(value, &path.key(key), found));
        }
        _ => {}
    }
}

fn part<'v>(value: &'v Value, path: &Path) -> &'v Value {
    path.segments().iter().fold(value, |value, segment| match segment {
        Segment::Key(key) => value.get(key).expect("a key"),
        Segment::Index(index) => &value.as_list().expect("a list")[*index],
    })
}

fn with(value: &Value, path: &[Segment], changed: Value) -> Value {
    let Some((first, rest)) = path.split_first() else { return changed };
    match (value, first) {
        (Value::List(items), Segment::Index(index)) => {
            let mut items = items.clone();
            items[*index] = with(&items[*index], rest, changed);
            Value::List(items)
        }
        (Value::Map(map), Segment::Key(key)) => Value::Map(added(map, key, with(&map[&**key], rest, changed))),
        _ => panic!("no such part"),
    }
}
