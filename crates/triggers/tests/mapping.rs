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
    Mapping::parse(&paths).unwrap_or_else(|errors| panic!("{}", errors[0])).apply(&event()).unwrap()
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
    check("$.items[?@['id'] == 'match(' && count(@.tags) == 1].id", json!([]));
    check("$.items[0]['id','tags']", json!(["i0", ["x", "y"]]));
    check("$.items[*].tags[*]", json!(["x", "y"]));
    check("$.items[?@.id >= 'i0'][?@ == 'i1']", json!(["i1"]));
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
    for function in ["match(@.a, 'a')", "search(@, $.pattern)", "!match(@.a, '\\u007b')", "match (@.a, 'a')"] {
        let errors = Mapping::parse(&BTreeMap::from([("v".to_owned(), format!("$[?{function}]"))]));
        assert!(errors.is_err(), "{function}");
    }
    check_refused("$[?match(@.a, @.pattern)]", "`match` and `search` are not supported");
    check_refused("$[?@.a && search(@.a, '((a{9}){9}){9}')]", "`match` and `search` are not supported");
    check_refused("$[0,0][0,0]", "more than 1 list of selectors");
    check_refused(&format!("${}", "[0,0]".repeat(50)), "more than 1 list of selectors");
    check_refused(&format!("$[0{}]", ",0".repeat(16)), "more than 16 selectors");
    check_refused("$[*,*]", "only names and indexes");
    check_refused("$['a',0:2]", "only names and indexes");
    check_refused("$[?@.a,?@.b]", "only names and indexes");
    check_refused("$[?count($[*]) > 0]", "reads the whole event");
    check_refused("$[?count($..*) > 1]", "reads the whole event");
    check_refused("$[?@.a == $.b]", "reads the whole event");
    check_refused("$[?count(@..*) > 1]", "more than one value for an item");
    check_refused("$[?@.tags[*]]", "more than one value for an item");
    check_refused("$[?@[0:2]]", "more than one value for an item");
    check_refused("$[?@['a','b']]", "more than one value for an item");
    check_refused("$[?@.list[?@.a]]", "within another");
    check_refused("$[?((((((((@.a))))))))]", "more than 8 brackets within each other");
    let errors = Mapping::parse(&BTreeMap::from([("a".into(), "$[".into()), ("b".into(), "]".into())])).unwrap_err();
    assert_eq!(errors.len(), 2, "all errors are reported");
}

/// `$..*` finds each value together with all that it contains.
#[test]
fn a_query_that_multiplies_the_event_gives_no_variable() {
    let deep = (0..120).fold(json!("x".repeat(10_000)), |inner, _| json!([inner]));
    let apply = |path: &str| {
        Mapping::parse(&BTreeMap::from([("v".to_owned(), path.to_owned())]))
            .unwrap()
            .apply(&json!({"deep": deep}))
            .unwrap()
    };
    let mapped = apply("$..*");
    assert_eq!(mapped.missing[0].reason, "the values found have more than 262144 bytes");
    assert!(mapped.variables.is_empty());
    assert_eq!(apply("$.deep[*]").variables.len(), 1);
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

/// A hundred paths can find the whole event, so its size is counted before a copy is made.
#[test]
fn variables_together_are_bounded() {
    let event = json!({"all": vec![0; 100_000]});
    let paths = |count: usize, path: &str| -> BTreeMap<String, String> {
        (0..count).map(|number| (format!("v{number:02}"), path.to_owned())).collect()
    };
    for path in ["$", "$.all", "$['all']", "$.all[*]"] {
        let apply = |count| Mapping::parse(&paths(count, path)).unwrap().apply(&event);
        assert_eq!(apply(5).unwrap().variables.len(), 5, "{path}");
        assert_eq!(apply(100).unwrap_err().variable, "v05", "{path}");
    }
}
