//! The identity of an attempt, as executors know it.

use mainspring_kernel::{effect::Attempt, key::ExecutionKey};

/// The identity of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptName<'a> {
    /// The execution that the step belongs to.
    pub execution: ExecutionKey,
    /// The step instance.
    pub step: &'a str,
    /// The number of the attempt.
    pub number: u32,
}

impl<'a> From<&'a Attempt> for AttemptName<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        Self { execution: attempt.execution, step: &attempt.step, number: attempt.number }
    }
}
