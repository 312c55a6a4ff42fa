//! Validation of values, defaults, and the messages about mismatches.

use mainspring_sandbox::{Call, Fault, FaultKind, Limits, Request, Validate, evaluate};

fn ask(call: Call) -> Result<String, Fault> {
    evaluate(&Request { call, limits: Limits::default() }).result
}

fn validate(schema: &str, value: &str) -> Result<String, Fault> {
    ask(Call::Validate(Validate { schema: schema.into(), value: value.into(), fill_defaults: true }))
}

/// The value matches, and with its defaults it is this.
#[track_caller]
fn check(schema: &str, value: &str, expected: &str) {
    assert_eq!(validate(schema, value).as_deref(), Ok(expected), "{schema}");
}

/// The value does not match, with pointer, path and keyword of each mismatch.
#[track_caller]
fn check_mismatch(schema: &str, value: &str, expected: &[(&str, &str, &str)]) {
    let fault = validate(schema, value).expect_err(schema);
    assert_eq!(fault.kind, FaultKind::SchemaMismatch, "{fault:?}");
    let found = fault.mismatches.iter().map(|one| (one.pointer.as_str(), one.path.as_str(), one.keyword.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), expected, "{fault:?}");
}

/// The schema is invalid, and the message contains these words.
#[track_caller]
fn check_invalid(schema: &str, words: &str) {
    let fault = ask(Call::CheckSchema { schema: schema.into() }).expect_err(schema);
    assert_eq!(fault.kind, FaultKind::SchemaInvalid, "{fault:?}");
    assert!(fault.message.contains(words), "{fault:?}");
}

#[test]
fn valid_values_are_returned() {
    check("true", "1", "1");
    check(
        r#"{"type": "object"}"#,
        "{ \"b\": 1,  \"a\": 12345678901234567890123 }",
        "{ \"b\": 1,  \"a\": 12345678901234567890123 }",
    );
    check(r#"{"properties": {"a": {"default": 1.1}}}"#, r#"{"b": 0.1}"#, r#"{"a":1.1,"b":0.1}"#);
    check(r#"{"properties": {"a": {"default": 1}}, "required": ["a"]}"#, "{}", r#"{"a":1}"#);
    check(r#"{"type": "string", "format": "date-time"}"#, "\"2020-01-01T00:00:00Z\"", "\"2020-01-01T00:00:00Z\"");
    let unfilled = Validate {
        schema: r#"{"properties": {"a": {"default": 1}}}"#.into(),
        value: "{}".into(),
        fill_defaults: false,
    };
    assert_eq!(ask(Call::Validate(unfilled)).as_deref(), Ok("{}"));
    assert_eq!(ask(Call::CheckSchema { schema: "{}".into() }).as_deref(), Ok("null"));
}

#[test]
fn every_mismatch_has_its_place() {
    let schema = r#"{"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
        "id": {"type": "integer"}, "list": {"items": {"required": ["a b"], "properties": {"a b": {"minLength": 2}}}}}}"#;
    check_mismatch(schema, "5", &[("", "", "type")]);
    check_mismatch(schema, r#"{"id": "x", "more": 1}"#, &[("", "", "additionalProperties"), ("/id", "id", "type")]);
    check_mismatch(
        schema,
        r#"{"id": 1, "list": [{"a b": "xy"}, {}, {"a b": "x"}]}"#,
        &[("/list/1", "list[1]", "required"), ("/list/2/a b", "list[2][\"a b\"]", "minLength")],
    );
    check_mismatch(r#"{"format": "email"}"#, "\"x\"", &[("", "", "format")]);
    check_mismatch(
        r#"{"properties": {"a/b~c": {"const": 1}}}"#,
        r#"{"a/b~c": 2}"#,
        &[("/a~1b~0c", "[\"a/b~c\"]", "const")],
    );
    let fault = validate(schema, "{}").unwrap_err();
    assert!(fault.message.contains("The value") && fault.message.contains("\"id\""), "{fault:?}");
}

#[test]
fn mismatches_of_a_choice_are_those_of_the_likely_branch() {
    let schema = r#"{"oneOf": [
        {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}]}"#;
    check_mismatch(schema, r#"{"kind": "square", "side": "x"}"#, &[("", "", "oneOf"), ("/side", "side", "type")]);
    check_mismatch(schema, r#"{"kind": "other"}"#, &[("", "", "oneOf")]);
    check_mismatch(r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#, "1", &[("", "", "anyOf")]);
}

#[test]
fn reported_mismatches_are_bounded() {
    let list = format!("[{}1]", "1,".repeat(500));
    let fault = validate(r#"{"items": {"type": "string"}}"#, &list).unwrap_err();
    assert_eq!(fault.mismatches.len(), 100);
    assert!(fault.message.contains("more"), "{fault:?}");
}

#[test]
fn the_draft_is_taken_from_schema_or_the_newest() {
    check_mismatch(r#"{"prefixItems": [{"type": "string"}]}"#, "[1]", &[("/0", "[0]", "type")]);
    let seven = r#"{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}"#;
    check_mismatch(seven, "[1]", &[("/0", "[0]", "type")]);
    check_invalid(r#"{"$schema": "https://example.com/mine"}"#, "");
}

#[test]
fn schemas_that_cannot_be_used_are_refused() {
    check_invalid("{", "no JSON");
    check_invalid(r#"{"type": "strin"}"#, "/type");
    check_invalid(r##"{"$ref": "#/nowhere"}"##, "");
    check_invalid(r#"{"$ref": "https://example.com/schema.json"}"#, "");
    check_invalid(r#"{"$ref": "file:///etc/passwd"}"#, "");
    check_invalid(r#"{"pattern": "(a"}"#, "");
    check_invalid(r#"{"pattern": "(?=a)b"}"#, "");
    check_invalid(r##"{"$ref": "#"}"##, "leads back to itself");
    check_invalid(r##"{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}}"##, "\"/properties/a\"");
    let endless = r##"{"properties": {"a": {"default": {}, "$ref": "#"}}}"##;
    assert_eq!(validate(endless, "{}").unwrap_err().kind, FaultKind::SchemaInvalid);
    assert_eq!(validate("{}", "{").unwrap_err().kind, FaultKind::InputInvalid);
    assert_eq!(validate("{}", &"[".repeat(200)).unwrap_err().kind, FaultKind::InputInvalid);
}

#[test]
fn patterns_match_in_linear_time() {
    let value = format!("\"{}!\"", "a".repeat(100_000));
    check_mismatch(r#"{"pattern": "^(a+)+$"}"#, &value, &[("", "", "pattern")]);
}

/// The message contains the first ten and says that there are more, each with an equal share.
#[test]
fn several_mismatches_are_reported_together() {
    let schema = r#"{"additionalProperties": {"type": "integer"}, "minProperties": 1}"#;
    let value = |count: usize| {
        let fields: Vec<_> =
            (100..100 + count).map(|field| format!("\"f{field}\": \"{}\"", "x".repeat(2000))).collect();
        format!("{{{}}}", fields.join(","))
    };
    for (count, said, unsaid) in [
        (1, &["`f100` does not fit its schema: "][..], &["places", "others"][..]),
        (2, &["in 2 places: `f100`: ", "; `f101`: "], &["others"]),
        (10, &["in 10 places", "`f109`: "], &["others"]),
        (11, &["in 11 places", "`f109`: ", "; and others."], &["`f110`"]),
        (101, &["in more than 100 places", "`f109`: ", "; and others."], &["`f110`"]),
    ] {
        let message = validate(schema, &value(count)).expect_err(schema).message;
        said.iter().for_each(|text| assert!(message.contains(text), "{text:?}: {message}"));
        unsaid.iter().for_each(|text| assert!(!message.contains(text), "{text:?}: {message}"));
    }
}
