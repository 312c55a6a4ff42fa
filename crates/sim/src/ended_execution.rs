//! The outcome of an execution in a run without faults.

use mainspring_kernel::{
    state::{ExecutionStatus, State, Status},
    value::Value,
};

/// The outcome of an execution.
#[derive(Debug, Clone)]
pub struct EndedExecution {
    /// `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// True if a failure was tolerated.
    pub with_failures: bool,
    /// The value that the workflow returned.
    pub output: Value,
    /// The failed steps whose attempts dead nodes have used up, each in a sentence. Not a part of the outcome.
    interrupted: Vec<String>,
}

impl PartialEq for EndedExecution {
    fn eq(&self, other: &Self) -> bool {
        (self.status, self.with_failures, &self.output) == (other.status, other.with_failures, &other.output)
    }
}

impl EndedExecution {
    pub(crate) fn of(state: &State) -> Self {
        let is_completed = state.status() == ExecutionStatus::Completed;
        let output = state.output().cloned().unwrap_or_default();
        let with_failures = is_completed && state.end.with_failures;
        Self { status: state.status().name(), with_failures, output, interrupted: interrupted(state) }
    }

    pub(crate) fn description(&self) -> String {
        let with = if self.with_failures { " with failures" } else { "" };
        format!("{}{with}, output {}", self.status, mainspring_kernel::json::compact(&self.output))
    }

    /// Returns what dead nodes have to do with the outcome, as a suffix of a sentence; empty if nothing.
    pub(crate) fn interruptions(&self) -> String {
        self.interrupted.iter().map(|sentence| format!(": {sentence}")).collect()
    }
}

/// Explains each step that failed as its last attempt was interrupted.
fn interrupted(state: &State) -> Vec<String> {
    let failed = state.steps.iter().filter(|(_, step)| {
        let code = step.failure.as_ref().map(|failure| failure.code.as_str());
        step.status == Status::Failed && code == Some("interrupted")
    });
    let sentence = |(instance, step): (
        &mainspring_kernel::instance::Instance,
        &mainspring_kernel::state::StepState,
    )| {
        let attempts = state.plan.step(instance.step).retry.max_attempts;
        let name = instance.name(&state.plan);
        format!(
            "step `{name}` failed, as a node died during its attempt {} of {attempts}; raise `retry.maxAttempts` if it may be \
             repeated",
            step.attempt
        )
    };
    failed.map(sentence).collect()
}
