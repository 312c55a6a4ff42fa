//! Tests of the shell executor with real processes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use mainspring_effects::{
    Adopted, AttemptName, CancelHandle, Executor,
    shell::{STREAM_BYTES_MAX, Shell, ShellOptions, contain::Scripts},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    key::ExecutionKey,
    value::Value,
};
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, test_kill_process, test_kill_process_group},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::unix::pipe,
};

/// A grace period longer than any test, so that SIGTERM alone must suffice.
const LONG: Duration = Duration::from_secs(3600);

/// A grace period for processes that ignore SIGTERM.
const SHORT: Duration = Duration::from_millis(50);

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("workspace")).unwrap();
        Self { root }
    }

    fn records(&self) -> PathBuf {
        self.root.path().join("records")
    }

    fn notes_count(&self) -> usize {
        fs::read_dir(self.records()).map_or(0, Iterator::count)
    }

    fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    fn shell(&self, grace: Duration) -> Shell {
        self.shell_with(grace, Scripts::Uncontained, false)
    }

    fn shell_with(&self, grace: Duration, scripts: Scripts, needs_workspace: bool) -> Shell {
        // Cargo sets the second of these variables for every test.
        let hidden_env = vec!["NOT_SET_AT_ALL".into(), "CARGO_MANIFEST_DIR".into()];
        Shell::new(ShellOptions {
            records: self.records(),
            same_boot: true,
            untrusted_before_ms: 0,
            hidden_env,
            grace,
            traces: false,
            scripts,
            needs_workspace,
        })
    }

    fn attempt(&self, params: impl IntoIterator<Item = (&'static str, Value)>) -> Attempt {
        Attempt {
            execution: ExecutionKey([5; 16]),
            root: ExecutionKey([6; 16]),
            execution_id: "nightly-42".into(),
            organization: None,
            workflow_id: Some("wf_7".into()),
            step: "build[3].test".into(),
            number: 2,
            effect: "bash".into(),
            params: Value::map(params),
            intent: Hash([0xab; 32]),
            flags: AttemptFlags::default(),
            handed_out_at: u64::MAX,
            workspace: Some(self.workspace().to_str().unwrap().into()),
            secrets: mainspring_kernel::secret::SecretUses::default(),
            progress: None,
        }
    }

    fn script(&self, command: &str) -> Attempt {
        self.attempt([("command", command.into())])
    }

    /// Makes a named pipe in the workspace for messages between scripts.
    fn make_fifo(&self, name: &str) -> PathBuf {
        let path = self.workspace().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        path
    }

    /// Makes a named pipe on which a script reports to the test.
    fn fifo(&self, name: &str) -> Fifo {
        // Open for writing too, so that it does not end with its first writer.
        let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(self.make_fifo(name)).unwrap();
        Fifo(BufReader::new(receiver))
    }
}

struct Fifo(BufReader<pipe::Receiver>);

impl Fifo {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim().into()
    }

    async fn pid(&mut self) -> Pid {
        Pid::from_raw(self.line().await.parse().unwrap()).unwrap()
    }
}

async fn perform(shell: &Shell, attempt: &Attempt) -> Outcome {
    let (_cancel_handle, stop) = CancelHandle::pair();
    shell.perform(attempt, stop).await
}

/// Performs a script with the long grace period, in its own folders.
async fn run(command: &str) -> Outcome {
    let place = Place::new();
    perform(&place.shell(LONG), &place.script(command)).await
}

#[track_caller]
fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(result) => result,
        other => panic!("not done: {other:?}"),
    }
}

#[track_caller]
fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

#[track_caller]
fn stopped(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Stopped(details) => {
            assert_eq!(details.get("exitCode"), Some(&Value::Null));
            details
        }
        other => panic!("not stopped: {other:?}"),
    }
}

#[track_caller]
fn stdout(result: &Value) -> &str {
    result.get("stdout").unwrap().as_text().unwrap()
}

fn stat(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default()
}

/// Returns whether a process has ended, reaped or not.
fn has_ended(pid: Pid) -> bool {
    let stat = stat(pid);
    stat.is_empty() || stat.contains(") Z ")
}

/// Not even a zombie is left.
#[track_caller]
fn assert_gone(pid: Pid) {
    assert!(test_kill_process(pid).is_err(), "it lives, or it was not reaped: {}", stat(pid));
}

/// Starts a script, waits for the process ids that it writes to the pipe `told`, and cancels it.
async fn stop_after_telling(command: &str, pids_count: usize, grace: Duration) -> (Outcome, Vec<Pid>) {
    let place = Place::new();
    let (mut told, attempt, shell) = (place.fifo("told"), place.script(command), place.shell(grace));
    let (cancel_handle, stop) = CancelHandle::pair();
    let work = tokio::spawn(async move { shell.perform(&attempt, stop).await });
    let mut pids = Vec::new();
    for _ in 0..pids_count {
        pids.push(told.pid().await);
    }
    cancel_handle.cancel();
    (work.await.unwrap(), pids)
}

mod results {
    use super::*;

    #[tokio::test]
    async fn success_has_exactly_five_fields() {
        let result = done(run("echo out; echo err >&2").await);
        let keys: Vec<&str> = result.as_map().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["durationMs", "exitCode", "stderr", "stdout", "truncated"]);
        assert_eq!(result.get("exitCode"), Some(&Value::from(0u64)));
        assert_eq!(stdout(&result), "out\n");
        assert!(result.get("stderr").unwrap().as_text().unwrap().ends_with("err\n"));
        assert_eq!(result.get("truncated"), Some(&Value::from(false)));
        assert!(result.get("durationMs").unwrap().as_u64().is_some());
    }

    #[tokio::test]
    async fn failure_carries_the_result() {
        let failure = failed(run("echo out; echo first >&2; echo 'no such thing' >&2; exit 3").await);
        assert_eq!((failure.code.as_str(), failure.class), ("bash_exit_code:3", Class::Failed));
        assert_eq!(failure.message, "the script exited with code 3: no such thing");
        assert_eq!(failure.details.get("exitCode"), Some(&Value::from(3u64)));
        assert_eq!(stdout(&failure.details), "out\n");
    }

    #[tokio::test]
    async fn a_signal_from_elsewhere_is_an_exit_code() {
        let failure = failed(run("kill -KILL $$").await);
        assert_eq!((failure.code.as_str(), failure.class), ("bash_exit_code:137", Class::Failed));
        assert_eq!(failure.details.get("exitCode"), Some(&Value::from(137u64)));
    }

    #[tokio::test]
    async fn commands_are_arguments_and_never_spliced() {
        for (command, expected) in [
            (r#"echo '"; echo spliced; "' "${0##*/}" $#"#, "\"; echo spliced; \" bash 0\n"),
            ("-v 2>/dev/null || echo hyphen", "hyphen\n"),
            ("--help 2>/dev/null || echo hyphens", "hyphens\n"),
            ("\n  # a comment\n  echo `echo back` $(echo dollar)\n", "back dollar\n"),
            ("cat <<'END'\n$HOME \\ 'x'\nEND", "$HOME \\ 'x'\n"),
            ("echo ${go-unset}", "unset\n"),
        ] {
            let result = done(run(command).await);
            assert_eq!(stdout(&result), expected, "{command}");
        }
    }

    #[tokio::test]
    async fn bash_is_a_login_shell_without_input_in_its_own_group() {
        let script = "cat; readlink /proc/self/fd/0; shopt -q login_shell && echo login; \
                      read -ra stat < /proc/$$/stat; echo ${stat[4]}; echo $$";
        let result = done(run(script).await);
        let lines: Vec<&str> = stdout(&result).lines().collect();
        assert_eq!(lines[..2], ["/dev/null", "login"]);
        assert_eq!(lines[2], lines[3]);
    }

    #[test]
    fn only_bash_steps_are_performed() {
        let place = Place::new();
        let mut attempt = place.script("true");
        let shell = place.shell(LONG);
        assert!(shell.performs(&attempt));
        attempt.effect = "tool".into();
        assert!(!shell.performs(&attempt));
    }

    #[tokio::test]
    async fn a_dropped_cancel_handle_stops_nothing() {
        let place = Place::new();
        let (cancel_handle, stop) = CancelHandle::pair();
        drop(cancel_handle);
        done(place.shell(LONG).perform(&place.script("true"), stop).await);
    }
}

mod surroundings {
    use super::*;

    #[tokio::test]
    async fn variables_are_inherited_hidden_and_added() {
        let place = Place::new();
        let env = Value::map([("A", Value::from("$HOME `x` \"'\n")), ("EMPTY", Value::from(""))]);
        let show = "printf '%s|' \"$MAINSPRING_EXECUTION_ID\" \"$MAINSPRING_STEP_ID\" $MAINSPRING_ATTEMPT \
                    $MAINSPRING_INTENT ${#MAINSPRING_MARK} \"$A\" \"${EMPTY-unset}\" ${CARGO_MANIFEST_DIR-hidden} \
                    ${CARGO_PKG_NAME-hidden}";
        let attempt = place.attempt([("command", show.into()), ("env", env)]);
        let result = done(perform(&place.shell(LONG), &attempt).await);
        let intent = "ab".repeat(32);
        let expected = format!("nightly-42|build[3].test|2|{intent}|64|$HOME `x` \"'\n||hidden|mainspring-effects|");
        assert_eq!(stdout(&result), expected);
    }

    #[tokio::test]
    async fn a_script_knows_its_session() {
        let place = Place::new();
        let command = "printf '%s|' $IS_WORKFLOW_SESSION \"${WORKFLOW_ID-unset}\" \"$WORKFLOW_EXECUTION_ID\"";
        let attempt = place.script(command);
        assert_eq!(stdout(&done(perform(&place.shell(LONG), &attempt).await)), "true|wf_7|nightly-42|");
        let attempt = Attempt { workflow_id: None, ..attempt };
        assert_eq!(stdout(&done(perform(&place.shell(LONG), &attempt).await)), "true|unset|nightly-42|");
    }

    #[tokio::test]
    async fn a_step_may_set_hidden_variables() {
        let place = Place::new();
        let env = Value::map([("CARGO_MANIFEST_DIR", Value::from("mine"))]);
        let attempt = place.attempt([("command", "echo $CARGO_MANIFEST_DIR".into()), ("env", env)]);
        assert_eq!(stdout(&done(perform(&place.shell(LONG), &attempt).await)), "mine\n");
    }

    #[tokio::test]
    async fn folders_are_relative_to_the_workspace() {
        let place = Place::new();
        let workspace = fs::canonicalize(place.workspace()).unwrap();
        fs::create_dir_all(workspace.join("a b/c")).unwrap();
        let check = async |cwd: Option<&str>, with_workspace: bool, expected: &Path| {
            let mut attempt = place.attempt([("command", "pwd -P".into()), ("cwd", cwd.into())]);
            attempt.workspace = attempt.workspace.filter(|_| with_workspace);
            let result = done(perform(&place.shell(LONG), &attempt).await);
            assert_eq!(Path::new(stdout(&result).trim_end()), expected, "{cwd:?}");
        };
        let here = fs::canonicalize(".").unwrap();
        check(None, true, &workspace).await;
        check(Some("a b/c"), true, &workspace.join("a b/c")).await;
        check(Some("/"), true, Path::new("/")).await;
        check(None, false, &here).await;
        check(Some("src"), false, &here.join("src")).await;
    }

    #[tokio::test]
    async fn each_failed_start_has_a_failure_with_help() {
        let place = Place::new();
        fs::write(place.workspace().join("file"), "").unwrap();
        let check = async |attempt: Attempt, code: &str, in_message: &str| {
            let failure = failed(perform(&place.shell(LONG), &attempt).await);
            assert_eq!((failure.code.as_str(), failure.class), (code, Class::Invalid));
            assert!(failure.message.contains(in_message), "{}", failure.message);
        };
        let with = |name, value: Value| place.attempt([("command", "true".into()), (name, value)]);
        for blank in [Value::Null, "".into(), " \n\t".into(), 1u64.into()] {
            check(place.attempt([("command", blank)]), "bash_missing_command", "give the script as text").await;
        }
        check(place.attempt([]), "bash_missing_command", "give the script as text").await;
        check(place.script("echo a\0b"), "bash_command_invalid", "remove it").await;
        let too_large = "x".repeat(200 * 1024);
        check(place.script(&format!("true {too_large}")), "bash_too_large", "to a file").await;
        check(with("env", Value::map([("A", Value::from(too_large))])), "bash_too_large", "to a file").await;
        let many = (0..80).map(|index| (format!("A{index}"), Value::from("x".repeat(100 * 1024))));
        check(with("env", Value::map(many)), "bash_too_large", "to a file").await;
        check(with("env", Value::map([("A-B", Value::from("x"))])), "bash_environment_invalid", "`A-B`").await;
        check(with("cwd", "missing".into()), "bash_missing_cwd", "correct `cwd`").await;
        check(with("cwd", "file".into()), "bash_missing_cwd", "workspace/file").await;
        check(with("cwd", "a\0b".into()), "bash_missing_cwd", "correct `cwd`").await;
        check(with("cwd", 1u64.into()), "bash_missing_cwd", "a number").await;
        let mut homeless = place.script("true");
        homeless.workspace = Some(place.workspace().join("missing").to_str().unwrap().into());
        check(homeless, "bash_missing_workspace", "restore it").await;
        assert_eq!(place.notes_count(), 0, "nothing was started");
    }
}

mod output {
    use super::*;

    #[tokio::test]
    async fn streams_are_cut_at_the_bound_and_counted_beyond() {
        let script = "exec 2>/dev/null; head -c 100000 /dev/zero | tr '\\0' a";
        let result = done(run(script).await);
        assert_eq!(stdout(&result), "a".repeat(STREAM_BYTES_MAX));
        assert_eq!(result.get("truncated"), Some(&Value::from(true)));
        assert_eq!(result.get("stdoutBytes"), Some(&Value::from(100_000u64)));
        assert!(result.get("stderrBytes").unwrap().as_u64().is_some());
    }

    #[tokio::test]
    async fn invalid_utf8_is_replaced_within_the_bound() {
        let result = done(run("printf 'a\\377b'").await);
        assert_eq!((stdout(&result), result.get("truncated")), ("a\u{fffd}b", Some(&Value::from(false))));
        let result = done(run("head -c 60000 /dev/zero | tr '\\0' '\\377'").await);
        assert!(stdout(&result).len() <= STREAM_BYTES_MAX && stdout(&result).chars().all(|c| c == '\u{fffd}'));
        assert_eq!(result.get("stdoutBytes"), Some(&Value::from(60_000u64)));
    }

    #[tokio::test]
    async fn both_pipes_filled_at_once_do_not_hang() {
        let result = done(run("head -c 3000000 /dev/zero >&2 & head -c 3000000 /dev/zero; wait").await);
        assert_eq!(result.get("stdoutBytes"), Some(&Value::from(3_000_000u64)));
        assert!(result.get("stderrBytes").unwrap().as_u64().unwrap() >= 3_000_000);
    }

    #[tokio::test]
    async fn two_hundred_megabytes_of_output_use_no_memory() {
        let peak_kib = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let before_kib = peak_kib();
        let result = done(run("head -c 200000000 /dev/zero").await);
        assert_eq!(result.get("stdoutBytes"), Some(&Value::from(200_000_000u64)));
        // Other tests run in this process at the same time; together they need less than a tenth of the bound, too.
        let after_kib = peak_kib();
        assert!(after_kib - before_kib < 20_000, "{before_kib} KiB before, {after_kib} KiB after");
    }

    /// The last bytes are in the pipe when bash ends, whichever of the two is noticed first.
    #[tokio::test]
    async fn output_is_complete_at_the_exit() {
        let place = Place::new();
        let shell = place.shell(LONG);
        for _ in 0..20 {
            let result = done(perform(&shell, &place.script("printf 'x%.0s' {1..60000}")).await);
            assert_eq!(stdout(&result).len(), 60_000);
        }
    }
}

mod stopping {
    use super::*;

    #[tokio::test]
    async fn a_stop_before_the_start_starts_nothing() {
        let place = Place::new();
        let (cancel_handle, stop) = CancelHandle::pair();
        cancel_handle.cancel();
        let details = stopped(place.shell(LONG).perform(&place.script("touch ran"), stop).await);
        assert_eq!((stdout(&details), details.get("durationMs")), ("", Some(&Value::from(0u64))));
        assert!(!place.workspace().join("ran").exists());
        assert_eq!(place.notes_count(), 0);
    }

    /// The cancellation arrives at the start barrier, at the start of bash, in its profile, in the script.
    #[tokio::test]
    async fn a_stop_during_the_start_leaves_no_process() {
        let place = Place::new();
        let shell = place.shell(LONG);
        for yields in (0..400).step_by(20) {
            let (cancel_handle, stop) = CancelHandle::pair();
            let stopping = async {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                cancel_handle.cancel();
            };
            let attempt = place.script("sleep 300");
            let (outcome, ()) = tokio::join!(shell.perform(&attempt, stop), stopping);
            stopped(outcome);
        }
    }

    #[tokio::test]
    async fn sigterm_ends_the_group_and_its_last_output_is_stored() {
        let script =
            "trap 'echo last words; exit 0' TERM; sleep 300 & echo begun; echo $! > told; echo $$ > told; wait";
        let (outcome, pids) = stop_after_telling(script, 2, LONG).await;
        assert_eq!(stdout(&stopped(outcome)), "begun\nlast words\n");
        pids.into_iter().for_each(assert_gone);
    }

    #[tokio::test]
    async fn a_script_that_ignores_sigterm_is_killed() {
        let script = "trap '' TERM; (sleep 300) & echo $! > told; echo $$ > told; while :; do wait; done";
        let (outcome, pids) = stop_after_telling(script, 2, SHORT).await;
        stopped(outcome);
        pids.into_iter().for_each(assert_gone);
    }

    /// Also during the grace period of an earlier cancellation.
    #[tokio::test]
    async fn a_kill_has_no_grace_period() {
        for is_stopping in [false, true] {
            let place = Place::new();
            let script = "trap 'echo > told' TERM; echo $$ > told; while :; do sleep 300 & wait; done";
            let (mut told, attempt, shell) = (place.fifo("told"), place.script(script), place.shell(LONG));
            let (cancel_handle, stop) = CancelHandle::pair();
            let work = tokio::spawn(async move { shell.perform(&attempt, stop).await });
            let pid = told.pid().await;
            if is_stopping {
                cancel_handle.cancel();
                assert_eq!(told.line().await, "", "it handles SIGTERM and continues");
            }
            cancel_handle.kill();
            stopped(work.await.unwrap());
            assert_gone(pid);
        }
    }

    #[tokio::test]
    async fn children_that_hold_pipes_and_ignore_sigterm_are_killed() {
        let script = "(trap '' TERM; echo $BASHPID > told; while :; do sleep 300; done) & wait";
        let (outcome, pids) = stop_after_telling(script, 1, SHORT).await;
        stopped(outcome);
        pids.into_iter().for_each(assert_gone);
    }

    #[tokio::test]
    async fn a_forked_daemon_in_the_group_is_ended() {
        let script = "(sleep 300 </dev/null >/dev/null 2>&1 & echo $! > told) & sleep 300";
        let (outcome, pids) = stop_after_telling(script, 1, LONG).await;
        stopped(outcome);
        pids.into_iter().for_each(assert_gone);
    }

    #[tokio::test]
    async fn a_stopped_script_is_ended() {
        let (outcome, pids) = stop_after_telling("echo $$ > told; kill -STOP $$; sleep 300", 1, LONG).await;
        stopped(outcome);
        pids.into_iter().for_each(assert_gone);
    }

    #[tokio::test]
    async fn a_script_that_prints_without_end_is_ended() {
        let (outcome, pids) = stop_after_telling("echo $$ > told; yes", 1, LONG).await;
        stopped(outcome);
        pids.into_iter().for_each(assert_gone);
    }
}

mod leftovers {
    use super::*;

    /// Performs a script that reports a background process, which must have ended before the outcome.
    async fn finishes_and_ends(command: &str, grace: Duration) -> Value {
        let place = Place::new();
        let (mut told, attempt, shell) = (place.fifo("told"), place.script(command), place.shell(grace));
        let work = tokio::spawn(async move { perform(&shell, &attempt).await });
        let (pid, group) = (told.pid().await, told.pid().await);
        let result = done(work.await.unwrap());
        assert_gone(pid);
        assert!(test_kill_process_group(group).is_err());
        result
    }

    #[tokio::test]
    async fn background_children_end_with_the_step() {
        let script = "echo before; sleep 300 & echo $! > told; echo $$ > told; echo after";
        assert_eq!(stdout(&finishes_and_ends(script, LONG).await), "before\nafter\n");
    }

    #[tokio::test]
    async fn background_children_without_pipes_are_ended() {
        finishes_and_ends("sleep 300 </dev/null >/dev/null 2>&1 & echo $! > told; echo $$ > told", LONG).await;
    }

    #[tokio::test]
    async fn background_children_that_ignore_sigterm_are_killed() {
        let script = "(trap '' TERM; echo $BASHPID > told; echo $$ > told; echo > ready; while :; do sleep 300; done) & \
                      read -r line < ready";
        let script = format!("mkfifo ready; {script}");
        finishes_and_ends(&script, SHORT).await;
    }

    #[tokio::test]
    async fn a_background_child_that_prints_without_end_does_not_hold_the_step() {
        let result = finishes_and_ends("yes & echo $! > told; echo $$ > told; exit 0", LONG).await;
        assert!(stdout(&result).len() <= STREAM_BYTES_MAX);
    }

    /// A child that prints a lot before it ends would block on a full pipe without a reader.
    #[tokio::test]
    async fn output_during_the_end_is_read_and_discarded() {
        let place = Place::new();
        place.make_fifo("ready");
        let script = "(trap 'head -c 300000 /dev/zero; touch cleaned; exit' TERM; echo > ready; \
                      while :; do sleep 300 & wait; done) & read -r line < ready; echo said";
        let result = done(perform(&place.shell(LONG), &place.script(script)).await);
        assert_eq!((stdout(&result), result.get("truncated")), ("said\n", Some(&Value::from(false))));
        assert!(place.workspace().join("cleaned").exists());
    }

    #[tokio::test]
    async fn a_stop_after_the_end_changes_nothing() {
        let place = Place::new();
        place.make_fifo("ready");
        let script = "(trap 'echo ending > told' TERM; echo > ready; while :; do sleep 300 & wait; done) & \
                      read -r line < ready; exit 3";
        let (mut told, attempt, shell) = (place.fifo("told"), place.script(script), place.shell(SHORT));
        let (cancel_handle, stop) = CancelHandle::pair();
        let work = tokio::spawn(async move { shell.perform(&attempt, stop).await });
        assert_eq!(told.line().await, "ending");
        cancel_handle.cancel();
        assert_eq!(failed(work.await.unwrap()).code, "bash_exit_code:3");
    }
}

mod records {
    use super::*;

    /// Simulates the death of the process: the attempt is dropped when the script has reported its processes.
    async fn abandon(place: &Place, command: &str) -> (Attempt, Pid, Pid) {
        let (mut told, attempt, shell) = (place.fifo("told"), place.script(command), place.shell(LONG));
        let (_cancel_handle, stop) = CancelHandle::pair();
        let (leader, child) = tokio::select! {
            biased;
            pids = async { (told.pid().await, told.pid().await) } => pids,
            outcome = shell.perform(&attempt, stop) => panic!("{outcome:?}"),
        };
        assert!(!has_ended(child));
        (attempt, leader, child)
    }

    #[tokio::test]
    async fn the_process_record_exists_from_before_the_start_until_deleted() {
        let place = Place::new();
        let (shell, attempt) = (place.shell(LONG), place.script("cat ../records/*; echo $$; echo $MAINSPRING_MARK"));
        let result = done(perform(&shell, &attempt).await);
        let lines: Vec<&str> = stdout(&result).lines().collect();
        assert_eq!(lines[..2], [format!("mark {}", lines[5]), format!("leader {}", lines[4])]);
        assert_eq!(place.notes_count(), 1);
        shell.forget(AttemptName { number: 3, ..AttemptName::from(&attempt) });
        assert_eq!(place.notes_count(), 1, "another attempt was forgotten");
        shell.forget(AttemptName::from(&attempt));
        assert_eq!(place.notes_count(), 0);
        assert_eq!(shell.adopt(&attempt).await, Adopted::NeverStarted);
    }

    #[tokio::test]
    async fn scripts_of_a_dead_process_are_ended() {
        let place = Place::new();
        let script = "sleep 300 & echo $$ > told; echo $! > told; wait";
        let (attempt, leader, child) = abandon(&place, script).await;
        assert!(!has_ended(leader));
        assert_eq!(place.shell(LONG).adopt(&attempt).await, Adopted::Interrupted);
        assert!(has_ended(leader) && has_ended(child));
        assert_eq!(place.notes_count(), 1, "only forgetting removes a record");
        assert_eq!(place.shell(LONG).adopt(&attempt).await, Adopted::Interrupted);
    }

    #[tokio::test]
    async fn children_are_ended_when_bash_is_dead_already() {
        let place = Place::new();
        let script = "sleep 300 </dev/null >/dev/null 2>&1 & echo $$ > told; echo $! > told; kill -KILL $$";
        let (attempt, leader, child) = abandon(&place, script).await;
        while !has_ended(leader) {
            tokio::task::yield_now().await;
        }
        assert!(!has_ended(child));
        assert_eq!(place.shell(LONG).adopt(&attempt).await, Adopted::Interrupted);
        assert!(has_ended(child));
    }

    /// The process at the start barrier exists already when its record cannot be written.
    #[tokio::test]
    async fn a_script_without_a_process_record_is_not_run() {
        let place = Place::new();
        fs::write(place.records(), "in the way").unwrap();
        let failure = failed(perform(&place.shell(LONG), &place.script("touch ran")).await);
        assert_eq!((failure.code.as_str(), failure.class), ("bash_not_started", Class::Unavailable));
        assert!(!place.workspace().join("ran").exists());
    }
}

/// Polls until a condition holds. The bound only turns a hang into a failure.
async fn until(is_so: impl Fn() -> bool) {
    let asking = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("it never comes to be so");
}

/// A daemon outlives its script, becomes a child of this process, and ends while nothing else happens. Ended children
/// of other code in this process are left to that code.
#[tokio::test]
async fn daemons_are_reaped_and_children_of_other_code_are_not() {
    let place = Place::new();
    place.make_fifo("began");
    let ends = place.make_fifo("ends");
    let shell = place.shell(LONG);
    for leave in ["setsid", "env -i setsid"] {
        let daemon = format!("{leave} sh -c 'echo $$ > began; read -r line < ends' > /dev/null 2>&1 &");
        let script = format!("{daemon} read -r pid < began; echo $pid");
        let result = done(perform(&shell, &place.script(&script)).await);
        let daemon = Pid::from_raw(stdout(&result).trim().parse().unwrap()).unwrap();
        until(|| stat(daemon).contains(&format!(" S {} ", std::process::id()))).await;
        let mut theirs = [(); 3].map(|()| std::process::Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap());
        let mut tokios = [(); 3].map(|()| tokio::process::Command::new("sh").args(["-c", "exit 8"]).spawn().unwrap());
        until(|| theirs.iter().all(|child| stat(Pid::from_child(child)).contains(") Z "))).await;
        fs::write(&ends, "go\n").unwrap();
        until(|| stat(daemon).is_empty()).await;
        assert!(theirs.iter_mut().all(|child| child.wait().unwrap().code() == Some(7)));
        for child in &mut tokios {
            assert_eq!(child.wait().await.unwrap().code(), Some(8));
        }
    }
}

/// A node that runs no scripts, and an execution that was started without the permission to run them.
#[tokio::test]
async fn scripts_that_are_not_permitted_are_not_run() {
    let place = Place::new();
    let without = Attempt { workspace: None, ..place.attempt([("command", "echo ran".into()), ("cwd", "/".into())]) };
    let off = || Scripts::Off("the configuration says so".into());
    let cases = [
        (off(), false, place.script("touch ran"), "scripts_off"),
        (off(), true, without.clone(), "scripts_off"),
        (Scripts::Uncontained, true, without.clone(), "scripts_not_permitted"),
    ];
    for (scripts, needs_workspace, attempt, code) in cases {
        let shell = place.shell_with(LONG, scripts, needs_workspace);
        let (_cancel_handle, stop) = CancelHandle::pair();
        match shell.perform(&attempt, stop).await {
            Outcome::Failed(failure) => assert_eq!((failure.class, failure.code.as_str()), (Class::Policy, code)),
            other => panic!("{other:?}"),
        }
    }
    assert!(!place.workspace().join("ran").exists());
    let (_cancel_handle, stop) = CancelHandle::pair();
    let done = place.shell_with(LONG, Scripts::Uncontained, false).perform(&without, stop).await;
    assert!(matches!(done, Outcome::Done(_)), "a command line of its own asks for no workspace: {done:?}");
}
