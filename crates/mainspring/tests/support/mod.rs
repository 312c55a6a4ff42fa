//! What the tests with real processes share: a ground of their own to stand on, and the calls of `workflow`.
#![allow(dead_code, reason = "every test file compiles this one and uses its own part of it")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use mainspring_engine::{keys, load::Loader};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    json::{self, compact},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::{Store, sqlite::SqliteStore};
use tempfile::TempDir;

/// The executable under test.
pub(crate) const WORKFLOW: &str = env!("CARGO_BIN_EXE_workflow");

/// The user's executable.
pub(crate) const MAINSPRING: &str = env!("CARGO_BIN_EXE_mainspring");

/// A folder that is nobody else's, with a home and a workspace in it.
pub(crate) struct Ground {
    root: TempDir,
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exit code; nothing for a process that a signal ended.
    pub(crate) exit: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Ground {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "workspace"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    /// The folder of all.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Where steps work.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Where the journals are.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("home/.local/state/workflow")
    }

    /// The journal of an execution.
    pub(crate) fn journal(&self, id: &str) -> PathBuf {
        self.state().join(id).join("journal.db")
    }

    /// A file of the workspace; nothing where there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    /// The executable, with an environment of this ground and nothing else of ours but the way to programs.
    pub(crate) fn workflow(&self, arguments: &[&str]) -> Command {
        self.program(WORKFLOW, arguments)
    }

    /// The user's executable, in the same surroundings.
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

    /// `run` of a definition under a name.
    pub(crate) fn run(&self, id: &str, definition: &Value) -> Command {
        let workspace = self.workspace();
        let hash = hash_of(definition);
        let workspace = workspace.to_str().unwrap();
        self.workflow(&["run", "--execution-id", id, "--workflow-hash", &hash, "--workspace", workspace])
    }

    /// `run` of a definition to its rest.
    pub(crate) fn ran(&self, id: &str, definition: &Value) -> Answer {
        call(self.run(id, definition), &request(definition))
    }

    /// `resume` with a decision, from another folder than the one before.
    pub(crate) fn resumed(&self, id: &str, token: &str, decision: &str) -> Answer {
        let mut command =
            self.workflow(&["resume", "--execution-id", id, "--resume-token", token, "--decision", decision]);
        command.current_dir("/");
        call(command, b"")
    }

    /// The journal of an execution as it lies there, and its key in the store.
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
    /// Of a process that has ended.
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("streams are UTF-8");
        Self { exit: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The envelope, which is the one line of standard output.
    #[track_caller]
    pub(crate) fn envelope(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line of output, please: {self:?}");
        let read = json::read(self.stdout.as_bytes());
        read.unwrap_or_else(|error| panic!("no JSON, {error}: {self:?}")).value
    }

    /// The events of standard error: the lines that are objects with a type.
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line: &str| json::read(line.as_bytes()).ok().map(|read| read.value);
        self.stderr.lines().filter_map(event).filter(|value| value.get("type").is_some()).collect()
    }

    /// A value of the envelope by its path, `null` where there is none.
    #[track_caller]
    pub(crate) fn at(&self, path: &str) -> Value {
        at(&self.envelope(), path)
    }

    /// A text of the envelope by its path.
    #[track_caller]
    pub(crate) fn text(&self, path: &str) -> String {
        self.at(path).as_text().unwrap_or_else(|| panic!("no text at {path}: {self:?}")).to_string()
    }

    /// Checks the exit code and the envelope's status; gives itself back to go on with.
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

/// The hash of a definition, by its compiler.
#[track_caller]
pub(crate) fn hash_of(definition: &Value) -> String {
    let document = read(compact(definition).as_bytes(), Syntax::Guess).unwrap();
    compile(&document).unwrap_or_else(|errors| panic!("{errors:?}")).plan.workflow_hash.prefixed()
}

/// The request that runs a definition.
pub(crate) fn request(definition: &Value) -> Vec<u8> {
    compact(&Value::map([("workflow", definition.clone())])).into_bytes()
}

/// Starts a call; its input is written whole.
pub(crate) fn spawn(mut command: Command, stdin: &[u8]) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // A call that refuses early does not read all that it is given.
    std::thread::spawn(move || pipe.write_all(&stdin));
    child
}

/// Makes a call and waits for its end.
pub(crate) fn call(command: Command, stdin: &[u8]) -> Answer {
    Answer::of(spawn(command, stdin).wait_with_output().unwrap())
}

/// A value by its path: names and places, separated by dots.
pub(crate) fn at(value: &Value, path: &str) -> Value {
    let step = |value: &Value, name: &str| match value {
        Value::List(list) => list.get(name.parse::<usize>().ok()?).cloned(),
        value => value.get(name).cloned(),
    };
    path.split('.').try_fold(value.clone(), |value, name| step(&value, name)).unwrap_or_default()
}

/// Where an expectation is not contained in what came; nothing where it is. Objects may have more, all else is equal.
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
