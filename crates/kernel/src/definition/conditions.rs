//! Reads conditions. A condition has exactly one form and no unknown keys.

use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

use super::{
    comparison_forms,
    expression_hints::{WITHOUT_QUOTES, as_condition},
    fields::Fields,
    help::Help,
    keys,
    references::Reader,
    report::named,
    shapes::Asks,
    suggest::{
        adapt::{flow, renamed},
        nearest::meant,
        rewrite_keys,
    },
};
use crate::{
    condition::{Condition, Operator, Test},
    diagnostic::{self, quoted},
    document::{Path, Segment},
    fix::Fix,
    json, reference,
    template::Template,
    value::Value,
};

/// Default help text for a malformed condition.
const WRITE: &str = "write true or false, {ref: \"@step.path\", eq: …}, {variable: name, equals: …}, {all: […]}, {any: […]} or {not: …}";

/// True for the expressions by which other tools run a step after a failure.
fn is_for_any_end(text: &str) -> bool {
    let bare: String = text.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    ["always", "failure", "cancelled", "failed"].iter().any(|word| bare.eq_ignore_ascii_case(word))
}

/// True for a single word that is no constant.
fn is_word(text: &str) -> bool {
    reference::is_name(text) && !["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

impl Reader<'_, '_> {
    /// Returns the help that replaces a text by the condition that it means.
    fn condition_in_place(&self, condition: &str, path: &Path) -> Help {
        let bare = condition.strip_suffix(WITHOUT_QUOTES).unwrap_or(condition);
        let Ok(document) = crate::yaml::read(bare.as_bytes()) else { return format!("write {condition}").into() };
        let value = self.with_names_of_here(&document.value);
        let text = if value == document.value { condition.into() } else { flow(&value) };
        Help::new(format!("write {text}"), Fix::replace(path, value))
    }

    /// Replaces references of other languages in a condition.
    fn with_names_of_here(&self, condition: &Value) -> Value {
        match condition {
            Value::Map(map) => Value::Map(
                map.iter()
                    .map(|(key, value)| {
                        let meant = value.as_text().filter(|_| key == "ref").and_then(|text| text.strip_prefix('@'));
                        let meant = meant.and_then(|reference| self.translated(reference));
                        let value = meant.map_or_else(
                            || self.with_names_of_here(value),
                            |meant| Value::from(format!("@{meant}").as_str()),
                        );
                        (key.clone(), value)
                    })
                    .collect(),
            ),
            Value::List(parts) => Value::List(parts.iter().map(|part| self.with_names_of_here(part)).collect()),
            other => other.clone(),
        }
    }

    /// Returns the help for a word of another tool in `when` of a step: after a failure, or by hand.
    fn word_of_step(&mut self, text: &str, path: &Path) -> Option<Help> {
        let Some(Segment::Key(key)) = path.segments().last() else { return None };
        if &**key != "when" || self.root_of(text).is_some() || !self.report.may_search() {
            return None;
        }
        let document = self.report.document();
        if text == "manual" {
            return rewrite_keys::manual(path, document);
        }
        rewrite_keys::after_failure(&path.parent(), key, &text.into(), document)
    }

    /// Reads a condition and reports its mistakes.
    pub(super) fn condition(&mut self, value: &Value, path: &Path) -> Option<Condition> {
        match value {
            Value::Bool(answer) => Some(Condition::Constant(*answer)),
            Value::Map(map) => self.form(&Fields { map, path: path.clone() }),
            other => {
                let message = format!("a condition is data, not {}", other.kind());
                let of_step = other.as_text().and_then(|text| self.word_of_step(text, path));
                let help = match other {
                    _ if of_step.is_some() => of_step,
                    Value::Text(text) if is_for_any_end(text) => {
                        Some("put the step into `finally: […]` at the root: it runs whatever the end is".into())
                    }
                    Value::Text(text) if is_word(text) && self.root_of(text).is_none() => {
                        Some("conditions are data; an outcome of another step is asked by an edge, a person by an `approval`".into())
                    }
                    Value::Text(text) => as_condition(text).map(|condition| self.condition_in_place(&condition, path)),
                    Value::List(parts) => {
                        let all = Value::map([("all", parts.clone().into())]);
                        Some(format!("write `{}` if all of them must hold, or {{any: […]}}", flow(&all)).into())
                    }
                    _ => None,
                };
                self.report.error(diagnostic::BAD_CONDITION, path, message, help.unwrap_or_else(|| WRITE.into()));
                None
            }
        }
    }

    fn form(&mut self, fields: &Fields<'_>) -> Option<Condition> {
        let forms: Vec<&str> = keys::CONDITION_FORMS.into_iter().filter(|form| fields.has(form)).collect();
        match forms.as_slice() {
            ["ref"] => self.about(fields),
            ["variable"] => self.variable(fields),
            [form @ ("all" | "any")] => {
                self.report.known_keys(fields, &keys::condition(form));
                let parts = self.report.list(fields, form)?;
                let path = fields.path.key(form);
                // All parts are read before the first failed one ends the loop, so that the mistakes of all parts are
                // reported.
                let parts: Vec<_> =
                    parts.iter().enumerate().map(|(at, part)| self.condition(part, &path.index(at))).collect();
                let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
                if *form == "all" {
                    self.check_all(&parts, &path);
                }
                Some(if *form == "all" { Condition::All(parts) } else { Condition::Any(parts) })
            }
            ["not"] => {
                self.report.known_keys(fields, &keys::condition("not"));
                let part = self.condition(fields.get("not")?, &fields.path.key("not"))?;
                Some(Condition::Not(Box::new(part)))
            }
            [] => {
                self.formless(fields);
                None
            }
            several => {
                let message = format!("a condition has one form, and this one has {}", several.join(" and "));
                self.report.error(
                    diagnostic::BAD_CONDITION,
                    &fields.path,
                    message,
                    "put them into {all: […]} or {any: […]}",
                );
                None
            }
        }
    }

    /// Warns about `all` in which one value must equal two different ones.
    fn check_all(&mut self, parts: &[Condition], path: &Path) {
        let mut seen: BTreeMap<&str, &Value> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            let Condition::About(reference, Test::Compares(compares)) = part else { continue };
            let [(Operator::Equal, Template::Literal(value))] = compares.as_slice() else { continue };
            let first = *seen.entry(&reference.text).or_insert(value);
            if first != value {
                let message =
                    format!("`{reference}` is never both {} and {}", json::compact(first), json::compact(value));
                let help = "write `any` in place of `all` if one of them suffices";
                return self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &path.index(at), message, help);
            }
        }
    }

    /// Reports an object without any form of a condition. One of its keys may be a misspelled form.
    fn formless(&mut self, fields: &Fields<'_>) {
        if let Some(condition) = comparison_forms::as_condition(fields.map) {
            let help = Help::new(format!("write {}", flow(&condition)), Fix::replace(&fields.path, condition));
            let message = "a condition in another form";
            return self.report.error(diagnostic::BAD_CONDITION, &fields.path, message, help);
        }
        let forms = keys::CONDITION_FORMS;
        let misspelt = fields.map.keys().find_map(|key| Some((key, meant(key, forms)?)));
        if let Some((key, form)) = misspelt {
            let message = format!("unknown key {}", quoted(key));
            let path = fields.path.key(key);
            let value = fields.get(key).unwrap_or(&Value::Null);
            let help = renamed(&path, key, &fields.path, form, value);
            return self.report.error_at_key(diagnostic::UNKNOWN_KEY, &path, message, help);
        }
        let message = "a condition must ask something: this object has none of the keys that do";
        self.report.error(diagnostic::BAD_CONDITION, &fields.path, message, WRITE);
    }

    fn about(&mut self, fields: &Fields<'_>) -> Option<Condition> {
        let known = keys::condition("ref");
        let unknown = fields.map.keys().filter(|key| !known.contains(&key.as_str()));
        match (unknown.count(), comparison_forms::as_condition(fields.map)) {
            (2.., Some(condition)) => {
                let help = Help::new(format!("write {}", flow(&condition)), Fix::replace(&fields.path, condition));
                self.report.error(diagnostic::BAD_CONDITION, &fields.path, "a condition in another form", help);
            }
            _ => self.report.known_keys(fields, &known),
        }
        let compares = Operator::ALL.into_iter().any(|operator| fields.has(operator.name()));
        self.asks = Some(if compares { Asks::Comparison } else { Asks::Presence });
        let reference =
            self.report.filled_text(fields, "ref").and_then(|text| self.ref_of(text, &fields.path.key("ref")));
        self.asks = None;
        let test = self.test(fields);
        if let (Some(reference), Some(test)) = (&reference, &test) {
            self.check_comparison(reference, test, fields);
        }
        Some(Condition::About(reference?, test?))
    }

    pub(super) fn ref_of(&mut self, text: &str, path: &Path) -> Option<reference::Reference> {
        let body = text.strip_prefix('@').unwrap_or(text);
        if text.starts_with('@') && reference::length(body).is_some_and(|(_, all)| all == body.len()) {
            return self.whole_reference(text, path);
        }
        let is_bare = reference::length(text).is_some_and(|(_, all)| all == text.len());
        let inner = text.find('@').map(|at| &text[at + 1..]).and_then(|rest| Some(&rest[..reference::length(rest)?.1]));
        let help = match inner.or(is_bare.then_some(text)) {
            Some(reference) => Help::value(path, format!("@{reference}").as_str()),
            None => "write \"@step.path\"".into(),
        };
        let message = format!("`ref` must be one whole reference, not {}", quoted(text));
        self.report.error(diagnostic::BAD_CONDITION, path, message, help);
        None
    }

    fn test(&mut self, fields: &Fields<'_>) -> Option<Test> {
        let given: Vec<Operator> = Operator::ALL.into_iter().filter(|operator| fields.has(operator.name())).collect();
        let is_allowed = match (given.as_slice(), fields.has("exists")) {
            ([], _) | ([_], false) => true,
            ([low, high], false) => low.is_lower_bound() && high.is_upper_bound(),
            _ => false,
        };
        if !is_allowed {
            let exists = fields.has("exists").then_some("exists");
            let names: Vec<&str> = given.iter().map(|operator| operator.name()).chain(exists).collect();
            let message = format!(
                "a condition has one operator or the two bounds of a range, and this one has {}",
                names.join(" and ")
            );
            let each = fields.map.iter().filter(|(key, _)| key.as_str() != "ref").map(|(key, operand)| {
                Value::map([("ref", fields.get("ref").cloned().unwrap_or_default()), (key.as_str(), operand.clone())])
            });
            let all = Value::map([("all", Value::List(each.collect()))]);
            let help = Help::new("put them into {all: […]}", Fix::replace(&fields.path, all));
            self.report.error(diagnostic::BAD_CONDITION, &fields.path, message, help);
            return None;
        }
        if fields.has("exists") {
            return self.report.bool(fields, "exists").map(Test::Exists);
        }
        let compares: Vec<_> =
            given.into_iter().map(|operator| Some((operator, self.operand(fields, operator)?))).collect();
        let compares = compares.into_iter().collect::<Option<Vec<_>>>()?;
        Some(if compares.is_empty() { Test::Truth } else { Test::Compares(compares) })
    }

    fn operand(&mut self, fields: &Fields<'_>, operator: Operator) -> Option<Template> {
        let (value, path) = (fields.get(operator.name())?, fields.path.key(operator.name()));
        let operand = self.template(value, &path);
        let may_be_list = matches!(operand, Template::Whole(_) | Template::List(_) | Template::Literal(Value::List(_)));
        if operator == Operator::In && !may_be_list {
            // An unknown whole reference is reported already; reporting it here as well would report one mistake twice.
            if !value.as_text().is_some_and(|text| text.starts_with('@')) {
                self.report.wrong_kind(&path, "in", "a list or a reference to one", value);
            }
            return None;
        }
        Some(operand)
    }

    fn variable(&mut self, fields: &Fields<'_>) -> Option<Condition> {
        self.report.known_keys(fields, &keys::condition("variable"));
        let name = self.report.filled_text(fields, "variable").map(String::from);
        if let Some(name) = &name {
            self.check_asked_variable(name, &fields.path.key("variable"));
        }
        let equals = match fields.get("equals") {
            None => None,
            Some(value) => Some(self.literal(
                value,
                &fields.path.key("equals"),
                "write {ref: \"@vars.name\", eq: …}: its operand may refer",
            )?),
        };
        if let (Some(name), Some(equals)) = (&name, &equals) {
            self.check_asked_presence(name, &fields.path);
            self.check_variable_by_type(name, equals, fields);
        }
        Some(Condition::Variable(name?, equals))
    }

    /// Reports a variable that can never exist: variables are declared, but not this one, and no step writes it.
    fn check_asked_variable(&mut self, name: &str, path: &Path) {
        if let Some(bare) = name.strip_prefix("@vars.").or_else(|| name.strip_prefix('@')) {
            let message = format!("`variable` is a name, not the reference {}", quoted(name));
            return self.report.error(diagnostic::BAD_CONDITION, path, message, Help::value(path, bare));
        }
        let Some(declared) = self.outline.declared.variables else { return };
        let bare = name;
        if declared.contains_key(name) || self.outline.outputs.contains_key(name) {
            return;
        }
        let outputs = self.outline.outputs.keys().copied();
        let known = declared.keys().map(String::as_str).chain(outputs);
        let help = match self.report.nearest_name(bare, known) {
            Some(meant) => Help::value(path, meant),
            None => format!("declare it: variables: {{{bare}: {{type: string}}}}").into(),
        };
        let message = format!("{} is none of the variables that are declared, and no output variable", named(name));
        self.report.error(diagnostic::UNKNOWN_REFERENCE, path, message, help);
    }

    /// Reads data in which references are not allowed.
    pub(super) fn literal(&mut self, value: &Value, path: &Path, help: &str) -> Option<Value> {
        let mut bad = Vec::new();
        let template = Template::read(value, &|name| self.root_of(name), &mut bad);
        match (template.normalized(), bad.first()) {
            (Template::Literal(value), None) => Some(value),
            (_, bad) => {
                let path = bad.map_or_else(|| path.clone(), |bad| path.join(&bad.path));
                self.report.error(diagnostic::MISPLACED_REFERENCE, &path, "a reference cannot stand here", help);
                None
            }
        }
    }
}
