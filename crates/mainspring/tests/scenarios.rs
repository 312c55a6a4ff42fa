//! `mainspring test` as an author meets it.

use std::fs;

mod support;
use support::{Ground, call};

const SCENARIO: &str = "
name: holds
definition: {steps: [{id: flaky, type: bash, command: 'true'}]}
effects: {flaky: {return: 1}, \"flaki\\n  ok\": {return: 2}}
expect: {status: completed}
";

#[test]
fn a_slip_in_a_name_is_warned_of_and_fails_nothing() {
    let ground = Ground::new();
    fs::write(ground.root().join("a.scenario.yaml"), SCENARIO).unwrap();
    let answer = call(ground.mainspring(&["test", "."]), b"");
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let warnings: Vec<_> = answer.stdout.lines().filter(|line| line.contains("warning: ")).collect();
    assert!(matches!(warnings.as_slice(), [line] if line.contains(r#""flaki\n  ok""#)), "{answer:?}");
    assert!(answer.stdout.contains("1 passed, 0 failed"), "{answer:?}");
    let answer = call(ground.mainspring(&["test", ".", "--json"]), b"");
    assert_eq!((answer.exit, answer.at("ok")), (Some(0), true.into()), "{answer:?}");
    assert!(answer.text("warnings.0").contains("flaki"), "{answer:?}");
    fs::write(ground.root().join("a.scenario.yaml"), SCENARIO.replace("completed", "failed")).unwrap();
    assert_eq!(call(ground.mainspring(&["test", "."]), b"").exit, Some(1));
}
