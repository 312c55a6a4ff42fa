//! Traces that a collector receives of executions that retry, fail, start children, and outlive their process.

use mainspring_store::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
};

use mainspring_kernel::{hash::hex, trace_context::TraceId};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    collector::{Collector, Seen},
    support::TestDir,
    *,
};

/// Checks that there is one trace without duplicate spans, with one root and one span per execution. Returns the
/// spans by their text.
#[track_caller]
fn one_trace(spans: &[Seen], root: ExecutionKey, executions: usize) -> BTreeMap<String, Seen> {
    let trace = hex(&TraceId::of_tree(root).0);
    assert_eq!(spans.iter().map(|span| &span.trace).collect::<BTreeSet<_>>(), BTreeSet::from([&trace]));
    assert_eq!(
        spans.iter().map(|span| &span.id).collect::<BTreeSet<_>>().len(),
        spans.len(),
        "a span twice: {spans:#?}"
    );
    let of_executions = spans.iter().filter(|span| span.attribute("mainspring.step").is_empty());
    assert_eq!(of_executions.count(), executions, "{spans:#?}");
    for span in spans {
        assert!(span.began <= span.ended && span.began > 1_700_000_000_000_000_000, "{span:?}");
        let has_parent = spans.iter().any(|parent| parent.id == span.parent);
        assert!(has_parent || span.parent.is_empty(), "it hangs on nothing: {span:?}");
    }
    assert_eq!(spans.iter().filter(|span| span.parent.is_empty()).count(), 1, "one root");
    let key = |span: &Seen| format!("{}: {}", span.attribute("mainspring.workflow"), span.words());
    spans.iter().map(|span| (key(span), span.clone())).collect()
}

#[track_caller]
fn run(dir: &TestDir, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = dir.mainspring(arguments);
    command.envs(environment.iter().copied());
    Running::start(command).end()
}

#[track_caller]
fn only_key(dir: &TestDir) -> ExecutionKey {
    let [(key, _)] = &journals(dir)[..] else { panic!("one execution") };
    *key
}

const TRIED: &str = r#"
name: tried
steps:
  - {id: a, type: bash, command: "echo a $TRACEPARENT$OTEL_EXPORTER_OTLP_HEADERS >> seen; echo confidential-output"}
  - {id: b, type: bash, env: {WORD: confidential-word}, command: "echo b$MAINSPRING_ATTEMPT $TRACEPARENT >> seen; [ -e mark ] || { touch mark; exit 3; }", retry: {maxAttempts: 2, initialDelayMs: 1, retryOn: [failed]}}
  - {id: own, type: bash, env: {TRACEPARENT: mine}, command: "echo own $TRACEPARENT >> seen"}
  - {id: c, type: bash, command: "exit 7"}
"#;

#[test]
fn every_attempt_is_one_span_and_its_script_gets_the_id() {
    let (dir, collector) = (TestDir::new(), Collector::start());
    definition(&dir, "tried", TRIED);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20confidential"),
        ("OTEL_SERVICE_NAME", "tests"),
    ];
    let (code, ..) = run(&dir, &["run", "tried.yaml", "--id", "night"], &environment);
    assert_eq!(code, Some(40));
    let spans = collector.spans();
    let found = one_trace(&spans, only_key(&dir), 1);
    let words: Vec<&str> = found.keys().map(String::as_str).collect();
    let expected = ["a 1 done", "b 1 failed", "b 2 done", "c 1 failed", "failed", "own 1 done"];
    assert_eq!(words, expected.map(|words| format!("tried: {words}")));
    let root = &found["tried: failed"];
    for (words, span) in &found {
        let fails = words.contains("failed");
        assert_eq!(span.is_error, fails, "{words}");
        assert_eq!(span.attributes.contains_key("error.type"), fails, "{words}");
        assert_eq!(span.attribute("mainspring.execution.id"), "night");
        assert_eq!(span.parent, if words == "tried: failed" { "" } else { &root.id });
        assert!(span.began >= root.began && span.ended <= root.ended, "{words}");
    }
    let failed = &found["tried: c 1 failed"];
    assert_eq!(
        (failed.attribute("error.type"), failed.attribute("mainspring.error.class")),
        ("bash_exit_code:7", "failed")
    );
    assert_eq!((&*failed.name, failed.attribute("mainspring.effect"), failed.kind), ("c", "bash", 1));

    let told = |span: &Seen| format!("00-{}-{}-01", span.trace, span.id);
    let seen = fs::read_to_string(dir.root().join("seen")).unwrap();
    let (a, b1, b2) = (&found["tried: a 1 done"], &found["tried: b 1 failed"], &found["tried: b 2 done"]);
    let expected = format!("a {}\nb1 {}\nb2 {}\nown mine\n", told(a), told(b1), told(b2));
    assert_eq!(seen, expected);
    for asked in collector.requests() {
        assert_eq!(asked.headers["authorization"], "Bearer confidential");
        assert!(!String::from_utf8_lossy(&asked.body).contains("confidential"), "a payload was sent");
        assert!(String::from_utf8_lossy(&asked.body).contains("tests"), "the service has its name");
    }
}

#[test]
fn traceparent_is_not_set_without_tracing() {
    let dir = TestDir::new();
    definition(&dir, "quiet", "steps: [{id: a, type: bash, command: 'echo \"[$TRACEPARENT]\" > seen'}]");
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_SDK_DISABLED", "true")];
    assert_eq!(run(&dir, &["run", "quiet.yaml"], &environment).0, Some(0));
    assert_eq!(fs::read_to_string(dir.root().join("seen")).unwrap(), "[]\n");
}

#[test]
fn an_execution_tree_is_one_trace() {
    let (dir, collector) = (TestDir::new(), Collector::start());
    definition(&dir, "child", "name: child\nsteps: [{id: work, type: bash, command: 'true'}]");
    definition(&dir, "middle", "name: middle\nsteps: [{id: inner, type: subworkflow, workflow: child}]");
    let top = "
name: top
steps:
  - {id: near, type: subworkflow, workflow: middle}
  - {id: aside, type: subworkflow, workflow: child, wait: false}
";
    definition(&dir, "top", top);
    let (code, _, stderr) = run(&dir, &["run", "top.yaml", "--id", "top", "--otlp", &collector.url()], &[]);
    assert_eq!(code, Some(0), "{stderr}");
    let all = journals(&dir);
    assert_eq!(all.len(), 4);
    let root = loader(&dir).unwrap().0.execution_by_id("top").unwrap().unwrap().key;
    let spans = collector.spans();
    one_trace(&spans, root, 4);
    assert_eq!(spans.len(), 4 + 3 + 2, "{spans:#?}");
    let by_id: BTreeMap<&str, &Seen> = spans.iter().map(|span| (&*span.id, span)).collect();
    let mut hangs: Vec<(String, String)> = Vec::new();
    for span in spans.iter().filter(|span| span.attribute("mainspring.step").is_empty()) {
        let parent = by_id.get(&*span.parent).map(|parent| parent.words()).unwrap_or_default();
        hangs.push((span.attribute("mainspring.workflow").into(), parent));
    }
    hangs.sort();
    let expected = [("child", "aside 1 done"), ("child", "inner 1 done"), ("middle", "near 1 done"), ("top", "")];
    assert_eq!(hangs, expected.map(|(workflow, parent)| (workflow.to_owned(), parent.to_owned())));
}

#[test]
fn a_trace_continues_in_another_process() {
    let (dir, collector) = (TestDir::new(), Collector::start());
    let text = "
name: killed
steps:
  - {id: a, type: bash, command: 'true'}
  - {id: b, type: bash, command: '[ $MAINSPRING_ATTEMPT = 1 ] && { touch b1; sleep 300; } || true', onInterrupted: retry, retry: {maxAttempts: 3, initialDelayMs: 0}}
  - {id: c, type: bash, command: 'true'}
";
    definition(&dir, "killed", text);
    let mut first = Running::start(dir.mainspring(&["run", "killed.yaml", "--otlp", &collector.url()]));
    wait_for("the second step runs", || dir.root().join("b1").exists().then_some(()));
    wait_for("the first span is sent", || (!collector.spans().is_empty()).then_some(()));
    kill_process(Pid::from_child(&first.child), Signal::KILL).unwrap();
    first.child.wait().unwrap();
    let (code, _, stderr) = run(&dir, &["resume", "last", "--otlp", &collector.url()], &[]);
    assert_eq!(code, Some(0), "{stderr}");
    let found = one_trace(&collector.spans(), only_key(&dir), 1);
    let words: Vec<&str> = found.keys().map(String::as_str).collect();
    let expected = ["a 1 done", "b 1 interrupted", "b 2 done", "c 1 done", "completed"];
    assert_eq!(words, expected.map(|words| format!("killed: {words}")));
    let interrupted = &found["killed: b 1 interrupted"];
    assert!(interrupted.is_error);
    assert_eq!(interrupted.attribute("error.type"), "interrupted");
    // Times come from the journal: the execution started before the kill.
    let root = &found["killed: completed"];
    assert!(found.values().all(|span| root.began <= span.began && span.ended <= root.ended));
}

#[test]
fn http_requests_send_traceparent() {
    let (dir, collector, server) = (TestDir::new(), Collector::start(), Collector::start());
    let text = format!(
        "
name: calls
steps:
  - {{id: plain, type: http, url: {0}/plain}}
  - {{id: own, type: http, url: {0}/own, headers: {{traceparent: mine}}}}
",
        server.url()
    );
    definition(&dir, "calls", &text);
    let environment = [("MAINSPRING_HTTP_ALLOW", "127.0.0.0/8")];
    let (code, _, stderr) = run(&dir, &["run", "calls.yaml", "--otlp", &collector.url()], &environment);
    assert_eq!(code, Some(0), "{stderr}");
    let found = one_trace(&collector.spans(), only_key(&dir), 1);
    let plain = &found["calls: plain 1 done"];
    assert_eq!(plain.kind, 3, "a client's");
    let asked = server.requests();
    assert_eq!(asked[0].headers["traceparent"], format!("00-{}-{}-01", plain.trace, plain.id));
    assert_eq!(asked[1].headers["traceparent"], "mine");
    let (_, loader) = loader(&dir).unwrap();
    loader.frames(only_key(&dir), |_, frame| assert!(!format!("{frame:?}").contains(&plain.id))).unwrap();
}

#[test]
fn a_missing_or_silent_collector_changes_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in ["http://127.0.0.1:1".into(), format!("http://{}", silent.local_addr().unwrap())] {
        let dir = TestDir::new();
        let steps: String = (0..20).map(|step| format!("  - {{id: s{step}, type: bash, command: 'true'}}\n")).collect();
        definition(&dir, "many", &format!("steps:\n{steps}"));
        let arguments = ["run", "many.yaml", "--otlp", &address, "--log", "warn", "--log-format", "json"];
        let (code, stdout, stderr) = run(&dir, &arguments, &[]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("completed"), "{stdout}");
        let lines = stderr.lines().filter(|line| line.contains("traces cannot be sent")).count();
        assert!(lines <= 1, "it is reported once: {stderr}");
        assert!(stderr.contains("traces: "), "{stderr}");
    }
}

#[test]
fn an_invalid_otlp_address_is_refused() {
    let dir = TestDir::new();
    definition(&dir, "one", "steps: [{id: a, type: bash, command: 'true'}]");
    let (code, _, stderr) = run(&dir, &["run", "one.yaml", "--otlp", "localhost:4318"], &[]);
    assert_eq!(code, Some(10), "{stderr}");
    assert!(stderr.contains("--otlp") && stderr.contains("http://localhost:4318"), "{stderr}");
}

#[test]
fn a_collector_is_checked_against_trusted_authorities() {
    let collector = Collector::start();
    let (url, certificate) = secured::before(&collector.address);
    let dir = TestDir::new();
    definition(&dir, "one", "steps: [{id: a, type: bash, command: 'true'}]");
    let file = dir.workspace().join("authority.pem");
    fs::write(&file, certificate).unwrap();
    let file = file.to_str().unwrap();
    let told = |environment: &[(&str, &str)]| {
        let arguments = ["run", "one.yaml", "--otlp", &url, "--log", "warn", "--log-format", "json"];
        let (code, _, stderr) = run(&dir, &arguments, environment);
        (code, stderr, collector.spans().len())
    };
    let (code, stderr, spans) = told(&[]);
    assert!(code == Some(0) && spans == 0 && stderr.contains("invalid peer certificate"), "{stderr}");
    let mut before = 0;
    for name in ["SSL_CERT_FILE", "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"] {
        // A file with lower precedence is not read.
        let other = if name.contains("TRACES") { "SSL_CERT_FILE" } else { "OTHER" };
        let (code, stderr, spans) = told(&[(name, file), (other, "/no/such/file")]);
        assert!(code == Some(0) && spans > before, "{name}: {stderr}");
        before = spans;
    }
    let (code, stderr, _) = told(&[("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file")]);
    assert!(code == Some(10) && stderr.contains("OTEL_EXPORTER_OTLP_CERTIFICATE: /no/such/file"), "{code:?} {stderr}");
}
