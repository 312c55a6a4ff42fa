//! Here-documents: `<<`, the delimiter, and the lines.

use alloc::vec::Vec;

use super::{
    place::Place,
    reader::{Form, Lost, Read, Reader},
    syntax::{Piece, Redirect, Word, is_name_byte},
};

/// A here-document whose lines come after the current line.
#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends the document.
    delimiter: Vec<u8>,
    /// True if leading tabs are removed from its lines (`<<-`).
    strips_tabs: bool,
    /// True if nothing is expanded in its lines.
    is_quoted: bool,
    /// The index of the document in [`Reader::documents`].
    number: usize,
}

impl Reader<'_> {
    /// Reads the delimiter of a here-document; the cursor is after `<<`.
    pub(super) fn begin_here_document(&mut self) -> Read<Redirect> {
        let strips_tabs = self.peek(0) == Some(b'-');
        self.at += usize::from(strips_tabs);
        self.blanks();
        let at = self.at;
        let word = self.word()?;
        let is_plain = |text: &[u8]| text.iter().all(|byte| is_name_byte(*byte) || b"-.".contains(byte));
        let Some(delimiter) = word.literal().filter(|text| !text.is_empty() && is_plain(text)) else {
            let place = if word.marks.is_empty() { Place::Unclear } else { Place::HereDocument };
            return Err(Lost { at, place });
        };
        // Bash 5.2 re-serializes a command substitution that contains a here-document before running it, and not always
        // correctly.
        if self.substitutions > 0 {
            return Err(Lost { at, place: Place::Unclear });
        }
        let number = self.documents.len();
        self.pending.push(HereDocument {
            delimiter: delimiter.to_vec(),
            strips_tabs,
            is_quoted: word.is_quoted,
            number,
        });
        self.documents.push(Word::default());
        Ok(Redirect::Document(number))
    }

    /// Reads the end of a line and the here-documents that were started on it.
    pub(super) fn newline(&mut self) -> Read<()> {
        self.at += 1;
        if self.substitutions > 0 && !self.pending.is_empty() {
            return self.lost(Place::Unclear);
        }
        for document in core::mem::take(&mut self.pending) {
            self.here_document(&document)?;
        }
        Ok(())
    }

    fn here_document(&mut self, document: &HereDocument) -> Read<()> {
        let begin = self.at;
        let mut at = begin;
        loop {
            let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) else {
                return Err(Lost { at: begin, place: Place::Unterminated });
            };
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &rest[..length];
            let tabs = line.iter().take_while(|byte| document.strips_tabs && **byte == b'\t').count();
            let end = (at + length + 1).min(self.text.len());
            if line[tabs..] == document.delimiter {
                if !document.is_quoted {
                    self.documents[document.number] = self.expanded(begin, at)?;
                }
                self.skip(end, Place::HereDocument);
                return Ok(());
            }
            at = end;
        }
    }

    /// Reads lines in which bash expands variables. References are accepted: bash does not evaluate their values again.
    /// Other expansions are rejected. The cursor ends after the lines.
    fn expanded(&mut self, begin: usize, end: usize) -> Read<Word> {
        let mut word = Word { marks: self.next_mark..self.next_mark, ..Word::default() };
        let text = self.text;
        let lines = &text[begin..end];
        let mut at = 0;
        while let Some(byte) = lines.get(at) {
            self.at = begin + at;
            if self.mark(&mut word, Form::Double) {
                at = self.at - begin;
                continue;
            }
            let is_mark = self.mark_at(self.at + 1).is_some();
            let lost = Err(Lost { at: begin + at, place: Place::Unclear });
            match (byte, lines.get(at + 1)) {
                (b'\\', _) if is_mark => return self.lost(Place::AfterBackslash),
                (b'$', _) if is_mark => return self.lost(Place::AfterDollar),
                (b'`', _) | (b'\\', Some(b'\n')) | (b'$', Some(b'(' | b'[' | b'@' | b'*' | b'\\')) => return lost,
                (b'\\', _) => at += 1,
                (b'$', Some(next)) => {
                    let braces = usize::from(*next == b'{');
                    let rest = &lines[at + 1 + braces..];
                    let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
                    if braces == 1 && (length == 0 || rest.get(length) != Some(&b'}')) {
                        return lost;
                    }
                    if length > 0 {
                        word.pieces.push(Piece::Variable(rest[..length].to_vec()));
                    }
                    at += length + braces;
                }
                _ => {}
            }
            at += 1;
        }
        self.at = end;
        word.marks.end = self.next_mark;
        Ok(word)
    }
}
