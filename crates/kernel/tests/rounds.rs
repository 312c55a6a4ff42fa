//! Tests of loops: the round that a condition reads, and many open rounds when a turn is split.

use std::sync::Arc;

use mainspring_kernel::{
    decide::{Turn, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Policy, Start, Timer},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

fn started(steps: &str, items: u64) -> (State, Vec<Turn>) {
    let document = read(format!("steps:\n{steps}").as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = compile(&document).unwrap_or_else(|found| panic!("{found:#?}")).plan;
    let mut state = State::new(ExecutionKey([7; 16]), Arc::new(plan));
    let list: Vec<Value> = (0..items).map(Value::from).collect();
    let start = Start {
        execution_id: "rounds".into(),
        workflow_hash: Hash::default(),
        plan_hash: Hash::default(),
        input: Value::map([("list", list.into())]),
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy { max_steps: 100_000, max_parallel: 10_000, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    };
    let mut turns = vec![take_in(&mut state, &Input::Start(Box::new(start)), 0)];
    // The first turn ends before the first function runs.
    if state.journal.is_split && state.plan.steps.iter().any(is_code) {
        turns.push(take_in(&mut state, &Input::Continue, 0));
    }
    (state, turns)
}

/// Processes an input; every function returns its input.
fn take_in(state: &mut State, input: &Input, now: u64) -> Turn {
    let same = |evaluation: &&Evaluation| match evaluation {
        Evaluation::Function(function) => Evaluated::of(Ok(function.input.clone())),
        Evaluation::Check(check) => Evaluated::of(Ok(check.value.clone())),
    };
    decide_with(state, input, now, |asked| asked.iter().map(same).collect()).expect("legal")
}

fn is_code(step: &mainspring_kernel::plan::Step) -> bool {
    step.work.kind() == "code"
}

/// Returns the input of the function of each round, by instance, in the order of completion.
fn given(plan: &Plan, turns: &[Turn]) -> Vec<String> {
    let ended = turns.iter().flat_map(|turn| &turn.records).filter_map(|record| match record {
        Record::StepCompleted { instance, output } if plan.id(instance.step) == "code" => {
            Some(format!("{:?} {}", instance.rounds, output.value().as_u64().unwrap_or(99)))
        }
        _ => None,
    });
    ended.collect()
}

/// `while` is evaluated before a round and `@index` is that round. `until` is evaluated after a round and `@index` is
/// the round that has ended.
#[test]
fn a_condition_of_a_loop_counts_its_own_rounds() {
    let code = r#"{id: code, type: code, code: "export default function (i) { return i }", input: "@index"}"#;
    for (key, condition) in [("while", r#"{ref: "@index", lt: 2}"#), ("until", r#"{ref: "@index", gte: 1}"#)] {
        let steps = format!("  - {{id: l, type: loop, {key}: {condition}, steps: [{code}]}}");
        let (state, turns) = started(&steps, 0);
        assert_eq!(
            (state.status(), given(&state.plan, &turns)),
            (ExecutionStatus::Completed, vec!["[0] 0".into(), "[1] 1".into()]),
            "{key}"
        );
        let steps = format!(
            r#"  - {{id: o, type: loop, forEach: {{ref: "@input.list"}}, steps: [{{id: l, type: loop, {key}: {condition}, steps: [{code}]}}]}}"#
        );
        let (state, turns) = started(&steps, 3);
        let expected = ["[0, 0] 0", "[0, 1] 1", "[1, 0] 0", "[1, 1] 1", "[2, 0] 0", "[2, 1] 1"].map(String::from);
        assert_eq!(
            (state.status(), given(&state.plan, &turns)),
            (ExecutionStatus::Completed, expected.to_vec()),
            "{key} in a loop"
        );
    }
}

const ITEMS: u64 = 6_000;

/// A turn that cancels more steps than fit into one frame is split. Before the rest is canceled, a due timer or a
/// decision for such a step must start nothing.
#[test]
fn no_step_starts_while_a_split_end_continues() {
    let steps = r#"  - {id: l, type: loop, forEach: {ref: "@input.list", concurrency: 10000}, steps: [{id: call, type: tool, tool: T, onInterrupted: ask}]}"#;
    let (mut state, _) = started(steps, ITEMS);
    while state.journal.is_split {
        take_in(&mut state, &Input::Continue, 0);
    }
    let call = |round: u64| Instance { step: 1, rounds: vec![round as u32] };
    for round in 0..ITEMS {
        let outcome = match round % 2 {
            0 => Outcome::Interrupted,
            _ => Outcome::Failed(Failure::new(Class::Transient, "no", "no")),
        };
        take_in(&mut state, &Input::Receipt { instance: call(round), attempt: 1, outcome }, 0);
    }
    take_in(&mut state, &Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() }, 1);
    assert!(state.journal.is_split && state.end.ending.is_some(), "the turn is cut");
    let (asked, waiting) = (call(ITEMS - 2), call(ITEMS - 1));
    assert_eq!(state.step_status(&asked), Status::WaitingApproval);
    assert_eq!(state.step_status(&waiting), Status::Retrying);
    let (at, _) = *state.next_timer().expect("a timer");
    let approved = Input::Decide {
        instance: asked,
        gate: 1,
        decision: mainspring_kernel::plan::Decision::Approve,
        by: "ann".into(),
        reason: Value::Null,
    };
    for input in [Input::Timer(Timer::Retry(waiting, 2)), approved] {
        let mut state = state.clone();
        let turn = take_in(&mut state, &input, at);
        let starts = |record: &&Record| matches!(record, Record::AttemptStarted { .. });
        assert_eq!(turn.records.iter().find(starts), None, "{input:?}");
        assert!(turn.actions.is_empty(), "{input:?}");
        while state.journal.is_split {
            take_in(&mut state, &Input::Continue, at);
        }
        assert_eq!(state.status(), ExecutionStatus::Cancelled, "{input:?}");
    }
}
