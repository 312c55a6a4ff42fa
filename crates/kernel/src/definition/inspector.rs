//! The interface to checks that the kernel cannot do itself: the source of functions, and the finer rules of JSON
//! Schema.

use alloc::string::String;

use crate::value::Value;

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
