//! A real PostgreSQL for tests, from the installed binaries, as an unprivileged user, in a temporary folder.
//!
//! A watchdog shell waits on a pipe that only this process holds open. When the pipe closes, because the server was
//! dropped or the process was killed, the shell stops the server at once and removes the folder, so that nothing is
//! left behind.

use std::{
    env, fs, io,
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::blocking::Driver;

const NOT_INSTALLED: &str = "there is no PostgreSQL on this machine: apt-get install postgresql, or have initdb and pg_ctl \
                             in the PATH";

/// A port that was free may be taken a moment later.
const PORTS_TRIED_MAX: usize = 8;

/// A role with a password; `postgres` needs none.
const WITH_PASSWORD: &str = "careful";

/// The options of a test server.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// True if commits reach the disk; quick tests switch it off.
    pub fsync: bool,
    /// True if the server has a certificate, for `localhost`.
    pub tls: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { fsync: true, tls: false }
    }
}

/// A running server. It is removed with all data when it is dropped, or when this process ends in any way.
pub struct Server {
    binaries: PathBuf,
    user: Option<(u32, u32)>,
    folder: PathBuf,
    settings: String,
    port: u16,
    watchdog: Child,
    driver: Driver,
    scratches: AtomicU32,
}

impl Server {
    /// Starts a server with an empty database. The error says what is missing.
    pub fn start(options: Options) -> Result<Self, String> {
        let binaries = find_binaries().ok_or(NOT_INSTALLED)?;
        let user = ordinary_user()?;
        let folder = tempfile::Builder::new().prefix("mainspring-postgres-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?.keep();
        let driver = Driver::new().map_err(|error| error.to_string())?;
        let watchdog = watch(&binaries, user, &folder).map_err(|error| format!("no shell to watch: {error}"))?;
        let fsync = if options.fsync { "on" } else { "off" };
        let settings = format!("-c fsync={fsync} -c max_connections=200 -k {}", folder.display());
        let mut server =
            Self { binaries, user, folder, settings, port: 0, watchdog, driver, scratches: AtomicU32::new(0) };
        if let Some((user, group)) = user {
            chown(&server.folder, Some(user), Some(group)).map_err(|error| error.to_string())?;
        }
        server.run("initdb", &["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])?;
        server.ask_for_passwords()?;
        if options.tls {
            server.make_certificate()?;
        }
        server.start_on_a_free_port()?;
        Ok(server)
    }

    /// Returns a new schema.
    pub fn scratch(&self) -> Scratch<'_> {
        let schema = format!("scratch_{}", self.scratches.fetch_add(1, Ordering::Relaxed));
        Scratch { server: self, schema }
    }

    /// Returns the address of the server's database over TCP, with these parameters.
    pub fn address(&self, query: &str) -> String {
        format!("postgres://postgres@localhost:{}/postgres?{query}", self.port)
    }

    /// Returns the address over the unix socket.
    pub fn local_address(&self, query: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}:{}/postgres?{query}", self.port)
    }

    /// Returns the address of a role, `careful`, that needs a password; the caller makes the role.
    pub fn address_with_password(&self, password: &str, query: &str) -> String {
        format!("postgres://{WITH_PASSWORD}:{password}@localhost:{}/postgres?{query}", self.port)
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file of the authority that signed the server's certificate.
    pub fn authority(&self) -> PathBuf {
        self.data().join("server.crt")
    }

    /// Stops it as in a crash, without any cleanup.
    pub fn crash(&self) -> Result<(), String> {
        self.run("pg_ctl", &["stop", "-m", "immediate", "-w"])
    }

    /// Restarts it on the same data and port, and waits until it accepts connections.
    pub fn start_again(&self) -> Result<(), String> {
        let log = self.folder.join("log").display().to_string();
        let settings = format!("-p {} {}", self.port, self.settings);
        self.run("pg_ctl", &["start", "-w", "-t", "120", "-l", &log, "-o", &settings])
    }

    /// Opens a connection in addition to those of the stores.
    pub fn beside(&self) -> Result<Beside<'_>, String> {
        let config = self.address("").parse::<tokio_postgres::Config>().map_err(|error| error.to_string())?;
        let connected = self.driver.wait(config.connect(NoTls));
        let (client, connection) = connected.map_err(|error| error.to_string())?;
        self.driver.handle().spawn(connection);
        Ok(Beside { server: self, client })
    }

    /// Runs statements on a separate connection.
    pub fn execute(&self, sql: &str) -> Result<(), String> {
        self.beside()?.execute(sql)
    }

    /// Puts new tables into a folder, which is given to the server's user.
    pub fn keep_tables_in(&self, folder: &Path) -> Result<(), String> {
        if let Some((user, group)) = self.user {
            chown(folder, Some(user), Some(group)).map_err(|error| error.to_string())?;
        }
        self.execute(&format!("CREATE TABLESPACE elsewhere LOCATION '{}'", folder.display()))?;
        self.execute("ALTER DATABASE postgres SET default_tablespace = elsewhere")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The first matching line counts.
    fn ask_for_passwords(&self) -> Result<(), String> {
        let path = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let rule = format!("host all {WITH_PASSWORD} all scram-sha-256\n");
        fs::write(&path, rule + &rules).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn start_on_a_free_port(&mut self) -> Result<(), String> {
        let mut failed = String::new();
        for _ in 0..PORTS_TRIED_MAX {
            let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
            self.port = free.map_err(|error| error.to_string())?.port();
            match self.start_again() {
                Ok(()) => return Ok(()),
                Err(why) => failed = why,
            }
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("the server does not start: {failed}\n{log}"))
    }

    fn make_certificate(&mut self) -> Result<(), String> {
        let names = ["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
        let files = [("server.crt", made.cert.pem()), ("server.key", made.signing_key.serialize_pem())];
        for (name, text) in files {
            let path = self.data().join(name);
            let write = || -> io::Result<()> {
                fs::write(&path, text)?;
                fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
                self.user.map_or(Ok(()), |(user, group)| chown(&path, Some(user), Some(group)))
            };
            write().map_err(|error| format!("{}: {error}", path.display()))?;
        }
        self.settings.push_str(" -c ssl=on");
        Ok(())
    }

    /// Runs one of the server's programs on its data, as its user.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = as_user(Command::new(self.binaries.join(program)), self.user);
        // The started server inherits these files; with pipes, waiting for their end would hang.
        let file = || fs::File::create(self.folder.join("output")).map_err(|error| error.to_string());
        let data = self.data();
        command.args(arguments).arg("-D").arg(&data).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(file()?).stderr(file()?);
        let status = command.status().map_err(|error| format!("{program}: {error}"))?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(self.folder.join("output")).unwrap_or_default();
        Err(format!("{program} {}: {status}: {said}", arguments.join(" ")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // Waits, so that the next test finds no remains. Fails only if the shell was killed.
        let _ = self.watchdog.wait();
    }
}

/// A connection in addition to those of the stores, to inspect their data and to block them.
pub struct Beside<'a> {
    server: &'a Server,
    client: Client,
}

impl Beside<'_> {
    /// Runs statements. Locks of an open transaction are held until it ends, or the connection is dropped.
    pub fn execute(&self, sql: &str) -> Result<(), String> {
        self.server.driver.wait(self.client.batch_execute(sql)).map_err(|error| said(&error))
    }

    /// Returns the first column of the first row, as text.
    pub fn ask(&self, sql: &str) -> Result<String, String> {
        let answers = self.server.driver.wait(self.client.simple_query(sql)).map_err(|error| said(&error))?;
        let row = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        });
        row.ok_or_else(|| format!("no row: {sql}"))
    }
}

fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |said| format!("{} ({})", said.message(), said.code().code()))
}

/// A separate schema, dropped with this value.
pub struct Scratch<'a> {
    server: &'a Server,
    schema: String,
}

impl Scratch<'_> {
    /// Opens a connection in addition to those of the stores, which uses this schema.
    pub fn beside(&self) -> Result<Beside<'_>, String> {
        let beside = self.server.beside()?;
        beside.execute(&format!("SET search_path = {}", self.schema))?;
        Ok(beside)
    }

    /// Returns the name of the schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the address of a store in it.
    pub fn address(&self) -> String {
        self.server.address(&format!("schema={}", self.schema))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // A server that does not respond is removed together with the schema.
        let _ = self.server.execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
    }
}

/// Starts the shell that stops the server and removes its folder when the pipe closes. It has its own process group, so
/// that signals to the tests do not end it first.
fn watch(binaries: &Path, user: Option<(u32, u32)>, folder: &Path) -> io::Result<Child> {
    let script = r#"read _; cd "$2" && "$1"/pg_ctl stop -m immediate -w -D "$2"/data; cd / && rm -rf "$2""#;
    let mut shell = as_user(Command::new("sh"), user);
    shell.args(["-c", script, "watchdog"]).arg(binaries).arg(folder).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn as_user(mut command: Command, user: Option<(u32, u32)>) -> Command {
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the newest installed version.
fn find_binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.filter(|path| path.join("bin/pg_ctl").exists()).max_by_key(number);
    let in_path = || env::split_paths(&env::var_os("PATH")?).find(|folder| folder.join("pg_ctl").exists());
    newest.map(|path| path.join("bin")).or_else(in_path)
}

/// Returns the user to run as: PostgreSQL refuses to run as root.
fn ordinary_user() -> Result<Option<(u32, u32)>, String> {
    let own = fs::metadata("/proc/self").map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata));
    if own.is_ok_and(|user| user != 0) {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
    let find = |name: &str| {
        let mut fields = users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.split(':');
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let user = find("postgres").or_else(|| find("nobody"));
    user.map(Some).ok_or_else(|| "PostgreSQL does not run as root, and there is no user postgres or nobody".into())
}
