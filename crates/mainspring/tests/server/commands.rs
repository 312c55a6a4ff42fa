//! The commands at a server: their effects, and that their output equals that of a local store.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use mainspring_engine::start_request::is_child;
use mainspring_kernel::{json, value::Value};
use rexpect::{
    process::WaitStatus,
    reader::Options,
    session::{PtySession, spawn_with_options},
};

use super::{
    client::Client,
    process::{Organization, Place, Server, everywhere},
    support::{Answer, MAINSPRING, call, missing},
};

/// A command line of a user, with a server.
pub(crate) struct Caller {
    folder: tempfile::TempDir,
    server: String,
    token: String,
}

impl Caller {
    /// A command line with a token.
    pub(crate) fn new(address: &str, token: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), server: format!("http://{address}"), token: token.into() }
    }

    /// The command line of the server's owner.
    pub(crate) fn owner(server: &Server) -> Self {
        Self::new(&server.address, server.token.as_deref().unwrap())
    }

    /// The current folder of the command line.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command with server and token in its environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.without_server(arguments);
        command.env("MAINSPRING_SERVER", &self.server).env("MAINSPRING_TOKEN", &self.token);
        command
    }

    pub(crate) fn without_server(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command
    }

    /// Runs a command until it ends.
    pub(crate) fn call(&self, arguments: &[&str]) -> Answer {
        call(self.command(arguments), b"")
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    pub(crate) fn fine(&self, arguments: &[&str]) -> String {
        let answer = self.call(arguments);
        assert_eq!(answer.exit, Some(0), "{arguments:?}: {answer:?}");
        answer.stdout
    }

    /// Runs a command that must fail with an exit code and a message.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str], exit: i32, words: &[&str]) {
        let answer = self.call(arguments);
        assert_refused(&answer, exit, words);
    }

    /// Saves a definition under a name.
    #[track_caller]
    pub(crate) fn save(&self, name: &str, definition: &str) {
        let file = format!("{name}.yaml");
        fs::write(self.folder.path().join(&file), definition).unwrap();
        self.fine(&["save", &file]);
    }
}

#[track_caller]
pub(crate) fn assert_refused(answer: &Answer, exit: i32, words: &[&str]) {
    assert_eq!(answer.exit, Some(exit), "{answer:?}");
    for word in words {
        assert!(answer.stderr.contains(word), "{word:?} is not said: {answer:?}");
    }
}

/// A function, an approval that shows its output, and a function after it.
pub(crate) const SHIP: &str = r#"
name: ship
steps:
  - {id: greet, type: code, input: {name: "@vars.name"}, code: "export default function (input) { console.log('in code'); return 'hello ' + input.name; }"}
  - {id: ask, type: approval, prompt: "Ship for @vars.name?", items: [{said: "@greet"}]}
  - {id: last, type: code, code: "export default function () { return 'shipped'; }", outputVariable: last}
"#;

/// A workflow that waits for a signal.
pub(crate) const WAITS: &str = r#"
name: waits
steps:
  - {id: first, type: code, code: "export default function () { return 1; }"}
  - {id: go, type: signal, signal: go, outputVariable: went}
"#;

/// One step of each kind with its own display.
const EVERYTHING: &str = r#"
name: everything
steps:
  - {id: script, type: bash, command: "echo out"}
  - {id: again, type: bash, command: '[ "$MAINSPRING_ATTEMPT" = 2 ]', retry: {maxAttempts: 2, initialDelayMs: 1, retryOn: [failed]}}
  - {id: logs, type: code, code: "export default function () { console.log('one'); console.log('two'); return 1; }"}
  - {id: nap, type: sleep, durationMs: 20}
  - {id: never, type: bash, when: false, command: "true"}
  - {id: broken, type: bash, command: "exit 3", onError: continue}
  - {id: list, type: code, code: "export default function () { return [1, 2]; }"}
  - id: each
    type: loop
    forEach: {ref: "@list"}
    steps: [{id: twice, type: code, input: "@item", code: "export default function (n) { return 2 * n; }"}]
  - id: both
    type: parallel
    steps: [{id: left, type: bash, command: "true"}, {id: right, type: conditional, condition: true, then: [{id: inner, type: bash, command: "true"}]}]
  - {id: child, type: subworkflow, workflow: ship-none}
  - {id: go, type: signal, signal: go, timeoutMs: 600000}
"#;

fn executions(caller: &Caller) -> Vec<Value> {
    let listed = caller.fine(&["list", "--json"]);
    listed.lines().map(|line| json::read(line.as_bytes()).unwrap().value).collect()
}

/// The output without start times: the server reports when it accepted the request, and the journal when the
/// execution started, up to a millisecond later.
fn untimed(said: &str) -> Vec<&str> {
    let lines = said.lines().map(|line| line.split_once(" after ").map_or(line, |(before, _)| before));
    lines.filter(|line| !line.starts_with("started ")).collect()
}

/// A row without the workflow of a child, which a server does not return.
fn as_a_server_lists(row: Value) -> Value {
    let Value::Map(mut map) = row else { panic!("no row: {row:?}") };
    if map.get("triggerType").and_then(Value::as_text).is_some_and(is_child) {
        map.remove("workflow");
    }
    Value::Map(map)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_else(|| panic!("no text `{key}`: {value:?}")).to_string()
}

#[test]
fn a_workflow_is_saved_run_approved_and_shown() {
    everywhere(|place: &Place| {
        let server = place.start();
        let owner = Caller::owner(&server);
        owner.save("ship", SHIP);
        assert!(owner.fine(&["workflows"]).starts_with("ship  1.0.0  "));
        let ran = owner.fine(&["run", "ship", "--var", "name=Ada"]);
        for line in [
            "ship ",
            "  │ greet  in code",
            "  ✓ greet",
            "  ? ask  Ship for Ada?",
            "waits at `ask`",
            "\"said\": \"hello Ada\"",
        ] {
            assert!(ran.contains(line), "{line:?} is not in {ran}");
        }
        let id = text(&executions(&owner)[0], "executionId");
        assert!(ran.contains(&format!("mainspring approve {id}")));
        assert!(owner.fine(&["list"]).contains("waiting_approval  ship"));
        assert!(owner.fine(&["show", &id[..20]]).contains("? ask"), "the beginning of a name is a name");
        let approved = owner.call(&["approve", "last", "--reason", "looks right"]);
        assert!(approved.exit == Some(0) && approved.stderr.contains("received by the server"), "{approved:?}");
        assert!(approved.stdout.contains("Ship for Ada?") && approved.stdout.contains("hello Ada"), "{approved:?}");
        let seen = owner.fine(&["tail", &id]);
        assert!(seen.contains("! ask  approve by owner") && seen.contains("\"last\": \"shipped\""), "{seen}");
        assert!(owner.fine(&["show", &id]).contains("approve by owner: looks right"));
        owner.refused(&["approve", &id], 20, &["has no open approval: its status is completed"]);
        owner.refused(&["cancel", &id], 20, &["has ended"]);
        let checked = owner.fine(&["verify", "--all"]);
        assert!(checked.contains("frames in the chain") && checked.contains("audit log ok"), "{checked}");
    });
}

#[test]
fn yes_and_json_work_as_with_a_local_store() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    fs::write(owner.folder().join("ship.yaml"), SHIP).unwrap();
    let waiting =
        owner.call(&["run", "--save", "ship.yaml", "--var", "name=Ada", "--json"]).expect(0, "needs_approval");
    let kinds = |answer: &Answer| answer.events().iter().map(|event| text(event, "type")).collect::<Vec<_>>();
    let last: Vec<String> = kinds(&waiting).into_iter().rev().take(2).collect();
    assert_eq!(last, ["execution.finished", "approval.required"]);
    assert!(waiting.text("requiresApproval.resumeToken").starts_with("wrf_rt_"));
    let ran = owner.call(&["run", "ship", "--yes", "--var", "name=Ada", "--json"]).expect(0, "ok");
    assert_eq!(ran.text("output.last"), "shipped");
    assert_eq!(kinds(&ran).last().unwrap(), "execution.finished");
    // Repeated requests with a key start one execution.
    let first = owner
        .call(&["run", "ship", "--detach", "--json", "--idempotency-key", "k", "--var", "name=Ada"])
        .text("executionId");
    let again = owner.call(&["run", "ship", "--yes", "--json", "--idempotency-key", "k"]).expect(0, "ok");
    assert_eq!(again.text("executionId"), first);
    // Without its variable the workflow fails, as locally.
    let failed = owner.call(&["run", "ship", "--json"]);
    assert_eq!((failed.exit, failed.text("status").as_str()), (Some(40), "failed"), "{failed:?}");
}

#[test]
fn denials_signals_and_cancels_reach_the_execution() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    owner.save("ship", SHIP);
    owner.save("waits", WAITS);
    let status = |id: &str| {
        let seen = owner.call(&["tail", id]);
        assert_eq!(seen.exit, Some(0), "{seen:?}");
        text(&executions(&owner).into_iter().find(|row| text(row, "executionId") == id).unwrap(), "status")
    };
    let started =
        |name: &str| owner.call(&["run", name, "--detach", "--json", "--var", "name=Ada"]).text("executionId");
    let denied = started("ship");
    owner.fine(&["tail", &denied]);
    owner.refused(
        &["deny", &denied, "--step", "nowhere"],
        20,
        &["there is no approval `nowhere` in this execution; open now: `ask`"],
    );
    owner.fine(&["deny", &denied, "--step", "ask"]);
    assert_eq!(status(&denied), "cancelled");
    let cancelled = started("waits");
    owner.fine(&["cancel", &cancelled, "--reason", "not_today"]);
    assert_eq!(status(&cancelled), "cancelled");
    assert!(owner.fine(&["show", &cancelled]).contains("not_today"));
    let signalled = started("waits");
    owner.refused(&["signal", &signalled, "go", "--payload", "{"], 10, &["--payload is not JSON"]);
    owner.fine(&["signal", &signalled, "go", "--payload", "{\"by\": \"train\"}"]);
    assert_eq!(status(&signalled), "completed");
    assert!(owner.fine(&["show", &signalled, "--json"]).contains("train"));
    assert_eq!(owner.fine(&["list", "--status", "cancelled", "--json"]).lines().count(), 2);
    assert_eq!(owner.fine(&["list", "--workflow", "waits", "--limit", "1", "--json"]).lines().count(), 1);
}

#[test]
fn progress_lines_are_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    owner.save("waits", WAITS);
    let mut running = owner.command(&["run", "waits"]).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen: Vec<String> = lines.by_ref().take(3).collect();
    assert!(seen[1].starts_with("  ✓ first") && seen[2] == "  … go  waits for the signal go", "{seen:?}");
    owner.fine(&["signal", "last", "go"]);
    let rest: Vec<String> = lines.collect();
    assert!(rest[0].starts_with("  ✓ go") && rest[2].contains("completed"), "{rest:?}");
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn server_and_local_store_show_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    owner.save(
        "ship-none",
        "name: ship-none\nsteps: [{id: only, type: code, code: \"export default function () { return 1; }\"}]",
    );
    owner.save("everything", EVERYTHING);
    let id = owner.call(&["run", "everything", "--detach", "--json"]).text("executionId");
    owner.fine(&["signal", &id, "go"]);
    let (ended, data) = (owner.fine(&["tail", &id]), folder.path().join("data"));
    assert!(ended.contains("with tolerated failures"), "{ended}");
    let here = |arguments: &[&str]| {
        let mut command = owner.without_server(arguments);
        // The command uses the server's key.
        command.arg("--dir").arg(&data).env("HOME", folder.path());
        call(command, b"")
    };
    for arguments in [vec!["tail"], vec!["show"], vec!["show", "-v"], vec!["show", "--skip", "3", "--limit", "2"]] {
        let arguments: Vec<&str> = arguments.iter().copied().chain([id.as_str()]).collect();
        let (there, here) = (owner.call(&arguments), here(&arguments));
        assert_eq!((there.exit, untimed(&there.stdout)), (here.exit, untimed(&here.stdout)), "{arguments:?}");
    }
    let (there, beside) = (owner.call(&["show", &id, "--json"]).envelope(), here(&["show", &id, "--json"]).envelope());
    assert_eq!(there, beside);
    let rows = here(&["list", "--json"]);
    let rows = rows.stdout.lines().map(|line| json::read(line.as_bytes()).unwrap().value).map(as_a_server_lists);
    assert_eq!(missing(&Value::List(executions(&owner)), &Value::List(rows.collect()), ""), None);
}

#[test]
fn last_is_the_last_execution_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let token = |client: &Client| client.token().to_string();
    let (ada, bob) = (ours.owner.clone(), ours.member("bob", "member"));
    let (ada, bob) = (Caller::new(&server.address, &token(&ada)), Caller::new(&server.address, &token(&bob)));
    ada.save("ship", SHIP);
    bob.refused(&["show", "last"], 10, &["`bob` has started nothing"]);
    let own = ada.call(&["run", "ship", "--detach", "--json", "--var", "name=Ada"]).text("executionId");
    let others = bob.call(&["run", "ship", "--detach", "--json", "--var", "name=Bob"]).text("executionId");
    assert_eq!(ada.call(&["show", "last", "--json"]).text("executionId"), own);
    bob.fine(&["tail", &own]);
    bob.refused(&["approve", &own], 20, &["`bob` cannot decide the approval", "the execution's owner and the admins"]);
    ada.fine(&["tail", &others]);
    ada.fine(&["approve", &others]);
}

#[test]
fn refusals_name_the_alternative() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    let url = format!("http://{}", server.address);
    owner.refused(&["list"], 10, &["there are no executions", "`mainspring run WORKFLOW` starts one"]);
    owner.refused(&["show", "nothing"], 10, &["no execution `nothing`"]);
    owner.refused(&["run", "nothing"], 10, &["no workflow `nothing`", "`mainspring workflows`"]);
    fs::write(owner.folder().join("ship.yaml"), SHIP).unwrap();
    fs::write(owner.folder().join("plain"), SHIP).unwrap();
    fs::write(owner.folder().join("wrong.yaml"), "steps:\n  - {id: a, type: bahs}\n").unwrap();
    for file in ["ship.yaml", "./ship.yaml", "plain"] {
        owner.refused(&["run", file], 10, &[&format!("`mainspring save {file}`")]);
    }
    owner.refused(&["save", "wrong.yaml"], 10, &["wrong.yaml:2:", "bahs"]);
    owner.refused(&["run", "--save", "wrong.yaml"], 10, &["wrong.yaml:2:", "nothing was saved"]);
    owner.refused(&["run", "ship", "--id", "x"], 10, &["--id is for executions of this machine"]);
    owner.refused(&["run", "ship", "--metrics", "127.0.0.1:0"], 10, &["--metrics is for executions of this machine"]);
    owner.refused(&["list", "--otlp", "http://127.0.0.1:1"], 10, &["--otlp exports"]);
    owner.refused(&["resume", "last"], 10, &["a server continues by itself"]);
    owner.refused(&["list", "--server", &url, "--dir", "."], 10, &["give only one of them"]);
    for command in [
        vec!["bench"],
        vec!["node"],
        vec!["up"],
        vec!["test", "."],
        vec!["token"],
        vec!["config"],
        vec!["completions", "bash"],
    ] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--server", &url]).collect();
        owner.refused(&arguments, 10, &[&format!("`{}`", command[0])]);
    }
    // A flag takes precedence over the environment. Two locations in the environment are an error.
    let mut both = owner.command(&["list"]);
    both.env("MAINSPRING_DIR", owner.folder());
    assert_refused(&call(both, b""), 10, &["both set"]);
    owner.refused(&["list", "--dir", "."], 10, &["there are no executions in ."]);
    let unnamed = call(owner.without_server(&["save", "ship.yaml"]), b"");
    assert_refused(&unnamed, 20, &["name one with --server"]);
    let unnamed = call(owner.without_server(&["run", "--save", "ship.yaml"]), b"");
    assert_refused(&unnamed, 20, &["name one with --server"]);
}

#[test]
fn definitions_are_checked_locally_and_by_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    fs::write(owner.folder().join("ship.yaml"), SHIP).unwrap();
    let url = format!("http://{}", server.address);
    for command in ["validate", "plan"] {
        let here = call(owner.without_server(&[command, "ship.yaml"]), b"");
        let there = owner.call(&[command, "ship.yaml", "--server", &url]);
        assert_eq!((here.exit, here.stdout.as_str()), (Some(0), there.stdout.as_str()), "{there:?}");
    }
    drop(server);
    let mut unasked = owner.without_server(&["validate", "ship.yaml"]);
    unasked.env("MAINSPRING_SERVER", &url);
    let unasked = call(unasked, b"");
    assert_eq!(unasked.exit, Some(0), "a file needs no server: {unasked:?}");
    assert_refused(&owner.call(&["validate", "ship.yaml", "--server", &url]), 40, &["cannot be reached"]);
}

/// Runs a command in a pseudoterminal. The timeout only turns a hang into a failure.
pub(crate) fn at_a_terminal(command: Command) -> PtySession {
    let options = Options::new().timeout_ms(Some(60_000)).strip_ansi_escape_codes(true);
    spawn_with_options(command, options).unwrap()
}

#[test]
fn a_terminal_run_prompts_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = Caller::owner(&server);
    owner.save("ship", SHIP);
    let mut terminal = at_a_terminal(owner.command(&["run", "ship", "--var", "name=Ada"]));
    terminal.exp_string("hello Ada").unwrap();
    terminal.exp_string("[y]es, [n]o, [l]ater? ").unwrap();
    terminal.send_line("y").unwrap();
    terminal.exp_string("approve by owner").unwrap();
    terminal.exp_string("shipped").unwrap();
    terminal.exp_eof().unwrap();
    assert!(matches!(terminal.process().wait().unwrap(), WaitStatus::Exited(_, 0)));
    // An interrupt at a prompt leaves the approval open; an interrupt while following leaves the execution running.
    let mut terminal = at_a_terminal(owner.command(&["run", "ship", "--var", "name=Bob"]));
    terminal.exp_string("[y]es, [n]o, [l]ater? ").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("waiting_approval").unwrap();
    terminal.exp_eof().unwrap();
    owner.save("waits", WAITS);
    let mut terminal = at_a_terminal(owner.command(&["run", "waits"]));
    terminal.exp_string("waits for the signal go").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("it continues on").unwrap();
    terminal.exp_eof().unwrap();
    assert!(matches!(terminal.process().wait().unwrap(), WaitStatus::Exited(_, 40)));
    assert!(owner.fine(&["list"]).contains("running"));
}
