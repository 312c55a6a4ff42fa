//! One workflow written by hand in all three notations, with everything explicit for which their defaults differ: they
//! give the same plan and the same journal.

use std::path::Path;

use mainspring_kernel::{
    definition::{Notation, Syntax, compile, convert::convert},
    document::Document,
    hash::Hash,
    plan::Plan,
};
use mainspring_sim::{
    run_case,
    scenario::{Case, read_text},
};

/// Compiles the plan, without the hash of its source text.
fn plan(definition: &Document) -> Plan {
    let compiled = compile(definition).unwrap_or_else(|found| panic!("{found:#?}"));
    Plan { workflow_hash: Hash::default(), ..compiled.plan }
}

/// Runs one case for each notation in all four modes; `rest` is the common part of the cases.
fn check(written: [&str; 3], rest: &str) {
    let case = |definition: &str| -> Case {
        let lines: String = definition.lines().map(|line| format!("  {line}\n")).collect();
        let text = format!("name: n\ndefinition:\n{lines}{rest}\n");
        let cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
        cases.into_iter().next().expect("there is one case")
    };
    let cases = written.map(case);
    let documents = cases.each_ref().map(|case| Result::clone(&case.definition).expect("it can be read"));
    let plans = documents.each_ref().map(plan);
    let reports = cases.each_ref().map(run_case);
    for (at, notation) in Notation::ALL.into_iter().enumerate() {
        assert_eq!(Notation::of(&documents[at].value), notation);
        assert_eq!(plans[at], plans[0], "{}", notation.name());
        assert!(reports[at].holds(), "{}: {}", notation.name(), reports[at].failures.join("\n"));
        assert_eq!(reports[at].modes.len(), 4);
        for (mode, first) in reports[at].modes.iter().zip(&reports[0].modes) {
            assert!(!mode.picture.is_empty());
            assert_eq!(mode.picture, first.picture, "{}, {}", notation.name(), mode.mode.name());
        }
        for to in Notation::ALL {
            let converted = convert(&documents[at], to).unwrap_or_else(|found| panic!("{found:#?}"));
            assert_eq!(converted.renamed, []);
            assert_eq!(plan(&Document::placeless(converted.definition)), plans[0], "to {}", to.name());
        }
    }
}

#[test]
fn a_chain() {
    check(
        [
            r#"
output: {sum: "@second.sum", at: "@wait"}
steps:
  - {id: first, type: tool, tool: ONE, arguments: {n: "@input.n"}, retry: {maxAttempts: 3, initialDelayMs: 1000, backoff: linear}}
  - {id: wait, type: sleep, durationMs: 5000}
  - {id: second, type: tool, tool: TWO, arguments: {n: "@first.n"}, retry: {maxAttempts: 2, initialDelayMs: 1000, backoff: fixed}}"#,
            r#"
order: sequence
output: {sum: "@second.sum", at: "@wait"}
steps:
  - {name: first, action: {toolName: ONE}, input: {n: "@input.n"}, retry: {maxAttempts: 3, initialDelayMs: 1000, backoff: linear}}
  - {name: wait, type: sleep, durationMs: 5000}
  - {name: second, action: {toolName: TWO}, input: {n: "@first.n"}, retry: {maxAttempts: 2, initialDelayMs: 1000, backoff: fixed}}"#,
            r#"
order: sequence
output: {sum: "@second.sum", at: "@wait"}
nodes:
  - {id: first, type: tool, tool: ONE, arguments: {n: "@input.n"}, retryPolicy: {maxAttempts: 3, initialDelayMs: 1000, backoff: linear}}
  - {id: wait, type: sleep, durationMs: 5000}
  - {id: second, type: tool, tool: TWO, arguments: {n: "@first.n"}, retryPolicy: {maxAttempts: 2, initialDelayMs: 1000, backoff: fixed}}"#,
        ],
        r#"
input: {n: 1}
effects:
  ONE: [{error: {class: timeout, message: late}}, {error: {class: timeout, message: late}}, {return: {n: 2}}]
  TWO: {return: {sum: 3}}
expect: {status: completed, output: {sum: 3, at: null}, call_count: 4, duration: 8s}"#,
    );
}

#[test]
fn a_diamond_with_a_handled_failure() {
    let edges = r#"
edges:
  - {from: start, to: left}
  - {from: start, to: right}
  - {from: left, to: repair, when: on_failure}
  - {from: right, to: join}
  - {from: repair, to: join, condition: {ref: "@repair.ok"}}
  - {from: join, to: last, when: always}"#;
    let once = "retry: {maxAttempts: 2, initialDelayMs: 10, backoff: fixed}";
    let sequence = format!(
        r#"
order: edges
output: {{join: "@join", last: "@last", left: "@left"}}
steps:
  - {{id: start, type: tool, tool: T, {once}}}
  - {{id: left, type: tool, tool: BAD, {once}}}
  - {{id: right, type: tool, tool: T, {once}, priority: 2}}
  - {{id: repair, type: tool, tool: REPAIR, {once}}}
  - {{id: join, type: tool, tool: T, arguments: {{repaired: "@repair.ok"}}, {once}}}
  - {{id: last, type: tool, tool: T, {once}}}{edges}"#
    );
    let graph = sequence.replace("order: edges\n", "").replace("steps:", "nodes:");
    let dataflow = format!(
        r#"
order: edges
output: {{join: "@join", last: "@last", left: "@left"}}
steps:
  - {{name: start, action: {{toolName: T}}, {once}}}
  - {{name: left, action: {{toolName: BAD}}, {once}}}
  - {{name: right, action: {{toolName: T}}, {once}, priority: 2}}
  - {{name: repair, action: {{toolName: REPAIR}}, {once}}}
  - {{name: join, action: {{toolName: T}}, input: {{repaired: "@repair.ok"}}, {once}}}
  - {{name: last, action: {{toolName: T}}, {once}}}{edges}"#
    );
    check(
        [&sequence, &dataflow, &graph],
        r#"
effects: {T: {return: 1}, BAD: {error: {class: failed, message: no}}, REPAIR: {return: {ok: true}}}
expect: {status: completed, output: {join: 1, last: 1, left: null}, call_count: 6}"#,
    );
}

#[test]
fn items_branches_and_approvals() {
    let retry = "retry: {maxAttempts: 2, initialDelayMs: 10, backoff: fixed}";
    let sequence = format!(
        r#"
output: {{each: "@each", choice: "@choice"}}
steps:
  - {{id: each, type: tool, tool: ECHO, arguments: {{n: "@item", at: "@index"}}, forEach: {{ref: "@input.list", concurrency: 2}}, when: {{ref: "@item", gt: 1}}, {retry}}}
  - id: choice
    type: conditional
    condition: {{ref: "@input.ask"}}
    then:
      - {{id: gate, type: approval, prompt: "Continue with @each?"}}
      - {{id: done, type: bash, command: "echo @each", {retry}}}
    else: [{{id: other, type: code, code: "export default () => 1", {retry}}}]"#
    );
    let dataflow = format!(
        r#"
order: sequence
output: {{each: "@each", choice: "@choice"}}
steps:
  - {{name: each, action: {{toolName: ECHO}}, input: {{n: "@item", at: "@index"}}, forEach: {{ref: "@input.list", concurrency: 2}}, when: {{ref: "@item", gt: 1}}, {retry}}}
  - name: choice
    type: conditional
    condition: {{ref: "@input.ask"}}
    then:
      - {{name: gate, type: approval, prompt: "Continue with @each?"}}
      - {{name: done, action: {{toolName: bash}}, input: {{command: "echo @each"}}, {retry}}}
    else: [{{name: other, action: {{code: "export default () => 1"}}, {retry}}}]"#
    );
    let graph = format!("order: sequence{}", sequence.replace("steps:\n", "nodes:\n"));
    check(
        [&sequence, &dataflow, &graph],
        r#"
input: {list: [1, 2, 3], ask: true}
effects: {ECHO: {echo: true}, bash: {return: {exitCode: 0, stdout: done}}}
inbox: [{at: {waiting: gate}, decide: approve}]
expect: {status: completed, call_count: 3}"#,
    );
}
