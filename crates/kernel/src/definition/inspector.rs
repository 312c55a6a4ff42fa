//! What the kernel cannot look into itself: the source of functions, the finer rules of schemas.

use alloc::string::String;

use crate::value::Value;

/// Looks into the parts of a definition that are written in other languages.
pub trait Inspector {
    /// What is wrong with the source of a function, if anything is.
    fn source(&self, source: &str) -> Result<(), Complaint>;

    /// What is wrong with a JSON Schema, if anything is.
    fn schema(&self, schema: &Value) -> Result<(), Complaint>;
}

/// What is wrong with a part that is written in another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// What is wrong, with the place inside the part.
    pub message: String,
    /// What to write instead; empty where the message says it all.
    pub mend: String,
}

/// Looks into nothing: what is wrong is found when it runs.
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
