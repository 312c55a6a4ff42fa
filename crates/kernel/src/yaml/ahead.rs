//! Bounds what the parser reads ahead.
//!
//! A collection in brackets may turn out to be a key, so the parser keeps all of its tokens until the closing bracket
//! and the sign behind it are read. A token takes a hundred times as much memory as its text. The parser has no bound
//! for that; this input counts the signs that make tokens, and ends early where there are too many.

use alloc::{rc::Rc, string::String};
use core::cell::Cell;

use saphyr_parser::{Input, StrInput, input::SkipTabs};

use crate::limits::YAML_AHEAD_MAX;

/// How much may still be read ahead, shared by the reader and the input of its parser.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    left: Rc<Cell<Option<usize>>>,
    all: usize,
}

impl Ahead {
    /// The bound for a text of so many bytes.
    pub(super) fn of(text_bytes: usize) -> Self {
        let all = YAML_AHEAD_MAX + text_bytes / 10;
        Self { left: Rc::new(Cell::new(Some(all))), all }
    }

    /// The parser is asked for its next event.
    pub(super) fn begin(&self) {
        if self.left.get().is_some() {
            self.left.set(Some(self.all));
        }
    }

    /// Whether the bound was met, after which the parser sees the end of the text.
    pub(super) fn is_exceeded(&self) -> bool {
        self.left.get().is_none()
    }

    fn spend(&self) -> bool {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(1)));
        self.left.get().is_some()
    }
}

/// Characters that the parser asks for before it reads a token. `tests/memory.rs` fails if that changes.
const TOKEN_LOOKAHEAD: usize = 4;

/// A text as the parser sees it, up to what may be read ahead.
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
    /// The parser asks for this many characters before each token, once it has skipped the space before it. Signs are
    /// counted and not words, because it asks for as many before each line of a long text, too.
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
