//! Limits the lookahead of the YAML parser.
//!
//! A flow collection may turn out to be a key, so the parser keeps all of its tokens until it has read the closing
//! bracket and the character after it. A token takes a hundred times the memory of its text, and the parser has no
//! limit for this. The input type in this module counts the characters that make tokens, and ends the text early if
//! there are too many.

use alloc::{rc::Rc, string::String};
use core::cell::Cell;

use saphyr_parser::{Input, StrInput, input::SkipTabs};

use crate::limits::YAML_AHEAD_MAX;

/// Remaining lookahead, shared by the reader and the input of its parser.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    left: Rc<Cell<Option<usize>>>,
    all: usize,
}

impl Ahead {
    /// Creates the limit for a text of the given length.
    pub(super) fn of(text_bytes: usize) -> Self {
        let all = YAML_AHEAD_MAX + text_bytes / 10;
        Self { left: Rc::new(Cell::new(Some(all))), all }
    }

    /// Resets the limit. Called before each event that the parser is asked for.
    pub(super) fn begin(&self) {
        if self.left.get().is_some() {
            self.left.set(Some(self.all));
        }
    }

    /// True if the limit was exceeded; the parser then sees the end of the text.
    pub(super) fn is_exceeded(&self) -> bool {
        self.left.get().is_none()
    }

    fn spend(&self) -> bool {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(1)));
        self.left.get().is_some()
    }
}

/// Number of characters that the parser requests before it reads a token. `tests/memory.rs` fails if that changes.
const TOKEN_LOOKAHEAD: usize = 4;

/// Input of the parser: a text that ends when the lookahead limit is exceeded.
pub(super) struct Metered<'a> {
    input: StrInput<'a>,
    ahead: Ahead,
}

impl<'a> Metered<'a> {
    pub(super) fn new(text: &'a str, ahead: Ahead) -> Self {
        Self { input: StrInput::new(text), ahead }
    }
}

impl Input for Metered<'_> {
    /// The parser requests this many characters before each token, after skipping white space. Only indicator
    /// characters count, because the parser requests as many before each line of a long text, too.
    fn lookahead(&mut self, count: usize) {
        let begins_token = count == TOKEN_LOOKAHEAD && matches!(self.input.peek(), '[' | ']' | '{' | '}' | ',' | ':');
        if begins_token && !self.ahead.spend() {
            self.input = StrInput::new("");
        }
        self.input.lookahead(count);
    }

    fn skip(&mut self) {
        self.input.skip();
    }

    fn buflen(&self) -> usize {
        self.input.buflen()
    }

    fn bufmaxlen(&self) -> usize {
        self.input.bufmaxlen()
    }

    fn raw_read_ch(&mut self) -> char {
        self.input.raw_read_ch()
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        self.input.raw_read_non_breakz_ch()
    }

    fn skip_n(&mut self, count: usize) {
        self.input.skip_n(count);
    }

    fn peek(&self) -> char {
        self.input.peek()
    }

    fn peek_nth(&self, n: usize) -> char {
        self.input.peek_nth(n)
    }

    fn peek_opt(&self) -> Option<char> {
        self.input.peek_opt()
    }

    fn skip_ws_to_eol(&mut self, skip_tabs: SkipTabs) -> (usize, Result<SkipTabs, &'static str>) {
        self.input.skip_ws_to_eol(skip_tabs)
    }

    fn skip_while_non_breakz(&mut self) -> usize {
        self.input.skip_while_non_breakz()
    }

    fn skip_while_blank(&mut self) -> usize {
        self.input.skip_while_blank()
    }

    fn fetch_while_is_alpha(&mut self, out: &mut String) -> usize {
        self.input.fetch_while_is_alpha(out)
    }

    fn fetch_while_is_yaml_non_space(&mut self, out: &mut String) -> usize {
        self.input.fetch_while_is_yaml_non_space(out)
    }
}
