//! Read-only commands create no key, folder or database, even if all are missing.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

mod support;
use support::{TestDir, call};

const DEFINITION: &str = "steps:\n  - {id: gate, type: approval}\n";

/// The read-only commands.
const LOOKS: &[&[&str]] = &[
    &["list"],
    &["list", "--json"],
    &["list", "--status", "failed"],
    &["show", "e1"],
    &["show", "last", "--json"],
    &["approvals"],
    &["tail", "e1"],
    &["tail", "last", "--no-follow"],
    &["verify", "e1"],
    &["verify", "--all"],
];

/// All files and folders below a folder, except for the WAL and its index, which the last reader leaves empty.
fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()));
        }
        if !entry.file_name().to_string_lossy().starts_with("journal.db-") {
            found.insert(entry.path());
        }
    }
    found
}

/// Runs a call that must change nothing, and checks its exit code and message.
#[track_caller]
fn check(dir: &TestDir, arguments: &[&str], exit: i32, said: &[&str]) {
    let before = files_below(dir.root());
    let answer = call(dir.mainspring(arguments), b"");
    assert_eq!(files_below(dir.root()), before, "{arguments:?}: something was made, or is gone");
    assert_eq!(answer.exit, Some(exit), "{arguments:?}: {answer:?}");
    for text in said {
        assert!(answer.stderr.contains(text), "{arguments:?}: {text:?} is not said: {answer:?}");
    }
    if exit != 0 && arguments.contains(&"--json") {
        assert_eq!(answer.at("ok"), false.into(), "{arguments:?}: {answer:?}");
    }
}

/// A folder in which an execution waits.
fn with_an_execution() -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"").exit, Some(0));
    dir
}

fn state(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

fn key(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.config/mainspring/key")
}

#[test]
fn read_commands_fail_without_a_data_folder() {
    for arguments in LOOKS {
        check(&TestDir::new(), arguments, 10, &["there are no executions in", "mainspring run FILE"]);
    }
}

#[test]
fn read_commands_fail_in_a_folder_without_a_store() {
    let dir = TestDir::new();
    fs::create_dir_all(state(&dir)).unwrap();
    for arguments in LOOKS {
        check(&dir, arguments, 10, &["there are no executions in", "mainspring run FILE"]);
    }
    fs::write(state(&dir).join("notes"), "").unwrap();
    check(&dir, &["list"], 10, &["there are no executions in"]);
}

/// A failed run leaves a store without executions.
#[test]
fn read_commands_fail_in_a_store_without_executions() {
    let dir = with_an_execution();
    let store = rusqlite::Connection::open(state(&dir).join("journal.db")).unwrap();
    store.execute_batch("DELETE FROM executions; DELETE FROM heads; DELETE FROM frames").unwrap();
    drop(store);
    for arguments in [&["list"][..], &["list", "--json"], &["verify", "--all"]] {
        check(&dir, arguments, 10, &["there are no executions in", "mainspring run FILE"]);
    }
    check(&dir, &["show", "e1"], 10, &["there is no execution `e1`"]);
    check(&dir, &["show", "last"], 10, &["there is no execution `last`"]);
}

#[test]
fn read_commands_change_nothing() {
    let dir = with_an_execution();
    for arguments in LOOKS {
        check(&dir, arguments, 0, &[]);
    }
    check(&dir, &["show", "e2"], 10, &["there is no execution `e2`"]);
}

/// A new key would be useless, so a missing key is an error.
#[test]
fn a_missing_key_is_an_error() {
    let dir = with_an_execution();
    fs::remove_file(key(&dir)).unwrap();
    for arguments in
        LOOKS.iter().chain(&[&["run", "wf.yaml", "--id", "e1"][..], &["approve", "e1"], &["resume", "--all"]])
    {
        check(&dir, arguments, 40, &["/mainspring/key", "is missing", "MAINSPRING_KEY_FILE"]);
    }
}

#[test]
fn validate_and_plan_need_no_data_folder() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    check(&dir, &["validate", "wf.yaml"], 0, &[]);
    check(&dir, &["plan", "wf.yaml"], 0, &[]);
    check(&dir, &["validate", "none.yaml"], 10, &["none.yaml"]);
}

/// The executable `workflow` needs its key as well.
#[test]
fn resume_creates_no_key() {
    let dir = TestDir::new();
    let definition = support::yaml(DEFINITION);
    let token = dir.ran("e", &definition).expect(0, "needs_approval").text("requiresApproval.resumeToken");
    fs::remove_file(key(&dir)).unwrap();
    let before = files_below(dir.root());
    let answer = dir.resumed("e", &token, "approve").expect(40, "failed");
    assert!(answer.text("error.message").contains("is missing"), "{answer:?}");
    let answer = dir.ran("e", &definition).expect(40, "failed");
    assert!(answer.text("error.message").contains("is missing"), "{answer:?}");
    assert_eq!(files_below(dir.root()), before);
}
