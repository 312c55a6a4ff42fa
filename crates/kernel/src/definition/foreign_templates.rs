//! Warns about references in the syntax of other languages, such as `{{fetch.items}}` or `${fetch.items}`. They are
//! plain text here.

use alloc::format;

use super::references::Reader;
use crate::{diagnostic, document::Path, reference, value::Value};

/// Opening and closing delimiters of references in other languages.
const FRAMES: [(&str, &str); 3] = [("${", "}"), ("{{", "}}"), ("@{", "}")];

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
        for (begin, end) in FRAMES {
            for (at, _) in text.match_indices(begin) {
                let inside = text[at + begin.len()..].trim_start();
                let body = inside.strip_prefix('@').unwrap_or(inside);
                let Some((name, all)) = reference::length(body) else { continue };
                if !body[all..].trim_start().starts_with(end) || self.root_of(&body[..name]).is_none() {
                    continue;
                }
                let reference = &body[..all];
                let message = format!("`{begin}{reference}{end}` is text here, and is given as it stands");
                let help = format!("write `@{reference}` if the value is meant");
                return self.report.warning(diagnostic::FOREIGN_REFERENCE, path, message, help);
            }
        }
    }
}
