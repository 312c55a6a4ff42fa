//! Tests `docs/reference/language.md`: its examples compile, and it mentions every key.

use std::{collections::BTreeSet, fs};

use mainspring_kernel::{
    definition::{Notation, Syntax, compile, read, vocabulary},
    diagnostic::Diagnostic,
};

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/language.md");
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn what_it_shows_compiles() {
    let (page, mut tried) = (page(), 0);
    for block in page.split("```yaml\n").skip(1) {
        let block = block.split("```").next().expect("a block ends");
        let definition = match block {
            steps if steps.starts_with('-') => format!("steps:\n{steps}"),
            whole if whole.contains("steps:") || whole.contains("nodes:") => whole.to_string(),
            part if part.starts_with('#') => continue,
            part => format!("{part}\nsteps: [{{type: return}}]\n"),
        };
        let document =
            read(definition.as_bytes(), Syntax::Yaml).unwrap_or_else(|found| panic!("{definition}\n{found}"));
        if let Err(found) = compile(&document) {
            let shown: Vec<_> = found.iter().map(Diagnostic::to_string).collect();
            panic!("{definition}\n{}", shown.join("\n"));
        }
        tried += 1;
    }
    assert!(tried >= 6, "{tried} blocks");
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
        keys.extend(vocabulary::root(notation));
        for step_type in vocabulary::step_types() {
            keys.insert(step_type);
            keys.extend(vocabulary::step(notation, step_type, false));
            keys.extend(vocabulary::step(notation, step_type, true));
        }
    }
    keys.extend(vocabulary::CONDITION_FORMS.iter().flat_map(|form| vocabulary::condition(form)));
    keys.extend(vocabulary::CONSTRAINTS.iter().chain(&vocabulary::POLICY).chain(&vocabulary::VARIABLE));
    keys.extend(vocabulary::EDGE.iter().chain(&vocabulary::ACTION).chain(&vocabulary::CONFIG));
    keys.extend(vocabulary::RETRY.iter().chain(&vocabulary::RETRYABLE_ERRORS).chain(&vocabulary::FOR_EACH));
    let missing: Vec<_> = keys.into_iter().filter(|key| !words.contains(key)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
