//! Where references stand in a command.
//!
//! `@@` is turned into `@` first, so that everything after this sees the text that bash will see: `@@(a|b)` is an
//! extended glob, `$@@` is all arguments.

use alloc::{string::String, vec::Vec};

use crate::reference;

/// A command's text with the places of its references.
#[derive(Debug)]
pub(super) struct Marked {
    /// The command with `@` for each `@@`, its references still in it.
    pub(super) text: String,
    /// In order, not overlapping.
    pub(super) marks: Vec<Mark>,
}

/// One reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// Where its `@` is in the text, in bytes.
    pub(super) offset: usize,
    /// Where it ends in the text. Between the two are only letters, digits and `@_-.[]`.
    pub(super) end: usize,
    /// Where its `@` was in the command as it was written.
    pub(super) offset_in_command: usize,
}

impl Marked {
    /// Finds the references whose names are known. `@@` counts pairwise from the left.
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

    /// A reference's text without its `@`.
    pub(super) fn reference(&self, mark: &Mark) -> &str {
        &self.text[mark.offset + 1..mark.end]
    }
}
