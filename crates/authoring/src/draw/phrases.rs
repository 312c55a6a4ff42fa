//! Formats conditions, durations and templates as readable text. The results are escaped.

use mainspring_kernel::{
    condition::{Condition, Test},
    json,
    reference::{Part, Reference, Root},
    template::{Piece, Template, text_form},
    value::Value,
};

use crate::text::shown;

/// Units of time with their milliseconds, the largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Durations below are in hours, not days.
const DAYS_FROM_MS: u64 = 48 * 3_600_000;

/// A condition as text: `@build.exitCode eq 0`, `all of (@a, not @b)`.
pub fn condition_text(condition: &Condition) -> String {
    let listed = |word: &str, parts: &[Condition]| {
        let parts: Vec<String> = parts.iter().map(condition_text).collect();
        format!("{word} of ({})", parts.join(", "))
    };
    match condition {
        Condition::Constant(true) => "always".into(),
        Condition::Constant(false) => "never".into(),
        Condition::About(reference, test) => about(reference, test),
        Condition::Variable(name, None) => format!("variable {}", shown(name)),
        Condition::Variable(name, Some(value)) => {
            format!("variable {} equals {}", shown(name), shown(&json::compact(value)))
        }
        Condition::All(parts) => listed("all", parts),
        Condition::Any(parts) => listed("any", parts),
        Condition::Not(part) => match part.as_ref() {
            Condition::About(_, Test::Truth) => format!("not {}", condition_text(part)),
            _ => format!("not ({})", condition_text(part)),
        },
    }
}

fn about(reference: &Reference, test: &Test) -> String {
    let reference = shown(&reference.to_string());
    match test {
        Test::Truth => reference,
        Test::Exists(true) => format!("{reference} exists"),
        Test::Exists(false) => format!("{reference} does not exist"),
        Test::Compares(comparisons) => {
            let compared =
                comparisons.iter().map(|(operator, operand)| format!("{} {}", operator.name(), data(operand)));
            format!("{reference} {}", compared.collect::<Vec<_>>().join(" and "))
        }
    }
}

/// An exact duration as text: `24h`, `1m 30s`, `250ms`, `14d`.
pub fn duration(ms: u64) -> String {
    let units = if ms < DAYS_FROM_MS { &UNITS[1..] } else { &UNITS[..] };
    let mut rest = ms;
    let mut parts = Vec::new();
    for (unit, unit_ms) in units {
        if rest >= *unit_ms {
            parts.push(format!("{}{unit}", rest / unit_ms));
            rest %= unit_ms;
        }
    }
    if parts.is_empty() { "0ms".into() } else { parts.join(" ") }
}

/// A template as data: texts in quotes, references unchanged.
pub(super) fn data(template: &Template) -> String {
    match template {
        Template::Literal(value) => shown(&json::compact(value)),
        Template::Whole(reference) => shown(&reference.to_string()),
        Template::Text(_) => shown(&json::compact(&Value::Text(prose(template)))),
        Template::List(items) => format!("[{}]", items.iter().map(data).collect::<Vec<_>>().join(", ")),
        Template::Map(_) => format!("{{{}}}", fields(template)),
    }
}

/// A template as unescaped text, for prompts and scripts; references unchanged.
pub(super) fn prose(template: &Template) -> String {
    match template {
        Template::Literal(value) => text_form(value),
        Template::Text(pieces) => pieces.iter().map(piece).collect(),
        other => data(other),
    }
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Plain(plain) => plain.clone(),
        Piece::Reference(reference) => reference.to_string(),
    }
}

/// The fields of an object or the items of a list, without brackets; empty for an empty one.
pub(super) fn fields(template: &Template) -> String {
    let field = |(key, text): (&String, String)| format!("{}: {text}", shown(key));
    let parts: Vec<String> = match template {
        Template::Map(map) => map.iter().map(|(key, part)| field((key, data(part)))).collect(),
        Template::List(items) => items.iter().map(data).collect(),
        Template::Literal(Value::Map(map)) => {
            map.iter().map(|(key, part)| field((key, shown(&json::compact(part))))).collect()
        }
        Template::Literal(Value::List(items)) => items.iter().map(|item| shown(&json::compact(item))).collect(),
        Template::Literal(Value::Null) => Vec::new(),
        other => vec![data(other)],
    };
    parts.join(", ")
}

/// The source of a reference: a step by its id, `@input` and `@vars` with the first name of the path.
pub(super) fn source(reference: &Reference) -> String {
    let name = &reference.text[..mainspring_kernel::reference::length(&reference.text).map_or(0, |(name, _)| name)];
    match (reference.root, reference.path.first()) {
        (Root::Step(_), _) => shown(name),
        (_, Some(Part::Name(first))) => format!("@{}.{}", shown(name), shown(first)),
        _ => format!("@{}", shown(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::condition::Operator;

    #[test]
    fn durations() {
        for (ms, expected) in [
            (0, "0ms"),
            (250, "250ms"),
            (1000, "1s"),
            (1250, "1s 250ms"),
            (90_000, "1m 30s"),
            (600_000, "10m"),
            (86_400_000, "24h"),
            (93_600_000, "26h"),
            (172_800_000, "2d"),
            (176_400_000, "2d 1h"),
            (14 * 86_400_000, "14d"),
            (u64::MAX, "213503982334d 14h 25m 51s 615ms"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }

    fn about(text: &str, test: Test) -> Condition {
        Condition::About(Reference::read(text, &|_| Some(Root::Step(0))).unwrap(), test)
    }

    fn literal(text: &str) -> Template {
        Template::Literal(json::read(text.as_bytes()).unwrap().value)
    }

    #[test]
    fn conditions() {
        let compares = |pairs: &[(Operator, &str)]| {
            Test::Compares(pairs.iter().map(|(operator, operand)| (*operator, literal(operand))).collect())
        };
        let truth = |name| about(name, Test::Truth);
        for (condition, expected) in [
            (Condition::Constant(true), "always"),
            (Condition::Constant(false), "never"),
            (truth("a.ok"), "@a.ok"),
            (about("a", Test::Exists(true)), "@a exists"),
            (about("a", Test::Exists(false)), "@a does not exist"),
            (about("b.exitCode", compares(&[(Operator::Equal, "0")])), "@b.exitCode eq 0"),
            (about("n", compares(&[(Operator::GreaterOrEqual, "1"), (Operator::Less, "5")])), "@n gte 1 and lt 5"),
            (about("n", compares(&[(Operator::In, r#"["a","b"]"#)])), r#"@n in ["a","b"]"#),
            (Condition::Variable("on".into(), None), "variable on"),
            (Condition::Variable("o\u{1b}".into(), Some("\u{9b}".into())), "variable o\\u{1b} equals \"\\u{9b}\""),
            (Condition::All(vec![truth("a"), Condition::Any(vec![truth("b")])]), "all of (@a, any of (@b))"),
            (Condition::Not(Box::new(truth("a"))), "not @a"),
            (Condition::Not(Box::new(about("a", Test::Exists(true)))), "not (@a exists)"),
        ] {
            assert_eq!(condition_text(&condition), expected);
        }
    }
}
