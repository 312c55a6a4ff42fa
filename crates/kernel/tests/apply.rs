//! Tests of `apply`: illegal records are rejected, and erased values are remembered. The records are not decided but
//! written by hand, as a foreign journal might contain them.

use std::sync::Arc;

use mainspring_kernel::{
    apply::apply,
    definition::{Syntax, compile, read},
    failure::Class,
    hash::Hash,
    input::{Policy, Queue},
    instance::Instance,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::{Ending, FailureDisposition, Fault, Payload, Purpose, Record},
    state::State,
    value::Value,
};

const STEPS: &str = r#"
steps:
  - id: all
    type: parallel
    steps:
      - {id: work, type: tool, tool: WORK}
      - {id: nap, type: sleep, durationMs: 1000}
      - {id: one, type: conditional, condition: true, then: [{id: x, type: tool, tool: WORK}]}
      - {id: two, type: conditional, condition: true, then: [{id: y, type: tool, tool: WORK}]}
      - {id: each, type: loop, forEach: {ref: "@input"}, steps: [{id: z, type: tool, tool: WORK}]}
"#;

fn plan() -> Arc<Plan> {
    Arc::new(compile(&read(STEPS.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan)
}

fn at(step: &str) -> Instance {
    Instance::of_step(plan().number_of(step).expect("a step of the plan"))
}

fn nothing() -> Payload {
    Payload::Known(Value::Null)
}

fn started() -> Record {
    started_with(nothing(), nothing(), nothing())
}

fn started_with(input: Payload, variables: Payload, context: Payload) -> Record {
    Record::Started {
        execution_id: "case".into(),
        workflow_hash: Hash::default(),
        plan_hash: Hash::default(),
        decide_version: 1,
        policy: Policy { max_steps: 50, max_parallel: 4, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        input,
        variables,
        context,
        deadline: None,
    }
}

fn step_started(step: &str) -> Record {
    Record::StepStarted { instance: at(step), input: nothing(), intent: None }
}

fn attempt_started(step: &str) -> Record {
    Record::AttemptStarted { instance: at(step), attempt: 1, timeout_at: None }
}

fn waits(step: &str) -> Record {
    Record::WaitStarted { instance: at(step), until: Some(1000) }
}

/// Takes the first branch of `of` as if it belonged to `step`.
fn takes_branch(step: &str, of: &str) -> Record {
    let block = plan().step(at(of).step).work.branches()[0].1;
    Record::BranchTaken { instance: at(step), block: Some(block) }
}

/// Starts a loop over two items.
fn loops(step: &str) -> Record {
    let input = Payload::Known(vec![Value::Null; 2].into());
    Record::StepStarted { instance: at(step), input, intent: None }
}

fn round_started(step: &str, round: u32) -> Record {
    Record::RoundStarted { instance: at(step), round }
}

fn round_ended(step: &str, round: u32) -> Record {
    Record::RoundEnded { instance: at(step), round }
}

fn child_waits(step: &str) -> Record {
    Record::ChildWaits { instance: at(step), count: 1 }
}

fn logged(step: &str) -> Record {
    Record::StepLogged { instance: at(step), lines: nothing() }
}

fn completed(step: &str) -> Record {
    Record::StepCompleted { instance: at(step), output: nothing() }
}

fn ending() -> Record {
    Record::EndingBegun { ending: Ending::Cancelled { reason: "user".into() } }
}

fn ended() -> Record {
    Record::Ended { with_failures: false }
}

fn fault(text: Payload) -> Fault {
    Fault { code: "down".into(), class: Class::Transient, text }
}

fn after(records: &[Record]) -> State {
    let mut state = State::new(ExecutionKey([7; 16]), plan());
    for record in records {
        apply(&mut state, record, 0).unwrap_or_else(|illegal| panic!("{record:?}: {}", illegal.message));
    }
    state
}

/// Checks that the last record is rejected with a message and that all records before it are accepted.
fn check(records: &[Record], refusal: &str) {
    let (last, before) = records.split_last().expect("a record");
    match apply(&mut after(before), last, 0) {
        Ok(()) => panic!("it was accepted, and was to be refused: {refusal}"),
        Err(illegal) => assert_eq!(illegal.message, refusal),
    }
}

#[test]
fn illegal_transitions_are_refused() {
    let all = || step_started("all");
    check(&[all()], "a record `StepStarted` of step `all` cannot stand before the start");
    check(&[started(), started()], "a record `Started` cannot stand twice");
    check(&[started(), ending(), ended(), ending()], "a record `EndingBegun` cannot stand after the end");

    let open = "a record `Ended` cannot stand while something is open";
    check(&[started(), ended()], open);
    check(&[started(), all(), step_started("work"), attempt_started("work"), ended()], open);
    check(&[started(), all(), step_started("work"), attempt_started("work"), ending(), ended()], open);
    check(&[started(), all(), step_started("nap"), waits("nap"), ending(), ended()], open);

    check(&[started(), all(), step_started("work"), attempt_started("work"), logged("work"), ending(), ended()], open);

    let elsewhere = |instance| Record::StepStarted { instance, input: nothing(), intent: None };
    let unknown = elsewhere(Instance::of_step(plan().steps.len() as u32));
    let in_a_loop = elsewhere(Instance { rounds: vec![0], ..at("work") });
    let no_step = "a record `StepStarted` of step number 9, which the plan does not have, cannot stand in this plan";
    check(&[started(), unknown], no_step);
    check(&[started(), all(), in_a_loop], "a record `StepStarted` of step `work` cannot stand in this plan");

    let begins_early = "a record `StepStarted` of step `work` cannot stand where the step is pending";
    let begins_twice = "a record `StepStarted` of step `work` cannot stand where the step is running";
    check(&[started(), step_started("work")], begins_early);
    check(&[started(), all(), step_started("work"), step_started("work")], begins_twice);

    let queued = || Record::Queued { queue: Queue::User };
    let begun_already = "a record `Queued` cannot stand where work has begun";
    check(&[started(), queued(), all()], "a record `StepStarted` of step `all` cannot stand in a queue");
    check(&[started(), all(), queued()], begun_already);
    check(&[started(), queued(), queued()], begun_already);
    check(&[started(), ending(), queued()], begun_already);
    check(&[started(), Record::Admitted], "a record `Admitted` cannot stand outside of a queue");
    check(&[started(), queued(), ending(), Record::Admitted], "a record `Admitted` cannot stand outside of a queue");

    let (its_own, anothers) = (|| takes_branch("one", "one"), || takes_branch("one", "two"));
    let no_branch = "a record `BranchTaken` of step `one` cannot stand for this block";
    check(&[started(), all(), step_started("one"), anothers()], no_branch);
    check(&[started(), all(), step_started("one"), its_own(), its_own()], no_branch);

    let no_round = "a record `RoundStarted` of step `each` cannot stand for this block";
    let [first, second, third] = [0, 1, 2].map(|round| move || round_started("each", round));
    check(&[started(), all(), loops("each"), second()], no_round);
    check(&[started(), all(), loops("each"), first(), first()], no_round);
    check(&[started(), all(), loops("each"), first(), second(), third()], no_round);
    let of_work = |name| format!("a record `{name}` of step `work` cannot stand for this block");
    let work = || [started(), all(), step_started("work"), attempt_started("work")];
    for (name, record) in [
        ("RoundStarted", round_started("work", 0)),
        ("RoundEnded", round_ended("work", 0)),
        ("ChildWaits", child_waits("work")),
    ] {
        let [start, all, begun, out] = work();
        check(&[start, all, begun, out, record], &of_work(name));
    }
}

/// The rejections above are caused by the last record, not by the records before it.
#[test]
fn legal_transitions_are_accepted() {
    after(&[
        started(),
        step_started("all"),
        step_started("one"),
        takes_branch("one", "one"),
        step_started("x"),
        attempt_started("x"),
        completed("x"),
    ]);
    after(&[started(), step_started("all"), loops("each"), round_started("each", 0), round_started("each", 1)]);
    let queued = Record::Queued { queue: Queue::User };
    assert_eq!(after(&[started(), queued.clone()]).queue, Some(Queue::User));
    after(&[started(), queued, Record::Admitted, step_started("all")]);
    let over = || Record::StepCancelled { instance: at("all"), reason: "user".into() };
    let state = after(&[
        started(),
        step_started("all"),
        step_started("work"),
        attempt_started("work"),
        completed("work"),
        ending(),
        over(),
        ended(),
    ]);
    assert_eq!(state.end.ended_at, Some(0));
}

/// After an erasure, decisions that depend on the value cannot be repeated. The state records the erasure, for every
/// kind of value and regardless of later records.
#[test]
fn erasures_are_part_of_the_state() {
    let gate = |question| Record::GateOpened {
        instance: at("work"),
        gate: 1,
        question,
        approvers: vec![],
        count: 1,
        expires_at: 1000,
        on_timeout: Decision::Deny,
        purpose: Purpose::Interrupted,
    };
    let failed = |text| Record::AttemptFailed { instance: at("work"), attempt: 1, fault: fault(text), retry_at: None };
    let is_out = [started(), step_started("all"), step_started("work"), attempt_started("work")];
    let doubtful = [started(), step_started("all"), step_started("work"), attempt_started("work"), failed(nothing())];
    type WithPayload<'a> = Box<dyn Fn(Payload) -> Record + 'a>;
    let cases: [(&str, &[Record], WithPayload<'_>); 9] = [
        ("input of the execution", &[], Box::new(|payload| started_with(payload, nothing(), nothing()))),
        ("variables", &[], Box::new(|payload| started_with(nothing(), payload, nothing()))),
        ("context", &[], Box::new(|payload| started_with(nothing(), nothing(), payload))),
        (
            "input of a step",
            &is_out[..2],
            Box::new(|input| Record::StepStarted { instance: at("work"), input, intent: None }),
        ),
        ("output", &is_out, Box::new(|output| Record::StepCompleted { instance: at("work"), output })),
        ("attempt's failure", &is_out, Box::new(failed)),
        (
            "step's failure",
            &is_out,
            Box::new(|text| Record::StepFailed {
                instance: at("work"),
                fault: fault(text),
                disposition: FailureDisposition::Tolerated,
            }),
        ),
        ("question", &doubtful, Box::new(gate)),
        ("signal", &is_out[..1], Box::new(|payload| Record::SignalKept { id: "s".into(), name: "go".into(), payload })),
    ];
    for (what, before, record) in cases {
        let mut state = after(before);
        apply(&mut state, &record(nothing()), 0).expect("legal");
        assert!(!state.journal.has_erased, "{what} was not erased");

        let mut state = after(before);
        apply(&mut state, &record(Payload::Erased), 0).expect("legal");
        assert!(state.journal.has_erased, "{what} was erased");
        for payload in [nothing(), Payload::Erased] {
            apply(&mut state, &Record::SignalKept { id: "later".into(), name: "go".into(), payload }, 0)
                .expect("legal");
            assert!(state.journal.has_erased, "{what} was erased before");
        }
    }
}
