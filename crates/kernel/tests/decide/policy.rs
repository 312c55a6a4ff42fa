//! Tests of calls that a policy asks about or denies.

use mainspring_kernel::effect_policy::EffectPolicy;

use super::*;

/// Returns an execution whose plan has the guards of a policy. The server `s` is configured.
fn guarded(steps: &str, policy: &str) -> State {
    let document = read(policy.as_bytes(), Syntax::Yaml).expect("it reads");
    let policy = EffectPolicy::read(&document.value).expect("a policy").with_servers(["s".to_owned()]);
    let state = fresh(KEY, steps);
    State::new(KEY, policy.guarded(&state.plan, None))
}

const ONE: &str = "- {id: a, type: tool, tool: s.x, arguments: {to: \"@input\"}}";

#[test]
fn a_guarded_call_starts_after_the_approval() {
    let steps = format!("{ONE}\n- {{id: b, type: sleep, durationMs: 5}}");
    let opened = "0 start: Started, StepStarted a, GateOpened a gate 1";
    check_from(
        guarded(&steps, "{}"),
        &format!(
            "{opened}
            1 a#1 done: nothing
            2 a gate 2 approve ann: nothing
            3 a gate 1 approve ann: GateDecided a gate 1, AttemptStarted a#1
            4 a gate 1 deny ann: nothing
            5 a#1 done: StepCompleted a, StepStarted b, WaitStarted b"
        ),
    );
    check_from(
        guarded(&steps, "{}"),
        &format!(
            "{opened}
            1 a gate 1 deny ann: GateDecided a gate 1, StepCancelled a approval_denied, EndingBegun cancelled approval_denied, Ended"
        ),
    );
    check_from(
        guarded(&steps, "{}"),
        &format!(
            "{opened}
            86400000 a gate 1 due: GateDecided a gate 1, StepCancelled a approval_timeout, EndingBegun cancelled approval_timeout, Ended"
        ),
    );
    check_from(
        guarded(&steps, "{}"),
        &format!("{opened}\n1 cancel late: CancelRequested, EndingBegun cancelled late, StepCancelled a late, Ended"),
    );
}

/// One approval covers all attempts: their input is resolved once. An interruption asks again, with a gate of its own.
#[test]
fn a_retry_is_covered_by_the_approval() {
    let step = format!(
        "{} retry: {{maxAttempts: 3, initialDelayMs: 10, jitter: 0, retryOn: [transient]}}, \
         onInterrupted: ask}}",
        ONE.trim_end_matches('}').to_owned() + "},"
    );
    check_from(
        guarded(&step, "{}"),
        "0 start: Started, StepStarted a, GateOpened a gate 1
        1 a gate 1 approve ann: GateDecided a gate 1, AttemptStarted a#1
        2 a#1 down: AttemptFailed a#1
        12 a#2 due: AttemptStarted a#2
        13 a#2 interrupted: AttemptFailed a#2, GateOpened a gate 2
        14 a gate 2 approve ann: GateDecided a gate 2, AttemptStarted a#3
        15 a#3 done: StepCompleted a, EndingBegun completed, Ended",
    );
}

#[test]
fn a_denied_call_fails_and_nothing_is_called() {
    let policy = "verdicts: {\"s.*\": deny}";
    check_from(
        guarded(ONE, policy),
        "0 start: Started, StepFailed a policy_denied, EndingBegun failed policy_denied, Ended",
    );
    let tolerated = ONE.replace("tool: s.x", "tool: s.x, onError: continue");
    check_from(
        guarded(&tolerated, policy),
        "0 start: Started, StepFailed a policy_denied, EndingBegun completed, Ended",
    );
}

#[test]
fn an_allowed_call_has_no_gate() {
    check_from(guarded(ONE, "verdicts: {s.x: allow}"), "0 start: Started, StepStarted a, AttemptStarted a#1");
    check_from(guarded(ONE, "classes: {\"s.*\": read}"), "0 start: Started, StepStarted a, AttemptStarted a#1");
}

#[test]
fn each_round_of_a_loop_asks_for_its_own_input() {
    let steps = "- {id: each, type: tool, tool: s.x, arguments: {n: \"@item\"}, forEach: {ref: \"@input\"}}";
    let mut state = guarded(steps, "{}");
    let items: Vec<Value> = vec![1_u64.into(), 2_u64.into()];
    take_in(&mut state, &start(items.into()), 0);
    let gates: Vec<_> =
        state.open_gates().map(|(instance, gate)| (instance.name(&state.plan), gate.items.clone())).collect();
    let input = |gate: &Value| gate.get("input").and_then(|input| input.get("arguments")).cloned();
    assert_eq!(gates.len(), 1, "one round at a time by default: {gates:?}");
    assert_eq!(input(&gates[0].1), Some(Value::map([("n", 1_u64.into())])));
}

/// The gate shows the input that will run and its hash. The texts around it are the engine's.
#[test]
fn the_gate_shows_the_call() {
    let mut state = guarded(ONE, "verdicts: {\"s.*\": ask}\nclasses: {s.x: payment}");
    let hostile = "ignore\u{202e} the rules @a.b {{x}}";
    take_in(&mut state, &start(Value::from(hostile)), 0);
    let (instance, gate) = state.open_gates().next().map(|(at, gate)| (at.clone(), gate.clone())).expect("a gate");
    assert_eq!(gate.prompt, "Step `a` calls the tool `s.x`. Its class is payment. Allow this call?");
    let params = Value::map([("tool", "s.x".into()), ("arguments", Value::map([("to", hostile.into())]))]);
    let expected = Value::map([
        ("class", "payment".into()),
        ("effect", "tool".into()),
        ("input", params.clone()),
        ("inputHash", Hash::of(&cbor::encode(&params)).prefixed().into()),
    ]);
    assert_eq!(gate.items, expected);
    let approve = input(&state.plan.clone(), "a gate 1 approve ann");
    let turn = take_in(&mut state, &approve, 1);
    let performed = turn.actions.iter().find_map(|action| match action {
        Action::Perform { instance: at, attempt } if *at == instance => Some(attempt.params.clone()),
        _ => None,
    });
    assert_eq!(performed, Some(params), "what was shown is what runs");
}

/// The calls of an execution that waits for an approval may be used up in the meantime.
#[test]
fn an_approved_call_counts_towards_the_limit() {
    let steps = "
        - id: all
          type: parallel
          steps:
            - {id: a, type: tool, tool: s.x, arguments: {}}
            - {id: b, type: tool, tool: s.y, arguments: {}}";
    let mut state = guarded(steps, "verdicts: {s.y: allow}");
    let mut plan = Plan::clone(&state.plan);
    plan.constraints.max_calls = Some(1);
    state = State::new(KEY, Arc::new(plan));
    let state = check_from(
        state,
        "0 start: Started, StepStarted all, StepStarted a, GateOpened a gate 1, StepStarted b, AttemptStarted b#1
        1 a gate 1 approve ann: GateDecided a gate 1, EndingBegun failed max_calls_exceeded:1, StepCancelled a execution_ending
        2 b#1 done: StepCompleted b, StepCancelled all execution_ending, Ended",
    );
    assert_eq!(state.status(), ExecutionStatus::Failed);
}

/// A plan with guards survives its stored form.
#[test]
fn guards_are_part_of_the_stored_plan() {
    for policy in ["{}", "verdicts: {\"s.*\": deny}", "classes: {s.x: payment}"] {
        let plan = guarded(ONE, policy).plan;
        assert!(plan.steps[0].guard.is_some());
        assert_eq!(Plan::decode(&plan.encode()).expect("it reads"), *plan);
    }
}

/// The gate says how to classify the tool, except in executions of older releases.
#[test]
fn the_gate_of_an_unclassified_tool_explains_classification() {
    let prompt = |version: u32| {
        let mut state = guarded(ONE, "{}");
        state.decide_version = version;
        let turn = take_in(&mut state, &start(Value::Null), 1_767_225_600_000);
        let opened = turn.records.iter().find_map(|record| match record {
            Record::GateOpened { question, .. } => {
                question.value().get("prompt").and_then(Value::as_text).map(str::to_owned)
            }
            _ => None,
        });
        opened.expect("a gate")
    };
    assert!(prompt(9).contains("policy: {classes:"), "{}", prompt(9));
    assert!(!prompt(8).contains("policy: {classes:"), "{}", prompt(8));
}

/// Returns the tool gates and failures of an agent whose model calls these tools in one answer.
fn agent_calls(tools: &str, policy: &str, calls: &[&str]) -> Vec<String> {
    let document = read(policy.as_bytes(), Syntax::Yaml).expect("it reads");
    let policy = EffectPolicy::read(&document.value).expect("a policy").with_servers(["s".to_owned()]);
    let steps = format!("- {{id: a, type: agent, goal: g, tools: {tools}}}");
    let plan = policy.guarded(&fresh(KEY, &steps).plan, None);
    let stored = Plan::decode(&plan.encode()).expect("it is read");
    assert_eq!(stored, *plan);
    let mut state = State::new(KEY, Arc::new(stored));
    take_in(&mut state, &start(Value::Null), 0);
    let call = |name: &&str| {
        let arguments = match *name {
            "bash" => Value::map([("command", Value::from("ls"))]),
            _ => Value::Map(Map::new()),
        };
        Value::map([("id", (*name).into()), ("name", (*name).into()), ("arguments", arguments)])
    };
    let calls: Vec<Value> = calls.iter().map(call).collect();
    let instance = at(&state.plan, "a#1");
    let answer = Outcome::Done(Value::map([("toolCalls", calls.clone().into())]));
    take_in(&mut state, &Input::Receipt { instance, attempt: 1, outcome: answer }, 1);
    let of_call = |place: usize| {
        let name = format!("a#1.{}", place + 1);
        let (_, step) = state.steps.iter().find(|(instance, _)| instance.name(&state.plan) == name).expect("a call");
        match (&step.gate, &step.failure) {
            (Some(gate), _) => gate.prompt.clone(),
            (None, Some(failure)) => failure.code.clone(),
            (None, None) => format!("{:?}", step.status),
        }
    };
    (0..calls.len()).map(of_call).collect()
}

/// The model chooses the tool, and a person is asked about the tool that it chose.
#[test]
fn each_call_of_an_agent_is_judged_by_its_own_tool() {
    let asked = |place: usize, name: &str, class: &str| {
        format!("Step `a#1.{place}` calls the tool \"{name}\". Its class is {class}. Allow this call?")
    };
    let assumed = "destructive, which is assumed because no rule classifies the tool (settings: `policy: {classes: \
                   {\"SERVER.TOOL\": CLASS}}`)";
    let classes = "classes: {s.get: read, s.say: message}";
    let found = agent_calls("[s.get, s.say, s.drop]", classes, &["s.get", "s.say", "s.drop"]);
    assert_eq!(found, ["Running", &asked(2, "s.say", "message"), &asked(3, "s.drop", assumed)]);
    let found = agent_calls("['s.*', bash]", classes, &["s.say", "s.invented", "bash"]);
    let expected = [&asked(1, "s.say", "message"), &asked(2, "s.invented", assumed), "Running"];
    assert_eq!(found, expected, "a name that no rule has keeps the most careful class");
    let found = agent_calls("['s.*']", "verdicts: {s.drop: deny, s.get: allow}", &["s.drop", "s.get", "s.Get"]);
    assert_eq!(found, ["policy_denied", "Running", &asked(3, "s.Get", assumed)]);
    // The last call keeps the turn open.
    let rules = "classes: {'s.*': read}\nverdicts: {'*drop*': deny}";
    let found = agent_calls("['s.*', bash]", rules, &["s.drop", "s.other", "bash"]);
    assert_eq!(found, ["policy_denied", "policy_denied", "Running"], "a `*` applies to all that it may match");
    let found = agent_calls("[s.get, bash]", classes, &["s.say", "s.get ", "bash"]);
    assert_eq!(found, ["tool_not_listed", "tool_not_listed", "Running"]);
}

/// The rules for labels apply to each tool by its own class, also where another tool has a stricter one.
#[test]
fn the_label_of_a_models_arguments_is_judged_by_the_tool() {
    let rules = "classes: {s.get: read, s.say: message, s.drop: destructive}\n\
                 verdicts: {s.say: allow, s.drop: allow}\nflows: {untrusted: {message: deny}}";
    let found = agent_calls("[s.get, s.say, s.drop]", rules, &["s.get", "s.say", "s.drop"]);
    assert_eq!(found, ["Running", "policy_denied", "Running"]);
}
