//! Splits Markdown into sentences with their lines. Code, link targets and HTML are left out.
//!
//! Rust comments are Markdown too, so a table or a code sample in a comment is not a sentence.

use pulldown_cmark::{Event, Options, Parser, Tag};
use std::ops::Range;

/// A heading, a cell or a list entry with at most this number of words is a label, not a sentence.
const LABEL_WORDS_MAX: usize = 3;

/// A period after one of these does not end a sentence.
const ABBREVIATIONS: [&str; 9] = ["e.g.", "i.e.", "cf.", "vs.", "ca.", "approx.", "resp.", "incl.", "viz."];

/// A sentence of a paragraph, a heading, a cell or an entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The line of its first word, counted from 1.
    pub(crate) line: usize,
    /// On one line, with code between backticks.
    pub(crate) text: String,
}

/// Returns the sentences of a document in order.
pub(crate) fn sentences(markdown: &str) -> Vec<Sentence> {
    let lines = LineStarts::of(markdown);
    let mut reader = Reader::default();
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        reader.take(event, lines.line(&range));
    }
    reader.end_block(false);
    reader.found
}

/// The bytes at which lines begin.
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(crate) fn of(text: &str) -> LineStarts {
        LineStarts([0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line in which a range begins, counted from 1.
    pub(crate) fn line(&self, range: &Range<usize>) -> usize {
        self.0.partition_point(|start| *start <= range.start)
    }
}

#[derive(Default)]
struct Reader {
    found: Vec<Sentence>,
    /// The characters of the current paragraph, heading, cell or list entry.
    block: Vec<Letter>,
    is_label_allowed: bool,
    is_code: bool,
}

#[derive(Clone, Copy)]
struct Letter {
    letter: char,
    line: usize,
    is_code: bool,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                self.end_block(false);
                self.is_code = true;
            }
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => self.is_code = false,
            Event::Text(text) if !self.is_code => self.add(&text, line, false),
            Event::Code(code) => self.add(&format!("`{code}`"), line, true),
            Event::SoftBreak | Event::HardBreak => self.add(" ", line, false),
            Event::Start(tag) if is_block(&tag) => self.end_block(!matches!(tag, Tag::Paragraph)),
            Event::End(tag) if !is_inline_end(tag) => self.end_block(false),
            _ => {}
        }
    }

    fn add(&mut self, text: &str, line: usize, is_code: bool) {
        self.block.extend(text.chars().map(|letter| Letter { letter, line, is_code }));
    }

    /// Splits the current block into sentences, and sets whether the next block may be a label.
    fn end_block(&mut self, is_label_allowed: bool) {
        let block = std::mem::take(&mut self.block);
        let words = block.split(|letter| letter.letter.is_whitespace()).filter(|word| !word.is_empty()).count();
        if !self.is_label_allowed || words > LABEL_WORDS_MAX {
            self.found.extend(split(&block));
        }
        self.is_label_allowed = is_label_allowed;
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

fn is_inline_end(tag: pulldown_cmark::TagEnd) -> bool {
    use pulldown_cmark::TagEnd;
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

fn split(block: &[Letter]) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in 0..block.len() {
        if let Some(next) = next_after(block, end) {
            found.extend(sentence(&block[start..next]));
            start = next;
        }
    }
    found.extend(sentence(&block[start..]));
    found
}

/// Returns the start of the next sentence if the character at `end` ends one.
fn next_after(block: &[Letter], end: usize) -> Option<usize> {
    let sign = block[end];
    if sign.is_code || !['.', '!', '?', ':'].contains(&sign.letter) || ends_abbreviation(block, end) {
        return None;
    }
    let closing = block[end + 1..].iter().take_while(|letter| is_closing(letter)).count();
    let space = end + 1 + closing;
    let spaces = block[space..].iter().take_while(|letter| letter.letter.is_whitespace()).count();
    let next = space + spaces;
    let first = block.get(next).filter(|_| spaces > 0)?;
    let opens = block[next..].iter().find(|letter| letter.is_code || letter.letter.is_alphanumeric())?;
    let begins = if sign.letter == ':' {
        !opens.is_code && opens.letter.is_uppercase()
    } else {
        first.is_code || opens.is_code || opens.letter.is_uppercase() || opens.letter.is_numeric()
    };
    begins.then_some(next)
}

fn is_closing(letter: &Letter) -> bool {
    !letter.is_code && [')', ']', '"', '\'', '”', '’'].contains(&letter.letter)
}

fn ends_abbreviation(block: &[Letter], end: usize) -> bool {
    let word = block[..=end].rsplit(|letter| letter.letter.is_whitespace()).next().unwrap_or_default();
    let word: String = word.iter().map(|letter| letter.letter).collect();
    let word = word.trim_start_matches(['(', '[', '"']).to_lowercase();
    // An initial, as in "P. Helland".
    let is_initial = word.len() == 2 && block[end - 1].letter.is_uppercase();
    is_initial || ABBREVIATIONS.contains(&word.as_str())
}

fn sentence(letters: &[Letter]) -> Option<Sentence> {
    let first = letters.iter().find(|letter| !letter.letter.is_whitespace())?;
    let text: String = letters.iter().map(|letter| letter.letter).collect();
    Some(Sentence { line: first.line, text: text.split_whitespace().collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests {
    use super::sentences;

    /// The sentences of a document, each behind its line.
    #[track_caller]
    fn check(markdown: &str, expected: &[(usize, &str)]) {
        let found = sentences(markdown);
        let found: Vec<(usize, &str)> = found.iter().map(|found| (found.line, found.text.as_str())).collect();
        assert_eq!(found, expected, "{markdown}");
    }

    #[test]
    fn paragraphs_are_split_and_know_their_lines() {
        check(
            "One is\nhere. Two is\nthere! *Three?* 4 too.\n",
            &[(1, "One is here."), (2, "Two is there!"), (3, "Three?"), (3, "4 too.")],
        );
        check(
            "(One.) \"Two.\" [Three](x.md). `four` five.\n",
            &[(1, "(One.)"), (1, "\"Two.\""), (1, "Three."), (1, "`four` five.")],
        );
        check(
            "Two cases: The first. And: the second.\n",
            &[(1, "Two cases:"), (1, "The first."), (1, "And: the second.")],
        );
    }

    #[test]
    fn periods_inside_of_a_sentence_do_not_end_it() {
        check(
            "Databases, e.g. PostgreSQL (i.e. The server), by P. Helland.\n",
            &[(1, "Databases, e.g. PostgreSQL (i.e. The server), by P. Helland.")],
        );
        check(
            "See https://a.b/c?d=E. Version 1.2 and `a. B` of 3.5 s.\n",
            &[(1, "See https://a.b/c?d=E."), (1, "Version 1.2 and `a. B` of 3.5 s.")],
        );
    }

    #[test]
    fn code_and_html_are_no_prose() {
        check(
            "A.\n\n```sh\nWhat is this.\n```\n\n    What is that.\n\n<!-- What. -->\n\nB.\n",
            &[(1, "A."), (11, "B.")],
        );
    }

    #[test]
    fn entries_cells_and_headings_are_sentences_of_their_own() {
        check(
            "# What is done here\n- one of a list\n- two of a list\n  has two lines\n\n1. the first of all\n",
            &[
                (1, "What is done here"),
                (2, "one of a list"),
                (3, "two of a list has two lines"),
                (6, "the first of all"),
            ],
        );
        check(
            "| a | b |\n|---|---|\n| one of the cells | two. Three of them |\n",
            &[(3, "one of the cells"), (3, "two."), (3, "Three of them")],
        );
    }

    #[test]
    fn a_label_is_no_sentence() {
        check("## Where it is\n\n- What\n\n| Why |\n|---|\n| Of course |\n\nWhose.\n", &[(9, "Whose.")]);
    }
}
