//! Golden tests of canonical JSON and CBOR. Hashes and journals depend on these bytes, so they never change.

use mainspring_kernel::{cbor, hash::Hash, hash::hex, json, value::Value};

const FROZEN: &str = include_str!("golden/encodings.json");

fn check(case: &Value) {
    let text = |key: &str| case.get(key).and_then(Value::as_text).unwrap_or_else(|| panic!("{key} of {case:?}"));
    let value = json::read(text("text").as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", text("text"))).value;
    assert_eq!(json::canonical(&value), text("canonicalJson"), "{}", text("text"));
    assert_eq!(Hash::of(json::canonical(&value).as_bytes()).prefixed(), text("canonicalHash"), "{}", text("text"));
    assert_eq!(hex(&cbor::encode(&value)), text("cbor"), "{}", text("text"));
}

#[test]
fn encodings_are_frozen() {
    let frozen = json::read(FROZEN.as_bytes()).expect("JSON").value;
    let cases = frozen.get("cases").and_then(Value::as_list).expect("cases");
    assert!(cases.len() >= 25, "{}", cases.len());
    cases.iter().for_each(check);
}
