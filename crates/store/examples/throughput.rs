//! Measures the durable frames per second of a store. Prints JSON lines: one for each group of executions, and one for
//! the whole.
//!
//! Each execution is four commits of one frame (250 bytes, and a value of 60), with the insertion of a row in the
//! catalogue and its final update, like a short workflow. Arguments, all optional: the folder of a new SQLite store or
//! the address of a PostgreSQL one (in a separate schema), executions per batch, total executions. `server` instead of
//! an address starts a PostgreSQL for it, with fsync. A fourth argument `unsigned` leaves out the signatures of receipts.
//!
//! `cargo run --release -p mainspring-store --example throughput -- FOLDER 256 100000`
//!
//! `cargo run --release -p mainspring-store --example throughput --features postgres-server -- server 256 100000`

use std::{path::Path, sync::OnceLock, time::Instant};

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    receipt::{Receipt, Via},
    stored_frame::{Head, StoredFrame, StoredValue},
};
use mainspring_store::{
    Batch, ExecutionRow, Expected, Fence, NewReceipt, Part, PartOutcome, PartReceipts, RowChange, Signed, StartNames,
    Store, sqlite::SqliteStore,
};

const COMMITS_PER_EXECUTION: u64 = 4;
const PARTITIONS: u64 = 16;
const LINES_MAX: u64 = 10;
/// Any time is suitable: only the order of the keys matters.
const BEGAN_AT_MS: u64 = 1_800_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let per_batch: u64 = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let executions: u64 = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let is_signed = arguments.next().is_none();
    #[cfg(feature = "postgres-server")]
    if place == "server" {
        let server = mainspring_store::postgres::server::Server::start(Default::default())?;
        return measure(&*open(&server.address(""))?, per_batch, executions, is_signed);
    }
    measure(&*open(&place)?, per_batch, executions, is_signed)
}

fn open(place: &str) -> Result<Box<dyn Store>, Box<dyn std::error::Error>> {
    #[cfg(feature = "postgres")]
    if place.starts_with("postgres") {
        return Ok(Box::new(mainspring_store::postgres::PostgresStore::open(place)?));
    }
    let path = Path::new(place).join("throughput.db");
    if path.exists() {
        return Err(format!("{} exists: remove it or name another folder", path.display()).into());
    }
    Ok(Box::new(SqliteStore::open(&path)?))
}

fn measure(
    store: &dyn Store,
    per_batch: u64,
    executions: u64,
    is_signed: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut fences = Vec::new();
    for partition in 0..PARTITIONS as u32 {
        fences.push(Fence { partition, epoch: store.claim(partition, "throughput")? });
    }
    let batches = executions.div_ceil(per_batch);
    let per_line = batches.div_ceil(LINES_MAX);
    let (began, mut line_began) = (Instant::now(), Instant::now());
    let (mut slowest, mut line_slowest) = (0.0f64, 0.0f64);
    for number in 0..batches {
        for sequence in 0..COMMITS_PER_EXECUTION {
            let parts = (0..per_batch).map(|index| part(number * per_batch + index, sequence, is_signed)).collect();
            let batch = Batch { fences: fences.clone(), parts, ..Batch::default() };
            let sent = Instant::now();
            let answers = store.commit(&batch)?;
            line_slowest = line_slowest.max(sent.elapsed().as_secs_f64());
            assert!(answers.iter().all(|answer| *answer == PartOutcome::Durable), "{answers:?}");
        }
        slowest = slowest.max(line_slowest);
        if (number + 1).is_multiple_of(per_line) {
            print("part", per_line, per_batch, line_began.elapsed().as_secs_f64(), line_slowest);
            (line_began, line_slowest) = (Instant::now(), 0.0);
        }
    }
    print("whole", batches, per_batch, began.elapsed().as_secs_f64(), slowest);
    Ok(())
}

fn print(line: &str, batches: u64, per_batch: u64, seconds: f64, slowest: f64) {
    let executions = (batches * per_batch) as f64 / seconds;
    println!(
        r#"{{"line":"{line}","executionsPerBatch":{per_batch},"framesPerSecond":{:.0},"executionsPerSecond":{executions:.0},"commitsPerSecond":{:.0},"slowestCommitMs":{:.1}}}"#,
        executions * COMMITS_PER_EXECUTION as f64,
        (batches * COMMITS_PER_EXECUTION) as f64 / seconds,
        slowest * 1000.0
    );
}

fn part(number: u64, sequence: u64, is_signed: bool) -> Part {
    let entropy = Hash::of(&number.to_be_bytes()).0;
    let execution = ExecutionKey::new(BEGAN_AT_MS + number / 32, entropy[..10].try_into().expect("a hash is longer"));
    let hash = |sequence: u64| Hash::of_parts(&[&execution.0, &sequence.to_be_bytes()]);
    let value = StoredValue { salt: entropy[..16].try_into().expect("a hash is longer"), body: Some(vec![7; 60]) };
    let is_last = sequence + 1 == COMMITS_PER_EXECUTION;
    let signed = Signed { proofs: vec![vec![7; 240]], key: None };
    let receipt = NewReceipt { receipt: receipt(execution, (sequence, hash(sequence))), late: None };
    let receipts = PartReceipts { late: Vec::new(), new: vec![receipt], account: None, signed: OnceLock::from(signed) };
    Part {
        execution,
        partition: (number % PARTITIONS) as u32,
        expected: sequence.checked_sub(1).map(|sequence| Expected { sequence, hash: hash(sequence) }),
        frames: vec![StoredFrame { sequence, frame: vec![1; 250], values: vec![value] }],
        head: Head { sequence, hash: hash(sequence), seal: hash(sequence) },
        wake_at: (!is_last).then_some(0),
        row: (sequence == 0).then(|| row(execution)),
        change: is_last.then(|| RowChange {
            definition: None,
            status: "completed".into(),
            outcome: None,
            error: None,
            completed_at: Some(BEGAN_AT_MS),
            usage: None,
        }),
        plans: Vec::new(),
        consumed: Vec::new(),
        messages: Vec::new(),
        receipts: if is_signed && sequence > 0 { receipts } else { PartReceipts::default() },
        audit: Vec::new(),
        gates_closed: Vec::new(),
        gates_opened: Vec::new(),
    }
}

fn receipt(execution: ExecutionKey, frame: (u64, Hash)) -> Receipt {
    Receipt {
        execution,
        workflow_hash: Hash::of(b"definition"),
        plan_hash: Hash::of(b"plan"),
        step: "step".into(),
        attempt: 1,
        intent: None,
        effect: "bash".into(),
        status: "done",
        via: Via::Executor,
        at: BEGAN_AT_MS,
        frame: Some(frame),
    }
}

fn row(key: ExecutionKey) -> ExecutionRow {
    ExecutionRow {
        key,
        id: key.to_string(),
        workflow: Some("throughput".into()),
        workflow_version: Some("1".into()),
        workflow_hash: Hash::of(b"definition").prefixed(),
        plan_hash: Hash::of(b"plan"),
        status: "running".into(),
        outcome: None,
        error: None,
        trigger_type: "manual".into(),
        initiator_type: "manual".into(),
        initiator_user_id: Some("user".into()),
        idempotency_key: None,
        session_id: None,
        partition: 0,
        attempt_count: 1,
        started_at: BEGAN_AT_MS,
        completed_at: None,
        organization: None,
        workflow_id: None,
        trigger_id: None,
        parent: None,
        names: StartNames::default(),
        usage: None,
    }
}
