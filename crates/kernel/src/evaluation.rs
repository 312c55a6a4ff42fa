//! Evaluations: pure computations that the kernel requests during a turn. They run functions of users and check JSON
//! Schemas in the sandbox.
//!
//! The same request always gives the same result. The result is stored in the frame of the turn, so a replay does not
//! run the evaluation again.

use alloc::string::String;

use crate::{failure::Failure, hash::Hash, value::Value};

/// A request for an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluation {
    /// Runs a function.
    Function(Function),
    /// Checks a value against a schema.
    Check(Check),
}

/// A call of a user's function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Name of the step instance, such as `fetch[3].parse`.
    pub step: String,
    /// Source of a JavaScript or TypeScript module; its default export is called.
    pub source: String,
    /// Argument of the function.
    pub input: Value,
    /// Time that the function's clock shows, in milliseconds since 1970. The clock does not advance.
    pub now: u64,
    /// Seed of the function's random number generator.
    pub seed: Hash,
    /// Timeout in milliseconds.
    pub timeout_ms: u64,
}

/// A check of a value against a JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The JSON Schema.
    pub schema: Value,
    /// The value to check.
    pub value: Value,
    /// True if missing properties take their defaults. The result is the value with these defaults.
    pub fills_defaults: bool,
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The returned or checked value, or the failure.
    pub outcome: Result<Value, Failure>,
    /// Console output of the function: a list of `{level, text}`, or null if there was none.
    pub log: Value,
}

impl Evaluated {
    /// Creates a result without console output.
    pub fn of(outcome: Result<Value, Failure>) -> Self {
        Self { outcome, log: Value::Null }
    }
}
