//! Reports steps without a type. The type that their keys fit is suggested, if there is one.

use alloc::{format, string::String, vec::Vec};

use super::{
    fields::Fields,
    help::Help,
    keys,
    notation::Notation,
    report::Report,
    step_types::{KINDS, Kind},
    suggest::{
        adapt::adapted,
        nearest::{meant, nearest},
        synonyms::synonym,
    },
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    fix::Fix,
    value::Value,
};

/// The key that says what a step of a type does.
const MAIN_KEYS: [(&str, &str); 10] = [
    ("bash", "command"),
    ("http", "url"),
    ("tool", "tool"),
    ("agent", "goal"),
    ("agent_message", "content"),
    ("code", "code"),
    ("subworkflow", "workflow"),
    ("approval", "prompt"),
    ("sleep", "durationMs"),
    ("signal", "signal"),
];

/// Reports a step without a type.
pub(super) fn report(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) {
    let key = if notation == Notation::Dataflow { "action" } else { "type" };
    let keys = || fields.map.keys().map(String::as_str);
    let misspelt = |other: &&str| nearest(other, [key, "type"]).is_some() || *other == "kind";
    if let Some(other) = keys().find(misspelt).filter(|_| !fields.has("action")) {
        let message = format!("unknown key {}, and `{key}` is missing", quoted(other));
        let meant = if other == "kind" { "type" } else { nearest(other, [key, "type"]).unwrap_or(key) };
        let at = fields.path.key(other);
        return report.error_at_key(diagnostic::UNKNOWN_KEY, &at, message, Help::key(&at, meant));
    }
    let is_action = |value: &Value| keys::ACTION.iter().any(|key| value.get(key).is_some());
    if let Some((other, _)) =
        fields.map.iter().find(|(key, value)| nearest(key, ["action"]).is_some() && is_action(value))
        && !fields.has("action")
    {
        let at = fields.path.key(other);
        let message = format!("unknown key {}, and `{key}` is missing", quoted(other));
        return report.error_at_key(diagnostic::UNKNOWN_KEY, &at, message, Help::key(&at, "action"));
    }
    if notation != Notation::Dataflow && fields.has("action") {
        let message = "an `action` belongs to a dataflow, whose steps stand in `steps`";
        return report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key("action"), message, "write `type`");
    }
    if let Some((at, kind)) = keys().find_map(|key| named_by_key(key, fields)) {
        let message = format!("unknown key {}, and `type` is missing", quoted(&at));
        let at = fields.path.key(&at);
        return report.error_at_key(diagnostic::UNKNOWN_KEY, &at, message, from_key(&at, kind, fields));
    }
    if notation == Notation::Dataflow {
        let help = "write {toolName: …}, {code: …} or {return: true}, or a `type` as in a sequence";
        return report.missing(fields, key, help);
    }
    report.missing(fields, key, fitting(fields));
}

/// Returns the type that a key names, as `bash: ls` or `shell: {cmd: ls}` do.
fn named_by_key(key: &str, fields: &Fields<'_>) -> Option<(String, &'static Kind)> {
    let is_key = KINDS.iter().any(|kind| kind.keys.contains(&key));
    let known = [key].into_iter().find(|key| keys::step_types().any(|kind| kind == *key));
    let name = known.or_else(|| synonym(key, keys::step_types())).filter(|_| !is_key || key == "bash")?;
    let kind = Kind::of(name)?;
    let is_work = matches!(fields.get(key)?, Value::Text(_) | Value::Map(_));
    (is_work && MAIN_KEYS.iter().any(|(kind, _)| *kind == name)).then(|| (key.into(), kind))
}

fn from_key(at: &Path, kind: &'static Kind, fields: &Fields<'_>) -> Help {
    let main = MAIN_KEYS.iter().find(|(name, _)| *name == kind.name).map_or("", |(_, key)| *key);
    let typed = Fix::add(fields.path.key("type"), kind.name);
    let Some(word) = at.segments().last().map(|segment| match segment {
        crate::document::Segment::Key(key) => key.as_ref(),
        crate::document::Segment::Index(_) => "",
    }) else {
        return Help::default();
    };
    let text = format!("write `type: {}`, and beside it `{main}`", kind.name);
    let inner = fields.get(word).and_then(Value::as_map);
    let Some(inner) = inner else {
        let moved = typed.and(Fix::moved(at, fields.path.key(main)));
        let others = fields.map.iter().filter(|(key, _)| key.as_str() != word);
        let others: crate::value::Map = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        let others = Fields { map: &others, path: fields.path.clone() };
        return Help::new(text, renames(kind, &others).into_iter().fold(moved, Fix::and));
    };
    let moves = inner.keys().map(|key| {
        let meant = meant(key, kind.keys.iter().copied()).filter(|_| !kind.keys.contains(&key.as_str()));
        Fix::moved(&at.key(key), fields.path.key(meant.unwrap_or(key)))
    });
    let fix = moves.fold(typed, Fix::and).and(Fix::remove(at));
    let text = format!("write `type: {}`, and its keys beside it", kind.name);
    Help::new(text, fix)
}

/// Returns the help for a step whose keys say what it does: the type with the most of them, if only one has so many.
fn fitting(fields: &Fields<'_>) -> Help {
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.runs).map(|kind| (kind, hits(kind, fields))).collect();
    let most = kinds.iter().map(|(_, hits)| *hits).max().unwrap_or_default();
    let mut best = kinds.iter().filter(|(_, hits)| *hits == most && most > 0).map(|(kind, _)| *kind);
    match (best.next(), best.next()) {
        (Some(kind), None) => {
            let renames = renames(kind, fields);
            let fix = Fix::add(fields.path.key("type"), kind.name);
            Help::new(format!("write `type: {}`", kind.name), renames.into_iter().fold(fix, Fix::and))
        }
        (Some(_), Some(_)) if fields.has("steps") => {
            "write `type: parallel` if they run at the same time; steps that run one after another stand in the list itself"
                .into()
        }
        _ => format!("say what the step does: {}", keys::step_types().collect::<Vec<_>>().join(", ")).into(),
    }
}

/// Counts the keys of a step that a type has. A word of another language counts half.
fn hits(kind: &Kind, fields: &Fields<'_>) -> usize {
    let hit = |key: &String| match kind.keys.contains(&key.as_str()) {
        true => 2,
        false => usize::from(synonym(key, kind.keys.iter().copied()).is_some()),
    };
    fields.map.keys().filter(|key| !super::step_types::COMMON_KEYS.contains(&key.as_str())).map(hit).sum()
}

fn renames(kind: &Kind, fields: &Fields<'_>) -> Vec<Fix> {
    let known =
        |key: &str| kind.keys.contains(&key) || kind.takes(key) || super::step_types::COMMON_KEYS.contains(&key);
    let rename = |(key, value): (&String, &Value)| {
        let meant = synonym(key, kind.keys.iter().copied()).filter(|meant| !known(key) && !fields.has(meant))?;
        let (from, to) = (fields.path.key(key), fields.path.key(meant));
        Some(match adapted(key, meant, value).certain() {
            Some(value) => Fix::remove(&from).and(Fix::add(to, value)),
            None => Fix::moved(&from, to),
        })
    };
    fields.map.iter().filter_map(rename).collect()
}
