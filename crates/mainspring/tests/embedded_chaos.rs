//! Chaos test of one server on an embedded store: it is killed, other programs open its store, files of the store
//! are removed, and backups are restored. Acknowledged executions stay, every execution ends, and no attempt runs
//! twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mainspring_engine::{journal_loader::Loader, keys};
use mainspring_kernel::{
    effect::Outcome,
    input::Input,
    instance::Instance,
    json::compact,
    record::Record,
    state::State,
    value::{Map, Value},
};
use mainspring_store::prelude::*;
use mainspring_store::{Filter, sqlite::SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

#[path = "server/client.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod client;
#[path = "server/process.rs"]
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod process;
mod support;

use client::Client;
use process::Server;

/// A timeout longer than any step of the test takes on the busiest machine.
const BOUND: Duration = Duration::from_secs(120);

/// The polling interval.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Faults in a test run, which takes less than fifteen seconds.
const FAULTS_OF_A_TEST: usize = 16;

/// Executions that are started around each fault.
const STARTS_AT_A_TIME: u64 = 8;

/// Each attempt appends its number to the file of its step. Interrupted attempts are retried.
const RETRIED: &str = r#"
variables: {folder: {type: string}}
steps:
  - {id: a, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo "$MAINSPRING_ATTEMPT" >> "$FOLDER/$MAINSPRING_INTENT"; sleep 0.05', onInterrupted: retry, retry: {maxAttempts: 99, initialDelayMs: 0}}
  - {id: b, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo "$MAINSPRING_ATTEMPT" >> "$FOLDER/$MAINSPRING_INTENT"', onInterrupted: retry, retry: {maxAttempts: 99, initialDelayMs: 0}}
"#;

/// Like the other definition, but an interrupted attempt fails the step.
const ONCE: &str = r#"
variables: {folder: {type: string}}
steps:
  - {id: pay, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo "$MAINSPRING_ATTEMPT" >> "$FOLDER/$MAINSPRING_INTENT"; sleep 0.4', onInterrupted: fail}
"#;

/// A fault of the server or its store.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Stop,
    /// Another program opens the store for writing and closes it. SQLite removes the WAL if no other process uses
    /// the store.
    OtherProgram,
    /// The same between two runs of the server.
    OtherProgramAfterKill,
    LogRemoved,
    IndexRemoved,
    LogAndIndexRemoved,
    BackUp,
    Restore,
    RestoreAfterKill,
}

const FAULTS: [Fault; 11] = [
    Fault::Kill,
    Fault::BackUp,
    Fault::OtherProgram,
    Fault::Restore,
    Fault::LogRemoved,
    Fault::OtherProgramAfterKill,
    Fault::BackUp,
    Fault::RestoreAfterKill,
    Fault::IndexRemoved,
    Fault::Stop,
    Fault::LogAndIndexRemoved,
];

/// An attempt: the intent of its step, and its number.
type Attempt = (String, u32);

/// The contents of all journals of a store.
#[derive(Debug, Default)]
struct Journals {
    /// Execution ids; true if the execution has ended.
    executions: BTreeMap<String, bool>,
    /// Started attempts with their receipts.
    attempts: BTreeMap<Attempt, Option<Outcome>>,
}

/// The journals before and after the restore of a backup.
struct Restored {
    before: Journals,
    after: Journals,
}

/// A backup, and the executions that were acknowledged before it started.
struct Backup {
    file: PathBuf,
    acknowledged: BTreeSet<String>,
}

struct Chaos {
    folder: TempDir,
    server: Option<Server>,
    token: String,
    dice: u64,
    requests: u64,
    acknowledged: BTreeSet<String>,
    backup: Option<Backup>,
    restored: Vec<Restored>,
}

/// A client that starts executions until all are started or the server has exited.
struct Load {
    starts: mpsc::Receiver<String>,
    thread: JoinHandle<()>,
}

impl Load {
    fn on(client: Client, requests: std::ops::Range<u64>, marks: &Path) -> Self {
        let (said, starts) = mpsc::channel();
        let marks = marks.to_str().unwrap().to_owned();
        let thread = thread::spawn(move || {
            for number in requests {
                let workflow = if number % 4 == 0 { "once" } else { "retried" };
                let variables = Map::from([("folder".to_owned(), Value::from(marks.as_str()))]);
                let body = Value::map([
                    ("workflowId", Value::from(workflow)),
                    ("clientRequestId", format!("r{number}").into()),
                    ("variables", variables.into()),
                ]);
                let reply = client.try_send("POST", "/api/triggers/manual/run", &[], Some(&compact(&body)));
                match reply {
                    Ok(reply) if reply.status == 202 => drop(said.send(reply.text_at("executionId"))),
                    // The server is about to stop.
                    Ok(reply) => return assert_eq!(reply.status, 503, "{reply:?}"),
                    Err(_) => return,
                }
            }
        });
        Self { starts, thread }
    }
}

impl Chaos {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("marks")).unwrap();
        let server = start(folder.path());
        let (owner, token) = (server.owner(), server.token.clone().unwrap());
        for (id, text) in [("retried", RETRIED), ("once", ONCE)] {
            let body = Value::map([("id", Value::from(id)), ("data", support::yaml(text))]);
            owner.post("/api/workflows/sync", &body).expect(200);
        }
        let (server, backup, restored) = (Some(server), None, Vec::new());
        Self { folder, server, token, dice: 0x5eed, requests: 0, acknowledged: BTreeSet::new(), backup, restored }
    }

    /// A linear congruential generator (Knuth's MMIX), sufficient for choices.
    fn below(&mut self, bound: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) as usize % bound
    }

    fn marks(&self) -> PathBuf {
        self.folder.path().join("marks")
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("data/journal.db{ending}"))
    }

    fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    /// Injects a fault while executions are started and run.
    fn round(&mut self, fault: Fault) {
        let client = self.server.as_ref().unwrap().client(&self.token);
        let requests = self.requests..self.requests + STARTS_AT_A_TIME;
        self.requests = requests.end;
        let begun = count(&self.marks());
        let load = Load::on(client, requests, &self.marks());
        for _ in 0..self.below(STARTS_AT_A_TIME as usize) {
            self.acknowledged.extend(load.starts.recv_timeout(BOUND));
        }
        let more = 1 + self.below(3);
        wait("a step", || count(&self.marks()) >= begun + more);
        self.inject(fault, &load);
        load.thread.join().unwrap();
        self.acknowledged.extend(load.starts.try_iter());
        if self.server.is_none() {
            self.start();
        }
    }

    fn inject(&mut self, fault: Fault, load: &Load) {
        match fault {
            Fault::Kill => self.kill(),
            Fault::Stop => self.stop(),
            Fault::OtherProgram => {
                self.open_as_another_program();
                assert!(self.file("-wal").exists(), "another program has removed the log of a running server");
            }
            Fault::OtherProgramAfterKill => {
                self.kill();
                self.open_as_another_program();
            }
            Fault::LogRemoved => self.remove(&["-wal"]),
            Fault::IndexRemoved => self.remove(&["-shm"]),
            Fault::LogAndIndexRemoved => self.remove(&["-wal", "-shm"]),
            Fault::BackUp => {
                self.acknowledged.extend(load.starts.try_iter());
                self.back_up();
            }
            Fault::Restore => {
                self.stop();
                self.restore(load);
            }
            Fault::RestoreAfterKill => {
                self.kill();
                self.restore(load);
            }
        }
    }

    fn kill(&mut self) {
        self.server().kill();
        self.server = None;
    }

    fn stop(&mut self) {
        assert_eq!(self.server().stop(), Some(0));
        self.server = None;
    }

    fn open_as_another_program(&self) {
        let connection = Connection::open(self.file("")).unwrap();
        connection.query_row("SELECT count(*) FROM frames", [], |_| Ok(())).unwrap();
        connection.close().unwrap();
    }

    /// Removes files of the running store. The server must stop before it acknowledges anything that could be lost.
    fn remove(&mut self, endings: &[&str]) {
        for ending in endings {
            fs::remove_file(self.file(ending)).unwrap();
        }
        let exit = self.server().ended(BOUND);
        assert!(exit.is_some_and(|exit| exit != 0), "{endings:?} were removed: {exit:?}");
        self.server = None;
    }

    fn back_up(&mut self) {
        let (file, acknowledged) = (self.folder.path().join("backup.db"), self.acknowledged.clone());
        let mut command = Command::new(support::MAINSPRING);
        command.args(["backup", "--force", "--dir"]).arg(self.folder.path().join("data")).arg(&file);
        let output = command.env("HOME", self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.backup = Some(Backup { file, acknowledged });
    }

    /// Replaces the store by the backup, as documented. Later executions are lost.
    fn restore(&mut self, load: &Load) {
        let Backup { file, acknowledged } = self.backup.as_ref().expect("a backup comes before");
        let (file, acknowledged) = (file.clone(), acknowledged.clone());
        let before = self.journals(&self.file(""));
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.file(ending));
        }
        fs::copy(&file, self.file("")).unwrap();
        // Without its marks the audit log does not count as truncated, which would be reported after every start.
        fs::remove_dir_all(self.folder.path().join(".config/mainspring/audit-heads")).unwrap();
        let after = self.journals(&file);
        let lost: Vec<_> = acknowledged.iter().filter(|id| !after.executions.contains_key(*id)).collect();
        assert!(lost.is_empty(), "acknowledged before the backup was begun, and not in it: {lost:?}");
        self.acknowledged.extend(load.starts.try_iter());
        self.acknowledged.retain(|id| after.executions.contains_key(id));
        self.restored.push(Restored { before, after });
    }

    /// Restarts the server, and checks that acknowledged executions exist.
    fn start(&mut self) {
        self.server = Some(start(self.folder.path()));
        let executions = self.executions();
        let lost: Vec<_> = self.acknowledged.iter().filter(|id| !executions.contains_key(*id)).collect();
        assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    }

    /// The ids of all executions; true if the execution has ended.
    fn executions(&self) -> BTreeMap<String, bool> {
        let store = SqliteStore::open_read_only(&self.file("")).unwrap();
        let rows = store.executions(&Filter::default(), None, usize::MAX).unwrap();
        rows.into_iter().map(|row| (row.id, row.completed_at.is_some())).collect()
    }

    /// Reads and verifies all journals of a store.
    fn journals(&self, file: &Path) -> Journals {
        let store = Arc::new(SqliteStore::open_read_only(file).unwrap());
        let rows = store.executions(&Filter::default(), None, usize::MAX).unwrap();
        let key = keys::load_or_create(&self.folder.path().join(".config/mainspring/key")).unwrap();
        let loader = Loader::new(store, key);
        let mut journals = Journals::default();
        for row in rows {
            loader.verify(row.key).unwrap_or_else(|why| panic!("{}: {why}", row.id)).unwrap();
            let intent = |state: &State, instance: &Instance| state.steps[instance].intent.unwrap().hex();
            let read = loader.frames(row.key, |state, frame| {
                if let Input::Receipt { instance, attempt, outcome } = &frame.input {
                    journals.attempts.insert((intent(state, instance), *attempt), Some(outcome.clone()));
                }
                for record in &frame.records {
                    if let Record::AttemptStarted { instance, attempt, .. } = record {
                        journals.attempts.insert((intent(state, instance), *attempt), None);
                    }
                }
            });
            read.unwrap().unwrap();
            journals.executions.insert(row.id, row.completed_at.is_some());
        }
        journals
    }

    /// Waits until all executions have ended, and compares the files of the steps with the journals. Returns the
    /// number of attempts that were open in restored backups.
    fn check(&mut self) -> usize {
        wait("the end of every execution", || self.executions().values().all(|has_ended| *has_ended));
        self.stop();
        let journals = self.journals(&self.file(""));
        let marks = marks(&self.marks());
        for (attempt, times) in &marks {
            // An attempt that the backup does not contain may run once more after the restore.
            let forgotten = |restored: &&Restored| {
                restored.before.attempts.contains_key(attempt) && !restored.after.attempts.contains_key(attempt)
            };
            let allowed = 1 + self.restored.iter().filter(forgotten).count();
            assert!(*times <= allowed, "{attempt:?} ran {times} times, and may {allowed} times");
            let is_known = |journals: &Journals| journals.attempts.contains_key(attempt);
            let was_known = self.restored.iter().any(|restored| is_known(&restored.before));
            assert!(is_known(&journals) || was_known, "{attempt:?} ran and is in no journal");
        }
        for (attempt, outcome) in &journals.attempts {
            assert!(outcome.is_some(), "{attempt:?} is open at the end");
            let has_result = matches!(outcome, Some(Outcome::Done(_)));
            assert!(!has_result || marks.contains_key(attempt), "{attempt:?} has a result and never ran");
        }
        let open = |restored: &Restored| restored.after.attempts.values().filter(|outcome| outcome.is_none()).count();
        self.restored.iter().map(open).sum()
    }
}

fn start(folder: &Path) -> Server {
    Server::start_as(folder, "data", &["--scripts", "uncontained"], &[])
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + BOUND;
    while !is_so() {
        assert!(Instant::now() < until, "{what} takes too long");
        thread::park_timeout(LOOK_AGAIN);
    }
}

/// Counts the started steps.
fn count(marks: &Path) -> usize {
    fs::read_dir(marks).unwrap().count()
}

/// Counts the runs of each attempt.
fn marks(folder: &Path) -> BTreeMap<Attempt, usize> {
    let mut marks = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let intent = name.rsplit(':').next().unwrap();
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            *marks.entry((intent.to_owned(), line.parse().unwrap())).or_default() += 1;
        }
    }
    marks
}

/// Injects all faults in turn, at times drawn from a seed: a fixed number in a test run, or for
/// `MAINSPRING_CHAOS_SECONDS` under `cargo xtask chaos`.
#[test]
fn acknowledged_work_survives_all_faults_of_an_embedded_store() {
    let seconds = std::env::var("MAINSPRING_CHAOS_SECONDS").ok().map(|text| text.parse().expect("seconds"));
    let duration = seconds.map(Duration::from_secs);
    let (mut chaos, began) = (Chaos::new(), Instant::now());
    for number in 0.. {
        if duration.map_or(number == FAULTS_OF_A_TEST, |duration| began.elapsed() >= duration) {
            break;
        }
        chaos.round(FAULTS[number % FAULTS.len()]);
    }
    let open = chaos.check();
    let restored = chaos.restored.len();
    println!(
        "{} executions of {} acknowledged in {:?}; {restored} backups put back, {open} attempts open in them",
        chaos.acknowledged.len(),
        chaos.requests,
        began.elapsed()
    );
    assert!(open > 0 || restored == 0, "no backup was made amid an attempt");
}
