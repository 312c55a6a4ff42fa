//! The outcome of an execution in a run without faults.

use mainspring_kernel::{
    state::{ExecutionStatus, State},
    value::Value,
};

/// The outcome of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedExecution {
    /// `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// True if a failure was tolerated.
    pub with_failures: bool,
    /// The value that the workflow returned.
    pub output: Value,
}

impl EndedExecution {
    pub(crate) fn of(state: &State) -> Self {
        let is_completed = state.status() == ExecutionStatus::Completed;
        let output = state.output().cloned().unwrap_or_default();
        Self { status: state.status().name(), with_failures: is_completed && state.end.with_failures, output }
    }

    pub(crate) fn description(&self) -> String {
        let with = if self.with_failures { " with failures" } else { "" };
        format!("{}{with}, output {}", self.status, mainspring_kernel::json::compact(&self.output))
    }
}
