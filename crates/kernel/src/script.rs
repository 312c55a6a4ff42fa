//! A shell command whose values come from outside: references are taken out of its text and handed over in the
//! environment.
//!
//! A value must never become part of a script's text, for whoever can choose the value would then write the script. So
//! `echo @vars.name` becomes `echo "${MAINSPRING_REF_0}"`, and the step is run with that variable set. This is sound
//! only where bash takes a quoted expansion as plain text, and where the program that gets the value takes it for data.
//!
//! The reader refuses by default. A script without references is never looked at. A script with references is read by
//! a grammar that covers a part of bash's, values are followed through it, and every command that a value reaches has to
//! stand in a table of programs with its options. What the grammar or the tables do not have is refused: refusing costs
//! an author one line in the step's `env`, accepting wrongly costs the machine. Lists of what is dangerous were tried
//! before and always missed the next program (docs/decisions/0053).
//!
//! | file | holds |
//! |---|---|
//! | `marks` | where references stand in a text; `@@` |
//! | `place` | where a reference cannot stand, and what to do instead |
//! | `syntax` | a script as it was read |
//! | `reader` | the cursor; words, quotes, expansions |
//! | `grammar` | lists, pipelines, compound commands, redirections |
//! | `here_document` | `<<` and the lines that belong to it |
//! | `flow` | which words, variables, outputs and files a value can be in |
//! | `judge` | the verdict on each command, with what `flow` has found |
//! | `programs` | which programs take values, and where |
//! | `git`, `transfer` | the same for `git` and `curl`, whose words need more than a table |
//! | `builtins` | which builtins may stand in a script, and how |
//! | `files`, `variables` | the same of files by name, and of variables by name |
//! | `prologue` | what is put before a script, so that no program finds its values in its environment |
//!
//! The author's own variables are not judged: how a script uses what its `env` holds is the author's text.

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

pub use place::Place;
pub use prologue::without_prologue;

use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_EXCERPT_CHARS_MAX, SCRIPT_PROBLEMS_MAX};

/// What the names of the variables begin with; a number from 0 follows.
pub const VARIABLE_PREFIX: &str = "MAINSPRING_REF_";

/// A command with its references taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What bash is given.
    pub text: String,
    /// What the variables hold, in the order of their numbers: the references' texts, without the `@`.
    pub references: Vec<String>,
}

/// What a script is run with, beside its references.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The variables of the step's `env`, each with whether its value has a reference.
    pub variables: &'a [(&'a str, bool)],
    /// Whether a reference says in which folder the script runs.
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

/// A reference that stands where no value can safely be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where its `@` is, in bytes from the start of the command.
    pub offset: usize,
    /// Its text, without the `@`.
    pub reference: String,
    /// What is wrong with the place.
    pub place: Place,
    /// The part of the script that makes it wrong, where that is elsewhere.
    pub cause: Option<Arc<str>>,
}

impl Problem {
    /// Where the reference is, for people; fits after "stands".
    pub fn describe(&self) -> String {
        match &self.cause {
            Some(cause) => format!("in the same script as {cause}"),
            None => self.place.describe().to_string(),
        }
    }

    /// What the author can do, with the reference as they wrote it; a whole sentence.
    pub fn mend(&self) -> String {
        let reference = match self.reference.char_indices().nth(SCRIPT_EXCERPT_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &self.reference[..end]),
            None => self.reference.clone(),
        };
        self.place.mend().replace("@REFERENCE", &format!("@{reference}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{} stands {}. {}", self.reference, self.describe(), self.mend())
    }
}

/// Whether a variable's value is code to the shell or to programs that it starts, or says where their code is.
pub fn is_code_variable(name: &str) -> bool {
    variables::is_code_variable(name.as_bytes())
}

/// Whether a text has a reference whose name is known.
pub fn has_reference(text: &str, is_known: impl Fn(&str) -> bool) -> bool {
    !Marked::read(text, is_known).marks.is_empty()
}

/// Takes the references out of a command. `is_known` says of a name whether it is one that a reference can begin with;
/// everything else with an `@` is text. A command without references comes back byte for byte, but for `@@`, which
/// becomes `@`. The references that cannot stand where they do are reported in the order of the text, up to a bound.
///
/// Time and memory are linear in the length of the command, which is bounded where it has references.
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
        // It holds for all of them alike.
        return Err([problem(&marked, first, Place::TooLong, None)].into());
    }
    let Judged { verdicts, lost, variables } = judged(&marked, surroundings);
    let problems = problems(&marked, &verdicts, lost);
    if problems.is_empty() { Ok(splice(&marked, &verdicts, &variables)) } else { Err(problems) }
}

/// What was found out about a script.
struct Judged {
    /// For each reference.
    verdicts: Vec<Verdict>,
    /// What makes the script uncertain as a whole.
    lost: Option<Lost>,
    /// The variables that values are assigned to.
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
        Verdict::Quoted(_) if cause.is_some() => Some((mark, Place::Beside, cause.clone())),
        Verdict::Quoted(_) => None,
        Verdict::Refused(place) => Some((mark, *place, None)),
    });
    refused.take(SCRIPT_PROBLEMS_MAX).map(|(mark, place, cause)| problem(marked, mark, place, cause)).collect()
}

fn problem(marked: &Marked, mark: &Mark, place: Place, cause: Option<Arc<str>>) -> Problem {
    Problem { offset: mark.offset_in_command, reference: marked.reference(mark).to_string(), place, cause }
}

/// The beginning of what makes a script uncertain, with its line and the reason.
fn cause(marked: &Marked, lost: Lost) -> Arc<str> {
    let at = (0..=lost.at.min(marked.text.len())).rev().find(|at| marked.text.is_char_boundary(*at)).unwrap_or(0);
    let number = 1 + marked.text[..at].bytes().filter(|byte| *byte == b'\n').count();
    let line = marked.text[at..].lines().next().unwrap_or_default();
    let excerpt: String = line.chars().take(SCRIPT_EXCERPT_CHARS_MAX).collect();
    let dots = if excerpt.len() < line.len() { "…" } else { "" };
    let found = if excerpt.is_empty() { "the end".to_string() } else { format!("`{excerpt}{dots}`") };
    format!("{found} (line {number}), {}", lost.place.reason()).into()
}

/// Puts the expansions where the references were, and the prologue before all. The same reference is one variable.
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
        text.push_str(&expansion(*verdict, number));
        done = mark.end;
    }
    text.push_str(&marked.text[done..]);
    text.insert_str(0, &prologue::prologue(references.len(), variables));
    Script { text, references }
}

fn expansion(verdict: Verdict, number: usize) -> String {
    let mut name = String::from(VARIABLE_PREFIX);
    let _ = write!(name, "{number}");
    match verdict {
        Verdict::Quoted(Form::Single) => format!("'\"${{{name}}}\"'"),
        Verdict::Quoted(Form::Double) => format!("${{{name}}}"),
        Verdict::Quoted(Form::Bare) | Verdict::Refused(_) => format!("\"${{{name}}}\""),
    }
}
