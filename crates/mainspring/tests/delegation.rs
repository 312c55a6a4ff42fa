//! Inputs that commands delegate to the process that owns the data folder are processed in order of arrival.

use std::{fs, os::unix::net::UnixDatagram, path::PathBuf, sync::Arc, time::Duration};

use mainspring_engine::{Engine, EngineScope, data_dir::DataDir, evaluator::InProcess, keys};
use mainspring_store::prelude::*;
use mainspring_store::{ReadLimit, sqlite::SqliteStore};

mod support;
use support::{Answer, TestDir, call, spawn};

/// Its last step is skipped. A signal for which no step waits would be refused.
const DEFINITION: &str = "steps:\n  - {id: gate, type: approval}\n  \
                          - {id: go, type: signal, signal: go, when: {ref: \"@input\", eq: wait}}\n";

/// A folder in which an execution waits.
fn waiting() -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"").exit, Some(0));
    dir
}

fn folder(dir: &TestDir) -> PathBuf {
    dir.root().join("home/.local/state/mainspring")
}

/// Runs calls one after another while this process owns the folder without processing messages. After each call the
/// inbox must contain the given number of messages. Then an engine processes them, and the calls return.
fn delegated<const CALLS: usize>(dir: &TestDir, calls: [(&[&str], usize); CALLS]) -> [Answer; CALLS] {
    let home = DataDir::new(folder(dir));
    let key = keys::load(&dir.root().join("home/.config/mainspring/key")).unwrap();
    let held = home.hold(&key).unwrap();
    let store = SqliteStore::open(&home.journal()).unwrap();
    // Every message notifies the socket, a repeated one too.
    let wakeups = UnixDatagram::bind(home.wakeup_socket()).unwrap();
    wakeups.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let children = calls.map(|(arguments, messages)| {
        let child = spawn(dir.mainspring(arguments), b"");
        wakeups.recv(&mut [0; 1]).expect("a message is enqueued");
        assert_eq!(store.inbox(&[0], 0, ReadLimit::of(100)).unwrap().len(), messages, "{arguments:?}");
        child
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let executors = mainspring_cli::runner::executors(Default::default(), &home, &held);
        let resources = mainspring_engine::EngineResources {
            data_dir: Some((home, held)),
            ..mainspring_engine::EngineResources::default()
        };
        let engine =
            Engine::run(Arc::new(store), key, (executors, Arc::new(InProcess)), resources, EngineScope::named())
                .unwrap();
        let ended = tokio::task::spawn_blocking(|| children.map(|child| Answer::of(child.wait_with_output().unwrap())));
        let answers = ended.await.unwrap();
        engine.drain().await;
        answers
    })
}

#[test]
fn a_denial_after_an_approval_is_too_late() {
    let dir = waiting();
    let [approved, denied] = delegated(&dir, [(&["approve", "e1"], 1), (&["deny", "e1", "--json"], 2)]);
    assert_eq!(approved.exit, Some(0), "{approved:?}");
    assert!(approved.stderr.contains("received by"), "{approved:?}");
    assert_eq!(denied.exit, Some(20), "{denied:?}");
    assert_eq!(denied.text("error.code"), "not_open", "{denied:?}");
    for text in ["`gate`", "approve by", "already decided", "no effect"] {
        assert!(denied.text("error.message").contains(text), "{text:?}: {denied:?}");
    }
    let shown = call(dir.mainspring(&["show", "e1", "--json"]), b"");
    assert_eq!(shown.text("status"), "ok", "{shown:?}");
}

#[test]
fn an_approval_after_a_denial_is_too_late() {
    let dir = waiting();
    let [denied, approved] = delegated(&dir, [(&["deny", "e1"], 1), (&["approve", "e1"], 2)]);
    assert_eq!((denied.exit, approved.exit), (Some(0), Some(20)), "{denied:?} {approved:?}");
    assert!(approved.stderr.contains("deny by"), "{approved:?}");
    assert_eq!(call(dir.mainspring(&["show", "e1", "--json"]), b"").text("status"), "cancelled");
}

#[test]
fn a_repeated_decision_is_the_same_message() {
    let dir = waiting();
    let [first, second] = delegated(&dir, [(&["approve", "e1"], 1), (&["approve", "e1", "--reason", "again"], 1)]);
    assert_eq!((first.exit, second.exit), (Some(0), Some(0)), "{first:?} {second:?}");
}

/// A decision for an approval of a child is sent to the child, even if the command names the parent.
#[test]
fn a_decision_for_a_child_is_delegated_to_it() {
    let dir = TestDir::new();
    fs::write(dir.root().join("child.yaml"), "steps:\n  - {id: gate, type: approval}\n").unwrap();
    fs::write(dir.root().join("wf.yaml"), "steps: [{id: sub, type: subworkflow, workflow: child}]\n").unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"").exit, Some(0));
    let [approved, denied] = delegated(&dir, [(&["approve", "e1"], 1), (&["deny", "e1", "--json"], 2)]);
    assert!(approved.stderr.contains("received by"), "{approved:?}");
    assert_eq!((approved.exit, denied.exit), (Some(0), Some(20)), "{approved:?} {denied:?}");
    assert!(denied.text("error.message").contains("`sub/gate`"), "{denied:?}");
    let shown = call(dir.mainspring(&["resume", "e1", "--json"]), b"");
    assert_eq!(shown.text("status"), "ok", "{shown:?}");
}

#[test]
fn a_signal_of_a_wrong_name_and_a_decision_at_another_gate_are_refused() {
    let dir = waiting();
    let refused = |arguments: &[&str], code: &str, words: &[&str]| {
        let answer = call(dir.mainspring(arguments), b"");
        assert_eq!((answer.exit, answer.text("error.code").as_str()), (Some(20), code), "{answer:?}");
        words.iter().for_each(|word| assert!(answer.text("error.message").contains(word), "{word}: {answer:?}"));
    };
    refused(&["signal", "e1", "og", "--json"], "signal_not_kept", &["its steps wait for `go`"]);
    refused(
        &["approve", "e1", "--step", "gaet", "--json"],
        "no_open_gate",
        &["did you mean `gate`?", "open now: `gate`"],
    );
    refused(&["approve", "e1", "--step", "go", "--json"], "no_open_gate", &["is no approval", "open now: `gate`"]);
    assert_eq!(call(dir.mainspring(&["approve", "e1"]), b"").exit, Some(0));
    let late = ["approve", "e1", "--step", "gate", "--json"];
    refused(&late, "not_open", &["already decided: approved by", "no approval is open"]);
}

#[test]
fn a_decision_before_the_first_approval_says_how_to_wait_for_it() {
    let dir = TestDir::new();
    let definition = "steps:\n  - {id: go, type: signal, signal: go}\n  - {id: gate, type: approval}\n";
    fs::write(dir.root().join("wf.yaml"), definition).unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1", "--detach"]), b"").exit, Some(0));
    for arguments in [&["approve", "e1", "--json"][..], &["deny", "e1", "--json"]] {
        let early = call(dir.mainspring(arguments), b"");
        assert_eq!((early.exit, early.text("error.code").as_str()), (Some(20), "no_open_gate"), "{early:?}");
        let again = format!("type `mainspring {} e1` again", arguments[0]);
        for part in ["has not reached an approval", "`mainspring tail e1` follows it", &again] {
            assert!(early.text("error.message").contains(part), "{part}: {early:?}");
        }
    }
    let named = call(dir.mainspring(&["approve", "e1", "--step", "gate", "--json"]), b"");
    assert!(named.text("error.message").contains("`gate` is not open yet"), "{named:?}");
    assert!(named.text("error.message").contains("type `mainspring approve e1 --step gate` again"), "{named:?}");
    assert_eq!(call(dir.mainspring(&["cancel", "e1"]), b"").exit, Some(0));
}

/// A signal for an execution that a cancel ends first is lost, and reported as such.
#[test]
fn a_signal_after_a_cancel_is_rejected() {
    let dir = waiting();
    let [cancelled, signalled] = delegated(&dir, [(&["cancel", "e1"], 1), (&["signal", "e1", "go", "--json"], 2)]);
    assert_eq!((cancelled.exit, signalled.exit), (Some(0), Some(20)), "{cancelled:?} {signalled:?}");
    assert_eq!(signalled.text("error.code"), "signal_not_kept", "{signalled:?}");
    assert!(signalled.text("error.message").contains("has ended"), "{signalled:?}");
}

#[test]
fn an_input_above_the_limit_is_not_delegated() {
    let dir = waiting();
    // Fractions take more bytes in binary form than in JSON, and an argument is limited to 128 KiB.
    let payload = format!("[{}1.1]", "1.1,".repeat(31_000));
    let long = "x".repeat(2_001);
    for (arguments, code) in [
        (&["signal", "e1", "go", "--payload", &payload, "--json"][..], "payload_too_large"),
        (&["approve", "e1", "--reason", &long, "--json"], "reason_too_long"),
        (&["cancel", "e1", "--reason", &long, "--json"], "bad_reason"),
    ] {
        let refused = call(dir.mainspring(arguments), b"");
        assert_eq!((refused.exit, refused.text("error.code").as_str()), (Some(10), code), "{refused:?}");
    }
}
