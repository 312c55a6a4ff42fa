//! A shell command whose values come from outside: references are taken out of its text and handed over in the
//! environment.
//!
//! A value must never become part of a script's text, for whoever can choose the value would then write the script. So
//! `echo @vars.name` becomes `echo "${MAINSPRING_REF_0}"`, and the step is run with that variable set. This is sound
//! only where bash takes a quoted expansion as plain text, so the command is read the way bash reads it, and a reference
//! that stands anywhere else is refused. What the reader cannot follow with certainty it refuses as well: refusing costs
//! an author one line in the step's `env`, accepting wrongly costs the machine.
//!
//! | file | holds |
//! |---|---|
//! | `marks` | where references stand in a text; `@@` |
//! | `nesting` | what can be open around a place: quotes, substitutions, the state of a list of commands |
//! | `lexer` | the walk over the text, and all that means the same in most places |
//! | `grammar` | lists of commands, and the operators between words |
//! | `keywords` | finished words: reserved words, and what each makes of the words after it |
//! | `patterns` | `case`, `[[ ]]`, compound assignments, extended globs |
//! | `here_document` | `<<` and the lines that belong to it |
//! | `command` | one simple command as a whole: programs and builtins that take an argument for code |
//! | `interpreters` | the programs that run code they are given, and where they look for it |
//! | `commands` | all other programs, by what a value among their arguments can become |
//! | `external` | where a value can stand among the arguments of a program |
//! | `written` | files that a script writes and runs |
//!
//! What this cannot see is where a value goes afterwards. A script that does `n=@vars.count` and later `$((n + 1))` lets
//! bash evaluate the value as an expression, and with `env` it would be no different: a value that is used as a number
//! is to be checked first, by the script. The same holds for `sed "s/X/$V/"`: how a variable is used is the author's text.

mod command;
mod commands;
mod external;
mod grammar;
mod here_document;
mod interpreters;
mod keywords;
mod lexer;
mod marks;
mod nesting;
mod patterns;
mod written;

#[cfg(test)]
mod tests;

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::{self, Write};

use lexer::{Form, Lexer, Verdict};
use marks::Marked;

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

/// A reference that stands where no value can safely be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where its `@` is, in bytes from the start of the command.
    pub offset: usize,
    /// Its text, without the `@`.
    pub reference: String,
    /// What is wrong with the place.
    pub place: Place,
}

/// Where a reference cannot stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the lines after `<<`, or in the word that ends them.
    HereDocument,
    /// After `#`.
    Comment,
    /// In `$(( ))`, `(( ))` or `$[ ]`.
    Arithmetic,
    /// In the brackets of `name[…]=`.
    Subscript,
    /// In `[[ ]]` with an operator that evaluates its operands (`-eq` and its kind, `-v`).
    EvaluatingTest,
    /// In `${…}`.
    ParameterExpansion,
    /// In `$'…'`.
    EscapedString,
    /// In `$"…"`.
    TranslatedString,
    /// In backquotes.
    Backquotes,
    /// Directly after a backslash.
    AfterBackslash,
    /// Directly after `$`.
    AfterDollar,
    /// As the name of a command or a function, or as the whole argument in which a program looks for one.
    CommandName,
    /// Where a builtin takes the name of a variable, which bash evaluates.
    VariableName,
    /// As the value of a variable that bash evaluates when it is set or used (`PS4`, an integer, an array).
    EvaluatedVariable,
    /// In an argument that its command runs as code (`eval`, `trap`).
    EvaluatedArgument,
    /// In code for another interpreter (`sh -c`, `python -c`).
    InnerScript,
    /// Where the value could become an option that makes the command run or evaluate what follows.
    Option,
    /// In what is written to a file that is run.
    WrittenCode,
    /// As the target of `>&` or `<&`.
    Duplicate,
    /// In or after something that is opened and not closed.
    Unterminated,
    /// Too many levels down.
    TooDeep,
    /// In or after something that different shells read differently, or that no shell reads.
    Unclear,
}

impl Place {
    /// Where it is, for people; begins in lower case and fits after "stands".
    pub fn describe(self) -> &'static str {
        match self {
            Self::HereDocument => "inside a here-document",
            Self::Comment => "inside a comment",
            Self::Arithmetic => "inside an arithmetic expression, which bash evaluates",
            Self::Subscript => "inside an array's subscript, which bash evaluates",
            Self::EvaluatingTest => "inside a [[ ]] whose operator evaluates its operands (as -eq and -v do)",
            Self::ParameterExpansion => "inside a ${…} expansion",
            Self::EscapedString => "inside a $'…' string",
            Self::TranslatedString => "inside a $\"…\" string",
            Self::Backquotes => "inside backquotes",
            Self::AfterBackslash => "directly after a backslash",
            Self::AfterDollar => "directly after a $",
            Self::CommandName => "where a command's name is expected",
            Self::VariableName => "where a builtin expects the name of a variable, which bash evaluates",
            Self::EvaluatedVariable => "in the value of a variable that bash evaluates",
            Self::EvaluatedArgument => "in an argument that its command runs as code",
            Self::InnerScript => {
                "inside code that is given to an interpreter, or to a program whose arguments are code"
            }
            Self::Option => "where its value could become an option, and an option can run code",
            Self::WrittenCode => "in a script that writes a file and runs it, or in what is written to a file of code",
            Self::Duplicate => "as the target of >& or <&, which bash evaluates a second time",
            Self::Unterminated => "in or after something that is opened and not closed",
            Self::TooDeep => "inside too many levels of nesting",
            Self::Unclear => "in or after something that cannot be read with certainty",
        }
    }

    /// What the author can do; a whole sentence.
    fn mend(self) -> &'static str {
        match self {
            Self::AfterBackslash => {
                "Write @@ for a literal @; for the value, name it in the step's env and use \"$NAME\"."
            }
            Self::Arithmetic | Self::Subscript | Self::EvaluatingTest | Self::EvaluatedVariable => {
                "Name the value in the step's env, check in the script that it is a number, then use $NAME."
            }
            Self::VariableName => {
                "Name the value in the step's env and check in the script that \"$NAME\" is a plain name."
            }
            Self::CommandName => {
                "Name the value in the step's env, check in the script that it is a command you allow, then use \"$NAME\"."
            }
            Self::InnerScript => {
                "Name the value in the step's env and let the inner code read it from its environment, as in sh -c 'echo \"$NAME\"'."
            }
            Self::Option => {
                "Put -- before it if the program knows that, as in `-- @vars.v`, or name the value in the step's env and use \"$NAME\"."
            }
            Self::HereDocument => {
                "Name the value in the step's env and use $NAME, with a delimiter that is not quoted; write @@ for a literal @."
            }
            Self::Comment => "Write @@ for a literal @, or take the reference out.",
            Self::Duplicate => "For a file, write > FILE 2>&1.",
            Self::Unterminated => "Close what is open; or name the value in the step's env and use \"$NAME\".",
            _ => "Name the value in the step's env and use \"$NAME\".",
        }
    }
}

impl Problem {
    /// What the author can do, with the reference as they wrote it; a whole sentence.
    pub fn mend(&self) -> String {
        let reference = match self.reference.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &self.reference[..end]),
            None => self.reference.clone(),
        };
        let mend = self.place.mend().replace("-- @vars.v", &format!("-- @{reference}"));
        mend.replace(IN_ENV, &format!("Write `env: {{NAME: \"@{reference}\"}}` in the step"))
            .replace(OR_IN_ENV, &format!("or write `env: {{NAME: \"@{reference}\"}}` in the step"))
    }
}

/// Characters of a reference that are shown in the mend for it.
const SHOWN_CHARS_MAX: usize = 60;

/// How mends begin that the step's `env` is a part of.
const IN_ENV: &str = "Name the value in the step's env";
const OR_IN_ENV: &str = "or name the value in the step's env";

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{} stands {}. {}", self.reference, self.place.describe(), self.mend())
    }
}

/// Whether a variable's value is code to the shell or to programs that it starts, or says where their code is.
pub fn is_code_variable(name: &str) -> bool {
    commands::is_code_variable(name.as_bytes())
}

/// Takes the references out of a command. `is_known` says of a name whether it is one that a reference can begin with;
/// everything else with an `@` is text. A command without references comes back byte for byte, but for `@@`, which
/// becomes `@`. All the references that cannot stand where they do are reported, in the order of the text.
///
/// The bound on nesting is [`nesting::DEPTH_MAX`]; time and memory are linear in the length of the command.
pub fn prepare(command: &str, is_known: impl Fn(&str) -> bool) -> Result<Script, Vec<Problem>> {
    let marked = Marked::read(command, is_known);
    if marked.marks.is_empty() {
        return Ok(Script { text: marked.text, references: Vec::new() });
    }
    if let Some(only) = lone(&marked) {
        return Ok(only);
    }
    let verdicts = Lexer::new(&marked).run();
    let problems = problems(&marked, &verdicts);
    if problems.is_empty() { Ok(splice(&marked, &verdicts)) } else { Err(problems) }
}

/// A command that is one reference and nothing else: the value names a program, which is run without arguments. Beside
/// anything else it would choose what that is read by, which is refused.
fn lone(marked: &Marked) -> Option<Script> {
    let [mark] = marked.marks.as_slice() else { return None };
    let is_all = marked.text.trim() == &marked.text[mark.offset..mark.end];
    is_all.then(|| splice(marked, &[Verdict::Quoted(Form::Bare)]))
}

fn problems(marked: &Marked, verdicts: &[Verdict]) -> Vec<Problem> {
    let refused = marked.marks.iter().zip(verdicts).filter_map(|(mark, verdict)| match verdict {
        Verdict::Quoted(_) => None,
        Verdict::Refused(place) => Some((mark, *place)),
    });
    refused
        .map(|(mark, place)| Problem {
            offset: mark.offset_in_command,
            reference: marked.reference(mark).to_string(),
            place,
        })
        .collect()
}

/// Puts the expansions where the references were. The same reference is one variable.
fn splice(marked: &Marked, verdicts: &[Verdict]) -> Script {
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
