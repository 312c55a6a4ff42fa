//! `mainspring schedule next`: ticks with their local times, and refusals with their places.

mod support;
use mainspring_kernel::value::Value;
use support::{TestDir, call};

#[test]
fn the_next_ticks() {
    let dir = TestDir::new();
    let arguments =
        ["schedule", "next", "30 2 * * *", "--timezone", "europe/berlin", "--from", "2026-03-28T12:00:00+01:00"];
    let answer = call(dir.mainspring(&[&arguments[..], &["--count", "2"]].concat()), b"");
    let expected = "2026-03-29T01:00:00.000Z  2026-03-29T03:00:00+02:00\n\
                    2026-03-30T00:30:00.000Z  2026-03-30T02:30:00+02:00\n";
    assert_eq!((answer.exit, answer.stdout.as_str()), (Some(0), expected), "{answer:?}");
    let answer = call(dir.mainspring(&[&arguments[..], &["--json"]].concat()), b"");
    let report = answer.envelope();
    assert_eq!(report.get("timezone").and_then(Value::as_text), Some("Europe/Berlin"), "{answer:?}");
    let ticks = report.get("ticks").and_then(Value::as_list).unwrap();
    assert_eq!(ticks.len(), 5);
    assert_eq!(ticks[0].get("at").and_then(Value::as_text), Some("2026-03-29T01:00:00.000Z"));
    assert_eq!(ticks[0].get("local").and_then(Value::as_text), Some("2026-03-29T03:00:00+02:00"));
    let answer = call(dir.mainspring(&["schedule", "next", "@hourly", "--count", "1"]), b"");
    assert_eq!((answer.exit, answer.stdout.lines().count()), (Some(0), 1), "the default is now, in UTC: {answer:?}");
}

#[test]
fn refused_schedules() {
    let dir = TestDir::new();
    for (arguments, code, words) in [
        (&["0 24 * * *"][..], "bad_cron", "column 3, hour: `24` is not a value from 0 to 23"),
        (&["@daily", "--timezone", "Mars/Olympus"], "bad_timezone", "`Mars/Olympus` is not a time zone"),
        (&["@daily", "--from", "yesterday"], "bad_arguments", "RFC 3339"),
        (&["@daily", "--count", "0"], "bad_arguments", "--count"),
    ] {
        let answer = call(dir.mainspring(&[&["--json", "schedule", "next"], arguments].concat()), b"");
        assert_eq!(answer.exit, Some(10), "{answer:?}");
        assert_eq!(answer.text("error.code"), code);
        assert!(answer.text("error.message").contains(words), "{answer:?}");
    }
    let answer = call(dir.mainspring(&["schedule", "next", "@daily", "--server", "https://example.com"]), b"");
    assert_eq!(answer.exit, Some(10), "{answer:?}");
    assert!(answer.stderr.contains("on this machine"), "{answer:?}");
}
