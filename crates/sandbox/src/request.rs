//! The requests to this crate.

use crate::limits::Limits;

/// One call with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The work.
    pub call: Call,
    /// The limits of the call.
    pub limits: Limits,
}

/// The kinds of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Runs a function. Answers its result as JSON text.
    Function(Function),
    /// Checks that a source could be run: it parses, imports nothing, and has a default export that may be a function.
    /// It does not run. Answers the type of its result as a JSON Schema, as far as the source declares it, or `null`.
    CheckFunction {
        /// JavaScript or TypeScript.
        source: String,
    },
    /// Checks that a schema is valid. Answers `null`.
    CheckSchema {
        /// JSON text.
        schema: String,
    },
    /// Validates a value. Answers the value: the same text, unless defaults were filled in.
    Validate(Validate),
    /// Reports the restrictions of a worker. Answers [`Confinement`](crate::worker::Confinement) as JSON text.
    Hello,
}

/// A function and all of its inputs: the same function always gives the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// An ECMAScript module, or one in TypeScript, whose default export is the function.
    pub source: String,
    /// Its one argument, as JSON text.
    pub input: String,
    /// The time of its clock: milliseconds since 1970 in UTC.
    pub now_ms: i64,
    /// The seed of `Math.random`.
    pub seed: [u8; 32],
}

/// A value and its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validate {
    /// JSON text. Draft 2020-12 unless its `$schema` names another.
    pub schema: String,
    /// JSON text.
    pub value: String,
    /// True to fill in the `default` of missing properties before the value is validated.
    pub fill_defaults: bool,
}
