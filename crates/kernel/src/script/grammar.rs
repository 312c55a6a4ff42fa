//! The parser: lists, pipelines, commands and redirections.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use super::{
    Place,
    reader::{Lost, Read, Reader},
    syntax::{Assignment, Command, Kind, List, Redirect, Test, Word, is_identifier},
};

/// Words with a special meaning at the start of a command.
const RESERVED: [&[u8]; 21] = [
    b"!",
    b"if",
    b"then",
    b"elif",
    b"else",
    b"fi",
    b"for",
    b"while",
    b"until",
    b"do",
    b"done",
    b"case",
    b"esac",
    b"in",
    b"{",
    b"}",
    b"[[",
    b"function",
    b"select",
    b"time",
    b"coproc",
];

/// Reserved words that end a list.
const CLOSERS: [&[u8]; 8] = [b"then", b"elif", b"else", b"fi", b"do", b"done", b"esac", b"}"];

/// Unary operators of `[[ ]]`.
const UNARY: [&[u8]; 11] = [b"-n", b"-z", b"-e", b"-f", b"-d", b"-s", b"-r", b"-w", b"-x", b"-L", b"-h"];

/// Operators of `[[ ]]` whose operands are arithmetic expressions.
const ARITHMETIC: [&[u8]; 6] = [b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge"];

impl Reader<'_> {
    /// Reads pipelines until the end of the text, a closing parenthesis, `;;`, or a reserved word that closes a
    /// construct.
    pub(super) fn list(&mut self) -> Read<List> {
        let mut list = Vec::new();
        loop {
            self.gaps()?;
            let is_case_end = self.peek(0) == Some(b';') && matches!(self.peek(1), Some(b';' | b'&'));
            let is_closed = self.reserved().is_some_and(|word| CLOSERS.contains(&word));
            if matches!(self.peek(0), None | Some(b')')) || is_case_end || is_closed {
                return Ok(list);
            }
            list.push(self.pipeline()?);
            self.blanks();
            match (self.peek(0), self.peek(1)) {
                (Some(b';'), Some(b';' | b'&')) | (None | Some(b')' | b'\n' | b'#'), _) => {}
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => self.at += 2,
                (Some(b';' | b'&'), _) => self.at += 1,
                _ => return self.lost(Place::Unclear),
            }
        }
    }

    fn pipeline(&mut self) -> Read<Vec<Command>> {
        let mut commands = Vec::new();
        if self.peek(0) == Some(b'!') && matches!(self.peek(1), Some(b' ' | b'\t')) {
            self.at += 1;
            self.blanks();
        }
        loop {
            commands.push(self.command()?);
            self.blanks();
            if self.peek(0) != Some(b'|') || self.peek(1) == Some(b'|') {
                return Ok(commands);
            }
            self.at += if self.peek(1) == Some(b'&') { 2 } else { 1 };
            self.gaps()?;
        }
    }

    /// Returns the reserved word at the cursor.
    fn reserved(&self) -> Option<&'static [u8]> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| b" \t\n;&|()<>".contains(byte)).unwrap_or(rest.len());
        RESERVED.into_iter().find(|word| *word == &rest[..length])
    }

    /// Consumes a required reserved word.
    fn keyword(&mut self, word: &'static [u8]) -> Read<()> {
        self.gaps()?;
        if self.reserved() != Some(word) {
            return self.lost(if self.at < self.text.len() { Place::Unclear } else { Place::Unterminated });
        }
        self.at += word.len();
        Ok(())
    }

    fn command(&mut self) -> Read<Command> {
        let (at, first) = (self.at, self.next_mark);
        let mut redirects = Vec::new();
        let kind = match self.reserved() {
            None if self.peek(0) == Some(b'(') && self.peek(1) == Some(b'(') => Kind::Arithmetic(self.arithmetic(2)?),
            None if self.peek(0) == Some(b'(') => {
                self.at += 1;
                let list = self.deeper(Self::list)?;
                self.close(at)?;
                Kind::Group(vec![list])
            }
            None => self.simple(&mut redirects)?,
            Some(word) => self.deeper(|reader| reader.compound(word))?,
        };
        if !matches!(kind, Kind::Simple { .. }) {
            self.blanks();
            while self.redirect(&mut redirects)? {
                self.blanks();
            }
        }
        Ok(Command { at, marks: first..self.next_mark, kind, redirects, has_input: false, has_output: false })
    }

    fn compound(&mut self, word: &'static [u8]) -> Read<Kind> {
        match word {
            b"{" => {
                self.at += 1;
                let list = self.list()?;
                self.keyword(b"}")?;
                Ok(Kind::Group(vec![list]))
            }
            b"if" => self.conditional(),
            b"while" | b"until" => {
                self.at += word.len();
                let condition = self.list()?;
                self.keyword(b"do")?;
                let body = self.list()?;
                self.keyword(b"done")?;
                Ok(Kind::Group(vec![condition, body]))
            }
            b"for" => self.for_loop(),
            b"case" => self.case(),
            b"[[" => self.test(),
            b"function" => self.lost(Place::Function),
            b"select" | b"time" | b"coproc" => self.lost(Place::Beside),
            _ => self.lost(Place::Unclear),
        }
    }

    fn conditional(&mut self) -> Read<Kind> {
        self.at += 2;
        let mut lists = vec![self.list()?];
        self.keyword(b"then")?;
        lists.push(self.list()?);
        while self.reserved() == Some(b"elif") {
            self.at += 4;
            lists.push(self.list()?);
            self.keyword(b"then")?;
            lists.push(self.list()?);
        }
        if self.reserved() == Some(b"else") {
            self.at += 4;
            lists.push(self.list()?);
        }
        self.keyword(b"fi")?;
        Ok(Kind::Group(lists))
    }

    fn for_loop(&mut self) -> Read<Kind> {
        self.at += 3;
        self.blanks();
        let name = self.name();
        if !is_identifier(&name) {
            return self.lost(Place::Unclear);
        }
        self.keyword(b"in")?;
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.peek(0) {
                Some(b';' | b'\n' | b'#') => break,
                None | Some(b'&' | b'|' | b'(' | b')' | b'<' | b'>') => return self.lost(Place::Unclear),
                Some(_) => words.push(self.word()?),
            }
        }
        self.at += usize::from(self.peek(0) == Some(b';'));
        self.keyword(b"do")?;
        let body = self.list()?;
        self.keyword(b"done")?;
        Ok(Kind::Loop { name, words, body })
    }

    fn case(&mut self) -> Read<Kind> {
        if self.substitutions > 0 {
            // Older shells end the substitution at the parenthesis of a pattern.
            return self.lost(Place::Unclear);
        }
        self.at += 4;
        self.blanks();
        let mut words = vec![self.some_word()?];
        let mut bodies = Vec::new();
        self.keyword(b"in")?;
        loop {
            self.gaps()?;
            if self.reserved() == Some(b"esac") {
                self.at += 4;
                return Ok(Kind::Case { words, bodies });
            }
            self.at += usize::from(self.peek(0) == Some(b'('));
            loop {
                self.blanks();
                words.push(self.some_word()?);
                self.blanks();
                if self.peek(0) != Some(b'|') {
                    break;
                }
                self.at += 1;
            }
            self.close(self.at)?;
            bodies.push(self.list()?);
            match (self.peek(0), self.peek(1), self.peek(2)) {
                (Some(b';'), Some(b';'), Some(b'&')) => self.at += 3,
                (Some(b';'), Some(b';' | b'&'), _) => self.at += 2,
                _ if self.reserved() == Some(b"esac") => {}
                _ => return self.lost(Place::Unterminated),
            }
        }
    }

    /// Reads a word of at least one byte that is not a comment.
    fn some_word(&mut self) -> Read<Word> {
        let at = self.at;
        if self.peek(0) == Some(b'#') {
            return self.lost(Place::Unclear);
        }
        let word = self.word()?;
        if self.at == at { self.lost(Place::Unclear) } else { Ok(word) }
    }

    fn test(&mut self) -> Read<Kind> {
        self.at += 2;
        let mut test = Test::default();
        self.expression(&mut test)?;
        self.blanks();
        if self.reserved_end() {
            self.at += 2;
            return Ok(Kind::Test(test));
        }
        self.lost(Place::Unclear)
    }

    /// True if `]]` is at the cursor.
    fn reserved_end(&self) -> bool {
        let ends = self.peek(2).is_none_or(|byte| b" \t\n;&|)".contains(&byte));
        ends && self.text[self.at..].starts_with(b"]]")
    }

    fn expression(&mut self, test: &mut Test) -> Read<()> {
        loop {
            self.primary(test)?;
            self.blanks();
            match (self.peek(0), self.peek(1)) {
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => self.at += 2,
                _ => return Ok(()),
            }
        }
    }

    fn primary(&mut self, test: &mut Test) -> Read<()> {
        self.blanks();
        while self.peek(0) == Some(b'!') && matches!(self.peek(1), Some(b' ' | b'\t')) {
            self.at += 1;
            self.blanks();
        }
        if self.peek(0) == Some(b'(') {
            let begin = self.at;
            self.at += 1;
            self.deeper(|reader| reader.expression(test))?;
            self.blanks();
            return self.close(begin);
        }
        let at = self.at;
        let word = self.some_word()?;
        if word.bare().is_some_and(|text| UNARY.contains(&text)) {
            self.blanks();
            let operand = self.some_word()?;
            test.words.push(operand);
            return Ok(());
        }
        if word.bare().is_some_and(|text| text.starts_with(b"-") || text.starts_with(b"]")) {
            return Err(Lost { at, place: Place::EvaluatingTest });
        }
        self.blanks();
        self.comparison(word, test)
    }

    /// Reads the rest of a test after its first word.
    fn comparison(&mut self, word: Word, test: &mut Test) -> Read<()> {
        match self.peek(0) {
            Some(b'<' | b'>') if !matches!(self.peek(1), Some(b'<' | b'>' | b'(' | b'&')) => self.at += 1,
            None | Some(b'\n' | b';') => return self.lost(Place::Unterminated),
            Some(b'&' | b'|' | b')') => {
                test.words.push(word);
                return Ok(());
            }
            Some(b'<' | b'>' | b'(') => return self.lost(Place::Unclear),
            Some(_) if self.reserved_end() => {
                test.words.push(word);
                return Ok(());
            }
            Some(_) => {
                let at = self.at;
                let operator = self.some_word()?;
                self.blanks();
                match operator.bare() {
                    Some(b"=" | b"==" | b"!=") => {
                        test.words.push(word);
                        test.patterns.push(self.some_word()?);
                        return Ok(());
                    }
                    Some(b"=~") => {
                        test.words.push(word);
                        return self.regular_expression();
                    }
                    Some(text) if ARITHMETIC.contains(&text) => {
                        let other = self.some_word()?;
                        test.numbers.extend([word, other]);
                        return Ok(());
                    }
                    _ => return Err(Lost { at, place: Place::EvaluatingTest }),
                }
            }
        }
        self.blanks();
        let other = self.some_word()?;
        test.words.extend([word, other]);
        Ok(())
    }

    /// Reads a literal regular expression.
    fn regular_expression(&mut self) -> Read<()> {
        let begin = self.at;
        let lost = Err(Lost { at: begin, place: Place::Unclear });
        let mut open = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t'), _) => break,
                (Some(b'('), _) => open += 1,
                (Some(b')'), _) if open > 0 => open -= 1,
                (Some(b'$'), Some(b' ' | b'\t' | b')' | b'|')) => {}
                (Some(b'\\'), Some(b'.' | b'+' | b'-' | b'*' | b'?' | b'/' | b'(' | b')')) => self.at += 1,
                (Some(byte), _) if byte.is_ascii_alphanumeric() || b"^.[]{}+*?-_/:,|=%".contains(&byte) => {}
                _ => return lost,
            }
            self.at += 1;
        }
        if open > 0 || self.at == begin || self.mark_before(self.at) { lost } else { Ok(()) }
    }

    /// Reads a simple command: assignments, and a program with its arguments.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Read<Kind> {
        let begin = self.at;
        let (mut assignments, mut words) = (Vec::new(), Vec::<Word>::new());
        loop {
            self.blanks();
            if self.redirect(redirects)? {
                continue;
            }
            match self.peek(0) {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') => return Err(Lost { at: begin, place: Place::Function }),
                Some(_) if words.is_empty() => match self.assignment()? {
                    Some(assignment) => assignments.push(assignment),
                    None => words.push(self.program_name()?),
                },
                Some(_) => words.push(self.some_word()?),
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return self.lost(Place::Unclear);
        }
        Ok(Kind::Simple { assignments, words })
    }

    /// Reads the name of a program. All valid reserved words were read before. Bash interprets a remaining one
    /// differently, for example a second `!`.
    fn program_name(&mut self) -> Read<Word> {
        let at = self.at;
        let word = self.some_word()?;
        if word.bare().is_some_and(|text| RESERVED.contains(&text)) {
            return Err(Lost { at, place: Place::Unclear });
        }
        Ok(word)
    }

    /// Reads `NAME=VALUE` or `NAME+=VALUE`. Arrays and their elements are rejected.
    fn assignment(&mut self) -> Read<Option<Assignment>> {
        let begin = self.at;
        let name = self.name();
        let appends = self.peek(0) == Some(b'+') && self.peek(1) == Some(b'=');
        self.at += usize::from(appends);
        if is_identifier(&name) && self.peek(0) == Some(b'[') {
            return Err(Lost { at: begin, place: Place::Subscript });
        }
        if !is_identifier(&name) || self.peek(0) != Some(b'=') {
            self.at = begin;
            return Ok(None);
        }
        self.at += 1;
        let value = self.word()?;
        if self.peek(0) == Some(b'(') {
            return Err(Lost { at: begin, place: Place::Subscript });
        }
        Ok(Some(Assignment { name, value, appends }))
    }

    /// Reads a redirection at the cursor; returns false if there is none.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> Read<bool> {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let descriptor = &self.text[self.at..self.at + digits];
        let operator = Range { start: self.at + digits, end: (self.at + digits + 3).min(self.text.len()) };
        let (output, input) = (matches!(descriptor, b"" | b"1" | b"2"), matches!(descriptor, b"" | b"0"));
        let (length, is_output) = match &self.text[operator] {
            [b'&', b'>', b'>'] if digits == 0 => (3, true),
            [b'&', b'>', ..] if digits == 0 => (2, true),
            [b'>', b'(', ..] | [b'<', b'(' | b'>' | b'&', ..] => return self.lost(Place::Unclear),
            [b'>', b'&', ..] if output => return self.duplicate(digits + 2),
            [b'>', b'>' | b'|', ..] if output => (2, true),
            [b'>', ..] if output => (1, true),
            [b'<', b'<', b'<'] if input => (3, false),
            [b'<', b'<', ..] if input => {
                self.at += digits + 2;
                let document = self.begin_here_document()?;
                redirects.push(document);
                return Ok(true);
            }
            [b'<', ..] if input => (1, false),
            [b'<' | b'>', ..] => return self.lost(Place::Unclear),
            _ => return Ok(false),
        };
        self.at += digits + length;
        self.blanks();
        let target = self.some_word()?;
        redirects.push(match (is_output, length) {
            (true, _) => Redirect::Output(target),
            (false, 3) => Redirect::Text(target),
            (false, _) => Redirect::Input(target),
        });
        Ok(true)
    }

    /// Reads `>&1` or `>&2`. Any other target is a file name or is expanded a second time.
    fn duplicate(&mut self, length: usize) -> Read<bool> {
        let ends = |byte: Option<u8>| byte.is_none_or(|byte| b" \t\n;&|)".contains(&byte));
        if !matches!(self.peek(length), Some(b'1' | b'2')) || !ends(self.peek(length + 1)) {
            return self.lost(Place::Duplicate);
        }
        self.at += length + 1;
        Ok(true)
    }
}
