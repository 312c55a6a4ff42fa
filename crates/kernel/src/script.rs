//! Prepares shell scripts: replaces each reference by a quoted expansion of an environment variable.
//!
//! A value, meaning the run-time value of a reference, must never become part of the text of a script: the author of
//! the value could then run any command. `echo @vars.name` therefore becomes `echo "${MAINSPRING_REF_0}"`, and the step
//! runs with that variable set. This is safe only if bash treats a quoted expansion in that position as plain text, and
//! if the program that receives the value treats it as data.
//!
//! The check rejects by default. A script without references is not checked at all. A script with references is parsed
//! by a grammar that covers a part of bash, a taint analysis follows the values through it, and each command that a
//! value reaches must be in a table of programs and options. Everything outside of the grammar and the tables is
//! rejected. A wrong rejection costs the author one line in the step's `env`; a wrong acceptance costs the machine.
//! Earlier versions listed what is dangerous, and each list missed further programs (docs/decisions/0053).
//!
//! | file | holds |
//! |---|---|
//! | `marks` | the positions of references in a text; `@@` |
//! | `place` | the reasons for a rejection, with help texts |
//! | `syntax` | the syntax tree |
//! | `reader` | the lexer: words, quotes, expansions |
//! | `grammar` | the parser: lists, pipelines, compound commands, redirections |
//! | `here_document` | `<<` and its lines |
//! | `flow` | the taint analysis: words, variables, outputs and files that may contain a value |
//! | `judge` | the decision about each command, based on `flow` |
//! | `programs` | the programs that may receive values, and in which arguments |
//! | `git`, `transfer` | rules for `git` and `curl` that do not fit a table |
//! | `builtins` | the builtins that a script may use, and their arguments |
//! | `files`, `variables` | rules for names of files and of variables |
//! | `prologue` | the text before a script that removes the values from the environment of its programs |
//!
//! The variables in the step's `env` are not checked: the script that uses them is text of the author.

mod builtins;
mod files;
mod flow;
mod git;
mod grammar;
mod here_document;
mod judge;
mod marks;
mod place;
mod programs;
mod prologue;
mod reader;
mod syntax;
mod transfer;
mod variables;

#[cfg(test)]
mod tests;

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::fmt::{self, Write};

use flow::Flow;
use judge::Judge;
use marks::{Mark, Marked};
use reader::{Form, Lost, Reader, Verdict};
use syntax::Check;

pub use place::Place;
pub use prologue::without_prologue;

use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_EXCERPT_CHARS_MAX, SCRIPT_PROBLEMS_MAX};

/// Prefix of the variables for references; a number from 0 follows.
pub const VARIABLE_PREFIX: &str = "MAINSPRING_REF_";

/// A script whose references are replaced by variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The text for bash.
    pub text: String,
    /// The references in the order of their variables, without the `@`.
    pub references: Vec<String>,
}

/// The context of a script in its step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The variables of the step's `env`; the flag is true if the value has a reference.
    pub variables: &'a [(&'a str, bool)],
    /// True if a reference selects the folder in which the script runs.
    pub is_folder_named: bool,
}

impl Surroundings<'_> {
    fn gives(&self, name: &[u8]) -> bool {
        self.variables.iter().any(|(given, _)| given.as_bytes() == name)
    }

    fn gives_value(&self, name: &[u8]) -> bool {
        self.variables.iter().any(|(given, has_reference)| *has_reference && given.as_bytes() == name)
    }
}

/// A reference in a position where a value is unsafe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Offset of its `@` in the command, in bytes.
    pub offset: usize,
    /// The reference without the `@`.
    pub reference: String,
    /// The reason for the rejection.
    pub place: Place,
    /// The part of the script that causes the rejection, if it is elsewhere.
    pub cause: Option<Arc<str>>,
}

impl Problem {
    /// Describes the position of the reference for a message; continues a sentence after "stands".
    pub fn describe(&self) -> String {
        match &self.cause {
            Some(cause) => format!("in the same script as {cause}"),
            None => self.place.describe().to_string(),
        }
    }

    /// Returns the help text as a whole sentence that quotes the reference.
    pub fn help(&self) -> String {
        let reference = match self.reference.char_indices().nth(SCRIPT_EXCERPT_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &self.reference[..end]),
            None => self.reference.clone(),
        };
        self.place.help().replace("@REFERENCE", &format!("@{reference}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{} stands {}. {}", self.reference, self.describe(), self.help())
    }
}

/// True if a variable holds code for the shell or for programs, or the location of such code.
pub fn is_code_variable(name: &str) -> bool {
    variables::is_code_variable(name.as_bytes())
}

/// True if a text has a reference whose name is known.
pub fn has_reference(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    !Marked::read(text, is_known).marks.is_empty()
}

/// Replaces the references in a command by variables. `is_known` returns if a reference can start with a name; any other
/// `@` is text. A command without references is returned unchanged, except that `@@` becomes `@`. The error lists the
/// references in unsafe positions, in text order and up to [`SCRIPT_PROBLEMS_MAX`].
///
/// Time and memory are linear in the length of the command, which is limited if it has references.
pub fn prepare(
    command: &str,
    surroundings: Surroundings<'_>,
    is_known: impl Fn(&str) -> bool,
) -> Result<Script, Vec<Problem>> {
    let marked = Marked::read(command, is_known);
    let Some(first) = marked.marks.first() else {
        return Ok(Script { text: marked.text, references: Vec::new() });
    };
    if marked.text.len() > SCRIPT_BYTES_MAX {
        // All references are affected; reporting one is enough.
        return Err([problem(&marked, first, Place::TooLong, None)].into());
    }
    let Judged { verdicts, lost, variables } = judged(&marked, surroundings);
    let problems = problems(&marked, &verdicts, lost);
    if problems.is_empty() { Ok(splice(&marked, &verdicts, &variables)) } else { Err(problems) }
}

/// The result of checking a script.
struct Judged {
    /// One verdict for each reference.
    verdicts: Vec<Verdict>,
    /// The part that makes the whole script uncheckable, if there is one.
    lost: Option<Lost>,
    /// The variables to which values are assigned.
    variables: Vec<Vec<u8>>,
}

fn judged(marked: &Marked, surroundings: Surroundings<'_>) -> Judged {
    let mut reader = Reader::new(marked);
    match reader.script() {
        Ok(mut parsed) => {
            let flow = Flow::of(&mut parsed, surroundings);
            let variables = flow.variables_with_values().map(<[u8]>::to_vec).collect();
            let (verdicts, lost) = Judge::run(&parsed, flow, reader.verdicts);
            Judged { verdicts, lost, variables }
        }
        Err(lost) => {
            let line = marked.text.as_bytes()[lost.at.min(marked.text.len())..].split(|byte| *byte == b'\n').next();
            let end = match lost.place {
                Place::Unterminated | Place::TooDeep => marked.text.len(),
                _ => lost.at + line.map_or(0, <[u8]>::len),
            };
            let mut verdicts = reader.verdicts;
            for (mark, verdict) in marked.marks.iter().zip(&mut verdicts) {
                let is_open = !matches!(verdict, Verdict::Refused(place) if *place != Place::Beside);
                if is_open && (lost.at..end).contains(&mark.offset) {
                    *verdict = Verdict::Refused(lost.place);
                }
            }
            Judged { verdicts, lost: Some(lost), variables: Vec::new() }
        }
    }
}

fn problems(marked: &Marked, verdicts: &[Verdict], lost: Option<Lost>) -> Vec<Problem> {
    let cause = lost.map(|lost| cause(marked, lost));
    let refused = marked.marks.iter().zip(verdicts).filter_map(|(mark, verdict)| match verdict {
        Verdict::Refused(place @ (Place::Beside | Place::Unclear)) => Some((mark, *place, cause.clone())),
        Verdict::Quoted(..) if cause.is_some() => Some((mark, Place::Beside, cause.clone())),
        Verdict::Quoted(..) => None,
        Verdict::Refused(place) => Some((mark, *place, None)),
    });
    refused.take(SCRIPT_PROBLEMS_MAX).map(|(mark, place, cause)| problem(marked, mark, place, cause)).collect()
}

fn problem(marked: &Marked, mark: &Mark, place: Place, cause: Option<Arc<str>>) -> Problem {
    Problem { offset: mark.offset_in_command, reference: marked.reference(mark).to_string(), place, cause }
}

/// Quotes the start of the part that makes a script uncheckable, with its line and the reason.
fn cause(marked: &Marked, lost: Lost) -> Arc<str> {
    let at = (0..=lost.at.min(marked.text.len())).rev().find(|at| marked.text.is_char_boundary(*at)).unwrap_or(0);
    let number = 1 + marked.text[..at].bytes().filter(|byte| *byte == b'\n').count();
    let line = marked.text[at..].lines().next().unwrap_or_default();
    let excerpt: String = line.chars().take(SCRIPT_EXCERPT_CHARS_MAX).collect();
    let dots = if excerpt.len() < line.len() { "…" } else { "" };
    let found = if excerpt.is_empty() { "the end".to_string() } else { format!("`{excerpt}{dots}`") };
    format!("{found} (line {number}), {}", lost.place.reason()).into()
}

/// Inserts the prologue and replaces the references by expansions. Equal references share one variable.
fn splice(marked: &Marked, verdicts: &[Verdict], variables: &[Vec<u8>]) -> Script {
    let mut text = String::with_capacity(marked.text.len() + 32 * marked.marks.len());
    let mut references = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut done = 0;
    for (mark, verdict) in marked.marks.iter().zip(verdicts) {
        let reference = marked.reference(mark);
        let number = *numbers.entry(reference).or_insert_with(|| {
            references.push(reference.to_string());
            references.len() - 1
        });
        text.push_str(&marked.text[done..mark.offset]);
        text.push_str(&expansion(*verdict, number, reference));
        done = mark.end;
    }
    text.push_str(&marked.text[done..]);
    text.insert_str(0, &prologue::prologue(references.len(), variables));
    Script { text, references }
}

fn expansion(verdict: Verdict, number: usize, reference: &str) -> String {
    let mut name = String::from(VARIABLE_PREFIX);
    let _ = write!(name, "{number}");
    match verdict {
        // Bash ends the script with this message.
        Verdict::Quoted(_, Some(Check::Filled)) => {
            let _ = write!(name, ":?the value of @{reference} is empty, and the path would be another one");
        }
        // No name of a branch or a tag has a colon or a circumflex: git reports the second and reads the first as an end.
        Verdict::Quoted(_, Some(Check::WithoutColon)) => name.push_str("//:/^"),
        _ => {}
    }
    match verdict {
        Verdict::Quoted(Form::Single, _) => format!("'\"${{{name}}}\"'"),
        Verdict::Quoted(Form::Double, _) => format!("${{{name}}}"),
        Verdict::Quoted(Form::Bare, _) | Verdict::Refused(_) => format!("\"${{{name}}}\""),
    }
}
