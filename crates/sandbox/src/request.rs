//! What can be asked of this crate.

use crate::limits::Limits;

/// One call with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub call: Call,
    /// What it may use.
    pub limits: Limits,
}

/// The kinds of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Run a function. Answers its result as JSON text.
    Function(Function),
    /// Look whether a source could be run: does it parse, does it import nothing, has it a default export that may be
    /// a function? Nothing of it runs. Answers `null`.
    CheckFunction {
        /// JavaScript or TypeScript.
        source: String,
    },
    /// Look whether a schema could be used. Answers `null`.
    CheckSchema {
        /// JSON text.
        schema: String,
    },
    /// Check a value against a schema. Answers the value: the same text, unless defaults were filled in.
    Validate(Validate),
    /// Ask a worker what holds it. Answers [`Confinement`](crate::worker::Confinement) as JSON text.
    Hello,
}

/// A function and all that it can know: the same function gives the same answer, always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// An ECMAScript module, or one in TypeScript, whose default export is the function.
    pub source: String,
    /// Its one argument, as JSON text.
    pub input: String,
    /// Where its clock stands: milliseconds since 1970 in UTC.
    pub now_ms: i64,
    /// What its `Math.random` is made from.
    pub seed: [u8; 32],
}

/// A value and the schema that it is to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validate {
    /// JSON text. Draft 2020-12 unless its `$schema` says otherwise.
    pub schema: String,
    /// JSON text.
    pub value: String,
    /// Whether missing properties take the `default` of their schemas, before the value is checked.
    pub fill_defaults: bool,
}
