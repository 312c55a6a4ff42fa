//! Other programs at the files of a server's store: readers change nothing, and after a file was removed or
//! replaced, nothing is acknowledged.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use mainspring_kernel::value::Value;
use rusqlite::{Connection, backup::Backup};

use super::{
    client::{Client, Reply},
    process::Server,
    support::MAINSPRING,
};

/// Timeout of the detection, which takes a second or two.
const NOTICE: Duration = Duration::from_secs(60);

fn database(folder: &Path) -> PathBuf {
    folder.join("data/journal.db")
}

fn log(folder: &Path) -> PathBuf {
    folder.join("data/journal.db-wal")
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// True if the server holds a lock on its database. Without one, another program may remove the WAL.
fn is_locked(server: &Server, folder: &Path) -> bool {
    let (pid, ending) = (server.pid().to_string(), format!(":{}", inode(&database(folder))));
    fs::read_to_string("/proc/locks").unwrap().lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(4) == Some(&pid.as_str()) && fields.get(5).is_some_and(|file| file.ends_with(&ending))
    })
}

fn put(client: &Client, member: &str) -> io::Result<Reply> {
    client.try_send("PUT", &format!("/api/members/{member}"), &[], Some(r#"{"role":"member"}"#))
}

/// This process reads as another program. The installed `sqlite3` is another release of SQLite.
fn read_as_another_program(folder: &Path) {
    for _ in 0..3 {
        let connection = Connection::open(database(folder)).unwrap();
        connection.query_row("SELECT count(*) FROM audit", [], |_| Ok(())).unwrap();
        let mut copy = Connection::open_in_memory().unwrap();
        Backup::new(&connection, &mut copy).unwrap().step(-1).unwrap();
        connection.close().unwrap();
    }
    match Command::new("sqlite3").arg(database(folder)).arg("SELECT count(*) FROM audit").output() {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        Ok(output) => assert!(output.status.success(), "{output:?}"),
    }
}

fn our_commands(folder: &Path) {
    for arguments in [&["doctor"][..], &["list"], &["verify", "--all"], &["token"]] {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).arg("--dir").arg(folder.join("data")).env("HOME", folder);
        // Their output is tested elsewhere; here they only open and close the files.
        command.output().unwrap();
    }
}

#[test]
fn other_readers_of_the_store_lose_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start(folder);
    let (owner, token) = (server.owner(), server.token.clone().unwrap());
    put(&owner, "before").unwrap().expect(200);
    assert!(is_locked(&server, folder), "after the start, and some reads and writes");
    let before = inode(&log(folder));
    read_as_another_program(folder);
    our_commands(folder);
    read_as_another_program(folder);
    assert_eq!(inode(&log(folder)), before);
    assert!(is_locked(&server, folder));
    put(&owner, "after").unwrap().expect(200);
    let entries = |server: &Server| server.client(&token).get("/api/audit/verify").expect(200).json();
    let known = entries(&server);
    assert_eq!(known.get("ok"), Some(&Value::Bool(true)));
    server.kill();
    let server = Server::start(folder);
    for member in ["before", "after"] {
        server.client(&token).get(&format!("/api/members/{member}")).expect(200);
    }
    assert_eq!(entries(&server).get("entries"), known.get("entries"));
}

/// A damage to the files; true if all acknowledged data exists after a restart.
type Damage = (&'static str, fn(&Path), bool);

const DAMAGES: [Damage; 4] = [
    ("the log is removed", |folder| fs::remove_file(log(folder)).unwrap(), true),
    ("the log is begun anew", |folder| replace(&log(folder)), true),
    ("the database is removed", |folder| fs::remove_file(database(folder)).unwrap(), false),
    ("the database is replaced", |folder| replace(&database(folder)), false),
];

fn replace(path: &Path) {
    let other = path.with_extension("other");
    fs::write(&other, b"").unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn a_server_with_a_deleted_file_stops() {
    for (name, damage, is_saved) in DAMAGES {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut server = Server::start(folder);
        let (owner, token) = (server.owner(), server.token.clone().unwrap());
        put(&owner, "before").unwrap().expect(200);
        damage(folder);
        // Rejected, or without a response because the server has stopped.
        if let Ok(reply) = put(&owner, "lost") {
            assert_eq!(reply.status, 503, "{name}: {reply:?}");
        }
        assert!(server.ended(NOTICE).is_some_and(|exit| exit != 0), "{name}");
        if is_saved {
            let server = Server::start(folder);
            server.client(&token).get("/api/members/before").expect(200);
        }
    }
}

#[test]
fn an_idle_server_with_a_deleted_file_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let nobody = server.nobody();
    nobody.get("/readyz").expect(200);
    fs::remove_file(log(folder.path())).unwrap();
    let until = Instant::now() + NOTICE;
    while let Ok(reply) = nobody.try_send("GET", "/readyz", &[], None)
        && reply.status != 503
    {
        assert!(Instant::now() < until, "{reply:?}");
        std::thread::yield_now();
    }
    assert!(server.ended(NOTICE).is_some_and(|exit| exit != 0));
}
