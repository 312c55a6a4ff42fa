//! Tests the definitions in `README.md` and `docs`: each compiles. `docs/reference/language.md` mentions every key.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::{
    definition::{Notation, Syntax, compile, keys, read},
    diagnostic::Diagnostic,
};

/// The page of the language, on which every sample in YAML is a definition or a part of one.
const LANGUAGE: &str = "docs/reference/language.md";

/// Top-level keys of a definition.
const STEPS: [&str; 2] = ["steps:", "nodes:"];

/// The key of a definition in JSON requests.
const REQUEST_KEY: &str = "workflow";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page() -> String {
    text_of(&root().join(LANGUAGE))
}

/// `README.md` and the pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is read") {
            let path = entry.expect("an entry").path();
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            if path.is_dir() {
                folders.push(path)
            } else if is_page {
                pages.push(path)
            }
        }
    }
    pages.sort();
    pages
}

/// The samples of a page in YAML and JSON, each with the line that it begins below.
fn samples(page: &str) -> Vec<(usize, Syntax, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let syntax = match line.trim_start() {
            "```yaml" => Syntax::Yaml,
            "```json" => Syntax::Json,
            _ => continue,
        };
        let indent = line.len() - line.trim_start().len();
        let inside = lines.by_ref().map(|(line, _)| line).take_while(|line| line.trim() != "```");
        found.push((
            number,
            syntax,
            inside.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect(),
        ));
    }
    found
}

/// A whole definition around a sample. None for a sample of something else: a scenario, which `crates/sim/tests/docs.rs`
/// runs, a file of another program, a response.
fn definition(is_of_language: bool, syntax: Syntax, sample: &str) -> Option<String> {
    if matches!(syntax, Syntax::Json) {
        let sample: serde_json::Value =
            serde_json::from_str(sample).unwrap_or_else(|error| panic!("{sample}\n{error}"));
        return Some(sample.get(REQUEST_KEY)?.to_string());
    }
    let is_step = sample.starts_with('-') && sample.contains("type:");
    let has_steps = sample.lines().any(|line| STEPS.iter().any(|key| line.starts_with(key)));
    match sample {
        steps if is_step => Some(format!("steps:\n{steps}")),
        whole if has_steps => Some(whole.to_string()),
        part if is_of_language => Some(format!("{part}\nsteps: [{{type: return}}]\n")),
        _ => None,
    }
}

#[test]
fn every_definition_in_the_documents_compiles() {
    let mut tried = 0;
    for path in pages() {
        for (line, syntax, sample) in samples(&text_of(&path)) {
            let Some(definition) = definition(path.ends_with(LANGUAGE), syntax, &sample) else { continue };
            let place = format!("{}:{line}\n{definition}", path.display());
            let document = read(definition.as_bytes(), syntax).unwrap_or_else(|found| panic!("{place}\n{found}"));
            if let Err(found) = compile(&document) {
                let shown: Vec<_> = found.iter().map(Diagnostic::to_string).collect();
                panic!("{place}\n{}", shown.join("\n"));
            }
            tried += 1;
        }
    }
    assert!(tried >= 12, "{tried} definitions");
}

#[test]
fn no_key_is_missing() {
    let page = page();
    // The text between backquotes. Three backquotes make two empty parts, so fenced code also has an odd index.
    let code = page.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(" ");
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: BTreeSet<&str> = code.split(|letter| !is_of_word(letter)).collect();
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    for notation in Notation::ALL {
        keys.extend(keys::root(notation));
        for step_type in keys::step_types() {
            keys.insert(step_type);
            keys.extend(keys::step(notation, step_type, false));
            keys.extend(keys::step(notation, step_type, true));
        }
    }
    keys.extend(keys::CONDITION_FORMS.iter().flat_map(|form| keys::condition(form)));
    keys.extend(keys::CONSTRAINTS.iter().chain(&keys::POLICY).chain(&keys::VARIABLE));
    keys.extend(keys::EDGE.iter().chain(&keys::ACTION).chain(&keys::CONFIG));
    keys.extend(keys::RETRY.iter().chain(&keys::RETRYABLE_ERRORS).chain(&keys::FOR_EACH));
    let missing: Vec<_> = keys.into_iter().filter(|key| !words.contains(key)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
