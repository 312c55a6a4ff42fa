//! Restored backups: an attempt that started after the backup is not repeated as if it had never started.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

mod support;
use support::{Answer, TestDir, call, spawn};

/// The timeout of operations that take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first step pays, and ends when the pipe is written.
const PAYS: &str = r#"
steps:
  - {id: pay, type: bash, command: 'echo paid >> log; read -r go < pipe', onInterrupted: fail}
"#;

fn state(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

fn dir(definition: &str) -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), definition).unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.root().join("pipe")).status().unwrap();
    assert!(made.success());
    dir
}

fn paid(dir: &TestDir) -> usize {
    fs::read_to_string(dir.root().join("log")).unwrap_or_default().lines().count()
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} takes too long");
        std::thread::yield_now();
    }
}

/// Runs until the step has paid.
fn run(dir: &TestDir, id: &str) -> Child {
    let before = paid(dir);
    let child = spawn(dir.mainspring(&["run", "wf.yaml", "--id", id, "--json"]), b"");
    wait("the step", || paid(dir) > before);
    child
}

fn release(dir: &TestDir) {
    fs::OpenOptions::new().write(true).open(dir.root().join("pipe")).unwrap().write_all(b"go\n").unwrap();
}

fn back_up(dir: &TestDir, name: &str) -> PathBuf {
    let file = dir.root().join(name);
    let answer = call(dir.mainspring(&["backup", file.to_str().unwrap()]), b"");
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    file
}

/// Restores as documented: removes the database with its WAL, and copies the backup.
fn restore(dir: &TestDir, backup: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(state(dir).join(format!("journal.db{ending}")));
    }
    fs::copy(backup, state(dir).join("journal.db")).unwrap();
}

#[track_caller]
fn check_interrupted(dir: &TestDir, id: &str, times_paid: usize) {
    let answer = call(dir.mainspring(&["resume", id, "--json"]), b"");
    assert_eq!((answer.exit, answer.text("error.code").as_str()), (Some(40), "interrupted"), "{answer:?}");
    assert_eq!(paid(dir), times_paid, "it ran again");
    let verified = call(dir.mainspring(&["verify", id]), b"");
    assert_eq!(verified.exit, Some(0), "{verified:?}");
}

#[test]
fn a_script_that_ended_after_the_backup_is_not_run_again() {
    let dir = dir(PAYS);
    let child = run(&dir, "e1");
    let backup = back_up(&dir, "backup.db");
    release(&dir);
    assert_eq!(Answer::of(child.wait_with_output().unwrap()).exit, Some(0));
    restore(&dir, &backup);
    check_interrupted(&dir, "e1", 1);
}

/// A killed process writes nothing at its end.
#[test]
fn an_ended_script_is_not_run_again_after_restore_and_kill() {
    let dir = dir(PAYS);
    fs::write(
        dir.root().join("wf.yaml"),
        PAYS.to_string() + "  - {id: stays, type: bash, command: 'echo stays >> log; read -r go < pipe'}\n",
    )
    .unwrap();
    let mut child = run(&dir, "e1");
    let backup = back_up(&dir, "backup.db");
    release(&dir);
    wait("the second step", || paid(&dir) == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    restore(&dir, &backup);
    check_interrupted(&dir, "e1", 2);
    // The second script belongs to an attempt that the restored store does not contain.
    release(&dir);
}

/// The first processes after the restore run other executions, and a later one loads this one.
#[test]
fn an_ended_script_is_not_run_again_by_a_later_process() {
    let dir = dir(PAYS);
    let child = run(&dir, "e1");
    let backup = back_up(&dir, "backup.db");
    release(&dir);
    assert_eq!(Answer::of(child.wait_with_output().unwrap()).exit, Some(0));
    restore(&dir, &backup);
    for id in ["e2", "e3"] {
        let child = run(&dir, id);
        release(&dir);
        assert_eq!(Answer::of(child.wait_with_output().unwrap()).exit, Some(0));
    }
    check_interrupted(&dir, "e1", 3);
}

#[test]
fn an_ended_script_is_not_run_again_after_a_folder_restore() {
    let dir = dir(PAYS);
    let child = run(&dir, "e1");
    let aside = dir.root().join("aside");
    let copy = |from: &Path, to: &Path| {
        assert!(std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    };
    copy(&state(&dir), &aside);
    release(&dir);
    assert_eq!(Answer::of(child.wait_with_output().unwrap()).exit, Some(0));
    // The process records were copied with the folder. This case is about a script without a record.
    fs::remove_dir_all(aside.join("processes")).unwrap();
    fs::create_dir(aside.join("processes")).unwrap();
    fs::remove_dir_all(state(&dir)).unwrap();
    copy(&aside, &state(&dir));
    check_interrupted(&dir, "e1", 1);
}

/// Without a restore, a script that certainly never started is started for the first time.
#[test]
fn an_unstarted_script_starts_after_a_kill() {
    let dir = dir(PAYS);
    let mut child = run(&dir, "e1");
    child.kill().unwrap();
    child.wait().unwrap();
    // The process record proves that the script started. Without it, the attempt was dispatched but not started.
    let notes: Vec<_> = fs::read_dir(state(&dir).join("processes")).unwrap().map(|note| note.unwrap().path()).collect();
    assert_eq!(notes.len(), 1);
    let note = fs::read_to_string(&notes[0]).unwrap();
    let leader = note.lines().find_map(|line| line.strip_prefix("leader ")).unwrap().parse().unwrap();
    kill_process_group(Pid::from_raw(leader).unwrap(), Signal::KILL).unwrap();
    fs::remove_file(&notes[0]).unwrap();
    let resumed = spawn(dir.mainspring(&["resume", "e1", "--json"]), b"");
    wait("the step", || paid(&dir) == 2);
    release(&dir);
    let answer = Answer::of(resumed.wait_with_output().unwrap());
    assert_eq!((answer.exit, answer.text("status").as_str()), (Some(0), "ok"), "{answer:?}");
}

/// An `http` step leaves no process record, so a process that did not perform it never treats it as not started.
#[test]
fn a_request_that_was_answered_after_the_backup_is_not_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dir = dir(&format!(
        "steps:\n  - {{id: pay, type: http, url: 'http://{address}/pay', method: POST, onInterrupted: fail}}\n"
    ));
    let allowing = |arguments: &[&str]| {
        let mut command = dir.mainspring(arguments);
        command.env("MAINSPRING_HTTP_ALLOW", "127.0.0.0/8");
        command
    };
    let child = spawn(allowing(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    let backup = back_up(&dir, "backup.db");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    assert_eq!(Answer::of(child.wait_with_output().unwrap()).exit, Some(0));
    restore(&dir, &backup);
    let answer = call(allowing(&["resume", "e1", "--json"]), b"");
    assert_eq!((answer.exit, answer.text("error.code").as_str()), (Some(40), "interrupted"), "{answer:?}");
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it was sent again");
}
