//! Tests of migrations: which executions can continue with another plan, and what they do there.

use std::sync::Arc;

use mainspring_kernel::{
    decide::{Turn, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    failure::{Class, Failure},
    frame::Frame,
    hash::Hash,
    input::{Input, Policy, Start},
    instance::Instance,
    journal::Fold,
    key::ExecutionKey,
    limits::MIGRATION_PLAN_BYTES_MAX,
    migration::check,
    plan::{Decision, Plan, PlanBytes},
    record::Record,
    state::{ExecutionStatus, State},
    stored_frame::StoredFrame,
    value::{Map, Value},
};

const KEY: ExecutionKey = ExecutionKey([7; 16]);

fn plan_of(text: &str) -> Plan {
    compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan
}

fn start(plan: &Plan) -> Input {
    Input::Start(Box::new(Start {
        execution_id: "case".into(),
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::of(&plan.encode()),
        input: Value::map([("items", Value::from(vec![1u64.into(), 2u64.into()]))]),
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy {
            max_steps: plan.constraints.max_steps.unwrap_or_else(|| plan.max_steps_default()),
            max_parallel: 4,
            timeout_ms: plan.constraints.timeout_ms,
            max_output_bytes: None,
        },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }))
}

fn migrate(plan: &Plan) -> Input {
    let plan = PlanBytes(plan.encode().into());
    Input::Migrate { plan, version: Some("1.0.1".into()), by: "ann".into(), reason: "proposal pr".into() }
}

/// An execution with its journal.
struct Case {
    state: State,
    frames: Vec<StoredFrame>,
    first: Arc<Plan>,
    head: Hash,
    now: u64,
}

impl Case {
    fn new(text: &str) -> Self {
        let plan = Arc::new(plan_of(text));
        let (state, head) = (State::new(KEY, plan.clone()), Hash::default());
        let mut case = Self { state, frames: Vec::new(), first: plan.clone(), head, now: 1_000 };
        case.take(&start(&plan));
        case
    }

    fn take(&mut self, input: &Input) -> Turn {
        self.now += 10;
        let turn = decide_with(&mut self.state, input, self.now, |_| panic!("nothing is evaluated")).expect("legal");
        if !turn.records.is_empty() {
            let frame = Frame {
                sequence: self.frames.len() as u64,
                before: self.head,
                now: self.state.now,
                input: input.clone(),
                results: turn.results.clone(),
                records: turn.records.clone(),
            };
            let (stored, hash) = frame.store(&|_| [3; 16]);
            self.frames.push(stored);
            self.head = hash;
        }
        turn
    }

    fn instance(&self, name: &str) -> Instance {
        Instance::parse(name, &self.state.plan).unwrap_or_else(|| panic!("a step {name}"))
    }

    /// `done STEP`, `fail STEP`, `approve STEP`, `wake STEP` and `signal NAME`, separated by commas.
    fn play(&mut self, script: &str) {
        for line in script.split(',').map(str::trim).filter(|line| !line.is_empty()) {
            let (verb, step) = line.split_once(' ').expect("a verb and a step");
            let receipt = |case: &Self, outcome| {
                let instance = case.instance(step);
                Input::Receipt { attempt: case.state.steps[&instance].attempt, instance, outcome }
            };
            let input = match verb {
                "done" => receipt(self, Outcome::Done(Value::map([("of", Value::from(step))]))),
                "fail" => receipt(self, Outcome::Failed(Failure::new(Class::Failed, "broken", "it broke"))),
                "approve" => {
                    let (instance, by) = (self.instance(step), "ann".into());
                    Input::Decide { instance, gate: 1, decision: Decision::Approve, by, reason: Value::Null }
                }
                "wake" => {
                    let (at, timer) = self.state.next_timer().cloned().expect("a timer");
                    self.now = self.now.max(at);
                    Input::Timer(timer)
                }
                "signal" => Input::Signal { id: step.into(), name: step.into(), payload: Value::Null },
                other => panic!("no verb {other}"),
            };
            let turn = self.take(&input);
            assert!(!turn.records.is_empty(), "{line} changes nothing");
        }
    }

    /// Folds the journal, and decides it again.
    fn verify(&self) {
        let (mut fold, mut deciding) = (Fold::new(KEY, self.first.clone()), Fold::new(KEY, self.first.clone()));
        for stored in &self.frames {
            fold.push(stored).expect("it folds");
            assert!(deciding.push_deciding(stored).expect("it decides the same"));
        }
        assert_eq!(fold.state, self.state);
        assert_eq!(deciding.state, self.state);
    }

    fn reasons(&self, new: &Plan) -> Vec<String> {
        let reasons = check(&self.state, new, new.encode().len()).err().unwrap_or_default();
        let of = |reason: mainspring_kernel::migration::Reason| match reason.step {
            Some(step) => format!("{} {step}", reason.code),
            None => reason.code.to_string(),
        };
        reasons.into_iter().map(of).collect()
    }
}

/// Checks that an execution of `old` after `script` migrates to `new`, and that its rest is that of an execution of `new`
/// with the same inputs.
fn continues(old: &str, script: &str, new: &str, rest: &str) {
    let mut migrated = Case::new(old);
    migrated.play(script);
    let plan = plan_of(new);
    assert_eq!(migrated.reasons(&plan), Vec::<String>::new(), "{script}");
    let turn = migrated.take(&migrate(&plan));
    assert!(matches!(turn.records.first(), Some(Record::Migrated { .. })), "{:?}", turn.records);
    migrated.verify();
    let again = migrated.take(&migrate(&plan));
    assert_eq!(again.records, [], "a second migration to the same plan");
    let mut begun = Case::new(new);
    begun.play(script);
    for line in rest.split(',') {
        migrated.play(line);
        begun.play(line);
    }
    migrated.verify();
    let end = |case: &Case| (case.state.status(), case.state.outputs.clone(), case.state.output().cloned());
    assert_eq!(end(&migrated), end(&begun), "{script}, {rest}");
    let statuses = |case: &Case| -> Vec<_> {
        let steps = case.state.steps.iter();
        steps.map(|(instance, step)| (instance.name(&case.state.plan), step.status, step.attempt)).collect()
    };
    assert_eq!(statuses(&migrated), statuses(&begun));
    assert_eq!(migrated.state.counts.memory_bytes, begun.state.counts.memory_bytes);
    assert_eq!(migrated.state.status(), ExecutionStatus::Completed);
    assert_eq!(migrated.state.start.as_ref().map(|start| start.workflow_hash), Some(plan.workflow_hash));
    assert_eq!(migrated.state.workflow_version(), Some("1.0.1"));
}

/// Checks that an execution of `old` after `script` stays, and that a request to migrate changes nothing.
fn stays(old: &str, script: &str, new: &str, expected: &[&str]) {
    let mut case = Case::new(old);
    case.play(script);
    let plan = plan_of(new);
    assert_eq!(case.reasons(&plan), expected, "{script}");
    let before = case.state.clone();
    assert_eq!(case.take(&migrate(&plan)).records, []);
    case.state.now = before.now;
    assert_eq!(case.state, before);
}

const SEQUENCE: &str = "
steps:
  - {id: fetch, type: tool, tool: web.read, arguments: {url: x}}
  - {id: ask, type: approval, prompt: Go?, items: ['@fetch']}
  - {id: send, type: tool, tool: mail.send, arguments: {to: '@fetch.of'}}
";

fn sequence(ask: &str, rest: &str) -> String {
    format!("steps:\n  - {{id: fetch, type: tool, tool: web.read, arguments: {{url: x}}}}\n  - {ask}\n{rest}")
}

const ASK: &str = "{id: ask, type: approval, prompt: Go?, items: ['@fetch']}";

#[test]
fn a_waiting_execution_continues_with_later_steps_of_the_new_plan() {
    let check = "  - {id: check, type: tool, tool: mail.check, arguments: {to: '@fetch.of'}}\n";
    let send = "  - {id: send, type: tool, tool: mail.post, arguments: {to: '@fetch.of'}}\n";
    let new = sequence(ASK, &format!("{check}{send}"));
    continues(SEQUENCE, "done fetch", &new, "approve ask, done check, done send");
    // The last step is gone.
    continues(SEQUENCE, "done fetch", &sequence(ASK, ""), "approve ask");
    // The effect in progress is unchanged, so its receipt counts.
    continues(SEQUENCE, "", &new, "done fetch, approve ask, done check, done send");
    // A step that has ended may have other parameters now.
    let other = new.replace("url: x", "url: y");
    continues(SEQUENCE, "done fetch", &other, "approve ask, done check, done send");
    let finally = format!("{new}finally:\n  - {{id: tidy, type: tool, tool: web.tidy}}\n");
    continues(SEQUENCE, "done fetch", &finally, "approve ask, done check, done send, done tidy");
}

#[test]
fn a_started_step_keeps_its_position_and_its_call() {
    let send = "  - {id: send, type: tool, tool: mail.send, arguments: {to: '@fetch.of'}}\n";
    let at_gate = "done fetch";
    let new = |ask: &str| sequence(ask, send);
    stays(
        SEQUENCE,
        at_gate,
        &new("{id: ask, type: approval, prompt: Really?, items: ['@fetch']}"),
        &["open_step_changed ask"],
    );
    stays(
        SEQUENCE,
        at_gate,
        &new("{id: ask, type: approval, prompt: Go?, items: ['@fetch'], approvers: [bob]}"),
        &["open_step_changed ask"],
    );
    stays(SEQUENCE, at_gate, &new("{id: ask, type: signal, signal: go}"), &["step_changed ask"]);
    stays(
        SEQUENCE,
        at_gate,
        &new("{id: other, type: approval, prompt: Go?, items: ['@fetch']}"),
        &["step_missing ask"],
    );
    let inserted = SEQUENCE.replace("  - {id: ask", "  - {id: early, type: tool, tool: a.b}\n  - {id: ask");
    stays(SEQUENCE, at_gate, &inserted, &["place_passed early"]);
    continues(SEQUENCE, "", &inserted, "done fetch, done early, approve ask, done send");
    let renamed = SEQUENCE.replace("fetch,", "fetch, outputVariable: page,");
    stays(SEQUENCE, at_gate, &renamed, &["output_changed fetch"]);
    let conditional = SEQUENCE.replace("fetch,", "fetch, when: true,");
    stays(SEQUENCE, at_gate, &conditional, &["condition_changed fetch"]);
    stays(SEQUENCE, "", &SEQUENCE.replace("url: x", "url: y"), &["open_step_changed fetch"]);
    stays(SEQUENCE, "", &SEQUENCE.replace("fetch,", "fetch, retry: {maxAttempts: 2},"), &["open_step_changed fetch"]);
    stays(SEQUENCE, "", &SEQUENCE.replace("steps:", "name: other\nsteps:"), &["workflow_renamed"]);
    stays(SEQUENCE, "", &SEQUENCE.replace("steps:", "inputSchema: {type: object}\nsteps:"), &["input_changed"]);
    stays(SEQUENCE, "", &SEQUENCE.replace("steps:", "constraints: {timeoutMs: 60000}\nsteps:"), &["limits_changed"]);
}

#[test]
fn limits_of_the_new_plan_apply_after_the_migration() {
    let mut case = Case::new(SEQUENCE);
    case.play("done fetch");
    // The compiler refuses a limit that no execution can keep.
    let limited = |steps: u32| {
        let mut plan = plan_of(SEQUENCE);
        plan.constraints.max_steps = Some(steps);
        plan
    };
    assert_eq!(case.reasons(&limited(1)), ["limit_exceeded"]);
    case.take(&migrate(&limited(2)));
    assert_eq!(case.state.start.as_ref().map(|start| start.policy.max_steps), Some(2));
    case.play("approve ask");
    assert_eq!(case.state.status(), ExecutionStatus::Failed);
    case.verify();
    let mut huge = plan_of(SEQUENCE);
    huge.version = Some("x".repeat(MIGRATION_PLAN_BYTES_MAX));
    let mut case = Case::new(SEQUENCE);
    assert_eq!(case.reasons(&huge), ["plan_too_large"]);
    case.play("done fetch, approve ask, done send");
    assert_eq!(case.reasons(&limited(9)), ["execution_ending"]);
}

const BRANCHES: &str = "
steps:
  - id: if
    type: conditional
    condition: true
    then:
      - {id: a, type: tool, tool: x.a}
      - {id: wait, type: signal, signal: go}
    else:
      - {id: b, type: tool, tool: x.b}
  - {id: end, type: tool, tool: x.end}
";

#[test]
fn running_blocks_and_rounds_are_compared_inside() {
    let more = BRANCHES.replace("signal: go}\n", "signal: go}\n      - {id: c, type: tool, tool: x.c}\n");
    continues(BRANCHES, "done a", &more, "signal go, done c, done end");
    let other = BRANCHES.replace("true", "false");
    stays(BRANCHES, "done a", &other, &["condition_changed if"]);
    let moved = "
steps:
  - {id: if, type: conditional, condition: true, then: [{id: a, type: tool, tool: x.a}]}
  - {id: wait, type: signal, signal: go}
";
    stays(BRANCHES, "done a", moved, &["step_moved wait"]);
    continues(BRANCHES, "", moved, "done a, signal go");
    // The other branch never runs, so it may change as long as the steps behind it have not begun.
    let without_else = BRANCHES.replace("    else:\n      - {id: b, type: tool, tool: x.b}\n", "");
    continues(BRANCHES, "done a", &without_else, "signal go, done end");
    stays(BRANCHES, "done a, signal go", &without_else, &["steps_inside_changed if", "step_renumbered end"]);
}

const ROUNDS: &str = "
steps:
  - id: each
    type: loop
    forEach: {ref: '@input.items'}
    steps:
      - {id: a, type: tool, tool: x.a, arguments: {of: '@item'}}
      - {id: b, type: tool, tool: x.b}
  - {id: end, type: tool, tool: x.end}
";

#[test]
fn the_body_of_a_running_loop_must_not_change() {
    let changed = ROUNDS.replace("tool: x.b", "tool: x.c");
    stays(ROUNDS, "done each[0].a", &changed, &["loop_changed each"]);
    stays(ROUNDS, "", &ROUNDS.replace("@input.items", "@input.others"), &["loop_changed each"]);
    let rest = "done each[0].b, done each[1].a, done each[1].b";
    let end = ROUNDS.replace("tool: x.end", "tool: x.other");
    continues(ROUNDS, "done each[0].a", &end, &format!("{rest}, done end"));
    let all = format!("done each[0].a, {rest}");
    stays(ROUNDS, &all, &end, &["open_step_changed end"]);
    let more = format!("{ROUNDS}  - {{id: more, type: tool, tool: x.more}}\n");
    continues(ROUNDS, &all, &more, "done end, done more");
    // The calls of ended rounds no longer matter.
    continues(ROUNDS, &all, &changed, "done end");
    stays(ROUNDS, &all, &ROUNDS.replace("id: b,", "id: c,"), &["steps_inside_changed each"]);
}

#[test]
fn branches_start_in_the_new_plan_and_keep_their_numbers() {
    let old = "
steps:
  - id: all
    type: parallel
    steps:
      - {id: a, type: tool, tool: x.a}
      - {id: wait, type: signal, signal: go}
  - {id: end, type: tool, tool: x.end}
";
    let new = old.replace("signal: go}\n", "signal: go}\n      - {id: c, type: tool, tool: x.c}\n");
    continues(old, "done a", &new, "done c, signal go, done end");
    let before = old.replace("      - {id: a,", "      - {id: c, type: tool, tool: x.c}\n      - {id: a,");
    stays(old, "done a", &before, &["step_renumbered a", "step_renumbered wait"]);
}

const GRAPH: &str = "
nodes:
  - {id: a, type: tool, tool: x.a}
  - {id: wait, type: signal, signal: go}
  - {id: b, type: tool, tool: x.b}
edges: [{from: a, to: wait}, {from: wait, to: b}]
";

#[test]
fn edges_into_started_steps_must_not_change() {
    let nodes = |more: &str, edges: &str| {
        let head = GRAPH.split("edges:").next().expect("the nodes");
        format!("{head}{more}edges: [{edges}]\n")
    };
    let c = "  - {id: c, type: tool, tool: x.c}\n";
    let new = nodes(c, "{from: a, to: wait}, {from: wait, to: c}, {from: c, to: b}");
    continues(GRAPH, "done a", &new, "signal go, done c, done b");
    // A new step whose sources have ended starts at once.
    let new = nodes(c, "{from: a, to: wait}, {from: wait, to: b}, {from: a, to: c}");
    continues(GRAPH, "done a", &new, "done c, signal go, done b");
    let new = nodes(c, "{from: a, to: wait}, {from: wait, to: b}, {from: a, to: c}, {from: c, to: b}");
    continues(GRAPH, "done a", &new, "done c, signal go, done b");
    let before = nodes(c, "{from: c, to: a}, {from: a, to: wait}, {from: wait, to: b}");
    stays(GRAPH, "done a", &before, &["edges_changed a"]);
    let failed = nodes("", "{from: a, to: wait, when: always}, {from: wait, to: b}");
    stays(GRAPH, "done a", &failed, &["edges_changed wait"]);
}

#[test]
fn a_failure_in_progress_keeps_the_plan() {
    let old = GRAPH
        .replace("id: b,", "id: b, continueOnError: true,")
        .replace("{from: a, to: wait}", "{from: a, to: wait, when: always}");
    let failing = old.replace("id: a,", "id: a, continueOnError: true,");
    stays(&old, "fail a", &format!("{old}policy: {{maxNodeFailures: 9}}\n"), &["execution_failing"]);
    stays(&failing, "fail a", &format!("{failing}policy: {{maxNodeFailures: 1}}\n"), &["limit_exceeded"]);
    stays(&failing, "fail a", &old, &["failures_changed a"]);
}

/// A receipt for an attempt that has ended says nothing about the steps of the new plan.
#[test]
fn a_late_receipt_changes_nothing() {
    let mut case = Case::new(SEQUENCE);
    case.play("done fetch");
    let late = Input::Receipt { instance: case.instance("fetch"), attempt: 1, outcome: Outcome::Done(Value::Null) };
    case.take(&migrate(&plan_of(&sequence(ASK, "  - {id: other, type: tool, tool: x.y}\n"))));
    assert_eq!(case.take(&late).records, []);
    case.play("approve ask, done other");
    case.verify();
}

/// A journal whose plan was exchanged, or whose migration was invented, is not accepted.
#[test]
fn a_migration_is_verified_like_any_other_turn() {
    let mut case = Case::new(SEQUENCE);
    case.play("done fetch");
    case.take(&migrate(&plan_of(&sequence(ASK, ""))));
    let (mut frame, _) = Frame::read(case.frames.last().expect("a frame")).expect("it reads");
    let other = plan_of(&sequence("{id: other, type: tool, tool: x.y}", ""));
    let inputs = frame.input.clone();
    let mut check = |input: Input, record: Record, folds: bool| {
        (frame.input, frame.records[0]) = (input, record);
        let (stored, _) = frame.store(&|_| [3; 16]);
        let fold = || {
            let mut fold = Fold::new(KEY, case.first.clone());
            let before = &case.frames[..case.frames.len() - 1];
            before.iter().for_each(|stored| drop(fold.push(stored).expect("it folds")));
            fold
        };
        assert_eq!(fold().push(&stored).is_ok(), folds);
        assert!(fold().push_deciding(&stored).is_err());
    };
    let record = |plan: &Plan, bytes: &Plan| Record::Migrated {
        workflow_hash: plan.workflow_hash,
        plan_hash: Hash::of(&plan.encode()),
        version: Some("1.0.1".into()),
        policy: Policy { max_steps: 1_000, max_parallel: 4, timeout_ms: None, max_output_bytes: None },
        by: "ann".into(),
        reason: "proposal pr".into(),
        plan: PlanBytes(bytes.encode().into()),
    };
    let new = plan_of(&sequence(ASK, ""));
    check(inputs.clone(), record(&new, &other), false);
    check(inputs.clone(), record(&other, &other), false);
    check(migrate(&other), record(&other, &other), false);
    // It folds, but the input does not give it.
    check(inputs, record(&plan_of(SEQUENCE), &plan_of(SEQUENCE)), true);
}
