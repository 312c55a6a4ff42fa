//! `cargo test` with a time limit per test: a test that hangs fails by name instead of blocking the run.
//!
//! The test harness reports every test that has run for a minute. A reported test that exceeds [`TEST_MS_MAX`] ends the
//! run, and the error names it.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

/// Time limit of a test. The slowest test takes three minutes on two busy cores.
const TEST_MS_MAX: u64 = 600_000;

/// The harness reports a test after this time.
const REPORTED_AFTER_MS: u64 = 60_000;

/// The harness's report, after the name of the test.
const REPORT: &str = " has been running for over 60 seconds";

/// The reported tests, with the time at which each must have ended.
#[derive(Default)]
struct Slow(BTreeMap<String, Instant>);

impl Slow {
    /// Reads a line of the harness's output.
    fn read(&mut self, line: &str, now: Instant) {
        let is_new_binary = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
        if is_new_binary || line.starts_with("test result: ") {
            self.0.clear();
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some(name) = test.strip_suffix(REPORT) {
                self.0.insert(name.to_owned(), now + Duration::from_millis(TEST_MS_MAX - REPORTED_AFTER_MS));
            } else if let Some((name, _)) = test.split_once(" ... ") {
                self.0.remove(name);
            }
        }
    }

    /// Returns the earliest deadline of a reported test.
    fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Returns the tests that have exceeded their deadline.
    fn over(&self, now: Instant) -> Vec<&str> {
        self.0.iter().filter(|(_, until)| **until <= now).map(|(name, _)| name.as_str()).collect()
    }
}

/// Runs cargo with these arguments, forwards its output, and kills it when a test takes too long. The error names the
/// cause.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root).stdout(Stdio::piped());
    let named = format!("cargo {}", arguments.join(" "));
    let mut child = command.spawn().map_err(|error| format!("{named} cannot be run: {error}."))?;
    let output = child.stdout.take().expect("the output is piped");
    let (lines, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let _ = io::stdout().write_all(&line);
            if lines.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    if let Some(report) = watch(&received, Instant::now) {
        // Cargo ends when the test binary has ended. It stays in our process group, so that Ctrl-C ends it as well.
        let _ = Command::new("kill").arg("-KILL").args(children(child.id())).status();
        let _ = child.wait();
        return Err(report);
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(String::new()),
        Ok(status) => Err(format!("{named} ended with {status}.")),
        Err(error) => Err(format!("{named}: {error}.")),
    }
}

/// Lists the child processes of a process, from /proc.
fn children(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Reads the output to its end. The error names the tests that exceeded their deadline.
fn watch(lines: &mpsc::Receiver<String>, clock: impl Fn() -> Instant) -> Option<String> {
    let mut slow = Slow::default();
    loop {
        let line = match slow.next() {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => lines.recv_timeout(until.saturating_duration_since(clock())),
        };
        match line {
            Ok(line) => slow.read(&line, clock()),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let over = slow.over(clock());
        if !over.is_empty() {
            let seconds = TEST_MS_MAX / 1000;
            return Some(format!(
                "The run was killed: a test has not ended within {seconds} s: {}. Run it alone to find out why.",
                over.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REPORTED_AFTER_MS, Slow, TEST_MS_MAX, run, watch};
    use std::{
        cell::Cell,
        sync::mpsc,
        time::{Duration, Instant},
    };

    const REST: Duration = Duration::from_millis(TEST_MS_MAX - REPORTED_AFTER_MS);

    /// Returns the tests that have exceeded their deadlines if no line follows these.
    fn over(lines: &[&str]) -> Vec<String> {
        let (mut slow, now) = (Slow::default(), Instant::now());
        for line in lines {
            slow.read(line, now);
        }
        assert!(slow.over(now + REST - Duration::from_millis(1)).is_empty());
        slow.over(now + REST).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_reported_test_that_does_not_end_is_over() {
        let report = "test a::b has been running for over 60 seconds";
        assert_eq!(over(&["running 2 tests", report, "test c ... ok"]), ["a::b"]);
        for end in ["test a::b ... ok", "test a::b ... FAILED", "test result: ok. 2 passed", "running 1 test"] {
            assert!(over(&["running 2 tests", report, end]).is_empty(), "{end}");
        }
    }

    #[test]
    fn the_run_ends_when_the_time_is_over_and_names_the_test() {
        let (lines, received) = mpsc::channel();
        lines.send("test hangs has been running for over 60 seconds".to_owned()).unwrap();
        let (now, asked) = (Instant::now(), Cell::new(0));
        // After the report was read, the clock is beyond the limit.
        let clock = || {
            asked.set(asked.get() + 1);
            if asked.get() > 1 { now + REST } else { now }
        };
        assert!(watch(&received, clock).unwrap().contains("within 600 s: hangs."));
        drop(lines);
        assert_eq!(watch(&received, Instant::now), None);
    }

    #[test]
    fn cargo_that_fails_is_said_to_have() {
        let error = run(std::path::Path::new("."), &["no-such-command"]).unwrap_err();
        assert!(error.starts_with("cargo no-such-command ended with "), "{error}");
    }
}
