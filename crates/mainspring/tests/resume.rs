//! `resume` from another folder with an id, a token and a decision; and the limits of a call.

use std::{fs, process::Command, thread};

use mainspring_engine::{Engine, EngineOptions, EngineScope, clock::now_ms, data_dir::DataDir};
use mainspring_kernel::{plan::Decision, value::Value};

mod support;
use support::{Answer, TestDir, at, call, request, spawn, yaml};

/// Work, an approval, work: each step appends a line.
fn gated(gate: &str) -> Value {
    yaml(&format!(
        r#"
steps:
  - {{id: before, type: bash, command: 'echo "before $MAINSPRING_ATTEMPT" >> log', outputVariable: before}}
  - {{id: gate, type: approval, {gate}}}
  - {{id: after, type: bash, command: echo after >> log}}
"#
    ))
}

/// Runs to the approval, and returns its token.
#[track_caller]
fn run_to_gate(dir: &TestDir, id: &str, definition: &Value) -> String {
    let answer = dir.ran(id, definition).expect(0, "needs_approval");
    answer.text("requiresApproval.resumeToken")
}

#[track_caller]
fn assert_refused(answer: Answer) {
    let answer = answer.expect(20, "failed");
    assert_eq!(answer.text("error.code"), "resume_mismatch", "{answer:?}");
    assert!(answer.events().is_empty(), "{answer:?}");
}

const BEFORE: &str = "before 1\n";
const BEFORE_AND_AFTER: &str = "before 1\nafter\n";

#[test]
fn resume_needs_id_token_and_decision_and_repeats_nothing() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?, items: {sha: '@before.exitCode'}"));
    let token = run_to_gate(&dir, "e", &definition);
    let answer = dir.resumed("e", &token, "approve").expect(0, "ok");
    assert_eq!(dir.file("log"), BEFORE_AND_AFTER);
    let kinds: Vec<Value> = answer.events().iter().map(|event| at(event, "type")).collect();
    let first_and_last = (kinds.first().cloned(), kinds.last().cloned());
    assert_eq!(first_and_last, (Some("execution.resumed".into()), Some("execution.finished".into())));
    assert_eq!(answer.at("output.before.exitCode"), Value::from(0u64));
}

#[test]
fn a_token_opens_its_own_gate_once() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?"));
    let token = run_to_gate(&dir, "e", &definition);
    let foreign = run_to_gate(&dir, "other", &definition);
    assert_ne!(token, foreign, "two executions have different tokens for the same gate");
    fs::remove_file(dir.workspace().join("log")).unwrap();
    for wrong in [&foreign, "", "wrf_rt_", &token[..token.len() - 1], &format!("{token}0"), &token.to_uppercase()] {
        assert_refused(dir.resumed("e", wrong, "approve"));
    }
    assert_refused(dir.resumed("nobody", &token, "approve"));
    assert_eq!(dir.file("log"), "", "nothing ran");
    dir.resumed("e", &token, "approve").expect(0, "ok");
    assert_refused(dir.resumed("e", &token, "approve"));
    assert_refused(dir.resumed("e", &token, "deny"));
    assert_eq!(dir.file("log"), "after\n");
    dir.resumed("other", &foreign, "approve").expect(0, "ok");
}

#[test]
fn a_denial_cancels_and_closes_the_gate() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?"));
    let token = run_to_gate(&dir, "e", &definition);
    let answer = dir.resumed("e", &token, "deny").expect(0, "cancelled");
    assert_eq!(answer.text("error.code"), "approval_denied");
    assert_refused(dir.resumed("e", &token, "approve"));
    assert_eq!(dir.file("log"), BEFORE);
}

#[test]
fn the_token_of_an_earlier_gate_opens_no_later_one() {
    let gate = "prompt: One?}\n  - {id: second, type: approval, prompt: Two?";
    let (dir, definition) = (TestDir::new(), gated(gate));
    let first = run_to_gate(&dir, "e", &definition);
    let second = dir.resumed("e", &first, "approve").expect(0, "needs_approval");
    assert_eq!(second.text("requiresApproval.stepId"), "second");
    assert_refused(dir.resumed("e", &first, "approve"));
    dir.resumed("e", &second.text("requiresApproval.resumeToken"), "approve").expect(0, "ok");
    assert_eq!(dir.file("log"), BEFORE_AND_AFTER);
}

#[test]
fn two_open_gates_are_approved_one_by_one() {
    let definition = yaml(
        r#"
steps:
  - id: both
    type: parallel
    steps:
      - {id: left, type: approval, prompt: Left?}
      - {id: right, type: approval, prompt: Right?}
  - {id: after, type: bash, command: echo after >> log}
"#,
    );
    for order in [["left", "right"], ["right", "left"]] {
        let dir = TestDir::new();
        let answer = dir.ran("e", &definition).expect(0, "needs_approval");
        assert_eq!(answer.at("approvals").as_list().unwrap().len(), 2);
        assert_eq!(answer.at("requiresApproval"), answer.at("approvals.0"));
        let token_of = |step: &str| {
            let gates = answer.at("approvals");
            let gate = gates.as_list().unwrap().iter().find(|gate| at(gate, "stepId").as_text() == Some(step)).cloned();
            at(&gate.unwrap(), "resumeToken").as_text().unwrap().to_string()
        };
        let half = dir.resumed("e", &token_of(order[0]), "approve").expect(0, "needs_approval");
        assert_eq!(half.text("requiresApproval.stepId"), order[1]);
        assert_eq!(half.at("approvals").as_list().unwrap().len(), 1);
        assert_refused(dir.resumed("e", &token_of(order[0]), "approve"));
        dir.resumed("e", &token_of(order[1]), "approve").expect(0, "ok");
        assert_eq!(dir.file("log"), "after\n");
    }
}

#[test]
fn an_expired_token_is_refused_and_the_timeout_decides() {
    for (on_timeout, status, log) in [("deny", "cancelled", BEFORE), ("approve", "ok", BEFORE_AND_AFTER)] {
        let dir = TestDir::new();
        // One millisecond, or a time that is long enough for the call to reach the approval.
        for (id, ttl_ms) in [("short", 1), ("e", 1_500)] {
            let definition = gated(&format!("ttlMs: {ttl_ms}, onTimeout: {on_timeout}"));
            let answer = dir.ran(id, &definition);
            assert_eq!(answer.exit, Some(0), "{answer:?}");
            if let Value::Text(token) = answer.at("requiresApproval.resumeToken") {
                wait_for_expiry(&dir, id);
                assert_refused(dir.resumed(id, &token, "approve"));
                assert_eq!(dir.file("log"), BEFORE, "nothing ran");
            }
            dir.ran(id, &definition).expect(0, status);
            assert_eq!(dir.file("log"), log);
            fs::remove_file(dir.workspace().join("log")).unwrap();
        }
    }
}

/// Returns when the approval has expired, or was decided while its process ended.
fn wait_for_expiry(dir: &TestDir, id: &str) {
    let (loader, key) = dir.loader(id).unwrap();
    let state = loader.journal(key).unwrap().unwrap().journal.state;
    let expires_at = state.open_gates().next().map_or(0, |(_, gate)| gate.expires_at);
    while now_ms() < expires_at {
        thread::yield_now();
    }
}

#[test]
fn only_approvers_open_a_gate() {
    let (dir, definition) = (TestDir::new(), gated("approvers: [ann, bob]"));
    let token = run_to_gate(&dir, "e", &definition);
    let denied = dir.resumed("e", &token, "approve");
    assert!(denied.text("error.message").contains("ann, bob"), "it says who may: {denied:?}");
    assert_refused(denied);
    assert_eq!(dir.file("log"), BEFORE);
}

#[test]
fn each_approver_counts_once() {
    let me = mainspring_cli::paths::user();
    let (dir, definition) = (TestDir::new(), gated(&format!("approvers: ['{me}', somebody-else], count: 2")));
    let token = run_to_gate(&dir, "e", &definition);
    let half = dir.resumed("e", &token, "approve").expect(0, "needs_approval");
    assert_eq!(half.at("requiresApproval.approvedBy"), vec![Value::text(me)].into());
    let again = dir.resumed("e", &token, "approve");
    assert!(again.text("error.message").contains("already"), "{again:?}");
    assert_refused(again);
    assert_eq!(dir.file("log"), BEFORE);
    approved_by_somebody_else(&dir);
    dir.ran("e", &definition).expect(0, "ok");
    assert_eq!(dir.file("log"), BEFORE_AND_AFTER);
}

/// The operating system provides one user only, so the other approver decides through the engine.
fn approved_by_somebody_else(dir: &TestDir) {
    let (loader, key) = dir.loader("e").unwrap();
    let state = loader.journal(key).unwrap().unwrap().journal.state;
    let (instance, gate) = state.open_gates().map(|(instance, gate)| (instance.clone(), gate.number)).next().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = EngineOptions {
            data_dir: DataDir::new(dir.state().join("e")),
            key: dir.key(),
            scope: EngineScope::named(),
            evaluator: std::sync::Arc::new(mainspring_engine::evaluator::InProcess),
            limits: None,
            budgets: None,
            seal_note: None,
            spans: None,
        };
        let engine =
            Engine::open(options, |home, held| mainspring_cli::runner::executors(Default::default(), home, held))
                .await
                .unwrap();
        let decided = engine.decide(key, instance, gate, Decision::Approve, "somebody-else", Value::Null).await;
        assert!(decided.unwrap(), "the second approver counts");
        engine.drain().await;
    });
}

#[test]
fn one_of_two_concurrent_resumes_succeeds() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?"));
    for round in 0..5 {
        let id = format!("e{round}");
        let token = run_to_gate(&dir, &id, &definition);
        fs::remove_file(dir.workspace().join("log")).unwrap();
        let both: Vec<Answer> = thread::scope(|scope| {
            let resume = || scope.spawn(|| dir.resumed(&id, &token, "approve"));
            let both = [resume(), resume(), resume()];
            both.map(|one| one.join().unwrap()).into_iter().collect()
        });
        let wins = both.iter().filter(|answer| answer.exit == Some(0)).count();
        assert_eq!(wins, 1, "{both:?}");
        let is_refusal = |code: &str| ["resume_mismatch", "folder_in_use"].contains(&code);
        assert!(both.iter().filter(|answer| answer.exit != Some(0)).all(|lost| is_refusal(&lost.text("error.code"))));
        assert_eq!(dir.file("log"), "after\n");
    }
}

/// The name of the definition stands for the id that only a server has. Inside of another execution, the variables are
/// those of this one.
#[test]
fn a_script_of_the_command_line_knows_its_session() {
    let dir = TestDir::new();
    let show = "printf '%s|' \"$IS_WORKFLOW_SESSION\" \"${WORKFLOW_ID-unset}\" \"$WORKFLOW_EXECUTION_ID\" >> log";
    let step = format!("steps:\n  - {{id: a, type: bash, command: {show:?}}}\n");
    for (id, definition) in [("named", yaml(&format!("name: nightly\n{step}"))), ("unnamed", yaml(&step))] {
        let mut command = dir.run(id, &definition);
        command.env("WORKFLOW_ID", "outer").env("WORKFLOW_EXECUTION_ID", "outer");
        call(command, &request(&definition)).expect(0, "ok");
    }
    assert_eq!(dir.file("log"), "true|nightly|named|true|unset|unnamed|");
}

#[test]
fn concurrent_executions_are_independent() {
    let dir = TestDir::new();
    let definition = yaml("steps:\n  - {id: a, type: bash, command: 'echo \"$MAINSPRING_EXECUTION_ID\" >> log'}\n");
    thread::scope(|scope| {
        for id in ["one", "two", "../two", "three"] {
            let (dir, definition) = (&dir, &definition);
            scope.spawn(move || dir.ran(id, definition).expect(0, "ok"));
        }
    });
    let mut log: Vec<String> = dir.file("log").lines().map(String::from).collect();
    log.sort();
    assert_eq!(log, ["../two", "one", "three", "two"]);
}

#[test]
fn a_repeated_run_returns_the_first_result() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?"));
    let waiting = dir.ran("e", &definition).expect(0, "needs_approval");
    assert_eq!(dir.ran("e", &definition).envelope(), waiting.envelope());
    let token = waiting.text("requiresApproval.resumeToken");
    let ended = dir.resumed("e", &token, "approve").expect(0, "ok");
    assert_eq!(dir.ran("e", &definition).envelope(), ended.envelope());
    assert_eq!(dir.file("log"), BEFORE_AND_AFTER);
}

#[test]
fn a_changed_definition_under_the_same_id_is_refused() {
    let hangs = r#"echo >> tries; [ "$MAINSPRING_ATTEMPT" = 2 ] || { echo begun > begun; read < never; }"#;
    let step = |id: &str| Value::map([("id", id.into()), ("type", "bash".into()), ("command", hangs.into())]);
    let (one, other) =
        (Value::map([("steps", vec![step("a")].into())]), Value::map([("steps", vec![step("b")].into())]));
    let dir = TestDir::new();
    for name in ["begun", "never"] {
        assert!(Command::new("mkfifo").arg(dir.workspace().join(name)).status().unwrap().success());
    }
    let mut child = spawn(dir.run("e", &one), &request(&one));
    assert_eq!(dir.file("begun"), "begun\n");
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = dir.ran("e", &other).expect(20, "failed");
    assert_eq!(refused.text("error.code"), "hash_mismatch");
    assert_eq!(dir.file("tries"), "\n", "what was interrupted is not touched by a call that is refused");
    dir.ran("e", &one).expect(0, "ok");
    assert_eq!(dir.file("tries"), "\n\n");
}

#[test]
fn branches_at_a_time_are_bounded_by_the_flag() {
    // Each branch logs its start and its end. Reading a pipe without a writer lets other branches run.
    let command = "echo + >> log; read -t 0.05 <> pipe; echo - >> log";
    let branch = |number: u64| {
        let id = format!("b{number}");
        Value::map([("id", id.into()), ("type", "bash".into()), ("command", command.into())])
    };
    let branches: Vec<Value> = (0..6).map(branch).collect();
    let parallel = Value::map([("id", "p".into()), ("type", "parallel".into()), ("steps", branches.into())]);
    let definition = Value::map([("steps", vec![parallel].into())]);
    for bound in [1, 2, 6] {
        let dir = TestDir::new();
        assert!(Command::new("mkfifo").arg(dir.workspace().join("pipe")).status().unwrap().success());
        let mut command = dir.run("e", &definition);
        command.args(["--max-parallel", &bound.to_string()]);
        call(command, &request(&definition)).expect(0, "ok");
        let mut inside = 0;
        let log = dir.file("log");
        let most = log.lines().map(|line| {
            inside += if line == "+" { 1 } else { -1 };
            inside
        });
        let most = most.max().unwrap();
        assert!(most <= bound, "{most} at a time, with --max-parallel {bound}");
        assert!(bound == 1 || most > 1, "never two at a time, with --max-parallel {bound}");
    }
}

#[test]
fn the_bound_on_steps_is_a_policy() {
    let definition = yaml(
        "steps:\n  - {id: a, type: bash, command: 'echo >> log'}\n  - {id: b, type: bash, command: 'echo >> log'}\n",
    );
    for (bound, exit, status, lines) in [("1", 30, "failed", 1), ("2", 0, "ok", 2)] {
        let dir = TestDir::new();
        let mut command = dir.run("e", &definition);
        command.args(["--max-steps", bound]);
        call(command, &request(&definition)).expect(exit, status);
        assert_eq!(dir.file("log").lines().count(), lines);
    }
}

#[test]
fn the_execution_timeout_pauses_during_approvals() {
    let (dir, definition) = (TestDir::new(), gated("prompt: Ship?"));
    let mut command = dir.run("e", &definition);
    let limit_ms = 20_000;
    command.args(["--timeout-ms", &limit_ms.to_string()]);
    let waiting = call(command, &request(&definition)).expect(0, "needs_approval");
    // The journal holds the remaining time, and the deadline is not among its wake-up times.
    let (loader, key) = dir.loader("e").unwrap();
    let state = loader.journal(key).unwrap().unwrap().journal.state;
    let left = state.end.deadline_held.expect("the clock is stopped");
    assert!(left > 0 && left <= limit_ms, "{left}");
    let gate_ends = state.open_gates().next().unwrap().1.expires_at;
    assert_eq!(state.wake_at(), Some(gate_ends), "nothing but the gate's own time is waited for");
    dir.resumed("e", &waiting.text("requiresApproval.resumeToken"), "approve").expect(0, "ok");
}
