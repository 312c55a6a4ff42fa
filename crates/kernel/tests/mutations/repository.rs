//! The definitions of the repository: the examples and the conformance cases.

use std::{collections::BTreeMap, fs, path::PathBuf};

use mainspring_kernel::{
    definition::{Syntax, compile_with, fields_of, read},
    diagnostic::Diagnostic,
    document::{Document, Path, Segment},
    json,
    reference::{Part, Reference, Root, is_name, length},
    value::Value,
};

use crate::{Count, Outside, numbers::Numbers, wrong};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Keys whose texts never refer.
const NEVER_REFERS: [&str; 7] =
    ["code", "transform", "transformCode", "description", "inputSchema", "outputSchema", "allow"];

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("{REPOSITORY}/{folder}")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

/// Returns all accepted definitions, each with its name.
/// Conformance cases about the very fault that a warning is for, by the beginning of their names.
const FAULTY: [&str; 1] = ["run-007 a field of a failed step is missing"];

fn definitions() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for file in files("examples", ".yaml").into_iter().filter(|file| !file.to_string_lossy().contains(".scenario.")) {
        let document = read(&fs::read(&file).expect("a file"), Syntax::Yaml).expect("YAML");
        all.push((file.display().to_string(), document.value));
    }
    for folder in ["sequence", "dataflow", "graph"] {
        for file in files(&format!("conformance/{folder}"), ".scenario.json") {
            let cases = json::read(&fs::read(&file).expect("a file")).expect("JSON").value;
            for case in cases.get("cases").and_then(Value::as_list).expect("cases") {
                let accepted = case.get("expect").and_then(|expect| expect.get("accepted"));
                if accepted != Some(&Value::from(false)) {
                    let name = case.get("name").and_then(Value::as_text).unwrap_or_default();
                    all.push((name.into(), case.get("definition").cloned().unwrap_or_default()));
                }
            }
        }
    }
    all
}

/// A reference in a text.
struct Place {
    text: Path,
    /// The bytes of the reference after its `@`.
    begin: usize,
    written: String,
    /// The step around it.
    step: Path,
}

/// Adds the references of a value to `places`.
fn places(value: &Value, path: &Path, step: &Path, found: &mut Vec<Place>) {
    match value {
        Value::Text(text) => {
            let mut next = 0;
            while let Some(at) = text[next..].find('@').map(|at| next + at) {
                next = at + 1;
                match length(&text[next..]) {
                    _ if text[next..].starts_with('@') => next += 1,
                    // A mail address is no reference.
                    _ if text[..at].ends_with(char::is_alphanumeric) => {}
                    Some((_, all)) => {
                        let written = text[next..next + all].to_string();
                        found.push(Place { text: path.clone(), begin: next, written, step: step.clone() });
                        next += all;
                    }
                    None => {}
                }
            }
        }
        Value::List(items) => {
            let key = match path.segments().last() {
                Some(Segment::Key(key)) => key.to_string(),
                _ => String::new(),
            };
            let is_steps = ["steps", "nodes", "then", "else", "finally"].contains(&key.as_str());
            for (at, item) in items.iter().enumerate() {
                let path = path.index(at);
                places(item, &path, if is_steps { &path } else { step }, found);
            }
        }
        Value::Map(map) => {
            let fields = map.iter().filter(|(key, _)| !NEVER_REFERS.contains(&key.as_str()));
            fields.for_each(|(key, field)| places(field, &path.key(key), step, found));
        }
        _ => {}
    }
}

fn part_mut<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.segments().iter().try_fold(value, |value, segment| match (value, segment) {
        (Value::Map(map), Segment::Key(key)) => map.get_mut(&**key),
        (Value::List(items), Segment::Index(index)) => items.get_mut(*index),
        _ => None,
    })
}

/// Returns the mutations of a reference, each with true if the names beside the mutated part are declared.
fn mutations(document: &Document, place: &Place, numbers: &mut Numbers) -> Vec<(bool, String)> {
    let reserved = ["input", "vars", "ctx", "item", "index"];
    let mut all = Vec::new();
    let Some(reference) = Reference::read(&place.written, &|_| Some(Root::Input)) else { return all };
    let name = reference.begin(0);
    if !reserved.contains(&name)
        && let Some(other) = wrong(name, &reserved.map(String::from), numbers)
    {
        all.push((true, format!("{other}{}", &place.written[name.len()..])));
    }
    for (at, part) in reference.path.iter().enumerate() {
        let Part::Name(name) = part else { continue };
        let known = fields_of(document, &Outside(&BTreeMap::new()), &place.step, reference.begin(at));
        let known: Vec<String> = known.into_iter().map(|field| field.name).collect();
        if let Some(other) = wrong(name, &known, numbers).filter(|other| is_name(other)) {
            let rest = &place.written[reference.begin(at + 1).len()..];
            all.push((!known.is_empty(), format!("{}.{other}{rest}", reference.begin(at))));
        }
    }
    all
}

#[test]
fn repository_definitions_are_clean_and_their_mutations_are_not() {
    let codes = [
        "path_not_in_schema",
        "value_may_be_null",
        "value_may_be_missing",
        "reference_is_text",
        "comparison_never_holds",
        "unknown_schema_keyword",
        "value_not_in_schema",
        "loop_over_no_list",
    ];
    let (mut count, mut declared, mut open) = (0, Count::default(), Count::default());
    let mut all_false = Vec::new();
    for (name, value) in definitions() {
        let findings = |value: Value| {
            let compiled = compile_with(&Document::placeless(value), &Outside(&BTreeMap::new()));
            compiled.map_or_else(|found| found, |compiled| compiled.warnings)
        };
        let right = findings(value.clone());
        let false_ones = right.iter().filter(|found| codes.contains(&found.code));
        let is_meant = FAULTY.iter().any(|begin| name.starts_with(begin));
        all_false.extend(false_ones.filter(|_| !is_meant).map(|found| format!("{name}: {found}")));
        count += 1;
        let (document, mut found) = (Document::placeless(value.clone()), Vec::new());
        places(&value, &Path::root(), &Path::root(), &mut found);
        let mut numbers = Numbers::of(count);
        for place in found {
            // Only a text that the compiler reads as a reference: without it there would be no error of an unknown name.
            for (is_declared, other) in mutations(&document, &place, &mut numbers) {
                let mut changed = value.clone();
                let Some(Value::Text(text)) = part_mut(&mut changed, &place.text) else { continue };
                text.replace_range(place.begin..place.begin + place.written.len(), &other);
                let is_new =
                    |found: &Diagnostic| !right.iter().any(|it| (it.code, &it.path) == (found.code, &found.path));
                let is_found = findings(changed).iter().any(is_new);
                if !is_found && is_declared && std::env::var_os("MAINSPRING_SHOW").is_some() {
                    println!("{name}: {} as {other}", place.written);
                }
                let count = if is_declared { &mut declared } else { &mut open };
                count.made += 1;
                count.found += usize::from(is_found);
            }
        }
    }
    assert!(all_false.is_empty(), "{}", all_false.join("\n"));
    println!("{count} definitions: of {} mutations beside declared names {} are found", declared.made, declared.found);
    println!("of {} mutations where nothing is declared {} are found", open.made, open.found);
    assert!(count >= 140, "{count} definitions");
    assert!(declared.found * 100 >= declared.made * 98, "{} of {}", declared.found, declared.made);
}
