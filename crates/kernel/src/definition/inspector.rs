//! The interface to checks that the kernel cannot do itself: the source of functions, and the finer rules of JSON
//! Schema.

use alloc::string::String;

use crate::value::Value;

/// Checks the parts of a definition that are written in another language.
pub trait Inspector {
    /// Checks the source of a JavaScript or TypeScript function.
    fn source(&self, source: &str) -> Result<(), Complaint>;

    /// Checks a JSON Schema.
    fn schema(&self, schema: &Value) -> Result<(), Complaint>;
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
    fn source(&self, _: &str) -> Result<(), Complaint> {
        Ok(())
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        Ok(())
    }
}
