//! `mainspring backup`: the written file, the refused targets, and a restore of the copy.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use mainspring_kernel::value::Value;
use rusqlite::Connection;

mod support;
use support::{Answer, TestDir, call};

const DEFINITION: &str = "steps:\n  - {id: gate, type: approval}\n";

fn state(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

/// A folder with two executions that wait for an approval.
fn dir() -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    for id in ["e1", "e2"] {
        assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", id]), b"").exit, Some(0));
    }
    dir
}

fn back_up(dir: &TestDir, arguments: &[&str]) -> Answer {
    call(dir.mainspring(&[&["backup", "--json"], arguments].concat()), b"")
}

/// Runs a backup that must fail with a message, and checks that it leaves no files.
#[track_caller]
fn refused(dir: &TestDir, arguments: &[&str], exit: i32, words: &[&str]) {
    let files = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        // A reader leaves SQLite's WAL and its index next to the store.
        names.retain(|name| !name.to_string_lossy().starts_with("journal.db-"));
        names.sort();
        names
    };
    let before = (files(dir.root()), files(&state(dir)));
    let answer = back_up(dir, arguments);
    assert_eq!(answer.exit, Some(exit), "{arguments:?}: {answer:?}");
    assert!(words.iter().all(|word| answer.text("error.message").contains(word)), "{arguments:?}: {answer:?}");
    assert_eq!((files(dir.root()), files(&state(dir))), before, "{arguments:?}");
}

#[test]
fn a_backup_is_one_private_file_that_can_be_used_as_the_store() {
    let dir = dir();
    let answer = back_up(&dir, &["backup.db"]);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let file = dir.root().join("backup.db");
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let told = answer.envelope();
    let number = |key: &str| told.get(key).cloned().unwrap();
    assert_eq!(number("ok"), Value::Bool(true));
    assert_eq!((number("bytes"), number("executions")), (metadata.len().into(), 2_u64.into()));
    assert_eq!(number("unsealed"), 0_u64.into());
    let stray: Vec<_> = fs::read_dir(dir.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(stray.iter().all(|name| !name.to_string_lossy().contains(".partial")), "{stray:?}");
    // Later executions are not in the backup.
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e3"]), b"").exit, Some(0));
    let elsewhere = dir.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(&file, elsewhere.join("journal.db")).unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    let verified = call(dir.mainspring(&["verify", "--all", "--dir", elsewhere]), b"");
    assert_eq!((verified.exit, verified.stdout.lines().count()), (Some(0), 2), "{verified:?}");
    let approved = call(dir.mainspring(&["approve", "e1", "--dir", elsewhere, "--json"]), b"");
    assert_eq!(approved.text("status"), "ok", "{approved:?}");
    let lines = call(dir.mainspring(&["backup", "for people.db"]), b"");
    assert!(lines.stdout.contains("3 executions, every page sound, every head sealed"), "{lines:?}");
}

#[test]
fn an_existing_file_is_replaced_only_if_it_is_a_backup() {
    let dir = dir();
    assert_eq!(back_up(&dir, &["backup.db"]).exit, Some(0));
    refused(&dir, &["backup.db"], 10, &["there already", "--force"]);
    let before = fs::metadata(dir.root().join("backup.db")).unwrap().ino();
    assert_eq!(back_up(&dir, &["backup.db", "--force"]).exit, Some(0));
    assert_ne!(fs::metadata(dir.root().join("backup.db")).unwrap().ino(), before);
    // An empty file, as `mktemp` creates it.
    fs::write(dir.root().join("empty"), "").unwrap();
    assert_eq!(back_up(&dir, &["empty", "--force"]).exit, Some(0));
    fs::write(dir.root().join("letter"), "dear Ada".repeat(100)).unwrap();
    Connection::open(dir.root().join("other.db")).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    symlink("backup.db", dir.root().join("link")).unwrap();
    for name in ["letter", "other.db", "link", "home"] {
        refused(&dir, &[name, "--force"], 10, &[name, "not a backup"]);
    }
    refused(&dir, &["none/backup.db"], 10, &["its folder cannot be used"]);
    refused(&dir, &["/"], 10, &["names no file"]);
}

#[test]
fn the_store_cannot_be_the_target_of_its_backup() {
    let dir = dir();
    let hard = dir.root().join("hard.db");
    fs::hard_link(state(&dir).join("journal.db"), &hard).unwrap();
    refused(&dir, &["hard.db", "--force"], 10, &["not a backup"]);
    let within = |name: &str| state(&dir).join(name).to_str().unwrap().to_owned();
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        refused(&dir, &[&within(name), "--force"], 10, &["the store itself"]);
    }
    refused(&dir, &[&within("lock"), "--force"], 10, &["not a backup"]);
    let verified = call(dir.mainspring(&["verify", "--all"]), b"");
    assert_eq!(verified.exit, Some(0), "{verified:?}");
}

#[test]
fn a_backup_of_nothing_is_an_error() {
    let dir = TestDir::new();
    let answer = back_up(&dir, &["backup.db"]);
    assert_eq!((answer.exit, answer.text("error.code").as_str()), (Some(10), "no_executions"));
    let answer = back_up(&dir, &["backup.db", "--store", "postgres://ada@localhost/flows"]);
    assert_eq!(answer.exit, Some(10), "{answer:?}");
    for word in ["PostgreSQL", "pg_dump", "pg_basebackup", "stop all nodes"] {
        assert!(answer.text("error.message").contains(word), "{answer:?}");
    }
    let answer = back_up(&dir, &["backup.db", "--server", "http://127.0.0.1:9"]);
    assert_eq!((answer.exit, answer.text("error.code").as_str()), (Some(10), "not_at_a_server"));
}

#[test]
fn a_damaged_store_makes_no_backup_and_replaces_none() {
    let dir = dir();
    assert_eq!(back_up(&dir, &["backup.db"]).exit, Some(0));
    let before = fs::read(dir.root().join("backup.db")).unwrap();
    let path = state(&dir).join("journal.db");
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    // A store whose schema is damaged would not even open.
    let page = number("SELECT rootpage FROM sqlite_master WHERE name = 'frames'");
    let page_size = number("PRAGMA page_size");
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * page_size..][..page_size].iter_mut().step_by(97).for_each(|byte| *byte ^= 0x55);
    fs::write(&path, bytes).unwrap();
    refused(&dir, &["another.db"], 40, &["damaged", "mainspring doctor"]);
    refused(&dir, &["backup.db", "--force"], 40, &["damaged"]);
    assert_eq!(fs::read(dir.root().join("backup.db")).unwrap(), before);
}

/// A head was changed: the copy equals the damaged store, and must not replace a good backup.
#[test]
fn a_backup_with_broken_seals_is_reported() {
    let dir = dir();
    assert_eq!(back_up(&dir, &["good.db"]).exit, Some(0));
    let before = fs::read(dir.root().join("good.db")).unwrap();
    let store = Connection::open(state(&dir).join("journal.db")).unwrap();
    store
        .execute_batch("UPDATE heads SET seal = zeroblob(32) WHERE execution = (SELECT min(execution) FROM heads)")
        .unwrap();
    drop(store);
    let answer = back_up(&dir, &["backup.db"]);
    assert_eq!((answer.exit, answer.at("unsealed"), answer.at("ok")), (Some(1), 1_u64.into(), false.into()));
    refused(&dir, &["good.db", "--force"], 40, &["1 of 2 journals", "the earlier backup stays"]);
    assert_eq!(fs::read(dir.root().join("good.db")).unwrap(), before);
    fs::remove_file(dir.root().join("home/.config/mainspring/key")).unwrap();
    let answer = back_up(&dir, &["without the key.db"]);
    assert_eq!((answer.exit, answer.at("unsealed")), (Some(0), Value::Null), "{answer:?}");
    assert!(answer.stderr.contains("seals were not checked"), "{answer:?}");
}
