//! What can be open around a place in a script.

use alloc::vec::Vec;
use core::ops::Range;

use super::Place;

/// Levels of nesting that are followed; deeper references are refused. People write three or four; the bound keeps time
/// linear, since what is decided about a level is decided again about the levels around it.
pub(super) const DEPTH_MAX: usize = 64;

/// Bytes of a word that are kept for comparing it with names and options, which are all shorter.
pub(super) const WORD_BYTES_MAX: usize = 256;

/// One level.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Why no reference can stand here, at any depth below included.
    pub(super) refused: Option<Place>,
    /// The word that is being read.
    pub(super) word: Option<Word>,
    /// The words of the simple command that is being read, its redirections among them.
    pub(super) command: Vec<Word>,
    pub(super) stage: Stage,
    /// A redirection whose target comes next.
    pub(super) redirect: Option<Redirect>,
    pub(super) pipeline: Pipeline,
    /// The pipelines around the groups (`{`, `if`, loops) that are open in this list.
    pub(super) groups: Vec<Pipeline>,
    /// The variable of the `for` whose words are being read.
    pub(super) loop_variable: Vec<u8>,
    /// The first mark that is inside.
    pub(super) first_mark: usize,
    /// Where its content begins.
    pub(super) begin: usize,
}

/// What a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole script: a list of commands.
    Script,
    /// `$( )`, `<( )`, `>( )`: a list of commands.
    Substitution,
    /// `( )`: a list of commands.
    Subshell,
    /// The commands of one branch of a `case`.
    CaseBody,
    /// `case … esac` outside its branches.
    Case,
    /// `[[ ]]`, with the number of parentheses that are open in it.
    Conditional { parentheses: usize },
    /// `name=( )`.
    Compound,
    /// `@( )` and its kind, with the number of further parentheses that are open in it.
    Glob { parentheses: usize },
    /// `"…"`.
    Double,
    /// `${ }`; `quoted` if there are double quotes around it.
    Parameter { quoted: bool },
    /// An expression, with the number of brackets of its kind that are open in it.
    Expression { end: ExpressionEnd, open: usize },
}

/// What ends an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpressionEnd {
    /// `))` of a command of its own.
    Command,
    /// `))` of an expansion.
    Expansion,
    /// `]` of `$[`.
    Bracket,
    /// `]` of a subscript.
    Subscript,
}

/// What the next word is, in a list of commands or in a `case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A reserved word, an assignment or a command's name.
    Start,
    /// The same, after `time`: its options may come first.
    Timed,
    /// An argument, after a `time` that may be a command.
    MaybeTimed,
    /// An assignment or a command's name.
    Prefix,
    /// An argument.
    Arguments,
    /// The variable of a `for`.
    LoopName,
    /// `in` or `do`.
    LoopIn,
    /// One of the words that a `for` goes over.
    LoopWords,
    /// The name after `function`.
    FunctionName,
    /// `()` or the body of a `function`.
    FunctionBody,
    /// After `coproc`: its name or its command.
    Coprocess,
    /// After a word that may be the name of a `coproc`.
    CoprocessBody,
    /// What `case` looks at.
    CaseWord,
    /// `in`.
    CaseIn,
    /// The first pattern of a branch, or `esac`.
    CasePattern,
    /// Another pattern, or the end of the patterns.
    CaseMore,
}

/// A redirection by what the command gets from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The target's content, or the target itself, on its standard input.
    Input,
    /// Nothing.
    Output,
    /// The same as another descriptor of it (`>&`, `<&`). Where the target is no number, bash expands it a second time.
    Duplicate,
}

/// Where the pipeline of the present command began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pipeline {
    /// The first mark in it.
    pub(super) first_mark: usize,
    /// Whether the present command reads what an earlier one writes.
    pub(super) is_fed: bool,
    /// Whether nothing has come since the last `|`.
    pub(super) is_open: bool,
    /// The first mark that can reach the standard input of the list as a whole.
    pub(super) fed_from: Option<usize>,
}

/// A word, as far as it matters what it is.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// Its literal bytes with quotes and backslashes taken away, up to a bound.
    pub(super) text: Vec<u8>,
    /// Whether any of it is quoted, escaped or a pattern.
    pub(super) is_quoted: bool,
    /// Whether any of it is expanded.
    pub(super) is_dynamic: bool,
    /// Whether an expansion stands before any literal byte.
    pub(super) begins_dynamic: bool,
    /// Whether there is an expansion outside quotes other than a reference, which can give several words.
    pub(super) is_spread: bool,
    /// Whether braces in it can make several words of it.
    pub(super) is_braced: bool,
    /// Whether a reference stands before any literal byte of it.
    pub(super) begins_marked: bool,
    /// Whether there is a `$( )` in it before any literal byte, or outside quotes, whose output may be several words.
    pub(super) begins_substituted: bool,
    /// Whether there is a `<( )` in it.
    pub(super) has_process: bool,
    /// Whether it has the form of an assignment.
    pub(super) assigns: bool,
    /// Whether it is an assignment of a list in parentheses.
    pub(super) is_compound: bool,
    /// How many marks came before its first `=`, counted from the start of the script.
    pub(super) equals_mark: Option<usize>,
    /// The marks inside it.
    pub(super) marks: Range<usize>,
    /// Set if it is the target of a redirection.
    pub(super) redirect: Option<Redirect>,
}

impl Frame {
    pub(super) fn new(kind: Kind, refused: Option<Place>, first_mark: usize, fed_from: Option<usize>) -> Self {
        let stage = if kind == Kind::Case { Stage::CaseWord } else { Stage::Start };
        Self {
            kind,
            refused,
            word: None,
            command: Vec::new(),
            stage,
            redirect: None,
            pipeline: Pipeline { first_mark, is_fed: false, is_open: false, fed_from },
            groups: Vec::new(),
            loop_variable: Vec::new(),
            first_mark,
            begin: 0,
        }
    }
}

impl Kind {
    /// Whether it is a list of commands.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Script | Self::Substitution | Self::Subshell | Self::CaseBody)
    }

    /// Whether it is made of words.
    pub(super) fn has_words(self) -> bool {
        self.is_list() || matches!(self, Self::Case | Self::Conditional { .. } | Self::Compound)
    }
}

impl Pipeline {
    /// The first mark that can reach the standard input of the present command.
    pub(super) fn input_from(&self) -> Option<usize> {
        self.fed_from.or(self.is_fed.then_some(self.first_mark))
    }
}

impl Word {
    pub(super) fn new(first_mark: usize) -> Self {
        Self {
            text: Vec::new(),
            is_quoted: false,
            is_dynamic: false,
            begins_dynamic: false,
            is_spread: false,
            is_braced: false,
            begins_marked: false,
            begins_substituted: false,
            has_process: false,
            assigns: false,
            is_compound: false,
            equals_mark: None,
            marks: first_mark..first_mark,
            redirect: None,
        }
    }

    /// Adds a literal byte; `marks_met` is how many marks came before it.
    pub(super) fn push(&mut self, byte: u8, marks_met: usize) {
        if byte == b'=' && self.equals_mark.is_none() {
            self.equals_mark = Some(marks_met);
            let is_plain = !self.is_quoted && !self.is_dynamic;
            self.assigns = is_plain && is_identifier(self.text.strip_suffix(b"+").unwrap_or(&self.text));
        }
        if self.text.len() < WORD_BYTES_MAX {
            self.text.push(byte);
        }
    }

    /// Adds an expansion.
    pub(super) fn expand(&mut self, is_spread: bool) {
        self.begins_dynamic |= self.text.is_empty();
        self.is_dynamic = true;
        self.is_spread |= is_spread;
    }

    /// Its text if it is nothing but that: only such a word can be a reserved one.
    pub(super) fn bare(&self) -> Option<&[u8]> {
        (!self.is_quoted && !self.is_dynamic).then_some(&self.text[..])
    }

    /// Whether nothing may be left of it, so that the next word takes its place. `"$@"` can be such a word as well.
    pub(super) fn can_vanish(&self) -> bool {
        self.is_dynamic && self.text.is_empty() && !self.has_marks()
    }

    /// Whether nothing is left of it where an expansion gives nothing: an expansion outside quotes.
    pub(super) fn vanishes(&self) -> bool {
        self.can_vanish() && self.is_spread
    }

    /// Adds a reference.
    pub(super) fn refer(&mut self) {
        self.begins_marked |= self.text.is_empty();
        self.expand(false);
    }

    /// Adds the output of commands.
    pub(super) fn substitute(&mut self, is_spread: bool) {
        self.begins_substituted |= self.text.is_empty() || is_spread;
        self.expand(is_spread);
    }

    /// Whether a word that it gives can begin with the value of a reference.
    pub(super) fn may_begin_with_value(&self) -> bool {
        self.begins_marked || self.is_braced || (self.begins_substituted && self.has_marks())
    }

    /// Whether a reference stands in it.
    pub(super) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// The marks that stand before any `=`.
    pub(super) fn name_marks(&self) -> Range<usize> {
        self.marks.start..self.equals_mark.unwrap_or(self.marks.end).clamp(self.marks.start, self.marks.end)
    }

    /// The name of the variable it would assign to, were it an assignment.
    pub(super) fn name(&self) -> &[u8] {
        let name = self.text.split(|byte| matches!(byte, b'=' | b'[')).next().unwrap_or_default();
        name.strip_suffix(b"+").unwrap_or(name)
    }
}

/// Whether bytes are the name of a variable.
pub(super) fn is_identifier(bytes: &[u8]) -> bool {
    let begins = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    begins && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
