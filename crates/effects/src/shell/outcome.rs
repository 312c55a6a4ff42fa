//! Builds the outcome of a script that has run: its result, or the failure that carries it.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    value::{Map, Value},
};

use super::output::Kept;

/// The facts about a script that has run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) stdout: Kept,
    pub(super) stderr: Kept,
    /// The time from its start to the end of its last process.
    pub(super) duration: Duration,
    /// True if some of its processes hang inside the kernel, so that not even SIGKILL has ended them.
    pub(super) still_running: bool,
}

impl Report {
    /// The outcome of a script that ended by itself.
    pub(super) fn ended(&self, status: ExitStatus) -> Outcome {
        let code = exit_code(status);
        let result = self.to_value(Some(code));
        if code == 0 {
            return Outcome::Done(result);
        }
        let fact = match status.signal() {
            Some(signal) => format!("the script was killed by signal {signal}"),
            None => format!("the script exited with code {code}"),
        };
        let message = match self.stderr.last_line() {
            line if line.is_empty() => format!("{fact} and wrote nothing to stderr"),
            line => format!("{fact}: {line}"),
        };
        Outcome::Failed(Failure::new(Class::Failed, format!("bash_exit_code:{code}"), message).with_details(result))
    }

    /// The outcome of a script that was ended because it exceeded a quota.
    pub(super) fn exceeded(&self, why: &str) -> Outcome {
        let message = format!("the script took more than it may: {why}");
        Outcome::Failed(Failure::new(Class::Policy, "script_limit_exceeded", message).with_details(self.to_value(None)))
    }

    /// The outcome of a script that was ended, or never started, because of a cancellation.
    pub(super) fn stopped(&self) -> Outcome {
        Outcome::Stopped(self.to_value(None))
    }

    /// Builds `{exitCode, stdout, stderr, durationMs, truncated}`, with the full lengths of the streams if one was
    /// truncated, and with `stillRunning` if that is true.
    fn to_value(&self, exit_code: Option<u32>) -> Value {
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let is_truncated = stdout.is_truncated || stderr.is_truncated;
        let mut map = Map::new();
        map.insert("exitCode".into(), exit_code.into());
        map.insert("stdout".into(), stdout.text.into());
        map.insert("stderr".into(), stderr.text.into());
        map.insert("durationMs".into(), u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX).into());
        map.insert("truncated".into(), is_truncated.into());
        if is_truncated {
            map.insert("stdoutBytes".into(), stdout.bytes.into());
            map.insert("stderrBytes".into(), stderr.bytes.into());
        }
        if self.still_running {
            map.insert("stillRunning".into(), true.into());
        }
        Value::Map(map)
    }
}

/// Returns the exit code as a shell shows it: 128 plus the number of the signal for a killed process.
fn exit_code(status: ExitStatus) -> u32 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u32::try_from(code).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(stderr: &[u8]) -> Report {
        let mut report = Report { duration: Duration::from_millis(7), ..Report::default() };
        report.stderr.take(stderr);
        report
    }

    #[track_caller]
    fn failed(raw_status: i32, stderr: &[u8]) -> (String, String) {
        match report(stderr).ended(ExitStatus::from_raw(raw_status)) {
            Outcome::Failed(failure) => {
                assert_eq!(failure.class, Class::Failed);
                let code = failure.details.get("exitCode").unwrap().as_u64().unwrap();
                assert_eq!(failure.code, format!("bash_exit_code:{code}"));
                (failure.code, failure.message)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn exit_codes_and_signals_have_one_scheme() {
        let (code, message) = failed(3 << 8, b"one\ntwo\n");
        assert_eq!((code.as_str(), message.as_str()), ("bash_exit_code:3", "the script exited with code 3: two"));
        let (code, message) = failed(9, b"");
        assert_eq!(code, "bash_exit_code:137");
        assert_eq!(message, "the script was killed by signal 9 and wrote nothing to stderr");
    }

    #[test]
    fn lengths_are_reported_only_for_truncated_output() {
        let whole = report(b"x").to_value(Some(0));
        assert_eq!(whole.as_map().unwrap().len(), 5);
        assert_eq!(whole.get("truncated"), Some(&Value::from(false)));
        let cut = report(&[b'x'; 70_000]).to_value(None);
        assert_eq!(cut.get("exitCode"), Some(&Value::Null));
        assert_eq!(cut.get("stderrBytes"), Some(&Value::from(70_000u64)));
        assert_eq!(cut.get("stdoutBytes"), Some(&Value::from(0u64)));
    }
}
