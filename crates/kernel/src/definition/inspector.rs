//! The interface to checks that the kernel cannot do itself: the source of functions, and the finer rules of JSON
//! Schema.

use alloc::string::String;

use crate::{diagnostic, value::Value};

/// Checks the parts of a definition that are written in another language.
pub trait Inspector {
    /// Checks the source of a JavaScript or TypeScript function, and returns the types that it declares.
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint>;

    /// Checks a JSON Schema.
    fn schema(&self, schema: &Value) -> Result<(), Complaint>;

    /// Returns the shape of the output of another workflow as a JSON Schema, if the workflow is known.
    fn workflow(&self, _name: &str) -> Option<Value> {
        None
    }

    /// Returns the JSON Schema of the input of another workflow, if the workflow is known and has one.
    fn workflow_input(&self, _name: &str) -> Option<Value> {
        None
    }

    /// Returns the reason for which something outside of the definition is unknown there; `None` if it is known, or if the
    /// inspector does not know which ones there are.
    fn missing(&self, _what: Outside, _name: &str) -> Option<Missing> {
        None
    }
}

/// The kinds of things outside of a definition that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// A workflow that a step or an agent starts.
    Workflow,
    /// A value that the definition names and does not contain.
    Secret,
    /// A language model.
    Model,
    /// The server of a tool, the first part of its full name.
    ToolServer,
    /// An external agent, which a command of the settings runs.
    Runner,
    /// The price of a model. An empty name is that of the default model.
    Price,
}

impl Outside {
    /// The code of the warning about an unknown one.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Workflow => diagnostic::UNKNOWN_WORKFLOW,
            Self::Secret => diagnostic::UNKNOWN_SECRET,
            Self::Model => diagnostic::UNKNOWN_MODEL,
            Self::ToolServer => diagnostic::UNKNOWN_TOOL_SERVER,
            Self::Runner => diagnostic::UNKNOWN_RUNNER,
            Self::Price => diagnostic::MISSING_PRICE,
        }
    }

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Secret => "secret",
            Self::Model => "model",
            Self::ToolServer => "tool server",
            Self::Runner => "runner",
            Self::Price => "price",
        }
    }
}

/// Something that is unknown where a definition is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The place that was searched, such as `in this organization`.
    pub place: String,
    /// The most similar known name.
    pub nearest: Option<String>,
    /// The way to make it known.
    pub remedy: String,
}

/// The types that the source of a function declares, as JSON Schemas. They are claims: nothing checks them when it runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionTypes {
    /// The type of its result; `None` if the source does not say it.
    pub result: Option<Value>,
}

/// A mistake in a part that is written in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The mistake, with its position inside the part.
    pub message: String,
    /// The help text; empty if the message suffices.
    pub help: String,
}

/// An inspector that accepts everything. Mistakes then appear when the step runs.
#[derive(Debug, Clone, Copy)]
pub struct Unread;

impl Inspector for Unread {
    fn source(&self, _: &str) -> Result<FunctionTypes, Complaint> {
        Ok(FunctionTypes::default())
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        Ok(())
    }
}
