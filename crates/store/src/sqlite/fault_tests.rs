//! Tests with real faults: two writers, full disks, damaged files, foreign files, and erased bytes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{SqliteStore, lock};
use crate::prelude::*;
use crate::{
    Batch, CommitError, EnqueueRequest, Fence, InboxMessage, Part, PartOutcome, ReadLimit, StoreError,
    contract_tests::op::{Op, Turn, continues, key, look, opens, run},
};

struct ResourceId(TempDir);

impl ResourceId {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).unwrap()
    }

    /// The bytes of the store file and its log.
    fn bytes(&self) -> Vec<u8> {
        let log = fs::read(self.0.path().join("store.db-wal")).unwrap_or_default();
        [fs::read(self.path()).unwrap(), log].concat()
    }
}

/// Stops the other threads, also when a test fails: they would wait forever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn error(opened: Result<SqliteStore, StoreError>) -> StoreError {
    opened.err().expect("this does not open")
}

fn pragma(store: &SqliteStore, name: &str, value: u32) {
    let connection = lock(store.writer.as_ref().unwrap());
    connection.query_row(&format!("PRAGMA {name} = {value}"), [], |_| Ok(())).unwrap();
}

fn commit(store: &SqliteStore, parts: Vec<Part>) -> Result<Vec<PartOutcome>, CommitError> {
    store.commit(&Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts, ..Batch::default() })
}

fn message(id: String, body: &[u8]) -> InboxMessage {
    InboxMessage { execution: key(0), partition: 0, id, body: body.to_vec(), enqueued_at: 1 }
}

#[test]
fn other_connections_read_and_write_concurrently() {
    const ROUNDS: u64 = 150;
    let place = ResourceId::new();
    let (engine, other) = (place.open(), place.open());
    run(&engine, &Op::Claim(0));
    commit(&engine, vec![opens(0).part(), opens(1).part()]).unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Ends(&ended);
        let poster = scope.spawn(|| {
            for number in 0..ROUNDS {
                other.enqueue(&EnqueueRequest::of(&message(number.to_string(), b"other"), 1)).unwrap();
            }
        });
        let reader = scope.spawn(|| {
            let reader = SqliteStore::open_read_only(&place.path()).unwrap();
            let mut looked = 0;
            while !ended.load(Ordering::Acquire) || looked == 0 {
                // The rows of a head are visible together with the message of its commit; both parts of a batch become
                // visible at once.
                let sequence = reader.head(key(1)).unwrap().unwrap().head.sequence;
                assert!(reader.head(key(0)).unwrap().unwrap().head.sequence >= sequence);
                assert!(reader.frames(key(0), 0, ReadLimit::of(usize::MAX)).unwrap().len() as u64 > sequence);
                let messages = reader.inbox(&[0], 0, ReadLimit::of(usize::MAX)).unwrap();
                assert!(
                    messages.iter().filter(|arrived| arrived.message.execution == key(2)).count() as u64 >= sequence
                );
                looked += 1;
            }
        });
        for after in 0..ROUNDS {
            let mut second = continues(1, after).part();
            second.messages = vec![InboxMessage { execution: key(2), ..message(after.to_string(), b"engine") }];
            let answers = commit(&engine, vec![continues(0, after).part(), second]).unwrap();
            assert_eq!(answers, [PartOutcome::Durable, PartOutcome::Durable]);
        }
        poster.join().unwrap();
        drop(ends);
        reader.join().unwrap();
    });
    assert_eq!(engine.inbox(&[0], 0, ReadLimit::of(usize::MAX)).unwrap().len() as u64, 2 * ROUNDS);
}

#[test]
fn uncommitted_data_is_invisible_and_a_lock_prevents_writes() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    commit(&store, vec![opens(0).part()]).unwrap();
    let before = look(&store);
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE heads SET wake_at = 7; DELETE FROM frames").unwrap();
    assert_eq!(look(&store), before);
    pragma(&store, "busy_timeout", 0);
    assert!(matches!(commit(&store, vec![continues(0, 0).part()]), Err(CommitError::NotWritten(_))));
    assert!(matches!(store.claim(0, "node"), Err(StoreError::Unavailable(_))));
    other.execute_batch("ROLLBACK").unwrap();
    // An error in the middle of a batch releases the lock.
    other.execute_batch("PRAGMA busy_timeout = 0; ALTER TABLE plans RENAME TO hidden").unwrap();
    let with_plan = Turn { plan: Some(1), ..continues(0, 0) };
    assert!(matches!(commit(&store, vec![with_plan.part()]), Err(CommitError::NotWritten(_))));
    other.execute_batch("ALTER TABLE hidden RENAME TO plans").unwrap();
    assert_eq!(look(&store), before);
    assert_eq!(commit(&store, vec![with_plan.part()]), Ok(vec![PartOutcome::Durable]));
}

#[test]
fn a_full_disk_loses_nothing_and_writes_continue_with_free_space() {
    let place = ResourceId::new();
    let mut store = place.open();
    run(&store, &Op::Claim(0));
    commit(&store, vec![opens(0).part()]).unwrap();
    let before = look(&store);
    // SQLite's own bound on the file gives SQLITE_FULL like a full disk. It never falls below the current size.
    pragma(&store, "max_page_count", 1);
    let large =
        Turn { values: vec![Some(30_000), Some(90_000)], messages: vec![(3, "a")], plan: Some(2), ..continues(0, 0) };
    let failed = commit(&store, vec![opens(1).part(), large.part()]);
    let Err(CommitError::NotWritten(why)) = &failed else { panic!("{failed:?}") };
    assert!(why.contains("full") && why.contains("store.db"), "{why}");
    let other = place.open();
    pragma(&other, "busy_timeout", 0);
    assert_eq!(run(&other, &Op::Claim(5)), "1", "what failed still holds the lock");
    let failed = store.enqueue(&EnqueueRequest::of(&message("b".into(), &[0; 90_000]), 1));
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    assert_eq!(look(&store), before);
    pragma(&store, "max_page_count", 1_000_000);
    assert_eq!(commit(&store, vec![opens(1).part(), large.part()]), Ok(vec![PartOutcome::Durable; 2]));
    let after = look(&store);
    drop(store);
    store = place.open();
    assert_eq!(look(&store), after);
}

#[test]
fn a_newer_format_is_refused_and_unchanged() {
    let place = ResourceId::new();
    place.open().claim(0, "node").unwrap();
    // The version is in the log, not yet in the file.
    let newer = Connection::open(place.path()).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    let before = place.bytes();
    let expected = StoreError::Newer { found: 99, readable: super::connection::FORMAT };
    assert_eq!(error(SqliteStore::open(&place.path())), expected);
    assert_eq!(error(SqliteStore::open_read_only(&place.path())), expected);
    assert!(place.bytes() == before, "a store that is refused has changed");
    // The same after a crash, with no other connection: closing the last one would checkpoint the log.
    let crashed = ResourceId::new();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(place.0.path().join(name), crashed.0.path().join(name)).unwrap();
    }
    assert_eq!(error(SqliteStore::open(&crashed.path())), expected);
    assert!(crashed.bytes() == before, "a store that is refused has changed");
}

#[test]
fn files_that_are_no_stores_are_rejected_with_help() {
    let place = ResourceId::new();
    run(&place.open(), &Op::Claim(0));
    let sound = place.bytes();
    let table = [
        ("text", b"this is not a database, but text that is long enough to look at".repeat(30), "is not a database"),
        ("a short text", b"short".to_vec(), "is not a database"),
        ("a cut-off header", sound[..60].to_vec(), "damaged"),
        ("a cut-off file", sound[..sound.len() - 5000].to_vec(), "restore the latest backup"),
        ("one page of many", sound[..8192].to_vec(), "restore the latest backup"),
    ];
    for (name, bytes, sentence) in table {
        fs::write(place.path(), &bytes).unwrap();
        for opened in [SqliteStore::open(&place.path()), SqliteStore::open_read_only(&place.path())] {
            let error = opened.err().unwrap_or_else(|| panic!("{name} opens as a store"));
            assert!(matches!(&error, StoreError::Damaged(_)), "{name}: {error}");
            assert!(error.to_string().contains(sentence) && error.to_string().contains("store.db"), "{name}: {error}");
        }
        assert!(fs::read(place.path()).unwrap() == bytes, "{name}: changed");
    }
    fs::remove_file(place.path()).unwrap();
    Connection::open(place.path()).unwrap().execute_batch("CREATE TABLE of_someone_else (x)").unwrap();
    let error = error(SqliteStore::open(&place.path()));
    assert!(error.to_string().contains("another program"), "{error}");
}

#[test]
fn a_damaged_row_names_its_frame() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    let turn = Turn { frames: 3, values: vec![Some(9), Some(40_000)], ..opens(0) };
    commit(&store, vec![turn.part()]).unwrap();
    let damages = [
        r#"UPDATE frames SET "values" = substr("values", 1, 30) WHERE sequence = 1"#,
        r#"UPDATE frames SET "values" = x'' WHERE sequence = 1"#,
        "UPDATE blobs SET bytes = zeroblob(40000)",
        "DELETE FROM blobs",
    ];
    for damage in damages {
        let connection = lock(store.writer.as_ref().unwrap());
        connection.execute_batch("SAVEPOINT damage").unwrap();
        connection.execute_batch(damage).unwrap();
        let found = super::journal::frames(&connection, key(0), 1, ReadLimit::of(9)).unwrap_err();
        connection.execute_batch("ROLLBACK TO damage; RELEASE damage").unwrap();
        let error = super::error::of_store(&place.path(), &found);
        let name = format!("frame 1 of {}", key(0));
        assert!(matches!(&error, StoreError::Damaged(what) if what.contains(&name)), "{damage}: {error}");
    }
}

#[test]
fn paths_that_cannot_be_used_are_named() {
    let place = ResourceId::new();
    let missing = place.0.path().join("missing.db");
    let nowhere = place.0.path().join("nowhere").join("store.db");
    fs::write(place.0.path().join("file"), "").unwrap();
    let no_folder = place.0.path().join("file").join("store.db");
    let check = |error: StoreError, path: &Path, why: &str| {
        let StoreError::Unavailable(text) = error else { panic!("{error}") };
        assert!(text.contains(path.to_str().unwrap()) && text.contains(why), "{text}");
    };
    check(error(SqliteStore::open_read_only(&missing)), &missing, "No such file");
    assert!(!missing.exists());
    check(error(SqliteStore::open(&nowhere)), &nowhere, "No such file");
    check(error(SqliteStore::open(&no_folder)), &no_folder, "Not a directory");
    check(error(SqliteStore::open(place.0.path())), place.0.path(), "");
}

#[test]
fn files_are_readable_only_by_their_owner() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    let mut names = Vec::new();
    for entry in fs::read_dir(place.0.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["store.db", "store.db-shm", "store.db-wal"]);
}

#[test]
fn a_reader_changes_nothing() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    commit(&store, vec![opens(0).part()]).unwrap();
    let reader = SqliteStore::open_read_only(&place.path()).unwrap();
    let before = look(&reader);
    let refused = run(&reader, &Op::Enqueue(0, "a"));
    assert!(refused.contains("for reading only"), "{refused}");
    assert!(matches!(commit(&reader, vec![continues(0, 0).part()]), Err(CommitError::NotWritten(_))));
    assert_eq!(look(&store), before);
    // It sees commits after it was opened, and works alone.
    commit(&store, vec![continues(0, 0).part()]).unwrap();
    drop(store);
    assert_eq!(run(&reader, &Op::Head(0)), "1 in 0 wake 0");
}

/// Many rows, so that pages are split and merged around the secret. The secret arrived in messages, and is in a frame
/// twice: in the row, and as a blob.
#[test]
fn erased_bytes_are_in_no_file() {
    const MESSAGES: u64 = 800;
    let secret = b"the patient's name is Erika Mustermann";
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    let contains = |place: &ResourceId| place.bytes().windows(secret.len()).any(|window| window == secret);
    let with_secret = |mut part: Part| {
        part.frames[0].values[0].body = Some(secret.to_vec());
        part.frames[0].values[1].body = Some(secret.repeat(2_000));
        part
    };
    let filled = |execution, after| Turn { values: vec![Some(60), Some(40_000)], ..continues(execution, after) };
    for number in 0..MESSAGES {
        let body = if number % 2 == 0 { secret.repeat(3) } else { vec![b'-'; 114] };
        store.enqueue(&EnqueueRequest::of(&message(number.to_string(), &body), 1)).unwrap();
    }
    // All messages with the secret are consumed, and most others, in an order that makes SQLite move the remaining
    // ones.
    let shuffled = (0..MESSAGES).map(|number| number * 389 % MESSAGES);
    let leaving: Vec<u64> = shuffled.filter(|number| number % 8 != 1).collect();
    let opened = [1, 0, 2].map(|execution| Turn { after: None, ..filled(execution, 0) }.part());
    commit(&store, opened.into()).unwrap();
    for (after, messages) in (0..).zip(leaving.chunks(10)) {
        let mut middle = filled(0, after).part();
        middle.consumed = messages.iter().map(u64::to_string).collect();
        let middle = if after == 30 { with_secret(middle) } else { middle };
        commit(&store, vec![filled(1, after).part(), middle, filled(2, after).part()]).unwrap();
    }
    assert!(contains(&place), "the test would prove nothing");
    assert_eq!(run(&store, &Op::Erase(0, 31, 0)), "true");
    assert!(contains(&place), "the blob is still named");
    assert_eq!(run(&store, &Op::Erase(0, 31, 1)), "true");
    assert!(!contains(&place), "the secret is still in a file");
    let values = &store.frames(key(0), 31, ReadLimit::of(1)).unwrap()[0].values;
    assert!(values.iter().all(|value| value.body.is_none() && value.salt == [0; 16]));
    assert_eq!(run(&store, &Op::Erase(0, 31, 1)), "false");
}

#[test]
fn an_erase_reports_bytes_left_in_the_wal() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    commit(&store, vec![Turn { values: vec![Some(9)], ..opens(0) }.part()]).unwrap();
    let reader = Connection::open(place.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM frames").unwrap();
    pragma(&store, "busy_timeout", 0);
    let refused = run(&store, &Op::Erase(0, 0, 0));
    assert!(refused.contains("erase again"), "{refused}");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(run(&store, &Op::Erase(0, 0, 0)), "false");
    assert_eq!(fs::metadata(place.0.path().join("store.db-wal")).unwrap().len(), 0);
}

#[test]
fn constraint_errors_are_distinguished_from_an_unavailable_store() {
    let place = ResourceId::new();
    let store = place.open();
    run(&store, &Op::Claim(0));
    commit(&store, vec![opens(0).part(), opens(1).part()]).unwrap();
    let other = Connection::open(place.path()).unwrap();
    other
        .execute_batch(
            "INSERT INTO frames (execution, sequence, frame, \"values\")
             SELECT execution, sequence + 1, frame, \"values\" FROM frames ORDER BY execution LIMIT 1",
        )
        .unwrap();
    let heads = || [0, 1].map(|number| store.head(key(number)).unwrap());
    let before = heads();
    let both = commit(&store, vec![continues(0, 0).part(), continues(1, 0).part()]);
    assert!(matches!(&both, Err(CommitError::Refused(why)) if why.contains("UNIQUE")), "{both:?}");
    assert_eq!(heads(), before, "of a refused batch nothing is written");
    assert_eq!(
        commit(&store, vec![continues(1, 0).part()]),
        Ok(vec![PartOutcome::Durable]),
        "the other one is written"
    );
}
