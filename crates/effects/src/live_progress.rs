//! The progress of running attempts on this node, in memory: for people who watch, and for no decision.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mainspring_kernel::key::ExecutionKey;

use crate::attempt_name::AttemptName;

/// Bytes of a text that a session reports: some sentences.
pub const REPORT_BYTES_MAX: usize = 1024;

/// Executions with a reported text. The text that was reported first makes room for another one.
const REPORTS_MAX: usize = 10_000;

/// The progress of executions. Attempts leave it when they end, and so do executions.
#[derive(Debug, Default)]
pub struct LiveProgress(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    attempts: BTreeMap<ExecutionKey, BTreeMap<(String, u32), OutputSoFar>>,
    reports: BTreeMap<ExecutionKey, (u64, SessionReport)>,
    reported: u64,
}

/// The output of a running script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputSoFar {
    /// Bytes of its standard output.
    pub stdout_bytes: u64,
    /// Bytes of its standard error.
    pub stderr_bytes: u64,
    /// The last line of either.
    pub line: String,
}

/// A text that the session of an execution has reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReport {
    /// At most [`REPORT_BYTES_MAX`] bytes.
    pub text: String,
    /// The time of the report, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The progress of a running attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptProgress {
    /// The step instance.
    pub step: String,
    /// The number of the attempt.
    pub number: u32,
    /// Bytes of both streams since its start, and the last line.
    pub output: OutputSoFar,
}

impl LiveProgress {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the output of a running attempt.
    pub fn output(&self, attempt: AttemptName<'_>, output: OutputSoFar) {
        let mut known = self.known();
        let attempts = known.attempts.entry(attempt.execution).or_default();
        attempts.insert((attempt.step.to_owned(), attempt.number), output);
    }

    /// Forgets an attempt.
    pub fn attempt_ended(&self, attempt: AttemptName<'_>) {
        let mut known = self.known();
        if let Some(attempts) = known.attempts.get_mut(&attempt.execution) {
            attempts.remove(&(attempt.step.to_owned(), attempt.number));
            if attempts.is_empty() {
                known.attempts.remove(&attempt.execution);
            }
        }
    }

    /// Sets the text of an execution, cut to its bound.
    pub fn report(&self, execution: ExecutionKey, text: &str, at_ms: u64) {
        let mut known = self.known();
        known.reported += 1;
        let number = known.reported;
        let text = text[..text.floor_char_boundary(REPORT_BYTES_MAX)].to_owned();
        known.reports.insert(execution, (number, SessionReport { text, at_ms }));
        if known.reports.len() > REPORTS_MAX {
            let first = known.reports.iter().min_by_key(|(_, (number, _))| *number).map(|(execution, _)| *execution);
            first.map(|first| known.reports.remove(&first));
        }
    }

    /// Returns what is known of an execution on this node.
    pub fn of(&self, execution: ExecutionKey) -> (Option<SessionReport>, Vec<AttemptProgress>) {
        let known = self.known();
        let report = known.reports.get(&execution).map(|(_, report)| report.clone());
        let attempts = known.attempts.get(&execution).into_iter().flatten();
        let attempts = attempts.map(|((step, number), output)| AttemptProgress {
            step: step.clone(),
            number: *number,
            output: output.clone(),
        });
        (report, attempts.collect())
    }

    /// Forgets an execution that has ended.
    pub fn execution_ended(&self, execution: ExecutionKey) {
        let mut known = self.known();
        known.attempts.remove(&execution);
        known.reports.remove(&execution);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_of_running_attempts_and_bounded() {
        let (progress, execution) = (LiveProgress::default(), ExecutionKey([1; 16]));
        let name = AttemptName { execution, step: "a", number: 1 };
        let output = OutputSoFar { stdout_bytes: 3, stderr_bytes: 0, line: "x".into() };
        progress.output(name, output.clone());
        progress.report(execution, &"é".repeat(REPORT_BYTES_MAX), 7);
        let (report, attempts) = progress.of(execution);
        assert_eq!(report.map(|report| report.text.len()), Some(REPORT_BYTES_MAX));
        assert_eq!(attempts, [AttemptProgress { step: "a".into(), number: 1, output }]);
        progress.attempt_ended(name);
        assert_eq!(progress.of(execution).1, []);
        progress.execution_ended(execution);
        assert_eq!(progress.of(execution), (None, vec![]));
        for number in 0..=REPORTS_MAX {
            progress.report(ExecutionKey::new(number as u64, [0; 10]), "x", 0);
        }
        assert_eq!(progress.known().reports.len(), REPORTS_MAX);
        assert_eq!(progress.of(ExecutionKey::new(0, [0; 10])).0, None, "the first report made room");
    }
}
