//! Every command on every backend: a data folder, a shared store with a node, and a server. Exit codes, messages and
//! the shapes of JSON outputs are equal.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, Command, Stdio},
};

use mainspring_kernel::{json, value::Value};
use mainspring_store::postgres::server as postgres;

use super::{
    commands::{SHIP, WAITS, assert_refused},
    process::Server,
    support::{Answer, MAINSPRING, call},
};

/// A backend, with the process that runs its executions.
struct Backend {
    name: &'static str,
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
    /// The database is stopped last.
    processes: (Option<Server>, Option<Node>, Option<postgres::Server>),
}

/// A node, killed on drop.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Backend {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, definition) in [("ship", SHIP), ("waits", WAITS)] {
            fs::write(folder.path().join(format!("{name}.yaml")), definition).unwrap();
        }
        Self { name, folder, environment: Vec::new(), processes: (None, None, None) }
    }

    /// A data folder. Its executions are run by the commands.
    fn folder() -> Self {
        Self::new("folder")
    }

    /// A PostgreSQL store with one node.
    fn shared_store() -> Self {
        let options = postgres::Options { fsync: false, ..postgres::Options::default() };
        let database = postgres::Server::start(options).unwrap();
        let mut backend = Self::new("shared store");
        backend.environment.push(("MAINSPRING_STORE", database.address("")));
        let mut node = backend.command(&["node", "--lease-seconds", "2"]);
        let node = node.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        backend.processes = (None, Some(Node(node)), Some(database));
        backend
    }

    /// A server with the saved workflows.
    fn server() -> Self {
        let mut backend = Self::new("server");
        let server = Server::start(backend.folder.path());
        let token = server.token.clone().unwrap();
        let address = format!("http://{}", server.address);
        backend.environment.extend([("MAINSPRING_SERVER", address), ("MAINSPRING_TOKEN", token)]);
        backend.processes.0 = Some(server);
        backend.fine(&["save", "ship.yaml"]);
        backend.fine(&["save", "waits.yaml"]);
        backend
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        command
    }

    fn call(&self, arguments: &[&str]) -> Answer {
        call(self.command(arguments), b"")
    }

    #[track_caller]
    fn fine(&self, arguments: &[&str]) -> Answer {
        let answer = self.call(arguments);
        assert_eq!(answer.exit, Some(0), "{}: {arguments:?}: {answer:?}", self.name);
        answer
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], exit: i32, words: &[&str]) {
        assert_refused(&self.call(arguments), exit, words);
    }

    /// Starts a workflow in the background, and returns the id of the execution.
    #[track_caller]
    fn started(&self, workflow: &str) -> String {
        let file = format!("{workflow}.yaml");
        let workflow = if self.processes.0.is_some() { workflow } else { &file };
        self.fine(&["run", workflow, "--detach", "--json", "--var", "name=Ada"]).text("executionId")
    }

    /// Follows an execution until it has settled, and returns its row.
    #[track_caller]
    fn settled(&self, id: &str, status: &str) -> Value {
        self.fine(&["tail", id]);
        let rows = lines(&self.fine(&["list", "--json"]));
        let row = rows.into_iter().find(|row| text(row, "executionId") == id).unwrap();
        assert_eq!(text(&row, "status"), status, "{}: {row:?}", self.name);
        row
    }
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.stdout.lines().map(|line| json::read(line.as_bytes()).unwrap().value).collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_else(|| panic!("no text `{key}`: {value:?}")).to_string()
}

/// The keys of an object.
fn keys(value: &Value) -> BTreeSet<String> {
    value.as_map().unwrap().keys().cloned().collect()
}

/// Runs every command, and returns the keys of the JSON outputs.
fn every_command(backend: &Backend) -> Vec<(&'static str, BTreeSet<String>)> {
    let mut shapes = Vec::new();
    backend.refused(&["list"], 10, &["there are no executions"]);
    let id = backend.started("ship");
    let row = backend.settled(&id, "waiting_approval");
    shapes.push(("list", keys(&row)));
    backend.refused(&["show", "nothing"], 10, &["there is no execution `nothing`", "`mainspring list`"]);
    let page = backend.fine(&["approvals", "--json"]).envelope();
    let Some(Value::List(open)) = page.get("approvals") else { panic!("{page:?}") };
    assert_eq!((open.len(), text(&open[0], "executionId"), text(&open[0], "stepId")), (1, id.clone(), "ask".into()));
    shapes.extend([("approvals", keys(&page)), ("approval", keys(&open[0]))]);
    backend.refused(
        &["approve", &id, "--step", "nowhere"],
        20,
        &["there is no approval `nowhere` in this execution; open now: `ask`"],
    );
    let approved = backend.fine(&["approve", &id, "--reason", "checked"]);
    assert!(approved.stdout.starts_with("Ship for Ada?\n"), "{}: {approved:?}", backend.name);
    backend.settled(&id, "completed");
    backend.refused(&["deny", &id], 20, &["has no open approval: its status is completed"]);
    let shown = backend.fine(&["show", &id]);
    assert!(shown.stdout.contains("approve by") && shown.stdout.contains("checked"), "{}: {shown:?}", backend.name);
    let envelope = backend.fine(&["show", &id, "--json", "--skip", "1", "--limit", "1"]).envelope();
    assert_eq!(envelope.get("steps").and_then(Value::as_list).map(<[Value]>::len), Some(1));
    shapes.push(("show", keys(&envelope)));

    let denied = backend.started("ship");
    backend.settled(&denied, "waiting_approval");
    backend.fine(&["deny", &denied]);
    backend.settled(&denied, "cancelled");
    let signalled = backend.started("waits");
    backend.refused(&["signal", &signalled, "go", "--payload", "{"], 10, &["--payload is not JSON"]);
    backend.fine(&["signal", &signalled, "go", "--payload", "{\"by\": \"train\"}"]);
    backend.settled(&signalled, "completed");
    let cancelled = backend.started("waits");
    backend.fine(&["cancel", &cancelled, "--reason", "not_today"]);
    backend.settled(&cancelled, "cancelled");
    backend.refused(&["cancel", &cancelled], 20, &["has ended"]);
    backend.refused(&["signal", &cancelled, "go"], 20, &["has ended"]);

    assert_eq!(lines(&backend.fine(&["list", "--status", "cancelled", "--json"])).len(), 2);
    let erased = backend.fine(&["erase", &id, "--reason", "requested", "--json"]).envelope();
    assert!(erased.get("erased").and_then(Value::as_u64) > Some(0), "{}: {erased:?}", backend.name);
    shapes.push(("erase", keys(&erased)));
    let verified = lines(&backend.fine(&["verify", "--all", "--json"]));
    let verified: Vec<_> = verified.iter().filter(|line| line.get("executionId").is_some()).collect();
    assert!(verified.len() == 4 && verified.iter().all(|line| line.get("ok") == Some(&Value::Bool(true))));
    assert_eq!(backend.fine(&["quarantine", "list"]).stdout, "none\n");
    for name in [&id, &id[..id.len() - 1], "last"] {
        backend.refused(&["quarantine", "release", name, "--reason", "x"], 20, &["quarantine"]);
    }
    shapes
}

#[test]
fn every_command_works_on_every_backend() {
    let expected = every_command(&Backend::folder());
    for backend in [Backend::shared_store(), Backend::server()] {
        for (actual, expected) in every_command(&backend).iter().zip(&expected) {
            // A server returns further columns of a list.
            let missing: Vec<_> = expected.1.difference(&actual.1).collect();
            assert!(missing.is_empty(), "{} of `{}` lacks {missing:?}", backend.name, expected.0);
        }
    }
}
