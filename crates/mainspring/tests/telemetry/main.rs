//! Telemetry of real processes: metrics, traces and logs.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_engine::journal_loader::Loader;
use mainspring_kernel::{frame::Frame, input::Input, key::ExecutionKey};
use mainspring_store::prelude::*;
use mainspring_store::{Filter, sqlite::SqliteStore};

#[path = "../support/secured.rs"]
mod secured;
#[path = "../support/mod.rs"]
mod support;

mod collector;
mod logs;
mod metrics;
mod prometheus;
mod traces;

use support::TestDir;

/// A timeout longer than any step of the tests takes on the busiest machine.
const BOUND: Duration = Duration::from_secs(60);

/// Polls until a condition holds.
#[track_caller]
fn wait_for<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(began.elapsed() < BOUND, "{what}");
        std::thread::yield_now();
    }
}

/// Writes a definition into the test folder.
fn definition(dir: &TestDir, name: &str, text: &str) {
    fs::write(dir.root().join(format!("{name}.yaml")), text).unwrap();
}

/// A pipe that a step waits for.
fn pipe(dir: &TestDir, name: &str) -> PathBuf {
    let path = dir.root().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Releases the step that waits for a pipe.
fn release(pipe: &Path) {
    fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(b"\n").unwrap();
}

fn folder(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

fn loader(dir: &TestDir) -> Option<(Arc<SqliteStore>, Loader)> {
    let store = Arc::new(SqliteStore::open_read_only(&folder(dir).join("journal.db")).ok()?);
    Some((store.clone(), Loader::new(store, dir.key())))
}

/// All executions with their frames.
fn journals(dir: &TestDir) -> Vec<(ExecutionKey, Vec<Frame>)> {
    let Some((store, loader)) = loader(dir) else { return Vec::new() };
    let rows = store.executions(&Filter::default(), None, 100).unwrap();
    let journal = |key| {
        let mut frames = Vec::new();
        loader.frames(key, |_, frame| frames.push(frame.clone())).unwrap();
        frames
    };
    rows.into_iter().map(|row| (row.key, journal(row.key))).collect()
}

fn input_word(input: &Input) -> &'static str {
    match input {
        Input::Start(_) => "start",
        Input::Receipt { .. } => "receipt",
        Input::Timer(_) => "timer",
        Input::Decide { .. } => "decide",
        Input::Signal { .. } => "signal",
        Input::Cancel { .. } => "cancel",
        Input::Continue => "continue",
        Input::ChildWaits { .. } => "child_waits",
        Input::Admit => "admit",
        Input::SkipCleanup { .. } => "skip_cleanup",
        Input::Message { .. } => "message",
        Input::Lease { .. } => "lease",
        Input::Migrate { .. } => "migrate",
    }
}

/// A process whose standard error is read while it runs.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// The address of its metrics, as it prints it.
    fn metrics(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it does not say where its metrics are");
            if let Some((_, rest)) = line.split_once("http://") {
                return rest.split('/').next().unwrap().to_owned();
            }
        }
    }

    /// The exit code, and the remaining output.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, stdout, stderr)
    }
}
