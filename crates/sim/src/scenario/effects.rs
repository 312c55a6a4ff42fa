//! Scripted responses: a script for each call, by step, tool or kind of effect.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    diagnostic,
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    plan::RUNNER_EFFECT,
    value::Value,
};

use super::{
    judged,
    reader::{Part, Reader},
};

/// The scripts, by step id, tool or kind of effect. Each list has one response for each call, and the last one repeats.
pub type Scripts = BTreeMap<String, Vec<Script>>;

/// The scripts of a case: its own, and those of its file for other names. All cases of a file share the latter, and all
/// runs of a case share both, so their memory does not grow with the number of cases.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    own: Arc<Scripts>,
    shared: Arc<Scripts>,
}

impl Effects {
    /// Combines the scripts of a case with those of its file.
    pub fn new(own: Scripts, shared: Arc<Scripts>) -> Self {
        Self { own: Arc::new(own), shared }
    }

    /// Returns the scripts of a name.
    pub fn get(&self, name: &str) -> Option<&[Script]> {
        self.own.get(name).or_else(|| self.shared.get(name)).map(Vec::as_slice)
    }

    /// Lists the names of the case, which it must use.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &str> {
        self.own.keys().map(String::as_str)
    }

    /// Lists all names. One of the file that the case has as well occurs twice.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.own_names().chain(self.shared.keys().map(String::as_str))
    }
}

impl From<Scripts> for Effects {
    fn from(own: Scripts) -> Self {
        Self::new(own, Arc::default())
    }
}

/// One response.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The content.
    pub answer: Answer,
    /// The delay in milliseconds of virtual time.
    pub after_ms: u64,
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This result.
    Return(Value),
    /// This failure.
    Error(Failure),
    /// The arguments of the call.
    Echo,
    /// One of the arguments.
    Pick(String),
    /// A failure if an argument has a certain value, else another response.
    FailIf {
        /// The name of the argument.
        argument: String,
        /// The value.
        equals: Value,
        /// The failure.
        error: Failure,
        /// The other response.
        otherwise: Box<Script>,
    },
    /// No response.
    Hang,
}

/// The forms of a response: a script has exactly one of these keys.
const FORMS: [&str; 8] = ["return", "fail_if", "error", "echo", "pick", "content", "is_error", "hang"];
const SCRIPT_KEYS: [&str; 11] =
    ["return", "error", "echo", "pick", "fail_if", "else", "content", "is_error", "text", "hang", "after"];

impl Script {
    /// Returns the outcome of an attempt and its delay in milliseconds; `None` if it never arrives.
    pub fn outcome(&self, attempt: &Attempt) -> Result<Option<(u64, Outcome)>, String> {
        let arguments = arguments(attempt);
        let outcome = match &self.answer {
            Answer::Return(value) => judged::outcome(attempt, value)?,
            Answer::Error(failure) => Outcome::Failed(failure.clone()),
            Answer::Echo => Outcome::Done(arguments.clone()),
            Answer::Pick(argument) => match arguments.get(argument) {
                Some(value) => Outcome::Done(value.clone()),
                None => return Err(format!("its script picks `{argument}`, which the call does not have")),
            },
            Answer::FailIf { argument, equals, error, .. } if arguments.get(argument) == Some(equals) => {
                Outcome::Failed(error.clone())
            }
            Answer::FailIf { otherwise, .. } => {
                let inner = otherwise.outcome(attempt)?;
                return Ok(inner.map(|(after_ms, outcome)| (self.after_ms.saturating_add(after_ms), outcome)));
            }
            Answer::Hang => return Ok(None),
        };
        Ok(Some((self.after_ms, outcome)))
    }
}

/// Lists the names by which the script of an attempt is searched; the first match counts. In a loop, a script can be
/// for one round, as `each[0]`, or for all of them, by the step's id. The model calls of an agent have the agent's id.
pub(crate) fn names<'a>(attempt: &'a Attempt, id: &'a str) -> impl Iterator<Item = &'a str> {
    let of_agent = id.strip_suffix("#model");
    let names = [Some(attempt.step.as_str()), of_agent, Some(id), tool(attempt), Some(kind(attempt))];
    names.into_iter().flatten()
}

/// Returns the tool that an attempt calls, or the kind of another effect.
pub(crate) fn called(attempt: &Attempt) -> &str {
    tool(attempt).unwrap_or(kind(attempt))
}

/// Returns the kind of an effect as authors write it.
fn kind(attempt: &Attempt) -> &str {
    if attempt.effect == RUNNER_EFFECT { "agent" } else { &attempt.effect }
}

fn tool(attempt: &Attempt) -> Option<&str> {
    if attempt.effect == "tool" { attempt.params.get("tool").and_then(Value::as_text) } else { None }
}

/// Returns the arguments of an attempt: those of a tool, or all parameters of another effect.
pub(crate) fn arguments(attempt: &Attempt) -> &Value {
    static NONE: Value = Value::Null;
    match attempt.effect.as_str() {
        "tool" => attempt.params.get("arguments").unwrap_or(&NONE),
        _ => &attempt.params,
    }
}

pub(super) fn read<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Scripts {
    let Some(map) = part.value.as_map() else {
        reader.wrong_kind(part, "an object");
        return Scripts::new();
    };
    let mut effects = Scripts::new();
    for key in map.keys() {
        let Some(scripts) = part.field(key) else { continue };
        let answers = match scripts.value {
            Value::List(_) => reader.items(&scripts),
            _ => vec![scripts.clone()],
        };
        if answers.is_empty() {
            let help = "give one answer for each call; the last is repeated";
            reader.problem(diagnostic::EMPTY, &scripts.path, format!("{key:?} has no answers"), help);
        }
        let answers = answers.iter().filter_map(|answer| script(answer, reader)).collect();
        effects.insert(key.clone(), answers);
    }
    effects
}

fn script<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Script> {
    reader.object(part, &SCRIPT_KEYS)?;
    let after_ms = match part.field("after") {
        Some(after) => reader.duration_ms(&after)?,
        None => 0,
    };
    let forms: Vec<&str> = FORMS.into_iter().filter(|key| part.has(key)).collect();
    let form = match forms.as_slice() {
        ["fail_if", "error"] => "fail_if",
        [form] => form,
        [] => {
            let help = format!("write one of: {}", FORMS.join(", "));
            reader.problem(diagnostic::MISSING_KEY, &part.path, "the script says no answer", help);
            return None;
        }
        [first, second, ..] => {
            let message = format!("`{first}` and `{second}` are two answers to one call");
            reader.problem(diagnostic::EXCLUSIVE_KEYS, &part.path, message, "keep one of them");
            return None;
        }
    };
    for (key, owner) in [("else", "fail_if"), ("text", "is_error")] {
        if part.has(key) && form != owner {
            let message = format!("`{key}` goes with `{owner}` only");
            reader.problem(diagnostic::MISPLACED_KEY, &part.path.key(key), message, "leave it out");
        }
    }
    Some(Script { answer: answer(form, part, reader)?, after_ms })
}

fn answer<'a>(form: &str, part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Answer> {
    let field = part.field(form)?;
    match form {
        "return" => Some(Answer::Return(field.value.clone())),
        "error" => failure(&field, reader).map(Answer::Error),
        "pick" => reader.text(&field).map(Answer::Pick),
        "fail_if" => fail_if(part, &field, reader),
        "content" => content(&field, reader).map(Answer::Return),
        "is_error" => {
            reader.only_true(&field);
            let Some(text) = part.field("text") else {
                reader.missing(part, "text", "say what the tool answered: text: no such user");
                return None;
            };
            Some(Answer::Error(Failure::new(Class::Failed, "tool_error", reader.text(&text)?)))
        }
        "echo" => {
            reader.only_true(&field);
            Some(Answer::Echo)
        }
        _ => {
            reader.only_true(&field);
            Some(Answer::Hang)
        }
    }
}

fn failure<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Failure> {
    reader.object(part, &["class", "message", "code"])?;
    let class = match part.field("class") {
        Some(class) => reader.word(&class, &Class::ALL.map(|class| (class.name(), class)))?,
        None => {
            reader.missing(part, "class", "say what kind of failure it is: class: transient");
            return None;
        }
    };
    let message = match part.field("message") {
        Some(message) => reader.text(&message)?,
        None => String::new(),
    };
    let code = match part.field("code") {
        Some(code) => reader.text(&code)?,
        None => class.name().into(),
    };
    if let Some(own) = class_of_status(&code).filter(|own| *own != class) {
        let said = format!("a failure {code:?} has the class `{}`, not `{}`", own.name(), class.name());
        reader.problem(diagnostic::WRONG_VALUE, &part.path.key("class"), said, format!("write class: {}", own.name()));
    }
    Some(Failure::new(class, code, message))
}

/// Returns the class of the failures `http_status:NNN`, on which retries depend. `None` for other codes.
fn class_of_status(code: &str) -> Option<Class> {
    code.strip_prefix("http_status:")?.parse().ok().map(judged::class_of_status)
}

fn fail_if<'a>(part: &Part<'a>, condition: &Part<'a>, reader: &mut Reader<'a>) -> Option<Answer> {
    reader.object(condition, &["arg", "eq"])?;
    for key in ["arg", "eq"].into_iter().filter(|key| !condition.has(key)) {
        reader.missing(condition, key, "write fail_if: {arg: x, eq: 2}");
    }
    for key in ["error", "else"].into_iter().filter(|key| !part.has(key)) {
        reader.missing(part, key, "`fail_if` takes an `error`, and in `else` the other answer");
    }
    let argument = reader.text(&condition.field("arg")?)?;
    let equals = condition.field("eq")?.value.clone();
    let error = failure(&part.field("error")?, reader)?;
    let otherwise = Box::new(script(&part.field("else")?, reader)?);
    Some(Answer::FailIf { argument, equals, error, otherwise })
}

/// Converts an MCP result without structured content to the list of its blocks, even if that is one text. Texts are
/// never parsed as JSON, since the result would then depend on what a tool happens to write.
fn content<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Value> {
    let blocks = reader.items(part);
    for block in &blocks {
        if block.value.as_map().is_none() {
            reader.wrong_kind(block, "an object such as {type: text, text: hi}");
        }
    }
    for block in blocks.iter().filter(|block| block.value.get("type").and_then(Value::as_text) == Some("text")) {
        match block.field("text") {
            Some(text) => drop(reader.text(&text)?),
            None => reader.missing(block, "text", "write {type: text, text: hi}"),
        }
    }
    Some(part.value.clone())
}
