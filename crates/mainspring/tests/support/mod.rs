//! Shared code of tests with real processes: an isolated test folder, and calls of both executables.
#![allow(dead_code, reason = "every test file compiles this one and uses its own part of it")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use mainspring_engine::{journal_loader::Loader, keys};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    json::{self, compact},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::sqlite::SqliteStore;
use tempfile::TempDir;

/// The executable `workflow`.
pub(crate) const WORKFLOW: &str = env!("CARGO_BIN_EXE_workflow");

/// The executable `mainspring`.
pub(crate) const MAINSPRING: &str = env!("CARGO_BIN_EXE_mainspring");

/// An isolated test folder with a home and a workspace.
pub(crate) struct TestDir {
    root: TempDir,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exit code; `None` if a signal ended the process.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "workspace"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    /// The test folder.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The workspace of steps.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// The folder of journals.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("home/.local/state/workflow")
    }

    /// The journal of an execution.
    pub(crate) fn journal(&self, id: &str) -> PathBuf {
        self.state().join(id).join("journal.db")
    }

    /// The contents of a file in the workspace; empty if it is missing.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    /// A call of `workflow` with an environment of this folder, and nothing of the caller's but `PATH`.
    pub(crate) fn workflow(&self, arguments: &[&str]) -> Command {
        self.program(WORKFLOW, arguments)
    }

    /// A call of `mainspring` in the same environment.
    pub(crate) fn mainspring(&self, arguments: &[&str]) -> Command {
        self.program(MAINSPRING, arguments)
    }

    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.root.path()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", self.root.path().join("home"));
        command
    }

    /// `run` of a definition with an execution id.
    pub(crate) fn run(&self, id: &str, definition: &Value) -> Command {
        let workspace = self.workspace();
        let hash = hash_of(definition);
        let workspace = workspace.to_str().unwrap();
        self.workflow(&["run", "--execution-id", id, "--workflow-hash", &hash, "--workspace", workspace])
    }

    /// Runs a definition until it has settled.
    pub(crate) fn ran(&self, id: &str, definition: &Value) -> Answer {
        call(self.run(id, definition), &request(definition))
    }

    /// `resume` with a decision, from another folder than `run`.
    pub(crate) fn resumed(&self, id: &str, token: &str, decision: &str) -> Answer {
        let mut command =
            self.workflow(&["resume", "--execution-id", id, "--resume-token", token, "--decision", decision]);
        command.current_dir("/");
        call(command, b"")
    }

    /// The journal of an execution as it is stored, and its key.
    pub(crate) fn loader(&self, id: &str) -> Option<(Loader, ExecutionKey)> {
        let store = SqliteStore::open_read_only(&self.journal(id)).ok()?;
        let row = store.execution_by_id(id).unwrap()?;
        Some((Loader::new(std::sync::Arc::new(store), self.key()), row.key))
    }

    /// The installation's key.
    pub(crate) fn key(&self) -> [u8; 32] {
        keys::load_or_create(&self.root.path().join("home/.config/mainspring/key")).unwrap()
    }
}

impl Answer {
    /// The result of an ended process.
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("streams are UTF-8");
        Self { exit: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The envelope, which must be the only line of standard output.
    #[track_caller]
    pub(crate) fn envelope(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line of output, please: {self:?}");
        let read = json::read(self.stdout.as_bytes());
        read.unwrap_or_else(|error| panic!("no JSON, {error}: {self:?}")).value
    }

    /// The events on standard error: the lines that are objects with a type.
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line: &str| json::read(line.as_bytes()).ok().map(|read| read.value);
        self.stderr.lines().filter_map(event).filter(|value| value.get("type").is_some()).collect()
    }

    /// A value of the envelope by its path; null if it is absent.
    #[track_caller]
    pub(crate) fn at(&self, path: &str) -> Value {
        at(&self.envelope(), path)
    }

    /// A text of the envelope by its path.
    #[track_caller]
    pub(crate) fn text(&self, path: &str) -> String {
        self.at(path).as_text().unwrap_or_else(|| panic!("no text at {path}: {self:?}")).to_string()
    }

    /// Checks the exit code and the status of the envelope.
    #[track_caller]
    pub(crate) fn expect(self, exit: i32, status: &str) -> Self {
        assert_eq!((self.exit, self.text("status").as_str()), (Some(exit), status), "{self:?}");
        self
    }
}

/// A definition from YAML.
#[track_caller]
pub(crate) fn yaml(text: &str) -> Value {
    read(text.as_bytes(), Syntax::Guess).unwrap_or_else(|error| panic!("{error}")).value
}

/// The hash of a definition, by the compiler.
#[track_caller]
pub(crate) fn hash_of(definition: &Value) -> String {
    let document = read(compact(definition).as_bytes(), Syntax::Guess).unwrap();
    compile(&document).unwrap_or_else(|errors| panic!("{errors:?}")).plan.workflow_hash.prefixed()
}

/// The request that runs a definition.
pub(crate) fn request(definition: &Value) -> Vec<u8> {
    compact(&Value::map([("workflow", definition.clone())])).into_bytes()
}

/// Starts a call, and writes its input in the background.
pub(crate) fn spawn(mut command: Command, stdin: &[u8]) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // A call that fails early does not read all of its input.
    std::thread::spawn(move || pipe.write_all(&stdin));
    child
}

/// Runs a call until it ends.
pub(crate) fn call(command: Command, stdin: &[u8]) -> Answer {
    Answer::of(spawn(command, stdin).wait_with_output().unwrap())
}

/// A value by its path: names and indexes, separated by dots.
pub(crate) fn at(value: &Value, path: &str) -> Value {
    let step = |value: &Value, name: &str| match value {
        Value::List(list) => list.get(name.parse::<usize>().ok()?).cloned(),
        value => value.get(name).cloned(),
    };
    path.split('.').try_fold(value.clone(), |value, name| step(&value, name)).unwrap_or_default()
}

/// The path of the first difference; `None` if `actual` contains `expected`. Objects may have further keys;
/// everything else must be equal.
pub(crate) fn missing(actual: &Value, expected: &Value, place: &str) -> Option<String> {
    match (actual, expected) {
        (Value::Map(actual), Value::Map(expected)) => expected.iter().find_map(|(key, expected)| {
            let place = format!("{place}.{key}");
            match actual.get(key) {
                Some(actual) => missing(actual, expected, &place),
                None => Some(format!("{place} is not there")),
            }
        }),
        (Value::List(actual), Value::List(expected)) if actual.len() == expected.len() => {
            let pairs = actual.iter().zip(expected).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (actual, expected))| missing(actual, expected, &format!("{place}[{index}]")))
        }
        (actual, expected) if actual == expected => None,
        (actual, expected) => Some(format!("{place} is {}, not {}", compact(actual), compact(expected))),
    }
}
