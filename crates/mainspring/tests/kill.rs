//! Kills the process repeatedly. The execution completes as if it had not been killed.
//!
//! Every step logs its start and its end, and holds a lock as long as any process of its group lives: a concurrent
//! second group of the same step logs `OVERLAP`. Kills follow observed events, at times drawn from a seed.
//! `MAINSPRING_KILLS` sets their number, and `MAINSPRING_SEED` the seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use mainspring_kernel::{history::History, state::Status, value::Value};
use rustix::process::{Pid, Signal, kill_process};

mod support;
use support::{Answer, TestDir, at, call, request, spawn, yaml};

/// The script of each step. Background processes inherit the lock; every third step leaves one. Reading a pipe
/// without a writer waits a few milliseconds.
const WORK: &str = r#"
exec 9>"lock.$MAINSPRING_STEP_ID"
flock -n 9 || echo "OVERLAP $MAINSPRING_STEP_ID $MAINSPRING_ATTEMPT" >> log
echo "start $MAINSPRING_STEP_ID $MAINSPRING_ATTEMPT $$" >> log
for i in {1..500}; do :; done
if [ $((10#${MAINSPRING_STEP_ID#s} % 3)) = 0 ]; then sleep 300 & fi
read -t 0.005 <> pipe
echo "end $MAINSPRING_STEP_ID $MAINSPRING_ATTEMPT $$" >> log
"#;

/// Thirty shell steps: ten in sequence, twelve in three branches, eight in sequence.
fn thirty_steps() -> Value {
    let step = |number: usize, indent: &str| {
        format!("{indent}- {{id: s{number:02}, type: bash, command: bash work.sh, retry: {{maxAttempts: 100}}}}\n")
    };
    let mut text = String::from("constraints: {maxSteps: 200}\nsteps:\n");
    text.extend((1..=10).map(|number| step(number, "  ")));
    text += "  - id: together\n    type: parallel\n    steps:\n";
    for branch in 0..3 {
        text +=
            &format!("      - id: branch{branch}\n        type: conditional\n        condition: true\n        then:\n");
        text.extend((0..4).map(|place| step(11 + branch * 4 + place, "          ")));
    }
    text.extend((23..=30).map(|number| step(number, "  ")));
    yaml(&text)
}

/// A deterministic random generator (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The state at a kill: steps with a receipt, and the length of the log.
struct Certain {
    settled: BTreeSet<String>,
    log_lines: usize,
}

#[test]
fn random_kills_repeat_no_attempt_with_a_receipt() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (kills, seed) = (number("MAINSPRING_KILLS").unwrap_or(50), number("MAINSPRING_SEED").unwrap_or(20_260_101));
    println!("MAINSPRING_SEED={seed} MAINSPRING_KILLS={kills}");
    let (mut dice, mut done, mut rounds) = (Dice(seed), 0, 0);
    while done < kills {
        rounds += 1;
        done += killed_until_it_completes(&mut dice, kills - done);
    }
    println!("{done} kills in {rounds} executions");
}

/// Runs one execution with at most `kills` kills. Returns the number of kills.
fn killed_until_it_completes(dice: &mut Dice, kills: u64) -> u64 {
    let (dir, definition) = (TestDir::new(), thirty_steps());
    prepare(&dir);
    let mut certain = Vec::new();
    let mut seen = BTreeSet::new();
    let mut done = 0;
    while done < kills && kill_during_run(&dir, &definition, dice, &mut seen) {
        done += 1;
        certain.push(Certain { settled: settled(&dir), log_lines: dir.file("log").lines().count() });
    }
    let answer = dir.ran("e", &definition).expect(0, "ok");
    check_log(&dir, &certain);
    let interrupted = check_trace(&dir, &answer);
    let steps: Vec<usize> = certain.iter().map(|at| at.settled.len()).collect();
    println!("{done} kills interrupted {interrupted} attempts; receipts at each: {steps:?}");
    done
}

fn prepare(dir: &TestDir) {
    fs::write(dir.workspace().join("work.sh"), WORK).unwrap();
    make_pipe(dir, "pipe");
}

fn make_pipe(dir: &TestDir, name: &str) {
    assert!(Command::new("mkfifo").arg(dir.workspace().join(name)).status().unwrap().success());
}

/// Runs and kills. Returns false if the execution ended before.
fn kill_during_run(dir: &TestDir, definition: &Value, dice: &mut Dice, seen: &mut BTreeSet<String>) -> bool {
    let mut child = spawn_and_wait(dir, definition, dice, seen);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Runs until some new events were printed, and some polls later.
fn spawn_and_wait(dir: &TestDir, definition: &Value, dice: &mut Dice, seen: &mut BTreeSet<String>) -> Child {
    let mut child = spawn(dir.run("e", definition), &request(definition));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut events_left = [0, 1, 1, 1, 2, 3][dice.below(6) as usize];
    while events_left > 0 {
        match lines.next() {
            Some(line) => events_left -= u32::from(seen.insert(line.unwrap())),
            None => break,
        }
    }
    for _ in 0..dice.below(4_000) {
        std::thread::yield_now();
    }
    child
}

/// The steps with a receipt in the journal.
fn settled(dir: &TestDir) -> BTreeSet<String> {
    let rows = history(dir).map(|history| history.attempts).unwrap_or_default();
    rows.into_iter().filter(|row| row.status == Status::Completed).map(|row| row.step).collect()
}

fn history(dir: &TestDir) -> Option<History> {
    let (loader, key) = dir.loader("e")?;
    let mut history = History::default();
    loader.frames(key, |state, frame| history.add(&state.plan, frame)).unwrap();
    Some(history)
}

fn check_log(dir: &TestDir, certain: &[Certain]) {
    let log = dir.file("log");
    assert!(!log.contains("OVERLAP"), "two groups of one step at once:\n{log}");
    for (kill, at) in certain.iter().enumerate() {
        for line in log.lines().skip(at.log_lines).filter(|line| line.starts_with("start")) {
            let step = line.split(' ').nth(1).unwrap();
            assert!(!at.settled.contains(step), "{step} had a receipt at kill {kill}, and began again: {line}\n{log}");
        }
    }
    let mut starts = BTreeMap::<(&str, &str), usize>::new();
    for words in log.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words[0] == "start") {
        *starts.entry((words[1], words[2])).or_default() += 1;
    }
    assert!(starts.values().all(|count| *count == 1), "an attempt began twice: {starts:?}");
}

/// Checks that the attempts of every step have no gaps, that only the last completed and all others were
/// interrupted, and that the journal verifies. Returns the number of interrupted attempts.
fn check_trace(dir: &TestDir, answer: &Answer) -> usize {
    let mut attempts = BTreeMap::<String, Vec<(u64, String, Value)>>::new();
    for row in answer.at("steps").as_list().unwrap() {
        let step = at(row, "stepId").as_text().unwrap().to_string();
        let status = at(row, "status").as_text().unwrap().to_string();
        attempts.entry(step).or_default().push((at(row, "attempt").as_u64().unwrap(), status, at(row, "error.code")));
    }
    let shells = attempts.iter().filter(|(step, _)| step.starts_with('s'));
    assert_eq!(shells.clone().count(), 30);
    let interrupted = shells.clone().map(|(_, rows)| rows.len() - 1).sum();
    for (step, rows) in shells {
        let (last, before) = rows.split_last().unwrap();
        assert!(rows.iter().map(|row| row.0).eq(1..=rows.len() as u64), "{step}: {rows:?}");
        assert_eq!(last.1, "completed", "{step}: {rows:?}");
        let interrupted = Value::text("interrupted");
        assert!(before.iter().all(|row| row.1 == "failed" && row.2 == interrupted), "{step}: {rows:?}");
    }
    let (loader, key) = dir.loader("e").unwrap();
    let verified = loader.verify(key).unwrap().unwrap();
    assert_eq!(verified.frames, verified.decided_again);
    interrupted
}

/// A step that reports its start and hangs in its first attempt, and a step after it that would leave a mark.
fn hanging(on_interrupted: &str) -> Value {
    yaml(&format!(
        r#"
steps:
  - id: hangs
    type: bash
    onInterrupted: {on_interrupted}
    retry: {{maxAttempts: 5}}
    command: |
      echo "$MAINSPRING_ATTEMPT" >> tries
      if [ "$MAINSPRING_ATTEMPT" = 1 ]; then echo begun > begun; read < never; fi
  - {{id: after, type: bash, command: touch after}}
"#
    ))
}

/// Runs until the step hangs, and kills.
fn killed_while_hanging(dir: &TestDir, definition: &Value) {
    make_pipe(dir, "begun");
    make_pipe(dir, "never");
    let mut child = spawn(dir.run("e", definition), &request(definition));
    assert_eq!(dir.file("begun"), "begun\n");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn on_interrupt_fail_fails() {
    let (dir, definition) = (TestDir::new(), hanging("fail"));
    killed_while_hanging(&dir, &definition);
    let answer = dir.ran("e", &definition).expect(40, "failed");
    assert_eq!((answer.text("error.code"), answer.text("error.stepId")), ("interrupted".into(), "hangs".into()));
    assert_eq!(dir.file("tries"), "1\n");
    assert!(!dir.workspace().join("after").exists());
}

#[test]
fn on_interrupt_retry_retries_immediately() {
    let (dir, definition) = (TestDir::new(), hanging("retry"));
    killed_while_hanging(&dir, &definition);
    dir.ran("e", &definition).expect(0, "ok");
    assert_eq!(dir.file("tries"), "1\n2\n");
}

#[test]
fn on_interrupt_ask_opens_an_approval() {
    for (decision, exit, status, tries) in [("approve", 0, "ok", "1\n2\n"), ("deny", 40, "failed", "1\n")] {
        let (dir, definition) = (TestDir::new(), hanging("ask"));
        killed_while_hanging(&dir, &definition);
        let asked = dir.ran("e", &definition).expect(0, "needs_approval");
        assert_eq!(asked.text("requiresApproval.stepId"), "hangs");
        assert!(asked.text("requiresApproval.prompt").contains("interrupted"), "{asked:?}");
        assert_eq!(dir.file("tries"), "1\n", "nothing is repeated before it is decided");
        let answer = dir.resumed("e", &asked.text("requiresApproval.resumeToken"), decision).expect(exit, status);
        assert_eq!(dir.file("tries"), tries);
        assert_eq!(dir.workspace().join("after").exists(), status == "ok");
        if status == "failed" {
            assert_eq!(answer.text("error.code"), "interrupted");
        }
    }
}

#[test]
fn sigterm_cancels_attempts_and_the_execution() {
    let (dir, definition) = (TestDir::new(), hanging_twice());
    make_pipe(&dir, "begun");
    make_pipe(&dir, "never");
    let child = spawn(dir.run("e", &definition), &request(&definition));
    let begun = fs::File::options().read(true).write(true).open(dir.workspace().join("begun")).unwrap();
    let mut begun = BufReader::new(begun).lines();
    let groups: Vec<i32> = (0..2).map(|_| begun.next().unwrap().unwrap().parse().unwrap()).collect();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    Answer::of(child.wait_with_output().unwrap()).expect(0, "cancelled");
    for group in groups {
        let ended = rustix::process::test_kill_process_group(Pid::from_raw(group).unwrap());
        assert!(ended.is_err(), "the group {group} outlives the cancel");
    }
    dir.ran("e", &definition).expect(0, "cancelled");
    assert_eq!(dir.file("tries").lines().count(), 2, "nothing is tried again");
}

#[test]
fn a_stop_request_ends_process_groups_and_the_execution_can_resume() {
    for signal in [Signal::INT, Signal::HUP] {
        let (dir, definition) = (TestDir::new(), hanging_twice());
        make_pipe(&dir, "begun");
        make_pipe(&dir, "never");
        let child = spawn(dir.run("e", &definition), &request(&definition));
        // Opened for writing too, so that it does not end after the first of two writers.
        let begun = fs::File::options().read(true).write(true).open(dir.workspace().join("begun")).unwrap();
        let mut begun = BufReader::new(begun).lines();
        let groups: Vec<i32> = (0..2).map(|_| begun.next().unwrap().unwrap().parse().unwrap()).collect();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let answer = Answer::of(child.wait_with_output().unwrap()).expect(40, "failed");
        assert_eq!(answer.text("error.code"), "interrupted", "{signal:?}");
        for group in groups {
            let ended = rustix::process::test_kill_process_group(Pid::from_raw(group).unwrap());
            assert!(ended.is_err(), "the group {group} outlives {signal:?}");
        }
        dir.ran("e", &definition).expect(0, "ok");
        let mut tries: Vec<_> = dir.file("tries").lines().map(String::from).collect();
        tries.sort();
        assert_eq!(tries, ["left 1", "left 2", "right 1", "right 2"]);
    }
}

/// Two branches with background processes, which both hang in their first attempt.
fn hanging_twice() -> Value {
    let command = r#"echo "$MAINSPRING_STEP_ID $MAINSPRING_ATTEMPT" >> tries
if [ "$MAINSPRING_ATTEMPT" = 1 ]; then sleep 300 & echo $$ > begun; read < never; fi"#;
    let step = |id: &str| {
        Value::map([
            ("id", id.into()),
            ("type", "bash".into()),
            ("command", command.into()),
            ("retry", Value::map([("maxAttempts", 5u64.into())])),
        ])
    };
    let branches: Value = vec![step("left"), step("right")].into();
    let parallel = Value::map([("id", "both".into()), ("type", "parallel".into()), ("steps", branches)]);
    Value::map([("steps", vec![parallel].into())])
}

#[test]
fn random_stop_requests_leave_no_process() {
    let (mut dice, mut stops, mut executions) = (Dice(4711), 0, 0);
    while stops < STOPS {
        executions += 1;
        assert!(executions < STOPS * 10, "it is never stopped on its way");
        stops += stopped_until_it_completes(&mut dice, STOPS - stops);
    }
}

/// The required number of interrupted runs.
const STOPS: u32 = 15;

/// Runs one execution with at most `stops_max` interrupts. Returns their number.
fn stopped_until_it_completes(dice: &mut Dice, stops_max: u32) -> u32 {
    let (dir, definition) = (TestDir::new(), thirty_steps());
    prepare(&dir);
    let (mut seen, mut stops) = (BTreeSet::new(), 0);
    while stops < stops_max {
        let log_before = dir.file("log");
        let child = spawn_and_wait(&dir, &definition, dice, &mut seen);
        // The process may have ended by now.
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(locks_held(&dir), "", "stop {stops}");
        match answer.exit {
            Some(40) => assert_eq!(answer.text("error.code"), "interrupted", "stop {stops}"),
            // The signal came before its handler, so nothing was started.
            None => assert_eq!(dir.file("log"), log_before, "stop {stops}"),
            Some(0) => break,
            exit => panic!("stop {stops} came to {exit:?}: {answer:?}"),
        }
        stops += u32::from(answer.exit == Some(40));
    }
    let answer = dir.ran("e", &definition).expect(0, "ok");
    check_log(&dir, &[]);
    check_trace(&dir, &answer);
    stops
}

/// The steps with a live process.
fn locks_held(dir: &TestDir) -> String {
    let look = r#"shopt -s nullglob; for lock in lock.*; do flock -n "$lock" true || echo "$lock"; done"#;
    let output = Command::new("bash").args(["-c", look]).current_dir(dir.workspace()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let (dir, definition) = (TestDir::new(), hanging("retry"));
    make_pipe(&dir, "begun");
    make_pipe(&dir, "never");
    let mut child = spawn(dir.run("e", &definition), &request(&definition));
    assert_eq!(dir.file("begun"), "begun\n");
    let mut second = dir.run("e", &definition);
    second.process_group(0);
    let refused = call(second, &request(&definition)).expect(40, "failed");
    assert_eq!(refused.text("error.code"), "folder_in_use");
    assert!(refused.text("error.message").contains(&child.id().to_string()), "{refused:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    dir.ran("e", &definition).expect(0, "ok");
}
