//! Warns about references in the syntax of other languages, such as `{{fetch.items}}` or `${fetch.items}`. They are
//! plain text here.

use alloc::{
    format,
    string::{String, ToString},
};

use super::{help::Help, references::Reader};
use crate::{diagnostic, document::Path, fix::Fix, reference, value::Value};

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
        if is_expression && text.ends_with("}}") && text.matches("{{").count() == 1 {
            let message = "an expression in braces is text here, and is given as it stands";
            let help = "refer to a value as `@step.path`, `@input.path` or `@vars.name`, and compute in a `code` step";
            self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
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
