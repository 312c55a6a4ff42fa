//! The failure of a call, as data.

use crate::limits::{MESSAGE_BYTES_MAX, TRACE_BYTES_MAX};
use crate::text::shortened;

/// One failure. Lines and columns refer to the author's source, counted from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the failure, for callers that branch on it.
    pub kind: FaultKind,
    /// The failure, its location and a remedy. At most 2 KiB.
    pub message: String,
    /// The line in the source, if known.
    pub line: Option<u32>,
    /// The column in that line.
    pub column: Option<u32>,
    /// The stack trace, one call in a line, innermost first; empty if there is none. At most 4 KiB.
    pub stack: String,
    /// All mismatches of a `schema_mismatch`; else empty.
    pub mismatches: Vec<Mismatch>,
}

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The location in the value as a JSON pointer (RFC 6901); empty for the value itself.
    pub pointer: String,
    /// The location in the value as people write it: `items[0].name`; empty for the value itself.
    pub path: String,
    /// The keyword of the schema that is violated.
    pub keyword: String,
    /// A description of the violation.
    pub message: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $name:literal,)*) => {
        /// The kinds of failure. Their names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FaultKind { $($(#[$doc])* $kind,)* }

        impl FaultKind {
            /// All kinds, in the order of this list.
            pub const ALL: &[FaultKind] = &[$(FaultKind::$kind),*];

            /// Returns the name of the kind in results and documents.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// The source is neither TypeScript nor JavaScript.
    Syntax => "syntax",
    /// The source imports something; there are no modules to import.
    ImportRefused => "import_refused",
    /// The source has no default export that can be called.
    NoFunction => "no_function",
    /// The code threw a value, or its promise was rejected.
    Threw => "threw",
    /// More ticks than allowed.
    TicksExceeded => "ticks_exceeded",
    /// More time than allowed.
    TimeExceeded => "time_exceeded",
    /// More memory than allowed.
    MemoryExceeded => "memory_exceeded",
    /// Calls nested too deeply.
    StackExceeded => "stack_exceeded",
    /// The code awaits a promise that nothing can settle any more.
    NeverSettles => "never_settles",
    /// The result has no form in JSON: a function, a symbol, a BigInt, a cycle.
    NotJson => "not_json",
    /// The input is not JSON, or too large.
    InputInvalid => "input_invalid",
    /// The result is larger than allowed.
    ResultTooLarge => "result_too_large",
    /// The source or the schema is larger than allowed.
    SourceTooLarge => "source_too_large",
    /// The schema is invalid.
    SchemaInvalid => "schema_invalid",
    /// The value does not match the schema.
    SchemaMismatch => "schema_mismatch",
    /// The worker died or misbehaved: a bug of the sandbox, which no code should be able to cause.
    Crashed => "crashed",
    /// No worker could be started.
    Unavailable => "unavailable",
}

impl Fault {
    /// Makes a fault without a location.
    pub fn new(kind: FaultKind, message: impl AsRef<str>) -> Fault {
        let message = shortened(message.as_ref(), MESSAGE_BYTES_MAX);
        Fault { kind, message, line: None, column: None, stack: String::new(), mismatches: Vec::new() }
    }

    /// Adds a location in the author's source, both counted from 1.
    pub(crate) fn at(mut self, line: u32, column: u32) -> Fault {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }

    pub(crate) fn with_stack(mut self, stack: &str) -> Fault {
        self.stack = shortened(stack, TRACE_BYTES_MAX);
        self
    }

    pub(crate) fn with_mismatches(mut self, mismatches: Vec<Mismatch>) -> Fault {
        self.mismatches = mismatches;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::FaultKind;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_have_distinct_names() {
        let names: BTreeSet<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }
}
