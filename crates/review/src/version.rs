//! A version of a workflow, as callers give it.

use mainspring_kernel::definition::Compiled;

/// A version of a workflow.
#[derive(Debug, Clone, Copy)]
pub struct Version<'a> {
    /// The compiled definition.
    pub compiled: &'a Compiled,
    /// The text of the file, if there is one: its comments are searched for hidden characters.
    pub source: Option<&'a str>,
}
