//! Rust source as a flat list of tokens, each with its line.
//!
//! Checks read tokens and not text, so that a word in a comment or in a message is never taken for code. They read
//! tokens and not a parsed tree, because a tree ends at macros, and half of our tests stand inside of one.

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

/// A word, a sign, a literal as it was written, or one of the brackets `(`, `)`, `[`, `]`, `{`, `}`.
///
/// Comments are left out, and so are doc comments, although the compiler takes those for attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// How many brackets are open around it; an opening bracket and its closing one have the same depth.
    pub(crate) depth: usize,
    /// Whether it stands under `#[cfg(test)]`, `#[test]` or an attribute like them.
    pub(crate) in_test: bool,
}

/// The tokens of one source text; on failure the line at which it stops being Rust.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, usize> {
    let stream: TokenStream = source.parse().map_err(|error: LexError| error.span().start().line)?;
    let mut found = Vec::new();
    flatten(stream, 0, false, &mut found);
    Ok(found)
}

/// Whether the tokens from `start` on read exactly like this.
pub(crate) fn reads(tokens: &[Token], start: usize, words: &[&str]) -> bool {
    tokens.get(start..start + words.len()).is_some_and(|found| found.iter().map(|token| &token.text).eq(words))
}

/// Where the bracket opened at `open` is closed.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let depth = tokens[open].depth;
    let rest = &tokens[open + 1..];
    open + 1 + rest.iter().position(|token| token.depth == depth).expect("the lexer has matched the brackets")
}

fn flatten(stream: TokenStream, depth: usize, inherited: bool, found: &mut Vec<Token>) {
    let mut in_test = inherited;
    // A test attribute holds for the item behind it, which ends with a block or a semicolon.
    let mut item_is_test = false;
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let attribute = attribute_before(&group, found, depth);
                if attribute.is_some() && begins_with(&group, "doc") {
                    remove_attribute_signs(found, attribute);
                    continue;
                }
                match attribute {
                    Some(Attribute::Inner) => in_test |= is_test_attribute(&group),
                    Some(Attribute::Outer) => item_is_test |= is_test_attribute(&group),
                    None => {}
                }
                let ends_item = attribute.is_none() && group.delimiter() == Delimiter::Brace;
                flatten_group(&group, depth, in_test || item_is_test, found);
                item_is_test &= !ends_item;
            }
            leaf => {
                let text = leaf.to_string();
                let ends_item = text == ";";
                let line = leaf.span().start().line;
                found.push(Token { text, line, depth, in_test: in_test || item_is_test });
                item_is_test &= !ends_item;
            }
        }
    }
}

fn flatten_group(group: &Group, depth: usize, in_test: bool, found: &mut Vec<Token>) {
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::None => return flatten(group.stream(), depth, in_test, found),
    };
    let bracket = |text: &str, line| Token { text: text.to_owned(), line, depth, in_test };
    found.push(bracket(open, group.span_open().start().line));
    flatten(group.stream(), depth + 1, in_test, found);
    found.push(bracket(close, group.span_close().start().line));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    /// `#![…]`: about what it stands in.
    Inner,
    /// `#[…]`: about what comes next.
    Outer,
}

fn attribute_before(group: &Group, found: &[Token], depth: usize) -> Option<Attribute> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let before = |distance: usize| {
        let token = found.len().checked_sub(distance).map(|index| &found[index]);
        token.filter(|token| token.depth == depth).map(|token| token.text.as_str())
    };
    match (before(2), before(1)) {
        (_, Some("#")) => Some(Attribute::Outer),
        (Some("#"), Some("!")) => Some(Attribute::Inner),
        _ => None,
    }
}

fn remove_attribute_signs(found: &mut Vec<Token>, attribute: Option<Attribute>) {
    let signs = if attribute == Some(Attribute::Inner) { 2 } else { 1 };
    found.truncate(found.len() - signs);
}

fn begins_with(group: &Group, word: &str) -> bool {
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(first)) if first == word)
}

/// `test`, `tokio::test`, `cfg(test)`, `cfg(all(test, unix))`; not `cfg(not(test))`.
fn is_test_attribute(group: &Group) -> bool {
    let mut words = Vec::new();
    flatten(group.stream(), 0, false, &mut words);
    let has = |word: &str| words.iter().any(|token| token.text == word);
    has("test") && !has("not")
}

#[cfg(test)]
mod tests {
    use super::{closing, tokens};

    /// The words of a source, those of tests in angle brackets.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let mark = |in_test: bool, text: &str| if in_test { format!("<{text}>") } else { text.to_owned() };
        let found = tokens(source).expect("a source that can be read");
        let words: Vec<String> = found.iter().map(|token| mark(token.in_test, &token.text)).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn comments_of_every_kind_are_left_out() {
        check("//! a\n/// b\n// c\n#[doc = \"d\"] use /* e */ x;", "use x ;");
    }

    #[test]
    fn a_test_attribute_holds_for_one_item() {
        check("#[test] fn a() {} fn b() {}", "# <[> <test> <]> <fn> <a> <(> <)> <{> <}> fn b ( ) { }");
        check("#[cfg(test)] use a; use b;", "# <[> <cfg> <(> <test> <)> <]> <use> <a> <;> use b ;");
    }

    #[test]
    fn an_inner_test_attribute_holds_to_the_end() {
        check("use a; #![cfg(test)] b", "use a ; # ! <[> <cfg> <(> <test> <)> <]> <b>");
    }

    #[test]
    fn what_is_not_for_tests_is_no_test() {
        check("#[cfg(not(test))] fn a() {}", "# [ cfg ( not ( test ) ) ] fn a ( ) { }");
    }

    #[test]
    fn brackets_know_their_partners_and_lines() {
        let found = tokens("fn a() {\n  { x }\n}\nfn b() {}").unwrap();
        let open = found.iter().position(|token| token.text == "{").unwrap();
        let close = closing(&found, open);
        assert_eq!((found[close].text.as_str(), found[close].line), ("}", 3));
    }

    #[test]
    fn a_source_that_is_not_rust_names_the_line() {
        assert_eq!(tokens("fn a() {}\nfn b( {}\n").unwrap_err(), 2);
    }
}
