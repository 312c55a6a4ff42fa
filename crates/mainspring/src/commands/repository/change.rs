//! Differences between a folder and a server, by kind and by field, and their output.

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use crate::{
    context::Context,
    output::{
        review::rated,
        terminal::{bold, dim, print_out},
        text::{counted, cut, one_line, shown},
    },
};

/// Columns of a value in a difference.
const VALUE_COLUMNS: usize = 60;

/// Most fields of one object that are shown; all are in the JSON output.
const FIELDS_MAX: usize = 20;

/// A difference of one object.
pub(super) struct Change {
    pub(super) kind: Kind,
    /// The slug of a workflow, the name of a trigger.
    pub(super) name: String,
    /// The id of a trigger at the server.
    pub(super) id: Option<String>,
    pub(super) action: Action,
    /// The changed fields, for kinds without a review.
    pub(super) fields: Vec<Field>,
    /// The report of the review, for a changed definition that this release compiles.
    pub(super) report: Option<Value>,
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Workflow,
    Scenarios,
    Trigger,
    Organization,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Update,
    Delete,
}

/// A changed field. A value is absent on a side that does not have it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) path: String,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Scenarios => "scenarios",
            Self::Trigger => "trigger",
            Self::Organization => "organization",
        }
    }
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Update => "~",
            Self::Delete => "-",
        }
    }
}

impl Change {
    pub(super) fn new(kind: Kind, name: &str, action: Action, fields: Vec<Field>) -> Self {
        Self { kind, name: name.into(), id: None, action, fields, report: None }
    }

    /// A description of the object, as in `trigger nightly`.
    pub(super) fn subject(&self) -> String {
        match self.kind {
            Kind::Workflow => shown(&self.name),
            Kind::Organization => self.kind.name().into(),
            kind => format!("{} {}", kind.name(), shown(&self.name)),
        }
    }

    fn to_value(&self) -> Value {
        let field = |field: &Field| {
            let mut map = Map::from([("path".to_string(), Value::from(field.path.as_str()))]);
            map.extend(field.before.clone().map(|value| ("before".to_string(), value)));
            map.extend(field.after.clone().map(|value| ("after".to_string(), value)));
            Value::Map(map)
        };
        let slug = if self.kind == Kind::Workflow { Value::from(self.name.as_str()) } else { Value::Null };
        Value::map([
            ("kind", Value::from(self.kind.name())),
            ("name", self.name.as_str().into()),
            ("slug", slug),
            ("change", self.action.name().into()),
            ("fields", self.fields.iter().map(field).collect::<Vec<_>>().into()),
            ("report", self.report.clone().unwrap_or_default()),
        ])
    }

    fn print(&self) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let risk = self.report.as_ref().map(|report| format!("  risk: {}", rated(&text(report, "risk"))));
        print_out!("{} {}{}", self.action.sign(), bold(&self.subject()), risk.unwrap_or_default());
        let findings = self.report.as_ref().and_then(|report| report.get("findings")?.as_list());
        for finding in findings.unwrap_or_default() {
            let (code, path) = (text(finding, "code"), text(finding, "path"));
            print_out!("    {} {} {}", rated(&text(finding, "severity")), shown(&code), dim(&shown(&path)));
        }
        for field in self.fields.iter().take(FIELDS_MAX) {
            let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "none".into(), brief);
            print_out!("    {}: {} → {}", shown(&field.path), dim(&side(&field.before)), side(&field.after));
        }
        if self.fields.len() > FIELDS_MAX {
            print_out!(
                "    {}",
                dim(&format!("… and {} more", counted((self.fields.len() - FIELDS_MAX) as u64, "field", "fields")))
            );
        }
    }
}

fn brief(value: &Value) -> String {
    cut(&one_line(&shown(&compact(value))), VALUE_COLUMNS, "…")
}

/// Prints all differences, and their number.
pub(super) fn print(changes: &[Change], files: usize, context: &Context, with_deletions: bool) {
    if context.global.json {
        let changes: Vec<Value> = changes.iter().map(Change::to_value).collect();
        let all = Value::map([("files", Value::from(files as u64)), ("changes", changes.into())]);
        return print_out!("{}", compact(&all));
    }
    changes.iter().for_each(Change::print);
    let count = |action: Action| changes.iter().filter(|change| change.action == action).count();
    let deleted = match with_deletions {
        true => format!(", {} not in the folder", count(Action::Delete)),
        false => String::new(),
    };
    print_out!("{}", dim(&format!("{} new, {} changed{deleted}", count(Action::Create), count(Action::Update))));
}

/// The fields in which two values differ, by their paths. Lists are compared as a whole.
pub(super) fn fields(before: &Value, after: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Field>) {
    if before == after {
        return;
    }
    let nothing = Map::new();
    let (old, new) = match (before, after) {
        (Some(Value::Map(old)), Some(Value::Map(new))) => (old, new),
        // The fields of a new object are shown one by one.
        (None, Some(Value::Map(new))) if !new.is_empty() => (&nothing, new),
        _ => return found.push(Field { path, before: before.cloned(), after: after.cloned() }),
    };
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        compare(path, old.get(key), new.get(key), found);
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn fields_are_named_by_their_paths() {
        let value = |text: &str| json::value(text.as_bytes()).unwrap();
        let check = |before: &str, after: &str, expected: &[&str]| {
            let found = fields(&value(before), &value(after));
            assert_eq!(found.iter().map(|field| field.path.as_str()).collect::<Vec<_>>(), expected, "{before} {after}");
        };
        check(r#"{"a": 1}"#, r#"{"a": 1}"#, &[]);
        check(
            r#"{"a": {"b": 1, "c": 2}, "d": [1]}"#,
            r#"{"a": {"b": 3, "e": 2}, "d": [2]}"#,
            &["a.b", "a.c", "a.e", "d"],
        );
        check(r#"{"a": {"b": 1}}"#, r#"{"a": 2}"#, &["a"]);
        check("{}", r#"{"a": {"b": {"c": 1}}, "d": {}}"#, &["a.b.c", "d"]);
    }
}
