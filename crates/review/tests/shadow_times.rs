//! Times of a replay: functions that took time, and turns that were split because of it.

use std::sync::Arc;

use mainspring_kernel::{
    decide::decide_yielding,
    definition::{Compiled, Syntax, compile, read},
    evaluation::Evaluated,
    frame::Frame,
    hash::Hash,
    input::{Input, Policy, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::Record,
    state::State,
    value::{Map, Value},
};
use mainspring_review::shadow::{Change, Recorder, Recording, replay};

/// A function before a gate, whose output has the time of the decision.
const GATED: &str = r#"
name: gated
steps:
  - {id: first, type: code, code: "export default function () { return 1; }"}
  - {id: second, type: code, code: "export default function () { return 2; }"}
  - {id: ask, type: approval, prompt: Proceed?}
"#;

const KEY: ExecutionKey = ExecutionKey([7; 16]);

fn plan() -> Arc<Plan> {
    let definition = read(GATED.as_bytes(), Syntax::Yaml).expect("a definition");
    let Compiled { plan, .. } = compile(&definition).expect("a plan");
    Arc::new(plan)
}

/// Runs the plan with these inputs, each with its time and the results after which its frame ends.
fn recorded(plan: &Arc<Plan>, inputs: &[(u64, Input, Option<u32>)]) -> (Vec<Frame>, Recording) {
    let (mut state, mut recorder) = (State::new(KEY, plan.clone()), Recorder::new(KEY, plan.clone()));
    let mut frames = Vec::new();
    for (sequence, (now, input, yields_at)) in (0..).zip(inputs) {
        let mut results = Vec::new();
        let turn = decide_yielding(&mut state, input, *now, *yields_at, |requests| {
            let given: Vec<_> = requests.iter().map(|_| Evaluated::of(Ok(Value::from(1u64)))).collect();
            results.extend(given.iter().cloned());
            given
        })
        .expect("a legal turn");
        let frame = Frame {
            sequence,
            before: Hash::default(),
            now: *now,
            input: input.clone(),
            results,
            records: turn.records,
        };
        recorder.push(&frame).expect("a frame");
        frames.push(frame);
    }
    (frames, recorder.finish().expect("a recording"))
}

#[test]
fn a_replay_repeats_the_time_that_functions_took() {
    let plan = plan();
    let start = Input::Start(Box::new(Start {
        execution_id: "x".into(),
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::default(),
        input: Value::Null,
        variables: Value::Map(Map::new()),
        trigger: Value::Map(Map::new()),
        policy: Policy { max_steps: 50, max_parallel: 10, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }));
    let instance = Instance::parse("ask", &plan).expect("the gate");
    let decide =
        Input::Decide { instance, gate: 1, decision: Decision::Approve, by: "ann".into(), reason: Value::Null };
    // Both functions took four seconds, and the person five minutes.
    let (frames, recording) = recorded(
        &plan,
        &[
            (1_000, start, None),
            (1_000, Input::Continue, Some(1)),
            (5_000, Input::Continue, Some(1)),
            (9_000, Input::Continue, None),
            (309_000, decide, None),
        ],
    );
    let yields = |frame: &&Frame| matches!(frame.records.last(), Some(Record::TurnYielded { .. }));
    assert_eq!(frames.iter().filter(yields).count(), 2, "{frames:?}");
    let opens = |record: &Record| matches!(record, Record::GateOpened { .. });
    assert!(frames[3].records.iter().any(opens), "{frames:?}");
    let mut observed: Vec<(u64, Vec<Record>)> = Vec::new();
    let change = Change { plan: plan.clone(), plan_hash: Hash::default() };
    let replayed = replay(&recording, &change, &mut |_| panic!("results are recorded"), &mut |now, records| {
        observed.push((now, records.to_vec()));
    });
    let expected: Vec<_> = frames.into_iter().map(|frame| (frame.now, frame.records)).collect();
    assert_eq!(replayed.end, recording.end);
    // The first record has the hash of the plan, which this test leaves out.
    let without_start = |turns: &[(u64, Vec<Record>)]| -> Vec<(u64, Vec<Record>)> {
        turns
            .iter()
            .map(|(now, records)| (*now, records.iter().skip(usize::from(*now == 1_000)).cloned().collect()))
            .collect()
    };
    assert_eq!(without_start(&observed), without_start(&expected));
}
