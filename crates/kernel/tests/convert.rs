//! Definitions said in another notation: the same plan comes of them, and of what is said back, or they are refused.

use std::{fs, path::PathBuf};

use mainspring_kernel::{
    definition::{
        Notation, Syntax, compile,
        convert::{Converted, convert, normal, text},
        read,
    },
    diagnostic::Diagnostic,
    document::Document,
    json,
    plan::Plan,
    value::{Map, Value},
};
use proptest::{collection::vec, prelude::*, sample::select};

fn document(text: &str) -> Document {
    read(text.as_bytes(), Syntax::Yaml).unwrap_or_else(|found| panic!("{found:?}\n{text}"))
}

fn plan(definition: &Value) -> Plan {
    let found = |found| panic!("{found:#?}\n{}", text::yaml(definition));
    compile(&Document::placeless(definition.clone())).unwrap_or_else(found).plan
}

/// A plan in its one form, with other names.
fn renamed(plan: &Plan, renamed: &[(String, String)]) -> Plan {
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        if let Some((_, new)) = renamed.iter().find(|(old, _)| *old == step.id) {
            step.id.clone_from(new);
        }
    }
    normal(&plan)
}

/// What was found of a definition in every other notation.
#[derive(Debug, Default)]
struct Seen {
    converted: usize,
    refused: usize,
    came_back_equal: usize,
}

/// A definition in every other notation and back.
fn check(definition: &Value, seen: &mut Seen) {
    let own = Notation::of(definition);
    let before = plan(definition);
    for to in Notation::ALL {
        let Ok(there) = convert(&Document::placeless(definition.clone()), to) else {
            assert_ne!(own, to, "a definition can be said in its own notation");
            seen.refused += 1;
            continue;
        };
        assert_eq!(Notation::of(&there.definition), to);
        let after = plan(&there.definition);
        assert_eq!(normal(&after), renamed(&before, &there.renamed), "{}", text::yaml(&there.definition));
        check_text(&there.definition);
        let back = convert(&Document::placeless(there.definition.clone()), own);
        let Converted { definition: back, renamed: again } =
            back.unwrap_or_else(|found| panic!("{found:#?}\n{}", text::yaml(&there.definition)));
        let back = plan(&back);
        assert_eq!(normal(&back), renamed(&after, &again));
        seen.converted += 1;
        let is_equal = Plan { workflow_hash: before.workflow_hash, ..back } == before;
        seen.came_back_equal += usize::from(is_equal);
    }
}

fn check_text(definition: &Value) {
    for (written, syntax) in [(text::yaml(definition), Syntax::Yaml), (text::json(definition), Syntax::Json)] {
        let back = read(written.as_bytes(), syntax).unwrap_or_else(|found| panic!("{found:?}\n{written}"));
        assert_eq!(&back.value, definition, "{written}");
        assert!(written.ends_with('\n') && !written.ends_with("\n\n"), "{written:?}");
    }
}

/// Every definition of the repository's examples and scenarios that is accepted.
fn definitions() -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "conformance/sequence", "conformance/dataflow", "conformance/graph"];
    let more = ["crates/sim/tests/cases", "crates/mainspring/tests/drawings"];
    let mut found = Vec::new();
    for folder in folders.into_iter().chain(more) {
        let entries = fs::read_dir(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
            let is_ours = path.extension().is_some_and(|extension| extension == "yaml" || extension == "json");
            if is_ours {
                let text = fs::read(&path).expect("a file can be read");
                let document =
                    read(&text, Syntax::Guess).unwrap_or_else(|found| panic!("{}: {found:?}", path.display()));
                collect(&document.value, &mut found);
            }
        }
    }
    found.retain(|definition| compile(&Document::placeless(definition.clone())).is_ok());
    found
}

fn collect(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Map(map) => {
            if map.contains_key("steps") || map.contains_key("nodes") {
                found.push(value.clone());
            }
            map.values().for_each(|field| collect(field, found));
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// The same steps with retries for which every notation has words, and with names.
fn spelled_out(value: &Value) -> Value {
    match value {
        Value::List(items) => items.iter().map(spelled_out).collect::<Vec<_>>().into(),
        Value::Map(map) => {
            let mut map: Map = map.iter().map(|(key, field)| (key.clone(), spelled_out(field))).collect();
            let kind = map.get("type").and_then(Value::as_text).unwrap_or_default();
            let takes = ["bash", "tool", "http", "agent", "agent_message", "code", "subworkflow"].contains(&kind);
            if takes && !["retry", "retryPolicy", "config"].iter().any(|key| map.contains_key(*key)) {
                map.insert("retry".into(), Value::map([("maxAttempts", 2u32.into())]));
            }
            map.into()
        }
        other => other.clone(),
    }
}

#[test]
fn everything_that_is_accepted_comes_out_the_same() {
    let mut seen = Seen::default();
    let definitions = definitions();
    assert!(definitions.len() > 150, "{} definitions", definitions.len());
    for definition in &definitions {
        check(definition, &mut seen);
        check(&spelled_out(definition), &mut seen);
    }
    eprintln!("{} definitions: {seen:?}", definitions.len());
    assert!(seen.converted > 3 * seen.refused, "{seen:?}");
    assert!(seen.came_back_equal * 10 > seen.converted * 9, "{seen:?}");
}
