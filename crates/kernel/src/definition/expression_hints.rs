//! Suggests a condition for a condition that was written as an expression, such as `a.count > 3`. The result is help
//! text only; expressions are never evaluated.

use alloc::{format, string::String, vec::Vec};

use crate::{json, reference, value::Value};

/// Comparison signs and the equivalent operators. A longer sign precedes its prefix.
const SIGNS: [(&str, &str); 8] = [
    ("===", "eq"),
    ("!==", "neq"),
    ("==", "eq"),
    ("!=", "neq"),
    (">=", "gte"),
    ("<=", "lte"),
    (">", "gt"),
    ("<", "lt"),
];

/// The end of a suggestion that is no text.
pub(super) const WITHOUT_QUOTES: &str = ", without quotes";

/// Delimiters of expressions in other languages.
const FRAMES: [(&str, &str); 3] = [("${{", "}}"), ("{{", "}}"), ("${", "}")];

/// Returns the condition for an expression that is one comparison or one name, in YAML flow style.
pub(super) fn as_condition(text: &str) -> Option<String> {
    let mut text = text.trim();
    for (begin, end) in FRAMES {
        text = text.strip_prefix(begin).and_then(|text| text.strip_suffix(end)).unwrap_or(text).trim();
    }
    if let Some(word) = ["true", "false"].into_iter().find(|word| text.eq_ignore_ascii_case(word)) {
        return Some(format!("{word}{WITHOUT_QUOTES}"));
    }
    if let Some(negated) = text.strip_prefix('!').filter(|rest| !rest.starts_with('=')) {
        return Some(format!("{{not: {{ref: \"@{}\"}}}}", name(negated)?));
    }
    for (sign, form) in [("&&", "all"), (" and ", "all"), ("||", "any"), (" or ", "any")] {
        if text.contains(sign) {
            let parts = text.split(sign).map(as_condition).collect::<Option<Vec<_>>>()?;
            return Some(format!("{{{form}: [{}]}}", parts.join(", ")));
        }
    }
    let sign = text.char_indices().find_map(|(at, _)| {
        SIGNS.iter().find(|(sign, _)| text[at..].starts_with(sign)).map(|(sign, operator)| (at, *sign, *operator))
    });
    let Some((at, sign, operator)) = sign else { return Some(format!("{{ref: \"@{}\"}}", name(text)?)) };
    let (left, right) = (&text[..at], text[at + sign.len()..].trim());
    // Beside braces, a bare word is text.
    let word = Some(right).filter(|word| left.contains("{{") && reference::is_name(word));
    let right = operand(right).or_else(|| word.map(|word| json::compact(&Value::text(word))))?;
    let left = name(left)?;
    Some(format!("{{ref: \"@{left}\", {operator}: {right}}}"))
}

/// Returns a reference without its `@`, which is optional here.
fn name(text: &str) -> Option<&str> {
    let mut text = text.trim();
    for (begin, end) in FRAMES {
        text = text.strip_prefix(begin).and_then(|text| text.strip_suffix(end)).unwrap_or(text).trim();
    }
    let text = text.strip_prefix('@').unwrap_or(text);
    reference::length(text).is_some_and(|(_, all)| all == text.len()).then_some(text)
}

fn operand(text: &str) -> Option<String> {
    let unquoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    if let Some(plain) = unquoted.filter(|plain| !plain.contains(['\'', '"', '\\'])) {
        return Some(json::compact(&Value::text(plain)));
    }
    if text.starts_with('@') && name(text).is_some() {
        return Some(format!("\"{text}\""));
    }
    let value = json::value(text.as_bytes()).ok()?;
    matches!(value, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_)).then(|| json::compact(&value))
}

#[cfg(test)]
mod tests {
    use super::as_condition;

    #[test]
    fn expressions_are_suggested_for_foreign_notations() {
        for (text, expected) in [
            ("@a.ready", Some("{ref: \"@a.ready\"}")),
            ("a.ready", Some("{ref: \"@a.ready\"}")),
            ("!@a.ready", Some("{not: {ref: \"@a.ready\"}}")),
            ("${{ a.count >= 3 }}", Some("{ref: \"@a.count\", gte: 3}")),
            ("{{a.b}} == 'x'", Some("{ref: \"@a.b\", eq: \"x\"}")),
            ("{{a.b}} == heads", Some("{ref: \"@a.b\", eq: \"heads\"}")),
            ("a.b == heads", None),
            ("{{ a.b == 'x' }}", Some("{ref: \"@a.b\", eq: \"x\"}")),
            ("@a.b !== @c[0].d", Some("{ref: \"@a.b\", neq: \"@c[0].d\"}")),
            ("a == null", Some("{ref: \"@a\", eq: null}")),
            ("True", Some("true, without quotes")),
            ("a > 1 && b < 2", Some("{all: [{ref: \"@a\", gt: 1}, {ref: \"@b\", lt: 2}]}")),
            ("a > 1 && ?", None),
            ("x > ", None),
            ("= 1", None),
            ("é > 1", None),
            ("", None),
        ] {
            assert_eq!(as_condition(text).as_deref(), expected, "{text}");
        }
    }
}
