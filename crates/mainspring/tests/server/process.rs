//! `mainspring up` as a process with its own folder.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use mainspring_kernel::{json, value::Value};
use mainspring_store::{
    Store,
    postgres::{PostgresStore, server as postgres},
    sqlite::SqliteStore,
};
use tempfile::TempDir;

use super::{client::Client, support::MAINSPRING};

/// A running server, killed on drop. The test fails if a thread of the server has panicked.
pub(crate) struct Server {
    child: Child,
    errors: Errors,
    /// The address that it listens on, such as `127.0.0.1:40000`.
    pub(crate) address: String,
    /// The owner's token, if the store was empty.
    pub(crate) token: Option<String>,
}

impl Server {
    /// Starts a server on a folder and a free port.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    /// Like [`Server::start`], with arguments.
    pub(crate) fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_in(folder, "data", arguments)
    }

    /// Like [`Server::start_with`], with the name of the data folder.
    pub(crate) fn start_in(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        Self::start_as(folder, name, arguments, &[])
    }

    /// Like [`Server::start_in`], with environment variables.
    pub(crate) fn start_as(folder: &Path, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::started(Command::new(Self::program()), folder, name, arguments, environment)
    }

    /// The executable, which measurements can replace by another build.
    fn program() -> std::ffi::OsString {
        std::env::var_os("MAINSPRING_BINARY").unwrap_or_else(|| MAINSPRING.into())
    }

    /// Like [`Server::start`], as a user without rights, who cannot create control groups on most machines. Only
    /// root can switch the user.
    pub(crate) fn start_as_nobody(folder: &Path) -> Self {
        const NOBODY: u32 = 65_534;
        if !rustix::process::getuid().is_root() {
            return Self::start(folder);
        }
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        // A copy that this user can execute.
        let (built, program) = (Self::program(), folder.join("program"));
        std::fs::hard_link(&built, &program).or_else(|_| std::fs::copy(&built, &program).map(drop)).unwrap();
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY);
        Self::started(command, folder, "data", &[], &[])
    }

    /// Like [`Server::start`], with a limit of open files.
    pub(crate) fn start_with_files(folder: &Path, files: u64) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\""), MAINSPRING]);
        Self::started(command, folder, "data", &[], &[])
    }

    fn started(
        mut command: Command,
        folder: &Path,
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        command.args(["up", "--json", "--listen", "127.0.0.1:0", "--dir"]).arg(folder.join(name)).args(arguments);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .env("MAINSPRING_LOG", "error")
            .envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = Errors::read(child.stderr.take().unwrap());
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let told = json::read(first.as_bytes()).unwrap_or_else(|_| panic!("it said {first:?}")).value;
        let text = |key: &str| told.get(key).and_then(Value::as_text).map(ToString::to_string);
        let address = text("listening").unwrap().trim_start_matches("http://").to_string();
        // Output is no terminal, so the token is in a file.
        assert_eq!(text("token"), None);
        let token = text("tokenFile").map(|file| std::fs::read_to_string(file).unwrap().trim().to_string());
        Self { child, errors, address, token }
    }

    /// A client with a token.
    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&self.address, Some(token))
    }

    /// The owner of the first organization.
    pub(crate) fn owner(&self) -> Client {
        self.client(self.token.as_deref().unwrap())
    }

    /// A client without a credential.
    pub(crate) fn nobody(&self) -> Client {
        Client::new(&self.address, None)
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The peak memory in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        peak_kib(self.process()).unwrap()
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended by itself. Returns its exit code, or `None` if it was killed after the timeout.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let (done, is_done) = mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if is_done.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        let status = self.child.wait().unwrap();
        drop(done);
        watch.join().unwrap();
        status.code()
    }

    /// Asks it to stop and waits. Returns its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

/// The peak memory of a process in KiB; `None` if it has ended.
pub(crate) fn peak_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.errors.has_panic() && !std::thread::panicking() {
            panic!("a thread of the server has panicked; its standard error has the message");
        }
    }
}

/// The standard error of a server, which a thread copies to that of the test.
struct Errors {
    has_panic: Arc<AtomicBool>,
    end: mpsc::Receiver<()>,
}

impl Errors {
    /// The time for reading what a process has left. Processes that it started can keep its standard error open.
    const REST: Duration = Duration::from_secs(2);

    fn read(from: ChildStderr) -> Self {
        let (has_panic, (done, end)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let found = has_panic.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let text = String::from_utf8_lossy(&line);
                if text.starts_with("thread '") && text.contains("panicked at") {
                    found.store(true, Relaxed);
                }
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            let _ = done.send(());
        });
        Self { has_panic, end }
    }

    fn has_panic(&self) -> bool {
        let _ = self.end.recv_timeout(Self::REST);
        self.has_panic.load(Relaxed)
    }
}

/// An organization on a server.
pub(crate) struct Organization {
    pub(crate) owner: Client,
    server: String,
}

impl Organization {
    /// Creates an organization.
    pub(crate) fn new(server: &Server, id: &str) -> Self {
        let features = Value::map([("workflow_runtime_v1", Value::Bool(true))]);
        let body = Value::map([("id", Value::from(id)), ("owner", "ada".into()), ("features", features)]);
        let made = server.owner().post("/api/organizations", &body).expect(201);
        Self { owner: server.client(&made.text_at("token")), server: server.address.clone() }
    }

    /// Adds a member with a role.
    pub(crate) fn member(&self, id: &str, role: &str) -> Client {
        self.owner.put(&format!("/api/members/{id}"), &Value::map([("role", Value::from(role))])).expect(200);
        self.token(&[("name", "test".into()), ("userId", id.into())])
    }

    /// The session token of an execution: the owner's rights, without being a person.
    pub(crate) fn session_of(&self, execution: &str) -> Client {
        self.token(&[("name", "session".into()), ("sessionOf", execution.into())])
    }

    fn token(&self, fields: &[(&str, Value)]) -> Client {
        let body = Value::map(fields.iter().cloned().map(|(key, value)| (key.to_string(), value)));
        let made = self.owner.post("/api/tokens", &body).expect(201);
        Client::new(&self.server, Some(&made.text_at("token")))
    }
}

/// A folder with an embedded store, or with the address of a shared one.
pub(crate) struct Place {
    folder: TempDir,
    address: Option<String>,
    /// The schema of a shared store.
    schema: String,
}

fn database() -> &'static postgres::Server {
    static SERVER: OnceLock<postgres::Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        postgres::Server::start(postgres::Options { fsync: false, ..postgres::Options::default() }).unwrap()
    })
}

/// Runs a test on an embedded store and on PostgreSQL.
pub(crate) fn everywhere(test: impl Fn(&Place)) {
    test(&Place { folder: tempfile::tempdir().unwrap(), address: None, schema: String::new() });
    let scratch = database().scratch();
    let (address, schema) = (Some(scratch.address()), scratch.schema().to_owned());
    test(&Place { folder: tempfile::tempdir().unwrap(), address, schema });
}

impl Place {
    /// The path of the installation's key.
    pub(crate) fn key_file(&self) -> std::path::PathBuf {
        self.folder.path().join(".config/mainspring/key")
    }

    /// The store, for a program that can write to it and does not have the key. A server has created it.
    pub(crate) fn raw_store(&self) -> Box<dyn Store> {
        match &self.address {
            Some(address) => Box::new(PostgresStore::open(address).unwrap()),
            None => Box::new(SqliteStore::open_current(&self.folder.path().join("data/journal.db")).unwrap()),
        }
    }

    /// Changes the store by SQL, as a program that can write to it and does not have the key.
    pub(crate) fn run_sql(&self, statement: &str) {
        if self.address.is_some() {
            return database().execute(&format!("SET search_path = {}; {statement}", self.schema)).unwrap();
        }
        let store = rusqlite::Connection::open(self.folder.path().join("data/journal.db")).unwrap();
        store.execute_batch(statement).unwrap();
    }

    pub(crate) fn start(&self) -> Server {
        Server::start_with(self.folder.path(), &self.arguments())
    }

    /// Starts a server whose scripts run as this user, so that they can use files of the test.
    pub(crate) fn start_uncontained(&self) -> Server {
        let arguments = [&self.arguments()[..], &["--scripts", "uncontained"]].concat();
        Server::start_with(self.folder.path(), &arguments)
    }

    /// Starts a server with a name for its data folder, whose scripts and tool servers run as this user. `None` if the
    /// store is not shared, so that only one server can use it.
    pub(crate) fn another_uncontained(&self, name: &str) -> Option<Server> {
        self.address.as_ref()?;
        let arguments = [&self.arguments()[..], &["--scripts", "uncontained"]].concat();
        Some(Server::start_in(self.folder.path(), name, &arguments))
    }

    /// Writes the settings file that servers of this place read, and returns the folder of the place.
    pub(crate) fn configure(&self, settings: &str) -> &Path {
        let folder = self.folder.path().join(".config/mainspring");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.yaml"), settings).unwrap();
        self.folder.path()
    }

    /// A command on the folder of an embedded store; `None` for a shared one.
    pub(crate) fn command(&self, arguments: &[&str]) -> Option<Command> {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).arg("--dir").arg(self.folder.path().join("data")).env("HOME", self.folder.path());
        self.address.is_none().then_some(command)
    }

    /// A command that reads the store.
    pub(crate) fn reading_command(&self, arguments: &[&str]) -> Command {
        self.command(arguments).unwrap_or_else(|| {
            let mut command = Command::new(MAINSPRING);
            command.args(arguments).arg("--store").args(&self.address).env("HOME", self.folder.path());
            command
        })
    }

    /// Starts another server on the same store, if it is shared.
    pub(crate) fn another(&self) -> Option<Server> {
        self.address.as_ref().map(|_| Server::start_in(self.folder.path(), "other", &self.arguments()))
    }

    fn arguments(&self) -> Vec<&str> {
        self.address.iter().flat_map(|address| ["--store", address, "--lease-seconds", "2"]).collect()
    }
}
