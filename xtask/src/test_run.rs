//! The tests of the workspace: builds the test executables, runs several at a time, and runs the tests of documentation.
//!
//! Many tests wait for processes, databases and timers, so one executable at a time would leave processors idle. The
//! output of an executable is shown when it has ended. All executables run, and the error names those that failed.

use crate::cargo;
use crate::limited::{self, watch_process};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

/// Most executables at a time: some start several databases and servers.
const AT_A_TIME_MAX: usize = 4;

/// The executables that run longest. They start first, so that the others run beside them.
const FIRST: [&str; 3] = ["server", "cluster", "nodes"];

/// A test executable.
#[derive(Debug, Clone, PartialEq)]
struct Executable {
    package: String,
    version: String,
    target: String,
    kind: String,
    path: PathBuf,
    /// The folder of the package, in which the tests run.
    folder: PathBuf,
}

impl Executable {
    /// Reads a message of cargo. `None` if it is about something else than a test executable.
    fn read(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        // `…/folder#name@version`, or `…/name#version`.
        let (_, id) = message["package_id"].as_str()?.rsplit_once('#')?;
        let (package, version) = match id.split_once('@') {
            Some((package, version)) => (package.to_owned(), version.to_owned()),
            None => (folder.file_name()?.to_str()?.to_owned(), id.to_owned()),
        };
        let (target, kind) = (text(&message["target"]["name"])?, text(&message["target"]["kind"][0])?);
        Some(Self { package, version, target, kind, path: text(&message["executable"])?.into(), folder })
    }

    /// The command that runs this executable alone.
    fn alone(&self) -> String {
        let target = match self.kind.as_str() {
            "test" => format!("--test {}", self.target),
            "bin" => format!("--bin {}", self.target),
            "example" => format!("--example {}", self.target),
            _ => "--lib".to_owned(),
        };
        format!("cargo test -p {} {target}", self.package)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("CARGO_PKG_NAME", &self.package).env("CARGO_PKG_VERSION", &self.version);
        command
    }
}

/// Builds and runs all tests. The error names the executables that failed.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let mut executables = build(root)?;
    executables
        .sort_by_key(|executable| FIRST.iter().position(|name| *name == executable.target).unwrap_or(FIRST.len()));
    let at_a_time = available_parallelism().map_or(1, usize::from).min(AT_A_TIME_MAX);
    let count = executables.len();
    let failures = run_all(executables, at_a_time, run_one);
    if !failures.is_empty() {
        return Err(format!("{} of {count} test executables failed:\n{}", failures.len(), failures.join("\n")));
    }
    limited::run(root, &["test", "--workspace", "--doc"])
}

/// Builds the test executables.
fn build(root: &Path) -> Result<Vec<Executable>, String> {
    const ARGUMENTS: [&str; 4] = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let built = cargo::command().args(ARGUMENTS).current_dir(root).stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo cannot be run: {error}."))?;
    if !built.status.success() {
        return Err(format!("cargo {} ended with {}.", ARGUMENTS[..3].join(" "), built.status));
    }
    Ok(String::from_utf8_lossy(&built.stdout).lines().filter_map(Executable::read).collect())
}

/// Runs executables, several at a time. Returns a line for each that failed.
fn run_all(
    executables: Vec<Executable>,
    at_a_time: usize,
    run_one: impl Fn(&Executable) -> Result<(), String> + Sync,
) -> Vec<String> {
    let (left, failures) = (Mutex::new(VecDeque::from(executables)), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(executable) = next() {
                    if let Err(report) = run_one(&executable) {
                        let line = format!("  {}: {report}", executable.alone());
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an executable, and shows its output when it has ended.
fn run_one(executable: &Executable) -> Result<(), String> {
    let started = Instant::now();
    let (outcome, output) = watch_process(executable.command());
    let seconds = started.elapsed().as_secs_f64();
    let mut stdout = io::stdout().lock();
    let name = executable.path.file_name().unwrap_or_default().to_string_lossy();
    // A closed terminal does not stop the tests.
    let _ = writeln!(stdout, "     Running {} {} ({name}), {seconds:.1} s", executable.package, executable.target);
    let _ = stdout.write_all(&output);
    outcome
}

#[cfg(test)]
mod tests {
    use super::{Executable, run_all};
    use std::collections::BTreeSet;
    use std::sync::{Barrier, Mutex};

    fn message(package_id: &str, target: &str, kind: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "package_id": package_id, "manifest_path": "/w/crates/effects/Cargo.toml",
            "target": {"name": target, "kind": [kind]}, "profile": {"test": is_test}, "executable": "/w/deps/x-1",
        })
        .to_string()
    }

    #[test]
    fn messages_of_cargo_name_the_executables() {
        let read = |id: &str, kind: &str| Executable::read(&message(id, "shell", kind, true)).unwrap();
        let named = read("path+file:///w/crates/effects#mainspring-effects@0.1.0", "test");
        assert_eq!((named.package.as_str(), named.version.as_str()), ("mainspring-effects", "0.1.0"));
        assert_eq!(named.alone(), "cargo test -p mainspring-effects --test shell");
        let unnamed = read("path+file:///w/crates/effects#0.1.0", "lib");
        assert_eq!((unnamed.package.as_str(), unnamed.alone().as_str()), ("effects", "cargo test -p effects --lib"));
        assert_eq!(Executable::read(&message("path+file:///w/a#0.1.0", "a", "bin", false)), None);
        assert_eq!(Executable::read(r#"{"reason": "build-finished", "success": true}"#), None);
        assert_eq!(Executable::read("no JSON"), None);
    }

    #[test]
    fn executables_run_in_parallel_and_all_failures_are_named() {
        let of = |number: u32| {
            let id = format!("path+file:///w/crates/effects#p{number}@0.1.0");
            Executable::read(&message(&id, "t", "test", true)).unwrap()
        };
        let (both, ran) = (Barrier::new(2), Mutex::new(BTreeSet::new()));
        let failures = run_all((0..6).map(of).collect(), 2, |executable| {
            // One at a time would wait forever.
            both.wait();
            ran.lock().unwrap().insert(executable.package.clone());
            if ["p1", "p4"].contains(&executable.package.as_str()) { Err("it failed".to_owned()) } else { Ok(()) }
        });
        assert_eq!(ran.into_inner().unwrap().len(), 6);
        let failures: BTreeSet<String> = failures.into_iter().collect();
        let expected = ["p1", "p4"].map(|name| format!("  cargo test -p {name} --test t: it failed"));
        assert_eq!(failures, BTreeSet::from(expected));
    }
}
