//! Signatures of receipts: written with the commit, and checked by `verify` against an intruder with the store and
//! without the installation's key.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use mainspring_cli::runner::executors;
use mainspring_engine::{
    Engine, EngineOptions, EngineScope,
    data_dir::DataDir,
    erasure::erase,
    evaluator::InProcess,
    journal_loader::Loader,
    quarantine::{Act, Place},
    receipts::{CheckedReceipt, ReceiptCounts, Signer, Verdict},
    start_request::StartRequest,
};
use mainspring_evidence::{
    Checked, Trust,
    archive::{self, Files},
    signing::SigningKey,
    verify,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    receipt::Via,
    state::ExecutionStatus,
    value::Value,
};
use mainspring_server::services::evidence::{Installation, collect};
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, NewReceipt, Part, PartReceipts, ReadLimit, Store, memory::MemoryStore, sqlite::SqliteStore,
};
use rusqlite::{Connection, params};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];

/// Two calls, of which the second runs twice.
const DEFINITION: &str = r#"
name: NAME
steps:
  - {id: first, type: bash, command: echo said}
  - {id: second, type: bash, command: "exit $((2 - MAINSPRING_ATTEMPT))", retry: {maxAttempts: 2, initialDelayMs: 1, retryOn: [failed]}}
"#;

/// A folder with two ended executions.
struct Stage {
    folder: TempDir,
    one: ExecutionKey,
    other: ExecutionKey,
}

impl Stage {
    fn new() -> Self {
        static MADE: OnceLock<Stage> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let [one, other] = block_on(async {
                let engine = open(folder.path()).await;
                let ran = [run(&engine, "one").await, run(&engine, "other").await];
                engine.drain().await;
                ran
            });
            Self { folder, one, other }
        });
        let folder = tempfile::tempdir().unwrap();
        SqliteStore::copy(&DataDir::new(made.folder.path()).journal(), &DataDir::new(folder.path()).journal()).unwrap();
        Self { folder, one: made.one, other: made.other }
    }

    fn intruder(&self) -> Connection {
        Connection::open(DataDir::new(self.folder.path()).journal()).unwrap()
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&DataDir::new(self.folder.path()).journal()).unwrap())
    }

    fn check(&self, execution: ExecutionKey) -> (ReceiptCounts, Vec<CheckedReceipt>) {
        check(&self.store(), execution)
    }

    #[track_caller]
    fn broken(&self, part: &str) {
        let (counts, _) = self.check(self.one);
        let why = counts.broken.expect("the change is found");
        assert!(why.contains(part), "{why}");
        // Signatures are beside the journal, so the execution itself can continue.
        assert!(Loader::new(self.store(), KEY).verify(self.one).is_ok());
        assert_eq!(self.check(self.other).0.broken, None);
    }

    /// The frames with receipts: first, second, second.
    fn frames(&self, execution: ExecutionKey) -> Vec<u64> {
        self.store().receipt_proofs(execution, 0, 9).unwrap().into_iter().map(|(sequence, _)| sequence).collect()
    }

    fn proof(&self, execution: ExecutionKey, place: usize) -> Vec<u8> {
        self.store().receipt_proofs(execution, 0, 9).unwrap().swap_remove(place).1
    }

    fn set_proof(&self, place: usize, proof: Option<&[u8]>) {
        let sql = "UPDATE frames SET receipt_proof = ?3 WHERE execution = ?1 AND sequence = ?2";
        let frame = self.frames(self.one)[place];
        assert_eq!(self.intruder().execute(sql, params![self.one.0, frame as i64, proof]).unwrap(), 1);
    }
}

fn check(store: &Arc<dyn Store>, execution: ExecutionKey) -> (ReceiptCounts, Vec<CheckedReceipt>) {
    let mut all = Vec::new();
    let counts = Loader::new(store.clone(), KEY).receipts(execution, |checked| all.push(checked)).unwrap();
    (counts.expect("it is there"), all)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn open(folder: &Path) -> Engine {
    let options = EngineOptions {
        data_dir: DataDir::new(folder),
        key: KEY,
        scope: EngineScope::All,
        evaluator: Arc::new(InProcess),
        limits: None,
        budgets: None,
        seal_note: None,
        spans: None,
    };
    Engine::open(options, |home, held| executors(Default::default(), home, held)).await.unwrap()
}

async fn run(engine: &Engine, id: &str) -> ExecutionKey {
    let definition = DEFINITION.replace("NAME", id);
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    let request = StartRequest { execution_id: Some(id.into()), ..StartRequest::new(Arc::new(plan), "owner") };
    let key = engine.new_key().unwrap();
    let mut watch = engine.watch(key);
    engine.start_as(key, request).await.unwrap();
    loop {
        match watch.recv().await.expect("it is watched to its end").status {
            ExecutionStatus::Running => {}
            status => {
                assert_eq!(status, ExecutionStatus::Completed);
                return key;
            }
        }
    }
}

#[test]
fn every_receipt_is_signed_by_a_known_executor_key() {
    let stage = Stage::new();
    let (counts, all) = stage.check(stage.one);
    assert_eq!((counts.proven, counts.unsigned, &counts.broken, counts.executors.len()), (3, 0, &None, 1));
    let seen: Vec<_> = all.iter().map(|one| (&*one.receipt.step, one.receipt.attempt, one.receipt.status)).collect();
    assert_eq!(seen, [("first", 1, "done"), ("second", 1, "failed"), ("second", 2, "done")]);
    assert!(all.iter().all(|one| one.receipt.intent.is_some() && one.receipt.effect == "bash"));
    let value = all[0].to_value();
    assert_eq!(value.get("signature").and_then(Value::as_text), Some("verified"));
    let key = value.get("executor").and_then(|executor| executor.get("key")).and_then(Value::as_text).unwrap();
    assert!(counts.executors.values().all(|known| known.key.id() == key && known.release == env!("CARGO_PKG_VERSION")));
}

/// The bytes of the store are not signed with the key that is in it.
#[test]
fn the_secret_part_of_an_executor_key_is_nowhere_in_the_folder() {
    let stage = Stage::new();
    let names: Vec<_> =
        std::fs::read_dir(stage.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_string_lossy().starts_with("journal.db")), "{names:?}");
    let stored = stage.store().executor_keys(None, 9).unwrap();
    assert_eq!(stored.len(), 1);
    // Public key, name, release, time, signature, with the heads of six items.
    assert!(stored[0].certificate.len() < 32 + 64 + 16 + 300);
}

#[test]
fn a_removed_signature_is_found() {
    let stage = Stage::new();
    stage.set_proof(1, None);
    stage.broken("its signature is missing");
    // All of them, with the keys: the version in the sealed first frame says that there were some.
    let intruder = stage.intruder();
    intruder.execute("UPDATE frames SET receipt_proof = NULL WHERE execution = ?1", params![stage.one.0]).unwrap();
    stage.broken("its signature is missing");
}

#[test]
fn a_change_of_any_byte_of_a_signature_is_found() {
    let stage = Stage::new();
    let honest = stage.proof(stage.one, 0);
    let sql = "UPDATE frames SET receipt_proof = ?3 WHERE execution = ?1 AND sequence = ?2";
    let frame = stage.frames(stage.one)[0];
    let (intruder, store) = (stage.intruder(), stage.store());
    for place in 0..honest.len() {
        let mut bytes = honest.clone();
        bytes[place] ^= 1;
        intruder.execute(sql, params![stage.one.0, frame as i64, bytes]).unwrap();
        let (counts, all) = check(&store, stage.one);
        assert!(counts.broken.is_some() && matches!(all[0].verdict, Verdict::Broken(_)), "byte {place}");
    }
}

#[test]
fn a_signature_of_another_receipt_is_found() {
    let stage = Stage::new();
    // The signatures belong to another attempt of the step, to another step, and to another execution.
    for (place, from) in [(1, 2), (0, 1)] {
        stage.set_proof(place, Some(&stage.proof(stage.one, from)));
        stage.broken("it is not the receipt that the executor key");
        let stage = Stage::new();
        stage.set_proof(place, Some(&stage.proof(stage.other, place)));
        stage.broken("it is not the receipt that the executor key");
    }
}

#[test]
fn a_signature_beside_a_frame_without_a_receipt_is_found() {
    let stage = Stage::new();
    let proof = stage.proof(stage.one, 0);
    let sql = "UPDATE frames SET receipt_proof = ?2 WHERE execution = ?1 AND sequence = 0";
    assert_eq!(stage.intruder().execute(sql, params![stage.one.0, proof]).unwrap(), 1);
    stage.broken("frame 0: the receipt of step ``, attempt 0: it has a signature and no receipt");
}

#[test]
fn the_signature_of_an_unknown_executor_is_named() {
    let stage = Stage::new();
    let key = stage.store().executor_keys(None, 1).unwrap().remove(0).id;
    stage.intruder().execute("DELETE FROM executor_keys", []).unwrap();
    let (counts, _) = stage.check(stage.one);
    let why = counts.broken.unwrap();
    assert!(why.contains("no executor key that this installation has certified") && why.contains(&key.hex()), "{why}");
}

/// An intruder signs a receipt with a key of its own, and certifies it with an installation key of its own.
#[test]
fn a_forged_signature_with_a_forged_certificate_is_found() {
    let stage = Stage::new();
    let (_, all) = stage.check(stage.one);
    let store = stage.store();
    let sequence = stage.frames(stage.one)[0];
    let frames = store.frames(stage.one, sequence, ReadLimit::of(1)).unwrap();
    let new = vec![NewReceipt { receipt: all[0].receipt.clone(), late: None }];
    let receipts = PartReceipts { new, ..PartReceipts::default() };
    let sign = |installation: &[u8; 32]| {
        let part = Part { frames: frames.clone(), receipts: receipts.clone(), ..Part::empty(stage.one, 0) };
        let batch = Batch { parts: vec![part], ..Batch::default() };
        Signer::of_seed(&[3; 32], installation, "node", 5).sign(&batch);
        batch.parts[0].receipts.signed.get().unwrap().clone()
    };
    let insert = |installation: &[u8; 32]| {
        let signed = sign(installation);
        let key = signed.key.unwrap();
        let sql = "INSERT OR REPLACE INTO executor_keys VALUES (?1, ?2)";
        stage.intruder().execute(sql, params![key.id.0, &key.certificate[..]]).unwrap();
        stage.set_proof(0, Some(&signed.proofs[0]));
    };
    insert(&[9; 32]);
    stage.broken("no executor key that this installation has certified");
    // With the installation's key, the same is a known executor.
    insert(&KEY);
    assert_eq!(stage.check(stage.one).0.broken, None);
}

/// Receipts of older executions have no signature, and the first signed one ends that.
#[test]
fn receipts_from_before_signatures_are_counted() {
    let stage = Stage::new();
    let store = stage.store();
    let frames = store.frames(stage.one, 0, ReadLimit::of(99)).unwrap();
    let row = store.execution(stage.one).unwrap().unwrap();
    // The same journal, as a node of an older release has started it.
    let older = MemoryStore::new();
    let (mut before, mut written) = (Hash::default(), Vec::new());
    for stored in &frames {
        let (mut frame, _) = Frame::read(stored).unwrap();
        frame.before = before;
        if let Some(mainspring_kernel::record::Record::Started { decide_version, .. }) = frame.records.first_mut() {
            *decide_version = 8;
        }
        let (stored, hash) = frame.store(&|_| [0; 16]);
        before = hash;
        written.push((stored, matches!(frame.input, Input::Receipt { .. })));
    }
    let count = written.iter().filter(|(_, is_receipt)| *is_receipt).count() as u64;
    let head = mainspring_kernel::stored_frame::Head::sealed(&KEY, stage.one, frames.len() as u64 - 1, before);
    let plans =
        vec![mainspring_store::StoredPlan { hash: row.plan_hash, bytes: store.plan(row.plan_hash).unwrap().unwrap() }];
    let frames = written.into_iter().map(|(stored, _)| stored).collect();
    let part = Part { frames, head, row: Some(row), plans, ..Part::empty(stage.one, 0) };
    let fences = vec![mainspring_store::Fence { partition: 0, epoch: older.claim(0, "test").unwrap() }];
    older.commit(&Batch { fences, parts: vec![part], sealing: KEY }).unwrap();
    let older: Arc<dyn Store> = Arc::new(older);
    let (counts, _) = check(&older, stage.one);
    assert_eq!((counts.proven, counts.unsigned, counts.broken), (0, count, None));
}

/// The payload hash covers salted hashes of values, and the values go.
#[test]
fn an_erased_value_leaves_the_signature_valid() {
    let stage = Stage::new();
    let store = stage.store();
    let loader = Loader::new(store.clone(), KEY);
    let act = Act { key: &KEY, by: "ada", reason: "a request", audit: &[] };
    assert!(erase(Place { store: &*store, loader: &loader, data_dir: None }, stage.one, &[], &act).unwrap() > 0);
    let (counts, _) = check(&store, stage.one);
    assert_eq!((counts.proven, counts.broken), (3, None));
}

/// The late receipt of an execution is in its archive, and both verifiers find what is changed there, although the list of
/// files is signed again.
fn check_in_archive(store: &Arc<dyn Store>, execution: ExecutionKey) {
    let (loader, signing) = (Loader::new(store.clone(), KEY), SigningKey::of_installation(&KEY));
    let rows = [store.execution(execution).unwrap().unwrap()];
    let collected = collect(Installation { store: &**store, loader: &loader, signing: &signing }, &rows).unwrap();
    assert_eq!(collected.broken, []);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evidence.tar");
    std::fs::write(folder.path().join("key.pem"), signing.public().pem()).unwrap();
    let verified = |files: &Files| {
        let mut bytes = Vec::new();
        archive::write(files, &signing, &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let mut python = std::process::Command::new("python3");
        python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py"));
        let script = python.arg(&path).arg(folder.path().join("key.pem")).output().unwrap();
        let checked = verify(&bytes, Trust::Given(signing.public()));
        let is_proven = checked.as_ref().is_ok_and(Checked::is_proven);
        assert_eq!(is_proven, script.status.success(), "{checked:?} {script:?}");
        checked.map(|checked| (is_proven, checked.executions[0].late_receipts, checked.executions[0].signed_receipts))
    };
    assert_eq!(verified(&collected.files), Ok((true, 1, 4)));
    let name = format!("executions/{execution}/late-receipts.ndjson");
    let text = String::from_utf8(collected.files[&name].clone()).unwrap();
    let line = mainspring_kernel::json::value(text.trim().as_bytes()).unwrap();
    let part = |key: &str| mainspring_kernel::json::canonical(line.get(key).unwrap());
    let other = {
        let instance = mainspring_kernel::instance::Instance::of_step(0);
        let input = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done("forged".into()) };
        format!("\"{}\"", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, input.encode()))
    };
    for (from, to) in [
        (part("body"), other),
        (part("atMs"), "1".to_owned()),
        (part("proof"), "null".to_owned()),
        (part("envelope"), "\"AAAA\"".to_owned()),
        ("\"number\":0".to_owned(), "\"number\":1".to_owned()),
        ("\"status\":\"done\"".to_owned(), "\"status\":\"failed\"".to_owned()),
        (text.clone(), format!("{text}{text}")),
    ] {
        let changed = text.replacen(&from, &to, 1);
        assert_ne!(changed, text, "{from}");
        let mut files = collected.files.clone();
        files.insert(name.clone(), changed.into_bytes());
        assert!(verified(&files).is_err(), "{from} became {to}");
    }
}

/// A receipt for an attempt that has ended arrives through the inbox: it is stored beside the journal and signed there.
#[test]
fn a_late_receipt_is_signed_and_erased_with_its_signature() {
    let folder = tempfile::tempdir().unwrap();
    let execution = block_on(async {
        let engine = open(folder.path()).await;
        let execution = run(&engine, "one").await;
        let instance = mainspring_kernel::instance::Instance::of_step(0);
        let receipt = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done("again".into()) };
        engine.enqueue(execution, &receipt, None).unwrap();
        let arrived = async {
            while engine.store().late_receipts(execution).unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(120), arrived).await.expect("it arrives");
        engine.drain().await;
        execution
    });
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&DataDir::new(folder.path()).journal()).unwrap());
    let (counts, all) = check(&store, execution);
    assert_eq!((counts.proven, counts.broken), (4, None));
    let late = &all[3].receipt;
    assert_eq!((&*late.step, late.attempt, late.via, late.frame, late.intent), ("first", 1, Via::Inbox, None, None));
    check_in_archive(&store, execution);
    let intruder = Connection::open(DataDir::new(folder.path()).journal()).unwrap();
    // Another time, another outcome.
    let body = Input::decode(&store.late_receipts(execution).unwrap()[0].body).unwrap();
    let Input::Receipt { instance, attempt, .. } = body else { panic!("a receipt") };
    let other = Input::Receipt { instance, attempt, outcome: Outcome::Done("forged".into()) }.encode();
    intruder.execute("UPDATE late_receipts SET at = at + 1", []).unwrap();
    assert!(check(&store, execution).0.broken.is_some_and(|why| why.contains("a late receipt")));
    intruder.execute("UPDATE late_receipts SET at = at - 1, body = ?1", [other]).unwrap();
    assert!(check(&store, execution).0.broken.is_some_and(|why| why.contains("a late receipt")));
    // A late receipt with a proof that is none, and one whose content is none, are broken and not left out.
    let honest = store.late_receipts(execution).unwrap().remove(0);
    for (body, proof, part) in [
        (&honest.body[..], &b"garbage"[..], "its signature cannot be read"),
        (b"garbage", honest.proof.as_deref().unwrap(), "its content cannot be decoded"),
        (
            b"\x84\x01\x81\x00\x02\xff",
            b"garbage",
            "the receipt of step `first`, attempt 2: its content cannot be decoded",
        ),
        (&Input::Admit.encode(), b"garbage", "it is not the receipt of a step"),
    ] {
        intruder.execute("UPDATE late_receipts SET body = ?1, receipt_proof = ?2", [body, proof]).unwrap();
        let (counts, all) = check(&store, execution);
        assert_eq!((counts.proven, counts.unsigned, all.len()), (3, 0, 4), "{part}");
        assert!(counts.broken.as_ref().is_some_and(|why| why.contains(part)), "{part}: {counts:?}");
        assert_eq!(all[3].to_value().get("signature").and_then(Value::as_text), Some("broken"));
    }
    let (body, proof) = (honest.body.clone(), honest.proof.clone().unwrap());
    intruder.execute("UPDATE late_receipts SET body = ?1, receipt_proof = ?2", [body, proof]).unwrap();
    intruder.execute("UPDATE late_receipts SET receipt_proof = NULL", []).unwrap();
    assert!(check(&store, execution).0.broken.is_some_and(|why| why.contains("its signature is missing")));
    let loader = Loader::new(store.clone(), KEY);
    let act = Act { key: &KEY, by: "ada", reason: "a request", audit: &[] };
    erase(Place { store: &*store, loader: &loader, data_dir: None }, execution, &[], &act).unwrap();
    assert_eq!(check(&store, execution).0.broken, None);
}
