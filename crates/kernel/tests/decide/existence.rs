//! Tests of `exists` for steps that have no output.

use mainspring_kernel::decide::DECIDE_VERSION;

use super::*;

/// Returns the steps that start, among those whose condition tests for existence.
fn found(text: &str, decide_version: u32, inputs: &[&str]) -> Vec<String> {
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = Arc::new(compile(&document).expect("it compiles").plan);
    let mut state = State { decide_version, ..State::new(KEY, plan.clone()) };
    take_in(&mut state, &start(Value::Null), 0);
    for (place, text) in inputs.iter().enumerate() {
        take_in(&mut state, &input(&plan, text), 1 + place as u64);
    }
    let ran = state.steps.iter().filter(|(_, step)| step.status != Status::Skipped);
    let names = ran.map(|(instance, _)| instance.name(&plan)).filter(|name| name.starts_with("when_"));
    names.collect()
}

#[test]
fn nothing_exists_below_a_skipped_step() {
    let text = "
steps:
  - {id: skip, type: bash, when: false, command: ls}
  - id: all
    type: parallel
    steps:
      - {id: when_field, type: sleep, durationMs: 5, when: {ref: '@skip.exitCode', exists: true}}
      - {id: when_no_field, type: sleep, durationMs: 5, when: {ref: '@skip.exitCode', exists: false}}
      - {id: when_step, type: sleep, durationMs: 5, when: {ref: '@skip', exists: true}}";
    assert_eq!(found(text, DECIDE_VERSION, &[]), ["when_no_field", "when_step"]);
    assert_eq!(found(text, 8, &[]), ["when_field", "when_step"], "journals of older releases");
}

#[test]
fn nothing_exists_below_a_denied_gate() {
    let text = "
steps: [{id: gate, type: approval, prompt: Deploy?}]
finally:
  - id: all
    type: parallel
    steps:
      - {id: when_field, type: sleep, durationMs: 5, when: {ref: '@gate.decision', exists: true}}
      - {id: when_no_field, type: sleep, durationMs: 5, when: {ref: '@gate.decision', exists: false}}";
    assert_eq!(found(text, DECIDE_VERSION, &["gate gate 1 deny ann"]), ["when_no_field"]);
    assert_eq!(found(text, 8, &["gate gate 1 deny ann"]), ["when_field"], "journals of older releases");
    assert_eq!(found(text, DECIDE_VERSION, &["gate gate 1 approve ann"]), ["when_field"]);
}
