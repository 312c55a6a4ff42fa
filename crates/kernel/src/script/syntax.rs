//! A script as the reader has read it: lists of pipelines of commands made of words.

use alloc::vec::Vec;
use core::ops::Range;

/// Pipelines, whatever stands between them (`;`, `&&`, `||`, `&`, a newline).
pub(super) type List = Vec<Vec<Command>>;

/// One command of a pipeline.
#[derive(Debug)]
pub(super) struct Command {
    /// Where it begins in the text.
    pub(super) at: usize,
    /// The marks inside it.
    pub(super) marks: Range<usize>,
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
    /// Set by `flow`: whether a value can be on its standard input.
    pub(super) has_input: bool,
    /// Set by `flow`: whether a value can be in what it writes.
    pub(super) has_output: bool,
}

/// A command by its form.
#[derive(Debug)]
pub(super) enum Kind {
    /// Assignments, then the name of a program and its arguments.
    Simple { assignments: Vec<Assignment>, words: Vec<Word> },
    /// `{ }`, `( )`, `if`, `while` and `until`: all of their lists.
    Group(Vec<List>),
    /// `for NAME in WORDS`.
    Loop { name: Vec<u8>, words: Vec<Word>, body: List },
    /// `case`, with its word first and then all patterns.
    Case { words: Vec<Word>, bodies: Vec<List> },
    /// `[[ ]]`, whose operators were checked by the reader.
    Test(Test),
    /// `(( ))` with the names in it.
    Arithmetic(Vec<Vec<u8>>),
}

/// What a `[[ ]]` is made of.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// Words that are compared as text, and those of operators before one word.
    pub(super) words: Vec<Word>,
    /// Words on the right of `==` and its kind, which are patterns where they are not quoted.
    pub(super) patterns: Vec<Word>,
    /// Words of arithmetic operators.
    pub(super) numbers: Vec<Word>,
}

/// `NAME=VALUE` before a command or instead of one.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: Vec<u8>,
    pub(super) value: Word,
    /// Whether it is `+=`.
    pub(super) appends: bool,
}

/// A redirection.
#[derive(Debug)]
pub(super) enum Redirect {
    /// `> FILE` and its kind.
    Output(Word),
    /// `< FILE`.
    Input(Word),
    /// `<<< WORD`.
    Text(Word),
    /// `<<`, with the number of its lines in [`Parsed::documents`].
    Document(usize),
}

/// A word, up to the next separator outside quotes.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// Its parts; neighboring literal bytes are one part.
    pub(super) pieces: Vec<Piece>,
    /// The marks inside it.
    pub(super) marks: Range<usize>,
    /// Whether any of it is quoted or escaped.
    pub(super) is_quoted: bool,
    /// Whether an expansion outside quotes can make several words of it, or none.
    pub(super) is_split: bool,
    /// Whether it is a pattern for file names.
    pub(super) is_glob: bool,
    /// Set by `flow`: whether a value can be in it.
    pub(super) has_value: bool,
    /// Set by `flow`: how many of its parts come before the first that is neither the author's text nor a variable
    /// without a value.
    pub(super) certain: usize,
    /// Set by `flow`: whether it is the path of a file that `mktemp` has made in this script.
    pub(super) is_temporary: bool,
}

/// A part of a word.
#[derive(Debug)]
pub(super) enum Piece {
    /// Bytes without their quotes.
    Literal(Vec<u8>),
    /// A reference.
    Mark,
    /// The value of a variable, perhaps cut or replaced in part.
    Variable(Vec<u8>),
    /// `~`, the folder of the user.
    Home,
    /// `$( )`.
    Output(List),
    /// `$(( ))` with the names in it.
    Number(Vec<Vec<u8>>),
    /// A number that no value reaches: `$?`, `${#x}`.
    Count,
    /// A text that no value reaches: `$0`, `$'…'`.
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
    /// Its text if nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            _ if self.is_glob => None,
            [] => Some(b""),
            [Piece::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Its text if it is literal and not quoted: only such a word can be an operator.
    pub(super) fn bare(&self) -> Option<&[u8]> {
        self.literal().filter(|text| !self.is_quoted && !text.is_empty())
    }

    /// The literal bytes before any expansion.
    pub(super) fn prefix(&self) -> &[u8] {
        match self.pieces.first() {
            Some(Piece::Literal(bytes)) => bytes,
            _ => b"",
        }
    }

    /// The literal bytes before anything that a value can be in. Variables may be empty, and add none.
    pub(super) fn front(&self) -> Vec<u8> {
        let literals = self.pieces.iter().take(self.certain).filter_map(|piece| match piece {
            Piece::Literal(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        literals.collect::<Vec<_>>().concat()
    }

    /// Whether it stays one word whatever its expansions give.
    pub(super) fn is_one(&self) -> bool {
        !self.is_split && !self.is_glob
    }

    /// Whether it is one word in which no value can be, nor what the step's `env` has made of one.
    pub(super) fn is_without_values(&self) -> bool {
        self.is_one() && !self.has_value && self.certain == self.pieces.len()
    }

    /// Adds a literal byte.
    pub(super) fn push(&mut self, byte: u8) {
        match self.pieces.last_mut() {
            Some(Piece::Literal(bytes)) => bytes.push(byte),
            _ => self.pieces.push(Piece::Literal([byte].into())),
        }
    }
}

/// Whether bytes are the name of a variable.
pub(super) fn is_identifier(bytes: &[u8]) -> bool {
    let begins = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    begins && bytes.iter().all(|byte| is_name_byte(*byte))
}

/// Whether a byte can stand in the name of a variable.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
