//! What went wrong in a call, as data.

use crate::limits::{MESSAGE_BYTES_MAX, TRACE_BYTES_MAX};
use crate::text::shortened;

/// One failure. Lines and columns count from 1, columns in characters, both in the author's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of failure, to branch on.
    pub kind: FaultKind,
    /// What happened, where, and what to do next. At most 2 KiB.
    pub message: String,
    /// The line of the author's text, where one is known.
    pub line: Option<u32>,
    /// The column in that line.
    pub column: Option<u32>,
    /// The calls that led there, one a line, innermost first; empty where there were none. At most 4 KiB.
    pub stack: String,
    /// For `schema_mismatch`, all that does not fit; else empty.
    pub mismatches: Vec<Mismatch>,
}

/// One thing that a schema does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the value, as a JSON pointer (RFC 6901); empty for the value itself.
    pub pointer: String,
    /// Where in the value, as people write it: `items[0].name`; empty for the value itself.
    pub path: String,
    /// The keyword of the schema that says so.
    pub keyword: String,
    /// What does not fit.
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

            /// The name of the kind, as it stands in results and documents.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// The source is neither TypeScript nor JavaScript.
    Syntax => "syntax",
    /// The source imports something; there is nothing to import from.
    ImportRefused => "import_refused",
    /// The source has no default export that can be called.
    NoFunction => "no_function",
    /// The code threw something, or its promise was rejected.
    Threw => "threw",
    /// More ticks than allowed.
    TicksExceeded => "ticks_exceeded",
    /// More time than allowed.
    TimeExceeded => "time_exceeded",
    /// More memory than allowed.
    MemoryExceeded => "memory_exceeded",
    /// Calls nested too deeply.
    StackExceeded => "stack_exceeded",
    /// A promise is waited for that nothing can settle any more.
    NeverSettles => "never_settles",
    /// The result has no form in JSON: a function, a symbol, a BigInt, a ring.
    NotJson => "not_json",
    /// The input is no JSON, or too large.
    InputInvalid => "input_invalid",
    /// The result is larger than allowed.
    ResultTooLarge => "result_too_large",
    /// The source or the schema is larger than allowed.
    SourceTooLarge => "source_too_large",
    /// The schema cannot be used.
    SchemaInvalid => "schema_invalid",
    /// The value does not fit the schema.
    SchemaMismatch => "schema_mismatch",
    /// The worker died, or broke. Ours to mend, and nothing the code should be able to do.
    Crashed => "crashed",
    /// No worker could be started.
    Unavailable => "unavailable",
}

impl Fault {
    /// A fault with no place.
    pub fn new(kind: FaultKind, message: impl AsRef<str>) -> Fault {
        let message = shortened(message.as_ref(), MESSAGE_BYTES_MAX);
        Fault { kind, message, line: None, column: None, stack: String::new(), mismatches: Vec::new() }
    }

    /// The same fault at a place of the author's text, both counted from 1.
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
    fn kinds_are_told_apart() {
        let names: BTreeSet<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }
}
