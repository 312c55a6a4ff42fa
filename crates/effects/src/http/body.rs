//! Converts bodies to values: JSON if declared and representable, else text, else base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{json, value::Value};

use super::limits::BODY_DEPTH_MAX;

/// Converts a complete body. JSON that a value cannot represent (a duplicate key, a number beyond the range of doubles,
/// nested too deeply) stays text, so that nothing is lost or guessed. An empty body is null.
pub(super) fn to_value(content_type: Option<&str>, bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => json_of(content_type, bytes).unwrap_or_else(|| Value::text(text)),
        Err(_) => Value::map([("base64", STANDARD.encode(bytes))].map(|(key, text)| (key, Value::from(text)))),
    }
}

/// Converts a truncated body. It is not parsed as JSON, and an incomplete character at the end is left out.
pub(super) fn cut_to_value(bytes: &[u8]) -> Value {
    let is_torn = |error: &std::str::Utf8Error| error.error_len().is_none();
    match std::str::from_utf8(bytes) {
        Err(error) if is_torn(&error) => to_value(None, &bytes[..error.valid_up_to()]),
        _ => to_value(None, bytes),
    }
}

fn json_of(content_type: Option<&str>, bytes: &[u8]) -> Option<Value> {
    let value = content_type.filter(|content_type| is_json(content_type)).and_then(|_| json::data(bytes).ok())?;
    (!value.is_deeper_than(BODY_DEPTH_MAX)).then_some(value)
}

/// Matches `application/json`, `text/json` and every type with the suffix `+json` (RFC 6839, 3.1).
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.split_once('/').map(|(_, subtype)| subtype);
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::cbor;

    const JSON: Option<&str> = Some("application/json");

    #[track_caller]
    fn check(content_type: Option<&str>, bytes: &[u8], expected: Value) {
        assert_eq!(to_value(content_type, bytes), expected);
    }

    #[test]
    fn the_type_decides_about_json() {
        for is_json in ["application/json", "Application/JSON; charset=utf-8", "text/json", "application/a.b+json ;x"] {
            check(Some(is_json), b" [1]\n", Value::List(vec![1u64.into()]));
        }
        for is_none in ["text/plain", "application/jsonx", "json", "application/x; a=json", ""] {
            check(Some(is_none), b"[1]", "[1]".into());
        }
        check(None, b"[1]", "[1]".into());
        check(JSON, b"", Value::Null);
        check(JSON, b"null", Value::Null);
    }

    #[test]
    fn invalid_or_unrepresentable_json_is_text() {
        let deepest = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for text in [
            "{",
            "1e999",
            "[-1e400]",
            r#"{"a":1,"a":2}"#,
            r#""\ud800""#,
            "NaN",
            "[1] [2]",
            &deepest(92),
            &deepest(5000),
        ] {
            check(JSON, text.as_bytes(), text.into());
        }
        let kept = to_value(JSON, deepest(91).as_bytes());
        assert!(kept.as_list().is_some());
        let result = Value::map([("body", kept)]);
        assert_eq!(cbor::decode(&cbor::encode(&result)), Ok(result));
    }

    #[test]
    fn binary_bodies_are_base64() {
        let base64 = |text: &str| Value::map([("base64", Value::from(text))]);
        check(JSON, b"\xff\xfe\x00", base64("//4A"));
        check(None, b"\xff", base64("/w=="));
        check(None, "ä\0".as_bytes(), "ä\0".into());
    }

    #[test]
    fn a_cut_leaves_no_half_characters() {
        assert_eq!(cut_to_value(b"[1]"), "[1]".into());
        assert_eq!(cut_to_value(b"a\xe2\x82"), "a".into());
        assert_eq!(cut_to_value(b"a\xff\xe2\x82").get("base64"), Some(&"Yf/igg==".into()));
        assert_eq!(cut_to_value(b""), Value::Null);
    }
}
