//! The cursor over a script, and words: quotes, `$`, backslashes, comments.
//!
//! The reader knows a part of bash's grammar, the part that all shells read alike. All else is an error ([`Lost`]): then
//! no reference of the script is accepted.

use alloc::{vec, vec::Vec};

use super::{
    Place,
    flow::is_digits,
    here_document::HereDocument,
    marks::{Mark, Marked},
    syntax::{Parsed, Piece, Word, is_name_byte},
};
use crate::limits::SCRIPT_DEPTH_MAX;

/// How a reference is written where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Outside quotes.
    Bare,
    /// Inside double quotes.
    Double,
    /// Inside single quotes.
    Single,
}

/// What is decided about one mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can stand there.
    Quoted(Form),
    /// It cannot.
    Refused(Place),
}

/// A place that cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) at: usize,
    pub(super) place: Place,
}

pub(super) type Read<T> = Result<T, Lost>;

/// The cursor.
pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    marks: &'a [Mark],
    /// The number of the next mark.
    pub(super) next_mark: usize,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) at: usize,
    depth: usize,
    /// How many substitutions are open.
    pub(super) substitutions: usize,
    /// Here-documents whose lines come after this one.
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

    /// Reads a script to its end.
    pub(super) fn script(&mut self) -> Read<Parsed> {
        let is_control = |byte: &u8| (*byte < b' ' && !b"\t\n".contains(byte)) || *byte == 0x7f;
        if let Some(at) = self.text.iter().position(is_control) {
            return Err(Lost { at, place: Place::Unclear });
        }
        // The variables of references are the engine's, and reading them by name would go around what is judged here.
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

    /// Reads something one level further down.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= SCRIPT_DEPTH_MAX {
            return self.lost(Place::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads a word up to the next separator outside quotes. There is at least one byte of it.
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

    /// The length of a word `{1..5}` at the present place.
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

    /// `~` outside quotes: the user's folder at the front of a word, and behind `=` and `:`, where bash takes what is
    /// before it for an assignment. `~+` and `~-` are folders that a value may have named.
    fn tilde(&mut self, word: &mut Word, begin: usize) -> Read<()> {
        let is_front = self.at == begin;
        let is_behind = self.at > begin + 1 && matches!(self.text[self.at - 1], b'=' | b':');
        match self.peek(1) {
            _ if !is_front && !is_behind => self.literal(word),
            // The rest of such a name is quoted, so that there is none.
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

    /// Takes the mark at the present place, if there is one.
    pub(super) fn mark(&mut self, word: &mut Word, form: Form) -> bool {
        let Some(mark) = self.mark_at(self.at) else { return false };
        self.verdicts[self.next_mark] = Verdict::Quoted(form);
        self.next_mark += 1;
        self.at = mark.end;
        word.pieces.push(Piece::Mark);
        true
    }

    /// A backslash outside quotes and the byte that it makes literal.
    fn backslash(&mut self, word: &mut Word) -> Read<()> {
        if self.mark_at(self.at + 1).is_some() {
            return self.lost(Place::AfterBackslash);
        }
        word.is_quoted = true;
        match self.peek(1) {
            None => self.lost(Place::Unterminated),
            // Shells differ in how the two sides are put together.
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
                // It escapes nothing here, but an author who writes `\@` means something by it.
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

    /// `$` and what belongs to it.
    fn dollar(&mut self, word: &mut Word, is_double: bool) -> Read<()> {
        if self.mark_at(self.at + 1).is_some() {
            return self.lost(Place::AfterDollar);
        }
        match self.peek(1) {
            Some(b'\'') if !is_double => return self.escaped_string(word),
            Some(b'"') if !is_double => return self.lost(Place::TranslatedString),
            Some(b'[') => return self.lost(Place::Arithmetic),
            // In two lines it may still be the beginning of an expansion.
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

    /// The name of a variable at the present place; empty if there is none.
    pub(super) fn name(&mut self) -> Vec<u8> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_vec()
    }

    /// `$'…'`, which no reference can stand in.
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

    /// `${…}`: a name, and perhaps an operator with a literal operand. Operators that evaluate a value (`!`, `[`, `@P`,
    /// an offset that is no number) or assign are refused.
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
        word.pieces.push(match name[0] {
            _ if is_length => Piece::Count,
            b'0'..=b'9' => Piece::Opaque,
            _ => Piece::Variable(name),
        });
        Ok(())
    }

    /// From the opening parentheses, which are `length` bytes, to `))`. Numbers, operators and names are accepted; the
    /// names are given back, as bash evaluates their values.
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
                // What an expansion stands next to becomes one name with it.
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

    /// Spaces, tabs and lines that go on.
    pub(super) fn blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t'), _) => self.at += 1,
                (Some(b'\\'), Some(b'\n')) if self.at > 0 && b" \t".contains(&self.text[self.at - 1]) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Spaces, newlines and comments.
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

    /// From `#` to the end of the line, which stays.
    pub(super) fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.skip(self.at + length, Place::Comment);
    }

    /// Goes to a place and refuses the marks on the way.
    pub(super) fn skip(&mut self, end: usize, place: Place) {
        while self.marks.get(self.next_mark).is_some_and(|mark| mark.offset < end) {
            self.verdicts[self.next_mark] = Verdict::Refused(place);
            self.next_mark += 1;
        }
        self.at = end.min(self.text.len());
    }

    /// Takes the parenthesis that closes what began at a place.
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

    /// The next mark if it begins at a place.
    pub(super) fn mark_at(&self, at: usize) -> Option<Mark> {
        self.marks.get(self.next_mark).copied().filter(|mark| mark.offset == at)
    }

    /// Whether the next mark begins before a place.
    pub(super) fn mark_before(&self, at: usize) -> bool {
        self.marks.get(self.next_mark).is_some_and(|mark| mark.offset < at)
    }

    /// The byte that is `ahead` of the present one.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }
}

/// Whether the operator of a `${…}` and its operand evaluate nothing, and hold nothing but literal text.
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
