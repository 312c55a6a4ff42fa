//! Nodes on a real PostgreSQL: they are killed, stopped, suspended, and their server dies. Every execution ends,
//! and a step runs at most as often as its journal has attempts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use mainspring_engine::{EngineError, inbox, journal_loader::Loader, start_request::StartRequest};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    input::Input,
    json,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    value::{Map, Value},
};
use mainspring_store::postgres::{
    PostgresStore,
    server::{Options, Server},
};
use mainspring_store::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

mod support;
use support::TestDir;

/// A timeout longer than any step of the tests takes on the busiest machine.
const BOUND: Duration = Duration::from_secs(120);

const PARTITIONS: usize = 64;

const DEFINITION: &str = r#"
name: marks
variables: {folder: {type: string}}
steps:
  - {id: a, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"; sleep 0.2', onInterrupted: retry, retry: {maxAttempts: 9, initialDelayMs: 0}}
  - {id: b, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"; sleep 0.2', onInterrupted: retry, retry: {maxAttempts: 9, initialDelayMs: 0}}
  - {id: c, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"; sleep 0.2', onInterrupted: retry, retry: {maxAttempts: 9, initialDelayMs: 0}}
"#;

/// The first step runs until the file `go` exists. It creates the file `stopped` if it is terminated.
const HELD_UP: &str = r#"
name: held up
variables: {folder: {type: string}}
steps:
  - {id: a, type: bash, env: {FOLDER: "@vars.folder"}, command: 'trap "touch $FOLDER/../stopped; exit 1" TERM; echo >> "$FOLDER/$MAINSPRING_INTENT"; until [ -e "$FOLDER/../go" ]; do sleep 0.1; done', onInterrupted: retry, retry: {maxAttempts: 9, initialDelayMs: 0}}
  # The address of the store may have its password in it.
  - {id: b, type: bash, env: {FOLDER: "@vars.folder"}, command: '[ -z "$MAINSPRING_STORE" ] && echo >> "$FOLDER/$MAINSPRING_INTENT"'}
  - {id: c, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"'}
"#;

/// Sleeps for two seconds.
const SLEEPS: &str = "name: sleeps\nsteps:\n  - {id: s, type: sleep, durationMs: 2000}\n";

/// A running node, and the number of its partitions by its output.
struct Node {
    process: Child,
    held: Arc<(Mutex<usize>, Condvar)>,
}

impl Node {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits until the number of its partitions satisfies the condition.
    fn wait_until(&self, is_so: impl Fn(usize) -> bool) {
        let (held, changed) = &*self.held;
        let guard = held.lock().unwrap();
        let (guard, timeout) = changed.wait_timeout_while(guard, BOUND, |held| !is_so(*held)).unwrap();
        assert!(!timeout.timed_out(), "the node holds {guard}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A database server, its store, and nodes on it.
struct Fleet {
    dir: TestDir,
    server: Server,
    store: Arc<PostgresStore>,
    plan: Arc<Plan>,
    nodes: u32,
}

impl Fleet {
    fn new() -> Self {
        Self::of(DEFINITION)
    }

    fn of(definition: &str) -> Self {
        let server = Server::start(Options { fsync: false, ..Options::default() });
        Self::on(server.unwrap_or_else(|why| panic!("{why}")), definition)
    }

    fn on(server: Server, definition: &str) -> Self {
        let store = Arc::new(PostgresStore::open(&server.address("")).unwrap());
        let plan = Arc::new(compile(&read(definition.as_bytes(), Syntax::Yaml).unwrap()).unwrap().plan);
        let dir = TestDir::new();
        fs::create_dir(dir.root().join("marks")).unwrap();
        Self { dir, server, store, plan, nodes: 0 }
    }

    fn marks(&self) -> PathBuf {
        self.dir.root().join("marks")
    }

    fn node(&mut self) -> Node {
        self.nodes += 1;
        let folder = self.dir.root().join(format!("node-{}", self.nodes));
        let mut command = self.dir.mainspring(&["node", "--json", "--lease-seconds", "2", "--dir"]);
        command.arg(folder).env("MAINSPRING_STORE", self.server.address("")).env("MAINSPRING_LOG", "error");
        // The scripts write into a folder of the test.
        command.env("MAINSPRING_SCRIPTS", "uncontained");
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let held: Arc<(Mutex<usize>, Condvar)> = Arc::default();
        let said = held.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let value = json::read(line.as_bytes()).unwrap().value;
                let Some(Value::List(partitions)) = value.get("partitions") else { panic!("{line}") };
                *said.0.lock().unwrap() = partitions.len();
                said.1.notify_all();
            }
        });
        Node { process, held }
    }

    fn post(&self, count: usize) -> BTreeSet<ExecutionKey> {
        (0..count).map(|_| self.try_post().unwrap()).collect()
    }

    fn try_post(&self) -> Result<ExecutionKey, EngineError> {
        let folder = self.marks().to_str().unwrap().to_owned();
        let variables = Map::from([("folder".into(), Value::from(folder))]);
        let request = StartRequest { variables, ..StartRequest::new(self.plan.clone(), "me") };
        inbox::enqueue_start(&*self.store, None, request, &self.dir.key())
    }

    /// Waits until a number of attempts have started.
    fn wait_for_marks(&self, count: usize) {
        let began = Instant::now();
        while fs::read_dir(self.marks()).unwrap().count() < count {
            assert!(began.elapsed() < BOUND, "not so many attempts begin");
            std::thread::yield_now();
        }
    }

    /// Waits until a number of executions have a status.
    fn wait_for(&self, executions: &BTreeSet<ExecutionKey>, status: &str, count: usize) {
        let began = Instant::now();
        loop {
            let rows: Vec<_> = executions.iter().map(|key| self.store.execution(*key)).collect();
            let are_so = |row: &Result<Option<_>, _>| matches!(row, Ok(Some(mainspring_store::ExecutionRow { status: found, .. })) if found == status);
            let found = rows.iter().filter(|row| are_so(row)).count();
            if found >= count {
                return;
            }
            assert!(began.elapsed() < BOUND, "{found} of {} are {status}: {rows:?}", executions.len());
            std::thread::yield_now();
        }
    }

    /// Verifies every journal, and checks that every step ran, and at most once per attempt. Returns the number of
    /// repeated attempts.
    fn check(&self, executions: &BTreeSet<ExecutionKey>) -> usize {
        let loader = Loader::new(self.store.clone(), self.dir.key());
        let mut repeated = 0;
        let lines = |path: PathBuf| fs::read_to_string(path).unwrap().lines().count();
        let marks = fs::read_dir(self.marks()).unwrap().map(|entry| entry.unwrap());
        let marks: BTreeMap<String, usize> =
            marks.map(|entry| (hex_of(&entry.file_name()), lines(entry.path()))).collect();
        for execution in executions {
            loader.verify(*execution).unwrap().unwrap();
            let receipts = loader.receipts(*execution, drop).unwrap().unwrap();
            assert!(receipts.proven > 0 && receipts.unsigned == 0 && receipts.broken.is_none(), "{receipts:?}");
            let mut attempts = BTreeMap::new();
            let read = loader.frames(*execution, |state, frame| {
                for record in &frame.records {
                    if let Record::AttemptStarted { instance, .. } = record {
                        let intent = state.steps[instance].intent.unwrap();
                        *attempts.entry(intent.hex()).or_insert(0) += 1;
                    }
                }
            });
            read.unwrap().unwrap();
            assert_eq!(attempts.len(), 3);
            for (intent, tried) in attempts {
                let done = marks.get(&intent).copied().unwrap_or_default();
                assert!((1..=tried).contains(&done), "{execution}: done {done} times and tried {tried} times");
                repeated += tried - 1;
            }
        }
        repeated
    }
}

/// The hexadecimal digits at the end of a file name.
fn hex_of(name: &std::ffi::OsStr) -> String {
    name.to_str().unwrap().rsplit(':').next().unwrap().to_owned()
}

#[test]
fn executions_of_a_killed_node_continue_on_another() {
    let mut fleet = Fleet::new();
    let (first, second) = (fleet.node(), fleet.node());
    first.wait_until(|held| held == PARTITIONS / 2);
    second.wait_until(|held| held == PARTITIONS / 2);
    let executions = fleet.post(24);
    fleet.wait_for(&executions, "running", 12);
    drop(first);
    second.wait_until(|held| held == PARTITIONS);
    fleet.wait_for(&executions, "completed", 24);
    assert!(fleet.check(&executions) > 0, "something was interrupted and done again");
}

#[test]
fn a_suspended_node_starts_nothing_of_other_owners() {
    let mut fleet = Fleet::new();
    let (first, second) = (fleet.node(), fleet.node());
    first.wait_until(|held| held == PARTITIONS / 2);
    let executions = fleet.post(24);
    fleet.wait_for(&executions, "running", 12);
    first.signal(Signal::STOP);
    second.wait_until(|held| held == PARTITIONS);
    first.signal(Signal::CONT);
    fleet.wait_for(&executions, "completed", 24);
    fleet.check(&executions);
    // It gets its share back: it has rejoined with a new incarnation.
    first.wait_until(|held| held == PARTITIONS / 2);
}

/// A row that was inserted into a journal quarantines that execution only.
#[test]
fn a_foreign_frame_quarantines_one_execution_and_the_others_continue() {
    let mut fleet = Fleet::of(SLEEPS);
    let first = fleet.node();
    first.wait_until(|held| held == PARTITIONS);
    let executions = fleet.post(2);
    fleet.wait_for(&executions, "running", 2);
    let [broken, other] = *Vec::from_iter(executions) else { panic!("two were posted") };
    let key: String = broken.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let row = r#"INSERT INTO mainspring.frames (execution, sequence, frame, "values")
        SELECT execution, sequence + 1, frame, "values" FROM mainspring.frames WHERE execution = '\xKEY'
        ORDER BY sequence DESC LIMIT 1"#;
    fleet.server.execute(&row.replace("KEY", &key)).unwrap();
    fleet.wait_for(&[other].into(), "completed", 1);
    fleet.wait_for(&fleet.post(1), "completed", 1);
    let began = Instant::now();
    while fleet.store.head(broken).unwrap().unwrap().quarantined.is_none() {
        assert!(began.elapsed() < BOUND, "it is not quarantined");
        std::thread::yield_now();
    }
    let second = fleet.node();
    second.wait_until(|held| held == PARTITIONS / 2);
    first.wait_until(|held| held == PARTITIONS / 2);
    fleet.wait_for(&fleet.post(4), "completed", 4);
    let rows = [broken, other].map(|execution| fleet.store.execution(execution).unwrap().unwrap().status);
    assert_eq!(rows, ["running", "completed"]);
}

#[test]
fn a_stopped_node_releases_its_partitions_immediately() {
    let mut fleet = Fleet::new();
    let (mut first, second) = (fleet.node(), fleet.node());
    first.wait_until(|held| held == PARTITIONS / 2);
    let executions = fleet.post(8);
    fleet.wait_for(&executions, "running", 4);
    first.signal(Signal::TERM);
    assert_eq!(first.process.wait().unwrap().code(), Some(0));
    let table = fleet.store.cluster_view().unwrap();
    assert_eq!(table.nodes.len(), 1, "it has said that it leaves: {table:?}");
    second.wait_until(|held| held == PARTITIONS);
    fleet.wait_for(&executions, "completed", 8);
    fleet.check(&executions);
}

/// Two nodes that share running executions, all of which started on the first one.
fn joined(executions: usize) -> (Fleet, Node, Node, BTreeSet<ExecutionKey>) {
    let mut fleet = Fleet::of(HELD_UP);
    let first = fleet.node();
    first.wait_until(|held| held == PARTITIONS);
    let executions = fleet.post(executions);
    fleet.wait_for_marks(executions.len());
    let second = fleet.node();
    first.wait_until(|held| held == PARTITIONS / 2);
    second.wait_until(|held| held == PARTITIONS / 2);
    (fleet, first, second, executions)
}

#[test]
fn a_joining_node_gets_partitions_without_interruptions() {
    let (fleet, _first, _second, executions) = joined(40);
    fs::write(fleet.dir.root().join("go"), "").unwrap();
    fleet.wait_for(&executions, "completed", 40);
    assert_eq!(fleet.check(&executions), 0, "nothing was done again");
}

#[test]
fn attempts_on_the_previous_owner_are_stopped_by_a_cancel() {
    let (fleet, _first, _second, executions) = joined(40);
    let cancel = Input::Cancel { by: "me".into(), reason: "enough".into() };
    for execution in &executions {
        inbox::enqueue(&*fleet.store, None, &fleet.dir.key(), (*execution, &cancel), None).unwrap();
    }
    fleet.wait_for(&executions, "cancelled", 40);
    assert!(fleet.dir.root().join("stopped").exists());
}

#[test]
fn attempts_of_a_killed_previous_owner_are_repeated() {
    let (fleet, first, second, executions) = joined(40);
    drop(first);
    second.wait_until(|held| held == PARTITIONS);
    fs::write(fleet.dir.root().join("go"), "").unwrap();
    fleet.wait_for(&executions, "completed", 40);
    assert!(fleet.check(&executions) > 0);
}

#[test]
fn a_database_restart_loses_nothing() {
    let mut fleet = Fleet::new();
    let (first, second) = (fleet.node(), fleet.node());
    first.wait_until(|held| held == PARTITIONS / 2);
    second.wait_until(|held| held == PARTITIONS / 2);
    let executions = fleet.post(24);
    fleet.wait_for(&executions, "running", 12);
    fleet.server.crash().unwrap();
    fleet.server.start_again().unwrap();
    fleet.wait_for(&executions, "completed", 24);
    fleet.check(&executions);
}

/// Like the other definitions, with so much output that tables must grow.
const FILLING: &str = r#"
name: filling
variables: {folder: {type: string}}
steps:
  - {id: a, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"; head -c 30000 /dev/urandom | base64 -w0', onInterrupted: retry, retry: {maxAttempts: 99, initialDelayMs: 0}}
  - {id: b, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"; head -c 30000 /dev/urandom | base64 -w0', onInterrupted: retry, retry: {maxAttempts: 99, initialDelayMs: 0}}
  - {id: c, type: bash, env: {FOLDER: "@vars.folder"}, command: 'echo >> "$FOLDER/$MAINSPRING_INTENT"', onInterrupted: retry, retry: {maxAttempts: 99, initialDelayMs: 0}}
"#;

/// Unmounts on drop.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The database is on a small tmpfs, if the machine permits the mount.
#[test]
fn a_full_database_disk_loses_nothing() {
    let dir = TestDir::new();
    let disk = dir.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&disk).status();
    if !mount.is_ok_and(|status| status.success()) {
        println!("no disk of memory may be mounted here");
        return;
    }
    let _mounted = Mounted(disk.clone());
    let server = Server::start(Options { fsync: false, ..Options::default() }).unwrap();
    server.keep_tables_in(&disk).unwrap();
    let mut fleet = Fleet::on(server, FILLING);
    let (first, second) = (fleet.node(), fleet.node());
    first.wait_until(|held| held == PARTITIONS / 2);
    second.wait_until(|held| held == PARTITIONS / 2);
    let mut executions = fleet.post(12);
    fleet.wait_for(&executions, "running", 6);
    let balloon = disk.join("balloon");
    let full = fs::write(&balloon, vec![1; 64 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    // Rows fit into existing pages for a while, until there is none left.
    let refused = loop {
        match fleet.try_post() {
            Ok(execution) => drop(executions.insert(execution)),
            Err(why) => break why.to_string(),
        }
    };
    assert!(refused.contains("free space on the server's disk"), "{refused}");
    fs::remove_file(&balloon).unwrap();
    fleet.wait_for(&executions, "completed", executions.len());
    fleet.check(&executions);
}

/// Commands of a newer release do not change a store that nodes of an older one use.
#[test]
fn only_the_upgrade_command_upgrades_and_not_under_live_nodes() {
    let server = Server::start(Options { fsync: false, ..Options::default() }).unwrap();
    let (scratch, dir) = (server.scratch(), TestDir::new());
    let beside = scratch.beside().unwrap();
    let older = include_str!("../../store/tests/formats/postgres_9.sql");
    beside.execute(&older.replace("{schema}", scratch.schema())).unwrap();
    let key = dir.root().join("home/.config/mainspring/key");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    fs::write(&key, "d4b738e7ea4dae2638b2928abc5445011b29ba69a7dba28f1127ccda3efafaa2\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let format = || beside.ask("SELECT format FROM mainspring_format").unwrap();
    let asked = |arguments: &[&str]| {
        let mut command = dir.mainspring(arguments);
        command.env("MAINSPRING_STORE", scratch.address());
        support::call(command, b"")
    };
    for arguments in [&["list", "--json"][..], &["cancel", "x", "--json"], &["quarantine", "list", "--json"]] {
        let refused = asked(arguments);
        assert!(refused.text("error.message").contains("`mainspring upgrade`"), "{refused:?}");
        assert_eq!(format(), "9");
    }
    beside.execute("INSERT INTO nodes VALUES ('old', 'host:1', '0.0.9', 4, 9000000000000000, 9, true)").unwrap();
    for arguments in [&["upgrade", "--json"][..], &["node", "--json"]] {
        let refused = asked(arguments);
        assert!(format!("{refused:?}").contains("old at host:1 of release 0.0.9"), "{refused:?}");
        assert_eq!(format(), "9");
    }
    beside.execute("UPDATE nodes SET alive_until = 1").unwrap();
    let upgraded = asked(&["upgrade", "--json"]);
    assert_eq!(upgraded.exit, Some(0), "{upgraded:?}");
    let listed = asked(&["list", "--json"]);
    assert_eq!((format().as_str(), listed.exit, listed.stdout.lines().count()), ("14", Some(0), 6));
}

/// A fault of the nodes or of their server.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    StandStill,
    Stop,
    /// A new node starts before the old one is stopped.
    Replace,
    ServerDies,
    /// While other nodes acquire the partitions of a killed one.
    ServerDiesAmidRecovery,
    LinesAreCut,
}

const FAULTS: [Fault; 7] = [
    Fault::Kill,
    Fault::StandStill,
    Fault::Stop,
    Fault::Replace,
    Fault::ServerDies,
    Fault::ServerDiesAmidRecovery,
    Fault::LinesAreCut,
];

impl Fleet {
    fn inject(&mut self, nodes: &mut [Node; 3], fault: Fault, which: usize) {
        match fault {
            // The assignment drops the old node, which kills it.
            Fault::Kill => nodes[which] = self.node(),
            Fault::StandStill => {
                nodes[which].signal(Signal::STOP);
                for other in (0..3).filter(|other| *other != which) {
                    nodes[other].wait_until(|held| held >= PARTITIONS / 3);
                }
                let dead = || self.store.cluster_view().unwrap().nodes.len() == 2;
                let began = Instant::now();
                while !dead() {
                    assert!(began.elapsed() < BOUND, "a suspended node counts as alive");
                    std::thread::yield_now();
                }
                nodes[which].signal(Signal::CONT);
            }
            Fault::Stop => {
                nodes[which].signal(Signal::TERM);
                assert_eq!(nodes[which].process.wait().unwrap().code(), Some(0));
                nodes[which] = self.node();
            }
            Fault::Replace => {
                let mut old = std::mem::replace(&mut nodes[which], self.node());
                nodes[which].wait_until(|held| held > 0);
                old.signal(Signal::TERM);
                assert_eq!(old.process.wait().unwrap().code(), Some(0));
            }
            Fault::ServerDies => {
                self.server.crash().unwrap();
                self.server.start_again().unwrap();
            }
            Fault::ServerDiesAmidRecovery => {
                nodes[which].process.kill().unwrap();
                nodes[(which + 1) % 3].wait_until(|held| held > PARTITIONS / 3 + 1);
                self.server.crash().unwrap();
                self.server.start_again().unwrap();
                nodes[which] = self.node();
            }
            Fault::LinesAreCut => {
                let cut =
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mainspring'";
                self.server.execute(cut).unwrap();
            }
        }
    }
}

/// Faults in a test run, which takes about a minute.
const FAULTS_OF_A_TEST: usize = 36;

/// Executions that are enqueued before each fault.
const POSTED_AT_A_TIME: usize = 12;

/// Injects all faults in turn, on nodes drawn from a seed: a fixed number in a test run, or for
/// `MAINSPRING_CHAOS_SECONDS` under `cargo xtask chaos`.
#[test]
fn every_execution_ends_under_all_faults_of_three_nodes() {
    let seconds = std::env::var("MAINSPRING_CHAOS_SECONDS").ok().map(|text| text.parse().expect("seconds"));
    let duration = seconds.map(Duration::from_secs);
    let (mut fleet, began) = (Fleet::new(), Instant::now());
    let mut nodes = [fleet.node(), fleet.node(), fleet.node()];
    nodes.iter().for_each(|node| node.wait_until(|held| held >= PARTITIONS / 3));
    let mut executions = BTreeSet::new();
    let mut dice = 0x5eed_u64;
    for number in 0.. {
        if duration.map_or(number == FAULTS_OF_A_TEST, |duration| began.elapsed() >= duration) {
            break;
        }
        executions.extend(fleet.post(POSTED_AT_A_TIME));
        // Earlier executions may still run.
        fleet.wait_for(&executions, "completed", executions.len().saturating_sub(3 * POSTED_AT_A_TIME));
        // A linear congruential generator (Knuth's MMIX), sufficient for choices.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (fault, which) = (FAULTS[number % FAULTS.len()], (dice >> 33) as usize % 3);
        fleet.inject(&mut nodes, fault, which);
    }
    fleet.wait_for(&executions, "completed", executions.len());
    let repeated = fleet.check(&executions);
    println!("{} executions in {:?}, {repeated} attempts again", executions.len(), began.elapsed());
}

/// A measurement: a node processes a backlog of more than a gigabyte with less than a gigabyte of memory.
#[test]
#[ignore = "writes more than a gigabyte; run it by name"]
fn a_backlog_of_a_gigabyte_is_processed_with_less_memory() {
    const STARTS: usize = 300;
    const BYTES: usize = 3_750_000;
    let mut fleet = Fleet::of("name: waits\nsteps:\n  - {id: s, type: signal, signal: go}\n");
    let input = Value::from("x".repeat(BYTES).as_str());
    let post = |_| {
        let request = StartRequest { input: input.clone(), ..StartRequest::new(fleet.plan.clone(), "me") };
        inbox::enqueue_start(&*fleet.store, None, request, &fleet.dir.key()).unwrap()
    };
    let executions: BTreeSet<ExecutionKey> = (0..STARTS).map(post).collect();
    let began = Instant::now();
    let node = fleet.node();
    fleet.wait_for(&executions, "running", STARTS);
    let status = fs::read_to_string(format!("/proc/{}/status", node.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    println!("{STARTS} starts of {BYTES} bytes: {:.1} s, at most {peak} resident", began.elapsed().as_secs_f64());
    let kib: usize = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 1_000_000, "{kib} KiB");
}
