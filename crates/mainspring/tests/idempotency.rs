//! Idempotency keys apply to all executions of one state folder, separately for each workflow.

use std::process::Stdio;

use mainspring_kernel::{json::compact, value::Value};

mod support;
use support::{Answer, TestDir, call, yaml};

/// A workflow that appends a line each time it runs.
fn marking(name: &str) -> Value {
    yaml(&format!("name: {name}\nsteps:\n  - {{id: mark, type: bash, command: echo {name} >> ran}}\n"))
}

fn keyed(definition: &Value, key: &str) -> Vec<u8> {
    let runtime = Value::map([("idempotencyKey", Value::from(key))]);
    compact(&Value::map([("workflow", definition.clone()), ("runtime", runtime)])).into_bytes()
}

fn ran(dir: &TestDir, id: &str, definition: &Value, key: &str) -> Answer {
    call(dir.run(id, definition), &keyed(definition, key))
}

#[test]
fn a_repeated_key_gives_the_first_execution_of_its_workflow() {
    let dir = TestDir::new();
    let (ship, other) = (marking("ship"), marking("other"));
    for (id, definition, key, first, lines) in [
        ("a", &ship, "k1", "a", "ship\n"),
        ("b", &ship, "k1", "a", "ship\n"),
        ("a", &ship, "k1", "a", "ship\n"),
        // Another workflow, and another key.
        ("c", &other, "k1", "c", "ship\nother\n"),
        ("d", &ship, "k2", "d", "ship\nother\nship\n"),
        ("e", &other, "k1", "c", "ship\nother\nship\n"),
    ] {
        let answer = ran(&dir, id, definition, key);
        assert_eq!((answer.exit, answer.text("executionId")), (Some(0), first.into()), "{id} {key}: {answer:?}");
        assert_eq!(answer.text("status"), "ok", "{answer:?}");
        assert_eq!(dir.file("ran"), lines, "{id} {key}");
    }
    // The key belongs to the workflow's name: another definition with that name is an error.
    let changed = yaml("name: ship\nsteps:\n  - {id: mark, type: bash, command: echo changed >> ran}\n");
    let refused = ran(&dir, "f", &changed, "k1");
    assert_eq!((refused.exit, refused.text("error.code")), (Some(20), "hash_mismatch".into()), "{refused:?}");
    // Another state folder has its own keys.
    let elsewhere = dir.root().join("elsewhere");
    let mut command = dir.run("b", &ship);
    command.arg("--state-dir").arg(&elsewhere);
    assert_eq!(call(command, &keyed(&ship, "k1")).text("executionId"), "b");
}

#[test]
fn a_refused_request_does_not_claim_its_key() {
    let dir = TestDir::new();
    let definition =
        yaml("name: asks\ninputSchema: {type: integer}\nsteps:\n  - {id: mark, type: bash, command: echo x >> ran}\n");
    let refused = ran(&dir, "a", &definition, "k");
    assert_eq!(refused.exit, Some(10), "{refused:?}");
    let runtime = Value::map([("idempotencyKey", Value::from("k"))]);
    let fits = Value::map([("workflow", definition.clone()), ("runtime", runtime), ("input", 1u64.into())]);
    let answer = call(dir.run("b", &definition), compact(&fits).as_bytes());
    assert_eq!(answer.text("executionId"), "b", "{answer:?}");
}

#[test]
fn one_of_many_concurrent_requests_starts() {
    let dir = TestDir::new();
    let ship = marking("ship");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let each = |number: usize| {
            let mut command = dir.run(&format!("e{number}"), &ship);
            command.stdin(Stdio::piped());
            let input = keyed(&ship, "k");
            scope.spawn(move || call(command, &input))
        };
        let all: Vec<_> = (0..6).map(each).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(dir.file("ran"), "ship\n", "{answers:?}");
    let fine: Vec<&Answer> = answers.iter().filter(|answer| answer.exit == Some(0)).collect();
    assert!(!fine.is_empty() && fine.iter().all(|answer| answer.text("executionId") == fine[0].text("executionId")));
    // The other calls found the folder in use.
    let refused = answers.iter().filter(|answer| answer.exit != Some(0));
    refused.for_each(|answer| assert_eq!(answer.text("error.code"), "folder_in_use", "{answer:?}"));
}
