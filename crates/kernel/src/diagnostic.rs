//! Diagnostics of the compiler: code, position, message and help text.
//!
//! Diagnostics are collected, so an author gets all mistakes of a definition at once, in document order.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::{
    document::{Document, Path, Place, ReadError},
    fix::Fix,
    value::Value,
};

/// One error or warning about a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Errors reject the definition, warnings do not.
    pub severity: Severity,
    /// Stable identifier for programs: one of [`CODES`], or a code of the server for checks that depend on its members.
    pub code: &'static str,
    /// Path of the part of the definition.
    pub path: Path,
    /// Position of that part in the source text; `None` if the definition was not parsed from text.
    pub place: Option<Place>,
    /// Description of the mistake. Text of the author is quoted and truncated.
    pub message: String,
    /// Help text: the suggested change. Empty if the message is enough.
    pub help: String,
    /// The suggested change for programs; empty if `help` names no single one.
    pub fix: Fix,
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The definition is rejected.
    Error,
    /// The definition is accepted.
    Warning,
}

impl Severity {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// All codes of the compiler; [`error_codes`](crate::error_codes) has their meanings.
pub const CODES: [&str; 56] = [
    UNREADABLE,
    TOO_LARGE,
    NOT_IN_BUILD,
    UNKNOWN_KEY,
    MISPLACED_KEY,
    MISSING_KEY,
    EXCLUSIVE_KEYS,
    UNKNOWN_TYPE,
    WRONG_KIND,
    WRONG_VALUE,
    EMPTY,
    BAD_NAME,
    DUPLICATE_ID,
    DUPLICATE_OUTPUT_VARIABLE,
    BAD_CONDITION,
    UNKNOWN_REFERENCE,
    REFERENCE_TO_ITSELF,
    REFERENCE_TO_LATER,
    REFERENCE_INTO_PARALLEL,
    REFERENCE_INTO_LOOP,
    CYCLE,
    BAD_CODE,
    BAD_SCHEMA,
    PATH_NOT_IN_SCHEMA,
    REFERENCE_IN_SCRIPT,
    MISPLACED_REFERENCE,
    BAD_SECRET,
    REFERENCE_TO_OUTPUT_VARIABLE,
    FOREIGN_REFERENCE,
    INEXACT_NUMBER,
    POLICY_DENIED,
    RETRY_DOES_NOT_APPLY,
    INTERRUPTION_REPEATS,
    GATE_NEVER_OPENS,
    STEP_NEVER_RUNS,
    TIMEOUT_ABOVE_EXECUTION,
    EDGE_CONDITION_IGNORED,
    COMPARISON_NEVER_HOLDS,
    VALUE_MAY_BE_NULL,
    VALUE_MAY_BE_MISSING,
    REFERENCE_IS_TEXT,
    DENIAL_NOT_CAUGHT,
    RULE_MATCHES_NOTHING,
    WHOLE_RESULT_IN_TEXT,
    UNKNOWN_SCHEMA_KEYWORD,
    VALUE_NOT_IN_SCHEMA,
    LOOP_OVER_NO_LIST,
    UNUSED_ALLOW,
    UNTRUSTED_FLOW,
    PRIVATE_FLOW,
    UNKNOWN_WORKFLOW,
    UNKNOWN_SECRET,
    UNKNOWN_MODEL,
    UNKNOWN_TOOL_SERVER,
    UNKNOWN_RUNNER,
    MISSING_PRICE,
];

/// The codes of warnings that a definition may accept with `allow`, those of a server included.
pub const WARNINGS: [&str; 33] = [
    DUPLICATE_OUTPUT_VARIABLE,
    BAD_CONDITION,
    PATH_NOT_IN_SCHEMA,
    REFERENCE_TO_OUTPUT_VARIABLE,
    FOREIGN_REFERENCE,
    INEXACT_NUMBER,
    TOO_LARGE,
    RETRY_DOES_NOT_APPLY,
    INTERRUPTION_REPEATS,
    GATE_NEVER_OPENS,
    STEP_NEVER_RUNS,
    TIMEOUT_ABOVE_EXECUTION,
    EDGE_CONDITION_IGNORED,
    COMPARISON_NEVER_HOLDS,
    VALUE_MAY_BE_NULL,
    VALUE_MAY_BE_MISSING,
    REFERENCE_IS_TEXT,
    DENIAL_NOT_CAUGHT,
    RULE_MATCHES_NOTHING,
    WHOLE_RESULT_IN_TEXT,
    UNKNOWN_SCHEMA_KEYWORD,
    VALUE_NOT_IN_SCHEMA,
    LOOP_OVER_NO_LIST,
    UNTRUSTED_FLOW,
    PRIVATE_FLOW,
    UNKNOWN_WORKFLOW,
    UNKNOWN_SECRET,
    UNKNOWN_MODEL,
    UNKNOWN_TOOL_SERVER,
    UNKNOWN_RUNNER,
    MISSING_PRICE,
    OF_SERVERS[0],
    OF_SERVERS[1],
];

/// The codes of warnings that a server adds, because they depend on its members.
pub const OF_SERVERS: [&str; 2] = ["approver_cannot_decide", "too_few_approvers"];

/// The codes of warnings that depend on what is known where the definition is.
pub const OF_PLACES: [&str; 6] =
    [UNKNOWN_WORKFLOW, UNKNOWN_SECRET, UNKNOWN_MODEL, UNKNOWN_TOOL_SERVER, UNKNOWN_RUNNER, MISSING_PRICE];

/// See [`CODES`].
pub const UNKNOWN_WORKFLOW: &str = "unknown_workflow";
/// See [`CODES`].
pub const UNKNOWN_SECRET: &str = "unknown_secret";
/// See [`CODES`].
pub const UNKNOWN_MODEL: &str = "unknown_model";
/// See [`CODES`].
pub const UNKNOWN_TOOL_SERVER: &str = "unknown_tool_server";
/// See [`CODES`].
pub const UNKNOWN_RUNNER: &str = "unknown_runner";
/// See [`CODES`].
pub const MISSING_PRICE: &str = "missing_price";
/// See [`CODES`].
pub const RETRY_DOES_NOT_APPLY: &str = "retry_does_not_apply";
/// See [`CODES`].
pub const INTERRUPTION_REPEATS: &str = "interruption_repeats";
/// See [`CODES`].
pub const GATE_NEVER_OPENS: &str = "gate_never_opens";
/// See [`CODES`].
pub const STEP_NEVER_RUNS: &str = "step_never_runs";
/// See [`CODES`].
pub const TIMEOUT_ABOVE_EXECUTION: &str = "timeout_above_execution";
/// See [`CODES`].
pub const EDGE_CONDITION_IGNORED: &str = "edge_condition_ignored";
/// See [`CODES`].
pub const COMPARISON_NEVER_HOLDS: &str = "comparison_never_holds";
/// See [`CODES`].
pub const VALUE_MAY_BE_NULL: &str = "value_may_be_null";
/// See [`CODES`].
pub const VALUE_MAY_BE_MISSING: &str = "value_may_be_missing";
/// See [`CODES`].
pub const REFERENCE_IS_TEXT: &str = "reference_is_text";
/// See [`CODES`].
pub const DENIAL_NOT_CAUGHT: &str = "denial_not_caught";
/// See [`CODES`].
pub const RULE_MATCHES_NOTHING: &str = "rule_matches_nothing";
/// See [`CODES`].
pub const WHOLE_RESULT_IN_TEXT: &str = "whole_result_in_text";
/// See [`CODES`].
pub const UNKNOWN_SCHEMA_KEYWORD: &str = "unknown_schema_keyword";
/// See [`CODES`].
pub const VALUE_NOT_IN_SCHEMA: &str = "value_not_in_schema";
/// See [`CODES`].
pub const LOOP_OVER_NO_LIST: &str = "loop_over_no_list";
/// See [`CODES`].
pub const UNUSED_ALLOW: &str = "unused_allow";
/// See [`CODES`].
pub const UNREADABLE: &str = "unreadable";
/// See [`CODES`].
pub const TOO_LARGE: &str = "too_large";
/// See [`CODES`].
pub const NOT_IN_BUILD: &str = "not_in_build";
/// See [`CODES`].
pub const UNKNOWN_KEY: &str = "unknown_key";
/// See [`CODES`].
pub const MISPLACED_KEY: &str = "misplaced_key";
/// See [`CODES`].
pub const MISSING_KEY: &str = "missing_key";
/// See [`CODES`].
pub const EXCLUSIVE_KEYS: &str = "exclusive_keys";
/// See [`CODES`].
pub const UNKNOWN_TYPE: &str = "unknown_type";
/// See [`CODES`].
pub const WRONG_KIND: &str = "wrong_kind";
/// See [`CODES`].
pub const WRONG_VALUE: &str = "wrong_value";
/// See [`CODES`].
pub const EMPTY: &str = "empty";
/// See [`CODES`].
pub const BAD_NAME: &str = "bad_name";
/// See [`CODES`].
pub const DUPLICATE_ID: &str = "duplicate_id";
/// See [`CODES`].
pub const DUPLICATE_OUTPUT_VARIABLE: &str = "duplicate_output_variable";
/// See [`CODES`].
pub const BAD_CONDITION: &str = "bad_condition";
/// See [`CODES`].
pub const UNKNOWN_REFERENCE: &str = "unknown_reference";
/// See [`CODES`].
pub const REFERENCE_TO_ITSELF: &str = "reference_to_itself";
/// See [`CODES`].
pub const REFERENCE_TO_LATER: &str = "reference_to_later";
/// See [`CODES`].
pub const REFERENCE_INTO_PARALLEL: &str = "reference_into_parallel";
/// See [`CODES`].
pub const REFERENCE_INTO_LOOP: &str = "reference_into_loop";
/// See [`CODES`].
pub const CYCLE: &str = "cycle";
/// See [`CODES`].
pub const BAD_CODE: &str = "bad_code";
/// See [`CODES`].
pub const BAD_SCHEMA: &str = "bad_schema";
/// See [`CODES`].
pub const PATH_NOT_IN_SCHEMA: &str = "path_not_in_schema";
/// See [`CODES`].
pub const REFERENCE_IN_SCRIPT: &str = "reference_in_script";
/// See [`CODES`].
pub const MISPLACED_REFERENCE: &str = "misplaced_reference";
/// See [`CODES`].
pub const BAD_SECRET: &str = "bad_secret";
/// See [`CODES`].
pub const REFERENCE_TO_OUTPUT_VARIABLE: &str = "reference_to_output_variable";
/// See [`CODES`].
pub const FOREIGN_REFERENCE: &str = "foreign_reference";
/// See [`CODES`].
pub const INEXACT_NUMBER: &str = "inexact_number";
/// See [`CODES`].
pub const POLICY_DENIED: &str = "policy_denied";
/// See [`CODES`].
pub const UNTRUSTED_FLOW: &str = "untrusted_flow";
/// See [`CODES`].
pub const PRIVATE_FLOW: &str = "private_flow";

/// Maximum number of characters shown of a source line. A definition may be one line of a megabyte.
const SHOWN_CHARS_MAX: usize = 100;

/// Maximum number of characters quoted from an author's text.
const QUOTED_CHARS_MAX: usize = 60;

impl Diagnostic {
    /// Creates a warning about a part of a document.
    pub fn warning(code: &'static str, path: Path, document: &Document, message: &str, help: &str) -> Self {
        let place = document.place(&path);
        let (message, help, fix) = (plain(message), plain(help), Fix::default());
        Self { severity: Severity::Warning, code, path, place, message, help, fix }
    }

    /// Returns `{severity, code, path, line, column, message, help, fix}`. Line and column are null without a position;
    /// `fix` is a JSON Patch for the definition, empty if there is none.
    pub fn to_value(&self) -> Value {
        Value::map([
            ("severity", self.severity.name().into()),
            ("code", self.code.into()),
            ("path", self.path.to_string().into()),
            ("line", self.place.map(|place| place.line).into()),
            ("column", self.place.map(|place| place.column).into()),
            ("message", self.message.as_str().into()),
            ("help", self.help.as_str().into()),
            ("fix", self.fix.to_value()),
        ])
    }

    /// Renders the diagnostic as plain text, with the source line and a caret below the position; every line ends with
    /// a newline. The source line is left out without a position, or if the source has no such line.
    pub fn render(&self, source: &str) -> String {
        self.rendered(|number| source.lines().nth(number))
    }

    /// Renders the diagnostic with the source line of an index from 0.
    fn rendered<'s>(&self, line: impl Fn(usize) -> Option<&'s str>) -> String {
        let mut out = format!("{}[{}]: {}\n", self.severity.name(), self.code, self.message);
        let excerpt = self.place.and_then(|place| {
            let line = line(usize::try_from(place.line).ok()?.checked_sub(1)?)?;
            Some((place, Excerpt::of(line, place)?))
        });
        let number = excerpt.as_ref().map(|(place, _)| place.line.to_string()).unwrap_or_default();
        let margin = " ".repeat(number.len());
        let place = self.place.map(|place| format!("{place} ")).unwrap_or_default();
        out.push_str(format!("{margin}--> {place}{}", self.path).trim_end());
        out.push('\n');
        if let Some((_, excerpt)) = excerpt {
            out.push_str(&format!("{margin} |\n{}\n", format!("{number} | {}", excerpt.line).trim_end()));
            out.push_str(&format!("{margin} | {}^\n", excerpt.indent));
        }
        if !self.help.is_empty() {
            out.push_str(&format!("{margin} = {}\n", self.help));
        }
        out
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(out, "{place} ")?;
        }
        if !self.path.segments().is_empty() {
            write!(out, "{}: ", self.path)?;
        }
        write!(out, "{} [{}]", self.message, self.code)?;
        if self.help.is_empty() { Ok(()) } else { write!(out, "; {}", self.help) }
    }
}

impl From<ReadError> for Diagnostic {
    fn from(error: ReadError) -> Self {
        Self {
            severity: Severity::Error,
            code: UNREADABLE,
            path: Path::root(),
            place: Some(error.place),
            message: plain(&error.message),
            help: plain(&error.help),
            fix: Fix::default(),
        }
    }
}

/// An excerpt of a source line, and the indentation of the caret below it.
struct Excerpt {
    line: String,
    indent: String,
}

impl Excerpt {
    fn of(line: &str, place: Place) -> Option<Self> {
        let caret = usize::try_from(place.column).ok()?.checked_sub(1)?;
        let start = if caret < SHOWN_CHARS_MAX { 0 } else { caret - SHOWN_CHARS_MAX / 2 };
        let letters: Vec<char> = line.chars().skip(start).take(SHOWN_CHARS_MAX + 1).collect();
        let (shown, is_cut) = match letters.get(..SHOWN_CHARS_MAX) {
            Some(shown) if letters.len() > SHOWN_CHARS_MAX => (shown, true),
            _ => (letters.as_slice(), false),
        };
        let (before, after) = (if start > 0 { "…" } else { "" }, if is_cut { "…" } else { "" });
        let mut indent = " ".repeat(before.chars().count());
        for letter in shown.iter().take(caret - start) {
            match letter {
                // The width of a tab depends on the terminal, so the indentation repeats the tab.
                '\t' => indent.push('\t'),
                letter => indent.push_str(&" ".repeat(visible(*letter).chars().count())),
            }
        }
        indent.push_str(&" ".repeat((caret - start).saturating_sub(shown.len())));
        let shown: String = shown.iter().copied().map(visible).collect();
        Some(Self { line: format!("{before}{shown}{after}"), indent })
    }
}

/// Renders diagnostics one after another, each as [`Diagnostic::render`] does. It splits the source into lines once, so the
/// time does not grow with the product of lines and diagnostics.
pub fn render_all(diagnostics: &[Diagnostic], source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    diagnostics.iter().map(|one| one.rendered(|number| lines.get(number).copied())).collect()
}

/// Quotes and escapes an author's text for a message, and truncates it if it is long.
pub fn quoted(text: &str) -> String {
    if text.chars().nth(QUOTED_CHARS_MAX).is_none() {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{:?}", start + "…")
}

/// Escapes control and invisible characters, so that a definition cannot control the terminal that shows its
/// diagnostics.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(visible).collect()
}

fn visible(letter: char) -> String {
    if is_obeyed(letter) && letter != '\t' { letter.escape_unicode().to_string() } else { letter.to_string() }
}

/// Ranges of invisible characters, first and last, that reorder, hide or break the text around them.
const INVISIBLE: [(char, char); 9] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{e0000}', '\u{e007f}'),
];

/// True for characters that a terminal interprets instead of showing. All output for people uses this one list.
pub fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || !letter.is_ascii() && INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: UNKNOWN_TYPE,
            path: Path::root().key("steps").index(0).key("type"),
            place: Some(Place { line, column }),
            message: "unknown step type \"tol\"".into(),
            help: "write \"tool\"".into(),
            fix: Fix::default(),
        }
    }

    fn check(source: &str, line: u32, column: u32, shown: &str) {
        let rendered = at(line, column).render(source);
        let lines: Vec<_> = rendered.lines().skip(3).take_while(|line| !line.contains('=')).collect();
        assert_eq!(lines.join("\n"), shown, "{rendered}");
    }

    #[test]
    fn the_line_and_the_caret() {
        check("a\nb: tol\n", 2, 4, "2 | b: tol\n  |    ^");
        check("\tb: tol\r\n", 1, 5, "1 | \tb: tol\n  | \t   ^");
        check("a\u{1b}[31m: x", 1, 1, "1 | a\\u{1b}[31m: x\n  | ^");
        check("a\u{202e}b\u{2028}: x", 1, 6, "1 | a\\u{202e}b\\u{2028}: x\n  |                    ^");
        check("\u{200b}\tx", 1, 3, "1 | \\u{200b}\tx\n  |         \t^");
        check("a", 1, 3, "1 | a\n  |   ^");
        check("a", 7, 1, "");
        check("", 1, 1, "");
        let long = "x".repeat(1000);
        check(&long, 1, 1, &format!("1 | {}…\n  | ^", "x".repeat(100)));
        check(&long, 1, 500, &format!("1 | …{}…\n  | {}^", "x".repeat(100), " ".repeat(51)));
        check("é: tol", 1, 4, "1 | é: tol\n  |    ^");
    }

    #[test]
    fn several_are_rendered_as_each_alone() {
        let source = "a\nb: tol\n\tc: x";
        let all = [at(2, 4), at(1, 1), at(3, 2), at(9, 1), Diagnostic { place: None, ..at(1, 1) }];
        let each: String = all.iter().map(|one| one.render(source)).collect();
        assert_eq!(render_all(&all, source), each);
    }

    #[test]
    fn forms() {
        assert_eq!(at(3, 5).to_string(), "3:5 steps[0].type: unknown step type \"tol\" [unknown_type]; write \"tool\"");
        let placeless = Diagnostic { place: None, path: Path::root(), help: String::new(), ..at(1, 1) };
        assert_eq!(placeless.to_string(), "unknown step type \"tol\" [unknown_type]");
        assert_eq!(placeless.render("x"), "error[unknown_type]: unknown step type \"tol\"\n-->\n");
        assert_eq!(
            crate::json::compact(&at(3, 5).to_value()),
            r#"{"code":"unknown_type","column":5,"fix":[],"help":"write \"tool\"","line":3,"message":"unknown step type \"tol\"","path":"steps[0].type","severity":"error"}"#
        );
        assert_eq!(quoted(&"a".repeat(61)), format!("\"{}…\"", "a".repeat(60)));
    }

    #[test]
    fn codes_are_unique() {
        let mut codes = CODES.to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), CODES.len());
    }
}
