//! Finds the references in a command.
//!
//! `@@` is replaced by `@` first, so that all later stages see the same text as bash: `@@(a|b)` becomes an extended
//! glob, and `$@@` becomes `$@`.

use alloc::{string::String, vec::Vec};

use crate::reference;

/// The text of a command with the positions of its references.
#[derive(Debug)]
pub(super) struct Marked {
    /// The command with `@` for each `@@`; references are still in it.
    pub(super) text: String,
    /// The references in text order, without overlaps.
    pub(super) marks: Vec<Mark>,
}

/// The position of a reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// Offset of its `@` in the text, in bytes.
    pub(super) offset: usize,
    /// Offset of its end in the text. The reference consists of ASCII alphanumerics and `@_-.[]` only.
    pub(super) end: usize,
    /// Offset of its `@` in the original command.
    pub(super) offset_in_command: usize,
}

impl Marked {
    /// Finds the references whose names are known. `@@` is paired from the left.
    pub(super) fn read(command: &str, is_known: impl Fn(&str) -> bool) -> Self {
        let mut marked = Self { text: String::with_capacity(command.len()), marks: Vec::new() };
        let mut at = 0;
        while let Some(before) = command[at..].find('@') {
            let sign = at + before;
            marked.text.push_str(&command[at..sign]);
            at = sign + 1;
            if command[at..].starts_with('@') {
                at += 1;
            } else if let Some((name, all)) = reference::length(&command[at..])
                && is_known(&command[at..at + name])
            {
                let offset = marked.text.len();
                marked.marks.push(Mark { offset, end: offset + 1 + all, offset_in_command: sign });
                marked.text.push_str(&command[sign..at + all]);
                at += all;
                continue;
            }
            marked.text.push('@');
        }
        marked.text.push_str(&command[at..]);
        marked
    }

    /// Returns a reference without its `@`.
    pub(super) fn reference(&self, mark: &Mark) -> &str {
        &self.text[mark.offset + 1..mark.end]
    }
}
