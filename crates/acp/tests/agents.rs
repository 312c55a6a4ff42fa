//! The executor with a scripted agent as a process, also one that is hostile.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use mainspring_acp::{
    config::{AgentConfig, ConfigText},
    executor::Runners,
};
use mainspring_effects::{
    Adopted, CancelHandle, Executor,
    secrets::{Reading, SecretSource, SecretUser, SecretValue},
    stdio::Uncontained,
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome, Progress, Report},
    hash::Hash,
    json,
    key::ExecutionKey,
    secret::{SecretReference, SecretUses},
    value::Value,
};
use tempfile::TempDir;
use tokio::time::timeout;

/// Bounds each wait. No test waits for it.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Has every secret, with one value.
struct OneSecret;

impl SecretSource for OneSecret {
    fn read<'a>(&'a self, _: &'a str, _: &'a SecretUser) -> Reading<'a> {
        Box::pin(async { Ok(SecretValue::new("hunter2-hunter2").unwrap()) })
    }
}

struct Bench {
    workspace: TempDir,
    runners: Runners,
    attempt: Attempt,
}

impl Bench {
    fn new(mode: &str) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent.py");
        let reference = SecretReference { name: "KEY".into(), prefix: String::new() };
        let config = AgentConfig {
            name: "tester".into(),
            command: "python3".into(),
            args: vec!["-u".into(), script.display().to_string(), mode.into()],
            env: BTreeMap::from([("KEY".to_owned(), ConfigText::Secret(reference))]),
        };
        let permissions = [("read", "allow".into()), ("delete", "ask".into()), ("execute", "deny".into())];
        let params =
            [("runner", "tester".into()), ("goal", "Tidy up".into()), ("permissions", Value::map(permissions))];
        let attempt = Attempt {
            execution: ExecutionKey::new(0, [0; 10]),
            root: ExecutionKey::new(0, [0; 10]),
            execution_id: "e".into(),
            organization: None,
            workflow_id: None,
            step: "work".into(),
            number: 1,
            effect: "agent_runner".into(),
            params: Value::map(params),
            intent: Hash::of(b""),
            flags: AttemptFlags::default(),
            handed_out_at: 0,
            workspace: Some(workspace.path().display().to_string()),
            secrets: SecretUses::default(),
            progress: Some(Box::default()),
        };
        Self { workspace, runners: runners(&config), attempt }
    }

    async fn perform(&self) -> Outcome {
        let (_handle, stop) = CancelHandle::pair();
        timeout(TEST_TIMEOUT, self.runners.perform(&self.attempt, stop)).await.unwrap()
    }

    /// Performs up to the session, and continues with its handle.
    async fn performed(&mut self) -> Outcome {
        let Outcome::Reported(report) = self.perform().await else { panic!("no session") };
        let Report::Continued(handle) = *report else { panic!("{report:?}") };
        self.progress(handle, Value::Null);
        self.perform().await
    }

    fn progress(&mut self, handle: Value, answer: Value) {
        self.attempt.progress = Some(Box::new(Progress { handle, answer, ..Progress::default() }));
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.workspace.path().join(name)).unwrap_or_default()
    }

    /// Waits until the agent has written a file.
    async fn written(&self, name: &str) {
        let path = self.workspace.path().join(name);
        let written = async {
            while !path.exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(TEST_TIMEOUT, written).await.unwrap();
    }
}

fn runners(config: &AgentConfig) -> Runners {
    Runners::new(vec![config.clone()], Arc::new(Uncontained), Some(Arc::new(OneSecret)))
}

fn action(action: &str) -> Value {
    Value::map([("action", action.into())])
}

fn expect_question(outcome: Outcome) -> (Value, Value) {
    match outcome {
        Outcome::Reported(report) => match *report {
            Report::Asked { question, handle } => (question, handle),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn output_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(value) => json::canonical(value),
        Outcome::Failed(failure) => format!("{}: {}", failure.code, failure.message),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn permissions_are_allowed_asked_and_denied() {
    for (answer, expected) in [("accept", "delete yes"), ("decline", "delete no"), ("cancel", "delete no")] {
        let mut bench = Bench::new("asks");
        let (question, handle) = expect_question(bench.performed().await);
        let shown = json::canonical(&question);
        assert!(shown.contains(r#""class":"destructive""#) && shown.contains("Delete old.txt\\\\u{1b}[2K"), "{shown}");
        assert_eq!(bench.file("log"), "read yes\n");
        bench.progress(handle, action(answer));
        let outcome = output_text(&bench.perform().await);
        assert_eq!(bench.file("log"), format!("read yes\n{expected}\nexecute no\n"));
        assert!(outcome.contains(r#""text":"Here is the result: "#), "{outcome}");
        assert!(
            outcome.contains(r#""usage":{"inputTokens":5,"outputTokens":2,"toolCalls":3,"totalTokens":7}"#),
            "{outcome}"
        );
        assert!(outcome.contains(r#""kind":"execute","status":"failed""#), "{outcome}");
        assert_eq!(bench.file("sessions"), "new\n");
    }
}

#[tokio::test]
async fn the_prompt_is_sent_after_the_session_is_recorded() {
    let bench = Bench::new("asks");
    let Outcome::Reported(_) = bench.perform().await else { panic!("no session") };
    assert_eq!((bench.file("sessions").as_str(), bench.file("prompts").as_str()), ("new\n", ""));
    assert_eq!(bench.runners.adopt(&bench.attempt).await, Adopted::NeverStarted);
}

#[tokio::test]
async fn decision_survives_session_load_by_another_process() {
    let mut bench = Bench::new("loads");
    let (question, handle) = expect_question(bench.performed().await);
    bench.runners = Bench::new("loads").runners;
    // Another process, without the agent.
    bench.progress(handle.clone(), action("accept"));
    assert_eq!(bench.runners.adopt(&bench.attempt).await, Adopted::NeverStarted);
    let outcome = output_text(&bench.perform().await);
    assert!(outcome.contains("the result"), "{outcome}");
    assert!(!outcome.contains("of an earlier turn"), "{outcome}");
    assert_eq!(bench.file("log"), "read yes\ndelete yes\nexecute no\n");
    assert_eq!(bench.file("sessions"), "new\nload s-1\n");
    assert!(bench.file("prompts").contains("Continue the task"), "{}", bench.file("prompts"));
    // A decision about another call does not count.
    let mut other = Bench::new("loads");
    other.progress(handle.clone(), action("accept"));
    let digest = question.get("permission").and_then(|permission| permission.get("digest")).cloned();
    assert_eq!(handle.get("asked").cloned(), digest);
    let Value::Map(mut map) = handle else { panic!() };
    map.insert("asked".into(), "sha256:other".into());
    other.progress(map.into(), action("accept"));
    let (again, _) = expect_question(other.perform().await);
    assert_eq!(again, question);
}

#[tokio::test]
async fn agent_continues_after_its_exit_if_it_loads_sessions() {
    let mut bench = Bench::new("dies");
    let (_, handle) = expect_question(bench.performed().await);
    assert_eq!(bench.file("sessions"), "new\nload s-1\n");
    bench.progress(handle, action("accept"));
    assert!(output_text(&bench.perform().await).contains("the result"));
    assert_eq!(bench.file("log"), "read yes\ndelete yes\nexecute no\n");
}

#[tokio::test]
async fn attempt_is_interrupted_if_sessions_cannot_be_loaded() {
    let mut bench = Bench::new("asks");
    let (_, handle) = expect_question(bench.performed().await);
    bench.runners = Bench::new("asks").runners;
    bench.progress(handle, action("accept"));
    assert_eq!(bench.runners.adopt(&bench.attempt).await, Adopted::Interrupted);
    assert_eq!(bench.perform().await, Outcome::Interrupted);
    assert_eq!(bench.file("log"), "read yes\n", "nothing was allowed");
}

#[tokio::test]
async fn a_cancellation_is_sent_and_ends_the_process() {
    let mut bench = Bench::new("slow");
    let Outcome::Reported(report) = bench.perform().await else { panic!("no session") };
    let Report::Continued(session) = *report else { panic!("{report:?}") };
    bench.progress(session, Value::Null);
    let (handle, stop) = CancelHandle::pair();
    let cancel = async {
        bench.written("begun").await;
        handle.cancel();
    };
    let (outcome, ()) = tokio::join!(bench.runners.perform(&bench.attempt, stop), cancel);
    assert!(matches!(&outcome, Outcome::Stopped(_)), "{outcome:?}");
    assert_eq!(bench.file("canceled"), "yes\n");
    // One that waits for people is ended by an attempt that is only to be stopped.
    let mut bench = Bench::new("asks");
    let (_, handle) = expect_question(bench.performed().await);
    bench.progress(handle, Value::Null);
    bench.attempt.progress.as_mut().unwrap().is_stopping = true;
    assert!(matches!(bench.perform().await, Outcome::Stopped(_)));
    assert_eq!((bench.file("canceled").as_str(), bench.file("log").as_str()), ("yes\n", "read yes\n"));
}

#[tokio::test]
async fn agent_exit_during_a_permission_request_is_detected() {
    let mut bench = Bench::new("asks");
    let (_, handle) = expect_question(bench.performed().await);
    bench.progress(handle, Value::Null);
    let (stop_handle, stop) = CancelHandle::pair();
    stop_handle.leave();
    assert_eq!(timeout(TEST_TIMEOUT, bench.runners.watch(&bench.attempt, stop)).await.unwrap(), None);
    let (_handle, stop) = CancelHandle::pair();
    assert_eq!(bench.runners.watch(&bench.attempt, stop).await, None, "nothing is held any more");
    assert_eq!(bench.perform().await, Outcome::Interrupted);
}

#[tokio::test]
async fn hostile_agents_fail_the_step() {
    for (mode, expected) in [
        ("line", "runner_protocol: step `work`: the agent `tester` broke the protocol: it wrote a line of more than"),
        ("forged", "it answered a request that was not sent"),
        ("options", "options of the same id"),
        ("garbage", "a line that is no message"),
        ("methods", r#""text":"[-32601, -32601, -32601, -32601, -32600]""#),
        (
            "refusal",
            "runner_failed: step `work`: the agent `tester` stopped without a final answer, for the reason \"refusal\"",
        ),
        ("secret", r#""text":"the key is ***""#),
        ("updates", "runner_protocol"),
    ] {
        let outcome = output_text(&Bench::new(mode).performed().await);
        assert!(outcome.contains(expected), "{mode}: {outcome}");
    }
}

#[tokio::test]
async fn agents_that_open_no_session_fail_the_step() {
    for (mode, expected) in [
        ("version", "runner_protocol: step `work`: the agent `tester` speaks version \"2\""),
        ("account", "runner_unauthenticated"),
        ("silent-end", "its last lines: \"no key\""),
    ] {
        let outcome = output_text(&Bench::new(mode).perform().await);
        assert!(outcome.contains(expected), "{mode}: {outcome}");
    }
    let mut bench = Bench::new("asks");
    bench.attempt.workspace = None;
    assert!(output_text(&bench.perform().await).contains("runner_no_workspace"));
    let Value::Map(params) = &mut bench.attempt.params else { panic!() };
    params.insert("runner".into(), "other".into());
    assert!(output_text(&bench.perform().await).contains("is not configured; there are tester"));
    bench.attempt.progress = None;
    assert!(output_text(&bench.perform().await).contains("reports_need_upgrade"));
}
