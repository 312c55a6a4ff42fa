//! Tests that journals of every release still load. The golden files are never changed; a build that writes other bytes
//! adds a file.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use mainspring_kernel::{
    budget::{Limits, ModelTerms, Usage},
    decide::decide_yielding,
    definition::{Syntax, compile, read},
    effect::{ChildEnd, Outcome},
    evaluation::Evaluated,
    failure::{Class, Failure},
    frame::Frame,
    hash::{Hash, hex, unhex},
    input::{Input, Lineage, Parent, Pinned, Policy, Queue, Start, Timer},
    instance::Instance,
    journal::Fold,
    json,
    key::ExecutionKey,
    leases::LeaseChange,
    plan::{Decision, Plan, PlanBytes},
    record::Payload,
    state::State,
    stored_frame::{StoredFrame, StoredValue},
    value::{Map, Value},
};

const KEY: ExecutionKey = ExecutionKey([7; 16]);

/// A workflow with all features of the first release.
const DEFINITION: &str = r#"
name: everything
version: 1.0.0
steps:
  - {id: skipped, type: bash, command: "true", when: {ref: "@vars.no"}}
  - id: work
    type: parallel
    steps:
      - {id: flaky, type: tool, tool: FLAKY, arguments: {n: "@input.n"}, retry: {maxAttempts: 2, initialDelayMs: 1000}}
      - {id: slow, type: bash, command: "echo @vars.who", timeoutMs: 5000, onError: continue, retry: {maxAttempts: 1}}
      - {id: doubt, type: tool, tool: PAY, onInterrupted: ask}
  - id: choose
    type: conditional
    condition: {ref: "@flaky.ok"}
    then: [{id: nap, type: sleep, durationMs: 60000}]
    else: [{id: never, type: bash, command: "false"}]
  - {id: paid, type: signal, signal: paid, outputVariable: paid}
  - {id: gate, type: approval, prompt: "Ship @paid.id?", items: ["@paid"], approvers: [ann, bob], count: 2}
  - {id: last, type: tool, tool: LAST}
"#;

/// Later features: graphs, items, functions, children, handled failures, and the limit of failures.
const GRAPH: &str = r#"
workflowId: graph
planVersion: 2
nodes:
  - {id: each, type: tool, tool: EACH, arguments: {v: "@item", i: "@index"}, forEach: {ref: "@input.items", concurrency: 2}}
  - {id: calc, type: code, code: "export default (input) => input", input: {all: "@each"}, outputSchema: {type: object}}
  - {id: child, type: subworkflow, workflow: other, input: "@calc"}
  - {id: risky, type: tool, tool: RISKY}
  - {id: fix, type: tool, tool: FIX}
  - {id: well, type: tool, tool: WELL}
  - {id: again, type: loop, until: {ref: "@ask.done"}, maxRounds: 3, steps: [{id: ask, type: tool, tool: ASK}]}
edges:
  - {from: each, to: calc}
  - {from: calc, to: child, condition: {ref: "@calc.n", gt: 1}}
  - {from: child, to: risky}
  - {from: risky, to: fix, when: on_failure}
  - {from: risky, to: well}
  - {from: fix, to: again, when: always}
policy: {maxNodeFailures: 1}
"#;

/// Changes in version 2 of `decide`: concurrency slots, interruptions under a retry policy, a child that waits for
/// people, and a parent whose child was denied.
const TREE: &str = r#"
nodes:
  - {id: call, type: tool, tool: CALL}
  - {id: calc, type: code, code: "export default () => 1"}
  - {id: gate, type: approval, prompt: "Go?"}
  - {id: pay, type: tool, tool: PAY, retryPolicy: {maxAttempts: 3, neverOn: [unavailable]}, continueOnError: true}
  - {id: below, type: subworkflow, workflow: other}
edges: [{from: call, to: pay}, {from: gate, to: below}]
"#;

/// Queues.
const QUEUED: &str = "steps: [{id: call, type: tool, tool: CALL}]";

/// Changes in version 5 of `decide`: shares of the execution limit, turns that end after some functions, and an end
/// that waits for open attempts.
const BOUNDED: &str = r#"
steps:
  - {id: calc, type: code, code: "export default () => 1"}
  - {id: more, type: code, code: "export default () => 2"}
  - id: all
    type: parallel
    steps:
      - {id: sub, type: subworkflow, workflow: other}
      - {id: slow, type: tool, tool: SLOW}
      - {id: first, type: tool, tool: FIRST, bail: true}
"#;

/// Changes in version 7 of `decide`: agents.
const AGENT: &str = r#"
steps:
  - id: ask
    type: agent
    goal: "Look at @vars.who"
    tools: [web.*]
    outputSchema: {type: object, required: [score]}
    retry: {maxAttempts: 2, initialDelayMs: 1000}
"#;

/// Changes in version 8 of `decide`: budgets.
const BUDGET: &str = r#"
constraints: {budget: {tokens: 100000, toolCalls: 5, timeMs: 60000, onExceeded: ask}}
steps:
  - {id: ask, type: agent, goal: g, tools: [web.*], budget: {modelCalls: 1, onExceeded: ask, warnPercent: 50}}
  - {id: sub, type: subworkflow, workflow: other}
"#;

/// Changes in version 10 of `decide`: conversations.
const MESSAGES: &str = r#"
steps:
  - id: both
    type: parallel
    steps:
      - {id: ask, type: agent, goal: g, conversation: chat, tools: [web.*]}
      - {id: send, type: agent_message, content: "Hello @vars.who", interrupt: true, await_response: true}
  - {id: more, type: agent, goal: h, conversation: chat}
"#;

/// Changes in version 12 of `decide`: leases of the budgets of a day or a month.
const LEASED: &str = r#"
steps:
  - {id: ask, type: agent, goal: g, tools: [web.*, budget]}
  - {id: more, type: agent, goal: h}
"#;

/// Changes in version 13 of `decide`: a migration.
const MIGRATED: [&str; 2] = [
    "steps: [{id: call, type: tool, tool: CALL}, {id: gate, type: approval, prompt: Go?}, {id: end, type: tool, tool: END}]",
    "steps: [{id: call, type: tool, tool: CALL}, {id: gate, type: approval, prompt: Go?}, {id: other, type: tool, tool: END}]",
];

/// A workflow with a golden journal: its inputs with their times, and the results of its evaluations.
struct Golden {
    plan: Plan,
    inputs: Vec<(u64, Input)>,
    results: Vec<Evaluated>,
    /// The number of results after which the time of a turn is over.
    yields_at: Option<u32>,
}

fn plan_of(text: &str) -> Plan {
    compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan
}

fn goldens() -> [Golden; 10] {
    let plan = plan_of(DEFINITION);
    let first = Golden { inputs: inputs(&plan), plan, results: Vec::new(), yields_at: None };
    let plan = plan_of(GRAPH);
    let log = Value::from(vec![Value::map([("level", "log".into()), ("text", "two".into())])]);
    let results = vec![
        Evaluated { outcome: Ok(Value::map([("n", 2u64.into())])), log },
        Evaluated::of(Ok(Value::map([("n", 2u64.into())]))),
    ];
    let second = Golden { inputs: inputs_of_graph(&plan), plan, results, yields_at: None };
    let plan = plan_of(TREE);
    let results = vec![Evaluated::of(Ok(1u64.into()))];
    let third = Golden { inputs: inputs_of_tree(&plan), plan, results, yields_at: None };
    let plan = plan_of(QUEUED);
    let fourth = Golden { inputs: inputs_in_a_queue(&plan), plan, results: Vec::new(), yields_at: None };
    let plan = plan_of(BOUNDED);
    let results = vec![Evaluated::of(Ok(1u64.into())), Evaluated::of(Ok(2u64.into()))];
    let fifth = Golden { inputs: inputs_within_bounds(&plan), plan, results, yields_at: Some(1) };
    let plan = plan_of(AGENT);
    let mismatch = Failure::new(Class::Invalid, "schema_mismatch", "`score` is missing");
    let results = vec![Evaluated::of(Err(mismatch)), Evaluated::of(Ok(Value::Null))];
    let sixth = Golden { inputs: inputs_of_agent(&plan), plan, results, yields_at: None };
    let plan = plan_of(BUDGET);
    let seventh = Golden { inputs: inputs_of_budget(&plan), plan, results: Vec::new(), yields_at: None };
    let plan = plan_of(MESSAGES);
    let eighth = Golden { inputs: inputs_of_messages(&plan), plan, results: Vec::new(), yields_at: None };
    let mut plan = plan_of(LEASED);
    plan.models = Some(ModelTerms { needs_leases: true, raise_approvals: Some(2), ..ModelTerms::default() });
    let ninth = Golden { inputs: inputs_with_leases(&plan), plan, results: Vec::new(), yields_at: None };
    let plan = plan_of(MIGRATED[0]);
    let tenth = Golden { inputs: inputs_with_migration(&plan), plan, results: Vec::new(), yields_at: None };
    [first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth]
}

fn inputs_with_migration(plan: &Plan) -> Vec<(u64, Input)> {
    let receipt =
        |step, output| Input::Receipt { instance: Instance::of_step(step), attempt: 1, outcome: Outcome::Done(output) };
    let (instance, by, reason) = (Instance::of_step(1), "ann".to_string(), Value::Null);
    let migrate = Input::Migrate {
        plan: PlanBytes(plan_of(MIGRATED[1]).encode().into()),
        version: Some("1.0.1".into()),
        by: by.clone(),
        reason: "proposal pr-1".into(),
    };
    vec![
        (0, start(plan)),
        (10, receipt(0, 1u64.into())),
        (20, migrate),
        (30, Input::Decide { instance, gate: 1, decision: Decision::Approve, by, reason }),
        (40, receipt(2, 2u64.into())),
    ]
}

fn inputs_with_leases(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |name: &str| Instance::parse(name, plan).expect("an instance of the plan");
    let receipt = |name: &str, outcome| Input::Receipt { instance: at(name), attempt: 1, outcome };
    let value = |text: &str| json::value(text.as_bytes()).expect("JSON");
    let answer = |text: &str| Outcome::Done(value(text));
    let decide = |by: &str| {
        let (instance, by, reason) = (at("more"), by.into(), Value::Null);
        Input::Decide { instance, gate: 1, decision: Decision::Approve, by, reason }
    };
    let granted = |amount, until: u64, notice| {
        let notice = Payload::Known(value(notice));
        LeaseChange::Granted { amount, until: 1_767_225_600_000 + until, notice }
    };
    let calls = r#"{"text": "", "toolCalls": [{"id": "a", "name": "web.read", "arguments": {"url": "x"}},
        {"id": "b", "name": "budget", "arguments": {}}], "usage": {"inputTokens": 500, "outputTokens": 2}}"#;
    let notice = r#"[{"budget": "organization", "period": "2026-01", "used": {"tokens": 9000}, "limits": {"tokens": 10000},
        "left": {"tokens": 1000}, "warns": true}]"#;
    let refused = r#"{"budget": "organization", "period": "2026-01", "used": {"tokens": 9900}, "limits": {"tokens": 10000},
        "left": {"tokens": 100}, "asks": true, "lacks": ["tokens"], "raise": {"tokens": 10000},
        "raisedTo": {"tokens": 10000}}"#;
    let refused = LeaseChange::Refused { notice: Payload::Known(value(refused)) };
    let limits = Limits([Some(20_000), None, None, Some(5), Some(60_000)]);
    vec![
        (0, start(plan)),
        (5, Input::Lease { lease: 1, change: granted(limits, 30, notice) }),
        (10, receipt("ask#1", answer(calls))),
        (20, receipt("ask#1.1", Outcome::Done("page".into()))),
        (30, receipt("ask#2", answer(r#"{"text": "done", "usage": {"inputTokens": 9, "outputTokens": 1}}"#))),
        (1_010, Input::Lease { lease: 2, change: refused }),
        (1_020, decide("ann")),
        (1_030, decide("bob")),
        (1_040, Input::Lease { lease: 3, change: granted(Limits::default(), 9_000, "[]") }),
        (1_050, receipt("more", answer(r#"{"text": "well", "usage": {"inputTokens": 9, "outputTokens": 1}}"#))),
    ]
}

fn inputs_of_messages(plan: &Plan) -> Vec<(u64, Input)> {
    let receipt = |name: &str, outcome| {
        let instance = Instance::parse(name, plan).expect("an instance of the plan");
        Input::Receipt { instance, attempt: 1, outcome }
    };
    let answer = |text: &str| Outcome::Done(json::value(text.as_bytes()).expect("JSON"));
    let calls = r#"{"text": "half", "toolCalls": [{"id": "a", "name": "web.read", "arguments": {"url": "x"}}]}"#;
    let (id, content, by) = ("1".into(), "more".into(), "ann".into());
    vec![
        (0, start(plan)),
        (10, receipt("ask#1", Outcome::Stopped(Value::Null))),
        (20, receipt("ask#2", answer(calls))),
        (30, Input::Message { id, conversation: Some("chat".into()), content, interrupt: false, by }),
        (40, receipt("ask#2.1", Outcome::Done("page".into()))),
        (50, receipt("ask#3", answer(r#"{"text": "done"}"#))),
        (60, receipt("more#1", answer(r#"{"text": "well"}"#))),
    ]
}

fn inputs_of_budget(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |name: &str| Instance::parse(name, plan).expect("an instance of the plan");
    let receipt = |name: &str, attempt, outcome| Input::Receipt { instance: at(name), attempt, outcome };
    let answer = |text: &str| Outcome::Done(json::value(text.as_bytes()).expect("JSON"));
    let decide = |name: &str, decision| {
        let by = "ann".into();
        Input::Decide { instance: at(name), gate: 1, decision, by, reason: Value::Null }
    };
    let calls = r#"{"text": "", "toolCalls": [{"id": "a", "name": "web.read", "arguments": {"url": "x"}}],
        "usage": {"inputTokens": 500, "outputTokens": 2}}"#;
    let Input::Start(mut begins) = start(plan) else { unreachable!("it is one") };
    let pinned = Pinned { name: "other".into(), workflow_hash: Hash::of(b"other"), plan_hash: Hash::of(b"plan") };
    begins.lineage =
        Some(Lineage { parent: None, depth: 0, workflows: vec![pinned], executions: Some(10), budget: None });
    let usage = Usage { tokens: 7, model_calls: 1, ..Usage::default() };
    let raised = Usage { tokens: 9, ..Usage::default() };
    let child = Outcome::ChildWithUsage {
        end: ChildEnd::Done(1u64.into()),
        executions: 1,
        usage: Box::new(usage),
        raised: Box::new(raised),
    };
    vec![
        (0, Input::Start(begins)),
        (10, receipt("ask#1", 1, answer(calls))),
        (20, receipt("ask#1.1", 1, Outcome::Done("page".into()))),
        (30, decide("ask#2", Decision::Approve)),
        (40, receipt("ask#2", 1, answer(r#"{"text": "done", "usage": {"inputTokens": 9, "outputTokens": 1}}"#))),
        (50, receipt("sub", 1, child)),
    ]
}

fn inputs_of_agent(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |name: &str| Instance::parse(name, plan).expect("an instance of the plan");
    let receipt = |name: &str, attempt, outcome| Input::Receipt { instance: at(name), attempt, outcome };
    let answer = |text: &str| Outcome::Done(json::value(text.as_bytes()).expect("JSON"));
    let busy = Failure::new(Class::Unavailable, "model_unavailable", "overloaded");
    let calls = r#"{"text": "", "toolCalls": [{"id": "a", "name": "web.read", "arguments": {"url": "x"}},
        {"id": "b", "name": "bash", "arguments": {}}, {"id": "c", "name": "web.find", "arguments": {}}],
        "usage": {"inputTokens": 5, "outputTokens": 2}}"#;
    vec![
        (0, start(plan)),
        (10, receipt("ask#1", 1, Outcome::Failed(busy))),
        (1010, Input::Timer(Timer::Retry(at("ask#1"), 2))),
        (1020, receipt("ask#1", 2, answer(calls))),
        (1030, receipt("ask#1.3", 1, Outcome::Failed(Failure::new(Class::Failed, "tool_error", "no network")))),
        (1040, receipt("ask#1.1", 1, Outcome::Done("page".into()))),
        (1050, receipt("ask#2", 1, answer(r#"{"text": "I cannot say"}"#))),
        (1060, receipt("ask#3", 1, answer(r#"{"text": "{}", "usage": {"inputTokens": 9, "outputTokens": 1}}"#))),
        (1070, receipt("ask#4", 1, answer(r#"{"text": "{\"score\": 3}", "usage": {"inputTokens": 9}}"#))),
    ]
}

fn inputs_within_bounds(plan: &Plan) -> Vec<(u64, Input)> {
    let receipt = |name: &str, outcome| {
        let instance = Instance::parse(name, plan).expect("an instance of the plan");
        Input::Receipt { instance, attempt: 1, outcome }
    };
    let Input::Start(mut begins) = start(plan) else { unreachable!("it is one") };
    begins.policy.max_output_bytes = Some(1_000);
    let pinned = Pinned { name: "other".into(), workflow_hash: Hash::of(b"other"), plan_hash: Hash::of(b"plan") };
    begins.lineage =
        Some(Lineage { parent: None, depth: 0, workflows: vec![pinned], executions: Some(10), budget: None });
    let refused = Failure::new(Class::Failed, "no", "it said no");
    vec![
        (0, Input::Start(begins)),
        (10, receipt("first", Outcome::Done("enough".into()))),
        (20, receipt("sub", Outcome::Child { end: ChildEnd::Done(1u64.into()), executions: 2 })),
        (30, receipt("slow", Outcome::Failed(refused))),
    ]
}

fn inputs_in_a_queue(plan: &Plan) -> Vec<(u64, Input)> {
    let instance = Instance::parse("call", plan).expect("an instance of the plan");
    let Input::Start(begins) = start(plan) else { unreachable!("it is one") };
    let begins = Start { queue: Some(Queue::Organization), ..*begins };
    let receipt = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) };
    vec![(0, Input::Start(Box::new(begins))), (60_000, Input::Admit), (60_001, receipt)]
}

fn inputs_of_tree(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |name: &str| Instance::parse(name, plan).expect("an instance of the plan");
    let receipt = |name: &str, outcome| Input::Receipt { instance: at(name), attempt: 1, outcome };
    let Input::Start(mut begins) = start(plan) else { unreachable!("it is one") };
    begins.policy.max_parallel = 1;
    let pinned = Pinned { name: "other".into(), workflow_hash: Hash::of(b"other"), plan_hash: Hash::of(b"plan") };
    let parent = Parent { execution: ExecutionKey([9; 16]), instance: Instance::of_step(3), attempt: 2 };
    begins.lineage =
        Some(Lineage { parent: Some(parent), depth: 1, workflows: vec![pinned], executions: None, budget: None });
    let decision = Input::Decide {
        instance: at("gate"),
        gate: 1,
        decision: Decision::Approve,
        by: "ann".into(),
        reason: Value::Null,
    };
    vec![
        (0, Input::Start(begins)),
        (10, receipt("call", Outcome::Done(Value::Null))),
        (20, receipt("pay", Outcome::Interrupted)),
        // Version 1 retried here.
        (25, Input::Receipt { instance: at("pay"), attempt: 2, outcome: Outcome::Done(Value::Null) }),
        (30, decision),
        (35, Input::ChildWaits { instance: at("below"), attempt: 1, count: 1 }),
        (40, receipt("below", Outcome::Cancelled("approval_denied".into()))),
    ]
}

fn inputs_of_graph(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |name: &str| Instance::parse(name, plan).expect("an instance of the plan");
    let done =
        |name: &str, output: Value| Input::Receipt { instance: at(name), attempt: 1, outcome: Outcome::Done(output) };
    let refused = Outcome::Failed(Failure::new(Class::Failed, "no", "it said no"));
    let Input::Start(mut begins) = start(plan) else { unreachable!("it is one") };
    begins.input = Value::map([("items", Value::from(vec![1u64.into(), 2u64.into(), 3u64.into()]))]);
    let pinned = Pinned { name: "other".into(), workflow_hash: Hash::of(b"other"), plan_hash: Hash::of(b"plan") };
    begins.lineage = Some(Lineage { parent: None, depth: 0, workflows: vec![pinned], executions: None, budget: None });
    vec![
        (0, Input::Start(begins)),
        (10, done("each[1]", 20u64.into())),
        (20, done("each[0]", 10u64.into())),
        (30, done("each[2]", 30u64.into())),
        (40, done("child", Value::map([("ok", true.into())]))),
        (50, Input::Receipt { instance: at("risky"), attempt: 1, outcome: refused }),
        (60, done("fix", Value::Null)),
        (70, done("again[0].ask", Value::map([("done", false.into())]))),
        (80, done("again[1].ask", Value::map([("done", true.into())]))),
    ]
}

fn start(plan: &Plan) -> Input {
    let who = Map::from([("who".into(), "O'Hara; rm -rf".into()), ("no".into(), false.into())]);
    Input::Start(Box::new(Start {
        execution_id: "golden".into(),
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::of(&plan.encode()),
        input: Value::map([("n", 3u64.into())]),
        variables: Value::Map(who),
        trigger: Value::map([("type", "manual".into())]),
        policy: Policy { max_steps: 50, max_parallel: 4, timeout_ms: Some(3_600_000), max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: Some("/srv".into()),
        lineage: None,
        queue: None,
    }))
}

/// Returns the inputs with their times in milliseconds after the start.
fn inputs(plan: &Plan) -> Vec<(u64, Input)> {
    let at = |id: &str| Instance::of_step(plan.number_of(id).expect("a step of the plan"));
    let receipt = |id, attempt, outcome| Input::Receipt { instance: at(id), attempt, outcome };
    let decide = |id, gate, by: &str| Input::Decide {
        instance: at(id),
        gate,
        decision: Decision::Approve,
        by: by.into(),
        reason: "seen".into(),
    };
    let passing = Failure::new(Class::Transient, "503", "try later").with_details(Value::from(503u64));
    let stopped = Outcome::Stopped(Value::map([("stdout", "half".into())]));
    vec![
        (0, start(plan)),
        (10, receipt("flaky", 1, Outcome::Failed(passing))),
        (20, receipt("doubt", 1, Outcome::Interrupted)),
        (30, decide("doubt", 1, "ann")),
        (1010, Input::Timer(Timer::Retry(at("flaky"), 2))),
        (1020, receipt("flaky", 2, Outcome::Done(Value::map([("ok", true.into())])))),
        (5000, Input::Timer(Timer::Attempt(at("slow"), 1))),
        (5010, receipt("slow", 1, stopped)),
        (5020, receipt("doubt", 2, Outcome::Done(Value::Null))),
        (65_020, Input::Timer(Timer::Sleep(at("nap")))),
        (65_100, Input::Signal { id: "s1".into(), name: "paid".into(), payload: Value::map([("id", 42u64.into())]) }),
        (70_000, decide("gate", 1, "ann")),
        (70_001, decide("gate", 1, "bob")),
        (70_010, Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() }),
        (70_020, receipt("last", 1, Outcome::Stopped(Value::Null))),
    ]
}

/// Returns the journal that this build writes.
fn journal(golden: Golden) -> (Plan, Vec<StoredFrame>) {
    let Golden { plan, inputs, results, yields_at } = golden;
    let mut results = results.into_iter();
    let mut state = State::new(KEY, Arc::new(plan.clone()));
    let (mut frames, mut before) = (Vec::new(), Hash::default());
    let mut inputs: std::collections::VecDeque<_> = inputs.into();
    while let Some((at, input)) = inputs.pop_front() {
        let now = 1_767_225_600_000 + at;
        let turn =
            decide_yielding(&mut state, &input, now, yields_at, |asked| results.by_ref().take(asked.len()).collect());
        let turn = turn.expect("legal");
        // A late input leaves no frame.
        if turn.records.is_empty() {
            continue;
        }
        let sequence = frames.len() as u64;
        let frame = Frame { sequence, before, now, input, results: turn.results, records: turn.records };
        let (stored, hash) = frame.store(&|place| [(sequence as u8) ^ (place as u8); 16]);
        before = hash;
        frames.push(stored);
        if state.journal.is_split {
            inputs.push_front((at, Input::Continue));
        }
    }
    (plan, frames)
}

fn to_text(plan: &Plan, frames: &[StoredFrame]) -> String {
    let value = |value: &StoredValue| Value::from(vec![hex(&value.salt).into(), value.body.as_deref().map(hex).into()]);
    let frame = |frame: &StoredFrame| {
        let values: Vec<Value> = frame.values.iter().map(value).collect();
        Value::map([("frame", hex(&frame.frame).into()), ("values", values.into())])
    };
    let frames: Vec<Value> = frames.iter().map(frame).collect();
    json::pretty(&Value::map([("plan", hex(&plan.encode()).into()), ("frames", frames.into())])) + "\n"
}

fn from_text(text: &str) -> (Plan, Vec<StoredFrame>) {
    fn bytes(value: &Value) -> Vec<u8> {
        let text = value.as_text().expect("hexadecimal digits");
        let mut bytes = vec![0; text.len() / 2];
        assert!(unhex(text, &mut bytes));
        bytes
    }
    let document = json::read(text.as_bytes()).expect("it reads").value;
    let plan = Plan::decode(&bytes(document.get("plan").expect("a plan"))).expect("the plan is still read");
    let frames = document.get("frames").and_then(Value::as_list).expect("frames").iter().enumerate();
    let stored = |(sequence, frame): (usize, &Value)| {
        let values = frame.get("values").and_then(Value::as_list).expect("values").iter().map(|value| {
            let value = value.as_list().expect("salt and body");
            let salt = bytes(&value[0]).try_into().expect("sixteen bytes");
            StoredValue { salt, body: value[1].as_text().map(|_| bytes(&value[1])) }
        });
        let values = values.collect();
        StoredFrame { sequence: sequence as u64, frame: bytes(frame.get("frame").expect("a frame")), values }
    };
    (plan, frames.map(stored).collect())
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals"))
}

#[test]
fn golden_journals_load_and_replay_equally() {
    let mut files: Vec<_> =
        fs::read_dir(folder()).expect("the folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let (plan, frames) = from_text(&fs::read_to_string(&file).expect("it reads"));
        let mut fold = Fold::new(KEY, Arc::new(plan));
        for stored in &frames {
            let decided = fold.push_deciding(stored).unwrap_or_else(|broken| panic!("{}: {broken}", file.display()));
            assert!(decided);
        }
        assert!(fold.state.end.ended_at.is_some(), "{}", file.display());
    }
}

/// The journal of this build must equal one of the golden files, so that a change of the bytes is noticed and adds a
/// file.
#[test]
fn the_current_journal_is_a_golden() {
    for golden in goldens() {
        let (plan, frames) = journal(golden);
        let today = to_text(&plan, &frames);
        let known = fs::read_dir(folder())
            .expect("the folder")
            .any(|file| fs::read_to_string(file.expect("a file").path()).is_ok_and(|text| text == today));
        if !known && std::env::var_os("MAINSPRING_UPDATE_GOLDEN").is_some() {
            let name = format!("{}-{}.json", env!("CARGO_PKG_VERSION"), &Hash::of(today.as_bytes()).hex()[..8]);
            fs::write(folder().join(name), &today).expect("it is written");
            continue;
        }
        assert!(
            known,
            "this build writes other bytes: keep the old files, and add one with MAINSPRING_UPDATE_GOLDEN=1"
        );
    }
}

/// Checks that the golden journals contain every kind of record except the few that their workflows cannot produce.
#[test]
fn golden_journals_contain_nearly_every_kind_of_record() {
    let mut kinds = BTreeSet::new();
    for golden in goldens() {
        let (plan, frames) = journal(golden);
        let mut fold = Fold::new(KEY, Arc::new(plan));
        for stored in &frames {
            for record in fold.push(stored).expect("it folds").records {
                let name = format!("{record:?}");
                kinds.insert(name.split([' ', '{']).next().unwrap_or_default().to_string());
            }
        }
    }
    let all = [
        "Started",
        "StepSkipped",
        "StepStarted",
        "BranchTaken",
        "AttemptStarted",
        "AttemptStopping",
        "AttemptFailed",
        "WaitStarted",
        "GateOpened",
        "GateDecided",
        "StepCompleted",
        "StepFailed",
        "StepCancelled",
        "SignalKept",
        "SignalTaken",
        "CancelRequested",
        "DeadlineHeld",
        "DeadlineSet",
        "EndingBegun",
        "Ended",
        "LineageSet",
        "StepLogged",
        "RoundStarted",
        "RoundEnded",
        "FailureBoundReached",
        "ChildWaits",
        "ParentNotified",
        "Queued",
        "Admitted",
        "TurnSplit",
        "ExecutionsGiven",
        "ExecutionsReturned",
        "TurnYielded",
        "AnswerRejected",
        "BudgetReserved",
        "BudgetSettled",
        "BudgetRaised",
        "BudgetWarned",
        "MessageKept",
        "MessagesRead",
        "LeaseAwaited",
        "LeaseChanged",
        "Migrated",
    ];
    let missing: Vec<_> = all.into_iter().filter(|kind| !kinds.contains(*kind)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
