//! Rust source as a flat list of tokens and comments, each with its line.
//!
//! Checks read tokens, not text, so a word in a comment or in a message is never mistaken for code. They do not use a
//! syntax tree, since a tree ends at macros, and half of the tests are inside of one.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// A word, a sign, a literal as it was written, or one of the brackets `(`, `)`, `[`, `]`, `{`, `}`.
///
/// `#[doc = "…"]` is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The number of open brackets around the token; an opening bracket and its closing one have the same depth.
    pub(crate) depth: usize,
    /// True inside an item with `#[cfg(test)]`, `#[test]` or a similar attribute.
    pub(crate) in_test: bool,
}

/// Line comments of one style (`//`, `///` or `//!`) on consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) style: Style,
    /// The first line, counted from 1.
    pub(crate) line: usize,
    /// One line per source line, without the slashes and the space after them.
    pub(crate) text: String,
    /// The index of the token after the comment.
    pub(crate) before: usize,
    /// True if a token precedes it on the same line.
    pub(crate) is_trailing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `//`
    Plain,
    /// `///`: documents the item that follows.
    Outer,
    /// `//!`: documents the item that it is in.
    Inner,
}

/// Splits a source text into tokens and comments. The error is the line that cannot be tokenized.
pub(crate) fn tokens(source: &str) -> Result<(Vec<Token>, Vec<Comment>), usize> {
    let mut reader = Reader { scopes: vec![Scope::default()], ..Reader::default() };
    let (mut start, mut line) = (0, 1);
    for token in tokenize(source, FrontmatterAllowed::No) {
        let text = &source[start..start + token.len as usize];
        reader.take(token.kind, text, line).ok_or(line)?;
        start += text.len();
        line += text.matches('\n').count();
    }
    match reader.scopes.pop() {
        Some(open) if !reader.scopes.is_empty() => Err(reader.tokens[open.open].line),
        _ => Ok((reader.tokens, reader.comments)),
    }
}

/// True if the tokens from `start` on are exactly these words.
pub(crate) fn reads(tokens: &[Token], start: usize, words: &[&str]) -> bool {
    tokens.get(start..start + words.len()).is_some_and(|found| found.iter().map(|token| &token.text).eq(words))
}

/// Returns the index of the bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let depth = tokens[open].depth;
    let rest = &tokens[open + 1..];
    open + 1 + rest.iter().position(|token| token.depth == depth).expect("the reader has matched the brackets")
}

#[derive(Default)]
struct Reader {
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    /// The scope of the file, and one for each open bracket.
    scopes: Vec<Scope>,
}

#[derive(Default)]
struct Scope {
    /// Index of the opening bracket.
    open: usize,
    attribute: Option<Attribute>,
    in_test: bool,
    /// A test attribute applies to the next item, which ends with a block or a semicolon.
    item_is_test: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    /// `#![…]`: applies to the enclosing item.
    Inner,
    /// `#[…]`: applies to the next item.
    Outer,
}

impl Reader {
    /// Adds a token. `None` if the source is not Rust.
    fn take(&mut self, kind: TokenKind, text: &str, line: usize) -> Option<()> {
        match kind {
            TokenKind::Whitespace | TokenKind::BlockComment { terminated: true, .. } => {}
            TokenKind::LineComment { .. } => self.comment(text, line),
            TokenKind::BlockComment { .. } | TokenKind::Unknown => return None,
            TokenKind::Literal { kind, .. } if !is_terminated(kind) => return None,
            TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace => self.open(text, line),
            TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace => return self.close(text, line),
            TokenKind::Semi => {
                self.push(text, line);
                self.scope().item_is_test = false;
            }
            _ => self.push(text, line),
        }
        Some(())
    }

    fn comment(&mut self, text: &str, line: usize) {
        let (style, text) = match text.trim_start_matches("//") {
            rest if rest.starts_with('!') => (Style::Inner, &rest[1..]),
            rest if rest.starts_with('/') && text.len() == rest.len() + 2 => (Style::Outer, &rest[1..]),
            rest => (Style::Plain, rest.trim_start_matches('/')),
        };
        let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
        let before = self.tokens.len();
        let is_trailing = self.tokens.last().is_some_and(|token| token.line == line);
        match self.comments.last_mut() {
            Some(last) if last.style == style && last.before == before && !is_trailing && last.ends_above(line) => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            _ => self.comments.push(Comment { style, line, text: text.to_owned(), before, is_trailing }),
        }
    }

    fn open(&mut self, text: &str, line: usize) {
        let open = self.tokens.len();
        let attribute = self.attribute_before(text);
        self.push(text, line);
        let in_test = self.tokens[open].in_test;
        self.scopes.push(Scope { open, attribute, in_test, item_is_test: false });
    }

    fn close(&mut self, text: &str, line: usize) -> Option<()> {
        let closed = self.scopes.pop()?;
        let opened = self.tokens.get(closed.open).filter(|_| !self.scopes.is_empty())?;
        if !["()", "[]", "{}"].contains(&format!("{}{text}", opened.text).as_str()) {
            return None;
        }
        self.push(text, line);
        let scope = self.scopes.last_mut()?;
        match closed.attribute {
            Some(attribute) => {
                let words = &mut self.tokens[closed.open..];
                if words[1].text == "doc" {
                    self.tokens.truncate(closed.open - if attribute == Attribute::Inner { 2 } else { 1 });
                } else if is_test_attribute(words) {
                    words.iter_mut().for_each(|token| token.in_test = true);
                    scope.in_test |= attribute == Attribute::Inner;
                    scope.item_is_test |= attribute == Attribute::Outer;
                }
            }
            None => scope.item_is_test &= text != "}",
        }
        Some(())
    }

    fn attribute_before(&self, text: &str) -> Option<Attribute> {
        let depth = self.scopes.len() - 1;
        let before = |distance: usize| {
            let token = self.tokens.len().checked_sub(distance).map(|index| &self.tokens[index]);
            token.filter(|token| token.depth == depth).map(|token| token.text.as_str())
        };
        match (text, before(2), before(1)) {
            ("[", _, Some("#")) => Some(Attribute::Outer),
            ("[", Some("#"), Some("!")) => Some(Attribute::Inner),
            _ => None,
        }
    }

    fn push(&mut self, text: &str, line: usize) {
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        let in_test = scope.in_test || scope.item_is_test;
        self.tokens.push(Token { text: text.to_owned(), line, depth, in_test });
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the file is a scope that nothing closes")
    }
}

impl Comment {
    fn ends_above(&self, line: usize) -> bool {
        self.line + self.text.matches('\n').count() + 1 == line
    }
}

fn is_terminated(kind: LiteralKind) -> bool {
    match kind {
        LiteralKind::Int { .. } | LiteralKind::Float { .. } => true,
        LiteralKind::Char { terminated }
        | LiteralKind::Byte { terminated }
        | LiteralKind::Str { terminated }
        | LiteralKind::ByteStr { terminated }
        | LiteralKind::CStr { terminated } => terminated,
        LiteralKind::RawStr { n_hashes } | LiteralKind::RawByteStr { n_hashes } | LiteralKind::RawCStr { n_hashes } => {
            n_hashes.is_some()
        }
    }
}

/// `test`, `tokio::test`, `cfg(test)`, `cfg(all(test, unix))`; not `cfg(not(test))`.
fn is_test_attribute(words: &[Token]) -> bool {
    let has = |word: &str| words.iter().any(|token| token.text == word);
    has("test") && !has("not")
}

#[cfg(test)]
mod tests {
    use super::{Style, closing, tokens};

    /// Joins the words of a source, with those of tests in angle brackets.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let mark = |in_test: bool, text: &str| if in_test { format!("<{text}>") } else { text.to_owned() };
        let found = tokens(source).expect("a source that can be read").0;
        let words: Vec<String> = found.iter().map(|token| mark(token.in_test, &token.text)).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn comments_are_skipped() {
        check("//! a\n/// b\n// c\n#[doc = \"d\"] use /* e */ x;", "use x ;");
    }

    #[test]
    fn a_test_attribute_covers_one_item() {
        check("#[test] fn a() {} fn b() {}", "# <[> <test> <]> <fn> <a> <(> <)> <{> <}> fn b ( ) { }");
        check("#[cfg(test)] use a; use b;", "# <[> <cfg> <(> <test> <)> <]> <use> <a> <;> use b ;");
    }

    #[test]
    fn an_inner_test_attribute_covers_the_rest() {
        check("use a; #![cfg(test)] b", "use a ; # ! <[> <cfg> <(> <test> <)> <]> <b>");
    }

    #[test]
    fn cfg_not_test_is_not_a_test() {
        check("#[cfg(not(test))] fn a() {}", "# [ cfg ( not ( test ) ) ] fn a ( ) { }");
    }

    #[test]
    fn brackets_are_paired_and_have_lines() {
        let found = tokens("fn a() {\n  { x }\n}\nfn b() {}").unwrap().0;
        let open = found.iter().position(|token| token.text == "{").unwrap();
        let close = closing(&found, open);
        assert_eq!((found[close].text.as_str(), found[close].line), ("}", 3));
    }

    #[test]
    fn a_source_that_is_not_rust_names_the_line() {
        for source in ["fn a() {}\nfn b( {}\n", "\n}", "\n(]", "\nlet a = \"b", "\n/* a"] {
            assert_eq!(tokens(source).unwrap_err(), 2, "{source}");
        }
    }

    /// The comments of a source: style, line, text, and the token that follows.
    #[track_caller]
    fn check_comments(source: &str, expected: &[(Style, usize, &str, &str)]) {
        let (tokens, comments) = tokens(source).expect("a source that can be read");
        let next = |before: usize| tokens.get(before).map(|token| token.text.as_str()).unwrap_or_default();
        let found: Vec<(Style, usize, &str, &str)> = comments
            .iter()
            .map(|comment| (comment.style, comment.line, comment.text.as_str(), next(comment.before)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_on_consecutive_lines_are_one() {
        check_comments(
            "//! a\n//!\n//!   b\n\n/// c\n// d\nfn e() {} // f\n// g\n",
            &[
                (Style::Inner, 1, "a\n\n  b", "fn"),
                (Style::Outer, 5, "c", "fn"),
                (Style::Plain, 6, "d", "fn"),
                (Style::Plain, 7, "f\ng", ""),
            ],
        );
        check_comments("a; // b\nc; // d\n", &[(Style::Plain, 1, "b", "c"), (Style::Plain, 2, "d", "")]);
        check_comments("// a\n\n// b\n", &[(Style::Plain, 1, "a", ""), (Style::Plain, 3, "b", "")]);
        check_comments("//// a\n", &[(Style::Plain, 1, "a", "")]);
    }

    #[test]
    fn comment_markers_in_literals_are_ignored() {
        check_comments(
            "let a = \"// b\n// c\"; let d = r#\"\n// e\"#; let f = '\"'; // g",
            &[(Style::Plain, 3, "g", "")],
        );
    }
}
