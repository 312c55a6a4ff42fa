//! Recordings: a workflow that is written by making its calls.
//!
//! A recording has an input and steps. A call names a tool and gives arguments, which may refer to the input and to
//! earlier steps. The references are resolved for the call and kept in the step, so the recorded workflow runs again
//! with other input. A result is data: a reference in it is never resolved.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::{
    limits::PLAN_STEPS_MAX,
    reference::{Found, Lookup, Miss, RESERVED_NAMES, Root, is_name},
    template::Template,
    value::{Map, Value},
};

/// The source of a step whose result was set: a function that returns its input.
const SET_SOURCE: &str = "export default (input) => input;";

/// A workflow that is being recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    input: Value,
    steps: Vec<RecordedStep>,
    /// The numbers of the steps, by name.
    numbers: BTreeMap<String, u32>,
    /// The number of steps by the part of the name before the counter.
    counts: BTreeMap<String, u32>,
}

/// A step with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedStep {
    /// The name of the step.
    pub name: String,
    /// The origin of the result.
    pub source: StepSource,
    /// The result.
    pub output: Value,
}

/// The origin of a step's result.
#[derive(Debug, Clone, PartialEq)]
pub enum StepSource {
    /// A call of a tool, with the arguments as they were given: references are not resolved.
    Call {
        /// The name of the tool.
        tool: String,
        /// An object.
        arguments: Value,
    },
    /// A result that was set without a call.
    Set,
}

/// A call whose references are resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// The name that the step gets.
    pub step: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments with references.
    pub written: Value,
    /// The arguments to call the tool with.
    pub arguments: Value,
}

/// The reason why a call or a result is not recorded. `Display` is a sentence with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingError {
    /// A reference leads nowhere. Holds its text without the `@`, and the names that can be referred to.
    UnknownReference(String, Vec<String>),
    /// The arguments are no object.
    InvalidArguments,
    /// The name of a tool is empty or contains a reference.
    InvalidTool(String),
    /// A step cannot have this name.
    InvalidName(String),
    /// A step has this name already.
    DuplicateName(String),
    /// The recording has the most steps that a workflow may have.
    TooManySteps,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownReference(reference, known) => {
                write!(out, "`@{reference}` leads nowhere; the recording has ")?;
                known.iter().try_for_each(|name| write!(out, "`@{name}`, "))?;
                out.write_str("and `@@` is an `@` in text")
            }
            Self::InvalidArguments => out.write_str("the arguments are not an object: write {name: value}"),
            Self::InvalidTool(tool) => write!(out, "`{tool}` is not a name of a tool: write SERVER.TOOL"),
            Self::InvalidName(name) => {
                write!(out, "`{name}` is not a name of a step: begin it with a letter or `_`; then digits and `-` too")
            }
            Self::DuplicateName(name) => write!(out, "the recording has a step `{name}`: choose another name"),
            Self::TooManySteps => write!(out, "the recording has {PLAN_STEPS_MAX} steps, the most of a workflow"),
        }
    }
}

impl Recording {
    /// Begins a recording with the value of `@input`.
    pub fn new(input: Value) -> Self {
        Self { input, steps: Vec::new(), numbers: BTreeMap::new(), counts: BTreeMap::new() }
    }

    /// Returns the value of `@input`.
    pub fn input(&self) -> &Value {
        &self.input
    }

    /// Returns the recorded steps in order.
    pub fn steps(&self) -> &[RecordedStep] {
        &self.steps
    }

    /// Resolves the references of a call. Nothing is recorded before its result.
    pub fn prepare(&self, tool: &str, arguments: &Value) -> Result<PreparedCall, RecordingError> {
        self.check_room()?;
        if tool.is_empty() || tool.contains('@') || tool.contains(char::is_control) {
            return Err(RecordingError::InvalidTool(tool.chars().flat_map(char::escape_default).collect()));
        }
        let mut bad = Vec::new();
        let template = Template::read(arguments, &|name| self.root_of(name), &mut bad);
        if let Some(bad) = bad.into_iter().next() {
            return Err(self.unknown(bad.reference));
        }
        let arguments_resolved = template.resolve(self).map_err(|Miss { reference }| self.unknown(reference))?;
        if arguments_resolved.as_map().is_none() {
            return Err(RecordingError::InvalidArguments);
        }
        let (step, _) = self.next_name(tool);
        Ok(PreparedCall { step, tool: tool.into(), written: arguments.clone(), arguments: arguments_resolved })
    }

    /// Records a call that has succeeded.
    pub fn record(&mut self, call: PreparedCall, output: Value) -> Result<&RecordedStep, RecordingError> {
        let PreparedCall { step, tool, written, .. } = call;
        self.check_room()?;
        self.check_name(&step)?;
        let (_, base) = self.next_name(&tool);
        *self.counts.entry(base).or_default() += 1;
        Ok(self.push(step, StepSource::Call { tool, arguments: written }, output))
    }

    /// Sets the result of a step without a call.
    pub fn set(&mut self, step: &str, output: Value) -> Result<&RecordedStep, RecordingError> {
        self.check_room()?;
        self.check_name(step)?;
        Ok(self.push(step.into(), StepSource::Set, output))
    }

    fn push(&mut self, name: String, source: StepSource, output: Value) -> &RecordedStep {
        let at = self.steps.len();
        self.numbers.insert(name.clone(), at as u32);
        self.steps.push(RecordedStep { name, source, output });
        &self.steps[at]
    }

    fn check_room(&self) -> Result<(), RecordingError> {
        if self.steps.len() < PLAN_STEPS_MAX { Ok(()) } else { Err(RecordingError::TooManySteps) }
    }

    fn check_name(&self, name: &str) -> Result<(), RecordingError> {
        if !is_name(name) || RESERVED_NAMES.contains(&name) {
            return Err(RecordingError::InvalidName(name.chars().flat_map(char::escape_default).collect()));
        }
        match self.numbers.contains_key(name) {
            true => Err(RecordingError::DuplicateName(name.into())),
            false => Ok(()),
        }
    }

    /// Returns the name of the next step that calls a tool, such as `get_user_1` for `GET_USER`, and the part before
    /// the counter. Names that were set are passed over.
    fn next_name(&self, tool: &str) -> (String, String) {
        let replaced =
            |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' };
        let mut base: String = tool.chars().map(replaced).collect();
        if !is_name(&base) {
            base.insert_str(0, "tool_");
        }
        let count = self.counts.get(&base).copied().unwrap_or_default();
        let mut names = (count + 1..).map(|number| format!("{base}_{number}"));
        let free = names.find(|name| !self.numbers.contains_key(name)).unwrap_or_default();
        (free, base)
    }

    fn root_of(&self, name: &str) -> Option<Root> {
        match name {
            "input" => Some(Root::Input),
            // A recording has neither, so a reference is an error. As text it would become a reference in the workflow.
            "vars" => Some(Root::Variables),
            "ctx" => Some(Root::Context),
            name => self.numbers.get(name).map(|number| Root::Step(*number)),
        }
    }

    fn unknown(&self, reference: String) -> RecordingError {
        let names = self.steps.iter().rev().take(20).map(|step| step.name.clone());
        RecordingError::UnknownReference(reference, core::iter::once("input".to_string()).chain(names).collect())
    }

    /// Returns the recorded steps as a dataflow writes them.
    pub fn definition_steps(&self) -> Vec<Value> {
        self.steps.iter().map(RecordedStep::definition).collect()
    }

    /// Returns the recorded workflow, as a dataflow whose steps run in the recorded order: a call may depend on an
    /// earlier one without referring to it.
    pub fn definition(&self, name: &str) -> Value {
        Value::map([("name", name.into()), ("order", "sequence".into()), ("steps", self.definition_steps().into())])
    }
}

impl RecordedStep {
    fn definition(&self) -> Value {
        let (action, input) = match &self.source {
            StepSource::Call { tool, arguments } => (("toolName", tool.as_str()), arguments.clone()),
            StepSource::Set => (("code", SET_SOURCE), literal(&self.output)),
        };
        Value::map([
            ("name", self.name.as_str().into()),
            ("action", Value::map([(action.0, action.1.into())])),
            ("input", input),
        ])
    }
}

/// Returns a value as a definition writes it: an `@` in a text is doubled, so that no text becomes a reference.
fn literal(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(text.replace('@', "@@")),
        Value::List(items) => Value::List(items.iter().map(literal).collect()),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), literal(value))).collect::<Map>()),
        other => other.clone(),
    }
}

impl Lookup for Recording {
    fn root(&self, root: Root) -> Found<'_> {
        match root {
            Root::Input => Found::Kept(&self.input),
            Root::Step(number) => {
                self.steps.get(number as usize).map_or(Found::Missing, |step| Found::Kept(&step.output))
            }
            _ => Found::Missing,
        }
    }

    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn output(&self, _: &str) -> Option<&Value> {
        None
    }
}
