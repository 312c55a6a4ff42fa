//! Bad input and bad environments: each gives a clear error, its exit code and one envelope. No data is lost, no
//! work is left half done, and nothing panics.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use mainspring_kernel::{json::compact, value::Value};

mod support;
use support::{Answer, TestDir, WORKFLOW, call, hash_of, request, yaml};

/// Checks the error of a rejected call.
#[track_caller]
fn assert_refused(what: &str, answer: &Answer, exit: i32, said: &[&str]) {
    assert_eq!(answer.exit, Some(exit), "{what}: {answer:?}");
    let envelope = answer.envelope();
    assert_eq!(envelope.get("ok"), Some(&false.into()), "{what}: {answer:?}");
    let message = answer.text("error.message");
    for text in said {
        assert!(message.contains(text), "{what}: {text:?} is not in {message:?}");
    }
    assert!(!answer.stderr.contains("panicked"), "{what}: {answer:?}");
    assert!(answer.stderr.contains("workflow: "), "{what}: stderr has it too: {answer:?}");
    assert!(answer.stdout.len() + answer.stderr.len() < 20_000, "{what}: an answer stays short");
}

fn touching() -> Value {
    yaml("steps:\n  - {id: a, type: bash, command: touch ran}\n")
}

/// Invalid requests: name, bytes, and the expected words of the error. `WORKFLOW` stands for a valid definition.
const REQUESTS: &[(&str, &str, &[&str])] = &[
    ("empty", "", &["standard input is empty"]),
    ("blank", " \n\t", &["standard input is empty"]),
    ("cut off", r#"{"workflow": {"#, &["not JSON", "line 1, column 15"]),
    ("no JSON", "steps:\n", &["not JSON"]),
    ("a list", "[]", &["object", "list"]),
    ("two values", "{} {}", &["not JSON"]),
    ("a duplicate key", r#"{"workflow": WORKFLOW, "workflow": WORKFLOW}"#, &["not JSON", "workflow"]),
    ("no workflow", "{}", &["`workflow`"]),
    ("a workflow of text", r#"{"workflow": "steps: []"}"#, &["`workflow`"]),
    ("unknown at the top", r#"{"workflow": WORKFLOW, "wrokflow": 1}"#, &["wrokflow", "known here"]),
    ("unknown in the trigger", r#"{"workflow": WORKFLOW, "trigger": {"kind": 1}}"#, &["trigger.kind", "known here"]),
    ("unknown trigger", r#"{"workflow": WORKFLOW, "trigger": {"type": "x"}}"#, &["trigger.type", "manual"]),
    ("unknown in the runtime", r#"{"workflow": WORKFLOW, "runtime": {"x": 1}}"#, &["runtime.x", "known here"]),
    (
        "unknown in the policy",
        r#"{"workflow": WORKFLOW, "runtime": {"policy": {"x": 1}}}"#,
        &["runtime.policy.x", "known here"],
    ),
    ("variables of text", r#"{"workflow": WORKFLOW, "variables": "x"}"#, &["variables", "object"]),
    (
        "no steps in time",
        r#"{"workflow": WORKFLOW, "runtime": {"policy": {"maxSteps": 0}}}"#,
        &["maxSteps", "from 1 to"],
    ),
    ("half a step", r#"{"workflow": WORKFLOW, "runtime": {"policy": {"maxSteps": 1.5}}}"#, &["maxSteps", "from 1 to"]),
    (
        "time of ages",
        r#"{"workflow": WORKFLOW, "runtime": {"policy": {"timeoutMs": 1e300}}}"#,
        &["timeoutMs", "from 1 to"],
    ),
    ("unknown in the workflow", r#"{"workflow": {"steps": [], "x": 1}}"#, &["\"x\"", "known here"]),
    (
        "unknown in a step",
        r#"{"workflow": {"steps": [{"type": "bash", "command": "a", "x": 1}]}}"#,
        &["\"x\"", "known here"],
    ),
    (
        "unknown in a retry",
        r#"{"workflow": {"steps": [{"type": "bash", "command": "a", "retry": {"x": 1}}]}}"#,
        &["\"x\"", "known here"],
    ),
    (
        "duplicate ids",
        r#"{"workflow": {"steps": [{"id": "a", "type": "bash", "command": "a"}, {"id": "a", "type": "bash", "command": "a"}]}}"#,
        &["`a`", "steps[1]"],
    ),
    ("no steps", r#"{"workflow": {"steps": []}}"#, &["steps"]),
];

#[test]
fn invalid_requests_are_refused_and_leave_no_files() {
    let definition = touching();
    let check = |what: &str, stdin: &[u8], said: &[&str]| {
        let dir = TestDir::new();
        let answer = call(dir.run("e", &definition), stdin);
        assert_refused(what, &answer, 10, said);
        assert!(answer.events().is_empty(), "{what}");
        assert!(!dir.state().join("e").exists(), "{what}: no execution was begun");
        assert!(!dir.workspace().join("ran").exists(), "{what}");
    };
    for (what, stdin, said) in REQUESTS {
        check(what, stdin.replace("WORKFLOW", &compact(&definition)).as_bytes(), said);
    }
    check("invalid UTF-8", b"{\"workflow\": \"\xff\xfe\"}", &["UTF-8"]);
    let nested = [b"[".repeat(10_000), b"]".repeat(10_000)].concat();
    check("nested 10,000 deep", &nested, &["100"]);
    let nested = format!(r#"{{"workflow": {}1{}}}"#, r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    check("objects nested 10,000 deep", nested.as_bytes(), &["100"]);
}

/// A hundred megabytes of input: the process reads up to the bound only, with less memory than the input takes.
#[test]
fn oversized_input_is_rejected_early() {
    let (dir, definition) = (TestDir::new(), touching());
    let hash = hash_of(&definition);
    let limited = r#"ulimit -v 262144; exec "$0" "$@""#;
    let mut command = Command::new("bash");
    command.args(["-c", limited, WORKFLOW, "run", "--execution-id", "e", "--workflow-hash", &hash, "--workspace"]);
    command.arg(dir.workspace()).env("HOME", dir.root());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut written = 0usize;
    pipe.write_all(b"{\"input\": \"").unwrap();
    let chunk = [b'x'; 64 * 1024];
    while written < 100 * 1024 * 1024 {
        match pipe.write(&chunk) {
            Ok(count) => written += count,
            Err(_) => break,
        }
    }
    drop(pipe);
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_refused("100 MB", &answer, 10, &["standard input", "more than", "put large data into files"]);
    let bound = mainspring_kernel::limits::DEFINITION_BYTES_MAX + 1024 * 1024;
    assert!(written < bound, "{written} bytes were taken");
}

/// A damage to the environment before a call, the exit code, and the expected words of the error.
type Spoil = (&'static str, fn(&TestDir), i32, &'static [&'static str]);

/// Damages that prevent the start of an execution.
const BROKEN_ENVIRONMENTS: &[Spoil] = &[
    ("no workspace", |dir| fs::remove_dir(dir.workspace()).unwrap(), 10, &["workspace", "create it first"]),
    (
        "a workspace that is a file",
        |dir| {
            fs::remove_dir(dir.workspace()).unwrap();
            fs::write(dir.workspace(), "").unwrap();
        },
        10,
        &["workspace", "not a folder"],
    ),
    (
        "a state folder that is a file",
        |dir| {
            fs::create_dir_all(dir.state().parent().unwrap()).unwrap();
            fs::write(dir.state(), "").unwrap();
        },
        10,
        &["state/workflow", "cannot be used"],
    ),
    (
        "a state folder of others",
        |dir| {
            put_key(dir, &"0".repeat(64), 0o600);
            fs::create_dir_all(dir.state()).unwrap();
            fs::set_permissions(dir.state(), fs::Permissions::from_mode(0o500)).unwrap();
        },
        10,
        &["state/workflow/e", "cannot be used", "ermission denied"],
    ),
    (
        "no database",
        |dir| put_journal(dir, b"this is no database, and long enough to be looked at: x".repeat(40).as_slice()),
        40,
        &["journal.db", "not a database"],
    ),
    (
        "the database of another program",
        |dir| make_journal(dir, "CREATE TABLE t (a)"),
        40,
        &["journal.db", "another program"],
    ),
    (
        "a journal of a newer release",
        |dir| make_journal(dir, "PRAGMA application_id = 0x4d4e5350; PRAGMA user_version = 99"),
        40,
        &["format 99", "newer"],
    ),
    (
        "a key that is a folder",
        |dir| fs::create_dir_all(key_path(dir)).unwrap(),
        40,
        &["mainspring/key", "cannot be used"],
    ),
    ("a key that is too short", |dir| put_key(dir, "abc", 0o600), 40, &["mainspring/key", "64 hexadecimal"]),
    ("a key that others can read", |dir| put_key(dir, &"0".repeat(64), 0o644), 40, &["mainspring/key", "0600"]),
];

fn key_path(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.config/mainspring/key")
}

fn put_key(dir: &TestDir, text: &str, mode: u32) {
    fs::create_dir_all(key_path(dir).parent().unwrap()).unwrap();
    fs::write(key_path(dir), text).unwrap();
    fs::set_permissions(key_path(dir), fs::Permissions::from_mode(mode)).unwrap();
}

fn put_journal(dir: &TestDir, bytes: &[u8]) {
    fs::create_dir_all(dir.state().join("e")).unwrap();
    fs::write(dir.journal("e"), bytes).unwrap();
}

fn make_journal(dir: &TestDir, sql: &str) {
    put_journal(dir, b"");
    rusqlite::Connection::open(dir.journal("e")).unwrap().execute_batch(sql).unwrap();
}

/// Runs a command as the user `nobody`, since permissions do not apply to root.
fn as_user_nobody(dir: &TestDir, command: Command) -> Command {
    if !rustix::process::getuid().is_root() {
        return command;
    }
    let owner = Command::new("chown").args(["-R", "65534:65534"]).arg(dir.root()).status().unwrap();
    assert!(owner.success());
    let mut lowered = Command::new("setpriv");
    lowered.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(command.get_program());
    lowered.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
    lowered.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    lowered
}

#[test]
fn unusable_environments_are_named_and_nothing_runs() {
    let definition = touching();
    for (what, spoil, exit, said) in BROKEN_ENVIRONMENTS {
        let dir = TestDir::new();
        let command = dir.run("e", &definition);
        spoil(&dir);
        let command = if what.contains("of others") { as_user_nobody(&dir, reachable(&dir, command)) } else { command };
        let answer = call(command, &request(&definition));
        assert_refused(what, &answer, *exit, said);
        assert!(!dir.workspace().join("ran").exists(), "{what}");
    }
}

/// Runs a copy of the executable that every user can reach.
fn reachable(dir: &TestDir, command: Command) -> Command {
    let copy = dir.root().join("workflow");
    fs::copy(WORKFLOW, &copy).unwrap();
    fs::set_permissions(dir.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut same = Command::new(copy);
    same.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
    same.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    same
}

/// An execution that waits while its environment is damaged and repaired: it continues, and nothing is lost.
#[test]
fn open_approvals_survive_an_unusable_environment() {
    let definition = yaml(
        "steps:\n  - {id: a, type: bash, command: echo a >> log}\n  - {id: gate, type: approval}\n  - {id: b, type: bash, command: echo b >> log}\n",
    );
    let moved = |dir: &TestDir, from: &str, to: &str| fs::rename(dir.root().join(from), dir.root().join(to)).unwrap();
    let dir = TestDir::new();
    let token = dir.ran("e", &definition).expect(0, "needs_approval").text("requiresApproval.resumeToken");
    let both = |what: &str, exit: [i32; 2], said: &[&str]| {
        assert_refused(what, &dir.resumed("e", &token, "approve"), exit[0], said);
        let again = call(dir.run("e", &definition), &request(&definition));
        assert_refused(what, &again, exit[1], said);
        assert_eq!(dir.file("log"), "a\n", "{what}");
    };
    // The key is replaced by another one.
    fs::copy(key_path(&dir), dir.root().join("kept")).unwrap();
    fs::set_permissions(dir.root().join("kept"), fs::Permissions::from_mode(0o600)).unwrap();
    put_key(&dir, &"1".repeat(64), 0o600);
    both("another key", [40, 40], &["created with", "MAINSPRING_KEY_FILE"]);
    moved(&dir, "kept", "home/.config/mainspring/key");
    // The workspace is missing.
    moved(&dir, "workspace", "elsewhere");
    assert_refused("no workspace", &dir.resumed("e", &token, "approve"), 10, &["workspace", "create it first"]);
    moved(&dir, "elsewhere", "workspace");
    // The journal is cut in half, after a checkpoint into one file.
    let close = "PRAGMA wal_checkpoint(TRUNCATE)";
    rusqlite::Connection::open(dir.journal("e")).unwrap().query_row(close, [], |_| Ok(())).unwrap();
    let whole = fs::read(dir.journal("e")).unwrap();
    fs::write(dir.journal("e"), &whole[..whole.len() / 2]).unwrap();
    both("half a journal", [40, 40], &["journal.db", "restore"]);
    fs::write(dir.journal("e"), whole).unwrap();
    dir.resumed("e", &token, "approve").expect(0, "ok");
    assert_eq!(dir.file("log"), "a\nb\n");
}

/// Three steps, of which the second prints more than a small disk can store.
fn filling() -> Value {
    yaml(
        r#"
steps:
  - {id: a, type: bash, command: echo a >> log, retry: {maxAttempts: 99}}
  - {id: big, type: bash, command: head -c 60000 /dev/urandom | base64 -w0, retry: {maxAttempts: 99}}
  - {id: b, type: bash, command: echo b >> log, retry: {maxAttempts: 99}}
"#,
    )
}

/// A file size limit acts like a full disk. Its signal is ignored, so that writes fail with an error instead.
#[test]
fn files_that_may_not_grow_stop_a_call_and_lose_nothing() {
    let (dir, definition) = (TestDir::new(), filling());
    let mut stopped = 0;
    for limit_kib in [1, 16, 64, 128, 160, 192, 224, 256] {
        let command = dir.run("e", &definition);
        let mut limited = Command::new("bash");
        let script = format!(r#"trap '' XFSZ; ulimit -f {limit_kib}; exec "$0" "$@""#);
        limited.args(["-c", &script]).arg(command.get_program());
        limited.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let answer = call(limited, &request(&definition));
        stopped += usize::from(is_stopped(&format!("{limit_kib} KiB"), &answer));
    }
    assert!(stopped >= 3, "the bounds are too wide to stop anything");
    assert_continues(&dir, &definition);
}

/// A small tmpfs, if the machine permits the mount.
#[test]
fn a_full_disk_stops_a_call_and_loses_nothing() {
    let (dir, definition) = (TestDir::new(), filling());
    fs::create_dir_all(dir.state()).unwrap();
    let mount = |options: &str| {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.state()).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    };
    if !mount("size=8k") {
        println!("no disk of memory may be mounted here: the bound on files has to do");
        return;
    }
    let _mounted = Mounted(dir.state());
    let mut stopped = 0;
    for size_kib in [8, 64, 128, 160, 192, 224, 256, 288, 320, 352, 384] {
        assert!(mount(&format!("remount,size={size_kib}k")));
        let answer = call(dir.run("e", &definition), &request(&definition));
        stopped += usize::from(is_stopped(&format!("{size_kib} KiB"), &answer));
    }
    assert!(stopped >= 3, "the disks are too large to stop anything");
    assert!(mount("remount,size=16m"));
    assert_continues(&dir, &definition);
}

/// Unmounts on drop.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Returns true if the disk stopped the call, and checks that the error says so.
fn is_stopped(what: &str, answer: &Answer) -> bool {
    match answer.exit {
        Some(0) => false,
        // Creating the folder already fails.
        Some(10) => {
            assert_refused(what, answer, 10, &["cannot be used"]);
            true
        }
        _ => {
            assert_refused(what, answer, 40, &[]);
            let message = answer.text("error.message");
            assert!(message.contains("journal.db") || message.contains("disk"), "{what}: {message}");
            true
        }
    }
}

/// With enough space the execution completes. An attempt without a stored receipt counts as interrupted and is
/// retried. A step with a receipt does not run again, so no `a` follows a `b`.
fn assert_continues(dir: &TestDir, definition: &Value) {
    dir.ran("e", definition).expect(0, "ok");
    let log = dir.file("log");
    let after = log.trim_start_matches("a\n");
    assert!(after.len() < log.len() && !after.is_empty() && after.trim_start_matches("b\n").is_empty(), "{log}");
    let (loader, key) = dir.loader("e").unwrap();
    let verified = loader.verify(key).unwrap().unwrap();
    assert_eq!(verified.frames, verified.decided_again);
}
