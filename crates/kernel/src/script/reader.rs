//! The lexer: a cursor over a script that reads words, quotes, expansions, backslashes and comments.
//!
//! It accepts the part of bash's grammar that all shells parse alike. Anything else is a parse error ([`Lost`]), and
//! then no reference of the script is accepted.

use alloc::{vec, vec::Vec};

use super::{
    here_document::HereDocument,
    marks::{Mark, Marked},
    place::Place,
    syntax::{Check, Parsed, Piece, Word, is_digits, is_name_byte},
};
use crate::limits::SCRIPT_DEPTH_MAX;

/// The quoting around a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Outside of quotes.
    Bare,
    /// Inside double quotes.
    Double,
    /// Inside single quotes.
    Single,
}

/// The decision about one reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted.
    Quoted(Form, Option<Check>),
    /// Rejected.
    Refused(Place),
}

/// A parse error: the offset and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) at: usize,
    pub(super) place: Place,
}

pub(super) type Read<T> = Result<T, Lost>;

/// The cursor over a script.
pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    marks: &'a [Mark],
    /// The index of the next reference.
    pub(super) next_mark: usize,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) at: usize,
    depth: usize,
    /// The number of open command substitutions.
    pub(super) substitutions: usize,
    /// Here-documents whose lines come after the current line.
    pub(super) pending: Vec<HereDocument>,
    pub(super) documents: Vec<Word>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(marked: &'a Marked) -> Self {
        Self {
            text: marked.text.as_bytes(),
            marks: &marked.marks,
            next_mark: 0,
            verdicts: vec![Verdict::Refused(Place::Beside); marked.marks.len()],
            at: 0,
            depth: 0,
            substitutions: 0,
            pending: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// Reads a whole script.
    pub(super) fn script(&mut self) -> Read<Parsed> {
        let is_control = |byte: &u8| (*byte < b' ' && !b"\t\n".contains(byte)) || *byte == 0x7f;
        if let Some(at) = self.text.iter().position(is_control) {
            return Err(Lost { at, place: Place::Unclear });
        }
        // The variables of references belong to the engine. A script that names one directly would bypass the checks.
        let own = super::VARIABLE_PREFIX.trim_end_matches('_').as_bytes();
        if let Some(at) = self.text.windows(own.len()).position(|part| part == own) {
            return Err(Lost { at, place: Place::Unclear });
        }
        let list = self.list()?;
        match self.at < self.text.len() || !self.pending.is_empty() {
            true => self.lost(Place::Unclear),
            false => Ok(Parsed { list, documents: core::mem::take(&mut self.documents) }),
        }
    }

    /// Reads a construct one nesting level down.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= SCRIPT_DEPTH_MAX {
            return self.lost(Place::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads a word up to the next separator outside of quotes. The caller ensures that the word is not empty.
    pub(super) fn word(&mut self) -> Read<Word> {
        let mut word = Word { marks: self.next_mark..self.next_mark, ..Word::default() };
        let (begin, mut has_bracket) = (self.at, false);
        while let Some(byte) = self.peek(0) {
            if self.mark(&mut word, Form::Bare) {
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => self.backslash(&mut word)?,
                b'\'' => self.single_quotes(&mut word)?,
                b'"' => self.double_quotes(&mut word)?,
                b'`' => return self.lost(Place::Backquotes),
                b'$' => self.dollar(&mut word, false)?,
                b'~' => self.tilde(&mut word, begin)?,
                b'{' if self.peek(1) == Some(b'}') => {
                    self.literal(&mut word);
                    self.literal(&mut word);
                }
                b'{' if self.at == begin && self.range().is_some() => {
                    self.at += self.range().unwrap_or_default();
                    word.pieces.push(Piece::Count);
                    (word.is_split, word.is_glob) = (true, true);
                }
                b'{' | b'}' => return self.lost(Place::Unclear),
                b'*' | b'?' => {
                    word.is_glob = true;
                    self.literal(&mut word);
                }
                b'[' | b']' => {
                    word.is_glob |= byte == b']' && has_bracket;
                    has_bracket |= byte == b'[';
                    self.literal(&mut word);
                }
                _ => self.literal(&mut word),
            }
        }
        word.marks.end = self.next_mark;
        Ok(word)
    }

    /// Returns the length of a range such as `{1..5}` at the cursor.
    fn range(&self) -> Option<usize> {
        let rest = self.text[self.at..].strip_prefix(b"{")?;
        let length = rest.iter().position(|byte| *byte == b'}')?;
        let is_end = rest.get(length + 1).is_none_or(|byte| b" \t\n;&|)<>".contains(byte));
        let is_range = rest[..length].split(|byte| *byte == b'.').enumerate().all(|(at, part)| match at {
            0 | 2 => is_digits(part),
            1 => part.is_empty(),
            _ => false,
        });
        (is_end && is_range && rest[..length].contains(&b'.')).then_some(length + 2)
    }

    /// Reads `~` outside of quotes: the home folder at the start of a word, and after `=` or `:`, where bash may treat
    /// the word as an assignment. `~+` and `~-` are rejected, because a value may have selected those folders.
    fn tilde(&mut self, word: &mut Word, begin: usize) -> Read<()> {
        let is_front = self.at == begin;
        let is_behind = self.at > begin + 1 && matches!(self.text[self.at - 1], b'=' | b':');
        match self.peek(1) {
            _ if !is_front && !is_behind => self.literal(word),
            // With a quoted rest there is no tilde expansion.
            Some(b'"' | b'\'' | b'$' | b'\\') => self.literal(word),
            _ if self.mark_at(self.at + 1).is_some() => self.literal(word),
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'/' | b':') => {
                self.at += 1;
                word.pieces.push(Piece::Home);
            }
            Some(_) => return self.lost(Place::Unclear),
        }
        Ok(())
    }

    /// Consumes the reference at the cursor; returns false if there is none.
    pub(super) fn mark(&mut self, word: &mut Word, form: Form) -> bool {
        let Some(mark) = self.mark_at(self.at) else { return false };
        self.verdicts[self.next_mark] = Verdict::Quoted(form, None);
        self.next_mark += 1;
        self.at = mark.end;
        word.pieces.push(Piece::Mark(self.next_mark - 1));
        true
    }

    /// Reads a backslash outside of quotes and the byte that it escapes.
    fn backslash(&mut self, word: &mut Word) -> Read<()> {
        if self.mark_at(self.at + 1).is_some() {
            return self.lost(Place::AfterBackslash);
        }
        word.is_quoted = true;
        match self.peek(1) {
            None => self.lost(Place::Unterminated),
            // Shells join continued lines differently.
            Some(b'\n') => self.lost(Place::Unclear),
            Some(_) => {
                self.at += 1;
                self.literal(word);
                Ok(())
            }
        }
    }

    fn single_quotes(&mut self, word: &mut Word) -> Read<()> {
        let begin = self.at;
        word.is_quoted = true;
        self.at += 1;
        loop {
            if self.mark(word, Form::Single) {
                continue;
            }
            match self.peek(0) {
                None => return Err(Lost { at: begin, place: Place::Unterminated }),
                Some(b'\'') => break,
                // A backslash escapes nothing here, but an author who writes `\@` expects it to.
                Some(b'\\') if self.mark_at(self.at + 1).is_some() => return self.lost(Place::AfterBackslash),
                Some(b'\n') if !self.pending.is_empty() => return self.lost(Place::Unclear),
                Some(_) => self.literal(word),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Read<()> {
        let begin = self.at;
        word.is_quoted = true;
        self.at += 1;
        loop {
            if self.mark(word, Form::Double) {
                continue;
            }
            match self.peek(0) {
                None => return Err(Lost { at: begin, place: Place::Unterminated }),
                Some(b'"') => break,
                Some(b'`') => return self.lost(Place::Backquotes),
                Some(b'$') => self.dollar(word, true)?,
                Some(b'\n') if !self.pending.is_empty() => return self.lost(Place::Unclear),
                Some(b'\\') if self.mark_at(self.at + 1).is_some() => return self.lost(Place::AfterBackslash),
                Some(b'\\') => match self.peek(1) {
                    Some(b'$' | b'`' | b'"' | b'\\') => {
                        self.at += 1;
                        self.literal(word);
                    }
                    Some(b'\n') => return self.lost(Place::Unclear),
                    _ => self.literal(word),
                },
                Some(_) => self.literal(word),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads an expansion that starts with `$`.
    fn dollar(&mut self, word: &mut Word, is_double: bool) -> Read<()> {
        if self.mark_at(self.at + 1).is_some() {
            return self.lost(Place::AfterDollar);
        }
        match self.peek(1) {
            Some(b'\'') if !is_double => return self.escaped_string(word),
            Some(b'"') if !is_double => return self.lost(Place::TranslatedString),
            Some(b'[') => return self.lost(Place::Arithmetic),
            // An expansion may continue on the next line.
            Some(b'\\') if self.peek(2) == Some(b'\n') => return self.lost(Place::Unclear),
            Some(b'(') if self.peek(2) == Some(b'(') => {
                let names = self.arithmetic(3)?;
                word.pieces.push(Piece::Number(names));
            }
            Some(b'(') => {
                let begin = self.at;
                self.at += 2;
                self.substitutions += 1;
                let list = self.deeper(Self::list)?;
                self.substitutions -= 1;
                self.close(begin)?;
                word.pieces.push(Piece::Output(list));
            }
            Some(b'{') => self.parameter(word, is_double)?,
            Some(b'?' | b'$' | b'#' | b'!') => {
                self.at += 2;
                word.pieces.push(Piece::Count);
            }
            Some(b'-' | b'0'..=b'9') => {
                self.at += 2;
                word.pieces.push(Piece::Opaque);
            }
            Some(b'@' | b'*') => {
                self.at += 2;
                word.pieces.push(Piece::Opaque);
                word.is_split = true;
            }
            Some(byte) if is_name_byte(byte) => {
                self.at += 1;
                let name = self.name();
                word.pieces.push(Piece::Variable(name));
            }
            _ => {
                self.literal(word);
                return Ok(());
            }
        }
        word.is_split |= !is_double;
        Ok(())
    }

    /// Reads the name of a variable; empty if there is none.
    pub(super) fn name(&mut self) -> Vec<u8> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_vec()
    }

    /// Reads `$'…'`, in which no reference is accepted.
    fn escaped_string(&mut self, word: &mut Word) -> Read<()> {
        let begin = self.at;
        self.at += 2;
        loop {
            match self.peek(0) {
                None => return Err(Lost { at: begin, place: Place::Unterminated }),
                Some(b'\n') if !self.pending.is_empty() => return self.lost(Place::Unclear),
                Some(b'\'') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        if self.mark_before(self.at) {
            return Err(Lost { at: begin, place: Place::EscapedString });
        }
        word.is_quoted = true;
        word.pieces.push(Piece::Opaque);
        Ok(())
    }

    /// Reads `${…}`: a name and an optional operator with a literal operand. Rejects operators that assign or evaluate
    /// a value (`!`, `[`, `@P`, an offset that is not a number).
    fn parameter(&mut self, word: &mut Word, is_double: bool) -> Read<()> {
        let begin = self.at;
        let lost = Err(Lost { at: begin, place: Place::ParameterExpansion });
        self.at += 2;
        let is_length = self.peek(0) == Some(b'#');
        self.at += usize::from(is_length);
        let name = self.name();
        let rest = &self.text[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'}') else { return lost };
        let operand = &rest[..length];
        let is_plain = is_operand(operand) && (!is_length || operand.is_empty());
        self.at += length + 1;
        if !is_plain || name.is_empty() || self.mark_before(self.at) {
            return lost;
        }
        word.is_glob |= !is_double && operand.iter().any(|byte| b"*?[".contains(byte));
        let check = match operand {
            [b':', b'?', ..] => Some(Check::Filled),
            b"//:/^" => Some(Check::WithoutColon),
            _ => None,
        };
        word.checked.extend(check.map(|check| (word.pieces.len(), check)));
        word.pieces.push(match name[0] {
            _ if is_length => Piece::Count,
            b'0'..=b'9' => Piece::Opaque,
            _ => Piece::Variable(name),
        });
        Ok(())
    }

    /// Reads an arithmetic expression up to `))`; `length` is that of the opening sequence in bytes. Accepts numbers,
    /// operators and names. Returns the names, because bash evaluates the contents of those variables.
    pub(super) fn arithmetic(&mut self, length: usize) -> Read<Vec<Vec<u8>>> {
        let begin = self.at;
        let lost = Err(Lost { at: begin, place: Place::Arithmetic });
        let mut names = Vec::new();
        let mut open = 0;
        self.at += length;
        loop {
            match self.peek(0) {
                Some(b')') if open == 0 => break,
                Some(b')') => open -= 1,
                Some(b'(') => open += 1,
                // Text directly before an expansion joins it to one name.
                Some(b'$') if self.at > begin + length && is_name_byte(self.text[self.at - 1]) => return lost,
                Some(b'$') if matches!(self.peek(1), Some(b'?' | b'#' | b'$')) => {
                    if self.peek(2).is_some_and(|byte| byte == b'$' || is_name_byte(byte)) {
                        return lost;
                    }
                    self.at += 1;
                }
                Some(b'$') if matches!(self.peek(1), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_')) => {}
                Some(byte) if is_name_byte(byte) => {
                    let name = self.name();
                    if !byte.is_ascii_digit() {
                        names.push(name);
                    }
                    continue;
                }
                Some(byte) if b" +-*/%<>=!&|^~?:,".contains(&byte) => {}
                _ => return lost,
            }
            self.at += 1;
        }
        if self.peek(1) != Some(b')') || self.mark_before(self.at) {
            return lost;
        }
        self.at += 2;
        Ok(names)
    }

    /// Skips spaces, tabs and line continuations.
    pub(super) fn blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t'), _) => self.at += 1,
                (Some(b'\\'), Some(b'\n')) if self.at > 0 && b" \t".contains(&self.text[self.at - 1]) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Skips spaces, newlines and comments.
    pub(super) fn gaps(&mut self) -> Read<()> {
        loop {
            self.blanks();
            match self.peek(0) {
                Some(b'\n') => self.newline()?,
                Some(b'#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment; the newline remains.
    pub(super) fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.skip(self.at + length, Place::Comment);
    }

    /// Moves the cursor forward and rejects the references on the way.
    pub(super) fn skip(&mut self, end: usize, place: Place) {
        while self.marks.get(self.next_mark).is_some_and(|mark| mark.offset < end) {
            self.verdicts[self.next_mark] = Verdict::Refused(place);
            self.next_mark += 1;
        }
        self.at = end.min(self.text.len());
    }

    /// Consumes the parenthesis that closes the construct that started at `begin`.
    pub(super) fn close(&mut self, begin: usize) -> Read<()> {
        match self.peek(0) {
            Some(b')') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => self.lost(Place::Unclear),
            None => Err(Lost { at: begin, place: Place::Unterminated }),
        }
    }

    pub(super) fn lost<T>(&self, place: Place) -> Read<T> {
        Err(Lost { at: self.at, place })
    }

    fn literal(&mut self, word: &mut Word) {
        if let Some(byte) = self.peek(0) {
            word.push(byte);
        }
        self.at += 1;
    }

    /// Returns the next reference if it starts at an offset.
    pub(super) fn mark_at(&self, at: usize) -> Option<Mark> {
        self.marks.get(self.next_mark).copied().filter(|mark| mark.offset == at)
    }

    /// True if the next reference starts before an offset.
    pub(super) fn mark_before(&self, at: usize) -> bool {
        self.marks.get(self.next_mark).is_some_and(|mark| mark.offset < at)
    }

    /// Returns the byte that is `ahead` bytes after the cursor.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }
}

/// True if the operator of a `${…}` and its operand evaluate nothing and contain only literal text.
fn is_operand(operand: &[u8]) -> bool {
    let is_literal = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b" ._-/:+,*?[]^%#=!".contains(byte);
    let is_default = |text: &[u8]| {
        let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
        text.iter().all(is_literal)
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match operand {
        [] => true,
        [b':', b'0'..=b'9', ..] => {
            let mut numbers = operand[1..].splitn(2, |byte| *byte == b':');
            let (offset, length) = (numbers.next().unwrap_or_default(), numbers.next());
            is_number(offset) && length.is_none_or(|text| is_number(text.strip_prefix(b"-").unwrap_or(text)))
        }
        [b':', b' ', b'-', text @ ..] => text.splitn(2, |byte| *byte == b':').all(is_number),
        [b':', b'-' | b'+' | b'?', text @ ..] | [b'-' | b'+' | b'?', text @ ..] => is_default(text),
        [b'/', text @ ..] => {
            let parts = text.split(|byte| *byte == b'\\').enumerate();
            parts.into_iter().all(|(at, part)| (at == 0 || part.starts_with(b"/")) && part.iter().all(is_literal))
        }
        [b'#' | b'%' | b'^' | b',', text @ ..] => text.iter().all(is_literal),
        _ => false,
    }
}
