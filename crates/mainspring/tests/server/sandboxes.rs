//! Sandboxes: real sandboxes: `workflow serve` as a plain child, in bubblewrap, and behind a shell as ssh starts it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use mainspring_engine::{journal_loader::Loader, keys};
use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};
use mainspring_store::{prelude::*, sqlite::SqliteStore};
use tempfile::TempDir;

use super::{
    client::Client,
    escapes::{output_of, run},
    process::{Organization, Server},
    start::{save, start},
    support::{MAINSPRING, WORKFLOW, yaml},
};

/// A server whose organization `default` has a sandbox profile.
struct Bench {
    folder: TempDir,
    server: Server,
}

/// A sandbox profile of `default`.
fn profile(command: &str, args: &[&str], more: &[(&'static str, Value)]) -> Value {
    let args: Vec<Value> = args.iter().map(|argument| Value::from(*argument)).collect();
    let fields = [("command", Value::from(command)), ("args", args.into())];
    let fields = fields.into_iter().chain([("organizations", vec![Value::from("default")].into())]);
    Value::map([("sandboxes", Value::map([("test", Value::map(fields.chain(more.iter().cloned())))]))])
}

/// A plain child, without containment.
fn plain() -> Value {
    profile(WORKFLOW, &["serve", "--scripts", "uncontained"], &[])
}

impl Bench {
    fn new(settings: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Self::server(folder.path(), settings);
        Self { folder, server }
    }

    fn server(folder: &Path, settings: &Value) -> Server {
        let config = folder.join("config.yaml");
        fs::write(&config, compact(settings)).unwrap();
        Server::start_with(folder, &["--config", config.to_str().unwrap()])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Starts a workflow and returns the id of its execution.
fn begun(client: &Client, workflow: &str) -> String {
    start(client, workflow, "once", Map::new()).expect(202).text_at("executionId")
}

/// Waits until an execution has ended or waits for people, and returns its status.
fn settled(client: &Client, id: &str) -> String {
    loop {
        let status = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        if !["pending", "running", "cancel_requested"].contains(&status.as_str()) {
            return status;
        }
    }
}

/// Waits until a file has a whole line, and returns its content.
fn line_of(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::yield_now(),
        }
    }
}

/// True while a process exists that has not ended.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The parent of a script, by its command line.
const PARENT: &str = "tr '\\0' ' ' < /proc/$PPID/cmdline";

#[test]
fn scripts_of_an_organization_run_in_its_sandbox() {
    let bench = Bench::new(&plain());
    let owner = bench.server.owner();
    let scripts = [
        ("parent", PARENT),
        ("write", "echo kept > file; pwd"),
        ("read", "cat file"),
        ("fails", "echo no >&2; exit 3"),
    ];
    let (ended, steps) = run(&owner, "inside", &scripts);
    assert_eq!(ended.get("status"), Some(&"completed".into()), "{ended:?}");
    assert!(output_of(&steps, "parent").contains("serve --scripts uncontained"), "{}", output_of(&steps, "parent"));
    assert!(output_of(&steps, "write").contains("/data/workspaces/"), "{}", output_of(&steps, "write"));
    assert!(output_of(&steps, "read").contains("kept"), "{}", output_of(&steps, "read"));
    assert!(output_of(&steps, "fails").contains("bash_exit_code:3"), "{}", output_of(&steps, "fails"));
    // Another organization has no sandbox profile: its scripts run as the settings of the server say.
    let acme = Organization::new(&bench.server, "acme");
    let (_, steps) = run(&acme.owner, "outside", &[("parent", PARENT)]);
    assert!(!output_of(&steps, "parent").contains("serve"), "{}", output_of(&steps, "parent"));
}

#[test]
fn sandboxes_of_other_commands_run_the_same() {
    let wrapped =
        format!("echo noise >&2; exec env -i PATH=\"$PATH\" sh -c 'exec {WORKFLOW} serve --scripts uncontained'");
    let shown = ["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--die-with-parent"];
    let bubblewrap: Vec<&str> = shown.into_iter().chain([WORKFLOW, "serve", "--scripts", "uncontained"]).collect();
    for (settings, folder) in [
        (profile("sh", &["-c", &wrapped], &[("workspace", "own".into())]), "/workspaces/own"),
        (profile("bwrap", &bubblewrap, &[]), "/data/workspaces/"),
        (profile(WORKFLOW, &["serve", "--scripts", "contained"], &[]), "/data/workspaces/"),
    ] {
        let bench = Bench::new(&settings);
        let (ended, steps) =
            run(&bench.server.owner(), "w", &[("where", "pwd; echo kept > file"), ("read", "cat file")]);
        assert_eq!(ended.get("status"), Some(&"completed".into()), "{}", compact(&Value::List(steps)));
        assert!(output_of(&steps, "where").contains(folder), "{}", output_of(&steps, "where"));
        assert!(output_of(&steps, "read").contains("kept"), "{}", output_of(&steps, "read"));
    }
}

#[test]
fn a_sandbox_ends_with_its_execution() {
    let bench = Bench::new(&plain());
    let (_, steps) = run(&bench.server.owner(), "w", &[("parent", "echo \"<$PPID>\"")]);
    let output = output_of(&steps, "parent");
    let pid = output.split('<').nth(1).and_then(|rest| rest.split('>').next()).unwrap().to_owned();
    while is_running(&pid) {
        std::thread::yield_now();
    }
}

/// A step that says that it runs, and then waits for SIGTERM.
fn waits(note: &Path, more: &str) -> Value {
    let script = format!(
        "trap 'echo ended; exit 5' TERM; echo \"$$ $PPID\" >> {}; while :; do sleep 0.05; done",
        note.display()
    );
    let text = format!("[{{id: wait, type: bash, command: {}{more}}}]", compact(&script.as_str().into()));
    yaml(&text)
}

#[test]
fn a_cancel_reaches_the_script_and_ends_as_cancelled() {
    let bench = Bench::new(&plain());
    let (owner, note) = (bench.server.owner(), bench.path("note"));
    save(&owner, "long", waits(&note, ""));
    let id = begun(&owner, "long");
    line_of(&note);
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", "enough".into())])).expect(200);
    assert_eq!(settled(&owner, &id), "cancelled");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
    assert!(steps.contains("cancelled") && steps.contains("ended"), "its last output is kept: {steps}");
}

#[test]
fn the_death_of_a_sandbox_is_an_interruption() {
    let bench = Bench::new(&plain());
    let (owner, note) = (bench.server.owner(), bench.path("note"));
    save(&owner, "long", waits(&note, ", onInterrupted: fail"));
    let id = begun(&owner, "long");
    let pids = line_of(&note);
    let (script, sandbox) = pids.trim().split_once(' ').unwrap();
    kill(sandbox);
    assert_eq!(settled(&owner, &id), "failed");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
    assert!(steps.contains("interrupted"), "{steps}");
    assert!(!is_running(script), "the script has not survived its sandbox");
}

#[test]
fn the_death_of_the_server_ends_the_sandbox() {
    let mut bench = Bench::new(&plain());
    let (owner, note) = (bench.server.owner(), bench.path("note"));
    save(&owner, "long", waits(&note, ", onInterrupted: fail"));
    let id = begun(&owner, "long");
    let pids = line_of(&note);
    let token = bench.server.token.clone().unwrap();
    bench.server.kill();
    let server = Bench::server(bench.folder.path(), &plain());
    assert_eq!(settled(&server.client(&token), &id), "failed");
    for pid in pids.split_whitespace() {
        while is_running(pid) {
            std::thread::yield_now();
        }
    }
}

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
}

/// A chain of steps that count themselves outside of the sandbox. Each is repeated if it was interrupted, so a count of two
/// is right only for a step that had no receipt when its sandbox was killed.
fn counting(counters: &Path, steps: usize) -> Value {
    let step = |number: usize| {
        let script = format!("echo {number} >> {}/ran; sleep 0.02; echo {number} >> {0}/done", counters.display());
        format!(
            "{{id: s{number}, type: bash, command: {}, onInterrupted: retry, retry: {{maxAttempts: 50, initialDelayMs: 1, maxDelayMs: 1}}}}",
            compact(&script.as_str().into())
        )
    };
    yaml(&format!("[{}]", (0..steps).map(step).collect::<Vec<_>>().join(", ")))
}

/// Kills sandboxes at random moments, with everything in them. `MAINSPRING_SANDBOX_KILLS` sets the number of kills.
#[test]
fn nothing_that_has_a_receipt_runs_again_after_kills() {
    let kills: u64 = std::env::var("MAINSPRING_SANDBOX_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("MAINSPRING_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7u64);
    println!("MAINSPRING_SEED={seed}");
    let bench = Bench::new(&plain());
    let (owner, counters) = (bench.server.owner(), bench.path("counters"));
    fs::create_dir(&counters).unwrap();
    // A sequence has at most 50 steps unless it says otherwise.
    let steps = (4 * usize::try_from(kills).unwrap()).min(45);
    save(&owner, "counts", counting(&counters, steps));
    let id = begun(&owner, "counts");
    let (mut random, mut killed) = (seed, 0);
    while killed < kills {
        // A pause of 1 to 80 ms is long enough to meet every moment of a step.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pause = std::time::Duration::from_millis(1 + (random >> 33) % 80);
        assert!(std::sync::mpsc::channel::<()>().1.recv_timeout(pause).is_err());
        let receipts = completed(&owner, &id);
        let children =
            Command::new("pgrep").args(["-P", &bench.server.pid().to_string(), "-f", "serve"]).output().unwrap();
        for pid in String::from_utf8(children.stdout).unwrap().lines() {
            kill_if_there(pid);
            killed += 1;
        }
        fs::write(counters.join(format!("receipts-{killed}")), receipts.join("\n")).unwrap();
        // The counts of steps that had a receipt never change again.
        let ran = counts(&counters.join("ran"));
        for step in &receipts {
            let number = step.trim_start_matches('s').to_owned();
            let known = counters.join(format!("count-{number}"));
            let now = ran.get(&number).copied().unwrap_or_default().to_string();
            match fs::read_to_string(&known) {
                Ok(before) => assert_eq!(before, now, "{step} ran again after its receipt (seed {seed})"),
                Err(_) => fs::write(&known, now).unwrap(),
            }
        }
        let status = owner.get(&format!("/api/executions/{id}")).expect(200).text_at("status");
        if ["completed", "failed"].contains(&status.as_str()) {
            break;
        }
    }
    assert_eq!(settled(&owner, &id), "completed", "after {killed} kills");
    let (ran, finished) = (counts(&counters.join("ran")), counts(&counters.join("done")));
    for number in (0..steps).map(|number| number.to_string()) {
        let before = fs::read_to_string(counters.join(format!("count-{number}"))).ok();
        let now = ran[&number].to_string();
        assert!(before.is_none_or(|before| before == now), "s{number} ran again after its receipt (seed {seed})");
        assert!(finished[&number] >= 1, "s{number} was completed without an effect");
    }
    let attempts: u64 = ran.values().sum();
    println!("{killed} kills, {steps} steps, {attempts} attempts that ran");
    assert!(killed >= kills.min(5), "{killed}");
}

fn kill_if_there(pid: &str) {
    // It may have ended since it was listed.
    let _ = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
}

/// The steps of an execution that have a receipt.
fn completed(client: &Client, id: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = format!("/api/executions/{id}/steps?limit=200");
    loop {
        let page = client.get(&path).expect(200).json();
        for step in page.get("steps").and_then(Value::as_list).unwrap() {
            if step.get("status") == Some(&"completed".into()) {
                found.push(step.get("stepId").and_then(Value::as_text).unwrap().to_owned());
            }
        }
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(cursor) => path = format!("/api/executions/{id}/steps?limit=200&cursor={cursor}"),
            None => return found,
        }
    }
}

fn counts(path: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// Examples that end by themselves or wait at a gate, and that give the same result each time. Some fail without their
/// variables, with both sandboxes.
const EXAMPLES: [&str; 20] = [
    "approval",
    "bounds",
    "code",
    "conditional",
    "dataflow",
    "env",
    "interrupted",
    "loop",
    "needs",
    "parallel",
    "priority",
    "recursion",
    "release",
    "retry",
    "retry_codes",
    "return",
    "signal_timeout",
    "sleep",
    "welcome",
    "while",
];

/// The journal of an execution as text, without times, identities and measurements.
fn journal(folder: &Path, id: &str) -> Vec<String> {
    let store = SqliteStore::open_read_only(&folder.join("data/journal.db")).unwrap();
    let row = store.execution_by_id(id).unwrap().unwrap();
    let key = keys::load(&folder.join(".config/mainspring/key")).unwrap();
    let mut records = Vec::new();
    let loader = Loader::new(Arc::new(store), key);
    let read =
        loader.frames(row.key, |_, frame| records.extend(frame.records.iter().map(|record| format!("{record:?}"))));
    read.unwrap().unwrap();
    records.into_iter().map(|record| without_times(&record, folder, id)).collect()
}

/// Replaces what differs between two runs in the server: folders, ids, hashes, times and durations.
fn without_times(record: &str, folder: &Path, id: &str) -> String {
    let text = record.replace(&folder.display().to_string(), "FOLDER").replace(id, "ID");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|character: char| character.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(at);
        let end = word.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        plain.push_str(before);
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_hash = is_hex && (word.len() >= 8 || word.len() >= 4 && word.bytes().any(|byte| byte.is_ascii_digit()));
        let is_time = word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() >= 2;
        let is_folder = before.ends_with("workspaces/");
        plain.push_str(if is_hash || is_time || is_folder { "N" } else { word });
        rest = after;
    }
    plain.push_str(rest);
    let marks: Vec<&str> = plain.split("durationMs").collect();
    let cut = |part: &&str| part.trim_start_matches(|c: char| c != ',' && c != '}').to_owned();
    let tail: Vec<String> = marks.iter().skip(1).map(cut).collect();
    format!("{}{}", marks[0], tail.join(""))
}

#[test]
fn the_examples_have_the_same_journals_with_and_without_sandboxes() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let in_server = Server::start_with(folders[0].path(), &["--scripts", "uncontained"]);
    let as_process = Bench::server(folders[1].path(), &plain());
    for name in EXAMPLES {
        let data = yaml(&fs::read_to_string(examples.join(format!("{name}.yaml"))).unwrap());
        let journals = [(&in_server, &folders[0]), (&as_process, &folders[1])].map(|(server, folder)| {
            let owner = server.owner();
            let body = Value::map([("id", Value::from(name)), ("data", data.clone())]);
            owner.post("/api/workflows/sync", &body).expect(200);
            let id = begun(&owner, name);
            settled(&owner, &id);
            journal(folder.path(), &id)
        });
        let [first, second] = &journals;
        assert!(first.len() > 1, "{name} has run: {first:?}");
        let mut sorted = journals.clone().map(|mut records| {
            // Branches that run at the same time end in any order.
            records.sort();
            records
        });
        let [left, right] = &mut sorted;
        assert_eq!(left, right, "{name}:\n{}\n---\n{}", first.join("\n"), second.join("\n"));
    }
}

#[test]
fn an_organization_with_a_sandbox_has_no_processes_at_the_node() {
    let Value::Map(mut settings) = plain() else { unreachable!() };
    let shell = Value::map([("command", Value::from("bash")), ("args", vec![Value::from("-c"), "cat".into()].into())]);
    settings.insert("agents".into(), Value::map([("coder", Value::map([("command", Value::from("cat"))]))]));
    settings.insert("mcpServers".into(), Value::map([("shell", shell)]));
    settings.insert("policy".into(), Value::map([("classes", Value::map([("shell.run", "read".into())]))]));
    let bench = Bench::new(&Value::Map(settings));
    let owner = bench.server.owner();
    for (name, step) in [
        ("calls", "{id: call, type: tool, tool: shell.run, arguments: {}}"),
        ("works", "{id: work, type: agent, runner: coder, goal: Go}"),
    ] {
        save(&owner, name, yaml(&format!("[{step}]")));
        let id = begun(&owner, name);
        assert_eq!(settled(&owner, &id), "failed");
        let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
        assert!(steps.contains("the sandbox profile `test` of the organization runs scripts only"), "{steps}");
    }
}

#[test]
fn mistakes_stop_the_start_and_doctor_tries_each_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let call = |arguments: &[&str]| {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).args(["--config", config.to_str().unwrap(), "--dir"]).arg(folder.path().join("data"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.path());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    fs::write(&config, "sandboxes: {test: {command: docker, image: tools}}").unwrap();
    let (exit, text) = call(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(exit, Some(10), "{text}");
    assert!(text.contains("sandboxes.test: `image` is unknown"), "{text}");
    assert!(call(&["doctor"]).1.contains("`image` is unknown"));
    fs::write(&config, compact(&plain())).unwrap();
    let (_, text) = call(&["doctor", "--json"]);
    let line = text.lines().find(|line| line.contains("\"sandboxes\"")).unwrap();
    assert!(line.contains("\"ok\"") && line.contains("scripts uncontained"), "{line}");
    fs::write(&config, compact(&profile("sh", &["-c", "echo 'no such host' >&2; exit 255"], &[]))).unwrap();
    let (exit, text) = call(&["doctor"]);
    assert!(text.contains("no such host"), "{text}");
    assert_eq!(exit, Some(1), "{text}");
}

#[test]
fn a_session_reports_text_and_no_end() {
    let bench = Bench::new(&plain());
    let (owner, note) = (bench.server.owner(), bench.path("note"));
    save(&owner, "long", waits(&note, ""));
    let id = begun(&owner, "long");
    line_of(&note);
    let body = Value::map([("name", Value::from("session")), ("sessionOf", id.as_str().into())]);
    let session = bench.server.client(&owner.post("/api/tokens", &body).expect(201).text_at("token"));
    let status = format!("/api/executions/{id}/status");
    let report =
        |status: &str, message: &str| Value::map([("status", Value::from(status)), ("message", message.into())]);
    assert_eq!(session.post(&status, &report("running", "half way")).expect(200).text_at("status"), "running");
    let seen = owner.get(&format!("/api/executions/{id}?include=progress")).expect(200).json();
    let progress = seen.get("progress").unwrap();
    assert_eq!(progress.get("message"), Some(&"half way".into()), "{progress:?}");
    let attempts = progress.get("attempts").and_then(Value::as_list).unwrap();
    assert_eq!(attempts.first().and_then(|attempt| attempt.get("stepId")), Some(&"wait".into()), "{progress:?}");
    for wrong in ["", "two\nlines", &"x".repeat(1025)] {
        session.post(&status, &report("running", wrong)).expect(400);
    }
    session.post(&status, &report("completed", "done")).expect(409);
    owner.post(&status, &report("running", "mine")).expect(403);
    let complete = format!("/api/executions/{id}/complete");
    let ended = |status: &str| Value::map([("status", Value::from(status))]);
    assert!(
        session.post(&complete, &ended("completed")).expect(409).text.contains("carries this execution out itself")
    );
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", "enough".into())])).expect(200);
    assert_eq!(settled(&owner, &id), "cancelled");
    session.post(&complete, &ended("completed")).expect(409);
    assert_eq!(session.post(&complete, &ended("cancelled")).expect(200).text_at("status"), "cancelled");
    session.post(&status, &report("running", "still")).expect(409);
    let seen = owner.get(&format!("/api/executions/{id}?include=progress")).expect(200).json();
    assert_eq!(seen.get("progress").and_then(|progress| progress.get("message")), Some(&Value::Null));
}
