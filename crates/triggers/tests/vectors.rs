//! The conformance vectors of schedules: the cases of `conformance/vectors/cron.json` with ticks or a refusal.

use std::{collections::BTreeSet, fs, path::Path};

use jiff::Timestamp;
use mainspring_triggers::{idempotency::tick_bucket, schedule::Schedule};
use serde_json::Value;

const FILE: &str = "vectors/cron.json";

/// Cases about the executions that a dispatcher starts, which the store decides. `schedules.rs` of the server's tests
/// covers them.
const OF_THE_DISPATCHER: [&str; 2] = ["ao-t01", "dag-i01"];

fn instant(text: &str) -> u64 {
    let instant: Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    instant.as_millisecond().try_into().expect("an instant after 1970")
}

fn texts<'a>(case: &'a Value, key: &str) -> Option<Vec<&'a str>> {
    Some(case.get(key)?.as_array()?.iter().map(|text| text.as_str().expect("a text")).collect())
}

fn check(case: &Value) -> Result<(), String> {
    let text = |key: &str| case[key].as_str().expect("a text");
    let schedule = Schedule::new(text("expression"), text("timezone"));
    if case.get("accepted") == Some(&Value::Bool(false)) {
        return schedule.map_or(Ok(()), |_| Err("it is accepted".into()));
    }
    let schedule = schedule.map_err(|error| error.to_string())?;
    let bucket = |tick_ms| format!("{}Z", tick_bucket(tick_ms).expect("a tick before the year 9999"));
    let expected = texts(case, "matches").ok_or("no expectation that this test knows")?;
    let ticks: Vec<String> = schedule.ticks_after(instant(text("from"))).take(expected.len()).map(bucket).collect();
    if ticks == expected { Ok(()) } else { Err(format!("the ticks are {ticks:?} instead of {expected:?}")) }
}

#[test]
fn schedules() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let uncovered = fs::read_to_string(conformance.join("uncovered.txt")).unwrap();
    let cases: Value = serde_json::from_slice(&fs::read(conformance.join(FILE)).unwrap()).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    assert!(cases.len() >= 23, "cases are never removed");
    let mut wrong = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let is_listed = uncovered.lines().any(|line| line.trim() == format!("{FILE} :: {id}"));
        match (OF_THE_DISPATCHER.contains(&id), is_listed) {
            (true, false) => {}
            (false, false) => wrong.extend(check(case).err().map(|why| format!("{id}: {why}"))),
            _ => wrong.push(format!("{id}: the test and uncovered.txt disagree")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The polls of a dispatcher give the idempotency keys under which the store starts each execution once.
#[test]
fn polls_within_one_minute_have_one_key() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let cases: Value = serde_json::from_slice(&fs::read(conformance.join(FILE)).unwrap()).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let (Some(looks), Some(executions)) = (texts(case, "looks"), texts(case, "executions")) else { continue };
        let schedule = Schedule::new(case["expression"].as_str().unwrap(), case["timezone"].as_str().unwrap()).unwrap();
        let tick_of_look = |look: &&str| {
            let minute_ms = instant(look) / 60_000 * 60_000;
            schedule.next_after(minute_ms - 1).filter(|tick| *tick == minute_ms)
        };
        let buckets: BTreeSet<String> = looks.iter().filter_map(tick_of_look).filter_map(tick_bucket).collect();
        assert_eq!(buckets.into_iter().collect::<Vec<_>>(), executions, "{}", case["id"]);
    }
}
