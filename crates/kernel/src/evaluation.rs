//! Work with no world in it: a function of a stranger, a schema. The same request always has the same result, which joins
//! the frame of its turn, so that a replay does not need to ask again.

use alloc::string::String;

use crate::{failure::Failure, hash::Hash, value::Value};

/// Something to be worked out, now and without the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluation {
    /// The result of a function.
    Function(Function),
    /// Whether a value fits a schema.
    Check(Check),
}

/// A function of its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The step instance that it belongs to, as `fetch[3].parse`.
    pub step: String,
    /// The source of the module whose default export it is: JavaScript or TypeScript.
    pub source: String,
    /// What it is given.
    pub input: Value,
    /// What its clock shows, in milliseconds since 1970.
    pub now: u64,
    /// What its randomness comes of.
    pub seed: Hash,
    /// Milliseconds that it may take.
    pub timeout_ms: u64,
}

/// A question whether a value fits a JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The schema.
    pub schema: Value,
    /// The value.
    pub value: Value,
    /// Whether missing properties get their defaults; the result is the value with them.
    pub fills_defaults: bool,
}

/// What came of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The result.
    pub outcome: Result<Value, Failure>,
    /// What the function wrote to its console: a list of `{level, text}`, or null for nothing.
    pub log: Value,
}

impl Evaluated {
    /// A result without a log.
    pub fn of(outcome: Result<Value, Failure>) -> Self {
        Self { outcome, log: Value::Null }
    }
}
