//! Columns of the store that are changed without the engine: `verify` and `doctor --deep` find them, and an engine
//! finds executions whose wake-up time was changed.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rusqlite::Connection;

mod support;
use support::{Answer, TestDir, call};

/// The timeout of operations that take a node seconds.
const PATIENCE: Duration = Duration::from_secs(60);

const SLEEPS: &str = "steps:\n  - {id: rest, type: sleep, durationMs: 86400000}\n";

const WAITS: &str = "steps:\n  - {id: gate, type: approval}\n";

fn journal(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring/journal.db")
}

/// A folder in which an execution sleeps for a day.
fn sleeping() -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), SLEEPS).unwrap();
    let runs = Working::start(&dir, &["run", "wf.yaml", "--id", "e1"]);
    wait("the sleep", || wake_at(&dir).is_some_and(|at| at > 0));
    drop(runs);
    dir
}

fn wake_at(dir: &TestDir) -> Option<i64> {
    if !journal(dir).exists() {
        return None;
    }
    let store = Connection::open(journal(dir)).unwrap();
    store.query_row("SELECT wake_at FROM heads", [], |row| row.get(0)).unwrap_or_default()
}

fn change(dir: &TestDir, sql: &str) {
    Connection::open(journal(dir)).unwrap().execute_batch(sql).unwrap();
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} takes too long");
        std::thread::yield_now();
    }
}

/// A process that owns a data folder, killed on drop.
struct Working(Child);

impl Working {
    fn start(dir: &TestDir, arguments: &[&str]) -> Self {
        let mut command: Command = dir.mainspring(arguments);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn check_found(dir: &TestDir, words: &[&str]) {
    let verified: Answer = call(dir.mainspring(&["verify", "e1", "--json"]), b"");
    assert_eq!(verified.exit, Some(1), "{words:?}: {verified:?}");
    let said = verified.text("error");
    assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
    let doctor = call(dir.mainspring(&["doctor", "--deep", "--json"]), b"");
    let line = doctor.stdout.lines().find(|line| line.contains("\"check\":\"journals\"")).unwrap();
    assert!(line.contains("\"state\":\"broken\"") && words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
}

#[test]
fn an_execution_with_a_lost_wake_time_is_found_and_woken() {
    for changed in ["NULL", "9000000000000"] {
        let dir = sleeping();
        let before = wake_at(&dir);
        assert_eq!(call(dir.mainspring(&["verify", "e1"]), b"").exit, Some(0));
        change(&dir, &format!("UPDATE heads SET wake_at = {changed}"));
        check_found(&dir, &["heads.wake_at", "mainspring resume"]);
        let _node = Working::start(&dir, &["node"]);
        wait("the sweep", || wake_at(&dir) == before);
        assert_eq!(call(dir.mainspring(&["verify", "e1"]), b"").exit, Some(0));
    }
}

#[test]
fn every_scheduling_column_is_compared() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), WAITS).unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"").exit, Some(0));
    assert_eq!(call(dir.mainspring(&["verify", "e1"]), b"").exit, Some(0));
    // Each change of a column, and its reversal.
    let changes = [
        ("heads", "ended", "1", "0"),
        ("heads", "partition", "3", "0"),
        ("executions", "organization", "'acme'", "NULL"),
        ("executions", "status", "'completed'", "'waiting_approval'"),
        ("executions", "outcome", "'with_failures'", "NULL"),
        ("executions", "error", "'boom'", "NULL"),
        ("executions", "completed_at", "7", "NULL"),
        ("executions", "session_id", "'sess_other'", "(SELECT session_id FROM kept)"),
        ("executions", "workflow_id", "'other'", "NULL"),
        ("executions", "initiator_user_id", "'mallory'", "(SELECT initiator_user_id FROM kept)"),
        ("executions", "workflow_hash", "'sha256:0'", "(SELECT workflow_hash FROM kept)"),
        ("executions", "idempotency_key", "'k'", "NULL"),
        ("executions", "trigger_type", "'webhook'", "(SELECT trigger_type FROM kept)"),
    ];
    change(
        &dir,
        "CREATE TABLE kept AS SELECT * FROM executions; CREATE TABLE gates AS SELECT * FROM pending_approvals",
    );
    for (table, column, value, former) in changes {
        change(&dir, &format!("UPDATE {table} SET {column} = {value}"));
        check_found(&dir, &[&format!("{table}.{column}"), "latest backup"]);
        change(&dir, &format!("UPDATE {table} SET {column} = {former}"));
    }
    for sql in ["DELETE FROM pending_approvals", "UPDATE pending_approvals SET expires_at = 7"] {
        change(&dir, sql);
        check_found(&dir, &["pending_approvals", "`gate` 1"]);
        change(&dir, "DELETE FROM pending_approvals; INSERT INTO pending_approvals SELECT * FROM gates");
    }
    let verified = call(dir.mainspring(&["verify", "e1"]), b"");
    assert_eq!(verified.exit, Some(0), "{verified:?}");
}
