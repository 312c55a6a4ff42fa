//! The output of `mainspring bench` has the documented fields. Figures are not checked.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{json, value::Value};
use mainspring_store::postgres::server::{Options, Server};
use support::{Answer, TestDir, call};

/// The fields of each kind of line, from the table in the documentation: one row per field, one column per kind.
fn fields() -> BTreeMap<String, BTreeSet<String>> {
    let page = include_str!("../../../docs/reference/benchmarks.md");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    let mut rows =
        page.lines().skip_while(|line| !line.starts_with("| field |")).take_while(|line| line.starts_with('|'));
    let kinds: Vec<String> = cells(rows.next().expect("the page has a table of fields"));
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows.skip(1) {
        let row: Vec<String> = cells(row);
        for (kind, _) in kinds.iter().zip(&row).filter(|(_, cell)| *cell == "x") {
            fields.entry(kind.clone()).or_default().insert(row[0].clone());
        }
    }
    fields
}

/// The kind of a line, as the table names it.
fn kind(line: &Value) -> String {
    let text = |name| line.get(name).and_then(Value::as_text);
    match (text("floor"), text("workload")) {
        (Some(floor), _) => floor.into(),
        _ if line.get("load_percent").is_some() => "--load".into(),
        _ if line.get("via").is_some() => "--via http".into(),
        (_, Some(workload @ ("timers" | "recover"))) => workload.into(),
        _ => "mainspring".into(),
    }
}

fn run(arguments: &[&str]) -> (TestDir, Answer) {
    let dir = TestDir::new();
    let folder = dir.root().join("bench");
    let arguments: Vec<&str> = ["bench", "--dir", folder.to_str().unwrap()].iter().chain(arguments).copied().collect();
    let answer = call(dir.mainspring(&arguments), b"");
    (dir, answer)
}

#[test]
fn every_line_has_the_fields_of_its_kind() {
    let workloads = ["steps-1", "steps-3", "steps-10", "code-10", "chain-1000", "fan-100", "timers", "recover"];
    let mut arguments = vec!["--at-a-time", "2", "--executions", "2", "--load", "50", "--seconds", "60"];
    arguments.extend(workloads.iter().flat_map(|workload| ["--workload", workload]));
    let (dir, answer) = run(&arguments);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let fields = fields();
    let mut seen = BTreeMap::<_, Vec<String>>::new();
    for line in answer.stdout.lines() {
        let line = json::read(line.as_bytes()).unwrap().value;
        let kind = kind(&line);
        let names: BTreeSet<String> = line.as_map().unwrap().keys().cloned().collect();
        assert_eq!(Some(&names), fields.get(&kind), "{kind}: {line:?}");
        let of = line.get("workload").and_then(Value::as_text).unwrap_or_default();
        let executions = line.get("executions").or(line.get("timers")).and_then(Value::as_u64);
        // A recording is limited in time, and an open loop by its rate, so their counts vary.
        let expected = ["mainspring", "timers"].contains(&kind.as_str());
        assert!(!expected || executions == Some(2), "{line:?}");
        seen.entry(kind).or_default().push(of.into());
    }
    let throughput = workloads[..6].to_vec();
    for kind in ["mainspring", "statements", "--load"] {
        assert_eq!(seen[kind], throughput, "{kind}");
    }
    assert_eq!(
        (seen["timers"].as_slice(), seen["recover"].as_slice()),
        (&["timers".into()][..], &["recover".into()][..])
    );
    // One kind is tested separately.
    assert_eq!(seen.len() + 1, fields.len());
    let left = std::fs::read_dir(dir.root().join("bench")).unwrap().count();
    assert_eq!(left, 0, "the folder of the measurement is removed");
}

#[test]
fn no_floor_prints_only_engine_lines() {
    let (_dir, answer) =
        run(&["--no-floor", "--workload", "steps-1", "--at-a-time", "1", "--executions", "1", "--seconds", "60"]);
    assert_eq!((answer.exit, answer.stdout.lines().count()), (Some(0), 1), "{answer:?}");
    assert!(answer.stdout.contains(r#""system":"mainspring""#) && !answer.stdout.contains("of_floor"), "{answer:?}");
}

#[test]
fn a_server_is_measured_beside_the_engine() {
    let common = ["--via", "http", "--at-a-time", "3", "--executions", "7", "--seconds", "60"];
    let workloads = ["--workload", "steps-3", "--workload", "code-10"];
    let (dir, answer) = run(&[&common[..], &["--no-floor"], &workloads].concat());
    assert_eq!((answer.exit, answer.stdout.lines().count()), (Some(0), 2), "{answer:?}");
    for line in answer.stdout.lines() {
        let line = json::read(line.as_bytes()).unwrap().value;
        let names: BTreeSet<String> = line.as_map().unwrap().keys().cloned().collect();
        assert_eq!(Some(&names), fields().get("--via http"), "{line:?}");
        assert_eq!(line.get("executions").and_then(Value::as_u64), Some(7), "{line:?}");
    }
    let left = std::fs::read_dir(dir.root().join("bench")).unwrap().count();
    assert_eq!(left, 0, "the folder of the measurement is removed");
}

#[test]
fn several_nodes_share_the_executions_of_one_store() {
    let server = Server::start(Options { fsync: false, ..Options::default() }).unwrap_or_else(|why| panic!("{why}"));
    let address = server.address("");
    let common = ["--no-floor", "--workload", "steps-3", "--at-a-time", "4", "--executions", "20", "--seconds", "60"];
    let (_dir, answer) = run(&[&common[..], &["--nodes", "2", "--store", &address]].concat());
    assert_eq!((answer.exit, answer.stdout.lines().count()), (Some(0), 1), "{answer:?}");
    let line = json::read(answer.stdout.as_bytes()).unwrap().value;
    let number = |name| line.get(name).and_then(Value::as_u64);
    assert_eq!((number("nodes"), number("executions")), (Some(2), Some(20)), "{answer:?}");
}

#[test]
fn wrong_flags_are_refused_before_anything_is_measured() {
    for (arguments, said) in [
        (&["--workload", "steps-2"][..], "steps-10"),
        (&["--at-a-time", "0"], "1..=100000"),
        (&["--at-a-time", "100001"], "1..=100000"),
        (&["--seconds", "0"], "--seconds"),
        (&["--executions", "0"], "--executions"),
        (&["--load", "101"], "--load"),
        (&["--via", "http", "--workload", "recover"], "--via http"),
        (&["--via", "http", "--load", "50"], "--via http"),
        (&["--nodes", "17"], "1..=16"),
        (&["--nodes", "2"], "--store"),
        (&["--store", "mysql://host/name"], "postgres://"),
        (&["--store", "postgres://me:secret@host/name?password=secret&ssl=on"], "sslmode"),
    ] {
        let (_dir, answer) = run(arguments);
        assert_eq!((answer.exit, answer.stdout.as_str()), (Some(10), ""), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(said), "{arguments:?}: {answer:?}");
        assert!(!answer.stderr.contains("secret"), "{answer:?}");
    }
}
