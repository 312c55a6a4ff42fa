//! Metrics over HTTP while a workflow runs, compared with its journal.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use super::{prometheus::Scraped, support::TestDir, *};

/// Every metric of `run`, with its type.
const METRICS: [(&str, &str); 39] = [
    ("mainspring_attempt_seconds", "histogram"),
    ("mainspring_attempts_recovered_total", "counter"),
    ("mainspring_attempts_started_total", "counter"),
    ("mainspring_attempts_finished_total", "counter"),
    ("mainspring_attempts_handed_off_total", "counter"),
    ("mainspring_attempts_running", "gauge"),
    ("mainspring_build_info", "gauge"),
    ("mainspring_command_queue_length", "gauge"),
    ("mainspring_command_queue_age_seconds", "histogram"),
    ("mainspring_commit_bytes", "histogram"),
    ("mainspring_commit_executions", "histogram"),
    ("mainspring_commit_frames", "histogram"),
    ("mainspring_commit_parts_total", "counter"),
    ("mainspring_commit_seconds", "histogram"),
    ("mainspring_commits_total", "counter"),
    ("mainspring_evaluation_seconds", "histogram"),
    ("mainspring_executions_started_total", "counter"),
    ("mainspring_admission_executions", "gauge"),
    ("mainspring_agent_usage_total", "counter"),
    ("mainspring_executions_finished_total", "counter"),
    ("mainspring_executions_in_memory", "gauge"),
    ("mainspring_executions_quarantined_total", "counter"),
    ("mainspring_inbox_messages", "gauge"),
    ("mainspring_inbox_messages_consumed_total", "counter"),
    ("mainspring_inbox_messages_forged_total", "counter"),
    ("mainspring_inbox_oldest_age_seconds", "gauge"),
    ("mainspring_inputs_ignored_total", "counter"),
    ("mainspring_journal_load_frames", "histogram"),
    ("mainspring_journal_load_seconds", "histogram"),
    ("mainspring_journal_loads_total", "counter"),
    ("mainspring_late_receipts_total", "counter"),
    ("mainspring_heartbeats_total", "counter"),
    ("mainspring_partition_changes_total", "counter"),
    ("mainspring_partitions_held", "gauge"),
    ("mainspring_receipts_forwarded_total", "counter"),
    ("mainspring_store_sync_seconds", "histogram"),
    ("mainspring_timer_lateness_seconds", "histogram"),
    ("mainspring_trace_spans_total", "counter"),
    ("mainspring_turns_total", "counter"),
];

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request}\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[track_caller]
fn scrape(address: &str) -> Scraped {
    let answer = ask(address, "GET /metrics HTTP/1.1");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    Scraped::read(body)
}

const HELD: &str = r#"
name: held
steps:
  - {id: first, type: bash, command: "true"}
  - {id: again, type: bash, command: "[ -e mark ] || { touch mark; exit 3; }", retry: {maxAttempts: 2, initialDelayMs: 1, retryOn: [failed]}}
  - {id: code, type: code, input: {a: 1}, code: "export default (input) => input.a"}
  - {id: rest, type: sleep, durationMs: 5}
  - {id: hold, type: bash, command: "read line < hold"}
"#;

fn held(dir: &TestDir) -> std::path::PathBuf {
    definition(dir, "held", HELD);
    pipe(dir, "hold")
}

#[test]
fn metrics_agree_with_the_journal() {
    let dir = TestDir::new();
    let hold = held(&dir);
    // No collector listens there; dropped spans are counted.
    let arguments = ["run", "held.yaml", "--metrics", "127.0.0.1:0", "--json", "--otlp", "http://127.0.0.1:1"];
    let mut running = Running::start(dir.mainspring(&arguments));
    let address = running.metrics();
    let is_held = || {
        let scraped = scrape(&address);
        // Early scrapes precede the engine's start, or some of its values.
        let is_last = scraped.sample(r#"mainspring_turns_total{input="timer"}"#)? >= 2.0;
        let is_out = scraped.sample(r#"mainspring_attempts_running{effect="bash"}"#)? == 1.0;
        // The values are read one by one while they change.
        let is_begun = scraped.sample(r#"mainspring_attempts_started_total{effect="bash"}"#)? == 4.0;
        // A commit is synced before it is counted.
        let synced = scraped.sample(r#"mainspring_store_sync_seconds_count{store="sqlite"}"#)?;
        let is_counted = scraped.sample(r#"mainspring_commits_total{answer="durable"}"#)? == synced;
        (is_last && is_out && is_begun && is_counted).then_some(scraped)
    };
    let scraped = wait_for("the last step runs", is_held);
    let known: BTreeMap<&str, &str> = METRICS.iter().copied().collect();
    for (metric, kind) in &known {
        assert_eq!(scraped.kind(metric), Some(*kind), "{metric}");
    }
    assert_eq!(scraped.metrics().collect::<Vec<_>>(), known.keys().copied().collect::<Vec<_>>());

    let [(_, frames)] = &journals(&dir)[..] else { panic!("one execution") };
    let mut turns: BTreeMap<&str, f64> = BTreeMap::new();
    frames.iter().for_each(|frame| *turns.entry(input_word(&frame.input)).or_default() += 1.0);
    for (input, count) in &turns {
        assert_eq!(scraped.one(&format!("mainspring_turns_total{{input=\"{input}\"}}")), *count, "{input}");
    }
    assert_eq!(scraped.sum("mainspring_turns_total"), frames.len() as f64);
    assert_eq!(scraped.one("mainspring_commit_frames_sum"), frames.len() as f64);
    let commits = scraped.one(r#"mainspring_commits_total{answer="durable"}"#);
    assert!(commits >= 1.0 && commits == scraped.sum("mainspring_commits_total"));
    assert_eq!(scraped.one("mainspring_commit_seconds_count"), commits);
    assert_eq!(scraped.one(r#"mainspring_store_sync_seconds_count{store="sqlite"}"#), commits);
    assert!(scraped.one("mainspring_commit_bytes_sum") > 1_000.0);
    assert_eq!(scraped.one("mainspring_executions_started_total"), 1.0);
    assert_eq!(scraped.sum("mainspring_executions_finished_total"), 0.0);
    assert_eq!(scraped.one(r#"mainspring_attempts_started_total{effect="bash"}"#), 4.0);
    assert_eq!(scraped.one(r#"mainspring_attempts_finished_total{effect="bash",outcome="done"}"#), 2.0);
    assert_eq!(scraped.one(r#"mainspring_attempts_finished_total{effect="bash",outcome="failed"}"#), 1.0);
    assert_eq!(scraped.one(r#"mainspring_attempt_seconds_count{effect="bash"}"#), 3.0);
    assert_eq!(scraped.one("mainspring_timer_lateness_seconds_count"), 2.0);
    assert_eq!(scraped.one("mainspring_evaluation_seconds_count"), 1.0);
    assert_eq!(scraped.one("mainspring_partitions_held"), 1.0);
    assert!(scraped.one("mainspring_command_queue_age_seconds_count") >= 1.0);
    let in_memory = || scrape(&address).one(r#"mainspring_executions_in_memory{state="active"}"#);
    wait_for("what is in memory is counted", || (in_memory() == 1.0).then_some(()));
    release(&hold);
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn idle_connections_block_no_scrape_and_other_paths_are_refused() {
    let dir = TestDir::new();
    let hold = held(&dir);
    let mut running = Running::start(dir.mainspring(&["run", "held.yaml", "--metrics", "127.0.0.1:0"]));
    let address = running.metrics();
    assert!(ask(&address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
    let answer = ask(&address, "POST /metrics HTTP/1.1");
    assert!(answer.starts_with("HTTP/1.1 405") && answer.to_ascii_lowercase().contains("allow: get"), "{answer}");
    // More silent connections than are served concurrently.
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    scrape(&address);
    drop(silent);
    release(&hold);
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_used_port_is_reported_before_the_start() {
    let dir = TestDir::new();
    held(&dir);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [&["run", "held.yaml"][..], &["node"], &["resume", "--all"]] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--metrics", &address]).collect();
        let (code, _, stderr) = Running::start(dir.mainspring(&arguments)).end();
        assert_eq!(code, Some(10), "{stderr}");
        assert!(stderr.contains(&address) && stderr.contains("free port"), "{stderr}");
        assert!(!folder(&dir).exists(), "nothing was begun");
    }
}
