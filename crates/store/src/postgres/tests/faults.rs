//! Servers that stop, connections that are cut, and rows that are damaged.

use std::{sync::mpsc, thread};

use mainspring_kernel::note::Subject;

use super::{commit, message, open};
use crate::prelude::*;
use crate::{
    AuditedNotes, Batch, CommitError, Fence, InboxMessage, Part, PartOutcome, ReadLimit, StoreError,
    contract_tests::{
        op::{Turn, continues, key, look, note, opens},
        postgres::server,
    },
    postgres::{
        Options, PostgresStore,
        server::{self, Server},
    },
};

/// Makes a part that sends one message, independent of earlier ones.
fn request(number: usize) -> Batch {
    let messages = vec![InboxMessage { execution: key(5), ..message(&number.to_string()) }];
    let part = Part { messages, ..Turn { frames: 0, ..continues(0, 0) }.part() };
    Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts: vec![part], ..Batch::default() }
}

/// Commits messages one after the other while `disturb` runs, and returns the answers in order. `disturb` is notified
/// of each answer, and the commits end with it.
fn commits_during(
    store: &PostgresStore,
    first: usize,
    disturb: impl FnOnce(&mpsc::Receiver<bool>),
) -> Vec<Result<Vec<PartOutcome>, CommitError>> {
    let (notice, answered) = mpsc::sync_channel(1_000_000);
    let (ended, is_ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut answers = Vec::new();
            while is_ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let answer = store.commit(&request(first + answers.len()));
                notice.send(answer.is_ok()).unwrap();
                answers.push(answer);
            }
            answers
        });
        disturb(&answered);
        drop(ended);
        writer.join().unwrap()
    })
}

fn wait_for_durable(answered: &mpsc::Receiver<bool>, count: usize) {
    assert_eq!(answered.iter().filter(|is_durable| *is_durable).take(count).count(), count);
}

/// Checks that the answers are true.
fn compare(store: &PostgresStore, answers: &[Result<Vec<PartOutcome>, CommitError>]) {
    let there: Vec<usize> = store
        .inbox(&[0], 0, ReadLimit::of(usize::MAX))
        .unwrap()
        .iter()
        .map(|arrived| arrived.message.id.parse().unwrap())
        .collect();
    for (number, answer) in answers.iter().enumerate() {
        let is_there = there.contains(&number);
        match answer {
            Ok(parts) => {
                assert!(is_there && parts == &[PartOutcome::Durable], "message {number}: {parts:?} but {is_there}")
            }
            Err(CommitError::NotWritten(why) | CommitError::Refused(why) | CommitError::Blocked(why)) => {
                assert!(!is_there, "message {number} was written after all: {why}");
            }
            Err(CommitError::Unknown(_)) => {}
            Err(CommitError::Fatal(why)) => panic!("the server's disk is the server's business: {why}"),
        }
    }
}

#[test]
fn acknowledged_writes_survive_server_faults() {
    const ROUNDS: usize = 3;
    let server = Server::start(server::Options::default()).unwrap();
    let scratch = server.scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    let mut answers = Vec::new();
    for _ in 0..ROUNDS {
        // Connections are cut one after the other, at any point of their work.
        answers.extend(commits_during(&store, answers.len(), |answered| {
            let beside = scratch.beside().unwrap();
            for _ in 0..40 {
                beside
                    .ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'mainspring'")
                    .unwrap();
                wait_for_durable(answered, 2);
            }
        }));
        compare(&store, &answers);
        // The server crashes during commits, and is started again.
        answers.extend(commits_during(&store, answers.len(), |answered| {
            wait_for_durable(answered, 20);
            server.crash().unwrap();
            server.start_again().unwrap();
            wait_for_durable(answered, 20);
        }));
        compare(&store, &answers);
    }
    let durable = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(durable > 40 * ROUNDS && durable < answers.len(), "{durable} of {}: this proves nothing", answers.len());
    assert!(answers.iter().any(|answer| matches!(answer, Err(CommitError::Unknown(_)))), "none was cut at COMMIT");
    assert_eq!(commit(&store, 1, &[continues(0, 0)]), Ok(vec![PartOutcome::Durable]));
}

#[test]
fn an_unavailable_or_read_only_server_is_reported() {
    let server = Server::start(server::Options { fsync: false, tls: false }).unwrap();
    let scratch = server.scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    let before = look(&store);
    server.crash().unwrap();
    let Err(CommitError::NotWritten(why)) = commit(&store, 1, &[continues(0, 0)]) else { panic!("this was written") };
    assert!(why.contains("localhost") && why.contains("check that the server runs"), "{why}");
    let Err(StoreError::Unavailable(why)) = store.head(key(0)) else { panic!("this was read") };
    assert!(why.contains("localhost") && why.contains("check that the server runs"), "{why}");
    server.start_again().unwrap();
    assert_eq!(look(&store), before);
    server.execute("ALTER ROLE postgres SET default_transaction_read_only = on").unwrap();
    let reader = open(&scratch.address());
    let Err(CommitError::NotWritten(why)) = commit(&reader, 1, &[continues(0, 0)]) else { panic!("this was written") };
    assert!(why.contains("25006") && why.contains("the primary"), "{why}");
    let Err(StoreError::Unavailable(why)) = reader.claim(0, "node") else { panic!("this was written") };
    assert!(why.contains("25006") && why.contains("the primary"), "{why}");
    assert_eq!(look(&reader), before);
}

#[test]
fn a_timed_out_write_has_no_effect_and_the_next_succeeds() {
    let scratch = server().scratch();
    let options = Options { partitions: 1, statement_ms: 100, ..Options::default() };
    let store = PostgresStore::open_with(&scratch.address(), options).unwrap();
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    let beside = scratch.beside().unwrap();
    // One is blocked where it locks, the other where it writes, with COMMIT behind it.
    for table in ["heads", "executions"] {
        let before = look(&store);
        let sequence = store.head(key(0)).unwrap().unwrap().head.sequence;
        beside.execute(&format!("BEGIN; SELECT 1 FROM {table} FOR UPDATE")).unwrap();
        let Err(CommitError::Blocked(why)) = commit(&store, 1, &[continues(0, sequence)]) else { panic!("{table}") };
        assert!(why.contains("57014") && why.contains("pg_stat_activity"), "{why}");
        beside.execute("ROLLBACK").unwrap();
        assert_eq!(look(&store), before, "{table}");
        assert_eq!(commit(&store, 1, &[continues(0, sequence)]), Ok(vec![PartOutcome::Durable]), "{table}");
    }
}

#[test]
fn a_commit_waits_two_seconds_for_a_foreign_lock() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    let beside = scratch.beside().unwrap();
    beside.execute("BEGIN; SELECT 1 FROM heads FOR UPDATE").unwrap();
    let Err(CommitError::Blocked(why)) = commit(&store, 1, &[continues(0, 0)]) else { panic!("this was written") };
    assert!(why.contains("55P03") && why.contains("pg_locks"), "{why}");
    // Other operations wait for longer: a claim waits for the commits of another node.
    std::thread::scope(|scope| {
        beside.execute("SELECT 1 FROM partitions FOR UPDATE").unwrap();
        let claimed = scope.spawn(|| store.claim(0, "other"));
        assert!(matches!(commit(&store, 1, &[continues(0, 0)]), Err(CommitError::Blocked(_))));
        beside.execute("ROLLBACK").unwrap();
        claimed.join().unwrap().unwrap();
    });
}

#[test]
fn a_refused_batch_and_a_failed_one_leave_no_locks() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    let beside = scratch.beside().unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    beside
        .execute("BEGIN; SELECT 1 FROM partitions FOR UPDATE NOWAIT; SELECT 1 FROM heads FOR UPDATE NOWAIT; COMMIT")
        .unwrap();
    beside.execute("ALTER TABLE plans RENAME TO hidden").unwrap();
    let failed = commit(&store, 1, &[Turn { plan: Some(1), ..continues(0, 0) }]);
    assert!(
        matches!(&failed, Err(CommitError::NotWritten(why)) if why.contains("not ours or not whole")),
        "{failed:?}"
    );
    beside.execute("ALTER TABLE hidden RENAME TO plans").unwrap();
    beside
        .execute("BEGIN; SELECT 1 FROM partitions FOR UPDATE NOWAIT; SELECT 1 FROM heads FOR UPDATE NOWAIT; COMMIT")
        .unwrap();
    assert_eq!(commit(&store, 1, &[Turn { plan: Some(1), ..continues(0, 0) }]), Ok(vec![PartOutcome::Durable]));
}

#[test]
fn a_damaged_row_names_its_frame() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[Turn { frames: 3, values: vec![Some(9), Some(40_000)], ..opens(0) }]).unwrap();
    let beside = scratch.beside().unwrap();
    beside
        .execute("CREATE TABLE sound_frames AS SELECT * FROM frames; CREATE TABLE sound_blobs AS SELECT * FROM blobs")
        .unwrap();
    let damages = [
        r#"UPDATE frames SET "values" = substr("values", 1, 30) WHERE sequence = 1"#,
        r#"UPDATE frames SET "values" = '' WHERE sequence = 1"#,
        "UPDATE blobs SET bytes = 'other'",
        "DELETE FROM blobs",
    ];
    for damage in damages {
        beside.execute(damage).unwrap();
        let error = store.frames(key(0), 1, ReadLimit::of(9)).unwrap_err();
        let name = format!("frame 1 of {}", key(0));
        assert!(matches!(&error, StoreError::Damaged(what) if what.contains(&name)), "{damage}: {error}");
        beside
            .execute("DELETE FROM frames; DELETE FROM blobs; INSERT INTO frames SELECT * FROM sound_frames; INSERT INTO blobs SELECT * FROM sound_blobs")
            .unwrap();
        assert_eq!(store.frames(key(0), 1, ReadLimit::of(9)).unwrap().len(), 2);
    }
    beside.execute("UPDATE heads SET hash = 'short'").unwrap();
    let error = store.head(key(0)).unwrap_err();
    assert!(matches!(&error, StoreError::Damaged(what) if what.contains("column hash")), "{error}");
}

#[test]
fn erased_values_are_in_no_table() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[Turn { values: vec![Some(200), Some(40_000)], ..opens(0) }]).unwrap();
    let beside = scratch.beside().unwrap();
    let length = "SELECT sum(length(\"values\")) FROM frames";
    let before = beside.ask(length).unwrap();
    // The bodies of these values are one byte repeated, 200 and 40,000 modulo 256.
    let inline =
        format!("SELECT count(*) FROM frames WHERE position('\\x{}'::bytea IN \"values\") > 0", "c8".repeat(100));
    assert_eq!(beside.ask(&inline).unwrap(), "1", "the test would prove nothing");
    let notes = [0, 1].map(|place| note(0, Subject::Erased { sequence: 0, place }));
    assert_eq!(store.erase(key(0), &AuditedNotes::of(&notes)), Ok(2));
    assert_eq!(beside.ask(&inline).unwrap(), "0");
    assert_eq!(beside.ask("SELECT count(*) FROM blobs").unwrap(), "0");
    assert_eq!(beside.ask(length).unwrap(), before, "a value of the same form");
}

#[test]
fn an_erase_between_two_reads_is_no_damage() {
    let scratch = server().scratch();
    let (store, eraser) = (open(&scratch.address()), open(&scratch.address()));
    store.claim(0, "node").unwrap();
    // All frames refer to one blob: it is deleted with the last of them, and inserted again by the next execution.
    commit(&store, 1, &[Turn { frames: 40, values: vec![Some(40_000)], ..opens(0) }]).unwrap();
    thread::scope(|scope| {
        let erasing = scope.spawn(|| {
            for sequence in 0..40 {
                eraser.erase(key(0), &AuditedNotes::of(&[note(0, Subject::Erased { sequence, place: 0 })])).unwrap();
            }
        });
        while !erasing.is_finished() {
            assert_eq!(store.frames(key(0), 0, ReadLimit::of(usize::MAX)).unwrap().len(), 40);
        }
    });
    let frames = store.frames(key(0), 0, ReadLimit::of(usize::MAX)).unwrap();
    assert!(frames.iter().all(|frame| frame.values[0].body.is_none()));
    let scratch_locks = scratch.beside().unwrap();
    wait_for_no_locks(&scratch_locks, scratch.schema());
}

/// Waits until all snapshots have ended.
fn wait_for_no_locks(beside: &crate::postgres::server::Beside<'_>, schema: &str) {
    let condition = format!(
        "NOT EXISTS (SELECT 1 FROM pg_locks JOIN pg_class ON relation = pg_class.oid WHERE relnamespace = \
         '{schema}'::regnamespace AND pid <> pg_backend_pid())"
    );
    super::wait_until(beside, "a transaction was left open", &condition);
}
