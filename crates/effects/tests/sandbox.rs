//! Sandboxes: sandboxes that are hostile, broken or slow. Each is a bash script that speaks the protocol, or does not.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use mainspring_effects::{
    CancelHandle, Executor, LiveProgress,
    sandbox::{Log, Profiles, SandboxOptions, SandboxRunner, Timing, probe},
    shell::{Shell, ShellOptions, contain::Scripts},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    key::ExecutionKey,
    secret::SecretUses,
    value::Value,
};
use tempfile::TempDir;

/// The beginning of every sandbox that says hello: functions to read messages and to answer.
const SPEAKS: &str = r#"
say() { printf '%s\n' "$1"; }
hello() { read -r _; say '{"type":"hello","protocol":1,"release":"t","scripts":"uncontained","why":"test"}'; }
await() { while read -r line; do [[ $line == *"\"$1\""* ]] && { [[ $line =~ \"id\":([0-9]+) ]]; id=${BASH_REMATCH[1]}; return; }; done; exit; }
result='"outcome":{"status":"done","result":{"exitCode":0,"stdout":"ran","stderr":"","durationMs":1,"truncated":false}}'
done_with() { say "{\"type\":\"workflow.result\",\"id\":$1,$result}"; }
"#;

/// Times for tests: only those matter that end a sandbox for its silence.
const TIMING: Timing = Timing {
    grace: Duration::from_millis(300),
    answer: Duration::from_millis(100),
    ping: Duration::from_millis(100),
    silence: Duration::from_secs(2),
    write: Duration::from_millis(500),
    start_pause: Duration::from_millis(1),
};

/// A sandbox profile whose sandboxes are a script.
struct Bench {
    folder: TempDir,
    sandboxes: SandboxRunner,
    profiles: Profiles,
    options: SandboxOptions,
    log: Arc<Mutex<Vec<String>>>,
    progress: Arc<LiveProgress>,
}

impl Bench {
    /// A bench with a script, which begins in the environment with `DIR`, a folder for its notes.
    fn new(script: &str) -> Self {
        Self::with("bash", script, 10_000)
    }

    fn with(command: &str, script: &str, start_ms: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo started >> \"$DIR/starts\"\n{SPEAKS}\n{script}");
        let args = vec![Value::from("-c"), script.as_str().into(), "sandbox".into(), "{sandbox}".into()];
        let profile = Value::map([
            ("command", Value::from(command)),
            ("args", args.into()),
            ("env", Value::map([("DIR", folder.path().display().to_string().as_str().into())])),
            (
                "cleanup",
                vec![Value::from("touch"), format!("{}/cleaned", folder.path().display()).as_str().into()].into(),
            ),
            ("startTimeoutMs", start_ms.into()),
            ("organizations", vec![Value::from("acme")].into()),
        ]);
        let profiles = Profiles::read(&Value::map([("test", profile)])).unwrap();
        let shell = Shell::new(ShellOptions {
            records: folder.path().join("processes"),
            same_boot: true,
            untrusted_before_ms: 0,
            hidden_env: vec![],
            grace: TIMING.grace,
            traces: false,
            scripts: Scripts::Off("they run in sandboxes".into()),
            needs_workspace: true,
        });
        let (log, progress) = (Arc::new(Mutex::new(Vec::new())), Arc::new(LiveProgress::default()));
        let keeps = log.clone();
        let told: Log = Arc::new(move |message: &str| keeps.lock().unwrap().push(message.to_owned()));
        let options = SandboxOptions { traces: false, timing: TIMING, log: told, progress: progress.clone() };
        let sandboxes = SandboxRunner::new(profiles.clone(), Arc::new(shell), options.clone());
        Self { folder, sandboxes, profiles, options, log, progress }
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            execution: ExecutionKey([5; 16]),
            root: ExecutionKey([5; 16]),
            execution_id: "run-1".into(),
            organization: Some("acme".into()),
            workflow_id: None,
            step: "build".into(),
            number: 1,
            effect: "bash".into(),
            params: Value::map([("command", "echo ran".into())]),
            intent: Hash([1; 32]),
            flags: AttemptFlags::default(),
            handed_out_at: u64::MAX,
            workspace: Some(self.folder.path().display().to_string()),
            secrets: SecretUses::default(),
            progress: None,
        }
    }

    async fn perform(&self) -> Outcome {
        let (_handle, stop) = CancelHandle::pair();
        self.sandboxes.perform(&self.attempt(), stop).await
    }

    fn note(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn starts(&self) -> usize {
        self.note("starts").lines().count()
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }
}

#[track_caller]
fn is_done(outcome: &Outcome) {
    match outcome {
        Outcome::Done(result) => assert_eq!(result.get("stdout"), Some(&"ran".into())),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refusal(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(failure) => format!("{}: {}", failure.code, failure.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn attempts_of_an_execution_share_a_sandbox() {
    let bench = Bench::new("hello; while await workflow.execute; do done_with $id; done");
    for _ in 0..3 {
        is_done(&bench.perform().await);
    }
    assert_eq!(bench.starts(), 1);
    let other = Attempt { execution: ExecutionKey([6; 16]), ..bench.attempt() };
    let (_handle, stop) = CancelHandle::pair();
    is_done(&bench.sandboxes.perform(&other, stop).await);
    assert_eq!(bench.starts(), 2);
    bench.sandboxes.close().await;
    assert!(bench.folder.path().join("cleaned").exists());
    assert!(refusal(&bench.perform().await).contains("the node is stopping"));
}

/// Nothing that a sandbox says after it got an attempt makes a success of it, unless it is its result.
#[tokio::test]
async fn a_sandbox_that_breaks_the_protocol_interrupts_its_attempt() {
    let forged =
        r#"say '{"type":"workflow.result","id":'$id',"outcome":{"status":"done","result":{"approved":true}}}'"#;
    for (script, expected) in [
        ("say 'Segmentation fault'; sleep 60", "no JSON"),
        ("head -c 100000000 /dev/zero | tr '\\0' x; sleep 60", "more than 1048576 bytes"),
        ("done_with 99; sleep 60", "a result of an attempt that it does not have"),
        (forged, "lacks `exitCode`"),
        ("say '{\"type\":\"workflow.approve\",\"id\":1}'; sleep 60", "unknown type"),
        (
            "say '{\"type\":\"workflow.progress\",\"id\":7,\"stdoutBytes\":1,\"stderrBytes\":0,\"line\":\"\"}'; sleep 60",
            "reports on an attempt",
        ),
        (
            "say '{\"type\":\"workflow.progress\",\"id\":'$id',\"stdoutBytes\":1,\"stderrBytes\":0,\"line\":\"'$(head -c 9000 /dev/zero | tr '\\0' x)'\"}'; sleep 60",
            "more than 8192 bytes that is not a result",
        ),
        ("yes '{\"type\":\"pong\"}'", "messages in a second"),
        ("exit 0", "was ended"),
        ("echo boom >&2; kill -9 $$", "boom"),
        ("exec sleep 60", "nothing came from it for 2000 ms"),
    ] {
        let bench = Bench::new(&format!("hello; await workflow.execute; {script}"));
        let outcome = bench.perform().await;
        assert_eq!(outcome, Outcome::Interrupted, "{script}");
        assert!(bench.log().contains(expected), "{script}: {}", bench.log());
        assert_eq!(bench.starts(), 1, "{script}: an attempt that was sent is not sent again");
        assert!(bench.folder.path().join("cleaned").exists(), "{script}");
    }
}

#[tokio::test]
async fn a_second_result_does_not_count() {
    let bench = Bench::new("hello; await workflow.execute; done_with $id; done_with $id; sleep 60");
    is_done(&bench.perform().await);
    // The second answer ends the sandbox. An attempt that was sent to it before is interrupted, and never done by that answer.
    while bench.starts() < 2 {
        let next = bench.perform().await;
        if next != Outcome::Interrupted {
            is_done(&next);
            assert_eq!(bench.starts(), 2, "{}", bench.log());
        }
    }
}

#[tokio::test]
async fn a_command_that_cannot_start_is_a_failure_that_says_why() {
    for (command, script, starts, expected) in [
        ("bash", "echo 'Welcome to Ubuntu'", 1, "`Welcome to Ubuntu`"),
        (
            "bash",
            "say '{\"type\":\"hello\",\"protocol\":9,\"release\":\"9.0\",\"scripts\":\"uncontained\",\"why\":\"\"}'",
            1,
            "speaks version 9",
        ),
        (
            "bash",
            "say '{\"type\":\"hello\",\"protocol\":1,\"release\":\"t\",\"scripts\":\"off\",\"why\":\"no bwrap\"}'",
            1,
            "scripts are off in it: no bwrap",
        ),
        ("bash", "echo 'no such image' >&2; exit 125", 5, "no such image"),
        ("bash", "sleep 60", 5, "no hello came in 300 ms"),
        ("mainspring-no-such-program", "", 0, "`mainspring-no-such-program` is not in PATH"),
    ] {
        let bench = Bench::with(command, script, 300);
        let said = refusal(&bench.perform().await);
        assert!(
            said.starts_with("sandbox_not_started: step `build`: nothing was run") && said.contains(expected),
            "{said}"
        );
        assert_eq!(bench.starts(), starts, "{script}: {said}");
    }
}

#[tokio::test]
async fn a_start_that_fails_is_tried_again() {
    let flaky = "[ $(wc -l < $DIR/starts) -lt 3 ] && exit 1; hello; await workflow.execute; done_with $id; await never";
    let bench = Bench::new(flaky);
    is_done(&bench.perform().await);
    assert_eq!(bench.starts(), 3);
}

/// A message that the sandbox has not taken as a whole has no effect, so the attempt was not started.
#[tokio::test]
async fn a_sandbox_that_takes_no_messages_has_not_started_the_attempt() {
    let bench = Bench::new("hello; sleep 60");
    let large = Value::map([("command", "x".repeat(1_000_000).as_str().into())]);
    let attempt = Attempt { params: large, ..bench.attempt() };
    let (_handle, stop) = CancelHandle::pair();
    let said = refusal(&bench.sandboxes.perform(&attempt, stop).await);
    assert!(said.contains("before the attempt was sent"), "{said}");
    assert!(bench.log().contains("does not take messages"), "{}", bench.log());
    assert_eq!(bench.starts(), 5);
}

#[tokio::test]
async fn a_cancel_is_asked_for_and_then_enforced() {
    for (script, logged) in [
        (
            "await workflow.cancel; say '{\"type\":\"workflow.result\",\"id\":'$id',\"outcome\":{\"status\":\"stopped\",\"result\":null}}'; await never",
            "",
        ),
        ("trap '' TERM; sleep 60", "did not end a canceled attempt"),
        ("await workflow.cancel; exit", "was ended"),
    ] {
        let bench =
            Bench::new(&format!("hello; await workflow.execute; touch $DIR/open; echo $$ > $DIR/pid; {script}"));
        let (handle, stop) = CancelHandle::pair();
        let attempt = bench.attempt();
        let performed = bench.sandboxes.perform(&attempt, stop);
        let open = bench.folder.path().join("pid");
        let cancel = async {
            until(|| fs::read_to_string(&open).is_ok_and(|pid| pid.ends_with('\n'))).await;
            handle.cancel();
        };
        let (outcome, ()) = tokio::join!(performed, cancel);
        assert_eq!(outcome, Outcome::Stopped(Value::Null), "{script}");
        assert!(bench.log().contains(logged), "{script}: {}", bench.log());
        if !logged.is_empty() {
            let pid = bench.note("pid");
            assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{script}: the sandbox is gone");
        }
    }
}

#[tokio::test]
async fn a_cancel_before_the_start_starts_nothing() {
    let bench = Bench::new("hello; await workflow.execute; done_with $id");
    let (handle, stop) = CancelHandle::pair();
    handle.cancel();
    assert_eq!(bench.sandboxes.perform(&bench.attempt(), stop).await, Outcome::Stopped(Value::Null));
    assert_eq!(bench.starts(), 0);
}

#[tokio::test]
async fn progress_is_known_while_the_script_runs() {
    let report = r#"say '{"type":"workflow.progress","id":'$id',"stdoutBytes":4,"stderrBytes":0,"line":"half way"}'"#;
    let bench = Bench::new(&format!(
        "hello; await workflow.execute; {report}; until [ -e $DIR/go ]; do sleep 0.01; done; done_with $id"
    ));
    let attempt = bench.attempt();
    let (_handle, stop) = CancelHandle::pair();
    let seen = async {
        until(|| !bench.progress.of(attempt.execution).1.is_empty()).await;
        let (_, attempts) = bench.progress.of(attempt.execution);
        fs::write(bench.folder.path().join("go"), "").unwrap();
        attempts
    };
    let (outcome, seen) = tokio::join!(bench.sandboxes.perform(&attempt, stop), seen);
    is_done(&outcome);
    assert_eq!((seen[0].step.as_str(), seen[0].output.line.as_str()), ("build", "half way"));
    assert!(bench.progress.of(attempt.execution).1.is_empty(), "it is forgotten with its attempt");
}

/// Arguments and environments are visible to other processes, so they have nothing of an attempt.
#[tokio::test]
async fn values_of_an_attempt_are_in_messages_alone() {
    let script = "hello; await workflow.execute; { env; cat /proc/$$/cmdline; } > $DIR/seen; say \"$line\" >> $DIR/message; done_with $id";
    let bench = Bench::new(script);
    let params = Value::map([("command", "true".into()), ("env", Value::map([("TOKEN", "hunter2hunter2".into())]))]);
    let attempt = Attempt { params, ..bench.attempt() };
    let (_handle, stop) = CancelHandle::pair();
    is_done(&bench.sandboxes.perform(&attempt, stop).await);
    assert!(bench.note("message").contains("hunter2hunter2"));
    assert!(!bench.note("seen").contains("hunter2") && bench.note("seen").contains("DIR="), "{}", bench.note("seen"));
}

#[tokio::test]
async fn an_execution_without_a_workspace_runs_no_scripts() {
    let bench = Bench::new("hello; await workflow.execute; done_with $id");
    let attempt = Attempt { workspace: None, ..bench.attempt() };
    let (_handle, stop) = CancelHandle::pair();
    assert!(refusal(&bench.sandboxes.perform(&attempt, stop).await).starts_with("scripts_not_permitted"));
    assert_eq!(bench.starts(), 0);
    let other = Attempt { organization: Some("globex".into()), ..bench.attempt() };
    assert!(bench.sandboxes.performs(&bench.attempt()) && !bench.sandboxes.performs(&other));
}

#[tokio::test]
async fn a_sandbox_profile_is_probed() {
    let bench = Bench::new("hello; await never");
    let profile = bench.profiles.all()[0].clone();
    let probed = probe(&profile, &bench.options, "/").await.unwrap();
    assert_eq!((probed.release.as_str(), probed.scripts.as_str()), ("t", "uncontained"));
    let bench = Bench::with("bash", "exit 3", 300);
    let profile = bench.profiles.all()[0].clone();
    assert!(probe(&profile, &bench.options, "/").await.unwrap_err().contains("ended before it said hello"));
}

/// Waits for a condition that another process makes true.
async fn until(is_true: impl Fn() -> bool) {
    while !is_true() {
        tokio::task::yield_now().await;
    }
}
