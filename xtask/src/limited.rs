//! Test processes with a time limit per test: a test that hangs fails by name instead of blocking the run.
//!
//! The test harness reports every test that has run for a minute. A reported test that exceeds [`TEST_MS_MAX`] ends the
//! run, and the error names it.

use crate::cargo;
use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, PipeReader, Write},
    path::Path,
    process::{Child, Command},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// Time limit of a test. The slowest test takes three minutes on two busy cores.
const TEST_MS_MAX: u64 = 600_000;

/// The harness reports a test after this time.
const REPORTED_AFTER_MS: u64 = 60_000;

/// Longest time in which the output of an ended process is read.
const OUTPUT_AFTER_EXIT_MS_MAX: u64 = 2_000;

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

/// Runs cargo with these arguments, shows its output, and kills it when a test takes too long. The error names the cause.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = cargo::command();
    command.args(arguments).current_dir(root);
    let (outcome, output) = watch_process(command);
    // A closed terminal does not stop the tests.
    let _ = io::stdout().write_all(&output);
    outcome.map(|()| String::new()).map_err(|why| format!("cargo {}: {why}", arguments.join(" ")))
}

/// Runs a process, and kills it when a test takes too long. Returns its output as well. The error names the cause.
pub(crate) fn watch_process(mut command: Command) -> (Result<(), String>, Vec<u8>) {
    let (mut child, pipe) = match spawn(&mut command) {
        Ok(spawned) => spawned,
        Err(error) => return (Err(format!("it cannot be run: {error}")), Vec::new()),
    };
    // The command holds ends of the pipe, and the output ends when all of them are closed.
    drop(command);
    let (events, received) = mpsc::channel();
    let (of_output, output) = (events.clone(), Arc::new(Mutex::new(Vec::new())));
    let read = output.clone();
    std::thread::spawn(move || {
        let (mut pipe, mut line) = (BufReader::new(pipe), Vec::new());
        while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            read.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&line);
            let _ = of_output.send(Event::Line(String::from_utf8_lossy(&line).trim_end().to_owned()));
            line.clear();
        }
        let _ = of_output.send(Event::OutputEnded);
    });
    let process = child.id();
    let waiting = std::thread::spawn(move || {
        let status = child.wait();
        let _ = events.send(Event::Exited);
        status
    });
    let late = watch(&received, Instant::now);
    if late.is_some() {
        // Cargo ends when the test executable has ended. Both stay in our process group, so that Ctrl-C ends them as well.
        let _ = Command::new("kill").arg("-KILL").args(children(process)).arg(process.to_string()).status();
    }
    let status = waiting.join().unwrap_or_else(|_| Err(io::Error::other("the thread that waits for it has panicked")));
    let outcome = match (late, status) {
        (Some(report), _) => Err(report),
        (None, Ok(status)) if status.success() => Ok(()),
        (None, Ok(status)) => Err(format!("it ended with {status}")),
        (None, Err(error)) => Err(error.to_string()),
    };
    let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome, output)
}

/// Starts a process whose output and errors go to one pipe.
fn spawn(command: &mut Command) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    Ok((command.spawn()?, reader))
}

/// Lists the child processes of a process, from /proc.
fn children(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// An event of a process.
enum Event {
    /// A line of its output.
    Line(String),
    OutputEnded,
    Exited,
}

/// Reads the events of a process to its end. The error names the tests that exceeded their deadline.
fn watch(events: &mpsc::Receiver<Event>, clock: impl Fn() -> Instant) -> Option<String> {
    let (mut slow, mut exited) = (Slow::default(), None);
    loop {
        let until = slow.next().into_iter().chain(exited).min();
        let event = match until {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => events.recv_timeout(until.saturating_duration_since(clock())),
        };
        match event {
            Ok(Event::Line(line)) => slow.read(&line, clock()),
            // Another process, which a test left behind, may keep the output open.
            Ok(Event::Exited) => exited = Some(clock() + Duration::from_millis(OUTPUT_AFTER_EXIT_MS_MAX)),
            Ok(Event::OutputEnded) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if exited.is_some_and(|until| until <= clock()) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let over = slow.over(clock());
        if exited.is_none() && !over.is_empty() {
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
    use super::{Event, OUTPUT_AFTER_EXIT_MS_MAX, REPORTED_AFTER_MS, Slow, TEST_MS_MAX, run, watch, watch_process};
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
        let (events, received) = mpsc::channel();
        events.send(Event::Line("test hangs has been running for over 60 seconds".to_owned())).unwrap();
        let (now, asked) = (Instant::now(), Cell::new(0));
        // After the report was read, the clock is beyond the limit.
        let clock = || {
            asked.set(asked.get() + 1);
            if asked.get() > 1 { now + REST } else { now }
        };
        assert!(watch(&received, clock).unwrap().contains("within 600 s: hangs."));
        drop(events);
        assert_eq!(watch(&received, Instant::now), None);
    }

    #[test]
    fn open_output_after_the_exit_is_not_awaited() {
        let (events, received) = mpsc::channel();
        events.send(Event::Exited).unwrap();
        let (now, asked) = (Instant::now(), Cell::new(0));
        let clock = || {
            asked.set(asked.get() + 1);
            if asked.get() > 1 { now + Duration::from_millis(OUTPUT_AFTER_EXIT_MS_MAX) } else { now }
        };
        assert_eq!(watch(&received, clock), None);
    }

    #[test]
    fn the_output_and_the_outcome_of_a_process_are_returned() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let (outcome, output) = watch_process(command);
        assert!(outcome.unwrap_err().contains("exit status: 3"));
        assert_eq!(String::from_utf8(output).unwrap(), "out\nerr\n");
    }

    #[test]
    fn a_failing_cargo_command_is_reported() {
        let error = run(std::path::Path::new("."), &["no-such-command"]).unwrap_err();
        assert!(error.starts_with("cargo no-such-command: it ended with "), "{error}");
    }
}
