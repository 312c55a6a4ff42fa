//! Modified journals: `verify` and the next load report the frame, and other executions of the store are not
//! affected.
//!
//! One modification cannot be detected with the store alone: frames and head that are consistently rolled back to
//! an earlier state. It needs an external witness, such as an exported head, as the last test shows.

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use mainspring_cli::runner::executors;
use mainspring_engine::{
    Engine, EngineError, EngineOptions, EngineScope, data_dir::DataDir, journal_loader::Loader,
    start_request::StartRequest,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    note::{Note, Subject},
    plan::Decision,
    record::{Payload, Record},
    state::ExecutionStatus,
    stored_frame::Head,
    value::{Map, Value},
};
use mainspring_store::{AuditedNotes, Batch, Expected, Fence, Part, ReadLimit, Store, sqlite::SqliteStore};
use rusqlite::{Connection, params};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];
const OTHER_KEY: [u8; 32] = [8; 32];
const SECRET: &str = "xyzzy-a-secret-that-is-erased";

/// A step with a secret, a step with an output of its own blob, an approval, and a step after it.
const DEFINITION: &str = r#"
name: NAME
steps:
  - {id: first, type: bash, command: 'echo "$S"', env: {S: "@vars.secret"}, outputVariable: said}
  - {id: large, type: bash, command: "head -c 40000 /dev/zero | tr '\\0' x; echo NAME"}
  - {id: gate, type: approval, prompt: Ship?, items: {of: "@first.stdout"}}
  - {id: last, type: bash, command: echo shipped}
"#;

/// A store with three executions: an ended one, a waiting one, and the victim, which waits or has ended.
struct Stage {
    folder: TempDir,
    victim: ExecutionKey,
    ended: ExecutionKey,
    waiting: ExecutionKey,
    /// The victim's head while it waited.
    older_head: Head,
}

impl Stage {
    /// Copies a store that is built once.
    fn new(victim_ends: bool) -> Self {
        static WAITS: OnceLock<Stage> = OnceLock::new();
        static ENDS: OnceLock<Stage> = OnceLock::new();
        let made = if victim_ends { &ENDS } else { &WAITS }.get_or_init(|| Self::make(victim_ends));
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(made.folder.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
            }
        }
        let Self { victim, ended, waiting, older_head, .. } = *made;
        Self { folder, victim, ended, waiting, older_head }
    }

    fn make(victim_ends: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        block_on(async {
            let engine = open(folder.path()).await;
            let victim = submit(&engine, "victim").await;
            let ended = submit(&engine, "ended").await;
            let waiting = submit(&engine, "waiting").await;
            let older_head = engine.store().head(victim).unwrap().unwrap().head;
            approve(&engine, ended).await.unwrap();
            if victim_ends {
                approve(&engine, victim).await.unwrap();
            }
            engine.drain().await;
            drop(engine);
            // The thread that closes the last connection removes the WAL. After that, the store is one file.
            while folder.path().join("journal.db-wal").exists() {
                std::thread::yield_now();
            }
            Self { folder, victim, ended, waiting, older_head }
        })
    }

    /// A connection of an attacker with the file and without the key. It need not be durable.
    fn intruder(&self) -> Connection {
        let connection = Connection::open(DataDir::new(self.folder.path()).journal()).unwrap();
        connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        connection
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&DataDir::new(self.folder.path()).journal()).unwrap())
    }

    /// Checks that the other executions verify.
    #[track_caller]
    fn assert_neighbors_are_well(&self, store: &Arc<dyn Store>) {
        for key in [self.ended, self.waiting] {
            verify(store, key).expect("a neighbor verifies");
        }
    }

    /// Opens an engine, which must quarantine the victim and continue the waiting execution. Returns the reason.
    fn load(&self) -> String {
        block_on(async {
            let engine = open(self.folder.path()).await;
            let refused = decide(&engine, self.victim).await.expect_err("it is quarantined");
            assert!(matches!(refused, EngineError::Quarantined(_)), "{refused}");
            approve(&engine, self.waiting).await.expect("the neighbor continues");
            engine.drain().await;
            drop(engine);
            let again = open(self.folder.path()).await;
            let head = again.store().head(self.victim).unwrap();
            assert!(decide(&again, self.victim).await.is_err(), "it stays quarantined");
            again.drain().await;
            head.and_then(|head| head.quarantined).expect("the reason is recorded")
        })
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn open(folder: &Path) -> Engine {
    let options = EngineOptions {
        data_dir: DataDir::new(folder),
        key: KEY,
        scope: EngineScope::All,
        evaluator: std::sync::Arc::new(mainspring_engine::evaluator::InProcess),
        limits: None,
        budgets: None,
        seal_note: None,
        spans: None,
    };
    Engine::open(options, |home, held| executors(Default::default(), home, held)).await.unwrap()
}

/// Submits, and waits until the approval is open.
async fn submit(engine: &Engine, id: &str) -> ExecutionKey {
    // The definition contains the execution's name, so that each has its own plan.
    let definition = DEFINITION.replace("NAME", id);
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    let variables = Map::from([("secret".to_string(), Value::text(SECRET))]);
    let request =
        StartRequest { execution_id: Some(id.into()), variables, ..StartRequest::new(Arc::new(plan), "owner") };
    let key = engine.start(request).await.unwrap().execution;
    assert_eq!(rest(engine, key).await, ExecutionStatus::WaitingApproval);
    key
}

async fn approve(engine: &Engine, key: ExecutionKey) -> Result<(), EngineError> {
    assert!(decide(engine, key).await?, "the gate is open");
    assert_eq!(rest(engine, key).await, ExecutionStatus::Completed);
    Ok(())
}

/// Approves the gate, which is the third step of the plan.
async fn decide(engine: &Engine, key: ExecutionKey) -> Result<bool, EngineError> {
    let gate = mainspring_kernel::instance::Instance::of_step(2);
    engine.decide(key, gate, 1, Decision::Approve, "owner", Value::Null).await
}

async fn rest(engine: &Engine, key: ExecutionKey) -> ExecutionStatus {
    let mut watch = engine.watch(key);
    let mut status = engine.state(key).unwrap().status();
    while status == ExecutionStatus::Running {
        status = watch.recv().await.expect("it is watched to its rest").status;
    }
    status
}

fn verify(store: &Arc<dyn Store>, key: ExecutionKey) -> Result<mainspring_kernel::journal::Verified, String> {
    // A new loader, because the plans that a used one has cached would hide a change.
    let verified = Loader::new(store.clone(), KEY).verify(key).map_err(|error| error.to_string())?;
    Ok(verified.expect("it is there"))
}

/// True if a message names one of these frames by its whole number.
fn names(message: &str, frames: &[u64]) -> bool {
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let mut named = Vec::new();
    while let Some(word) = words.next() {
        if word == "frame" {
            named.extend(words.next().and_then(|number| number.parse::<u64>().ok()));
        }
    }
    named.iter().any(|named| frames.contains(named))
}

#[test]
fn every_changed_byte_is_detected_with_its_frame() {
    let stage = Stage::new(true);
    let (intruder, store) = (stage.intruder(), stage.store());
    let last = store.head(stage.victim).unwrap().unwrap().head.sequence;
    let rows: Vec<(i64, u64)> = intruder
        .prepare("SELECT number, sequence FROM frames WHERE execution = ?1")
        .unwrap()
        .query_map([stage.victim.0], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len() as u64, last + 1);
    let mut positions = 0;
    for (number, sequence) in rows {
        // The chain proves that two adjacent frames do not match, and not which one was changed.
        let row = format!("rowid = {number}");
        positions += flip_all(&stage, &store, ("frames", "frame", &row), &[sequence, sequence + 1]);
        positions += flip_all(&stage, &store, ("frames", "\"values\"", &row), &[sequence]);
    }
    let row = format!("execution = {}", literal(&stage.victim.0));
    positions += flip_all(&stage, &store, ("heads", "hash", &row), &[last]);
    positions += flip_all(&stage, &store, ("heads", "seal", &row), &[last]);
    let plan = store.execution(stage.victim).unwrap().unwrap().plan_hash;
    let row = format!("hash = {}", literal(&plan.0));
    positions += flip_all(&stage, &store, ("plans", "bytes", &row), &[0]);
    println!("{positions} positions");
    verify(&store, stage.victim).unwrap();
}

/// Changes every byte of a column in one row, one at a time. Returns the number of bytes.
fn flip_all(stage: &Stage, store: &Arc<dyn Store>, place: (&str, &str, &str), frames: &[u64]) -> usize {
    let (intruder, (table, column, row)) = (stage.intruder(), place);
    let select = format!("SELECT {column} FROM {table} WHERE {row}");
    let update = format!("UPDATE {table} SET {column} = ?1 WHERE {row}");
    let copy: Vec<u8> = intruder.query_row(&select, [], |row| row.get(0)).unwrap();
    for at in 0..copy.len() {
        let mut changed = copy.clone();
        changed[at] ^= 1 << (at % 8);
        assert_eq!(intruder.execute(&update, [changed]).unwrap(), 1);
        let why = verify(store, stage.victim).expect_err("a changed byte is seen");
        assert!(names(&why, frames), "byte {at} of {column} of {frames:?}: {why}");
    }
    stage.assert_neighbors_are_well(store);
    intruder.execute(&update, [&copy]).unwrap();
    copy.len()
}

/// A damage: its name, the statements, and the frames of which one must be named. `:victim` is the tampered
/// execution, and `last` its last frame.
const DAMAGES: &[(&str, &str, &[Named])] = &[
    (
        "a byte of the first frame",
        "UPDATE frames SET frame = CAST(x'00' || substr(frame, 2) AS BLOB) WHERE execution = :victim AND sequence = 0",
        &[Named::At(0)],
    ),
    (
        "a byte of the values",
        "UPDATE frames SET \"values\" = CAST(\"values\" || x'00' AS BLOB) WHERE execution = :victim AND sequence = 1",
        &[Named::At(1)],
    ),
    ("a blob", "UPDATE blobs SET bytes = CAST(x'00' || substr(bytes, 2) AS BLOB) WHERE number = 1", &[Named::At(2)]),
    ("a blob that is gone", "DELETE FROM blobs WHERE number = 1", &[Named::At(2)]),
    ("the last row cut off", "DELETE FROM frames WHERE execution = :victim AND sequence = :last", &[Named::Last(0)]),
    (
        "the last two rows cut off",
        "DELETE FROM frames WHERE execution = :victim AND sequence >= :last - 1",
        &[Named::Last(1)],
    ),
    ("the first row cut off", "DELETE FROM frames WHERE execution = :victim AND sequence = 0", &[Named::At(0)]),
    ("a row in the midst cut out", "DELETE FROM frames WHERE execution = :victim AND sequence = 1", &[Named::At(1)]),
    ("all rows cut off", "DELETE FROM frames WHERE execution = :victim", &[Named::At(0)]),
    (
        "a frame twice",
        "UPDATE frames SET frame = (SELECT frame FROM frames WHERE execution = :victim AND sequence = 0)
         WHERE execution = :victim AND sequence = 1",
        &[Named::At(1)],
    ),
    (
        "the head's hash",
        "UPDATE heads SET hash = CAST(iif(substr(hash, 1, 1) = x'00', x'01', x'00') || substr(hash, 2) AS BLOB)
         WHERE execution = :victim",
        &[Named::Last(0)],
    ),
    (
        "the head's seal",
        "UPDATE heads SET seal = CAST(iif(substr(seal, 1, 1) = x'00', x'01', x'00') || substr(seal, 2) AS BLOB)
         WHERE execution = :victim",
        &[Named::Last(0)],
    ),
    (
        "the head's place",
        "UPDATE heads SET sequence = sequence - 1 WHERE execution = :victim",
        &[Named::Last(0), Named::Last(1)],
    ),
    ("the plan", "UPDATE plans SET bytes = CAST(bytes || x'00' AS BLOB) WHERE hash = :plan", &[Named::At(0)]),
    ("no plan", "DELETE FROM plans WHERE hash = :plan", &[Named::At(0)]),
];

/// A frame by its position.
#[derive(Debug, Clone, Copy)]
enum Named {
    At(u64),
    /// Counted from the last frame.
    Last(u64),
}

#[test]
fn every_damage_is_reported_and_quarantines_its_execution() {
    for (what, sql, named) in DAMAGES {
        let stage = Stage::new(false);
        let store = stage.store();
        let last = store.head(stage.victim).unwrap().unwrap().head.sequence;
        let place = |named: &Named| match named {
            Named::At(frame) => *frame,
            Named::Last(before) => last - before,
        };
        let frames: Vec<u64> = named.iter().map(place).collect();
        let plan = store.execution(stage.victim).unwrap().unwrap().plan_hash;
        let sql = sql.replace(":victim", &literal(&stage.victim.0)).replace(":last", &last.to_string());
        let changed = stage.intruder().execute(&sql.replace(":plan", &literal(&plan.0)), []).unwrap();
        assert!(changed > 0, "{what}: nothing was done");
        let why = verify(&store, stage.victim).expect_err(what);
        assert!(names(&why, &frames), "{what}: {frames:?} {why}");
        stage.assert_neighbors_are_well(&store);
        drop(store);
        let recorded = stage.load();
        assert!(names(&recorded, &frames), "{what}: {frames:?} {recorded}");
    }
}

fn literal(bytes: &[u8]) -> String {
    format!("x'{}'", mainspring_kernel::hash::hex(bytes))
}

/// The key that seals the head of a forged journal.
#[derive(Clone, Copy, PartialEq)]
enum Sealed {
    ByTheirs,
    ByOurs,
}

/// Rewrites the output of step `large`, which has no references, and all later frames with matching hashes.
/// `in_input` also changes the receipt from which the record was made. Returns the sequence of the receipt's frame.
fn forge(stage: &Stage, in_input: bool, sealed: Sealed) -> u64 {
    let store = stage.store();
    let forged = || Value::map([("exitCode", 0u64.into()), ("stdout", "forged".into())]);
    let stored = store.frames(stage.victim, 0, ReadLimit::of(1000)).unwrap();
    let (mut before, mut first) = (Hash::default(), None);
    let mut frames = Vec::new();
    for stored in &stored {
        let mut frame = Frame::read(stored).unwrap().0;
        let is_receipt = matches!(&frame.input, Input::Receipt { instance, .. } if instance.step == 1);
        if is_receipt && first.is_none() {
            first = Some((frame.sequence, before));
            for record in &mut frame.records {
                if let Record::StepCompleted { output, .. } = record {
                    *output = Payload::Known(forged());
                }
            }
            if let (true, Input::Receipt { outcome, .. }) = (in_input, &mut frame.input) {
                *outcome = Outcome::Done(forged());
            }
        }
        frame.before = before;
        let (written, hash) = frame.store(&|_| [3; 16]);
        before = if first.is_some() { hash } else { Hash::of(&stored.frame) };
        frames.extend(first.map(|_| written));
    }
    let (at, expected_hash) = first.expect("there is a receipt");
    let intruder = stage.intruder();
    let values = params![stage.victim.0, at as i64];
    intruder.execute("DELETE FROM frames WHERE execution = ?1 AND sequence >= ?2", values).unwrap();
    let values = params![stage.victim.0, at as i64 - 1, expected_hash.0];
    intruder.execute("UPDATE heads SET sequence = ?2, hash = ?3 WHERE execution = ?1", values).unwrap();
    let last = stored.len() as u64 - 1;
    let key = if sealed == Sealed::ByOurs { KEY } else { OTHER_KEY };
    let part = Part {
        execution: stage.victim,
        partition: 0,
        expected: Some(Expected { sequence: at - 1, hash: expected_hash }),
        frames,
        head: Head::sealed(&key, stage.victim, last, before),
        wake_at: None,
        row: None,
        change: None,
        plans: Vec::new(),
        consumed: Vec::new(),
        messages: Vec::new(),
        receipts: Default::default(),
        audit: Vec::new(),
        gates_closed: Vec::new(),
        gates_opened: Vec::new(),
    };
    let epoch = store.claim(0, "an intruder").unwrap();
    let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts: vec![part], ..Batch::default() };
    assert_eq!(store.commit(&batch).unwrap(), [mainspring_store::PartOutcome::Durable]);
    at
}

#[test]
fn a_rewritten_suffix_with_valid_hashes_lacks_the_seal() {
    let stage = Stage::new(false);
    forge(&stage, true, Sealed::ByTheirs);
    let store = stage.store();
    let last = store.head(stage.victim).unwrap().unwrap().head.sequence;
    let why = verify(&store, stage.victim).unwrap_err();
    assert!(names(&why, &[last]) && why.contains("seal"), "{why}");
    stage.assert_neighbors_are_well(&store);
    drop(store);
    let recorded = stage.load();
    assert!(names(&recorded, &[last]) && recorded.contains("seal"), "{recorded}");
}

#[test]
fn a_sealed_record_that_differs_from_its_replay_is_reported() {
    let stage = Stage::new(false);
    let at = forge(&stage, false, Sealed::ByOurs);
    let why = verify(&stage.store(), stage.victim).unwrap_err();
    assert!(names(&why, &[at]) && why.contains("deciding"), "{why}");
}

#[test]
fn a_rolled_back_head_is_detected() {
    let stage = Stage::new(true);
    put_back(&stage);
    let why = verify(&stage.store(), stage.victim).unwrap_err();
    let older = stage.older_head.sequence;
    assert!(names(&why, &[older, older + 1]), "{why}");
}

/// The case for an external witness: all rows of an execution are rolled back. The catalogue and an exported head
/// detect it; the journal does not.
#[test]
fn a_complete_rollback_is_detected_only_by_a_witness() {
    let stage = Stage::new(true);
    let witness = stage.store().head(stage.victim).unwrap().unwrap().head;
    put_back(&stage);
    let values = params![stage.victim.0, stage.older_head.sequence as i64];
    stage.intruder().execute("DELETE FROM frames WHERE execution = ?1 AND sequence > ?2", values).unwrap();
    let store = stage.store();
    let verified = verify(&store, stage.victim).expect("it is a true journal, of yesterday");
    assert_eq!(verified.frames, stage.older_head.sequence + 1);
    assert_ne!(store.head(stage.victim).unwrap().unwrap().head, witness);
    assert_eq!(store.execution(stage.victim).unwrap().unwrap().status, "completed");
}

fn put_back(stage: &Stage) {
    let Head { sequence, hash, seal } = stage.older_head;
    let values = params![stage.victim.0, sequence as i64, hash.0, seal.0];
    let sql = "UPDATE heads SET sequence = ?2, hash = ?3, seal = ?4, ended = 0 WHERE execution = ?1";
    assert_eq!(stage.intruder().execute(sql, values).unwrap(), 1);
}

#[test]
fn seals_of_another_key_are_rejected() {
    let stage = Stage::new(true);
    let loader = Loader::new(stage.store(), OTHER_KEY);
    assert!(loader.verify(stage.victim).unwrap_err().to_string().contains("seal"));
}

#[test]
fn erased_values_leave_the_files_and_the_chain_verifies() {
    let stage = Stage::new(false);
    assert!(is_in_files(stage.folder.path(), SECRET), "it is there before");
    let store = stage.store();
    let mut erased = Vec::new();
    for stored in store.frames(stage.victim, 0, ReadLimit::of(1000)).unwrap() {
        for (place, value) in stored.values.iter().enumerate() {
            let holds = |body: &Vec<u8>| body.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            if value.body.as_ref().is_some_and(holds) {
                assert_eq!(erase(&store, stage.victim, stored.sequence, place), 1);
                assert_eq!(erase(&store, stage.victim, stored.sequence, place), 0, "it is erased once");
                erased.push((stored.sequence, place));
            }
        }
    }
    // The other two executions contain the same secret.
    for key in [stage.ended, stage.waiting] {
        erase_all(&store, key);
    }
    let verified = verify(&store, stage.victim).expect("the chain holds");
    assert_eq!(verified.erased, erased);
    assert!(erased.len() >= 3, "the variables, the step's input, its output: {erased:?}");
    assert!(!is_in_files(stage.folder.path(), SECRET), "with the store open");
    drop(store);
    assert!(!is_in_files(stage.folder.path(), SECRET), "and closed");
    // The execution can still be decided and completed.
    block_on(async {
        let engine = open(stage.folder.path()).await;
        approve(&engine, stage.victim).await.unwrap();
        engine.drain().await;
    });
    assert_eq!(verify(&stage.store(), stage.victim).unwrap().erased, erased);
}

fn erase(store: &Arc<dyn Store>, key: ExecutionKey, sequence: u64, place: usize) -> usize {
    let subject = Subject::Erased { sequence, place: place as u64 };
    let note = Note::sealed(&KEY, key, subject, 1, "ada", "a request");
    store.erase(note.execution, &AuditedNotes::of(std::slice::from_ref(&note))).unwrap()
}

/// Removes a value as an attacker without the key: the row says that it was erased.
fn take_away(stage: &Stage, sequence: u64) {
    let intruder = stage.intruder();
    let place = params![stage.victim.0, sequence as i64];
    let sql = "SELECT \"values\" FROM frames WHERE execution = ?1 AND sequence = ?2";
    let mut column: Vec<u8> = intruder.query_row(sql, place, |row| row.get(0)).unwrap();
    let length = u32::from_le_bytes(column[18..22].try_into().unwrap()) as usize;
    column[1..17].fill(0);
    column[17] = 2;
    column[22..22 + length].fill(0);
    let sound = column.len() - 4;
    let check = Hash::of(&column[..sound]).0;
    column[sound..].copy_from_slice(&check[..4]);
    let sql = "UPDATE frames SET \"values\" = ?3 WHERE execution = ?1 AND sequence = ?2";
    assert_eq!(intruder.execute(sql, params![stage.victim.0, sequence as i64, column]).unwrap(), 1);
}

#[test]
fn a_missing_value_without_a_sealed_note_is_refused() {
    let stage = Stage::new(false);
    take_away(&stage, 0);
    let store = stage.store();
    let refused = verify(&store, stage.victim).unwrap_err();
    assert!(refused.contains("frame 0") && refused.contains("no note"), "{refused}");
    stage.assert_neighbors_are_well(&store);
    // Notes with another key, execution or position prove nothing.
    for (key, execution, place) in [(OTHER_KEY, stage.victim, 0), (KEY, stage.ended, 0), (KEY, stage.victim, 7)] {
        let subject = Subject::Erased { sequence: 0, place };
        let note = Note::sealed(&key, execution, subject, 1, "mallory", "");
        let sql = "INSERT OR REPLACE INTO notes VALUES (?1, 0, 0, ?2, 1, 'mallory', '', ?3)";
        stage.intruder().execute(sql, params![stage.victim.0, place as i64, note.seal.0]).unwrap();
        assert!(verify(&store, stage.victim).is_err());
    }
    // The execution does not continue either.
    block_on(async {
        let engine = open(stage.folder.path()).await;
        let refused = approve(&engine, stage.victim).await.unwrap_err();
        assert!(matches!(refused, EngineError::Quarantined(_) | EngineError::Load(_)), "{refused}");
        engine.drain().await;
    });
    assert!(!store.head(stage.victim).unwrap().unwrap().ended);
}

fn erase_all(store: &Arc<dyn Store>, key: ExecutionKey) {
    for stored in store.frames(key, 0, ReadLimit::of(1000)).unwrap() {
        for place in 0..stored.values.len() {
            erase(store, key, stored.sequence, place);
        }
    }
}

/// True if any file of a folder contains the text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => is_in_files(&entry.path(), text),
        kind if kind.is_file() => {
            let bytes = fs::read(entry.path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }
        _ => false,
    })
}

/// A row that is inserted into the inbox without the key is no approval, even if the flag of sealed inboxes is
/// removed.
#[test]
fn a_row_in_the_inbox_is_no_approval() {
    let stage = Stage::new(false);
    let instance = mainspring_kernel::instance::Instance::of_step(2);
    let (decision, by) = (Decision::Approve, "owner".to_string());
    let body = Input::Decide { instance, gate: 1, decision, by, reason: Value::Null }.encode();
    let intruder = stage.intruder();
    let put = "INSERT INTO inbox (execution, id, partition, body, enqueued_at) VALUES (?1, 'decide', 0, ?2, 0)";
    for strip in ["", "DELETE FROM metadata WHERE name LIKE 'inbox%'"] {
        intruder.execute_batch(strip).unwrap();
        intruder.execute(put, params![stage.victim.0, body]).unwrap();
        block_on(async {
            let engine = open(stage.folder.path()).await;
            let posted = || intruder.query_row("SELECT count(*) FROM inbox", [], |row| row.get::<_, u32>(0)).unwrap();
            tokio::time::timeout(std::time::Duration::from_secs(60), async {
                while posted() > 0 {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .expect("a forged message is taken out of the inbox");
            assert_eq!(engine.state(stage.victim).unwrap().status(), ExecutionStatus::WaitingApproval);
            engine.drain().await;
        });
    }
    verify(&stage.store(), stage.victim).unwrap();
}
