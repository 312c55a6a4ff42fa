//! A corpus of definitions for other tests: the examples, the conformance cases and the golden files.

use std::{fs, path::Path};

use mainspring_kernel::{
    definition::{Syntax, read},
    json,
    value::Value,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns all definitions with their names, valid or not.
pub(crate) fn all() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for folder in ["examples", "crates/kernel/tests/golden", "crates/kernel/tests/diagnostics"] {
        for path in files(&format!("{ROOT}/{folder}")) {
            let is_definition = path.ends_with(".yaml") || folder.ends_with("diagnostics") && path.ends_with(".json");
            if !is_definition || path.contains(".scenario.") {
                continue;
            }
            let text = fs::read(&path).expect("a definition");
            found.extend(read(&text, Syntax::Guess).ok().map(|document| (name(&path), document.value)));
        }
    }
    for folder in ["sequence", "dataflow", "graph"] {
        for path in files(&format!("{ROOT}/conformance/{folder}")) {
            let cases = json::read(&fs::read(&path).expect("cases")).expect("JSON").value;
            let definitions = cases.get("cases").and_then(Value::as_list).expect("cases").iter().filter_map(|case| {
                let name = case.get("name").and_then(Value::as_text).unwrap_or_default();
                Some((format!("{folder}: {name}"), case.get("definition")?.clone()))
            });
            found.extend(definitions);
        }
    }
    assert!(found.len() >= 300, "{} definitions", found.len());
    found
}

fn files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path().display().to_string()).collect();
    paths.sort();
    paths
}

fn name(path: &str) -> String {
    Path::new(path).file_name().expect("a name").to_string_lossy().into_owned()
}
