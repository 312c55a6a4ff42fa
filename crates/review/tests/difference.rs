//! Differences by meaning: renamed, moved, added, removed and changed steps, edges, limits.

use mainspring_kernel::definition::{Compiled, Syntax, compile, read};
use mainspring_review::{ChangeKind, Report, Version, review};

fn compiled(text: &str) -> Compiled {
    let document = read(text.as_bytes(), Syntax::Guess).unwrap_or_else(|error| panic!("{error}\n{text}"));
    compile(&document).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn report(old: &str, new: &str) -> Report {
    let (old, new) = (compiled(old), compiled(new));
    review(Version { compiled: &old, source: None }, Version { compiled: &new, source: None })
}

fn check(old: &str, new: &str, expected: &[&str]) {
    let report = report(old, new);
    let line = |change: &mainspring_review::Change| {
        let field = change.field.as_deref().map(|field| format!(" {field}")).unwrap_or_default();
        format!("{} {}{field}", change.kind.name(), change.path)
    };
    let found: Vec<String> = report.changes.iter().map(line).collect();
    assert_eq!(found, expected, "{old}\n{new}");
    assert_eq!(report.changes_total, expected.len());
}

const THREE: &str = r#"
steps:
  - {id: a, type: bash, command: one}
  - {id: b, type: code, code: "export default (x) => x", input: {x: "@a.stdout"}}
  - {id: c, type: bash, command: two, env: {X: "@b", Y: "to @a.stdout"}}
"#;

#[test]
fn a_renamed_step_is_one_step() {
    let new = THREE.replace("id: a,", "id: first,").replace("@a.", "@first.");
    check(THREE, &new, &["step_renamed steps[0]"]);
    assert!(report(THREE, &new).findings.is_empty());
}

#[test]
fn a_chain_of_new_names_is_no_change_of_content() {
    let new = THREE.replace("id: c,", "id: d,").replace("id: b,", "id: c,").replace("\"@b\"", "\"@c\"");
    check(THREE, &new, &["step_renamed steps[1]", "step_renamed steps[2]"]);
}

#[test]
fn all_steps_are_renamed() {
    let new = THREE
        .replace("id: a,", "id: x,")
        .replace("id: b,", "id: y,")
        .replace("id: c,", "id: z,")
        .replace("@a.", "@x.")
        .replace("\"@b\"", "\"@y\"");
    check(THREE, &new, &["step_renamed steps[0]", "step_renamed steps[1]", "step_renamed steps[2]"]);
}

#[test]
fn a_step_that_gets_an_id_is_the_same_step() {
    let old = "steps:\n  - {type: sleep, durationMs: 1}\n  - {type: sleep, durationMs: 2}\n";
    let new = "steps:\n  - {type: sleep, durationMs: 1}\n  - {id: w, type: sleep, durationMs: 2}\n";
    check(old, new, &["step_renamed steps[1]"]);
}

#[test]
fn an_insertion_does_not_change_the_steps_behind_it() {
    let old = "steps:\n  - {type: sleep, durationMs: 1}\n  - {type: bash, command: a}\n  - {type: bash, command: b}\n";
    let new = "steps:\n  - {type: signal, signal: s}\n  - {type: sleep, durationMs: 1}\n  - {type: bash, command: a}\n  - {type: bash, command: b2}\n";
    check(old, new, &["step_added steps[0]", "step_changed steps[3] command"]);
}

#[test]
fn a_moved_step_is_moved_and_nothing_else_is() {
    let old = "steps:\n  - {id: a, type: bash, command: a}\n  - {id: b, type: bash, command: b}\n  - {id: c, type: bash, command: c}\n";
    let new = "steps:\n  - {id: c, type: bash, command: c}\n  - {id: a, type: bash, command: a}\n  - {id: b, type: bash, command: b}\n";
    check(old, new, &["step_moved steps[0]"]);
}

#[test]
fn a_step_moves_into_a_branch() {
    let old = "steps:\n  - {id: a, type: bash, command: a}\n  - {id: if, type: conditional, condition: true, then: [{id: b, type: bash, command: b}]}\n";
    let new = "steps:\n  - {id: if, type: conditional, condition: true, then: [{id: b, type: bash, command: b}, {id: a, type: bash, command: a}]}\n";
    check(old, new, &["step_moved steps[0].then[1]"]);
}

#[test]
fn for_each_is_a_field_of_its_step() {
    let old = "steps:\n  - {id: a, type: bash, command: a}\n";
    let new = "steps:\n  - {id: a, type: bash, command: a, forEach: {ref: \"@input.list\", concurrency: 2}}\n";
    check(old, new, &["step_changed steps[0] concurrency", "step_changed steps[0] forEach"]);
}

#[test]
fn edges_limits_and_policies() {
    let old = "constraints: {maxSteps: 5}\nnodes:\n  - {id: a, type: sleep, durationMs: 1}\n  - {id: b, type: sleep, durationMs: 2}\n  - {id: c, type: sleep, durationMs: 3}\nedges:\n  - {from: a, to: b}\n  - {from: b, to: c}\n";
    let new = "constraints: {maxSteps: 6}\npolicy: {failOpen: true}\nnodes:\n  - {id: a, type: sleep, durationMs: 1}\n  - {id: b, type: sleep, durationMs: 2}\n  - {id: c, type: sleep, durationMs: 3}\nedges:\n  - {from: a, to: b, condition: true}\n  - {from: a, to: c}\n";
    let expected = [
        "limit_changed constraints.maxSteps maxSteps",
        "policy_changed policy.failOpen failOpen",
        "edge_changed nodes[1]",
        "edge_added nodes[2]",
        "edge_removed nodes[2]",
    ];
    check(old, new, &expected);
}

#[test]
fn notations_compare_by_meaning() {
    let one = "name: n\nsteps:\n  - {id: a, type: tool, tool: bash, arguments: {command: ls}}\n";
    let other = "name: n\nsteps:\n  - {id: a, type: bash, command: ls}\n";
    check(one, other, &[]);
    assert!(!report(one, other).diff.is_empty(), "the text differs");
}

#[test]
fn a_report_is_the_same_each_time_and_bounded() {
    let steps = |from: usize| -> String {
        (from..from + 1_200).map(|n| format!("  - {{id: s{n}, type: bash, command: c{n}}}\n")).collect()
    };
    let text = |from| format!("constraints: {{maxSteps: 9000}}\nsteps:\n{}", steps(from));
    let (old, new) = (text(0), text(1_200));
    let (one, other) = (report(&old, &new), report(&old, &new));
    assert_eq!(one.hash(), other.hash());
    assert_eq!((one.changes_total, one.changes.len()), (2_400, 2_000));
    assert_eq!((one.findings_total, one.findings.len()), (2_400, 2_000));
    let of = |kind| one.changes.iter().filter(|change| change.kind == kind).count();
    assert_eq!((of(ChangeKind::StepAdded), of(ChangeKind::StepRemoved)), (1_200, 800));
}
