//! Executions with damaged journals: their parents continue, and operators release or end them. Erased values are
//! removed, listed, and proven by notes.

use std::{fs, path::PathBuf};

use mainspring_kernel::value::Value;
use rusqlite::{Connection, params};

mod support;
use support::{Answer, TestDir, call};

const CHILD: &str = r#"
name: child
steps:
  - {id: gate, type: approval, prompt: "Child?"}
"#;

const PARENT: &str = "
name: parent
steps:
  - {id: sub, type: subworkflow, workflow: child}
";

const SECRET: &str = "xyzzy-a-secret";

const SAYS: &str = r#"
name: says
steps:
  - {id: first, type: bash, command: 'echo "$S"', env: {S: "@vars.secret"}}
  - {id: second, type: bash, command: echo plain}
"#;

fn dir() -> TestDir {
    let dir = TestDir::new();
    for (name, text) in [("child", CHILD), ("parent", PARENT), ("says", SAYS)] {
        fs::write(dir.root().join(format!("{name}.yaml")), text).unwrap();
    }
    dir
}

fn mainspring(dir: &TestDir, arguments: &[&str]) -> Answer {
    call(dir.mainspring(&[arguments, &["--dir", "state"]].concat()), b"")
}

#[track_caller]
fn fine(dir: &TestDir, arguments: &[&str]) -> Answer {
    let answer = mainspring(dir, arguments);
    assert_eq!(answer.exit, Some(0), "{arguments:?}: {answer:?}");
    answer
}

fn database(dir: &TestDir) -> PathBuf {
    dir.root().join("state/journal.db")
}

/// The key and the status of the only child.
fn child(dir: &TestDir) -> (String, String) {
    let connection = Connection::open(database(dir)).unwrap();
    let sql = "SELECT id, status FROM executions WHERE trigger_type = 'subworkflow'";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

/// Starts a parent whose child waits, and damages a frame of the child. Returns the child's id and the original
/// frame.
fn damaged(dir: &TestDir, frame: i64) -> (String, Vec<u8>) {
    fine(dir, &["run", "parent.yaml", "--id", "p1"]);
    let (id, _) = child(dir);
    let connection = Connection::open(database(dir)).unwrap();
    let execution: Vec<u8> =
        connection.query_row("SELECT execution FROM executions WHERE id = ?1", [&id], |row| row.get(0)).unwrap();
    let sql = "SELECT frame FROM frames WHERE execution = ?1 AND sequence = ?2";
    let before = connection.query_row(sql, params![execution, frame], |row| row.get(0)).unwrap();
    let sql = "UPDATE frames SET frame = x'00' WHERE execution = ?1 AND sequence = ?2";
    assert_eq!(connection.execute(sql, params![execution, frame]).unwrap(), 1);
    (id, before)
}

fn repair(dir: &TestDir, id: &str, frame: i64, bytes: &[u8]) {
    let connection = Connection::open(database(dir)).unwrap();
    let sql = "UPDATE frames SET frame = ?3 WHERE sequence = ?2 AND execution IN (SELECT execution FROM executions WHERE id = ?1)";
    assert_eq!(connection.execute(sql, params![id, frame, bytes]).unwrap(), 1);
}

#[test]
fn a_parent_of_a_quarantined_child_can_be_canceled() {
    let dir = dir();
    let (id, _) = damaged(&dir, 0);
    let canceled = mainspring(&dir, &["cancel", "p1", "--json"]);
    assert_eq!(canceled.text("status"), "cancelled", "{canceled:?}");
    let listed = fine(&dir, &["quarantine", "list", "--json"]);
    assert_eq!(listed.text("executionId"), id);
    fine(&dir, &["verify", "p1"]);
}

#[test]
fn a_parent_of_a_quarantined_child_continues_and_fails() {
    let dir = dir();
    damaged(&dir, 0);
    let resumed = mainspring(&dir, &["resume", "p1", "--json"]);
    assert_eq!(resumed.text("error.code"), "child_quarantined", "{resumed:?}");
    assert_eq!(resumed.text("status"), "failed");
    fine(&dir, &["verify", "p1"]);
}

#[test]
fn an_operator_ends_a_quarantined_execution_with_proof() {
    let dir = dir();
    let (id, _) = damaged(&dir, 0);
    let refused = mainspring(&dir, &["quarantine", "end", &id, "--reason", "not yet"]);
    assert_eq!(refused.exit, Some(20), "nothing has found it out yet: {refused:?}");
    mainspring(&dir, &["resume", "p1", "--json"]);
    let ended = fine(&dir, &["quarantine", "end", &id, "--reason", "a disk failed", "--json"]);
    assert_eq!(ended.text("status"), "ended");
    assert_eq!(child(&dir), (id.clone(), "failed".to_string()));
    assert!(fine(&dir, &["quarantine", "list"]).stdout.contains("none"));
    let verified = mainspring(&dir, &["verify", &id, "--json"]);
    assert_ne!(verified.exit, Some(0), "its journal stays broken");
    assert_eq!(verified.text("endedInQuarantine.reason"), "a disk failed");
    for again in ["end", "release"] {
        assert_eq!(mainspring(&dir, &["quarantine", again, &id, "--reason", "again"]).exit, Some(20));
    }
    // A changed note proves nothing.
    let connection = Connection::open(database(&dir)).unwrap();
    connection.execute("UPDATE notes SET reason = 'nothing'", []).unwrap();
    drop(connection);
    let verified = mainspring(&dir, &["verify", &id, "--json"]);
    assert_eq!(verified.at("endedInQuarantine"), Value::Null, "{verified:?}");
}

#[test]
fn a_release_verifies_and_cancels_executions_without_waiters() {
    let dir = dir();
    let (id, frame) = damaged(&dir, 0);
    mainspring(&dir, &["resume", "p1", "--json"]);
    let refused = mainspring(&dir, &["quarantine", "release", &id, "--reason", "repaired"]);
    assert_eq!(refused.exit, Some(40), "it is broken still: {refused:?}");
    repair(&dir, &id, 0, &frame);
    let released = fine(&dir, &["quarantine", "release", &id, "--reason", "repaired", "--json"]);
    assert_eq!(released.text("status"), "cancelled", "its parent has failed in the meantime");
    mainspring(&dir, &["resume", "--all"]);
    assert_eq!(child(&dir), (id.clone(), "cancelled".to_string()));
    fine(&dir, &["verify", &id]);
}

#[test]
fn erased_values_are_removed_and_verify_lists_them() {
    let dir = dir();
    fine(&dir, &["run", "says.yaml", "--id", "s1", "--var", &format!("secret={SECRET}")]);
    let refused = mainspring(&dir, &["erase", "s1", "--step", "third", "--reason", "request 17"]);
    assert_eq!(refused.exit, Some(10), "{refused:?}");
    let erased = fine(&dir, &["erase", "s1", "--step", "first", "--reason", "request 17", "--json"]);
    assert!(erased.at("erased").as_u64().unwrap() >= 2, "{erased:?}");
    let shown = fine(&dir, &["show", "s1", "--json"]);
    assert!(shown.stdout.contains("plain"), "the other step's output is there: {shown:?}");
    fine(&dir, &["erase", "s1", "--reason", "request 17"]);
    let verified = fine(&dir, &["verify", "s1", "--json"]);
    assert!(verified.stdout.contains("\"erased\":[{"), "{verified:?}");
    for name in ["journal.db", "journal.db-wal"] {
        let bytes = fs::read(dir.root().join("state").join(name)).unwrap_or_default();
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()), "{name}");
    }
    // Without its notes the erasure is not proven.
    Connection::open(database(&dir)).unwrap().execute("DELETE FROM notes", []).unwrap();
    let refused = mainspring(&dir, &["verify", "s1"]);
    assert!(refused.exit != Some(0) && refused.stdout.contains("no note"), "{refused:?}");
}

#[test]
fn unfinished_executions_are_not_erased() {
    let dir = dir();
    fine(&dir, &["run", "parent.yaml", "--id", "p1"]);
    let refused = mainspring(&dir, &["erase", "p1", "--reason", "request 17"]);
    assert_eq!(refused.exit, Some(20), "{refused:?}");
    assert!(refused.stderr.contains("cancel it first"), "{refused:?}");
}
