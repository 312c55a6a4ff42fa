//! Variable mappings: dotted paths, JSONPath, missing values and refused paths.

use std::collections::BTreeMap;

use mainspring_triggers::mapping::{Mapped, Mapping};
use serde_json::{Value, json};

fn event() -> Value {
    json!({
        "pr": {"number": 7, "title": null, "a b": 1},
        "items": [{"id": "i0", "tags": ["x", "y"]}, {"id": "i1", "tags": []}],
        "query": {"env": "prod"},
        "0": "zero",
        "deep": {"a": {"0": "key"}},
    })
}

fn map(path: &str) -> Mapped {
    let paths = BTreeMap::from([("v".to_owned(), path.to_owned())]);
    Mapping::parse(&paths).unwrap_or_else(|errors| panic!("{}", errors[0])).apply(&event())
}

#[track_caller]
fn check(path: &str, value: Value) {
    let mapped = map(path);
    assert_eq!((mapped.variables.get("v"), mapped.missing.len()), (Some(&value), 0), "{path}: {:?}", mapped.missing);
}

#[track_caller]
fn check_missing(path: &str, reason: &str) {
    let mapped = map(path);
    assert!(mapped.variables.is_empty(), "{path}: {mapped:?}");
    assert_eq!(mapped.missing[0].reason, reason, "{path}");
}

#[track_caller]
fn check_refused(path: &str, words: &str) {
    let errors = Mapping::parse(&BTreeMap::from([("v".to_owned(), path.to_owned())])).expect_err(path);
    let text = errors[0].to_string();
    assert!(text.contains(words) && text.starts_with("variable `v`"), "{text}");
}

#[test]
fn dotted_paths() {
    check("$.pr.number", json!(7));
    check("pr.number", json!(7));
    check("$.items.0.id", json!("i0"));
    check("items.1.tags", json!([]));
    check("$.query.env", json!("prod"));
    check("$.0", json!("zero"));
    check("deep.a.0", json!("key"));
    check("$.pr.title", json!(null));
    check("$", event());
}

#[test]
fn json_path() {
    check("$['pr']['number']", json!(7));
    check("$.pr['a b']", json!(1));
    check("$.items[0].id", json!("i0"));
    check("$.items[-1].id", json!("i1"));
    check("$.items[*].id", json!(["i0", "i1"]));
    check("$.items[0:1].id", json!(["i0"]));
    check("$.items[?@.id == 'i1'].id", json!(["i1"]));
    check("$.items[?length(@.tags) > 1].tags[*]", json!(["x", "y"]));
    check("$.items[?match(@.id, 'i[1-9]')].id", json!(["i1"]));
    check("$['pr'][?@ == '{']", json!([]));
    check("$..id", json!(["i0", "i1"]));
    check("$.items[?@.id == 'none']", json!([]));
    check("$.items[0,1].id", json!(["i0", "i1"]));
    check("$.items[?(((((((@.id == 'i1')))))))].id", json!(["i1"]));
}

#[test]
fn missing_values_are_reported_with_their_place() {
    check_missing("$.a.b", "`$` has no key `a`");
    check_missing("$.pr.b", "`$.pr` has no key `b`");
    check_missing("$.items.2.id", "`$.items` is a list of 2 values and has no `2`");
    check_missing("$.items.00", "`$.items` is a list of 2 values and has no `00`");
    check_missing("$.items.first", "`$.items` is a list of 2 values and has no `first`");
    check_missing("$.pr.number.x", "`$.pr.number` is a number and has no parts");
    check_missing("$.pr.title.x", "`$.pr.title` is null and has no parts");
    check_missing("$.items[7].id", "the event has no value there");
    check_missing("$['*']", "the event has no value there");
}

#[test]
fn refused_paths() {
    check_refused("", "neither a dotted path nor JSONPath");
    check_refused("a..b", "neither a dotted path nor JSONPath");
    check_refused("$.", "RFC 9535");
    check_refused("$.items[", "RFC 9535");
    check_refused("$.items[?@.id = 1]", "RFC 9535");
    check_refused("$..a..b", "more than 1 `..`");
    check_refused("$[?@.a][?@.b][?@.c]", "more than 2 filters");
    check_refused(&"a.".repeat(200), "at most 256");
    check_refused("$[?match(@.a, '((a{9}){9}){9}')]", "with a count");
    check_refused("$[?((((((((@.a))))))))]", "more than 8 brackets within each other");
    let errors = Mapping::parse(&BTreeMap::from([("a".into(), "$[".into()), ("b".into(), "]".into())])).unwrap_err();
    assert_eq!(errors.len(), 2, "all errors are reported");
}

/// The parser of the library recurses.
#[test]
fn nested_paths_do_not_exhaust_the_stack() {
    let parse = || {
        for nested in [
            format!("$[?{}@.a", "(".repeat(250)),
            format!("$[?{}@.a]", "!(".repeat(120)),
            "$[?$".repeat(60),
            format!("$[?{}", "!".repeat(250)),
        ] {
            let _ = Mapping::parse(&BTreeMap::from([("v".to_owned(), nested)]));
        }
    };
    std::thread::Builder::new().stack_size(1 << 19).spawn(parse).unwrap().join().unwrap();
}
