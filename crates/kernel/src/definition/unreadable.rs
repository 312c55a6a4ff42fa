//! Suggests a line that makes a text readable: the common mistakes of YAML and JSON are fixed one at a time, and the
//! first line with which the text can be read is named in the help.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    document::{Place, ReadError},
    json,
    value::Value,
    yaml,
};

/// Longer texts are not tried: each try reads the whole text again.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Longer lines are not shown in a help text.
const LINE_CHARS_MAX: usize = 200;

/// Adds the line that fixes a text to the help of its error, if there is one.
pub(super) fn with_line(mut error: ReadError, text: &[u8], is_json: bool) -> ReadError {
    let Some(text) = core::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_BYTES_MAX) else { return error };
    let lines: Vec<&str> = text.lines().collect();
    if let Some(help) = without_fences(&lines) {
        error.help = help;
        return error;
    }
    let at = (error.place.line as usize).saturating_sub(1).min(lines.len().saturating_sub(1));
    let near: Vec<usize> = (at.saturating_sub(1)..=at).rev().filter(|at| *at < lines.len()).collect();
    for at in near {
        let before = lines[..at].iter().rev().find(|line| !line.trim().is_empty()).copied().unwrap_or_default();
        let column = if at + 1 == error.place.line as usize { error.place.column as usize } else { usize::MAX };
        let mut tries = if is_json { json_lines(lines[at], column) } else { yaml_lines(lines[at], before) };
        if !is_json && !text.contains('&') {
            tries.splice(0..0, quoted_aliases(lines[at]));
        }
        let fixed = tries
            .into_iter()
            .find(|line| line != lines[at] && !line.trim().is_empty() && reads(&lines, at, line, is_json));
        if let Some(line) = fixed.filter(|line| line.chars().count() <= LINE_CHARS_MAX) {
            error.help = format!("{}; write the line as `{line}`", error.help);
            if at + 1 != error.place.line as usize {
                let column = lines[at].chars().take_while(|letter| letter.is_whitespace()).count() + 1;
                error.place = Place { line: at as u32 + 1, column: column as u32 };
            }
            return error;
        }
    }
    if !is_json && let Some((first, fixed)) = several_lines(&lines, at) {
        let shown: Vec<String> = fixed.iter().map(|line| format!("`{line}`")).collect();
        let last = first + fixed.len();
        error.help = format!("{}; write the lines {} to {last} as {}", error.help, first + 1, shown.join(", "));
        error.place = Place { line: first as u32 + 1, column: 1 };
    }
    error
}

/// The number of lines that one help text shows.
const LINES_SHOWN_MAX: usize = 12;

/// The marks around a definition in a text of Markdown.
const FENCE: &str = "```";

/// Returns the help for a definition between the fences of Markdown.
fn without_fences(lines: &[&str]) -> Option<String> {
    let is_fence = |line: &&str| line.trim_start().starts_with(FENCE);
    lines.iter().find(|line| !line.trim().is_empty()).filter(|line| is_fence(line))?;
    let fences: Vec<String> =
        lines.iter().enumerate().filter(|(_, line)| is_fence(line)).map(|(at, _)| (at + 1).to_string()).collect();
    let rest: Vec<&str> = lines.iter().filter(|line| !is_fence(line)).copied().collect();
    let text = rest.join("\n");
    let document =
        if text.trim_start().starts_with('{') { json::read(text.as_bytes()) } else { yaml::read(text.as_bytes()) };
    (fences.len() <= 2 && document.is_ok()).then(|| {
        format!("leave out the lines {}: fences of Markdown do not belong to the definition", fences.join(" and "))
    })
}

/// Returns the first of several lines near a place that fix a text together, and the lines.
fn several_lines(lines: &[&str], at: usize) -> Option<(usize, Vec<String>)> {
    let near = (at.saturating_sub(2)..=at).filter(|at| *at < lines.len());
    near.flat_map(|first| tabs(lines, first).into_iter().chain(dashed(lines, first)).map(move |fixed| (first, fixed)))
        .find(|(first, fixed)| {
            let is_shown = |line: &String| line.chars().count() <= LINE_CHARS_MAX && !line.contains('`');
            let mut all: Vec<&str> = lines.to_vec();
            all.splice(first..&(first + fixed.len()), fixed.iter().map(String::as_str));
            fixed.len() <= LINES_SHOWN_MAX
                && fixed.iter().all(is_shown)
                && yaml::read(all.join("\n").as_bytes()).is_ok_and(|document| document.value.as_map().is_some())
        })
}

/// Writes the lines from a place that are indented with tabs with spaces, in each width that is common.
fn tabs(lines: &[&str], first: usize) -> Vec<Vec<String>> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let tabbed: Vec<&str> =
        lines[first..].iter().take_while(|line| line[..indent(line)].contains('\t')).copied().collect();
    let before = lines[..first].iter().rev().find(|line| !line.trim().is_empty()).copied().unwrap_or_default();
    let count = |line: &str| line[..indent(line)].matches('\t').count();
    let least = tabbed.iter().map(|line| count(line)).min().unwrap_or_default();
    if tabbed.is_empty() {
        return Vec::new();
    }
    let spaced = |of_tabs: &dyn Fn(usize) -> usize| {
        let line = |line: &&str| {
            let spaces = indent(line) - count(line);
            format!("{}{}", " ".repeat(of_tabs(count(line)) + spaces), line.trim_start())
        };
        tabbed.iter().map(line).collect()
    };
    let mut tries = vec![spaced(&|tabs| key_column(before) + 2 * (tabs - least))];
    tries.extend([2, 4, 8].map(|width| spaced(&|tabs| tabs * width)));
    tries
}

/// Sets a space after a dash, and moves the lines of the same item along with it.
fn dashed(lines: &[&str], first: usize) -> Option<Vec<String>> {
    let (indent, body) = lines[first].split_at(lines[first].len() - lines[first].trim_start().len());
    let rest = body.strip_prefix('-').filter(|rest| rest.starts_with(|sign: char| sign.is_ascii_alphanumeric()))?;
    let is_inside = |line: &&&str| line.len() - line.trim_start().len() > indent.len();
    let moved = lines[first + 1..].iter().take_while(is_inside).map(|line| format!(" {line}"));
    Some(core::iter::once(format!("{indent}- {rest}")).chain(moved).collect())
}

/// True if the text with another line is an object or a list.
fn reads(lines: &[&str], at: usize, line: &str, is_json: bool) -> bool {
    let mut lines = lines.to_vec();
    lines[at] = line;
    let text = lines.join("\n");
    let document = if is_json { json::read(text.as_bytes()) } else { yaml::read(text.as_bytes()) };
    document.is_ok_and(|document| matches!(document.value, Value::Map(_) | Value::List(_)))
}

fn yaml_lines(line: &str, before: &str) -> Vec<String> {
    // Before the whole value is quoted: a reference may be inside of braces.
    let mut tries: Vec<String> = without_merge(line).into_iter().chain(quoted_references(line)).collect();
    let (indent, body) = line.split_at(line.len() - line.trim_start().len());
    let dashes = if body.starts_with("- ") { "- " } else { "" };
    let body = &body[dashes.len()..];
    if let Some((key, value)) = body.split_once(": ").filter(|(key, _)| is_key(key)) {
        let (value, head) = (value.trim(), format!("{indent}{dashes}{key}: "));
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\'') && !value.starts_with('{'));
        match quote {
            Some(quote) => {
                tries.push(format!("{head}{value}{quote}"));
                if !value.contains('\'') {
                    tries.push(format!(
                        "{head}'{}'",
                        value
                            .strip_prefix('"')
                            .and_then(|v| v.strip_suffix('"'))
                            .filter(|v| !v.contains('"'))
                            .unwrap_or(value)
                    ));
                }
            }
            None => tries.push(format!("{head}{}", json::compact(&Value::text(value)))),
        }
    }
    if let Some((key, value)) = body.split_once(':').filter(|(key, value)| is_key(key) && !value.is_empty()) {
        tries.push(format!("{indent}{dashes}{key}: {}", value.trim()));
    }
    if let Some(rest) = body.strip_prefix('-').filter(|rest| rest.starts_with(|first: char| first.is_alphanumeric())) {
        tries.push(format!("{indent}- {rest}"));
    }
    tries.push(format!("{}{}", " ".repeat(key_column(before)), line.trim_start()));
    tries.push(balanced(line));
    tries.extend(with_commas(line));
    tries
}

/// Writes the entries of a merge key in its place.
fn without_merge(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("<<: {")?;
    let (entries, after) = rest.split_once('}').filter(|(entries, _)| !entries.contains('{'))?;
    Some(format!("{before}{entries}{after}"))
}

/// Quotes the aliases of a line, in a text without anchors.
fn quoted_aliases(line: &str) -> Option<String> {
    let (before, rest) = line.split_once(": *")?;
    let end = rest.find([',', '}', ']']).unwrap_or(rest.trim_end().len());
    let text = json::compact(&Value::text(format!("*{}", rest[..end].trim_end())));
    Some(format!("{before}: {text}{}", &rest[end..]))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns the column of the first key of a line, after its dash.
fn key_column(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-', '\t']).len()
}

/// Puts the references of a line that are without quotes into quotes.
fn quoted_references(line: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(": @") {
        let start = at + 2;
        let end = rest[start..].find([',', '}', ']', ' ']).map_or(rest.len(), |length| start + length);
        out.push_str(&rest[..start]);
        out.push_str(&json::compact(&Value::text(&rest[start..end])));
        rest = &rest[end..];
    }
    (!out.is_empty()).then(|| format!("{out}{rest}"))
}

/// Closes the braces and brackets of a line.
fn balanced(line: &str) -> String {
    let (mut out, mut open) = (String::new(), vec![]);
    for letter in line.trim_end().chars() {
        match letter {
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                while let Some(expected) = open.pop() {
                    if expected == letter {
                        break;
                    }
                    out.push(expected);
                }
            }
            _ => {}
        }
        out.push(letter);
    }
    out.extend(open.into_iter().rev());
    out
}

/// Returns the line with a comma before each key that has none.
fn with_commas(line: &str) -> Vec<String> {
    let keys = line.match_indices(": ").filter_map(|(at, _)| {
        let start = line[..at].rfind(' ')?;
        let before = line[..start].trim_end();
        let is_missing = !before.is_empty() && !before.ends_with([',', '{', '[', '-', ':']);
        is_missing.then(|| format!("{before}, {}", line[start..].trim_start()))
    });
    keys.collect()
}

fn json_lines(line: &str, column: usize) -> Vec<String> {
    let at = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let (before, after) = line.split_at(at);
    let mut tries = vec![
        before.trim_end().strip_suffix(',').map_or_else(String::new, |before| format!("{before}{after}")),
        format!("{}, {after}", before.trim_end()),
    ];
    for (word, value) in [("True", "true"), ("False", "false"), ("None", "null")] {
        tries.extend(after.strip_prefix(word).map(|rest| format!("{before}{value}{rest}")));
    }
    if after.starts_with("//") || after.starts_with('#') {
        tries.push(before.trim_end().to_string());
    }
    if !line.contains('"') || line.contains('\'') {
        tries.push(line.replace('\'', "\""));
    }
    tries.push(balanced(line));
    tries
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use crate::definition::{Syntax, read};

    fn check(text: &str, line: Option<&str>) {
        let found = read(text.as_bytes(), Syntax::Guess).expect_err(text);
        let shown =
            found.help.split_once("write the line as `").map(|(_, line)| line.trim_end_matches('`').to_string());
        assert_eq!(shown.as_deref(), line, "{}", found.help);
    }

    #[test]
    fn a_readable_line_is_suggested() {
        check("a:\n  b: @c.d\n", Some("  b: \"@c.d\""));
        check("a: {b: @c.d, e: 1}\n", Some("a: {b: \"@c.d\", e: 1}"));
        check("a: x: y\n", Some("a: \"x: y\""));
        check("- a: 1\n   b: 2\n", Some("  b: 2"));
        check("- {a: 1\n", Some("- {a: 1}"));
        check("a: \"x\n", Some("a: \"x\""));
        check("a: \"\\d\"\n", Some("a: '\\d'"));
        check("{\"a\": 1,}", Some("{\"a\": 1}"));
        check("{\"a\": True}", Some("{\"a\": true}"));
        check("{\"a\": 1 \"b\": 2}", Some("{\"a\": 1, \"b\": 2}"));
        check("a: 1\na: 2\n", None);
        check("a: {b: 1, <<: {c: 2}}\n", Some("a: {b: 1, c: 2}"));
        check("a: {b: *c, d: 1}\n", Some("a: {b: \"*c\", d: 1}"));
    }

    #[test]
    fn several_readable_lines_are_suggested() {
        let check = |text: &str, lines: &str| {
            let found = read(text.as_bytes(), Syntax::Guess).expect_err(text);
            assert!(found.help.ends_with(lines), "{}", found.help);
        };
        check("a:\n  - b: 1\n\tc: 2\n\td: 3\n", "write the lines 3 to 4 as `    c: 2`, `    d: 3`");
        check("a:\n  -b: 1\n   c: 2\n", "write the lines 2 to 3 as `  - b: 1`, `    c: 2`");
        check(
            "```yaml\na: 1\n```\n",
            "leave out the lines 1 and 3: fences of Markdown do not belong to the definition",
        );
    }
}
