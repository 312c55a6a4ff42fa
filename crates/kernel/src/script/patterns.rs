//! What is made of words and is no list of commands: `case`, `[[ ]]`, compound assignments, extended globs.

use super::{
    Place,
    lexer::{Lexer, expression},
    nesting::{ExpressionEnd, Kind, Stage, Word},
};

/// The operators of `[[ ]]` whose operands bash evaluates: as expressions, or as names with subscripts.
const EVALUATING_OPERATORS: [&[u8]; 8] = [b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-v", b"-R"];

impl Lexer<'_> {
    /// One byte outside quotes in a `case`, before or between its branches.
    pub(super) fn step_case(&mut self, byte: u8) {
        let stage = self.top().stage;
        let has_word = self.top().word.is_some();
        match byte {
            b' ' | b'\t' if !has_word => self.at += 1,
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.process_substitution(),
            b' ' | b'\t' | b'\n' | b'|' | b')' if has_word => self.finish_word(),
            b'\n' => self.newline_in_words(),
            b'#' if !has_word => self.comment(),
            b'?' | b'*' | b'+' | b'@' | b'!' if self.peek(1) == Some(b'(') => self.begin_glob(),
            b'|' if stage == Stage::CaseMore => self.at += 1,
            b'(' if stage == Stage::CasePattern && !has_word => {
                self.at += 1;
                self.top_mut().stage = Stage::CaseMore;
            }
            b')' if stage == Stage::CaseMore => {
                self.at += 1;
                self.open(Kind::CaseBody, None);
            }
            b'(' | b')' | b'|' | b';' | b'&' | b'<' | b'>' => self.lose(Place::Unclear),
            byte => self.literal(byte),
        }
    }

    pub(super) fn finish_case_word(&mut self, word: &Word) {
        let next = match (self.top().stage, word.bare()) {
            (Stage::CaseWord, _) => Stage::CaseIn,
            (Stage::CaseIn, Some(b"in")) => Stage::CasePattern,
            (Stage::CasePattern, Some(b"esac")) => {
                self.frames.pop();
                return;
            }
            (Stage::CasePattern | Stage::CaseMore, _) => Stage::CaseMore,
            _ => return self.lose(Place::Unclear),
        };
        self.top_mut().stage = next;
    }

    /// One byte outside quotes in `[[ ]]`.
    pub(super) fn step_conditional(&mut self, byte: u8, parentheses: usize) {
        let has_word = self.top().word.is_some();
        match byte {
            b' ' | b'\t' if !has_word => self.at += 1,
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.process_substitution(),
            b' ' | b'\t' | b'\n' if has_word => self.finish_word(),
            b'\n' => self.newline_in_words(),
            b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' if self.is_conditional_end() => self.finish_word(),
            // `)]]` is the end after an expression, and a part of the word in a regular expression.
            b'(' | b')' | b'&' | b'|' | b'<' | b'>' if self.peek(1) == Some(b']') => self.lose(Place::Unclear),
            b'!' if !has_word && self.peek(1) == Some(b'(') => self.lose(Place::Unclear),
            b'?' | b'*' | b'+' | b'@' | b'!' if self.peek(1) == Some(b'(') => self.begin_glob(),
            b'(' => {
                self.at += 1;
                self.set_kind(Kind::Conditional { parentheses: parentheses + 1 });
            }
            b')' if parentheses > 0 => {
                self.at += 1;
                self.set_kind(Kind::Conditional { parentheses: parentheses - 1 });
            }
            b'&' if self.peek(1) == Some(b'&') && has_word => self.finish_word(),
            b'&' if self.peek(1) == Some(b'&') => self.at += 2,
            b'<' | b'>' if self.peek(1) != Some(byte) && has_word => self.finish_word(),
            b'<' | b'>' if self.peek(1) != Some(byte) => self.at += 1,
            // In a regular expression it is a part of the word, and otherwise `||`.
            b'|' => self.at += 1,
            b'#' if !has_word => self.lose(Place::Unclear),
            b';' | b'&' | b'<' | b'>' | b')' => self.lose(Place::Unclear),
            byte => self.literal(byte),
        }
    }

    fn is_conditional_end(&self) -> bool {
        self.top().word.as_ref().is_some_and(|word| word.bare() == Some(b"]]"))
    }

    pub(super) fn finish_conditional_word(&mut self, word: Word, parentheses: usize) {
        let is_end = word.bare() == Some(b"]]");
        if is_end && parentheses > 0 {
            return self.lose(Place::Unclear);
        }
        if !is_end {
            return self.top_mut().command.push(word);
        }
        let Some(frame) = self.frames.pop() else { return };
        let evaluates = |word: &Word| EVALUATING_OPERATORS.contains(&&word.text[..]);
        if frame.command.iter().any(evaluates) {
            self.refuse(frame.first_mark..self.marks_met(), Place::EvaluatingTest);
            self.compute(frame.begin..self.at);
        }
        if frame.command.iter().any(|word| word.text == b"=~") {
            self.variables.set_array(b"BASH_REMATCH");
        }
    }

    /// One byte outside quotes in the parentheses of `name=( )`.
    pub(super) fn step_compound(&mut self, byte: u8) {
        let has_word = self.top().word.is_some();
        match byte {
            b' ' | b'\t' if !has_word => self.at += 1,
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.process_substitution(),
            b' ' | b'\t' | b'\n' | b')' if has_word => self.finish_word(),
            b'\n' => self.newline_in_words(),
            b')' => self.close_compound(),
            b'#' if !has_word => self.comment(),
            b'?' | b'*' | b'+' | b'@' | b'!' if self.peek(1) == Some(b'(') => self.begin_glob(),
            b'[' if !has_word => {
                self.literal(byte);
                self.open(expression(ExpressionEnd::Subscript), Some(Place::Subscript));
            }
            b'(' | b';' | b'&' | b'|' | b'<' | b'>' => self.lose(Place::Unclear),
            byte => self.literal(byte),
        }
    }

    /// Nothing can follow the parenthesis in the same word.
    fn close_compound(&mut self) {
        self.at += 1;
        self.frames.pop();
        if self.peek(0).is_some_and(|byte| !b" \t\n;&|)".contains(&byte)) {
            self.lose(Place::Unclear);
        }
    }

    /// An extended glob, as a part of a word.
    pub(super) fn begin_glob(&mut self) {
        if let Some(word) = self.word() {
            word.is_quoted = true;
        }
        self.at += 2;
        self.open(Kind::Glob { parentheses: 0 }, None);
    }

    /// One byte outside quotes in an extended glob, where only parentheses mean something.
    pub(super) fn step_glob(&mut self, byte: u8, parentheses: usize) {
        match byte {
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.lose(Place::Unclear),
            b'(' => {
                self.at += 1;
                self.set_kind(Kind::Glob { parentheses: parentheses + 1 });
            }
            b')' => {
                self.at += 1;
                match parentheses.checked_sub(1) {
                    Some(parentheses) => self.set_kind(Kind::Glob { parentheses }),
                    None => {
                        self.frames.pop();
                    }
                }
            }
            byte => self.literal(byte),
        }
    }

    /// A newline between words that is no end of a command. What waits for lines of its own would find them here in one
    /// shell and later in another.
    fn newline_in_words(&mut self) {
        if !self.pending.is_empty() {
            return self.lose(Place::Unclear);
        }
        self.at += 1;
    }
}
