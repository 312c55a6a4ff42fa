//! Tests of failures inside agents: of the model, and of the check of an answer.

use mainspring_kernel::{decide::DECIDE_VERSION, state::StepState};

use super::*;

/// Starts a workflow with one agent, and returns the state after the receipt of its first model call.
fn after_model_call(text: &str, decide_version: u32, outcome: Outcome, checked: Result<Value, Failure>) -> State {
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = Arc::new(compile(&document).expect("it compiles").plan);
    let mut state = State { decide_version, ..State::new(KEY, plan.clone()) };
    take_in(&mut state, &start(Value::Null), 0);
    let receipt = Input::Receipt { instance: at(&plan, "a#1"), attempt: 1, outcome };
    decide_with(&mut state, &receipt, 1, |_| vec![Evaluated::of(checked.clone())]).expect("legal");
    state
}

fn agent(state: &State) -> &StepState {
    &state.steps[&at(&state.plan, "a")]
}

/// A tolerated failure inside the agent would become an empty answer, and the agent would complete.
#[test]
fn a_failed_model_call_fails_the_agent_where_failures_are_tolerated() {
    let text = "policy: {failOpen: true}\nsteps: [{id: a, type: agent, goal: g, instructions: i}]";
    let failed = Outcome::Failed(Failure::new(Class::Policy, "model_refused", "no"));
    let state = after_model_call(text, DECIDE_VERSION, failed.clone(), Ok(Value::Null));
    let step = agent(&state);
    assert_eq!((step.status, step.tolerated), (Status::Failed, true));
    assert_eq!(step.failure.as_ref().map(|failure| failure.code.as_str()), Some("model_refused"));
    assert_eq!((state.status(), state.end.with_failures), (ExecutionStatus::Completed, true));
    // The rules of earlier journals.
    assert_eq!(agent(&after_model_call(text, 7, failed, Ok(Value::Null))).status, Status::Completed);
}

/// The limit of tool calls ends the agent in the same way.
#[test]
fn the_limit_of_tool_calls_applies_to_tolerated_failures() {
    let text = "policy: {failOpen: true}\nsteps: [{id: a, type: agent, goal: g, tools: [bash], maxToolCalls: 0}]";
    let call = Value::map([("name", "bash".into()), ("arguments", Value::map([("command", Value::from("ls"))]))]);
    let answer = Outcome::Done(Value::map([("toolCalls", vec![call].into())]));
    let state = after_model_call(text, DECIDE_VERSION, answer, Ok(Value::Null));
    let code = agent(&state).failure.as_ref().map(|failure| failure.code.as_str());
    assert_eq!((agent(&state).status, code), (Status::Failed, Some("max_tool_calls_exceeded:0")));
}

/// A further answer of the model costs money and would not be checked either.
#[test]
fn an_answer_that_cannot_be_checked_fails_the_agent() {
    let text = "steps: [{id: a, type: agent, goal: g, outputSchema: {type: object}}]";
    let after = |class: Class, decide_version: u32| {
        let answer = Outcome::Done(Value::map([("text", Value::from("{}"))]));
        after_model_call(text, decide_version, answer, Err(Failure::new(class, "found", "not now")))
    };
    for class in [Class::Unavailable, Class::Internal, Class::Policy] {
        let state = after(class, DECIDE_VERSION);
        let failure = agent(&state).failure.clone().expect("a failure");
        assert_eq!((failure.class, failure.code.as_str()), (class, "found"));
        assert_eq!(failure.message, "step `a`: its answer cannot be checked: not now");
    }
    for (class, decide_version) in [(Class::Invalid, DECIDE_VERSION), (Class::Unavailable, 7)] {
        let state = after(class, decide_version);
        assert!(state.open.attempts.contains(&at(&state.plan, "a#2")), "the model answers again");
    }
}
