//! `mainspring doctor`: its findings, that it changes nothing, and that no damage makes it fail itself.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use mainspring_engine::{data_dir::DataDir, keys};
use mainspring_kernel::{json, value::Value};
use mainspring_store::prelude::*;
use mainspring_store::{
    Filter, Inspection,
    postgres::{PostgresStore, server},
    sqlite::SqliteStore,
};
use rusqlite::Connection;

mod support;
use support::{Answer, TestDir, call};

const DEFINITION: &str =
    "name: wf\nsteps:\n  - {id: say, type: bash, command: echo hello}\n  - {id: gate, type: approval}\n";

/// The checks of a call, by their names.
struct Told {
    answer: Answer,
    checks: BTreeMap<String, Value>,
}

impl Told {
    fn of(answer: Answer) -> Self {
        let read = |line: &str| json::read(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}")).value;
        let named = |check: Value| (check.get("check").unwrap().as_text().unwrap().to_string(), check);
        let checks: Vec<(String, Value)> = answer.stdout.lines().map(read).map(named).collect();
        let count = checks.len();
        let checks: BTreeMap<String, Value> = checks.into_iter().collect();
        assert_eq!(checks.len(), count, "each name occurs once: {answer:?}");
        Self { answer, checks }
    }

    /// Checks the state of a check, and a part of its message or help.
    #[track_caller]
    fn expect(&self, name: &str, state: &str, said: &str) -> &Self {
        let check = self.checks.get(name).unwrap_or_else(|| panic!("nothing is said of {name}: {:?}", self.answer));
        let text = |key: &str| check.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
        let all = format!("{} → {}", text("message"), text("help"));
        assert!(
            text("state") == state && all.contains(said),
            "{name} is {}: {all}\n{}",
            text("state"),
            self.answer.stdout
        );
        assert_eq!(text("help").is_empty(), !["warning", "broken"].contains(&state), "{name}: {all}");
        self
    }

    /// Checks the names of all broken checks, and the exit code.
    #[track_caller]
    fn expect_broken(&self, names: &[&str]) -> &Self {
        let is_broken = |check: &Value| check.get("state") == Some(&"broken".into());
        let broken: Vec<&str> =
            self.checks.iter().filter(|(_, check)| is_broken(check)).map(|(name, _)| name.as_str()).collect();
        assert_eq!(broken, names, "{}", self.answer.stdout);
        assert_eq!(self.answer.exit, Some(i32::from(!names.is_empty())), "{:?}", self.answer);
        assert_eq!(self.answer.stderr, "", "nothing goes wrong with it itself");
        self
    }
}

/// All files and folders below a folder, with mode and contents.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() {
            found.extend(files_below(&path));
        }
        let is_file = metadata.is_file() && !metadata.file_type().is_socket();
        let bytes = if is_file { fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, (metadata.permissions().mode(), bytes));
    }
    found
}

/// Runs `doctor` on a folder without an engine, and checks that no byte changes.
#[track_caller]
fn doctor(dir: &TestDir, arguments: &[&str]) -> Told {
    let before = files_below(dir.root());
    let told = doctor_with(dir.mainspring(&[]), arguments);
    let after = files_below(dir.root());
    let names = |files: &BTreeMap<PathBuf, _>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before), "something was made, or is gone");
    assert!(after == before, "something was changed");
    told
}

#[track_caller]
fn doctor_with(mut command: Command, arguments: &[&str]) -> Told {
    command.args(["doctor", "--json"]).args(arguments);
    Told::of(call(command, b""))
}

/// A copy of a folder with one waiting and one ended execution.
fn dir() -> TestDir {
    static MADE: OnceLock<TestDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let dir = TestDir::new();
        fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
        for (id, more) in [("e1", None), ("e2", Some("--yes"))] {
            let arguments = ["run", "wf.yaml", "--id", id].into_iter().chain(more).collect::<Vec<_>>();
            let answer = call(dir.mainspring(&arguments), b"");
            assert_eq!(answer.exit, Some(0), "{answer:?}");
        }
        // The engine may or may not have checkpointed when it ended.
        tamper(&dir, "PRAGMA wal_checkpoint(TRUNCATE)");
        dir
    });
    let dir = TestDir::new();
    let copied = Command::new("cp").arg("-a").arg(made.root().join("home")).arg(dir.root()).status();
    assert!(copied.unwrap().success());
    dir
}

fn data(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

fn journal(dir: &TestDir) -> PathBuf {
    data(dir).join("journal.db")
}

/// Changes the store without the engine, and leaves no WAL.
fn tamper(dir: &TestDir, sql: &str) {
    let connection = Connection::open(journal(dir)).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn doctor_reports_ok_and_changes_nothing() {
    let dir = dir();
    for arguments in [&[][..], &["--deep"]] {
        let told = doctor(&dir, arguments);
        told.expect_broken(&[]).expect("settings", "ok", "all as usual").expect(
            "key",
            "ok",
            "the key that the store was created with",
        );
        told.expect("folder", "ok", "yours alone").expect("lock", "ok", "no process").expect("store", "ok", "SQLite");
        told.expect("format", "ok", "this build writes").expect("integrity", "ok", "sound").expect("log", "ok", "WAL");
        told.expect("quarantine", "ok", "no execution")
            .expect("approvals", "ok", "3 days")
            .expect("clock", "ok", "UTC");
        told.expect("bash", "ok", "GNU bash")
            .expect("sandbox", "ok", "seccomp")
            .expect("server", "skipped", "--server");
    }
    doctor(&dir, &[]).expect("journals", "skipped", "--deep").expect("audit logs", "skipped", "--deep");
    let newest = SqliteStore::inspect(&journal(&dir), true).unwrap().newest_frame_ms().unwrap().unwrap();
    let row = SqliteStore::open_read_only(&journal(&dir)).unwrap().execution_by_id("e2").unwrap().unwrap();
    assert_eq!(Some(newest), row.completed_at, "the last frame is that of the end");
    doctor(&dir, &["--deep"]).expect("journals", "ok", "2 journals with").expect("audit logs", "ok", "0 entries");
}

/// This process owns the folder, and another program removes its files.
#[test]
fn a_process_with_deleted_store_files_is_found() {
    type Damage = (fn(&Path), &'static str);
    let lost: [Damage; 3] = [
        (|folder| fs::remove_file(folder.join("journal.db-wal")).unwrap(), "journal.db-wal is not the file"),
        (|folder| fs::rename(folder.join("journal.db"), folder.join("old")).unwrap(), "journal.db is not the file"),
        // Closing a file releases all POSIX locks that this process has on it.
        (|folder| drop(fs::read(folder.join("journal.db")).unwrap()), "holds no lock"),
    ];
    for (damage, words) in lost {
        let dir = dir();
        let home = DataDir::new(data(&dir));
        let _held = home.hold(&dir.key()).unwrap();
        let looked = || doctor_with(dir.mainspring(&[]), &[]);
        looked().expect("files", "skipped", "has not opened the store");
        let store = SqliteStore::open(&home.journal()).unwrap();
        looked().expect("files", "ok", "are those that the process");
        damage(home.folder());
        looked().expect("files", "broken", words);
        drop(store);
    }
    doctor(&dir(), &[]).expect("files", "ok", "no process has the store open");
}

#[test]
fn text_output_ends_with_the_verdict() {
    let dir = dir();
    let answer = call(dir.mainspring(&["doctor"]), b"");
    assert_eq!((answer.exit, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
    assert!(answer.stdout.lines().any(|line| line.starts_with("  ✓ store            ")), "{answer:?}");
    assert!(answer.stdout.lines().last().unwrap().starts_with("ok"), "{answer:?}");
    assert!(!answer.stdout.contains('\u{1b}'), "no colors without a terminal");
    fs::remove_file(dir.root().join("home/.config/mainspring/key")).unwrap();
    let answer = call(dir.mainspring(&["doctor"]), b"");
    assert_eq!(answer.exit, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("  ✗ key  ") && answer.stdout.contains("→ restore your copy"), "{answer:?}");
    assert!(answer.stdout.lines().last().unwrap().starts_with("broken: key;"), "{answer:?}");
}

#[test]
fn doctor_creates_no_files() {
    let dir = TestDir::new();
    let told = doctor(&dir, &[]);
    told.expect_broken(&[]).expect("folder", "warning", "not there yet").expect("store", "skipped", "none yet");
    told.expect("sync", "skipped", "no folder").expect("key", "ok", "none yet");
    fs::create_dir_all(data(&dir)).unwrap();
    set_mode(&data(&dir), 0o700);
    File::create(journal(&dir)).unwrap();
    let told = doctor(&dir, &["--deep"]);
    told.expect_broken(&[]).expect("format", "ok", "it is empty").expect("log", "ok", "nothing was written");
    told.expect("quarantine", "skipped", "older").expect("journals", "skipped", "nothing is in the store yet");
}

/// A crash leaves a WAL without a checkpoint, with or without its index.
#[test]
fn the_wal_of_a_crash_is_read_and_kept() {
    for has_index in [false, true] {
        let (dir, whole) = (dir(), tempfile::tempdir().unwrap());
        let path = whole.path().join("journal.db");
        fs::copy(journal(&dir), &path).unwrap();
        let store = SqliteStore::open(&path).unwrap();
        let key = store.execution_by_id("e1").unwrap().unwrap().key;
        store.quarantine(key, "stands in the log alone").unwrap();
        for ending in ["", "-wal"].into_iter().chain(has_index.then_some("-shm")) {
            fs::copy(format!("{}{ending}", path.display()), format!("{}{ending}", journal(&dir).display())).unwrap();
        }
        let told = doctor(&dir, &["--deep"]);
        told.expect_broken(&["quarantine"]).expect("quarantine", "broken", "e1 (stands in the log alone)");
        told.expect("quarantine", "broken", "mainspring verify e1").expect("integrity", "ok", "sound");
    }
}

/// A file in the user's configuration folder.
fn config(dir: &TestDir, name: &str) -> PathBuf {
    dir.root().join("home/.config/mainspring").join(name)
}

fn write_config(dir: &TestDir, name: &str, text: &str, mode: u32) {
    fs::write(config(dir, name), text).unwrap();
    set_mode(&config(dir, name), mode);
}

fn cut_to(dir: &TestDir, length: impl Fn(u64) -> u64) {
    let file = File::options().write(true).open(journal(dir)).unwrap();
    file.set_len(length(file.metadata().unwrap().len())).unwrap();
}

/// Replaces the store's file.
fn replace(dir: &TestDir, by: impl Fn(&Path)) {
    fs::remove_file(journal(dir)).unwrap();
    by(&journal(dir));
}

/// Overwrites the first page of the rows of `heads`. A store whose schema is damaged would not even open.
fn overwrite_heads(dir: &TestDir) {
    let connection = Connection::open(journal(dir)).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let page = number("SELECT rootpage FROM sqlite_master WHERE name = 'heads'");
    let page_size = number("PRAGMA page_size");
    drop(connection);
    let mut bytes = fs::read(journal(dir)).unwrap();
    bytes[(page - 1) * page_size..][..page_size].fill(0xa5);
    fs::write(journal(dir), bytes).unwrap();
}

/// A damage, the checks that it breaks, and a part of the first message.
type Damage = (fn(&TestDir), &'static [&'static str], &'static str);

#[track_caller]
fn check_damages(table: &[Damage]) {
    for (damage, broken, said) in table {
        let dir = dir();
        damage(&dir);
        doctor(&dir, &[]).expect_broken(broken).expect(broken[0], "broken", said);
    }
}

#[test]
fn a_broken_store_is_named_with_help() {
    check_damages(&[
        (|dir| cut_to(dir, |length| length / 2 + 100), &["store"], "restore the latest backup"),
        (|dir| cut_to(dir, |length| length - 1), &["store"], "restore the latest backup"),
        (|dir| cut_to(dir, |_| 60), &["store"], "restore the latest backup"),
        (|dir| replace(dir, |path| fs::write(path, "noise".repeat(9_000)).unwrap()), &["store"], "not a database"),
        (|dir| replace(dir, |path| fs::create_dir(path).unwrap()), &["store"], "is a folder"),
        (|dir| replace(dir, |_| ()), &["store"], "is missing"),
        (|dir| tamper(dir, "PRAGMA user_version = 99"), &["format"], "format 99"),
        (|dir| tamper(dir, "PRAGMA application_id = 7"), &["store"], "another program"),
        (overwrite_heads, &["integrity", "timers"], "damaged"),
        (
            |dir| tamper(dir, "UPDATE heads SET quarantined = 'it is forged'"),
            &["quarantine"],
            "2 executions are quarantined",
        ),
    ]);
}

#[test]
fn other_broken_checks_are_named_with_help() {
    check_damages(&[
        (|dir| set_mode(&config(dir, "key"), 0o644), &["key"], "chmod 600"),
        (
            |dir| write_config(dir, "key", &"07".repeat(32), 0o600),
            &["key"],
            "not the key that the store was created with",
        ),
        (|dir| fs::remove_file(config(dir, "key")).unwrap(), &["key"], "restore your copy"),
        (|dir| write_config(dir, "credentials.json", "{\"servers\": {}}", 0o644), &["tokens"], "chmod 600"),
        (|dir| write_config(dir, "credentials.json", "[]", 0o600), &["tokens"], "login"),
        (|dir| write_config(dir, "config.yaml", "listne: 1\n", 0o600), &["settings"], "`listne` is not a setting"),
        (|dir| write_config(dir, "config.yaml", "listen: [\n", 0o600), &["settings"], "config.yaml"),
        (|dir| set_mode(&data(dir), 0o777), &["folder"], "chmod 700"),
        (
            |dir| {
                fs::remove_dir_all(data(dir)).unwrap();
                fs::write(data(dir), "").unwrap();
            },
            &["folder", "store"],
            "is not a folder",
        ),
    ]);
}

/// A defect, the check that warns of it, and a part of the message.
type Worry = (fn(&TestDir), &'static str, &'static str);

#[test]
fn risks_are_warnings() {
    let table: &[Worry] = &[
        (
            |dir| tamper(dir, "PRAGMA user_version = 3; ALTER TABLE nodes RENAME COLUMN address TO place"),
            "format",
            "format 3",
        ),
        (|dir| tamper(dir, "PRAGMA journal_mode = DELETE"), "log", "no log"),
        (|dir| tamper(dir, "UPDATE pending_approvals SET opened_at = 1"), "approvals", "e1 at gate since 1970"),
        (|dir| tamper(dir, "INSERT INTO nodes VALUES ('n1', 'host 7', '0.1.0', 1, 1)"), "nodes", "expired leases"),
        (|dir| set_mode(&data(dir), 0o750), "folder", "others may read"),
    ];
    for (damage, check, said) in table {
        let dir = dir();
        damage(&dir);
        doctor(&dir, &[]).expect_broken(&[]).expect(check, "warning", said);
    }
    let dir = dir();
    tamper(&dir, "PRAGMA user_version = 3");
    doctor(&dir, &["--deep"]).expect("approvals", "skipped", "older").expect("journals", "skipped", "older");
}

#[test]
fn settings_are_listed_with_origins_and_without_secrets() {
    let dir = dir();
    let path = dir.root().join("home/.config/mainspring/config.yaml");
    fs::write(&path, format!("dataDir: {}\nleaseSeconds: 7\n", data(&dir).display())).unwrap();
    let told = doctor(&dir, &["--rate-limit-per-second", "9"]);
    told.expect_broken(&[]).expect("settings", "ok", "rateLimitPerSecond 9 (flag)");
    let origin = support::at(&told.checks["settings"], "detail.settings.leaseSeconds");
    assert_eq!(
        origin,
        Value::map([("value", Value::from("7")), ("origin", path.display().to_string().as_str().into())])
    );
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fs::write(&path, format!("store: postgres://u:s3cret@{closed}/d\n")).unwrap();
    set_mode(&path, 0o644);
    let told = doctor(&dir, &[]);
    told.expect_broken(&["store"]).expect("settings", "warning", "chmod 600").expect(
        "store",
        "broken",
        "the server runs",
    );
    assert!(!told.answer.stdout.contains("s3cret"), "{}", told.answer.stdout);
}

#[test]
fn deep_verifies_all_journals() {
    let dir = dir();
    tamper(&dir, "UPDATE frames SET frame = zeroblob(length(frame)) WHERE number = 2");
    doctor(&dir, &[]).expect_broken(&[]);
    doctor(&dir, &["--deep"]).expect_broken(&["journals"]).expect("journals", "broken", "1 not what was written");
}

#[test]
fn the_lock_counts_and_not_its_recorded_pid() {
    let dir = dir();
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    ended.wait().unwrap();
    fs::write(data(&dir).join("lock"), format!("{pid}\n")).unwrap();
    doctor(&dir, &[]).expect_broken(&[]).expect("lock", "ok", "no process runs");
    let lock = File::open(data(&dir).join("lock")).unwrap();
    lock.lock().unwrap();
    doctor(&dir, &[]).expect_broken(&[]).expect(
        "lock",
        "warning",
        &format!("the process {pid}, which does not run here"),
    );
    tamper(&dir, "UPDATE heads SET wake_at = 1 WHERE ended = 0");
    doctor(&dir, &[]).expect("timers", "warning", "1 execution was not woken although an engine runs: e1 (since 1970");
    fs::write(data(&dir).join("lock"), "").unwrap();
    doctor(&dir, &[]).expect_broken(&[]).expect("lock", "warning", "has not recorded its pid");
}

#[test]
fn missing_permissions_are_reported() {
    let dir = dir();
    let is_root = rustix::process::getuid().is_root();
    let mut command = dir.mainspring(&[]);
    if is_root {
        // Permissions do not apply to root, so the command runs as another user.
        command.uid(65_534).gid(65_534).current_dir("/");
    } else {
        set_mode(&dir.root().join("home"), 0);
    }
    let told = doctor_with(command, &["--dir", data(&dir).to_str().unwrap()]);
    set_mode(&dir.root().join("home"), 0o755);
    told.expect("folder", "broken", "ermission denied").expect("store", "broken", "ermission denied");
    assert_eq!(told.answer.exit, Some(1), "{:?}", told.answer);
}

/// A running server, killed on drop.
struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Server {
    fn start(dir: &TestDir, arguments: &[&str]) -> Self {
        let mut command = dir.mainspring(&["up", "--json", "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let told = json::read(first.as_bytes()).unwrap_or_else(|_| panic!("it said {first:?}")).value;
        let text = |key: &str| told.get(key).and_then(Value::as_text).unwrap().to_string();
        let token = fs::read_to_string(text("tokenFile")).unwrap().trim().to_string();
        Self { child, url: text("listening"), token }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_continues_during_doctor() {
    let dir = dir();
    let mut server = Server::start(&dir, &[]);
    // Readers change the index of the WAL, and nothing else.
    let files = || {
        let mut all = files_below(&data(&dir));
        let index = all.remove(&data(&dir).join("journal.db-shm")).map(|_| "is there");
        (all, index)
    };
    let before = files();
    let told = doctor_with(dir.mainspring(&[]), &["--deep", "--server", &server.url]);
    assert!(files() == before, "something was changed");
    told.expect_broken(&[]).expect("lock", "ok", &format!("the process {} works", server.child.id()));
    told.expect("integrity", "ok", "every index").expect("journals", "ok", "2 journals with");
    told.expect("audit logs", "ok", "1 entry of 1 organization is");
    told.expect("server", "ok", "this release").expect("server ready", "ok", "accepts work");
    told.expect("server transport", "ok", "on this machine").expect("server clock", "ok", "to some seconds");
    told.expect("server token", "skipped", "mainspring login");
    for (token, broken, said) in [
        (server.token.clone(), &[][..], "owner (owner) of default"),
        ("msp_no".into(), &["server token"], "the token is unknown or has expired"),
    ] {
        let mut command = dir.mainspring(&[]);
        command.env("MAINSPRING_TOKEN", token).env("MAINSPRING_SERVER", &server.url);
        let told = doctor_with(command, &[]);
        told.expect_broken(broken).expect("server token", if broken.is_empty() { "ok" } else { "broken" }, said);
    }
    assert_eq!(server.child.try_wait().unwrap(), None, "it is still up");
    let answer = call(dir.mainspring(&["approve", "e1"]), b"");
    assert_eq!(answer.exit, Some(0), "it takes what is sent to it: {answer:?}");
    // A killed server leaves its WAL, which is read and not changed.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    doctor(&dir, &["--deep"]).expect_broken(&[]).expect("audit logs", "ok", "of 1 organization");
    tamper(&dir, "UPDATE audit SET actor = 'eve'");
    doctor(&dir, &["--deep"]).expect_broken(&["audit logs"]).expect("audit logs", "broken", "default: entry 1");
}

#[test]
fn an_unreachable_server_is_reported() {
    let dir = dir();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = doctor(&dir, &["--server", &format!("http://{closed}")]);
    told.expect_broken(&["server"]).expect("server", "broken", "cannot be reached").expect(
        "server token",
        "skipped",
        "",
    );
    doctor(&dir, &["--server", "nowhere"]).expect_broken(&["server"]).expect("server", "broken", "must be an URL");
    let another = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = another.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = another.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    });
    let told = doctor(&dir, &["--server", &format!("http://{address}")]);
    told.expect_broken(&["server"]).expect("server", "broken", "is not Mainspring");
    // A server that accepts connections without responding times out.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let told = doctor(&dir, &["--server", &format!("http://{}", silent.local_addr().unwrap())]);
    told.expect_broken(&["server"]).expect("server", "broken", "takes too long");
}

fn postgres() -> server::Server {
    server::Server::start(server::Options { fsync: true, tls: true }).unwrap()
}

#[test]
fn a_database_is_read_and_not_changed() {
    let (dir, server) = (TestDir::new(), postgres());
    fs::create_dir_all(data(&dir)).unwrap();
    set_mode(&data(&dir), 0o700);
    let address = server.address("schema=flows&sslmode=require");
    let all = "SELECT count(*) || ' ' || coalesce(max(relname), '') FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'flows'";
    let beside = server.beside().unwrap();
    let told = doctor(&dir, &["--store", &address]);
    told.expect_broken(&[]).expect("store", "ok", "PostgreSQL").expect("format", "ok", "it is empty");
    told.expect("database connection", "ok", "TLS")
        .expect("database disk", "ok", "fsync is on")
        .expect("key", "ok", "none yet");
    told.expect("database clock", "ok", "ms").expect("connections", "ok", "in use").expect(
        "database permissions",
        "ok",
        "",
    );
    assert_eq!(beside.ask(all).unwrap(), "0 ", "no schema and no table is made");
    let store = PostgresStore::open(&address).unwrap();
    keys::of_store(&store, &dir.root().join("home/.config/mainspring/key")).unwrap();
    let told = doctor(&dir, &["--deep", "--store", &address]);
    told.expect_broken(&[]).expect("format", "ok", "this build writes").expect(
        "key",
        "ok",
        "the key that the store was created with",
    );
    told.expect("quarantine", "ok", "").expect("nodes", "ok", "").expect("journals", "ok", "0 journals with");
    let key = "decode(repeat('07', 16), 'hex')";
    for rows in [
        format!("heads VALUES ({key}, 0, 0, '', '', NULL, false, 'it is forged')"),
        "heads VALUES (decode(repeat('08', 16), 'hex'), 0, 0, '', '', 1, false, NULL)".into(),
        format!("pending_approvals VALUES ({key}, '', 'ship', 0, NULL, NULL, 1, 2, 'deny')"),
        "nodes VALUES ('n1', 'host 7', '0.1.0', 1, 1, 8), ('n2', 'host 8', '0.1.0', 1, 9000000000000000, 8)".into(),
    ] {
        server.execute(&format!("INSERT INTO flows.{rows}")).unwrap();
    }
    let told = doctor(&dir, &["--store", &address]);
    told.expect_broken(&["quarantine"]).expect(
        "quarantine",
        "broken",
        "07070707-0707-0707-0707-070707070707 (it is forged)",
    );
    told.expect("timers", "warning", "08080808-").expect("approvals", "warning", "at ship since 1970");
    told.expect("nodes", "warning", "expired leases: n1 at host 7 (0.1.0); 1 alive");
    server.execute("DELETE FROM flows.heads").unwrap();
    let format = "SELECT format FROM flows.mainspring_format";
    server.execute("UPDATE flows.mainspring_format SET format = 2").unwrap();
    server.execute("ALTER TABLE flows.nodes RENAME COLUMN address TO place").unwrap();
    let told = doctor(&dir, &["--deep", "--store", &address]);
    told.expect_broken(&[]).expect("format", "warning", "format 2").expect("approvals", "skipped", "older");
    told.expect("quarantine", "ok", "").expect("journals", "skipped", "older");
    assert_eq!(beside.ask(format).unwrap(), "2", "it is not brought to the newest");
    server.execute("UPDATE flows.mainspring_format SET format = 99").unwrap();
    doctor(&dir, &["--store", &address]).expect_broken(&["format"]).expect("format", "broken", "this build is");
    server.execute("UPDATE flows.mainspring_format SET program = 'another'").unwrap();
    doctor(&dir, &["--store", &address]).expect_broken(&["store"]).expect("store", "broken", "another program");
}

#[test]
fn a_node_continues_while_its_database_is_read() {
    let (dir, database) = (TestDir::new(), postgres());
    let address = database.address("schema=flows&sslmode=require");
    let server = Server::start(&dir, &["--store", &address]);
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    for arguments in [&["save", "wf.yaml"][..], &["run", "wf"]] {
        let mut command = dir.mainspring(arguments);
        command.env("MAINSPRING_TOKEN", &server.token).env("MAINSPRING_SERVER", &server.url);
        let answer = call(command, b"");
        assert_eq!(answer.exit, Some(0), "{answer:?}");
    }
    let told = doctor_with(dir.mainspring(&[]), &["--deep", "--store", &address, "--server", &server.url]);
    told.expect_broken(&[]).expect("nodes", "ok", "alive").expect(
        "key",
        "ok",
        "the key that the store was created with",
    );
    told.expect("lock", "ok", &format!("the process {} works", server.child.id())).expect("clock", "ok", "UTC");
    told.expect("journals", "ok", "1 journal with").expect("audit logs", "ok", "of 1 organization are");
    told.expect("server ready", "ok", "accepts work");
    let newest = PostgresStore::inspect(&address).unwrap().newest_frame_ms().unwrap().unwrap();
    let store = PostgresStore::inspect(&address).map(|inspection| Box::new(inspection).store().unwrap()).unwrap();
    let row = store.executions(&Filter::default(), None, 1).unwrap().remove(0);
    assert!(newest >= row.started_at, "{newest} is before {}", row.started_at);
    assert!(
        store.put_metadata_if_absent("word", "value").unwrap_err().to_string().contains("read-only"),
        "nothing can be written"
    );
}

#[test]
fn an_unusable_database_is_reported() {
    let (dir, server) = (TestDir::new(), postgres());
    fs::create_dir_all(data(&dir)).unwrap();
    set_mode(&data(&dir), 0o700);
    drop(PostgresStore::open(&server.address("schema=flows")).unwrap());
    server.execute("CREATE ROLE careful LOGIN PASSWORD 's3cret'").unwrap();
    let careful = |password: &str| server.address_with_password(password, "schema=flows&sslmode=require");
    let as_careful = |password: &str| {
        let mut command = dir.mainspring(&[]);
        command.env("MAINSPRING_STORE", careful(password));
        doctor_with(command, &[])
    };
    let told = as_careful("wr0ng");
    told.expect_broken(&["store"]).expect("store", "broken", "pg_hba.conf").expect("quarantine", "skipped", "no store");
    assert!(!told.answer.stdout.contains("wr0ng"), "{}", told.answer.stdout);
    server
        .execute("GRANT USAGE ON SCHEMA flows TO careful; GRANT SELECT ON ALL TABLES IN SCHEMA flows TO careful")
        .unwrap();
    let told = as_careful("s3cret");
    told.expect_broken(&["database permissions"]).expect(
        "database permissions",
        "broken",
        "may not read and write audit",
    );
    server.execute("GRANT ALL ON ALL TABLES IN SCHEMA flows TO careful").unwrap();
    as_careful("s3cret").expect_broken(&[]);
    server.execute("ALTER ROLE careful CONNECTION LIMIT 5").unwrap();
    as_careful("s3cret").expect_broken(&[]).expect("connections", "warning", "may have 5");
    server.execute("ALTER ROLE careful SET default_transaction_read_only = on").unwrap();
    as_careful("s3cret").expect_broken(&["store"]).expect("store", "broken", "read-only");
    let plain = server.address("schema=flows&sslmode=disable");
    doctor(&dir, &["--store", &plain]).expect_broken(&[]).expect("database connection", "warning", "without TLS");
    doctor(&dir, &["--store", "mysql://u:s3cret@h/d"]).expect_broken(&["store"]).expect(
        "store",
        "broken",
        "postgres://",
    );
    // A server that accepts connections without responding times out.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://u@{}/d", silent.local_addr().unwrap());
    doctor(&dir, &["--store", &address]).expect_broken(&["store"]).expect("store", "broken", "no response within");
}
