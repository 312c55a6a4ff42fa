//! Here-documents: `<<`, the word that ends one, and the lines that belong to it.

use alloc::vec::Vec;

use super::{
    Place,
    lexer::Lexer,
    nesting::{Kind, Stage},
};

/// A here-document whose lines are still to come.
#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends it.
    delimiter: Vec<u8>,
    /// Whether tabs at the front of its lines do not count.
    strips_tabs: bool,
    /// Whether a backslash at the end of a line means nothing in it.
    is_quoted: bool,
    /// How many substitutions it was begun in.
    depth: usize,
}

impl Lexer<'_> {
    /// Reads the word after `<<`, which is `length` bytes long.
    pub(super) fn begin_here_document(&mut self, length: usize, strips_tabs: bool) {
        let mut end = self.at + length;
        while matches!(self.text.get(end), Some(b' ' | b'\t')) {
            end += 1;
        }
        let Some((delimiter, is_quoted, end)) = self.delimiter(end) else { return self.lose(Place::Unclear) };
        let marks = self.marks_met();
        self.skip(end, Place::HereDocument);
        if self.marks_met() > marks || self.top().redirect.is_some() {
            return self.lose(Place::HereDocument);
        }
        self.refuse_substitution();
        let depth = self.substitutions();
        self.pending.push(HereDocument { delimiter, strips_tabs, is_quoted, depth });
        let frame = self.top_mut();
        frame.pipeline.is_open = false;
        if matches!(frame.stage, Stage::Start | Stage::Timed) {
            frame.stage = Stage::Prefix;
        }
    }

    /// Refuses references in a substitution with a here-document: bash 5.2 writes such a command anew before it runs it,
    /// and puts the lines in the wrong place (`$(cat <<E … (( 1 )); …)` becomes a syntax error).
    fn refuse_substitution(&mut self) {
        let Some(first) = self.frames.iter().position(|frame| frame.kind == Kind::Substitution) else { return };
        for frame in &mut self.frames[first..] {
            frame.refused.get_or_insert(Place::Unclear);
        }
        let first_mark = self.frames[first].first_mark;
        self.refuse(first_mark..self.marks_met(), Place::Unclear);
    }

    /// The delimiter that begins at a place, whether any of it is quoted, and where it ends; `None` if it is none that
    /// all shells read alike.
    fn delimiter(&self, begin: usize) -> Option<(Vec<u8>, bool, usize)> {
        let mut delimiter = Vec::new();
        let mut is_quoted = false;
        let mut at = begin;
        while let Some(byte) = self.text.get(at).copied() {
            match byte {
                b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' => break,
                b'$' | b'`' => return None,
                b'\\' => {
                    let next = *self.text.get(at + 1)?;
                    delimiter.push(next);
                    is_quoted = true;
                    at += 1;
                }
                b'\'' | b'"' => {
                    let rest = &self.text[at + 1..];
                    let length = rest.iter().position(|next| *next == byte)?;
                    if rest[..length].iter().any(|next| b"$`\\".contains(next)) {
                        return None;
                    }
                    delimiter.extend_from_slice(&rest[..length]);
                    is_quoted = true;
                    at += length + 1;
                }
                byte => delimiter.push(byte),
            }
            at += 1;
        }
        let is_one_line = !delimiter.contains(&b'\n');
        (at > begin && is_one_line).then_some((delimiter, is_quoted, at))
    }

    /// Skips the lines of the here-documents that were begun on the line before.
    pub(super) fn here_documents(&mut self) {
        let depth = self.substitutions();
        if self.pending.iter().any(|document| document.depth != depth) {
            // Whether the lines come inside the substitution or after it depends on the shell.
            return self.lose(Place::Unclear);
        }
        for document in core::mem::take(&mut self.pending) {
            self.here_document(&document);
        }
    }

    fn here_document(&mut self, document: &HereDocument) {
        let mut begin = self.at;
        while begin < self.text.len() {
            let (line, end) = self.line(begin, document.is_quoted);
            let line = if document.strips_tabs { trim_tabs(&line) } else { &line };
            if line == document.delimiter {
                return self.skip(end, Place::HereDocument);
            }
            if document.depth > 0 && line.starts_with(&document.delimiter) && line.contains(&b')') {
                // Some shells take this for the end of the here-document and of the substitution.
                return self.lose(Place::Unclear);
            }
            begin = end;
        }
        self.skip(self.text.len(), Place::HereDocument);
    }

    /// One line of a here-document without its end, and where the next begins.
    fn line(&self, begin: usize, is_quoted: bool) -> (Vec<u8>, usize) {
        let mut line = Vec::new();
        let mut at = begin;
        while let Some(byte) = self.text.get(at).copied() {
            at += 1;
            match (byte, self.text.get(at)) {
                (b'\n', _) => break,
                (b'\\', Some(b'\n')) if !is_quoted => at += 1,
                (b'\\', Some(next)) if !is_quoted => {
                    line.extend([byte, *next]);
                    at += 1;
                }
                _ => line.push(byte),
            }
        }
        (line, at)
    }

    /// How many substitutions are open.
    fn substitutions(&self) -> usize {
        self.frames.iter().filter(|frame| frame.kind == Kind::Substitution).count()
    }
}

fn trim_tabs(line: &[u8]) -> &[u8] {
    let tabs = line.iter().take_while(|byte| **byte == b'\t').count();
    &line[tabs..]
}
