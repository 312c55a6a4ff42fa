//! `mainspring approvals` on a data folder: lists open approvals in pages.

use std::fs;

use mainspring_kernel::{json, value::Value};

mod support;
use support::{Answer, TestDir, at, call};

fn mainspring(dir: &TestDir, arguments: &[&str]) -> Answer {
    call(dir.mainspring(arguments), b"")
}

fn gates(answer: &Answer) -> (Vec<Value>, Option<String>) {
    let page = json::read(answer.stdout.as_bytes()).unwrap_or_else(|error| panic!("{error}: {answer:?}")).value;
    let next = page.get("nextCursor").and_then(Value::as_text).map(ToString::to_string);
    (page.get("approvals").and_then(Value::as_list).unwrap().to_vec(), next)
}

#[test]
fn open_approvals_are_listed_with_approvers_and_expiry() {
    let dir = TestDir::new();
    let asks = "name: ship\nsteps:\n  - id: all\n    type: parallel\n    steps:\n      - {id: one, type: approval, prompt: Ship it?, ttlMs: 3600000, onTimeout: approve}\n      - {id: two, type: approval, prompt: Two?, approvers: [bob, cem], count: 2}\n";
    fs::write(dir.root().join("wf.yaml"), asks).unwrap();
    fs::write(dir.root().join("ends.yaml"), "steps:\n  - {id: nap, type: sleep, durationMs: 1}\n").unwrap();
    assert_eq!(mainspring(&dir, &["approvals"]).exit, Some(10), "there is no folder yet");
    assert_eq!(mainspring(&dir, &["run", "ends.yaml", "--id", "e0"]).exit, Some(0));
    let none = mainspring(&dir, &["approvals"]);
    assert!(none.exit == Some(0) && none.stdout.contains("no open approvals"), "{none:?}");
    for id in ["e1", "e2"] {
        assert_eq!(mainspring(&dir, &["run", "wf.yaml", "--id", id]).exit, Some(0));
    }
    let listed = mainspring(&dir, &["approvals"]);
    for said in [
        "e2  ship  at `one`",
        "Ship it?",
        "approved by itself",
        "denied by itself",
        "decide: everyone with access to this folder",
        "decide: bob, cem; 0 of 2 have approved",
        "mainspring approve e1 --step two",
    ] {
        assert!(listed.stdout.contains(said), "{said:?} is not in {}", listed.stdout);
    }
    let (all, next) = gates(&mainspring(&dir, &["approvals", "--json"]));
    assert_eq!((all.len(), next), (4, None));
    let first = &all[0];
    assert_eq!(
        [at(first, "executionId"), at(first, "stepId"), at(first, "prompt")],
        ["e2", "one", "Ship it?"].map(Value::from)
    );
    assert_eq!([at(first, "defaultAction"), at(first, "canBeApproved")], ["approve".into(), Value::Null]);
    let times = ["requestedAt", "timeoutAt"]
        .map(|key| mainspring_kernel::time::parse_rfc3339(at(first, key).as_text().unwrap()).unwrap());
    assert_eq!(times[1] - times[0], 3_600_000);
    // The pages together equal the whole list.
    let (mut paged, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["approvals", "--json", "--limit", "3"];
        arguments.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let (page, next) = gates(&mainspring(&dir, &arguments));
        assert!(page.len() <= 3);
        paged.extend(page);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, all);
    let cut = mainspring(&dir, &["approvals", "--limit", "1"]);
    assert!(cut.stdout.contains("there may be more: mainspring approvals --cursor "), "{cut:?}");
    assert_eq!(mainspring(&dir, &["approvals", "--cursor", "x"]).exit, Some(10));
    // A decided approval is no longer listed.
    assert_eq!(mainspring(&dir, &["deny", "e2", "--step", "one"]).exit, Some(0));
    let (left, _) = gates(&mainspring(&dir, &["approvals", "--json"]));
    assert!(left.iter().all(|gate| at(gate, "executionId") == "e1".into()) && left.len() == 2, "{left:?}");
}

#[test]
fn help_of_gates_names_the_list() {
    let dir = TestDir::new();
    for arguments in [&["approve", "--help"][..], &["deny", "--help"], &["run", "--help"], &["--help"]] {
        let help = mainspring(&dir, arguments);
        assert!(help.stdout.contains("approvals"), "{arguments:?}: {help:?}");
    }
}
