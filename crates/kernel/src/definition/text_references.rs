//! Warns about text that looks like a reference with a typing error, as `@biuld.stdout` in a script. An unknown name inside
//! of a text is text.

use alloc::{format, string::String};

use super::{help::Help, references::Reader, report::named, suggest::nearest::nearest};
use crate::{
    diagnostic,
    document::Path,
    reference::{self, RESERVED_NAMES},
    value::Value,
};

/// The shortest name without a path that is compared: shorter ones are similar to too many words.
const BARE_NAME_MIN: usize = 4;

impl Reader<'_, '_> {
    /// Warns about unknown names in the texts of a value. A text that is one reference is an error elsewhere.
    pub(super) fn check_texts(&mut self, value: &Value, path: &Path) {
        match value {
            Value::Text(text) if text.contains('@') && !reference::is_whole(value) => self.check_text(text, path),
            Value::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.check_texts(item, &path.index(at)));
            }
            Value::Map(map) => map.iter().for_each(|(key, field)| self.check_texts(field, &path.key(key))),
            _ => {}
        }
    }

    /// Warns about unknown names in a text.
    pub(super) fn check_text(&mut self, text: &str, path: &Path) {
        let mut next = 0;
        while let Some(at) = text[next..].find('@').map(|at| next + at) {
            let rest = &text[at + 1..];
            next = at + 1;
            if rest.starts_with('@') {
                next += 1;
                continue;
            }
            let Some((name, all)) = reference::length(rest) else { continue };
            next += all;
            // An address such as `ann@example.com` has a letter before the sign.
            let before = text[..at].chars().next_back();
            let is_word = before.is_some_and(|before| before.is_alphanumeric() || "._-+%".contains(before));
            if !is_word && self.root_of(&rest[..name]).is_none() {
                self.check_unknown(&rest[..all], name, path);
            }
        }
    }

    fn check_unknown(&mut self, written: &str, name: usize, path: &Path) {
        let (name, rest) = written.split_at(name);
        if matches!(name, "item" | "index") {
            let message = format!("`@{written}` is text here: {} is known only inside of a loop", named(name));
            let help = format!("put the step into a loop, or write `@@{written}` if it is meant as text");
            return self.report.warning(diagnostic::REFERENCE_IS_TEXT, path, message, help);
        }
        let Some(meant) = self.nearest_root(name).filter(|_| !rest.is_empty() || name.len() >= BARE_NAME_MIN) else {
            return;
        };
        let message = format!("`@{written}` is text here: no step or name is called {}", named(name));
        let fix = self.report.reworded(path, written, &format!("{meant}{rest}"));
        let help = Help::new(format!("write `@{meant}{rest}`, or `@@{written}` if it is meant as text"), fix);
        self.report.warning(diagnostic::REFERENCE_IS_TEXT, path, message, help);
    }

    /// Returns the known name that is most similar to an unknown one.
    fn nearest_root(&mut self, name: &str) -> Option<String> {
        if !self.report.may_compare() {
            return None;
        }
        let reserved = RESERVED_NAMES.into_iter().filter(|name| self.root_of(name).is_some());
        let steps = self.outline.names.keys().filter(|id| reference::is_name(id)).map(String::as_str);
        nearest(name, reserved.chain(steps)).map(String::from)
    }
}
