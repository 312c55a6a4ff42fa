//! The syntax tree of a script: lists of pipelines, commands and words.

use alloc::vec::Vec;
use core::ops::Range;

/// Pipelines, regardless of the separators (`;`, `&&`, `||`, `&`, newline).
pub(super) type List = Vec<Vec<Command>>;

/// A command of a pipeline.
#[derive(Debug)]
pub(super) struct Command {
    /// Offset of its start in the text.
    pub(super) at: usize,
    /// The references inside it.
    pub(super) marks: Range<usize>,
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
    /// Set by `flow`: its standard input may contain a value.
    pub(super) has_input: bool,
    /// Set by `flow`: its output may contain a value.
    pub(super) has_output: bool,
}

/// The form of a command.
#[derive(Debug)]
pub(super) enum Kind {
    /// Assignments, followed by a program and its arguments.
    Simple { assignments: Vec<Assignment>, words: Vec<Word> },
    /// `{ }`, `( )`, `if`, `while` and `until`, as the lists inside them.
    Group(Vec<List>),
    /// `for NAME in WORDS`.
    Loop { name: Vec<u8>, words: Vec<Word>, body: List },
    /// `case`: first its word, then all patterns.
    Case { words: Vec<Word>, bodies: Vec<List> },
    /// `[[ ]]`; the parser has checked its operators.
    Test(Test),
    /// `(( ))` with its variable names.
    Arithmetic(Vec<Vec<u8>>),
}

/// The operands of a `[[ ]]`.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// Operands of text comparisons and of unary operators.
    pub(super) words: Vec<Word>,
    /// Right operands of `==`, `=` and `!=`, which are patterns if unquoted.
    pub(super) patterns: Vec<Word>,
    /// Operands of arithmetic operators.
    pub(super) numbers: Vec<Word>,
}

/// `NAME=VALUE`, alone or before a command.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: Vec<u8>,
    pub(super) value: Word,
    /// True for `+=`.
    pub(super) appends: bool,
}

/// A redirection.
#[derive(Debug)]
pub(super) enum Redirect {
    /// `> FILE`, `>> FILE`, `>| FILE`, `&> FILE` or `&>> FILE`.
    Output(Word),
    /// `< FILE`.
    Input(Word),
    /// `<<< WORD`.
    Text(Word),
    /// `<<`, with the index of its lines in [`Parsed::documents`].
    Document(usize),
}

/// A word up to the next separator outside of quotes.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// Its parts; adjacent literal bytes form one part.
    pub(super) pieces: Vec<Piece>,
    /// The references inside it.
    pub(super) marks: Range<usize>,
    /// True if any part is quoted or escaped.
    pub(super) is_quoted: bool,
    /// True if an unquoted expansion may turn it into several words or none.
    pub(super) is_split: bool,
    /// True if it is a file name pattern.
    pub(super) is_glob: bool,
    /// Set by `flow`: it may contain a value.
    pub(super) has_value: bool,
    /// Set by `flow`: the number of leading parts that are text of the author or variables without a value.
    pub(super) certain: usize,
    /// Set by `flow`: it is the path of a file that the script created with `mktemp`.
    pub(super) is_temporary: bool,
    /// The variables among its parts that the author checks in the expansion, by the number of the part.
    pub(super) checked: Vec<(usize, Check)>,
}

/// A check of a value where it is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// The value is not empty: `${NAME:?}`.
    Filled,
    /// The value has no colon: `${NAME//:/^}`, with which git refuses it.
    WithoutColon,
}

/// A part of a word.
#[derive(Debug)]
pub(super) enum Piece {
    /// Literal bytes without their quotes.
    Literal(Vec<u8>),
    /// A reference.
    Mark(usize),
    /// The contents of a variable, possibly cut or partly replaced.
    Variable(Vec<u8>),
    /// `~`, the home folder.
    Home,
    /// A command substitution, `$( )`.
    Output(List),
    /// An arithmetic expansion, `$(( ))`, with its variable names.
    Number(Vec<Vec<u8>>),
    /// A number that cannot come from a value: `$?`, `${#x}`.
    Count,
    /// A text that cannot come from a value: `$0`, `$'…'`.
    Opaque,
}

/// A whole script.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) list: List,
    /// The lines of its here-documents.
    pub(super) documents: Vec<Word>,
}

impl Word {
    /// Returns its text if it has no expansions.
    pub(super) fn literal(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            _ if self.is_glob => None,
            [] => Some(b""),
            [Piece::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Returns its text if it is literal and not quoted. Only such a word can be an operator.
    pub(super) fn bare(&self) -> Option<&[u8]> {
        self.literal().filter(|text| !self.is_quoted && !text.is_empty())
    }

    /// Returns the literal bytes before the first expansion.
    pub(super) fn prefix(&self) -> &[u8] {
        match self.pieces.first() {
            Some(Piece::Literal(bytes)) => bytes,
            _ => b"",
        }
    }

    /// Returns the literal bytes before the first part that may contain a value. Variables in between are skipped,
    /// because they may be empty.
    pub(super) fn front(&self) -> Vec<u8> {
        let literals = self.pieces.iter().take(self.certain).filter_map(|piece| match piece {
            Piece::Literal(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        literals.collect::<Vec<_>>().concat()
    }

    /// True if it expands to exactly one word.
    pub(super) fn is_one(&self) -> bool {
        !self.is_split && !self.is_glob
    }

    /// True if it expands to one word that contains no value, neither directly nor through a variable of `env` with a
    /// reference.
    pub(super) fn is_without_values(&self) -> bool {
        self.is_one() && !self.has_value && self.certain == self.pieces.len()
    }

    /// Appends a literal byte.
    pub(super) fn push(&mut self, byte: u8) {
        match self.pieces.last_mut() {
            Some(Piece::Literal(bytes)) => bytes.push(byte),
            _ => self.pieces.push(Piece::Literal([byte].into())),
        }
    }
}

/// True if bytes form a valid variable name.
pub(super) fn is_identifier(bytes: &[u8]) -> bool {
    let begins = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    begins && bytes.iter().all(|byte| is_name_byte(*byte))
}

/// True if bytes are a decimal number.
pub(super) fn is_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// True if a byte may be part of a variable name.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
