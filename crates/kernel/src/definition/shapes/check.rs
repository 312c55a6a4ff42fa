//! Reports references that leave the shape of their value.
//!
//! It is an error where the engine knows or validates the shape: reading the reference would fail. It is a warning where the
//! shape is a claim (the types of a function, the output of another workflow), and where a schema does not say if there are
//! other properties.

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    Shape, Shapes,
    tables::{FIELDS, IN_TEXT},
    walk::{Astray, Known, Why, part_text},
};
use crate::{
    definition::{
        agents::{is_conversation, is_runner},
        help::Help,
        references::Reader,
        report::named,
        step_work::is_shell_tool,
        suggest::{
            foreign,
            nearest::{known_here, nearest, only_near},
        },
    },
    diagnostic,
    document::Path,
    fix::Fix,
    reference::{Part, Reference, Root},
    value::{Map, Value},
};

impl<'r> Reader<'r, '_> {
    /// Returns the shapes of the definition that is being read.
    pub(super) fn shapes(&self) -> Shapes<'r> {
        Shapes { outline: self.outline }
    }

    /// Warns about the whole output of a step inside of a text, where it becomes JSON.
    pub(in crate::definition) fn check_whole_in_text(&mut self, reference: &Reference, path: &Path) {
        let (Root::Step(target), true) = (reference.root, reference.path.is_empty()) else { return };
        let entry = &self.outline.entries[target as usize];
        let has_own = ["transform", "outputSchema"].iter().any(|key| entry.fields.has(key)) || entry.is_loop();
        let is_shell = |kind| is_shell_tool(self.outline.notation, kind, &entry.fields);
        let kind = entry.kind.map(|kind| if is_shell(kind) { "bash" } else { kind.name });
        let Some((_, field)) = IN_TEXT.into_iter().find(|(name, _)| kind == Some(*name) && !has_own) else { return };
        let has_turns = is_conversation(entry.kind, &entry.fields) || is_runner(entry.kind, &entry.fields);
        if kind == Some("agent") && !has_turns {
            return;
        }
        let message = format!("`{reference}` is the whole result of {}, put into text here as JSON", named(&entry.id));
        let help = format!("write `{reference}.{field}`");
        self.report.warning(diagnostic::WHOLE_RESULT_IN_TEXT, path, message, help);
    }

    /// Reports a path that leaves the shape of its value, or that may lead nowhere.
    pub(in crate::definition) fn check_shape(&mut self, reference: &Reference, path: &Path) {
        if reference.path.is_empty() {
            return;
        }
        match self.shapes().follow(reference, self.number, &mut |_, _| ()) {
            Ok(_) => self.check_presence(reference, path),
            Err(astray) if self.is_in_address(reference, &astray, path) => {
                self.report_address(reference, &astray, path)
            }
            Err(astray) => self.report_astray(reference, &astray, path),
        }
    }

    /// True if the sign of a reference follows a letter or a digit, as in an address of electronic mail.
    fn is_in_address(&self, reference: &Reference, astray: &Astray<'_>, path: &Path) -> bool {
        if let Why::NoField { name, known, .. } = &astray.why
            && nearest(name, self.shapes().known(*known).iter().copied()).is_some()
        {
            return false;
        }
        let text = self.report.part(path).and_then(Value::as_text).unwrap_or_default();
        let before = text.find(&format!("@{}", reference.text)).and_then(|at| text[..at].chars().next_back());
        before.is_some_and(char::is_alphanumeric)
    }

    fn report_address(&mut self, reference: &Reference, astray: &Astray<'_>, path: &Path) {
        let is_certain = match &astray.why {
            Why::NoField { is_certain, .. } | Why::Nothing { is_certain, .. } => *is_certain,
            Why::Unlisted { .. } | Why::Additional { .. } => return,
        };
        let message = format!("`{reference}` leads nowhere, and stands inside of a word");
        let meant = format!("@{}", reference.text);
        let fix = self.report.reworded(path, &reference.text, &meant);
        self.report_path(
            is_certain,
            path,
            message,
            Help::new(format!("write `@{meant}` if it is text, as in an address"), fix),
        );
    }

    fn report_astray(&mut self, reference: &Reference, astray: &Astray<'_>, path: &Path) {
        let at = astray.at;
        let holder = self.holder(reference, at);
        match &astray.why {
            Why::NoField { name, known, is_certain } => {
                let word = if matches!(known, Known::Properties(_)) { "property" } else { "field" };
                let known = self.shapes().known(*known);
                let message = format!("`{reference}`: {holder} has no {word} {}", named(name));
                let help = match self.in_value_of_answer(reference, at, name) {
                    Some(meant) => {
                        Help::new(format!("write `@{meant}`"), self.report.reworded(path, &reference.text, &meant))
                    }
                    None => self.other_field(reference, at, name, &known, path),
                };
                self.report_path(*is_certain, path, message, help);
            }
            Why::Unlisted { name, known } => {
                let known = self.shapes().known(*known);
                let message = format!("`{reference}`: {} is not among the properties of {holder}", named(name));
                let help = match self.report.nearest_name(name, known.iter().copied()) {
                    Some(meant) => self.meant_field(reference, at, meant, path),
                    None if known.is_empty() => "its schema lists no properties".into(),
                    None => format!(
                        "{}; if there are others, write `additionalProperties: true` into its schema",
                        known_here(known)
                    )
                    .into(),
                };
                self.report_path(false, path, message, help);
            }
            Why::Additional { name, known } => {
                let known = self.shapes().known(*known);
                let Some(meant) = self.report.nearest_name(name, known.iter().copied()) else { return };
                let message = format!("`{reference}`: {} is not among the properties of {holder}", named(name));
                let help = self.meant_field(reference, at, meant, path);
                self.report_path(false, path, message, help);
            }
            Why::Nothing { part, kind, is_certain } => {
                let message = format!("`{reference}`: {holder} is of type {kind}, and has no {}", named(part));
                let help = match *kind {
                    "array" => "name an item by its place, as `[0]`, or go through the list with `forEach`",
                    "string" if matches!(reference.root, Root::Step(_)) => {
                        "end the reference before it, or read the text in a `code` step, as `JSON.parse`"
                    }
                    _ => "end the reference before it",
                };
                let fix = self.report.reworded(path, &reference.text, reference.begin(at));
                self.report_path(*is_certain, path, message, Help::new(help, fix));
            }
        }
    }

    /// Returns the reference below `value`, if the answer of an agent has the field there.
    fn in_value_of_answer(&self, reference: &Reference, at: usize, name: &str) -> Option<String> {
        let Root::Step(step) = reference.root else { return None };
        let Shape::Answer(schema, _) = self.shapes().step(step) else { return None };
        let is_listed = at == 0 && schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        is_listed.then(|| format!("{}.value{}", reference.begin(0), &reference.text[reference.begin(0).len()..]))
    }

    /// Returns the JSON type of a field of a step's output, where the type of the step alone says it.
    pub(in crate::definition) fn type_of(&self, reference: &Reference) -> Option<&'static str> {
        let Root::Step(_) = reference.root else { return None };
        match self.shapes().follow(reference, self.number, &mut |_, _| ()) {
            Ok(Shape::Kind(kind)) => Some(kind),
            _ => None,
        }
    }

    fn report_path(&mut self, is_certain: bool, path: &Path, message: String, help: Help) {
        match is_certain {
            true => self.report.error(diagnostic::PATH_NOT_IN_SCHEMA, path, message, help),
            false => self.report.warning(diagnostic::PATH_NOT_IN_SCHEMA, path, message, help),
        }
    }

    /// Describes the value at the first parts of a reference.
    pub(super) fn holder(&self, reference: &Reference, at: usize) -> String {
        match (reference.root, at) {
            (Root::Step(step), 0) => format!("the output of {}", named(&self.outline.entries[step as usize].id)),
            (Root::Input, 0) => "the input".to_string(),
            _ => format!("`@{}`", reference.begin(at)),
        }
    }

    /// Returns the help for a field that an object does not have: a word of another language, the nearest name, or all names.
    fn other_field(&mut self, reference: &Reference, at: usize, name: &str, known: &[&str], path: &Path) -> Help {
        let meant = field_in_other_words(name, reference.path.get(at + 1), known);
        let near =
            || self.report.nearest_name(name, known.iter().copied()).or_else(|| only_near(name, known.iter().copied()));
        match meant.or_else(near) {
            Some("") => {
                let (begin, rest) = (reference.begin(at), rest_of(reference, at));
                let fix = self.report.reworded(path, &reference.text, &format!("{begin}{rest}"));
                Help::new(format!("write `@{begin}{rest}`: a step's name stands for its output"), fix)
            }
            Some(meant) => self.meant_field(reference, at, meant, path),
            None => known_here(known.iter().copied()).into(),
        }
    }

    /// Returns the help that writes another name for one part of a reference.
    fn meant_field(&self, reference: &Reference, at: usize, meant: &str, path: &Path) -> Help {
        Help::new(format!("write {}", named(meant)), self.with_part(reference, at, meant, path))
    }

    /// Returns the fix that writes another name for one part of a reference.
    pub(super) fn with_part(&self, reference: &Reference, at: usize, meant: &str, path: &Path) -> Fix {
        let (begin, rest) = (reference.begin(at), rest_of(reference, at));
        self.report.reworded(path, &reference.text, &format!("{begin}.{meant}{rest}"))
    }

    /// Reports a reference to an undeclared variable: it cannot be given.
    pub(in crate::definition) fn check_declared(&mut self, reference: &Reference, path: &Path) {
        let (Some(declared), Some(Part::Name(name))) = (self.outline.declared.variables, reference.path.first()) else {
            return;
        };
        if declared.contains_key(name) {
            return;
        }
        let message = format!("`{reference}`: {} is none of the variables that are declared", named(name));
        let meant = self.report.nearest_name(name, declared.keys().map(String::as_str)).map(ToOwned::to_owned);
        let help = match meant {
            None => format!("declare it: variables: {{{name}: {{type: string}}}}").into(),
            Some(meant) => Help::new(format!("write `@vars.{meant}`"), self.with_part(reference, 0, &meant, path)),
        };
        self.report.error(diagnostic::UNKNOWN_REFERENCE, path, message, help);
    }
}

impl<'s> Shapes<'s> {
    /// Returns the names of the parts of an object.
    pub(super) fn known(self, known: Known<'s>) -> Vec<&'s str> {
        match known {
            Known::Fields(fields) => fields.iter().map(|(name, _)| *name).collect(),
            Known::Steps(steps) => steps.iter().map(|step| self.outline.entries[*step as usize].id.as_str()).collect(),
            Known::Properties(map) => map.into_iter().flat_map(Map::keys).map(String::as_str).collect(),
        }
    }
}

/// Returns the text of a reference after one of its parts.
fn rest_of(reference: &Reference, at: usize) -> &str {
    &reference.text[reference.begin(at + 1).len().min(reference.text.len())..]
}

/// Returns the field that a word of another language means. It is empty for a word such as `output` before a field of the
/// output, where nothing stands here.
fn field_in_other_words<'k>(name: &str, next: Option<&Part>, known: &[&'k str]) -> Option<&'k str> {
    let is_known = |field: &str| known.contains(&field);
    let is_holder = ["output", "outputs", "result", "data"].contains(&name);
    if is_holder && next.is_some_and(|next| is_known(&part_text(next))) {
        return Some("");
    }
    let mut rows = FIELDS.iter().filter(|(word, _)| foreign::same(word, name));
    rows.find_map(|(_, field)| known.iter().copied().find(|known| known == field))
}
