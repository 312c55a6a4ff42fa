//! Warns about references in the syntax of other languages, such as `{{fetch.items}}` or `${fetch.items}`. They are
//! plain text here.

use alloc::{
    format,
    string::{String, ToString},
};

use super::{help::Help, references::Reader, suggest::adapt::flow};
use crate::{
    diagnostic,
    document::{Path, Segment},
    fix::Fix,
    reference,
    secret::{PLACES, PREFIX, SECRET},
    value::{Map, Value},
};

/// Opening and closing delimiters of references in other languages.
const FRAMES: [(&str, &str); 5] = [("${{", "}}"), ("${", "}"), ("={{", "}}"), ("{{", "}}"), ("@{", "}")];

impl Reader<'_, '_> {
    /// Warns if delimiters of another language enclose a known name. Such a text would be passed on unchanged.
    pub(super) fn check_frames(&mut self, value: &Value, path: &Path) {
        match value {
            Value::Text(text) => self.check_frames_of_text(text, path),
            Value::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.check_frames(item, &path.index(at)));
            }
            Value::Map(map) => map.iter().for_each(|(key, field)| self.check_frames(field, &path.key(key))),
            _ => {}
        }
    }

    fn check_frames_of_text(&mut self, text: &str, path: &Path) {
        if let Some(rest) = text.strip_prefix("$.").filter(|rest| is_reference(rest)) {
            let message = format!("`$.{rest}` is text here, and is given as it stands");
            let meant = format!("@input.{rest}");
            let help = Help::new(format!("write `{meant}` if the input is meant"), Fix::replace(path, meant.as_str()));
            return self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
        }
        for (begin, end) in FRAMES {
            for (at, _) in text.match_indices(begin) {
                if let Some(frame) = self.frame(text, at, begin, end) {
                    return self.warn_of_frame(text, &frame, path);
                }
            }
        }
        let is_expression = text.starts_with("${{") || text.starts_with("{{") || text.starts_with("={{");
        let secret = self.secret_of_expression(text, path);
        if is_expression && text.ends_with("}}") && text.matches("{{").count() == 1 || secret.is_some() {
            let message = "an expression in braces is text here, and is given as it stands";
            if let Some(help) = secret.or_else(|| self.of_expression(text, path)) {
                return self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
            }
            let help = "refer to a value as `@step.path`, `@input.path` or `@vars.name`, and compute in a `code` step";
            self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
        }
    }

    /// Returns the help for `${{ secrets.NAME }}` where a secret may stand, with a text before it.
    fn secret_of_expression(&self, text: &str, path: &Path) -> Option<Help> {
        let (prefix, inner) = text.strip_suffix("}}")?.split_once("{{")?;
        let prefix = prefix.strip_suffix(['$', '=']).unwrap_or(prefix);
        let name = inner.trim().strip_prefix("secrets.").filter(|name| reference::is_name(name))?;
        let holder = path.parent();
        let Some(Segment::Key(parameter)) = holder.segments().last() else { return None };
        let step = self.report.document().part(&holder.parent())?;
        let kind = step.get("type").and_then(Value::as_text);
        if !PLACES.iter().any(|(of, place)| kind == Some(*of) && **parameter == **place) {
            return None;
        }
        let mut secret = Map::from([(SECRET.into(), name.into())]);
        if !prefix.is_empty() {
            secret.insert(PREFIX.into(), prefix.into());
        }
        let secret = Value::Map(secret);
        Some(Help::new(format!("write {}", flow(&secret)), Fix::replace(path, secret)))
    }

    /// Returns the help for an expression that is one value of another tool.
    fn of_expression(&self, text: &str, path: &Path) -> Option<Help> {
        let inner = text.trim_start_matches(['$', '=']).strip_prefix("{{")?.strip_suffix("}}")?.trim();
        let whole = |step: u32, rest: &str| {
            let id = &self.outline.entries[step as usize].id;
            let meant = format!("@{id}{rest}");
            (reference::is_name(id) && is_reference(&meant[1..])).then(|| Help::value(path, meant.as_str()))
        };
        if let Some((_, call)) = inner.split_once("xcom_pull(") {
            let name = call.split(['\'', '"']).nth(1).filter(|_| call.contains("task_ids") && call.ends_with(')'))?;
            let step = *self.outline.names.get(name)?;
            let kind = self.outline.entries[step as usize].kind.map_or("", |kind| kind.name);
            return whole(step, if kind == "bash" { ".stdout" } else { "" });
        }
        if let Some(rest) = inner.strip_prefix("$json") {
            return whole(self.step_before()?, rest);
        }
        let (root, rest) = inner.split_once('.')?;
        let is_context = ["github", "gitlab", "trigger", "event", "payload"].contains(&root) && is_reference(rest);
        is_context.then(|| format!("write `@input.{rest}` if the start of an execution gives it").into())
    }

    /// Returns the only step that leads to this one: the step before it, or the source of its edge.
    pub(super) fn step_before(&self) -> Option<u32> {
        let block = &self.outline.blocks[self.entry().block as usize];
        let place = block.steps.binary_search(&self.number).ok()?;
        match self.edges.filter(|_| self.entry().block == 0) {
            None => block.steps.get(place.checked_sub(1)?).copied(),
            Some(edges) => match edges.incoming.get(place)?.as_slice() {
                [only] => block.steps.get(only.from as usize).copied(),
                _ => None,
            },
        }
    }

    /// Reads delimiters at a place, if they enclose a known name.
    fn frame(&self, text: &str, at: usize, begin: &'static str, end: &'static str) -> Option<Frame> {
        let inside = text[at + begin.len()..].trim_start();
        let body = inside.strip_prefix('@').unwrap_or(inside);
        let (name, all) = reference::length(body)?;
        let behind = body[all..].trim_start().strip_prefix(end)?;
        let written = &body[..all];
        let known = self.root_of(&body[..name]).is_some();
        let meant = if known { Some(written.to_string()) } else { self.translated(written) };
        let shown = format!("{begin}{written}{end}");
        Some(Frame { shown, meant: meant?, at, behind: text.len() - behind.len() })
    }

    fn warn_of_frame(&mut self, text: &str, frame: &Frame, path: &Path) {
        let Frame { shown, meant, at, behind } = frame;
        let message = format!("`{shown}` is text here, and is given as it stands");
        let rest = &text[*behind..];
        // A letter or a dot behind the reference would become a part of it.
        let is_apart = !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "_-.[".contains(next));
        let fixed = format!("{}@{meant}{rest}", &text[..*at]);
        let fix = if is_apart { Fix::replace(path, fixed.as_str()) } else { Fix::default() };
        let help = Help::new(format!("write `@{meant}` if the value is meant"), fix);
        self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
    }
}

/// A reference between delimiters of another language.
struct Frame {
    /// The text with its delimiters.
    shown: String,
    /// The reference that means the same, without its `@`.
    meant: String,
    /// The bytes before it.
    at: usize,
    /// The bytes up to its end.
    behind: usize,
}

fn is_reference(text: &str) -> bool {
    reference::length(text).is_some_and(|(_, all)| all == text.len())
}
