//! Reads the JSON value of a final answer from a model's text.
//!
//! The candidates are, in this order: the whole text, the content of each fenced block, and each object or list in the
//! text that is not inside another one. The first candidate that is JSON is the value. A number, a word or a text is
//! accepted only as the whole answer, since prose is full of them.

use alloc::string::String;
use core::fmt;

use crate::{json, value::Value};

/// The bounds on the search in prose, so that a text of brackets takes linear time.
const CANDIDATES_MAX: usize = 64;

/// The reason why a text has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The text is empty.
    Empty,
    /// Nothing in the text is JSON.
    NoJson,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Empty => "it is empty and has to be a JSON value",
            Self::NoJson => "it has no JSON value",
        })
    }
}

/// Returns the first candidate that is JSON. Takes time linear in the text, up to a constant number of candidates.
pub fn read_answer(text: &str) -> Result<Value, NoAnswer> {
    let text = text.trim().trim_start_matches('\u{feff}');
    if text.is_empty() {
        return Err(NoAnswer::Empty);
    }
    let whole = json::data(text.as_bytes()).ok();
    let fenced = || fenced_blocks(text).find_map(|block| json::data(block.as_bytes()).ok());
    whole.or_else(fenced).or_else(|| in_prose(text)).ok_or(NoAnswer::NoJson)
}

/// Returns the contents of the blocks between lines of three backticks.
fn fenced_blocks(text: &str) -> impl Iterator<Item = String> {
    let (mut lines, mut left) = (text.lines(), CANDIDATES_MAX);
    core::iter::from_fn(move || {
        lines.find(|line| line.trim_start().starts_with("```"))?;
        left = left.checked_sub(1)?;
        let mut block = String::new();
        for line in lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")) {
            block.push_str(line);
            block.push('\n');
        }
        Some(block)
    })
}

/// Returns the first object or list in a text.
fn in_prose(text: &str) -> Option<Value> {
    let (mut at, mut left) = (0, CANDIDATES_MAX);
    while let Some(begin) = text[at..].find(['{', '[']).map(|found| at + found) {
        left = left.checked_sub(1)?;
        let end = end_of_value(&text[begin..]).map(|end| begin + end);
        let value = end.and_then(|end| json::data(&text.as_bytes()[begin..end]).ok());
        if value.is_some() {
            return value;
        }
        at = begin + 1;
    }
    None
}

/// Returns the length of the bracketed part at the start of a text; `None` if it does not end.
fn end_of_value(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let expected = expected.map(|json| json::value(json.as_bytes()).unwrap());
        assert_eq!(read_answer(text).ok(), expected, "{text:?}");
    }

    #[test]
    fn the_whole_text_may_be_any_json() {
        check("{\"a\": 1}", Some("{\"a\": 1}"));
        check("  [1, 2]\n", Some("[1, 2]"));
        check("3", Some("3"));
        check("\"text\"", Some("\"text\""));
        check("null", Some("null"));
    }

    #[test]
    fn fenced_blocks_and_prose_around_are_removed() {
        check("```json\n{\"a\": 1}\n```", Some("{\"a\": 1}"));
        check("Here it is:\n```\n[1]\n```\nI hope it helps {x}.", Some("[1]"));
        check("```sh\nls\n```\nand\n```json\n{\"a\": 2}\n```", Some("{\"a\": 2}"));
        check("```json\n{\"a\": 1}", Some("{\"a\": 1}"));
        check("The result is {\"a\": \"}\", \"b\": [1]} as wanted.", Some("{\"a\": \"}\", \"b\": [1]}"));
        check("Use {braces} and {\"a\": 1}", Some("{\"a\": 1}"));
        check("{not json {\"a\": 1}}", Some("{\"a\": 1}"));
    }

    #[test]
    fn a_text_without_json_has_no_value() {
        assert_eq!(read_answer("  \n"), Err(NoAnswer::Empty));
        for text in ["no json", "the count is 3", "{\"a\": 1", "{'a': 1}", "```\nnothing\n```", "]}"] {
            assert_eq!(read_answer(text), Err(NoAnswer::NoJson), "{text}");
        }
    }

    #[test]
    fn a_text_of_brackets_takes_bounded_time() {
        check(&"[".repeat(200_000), None);
        check(&"{}x".repeat(3), Some("{}"));
    }
}
