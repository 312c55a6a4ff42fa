//! Cron expressions: refusals with their places, clock changes, and random cases of another implementation.

use std::{fs, path::Path};

use jiff::Timestamp;
use mainspring_triggers::{
    cron::Cron,
    schedule::{Schedule, ScheduleError, time_zone_version},
};

/// Checks that an expression is refused at this text, with these words.
#[track_caller]
fn check_refused(expression: &str, place: &str, words: &str) {
    let error = Cron::parse(expression).expect_err(expression);
    assert_eq!(&expression[error.place.clone()], place, "{error}");
    let text = error.to_string();
    assert!(text.contains(words), "{text}");
    assert!(text.starts_with(&format!("column {}", error.place.start + 1)), "{text}");
}

#[test]
fn refusals_name_the_place() {
    check_refused("", "", "0 fields instead of 5");
    check_refused("* * * *", "* * * *", "4 fields instead of 5");
    check_refused("0 0 9 * * 1", "0 0 9 * * 1", "seconds");
    check_refused("60 * * * *", "60", "minute: `60` is not a value from 0 to 59");
    check_refused("0 24 * * *", "24", "hour: `24` is not a value from 0 to 23");
    check_refused("0 0 0 * *", "0", "day of month: `0` is not a value from 1 to 31");
    check_refused("0 0 1 13 *", "13", "month: `13` is not a value from 1 to 12 or JAN to DEC");
    check_refused("0 0 * * 8", "8", "day of week: `8` is not a value from 0 to 7 or SUN to SAT");
    check_refused("0 0 * * MONDAY", "MONDAY", "SUN to SAT");
    check_refused("9-5 * * * *", "9-5", "runs backwards");
    check_refused("* * * * FRI-MON", "FRI-MON", "runs backwards");
    check_refused("10,, * * * *", "10,,", "empty place");
    check_refused("* 1,x * * *", "x", "`x` is not a value");
    check_refused("5/15 * * * *", "5/15", "write 5-59/… ");
    check_refused("*/0 * * * *", "0", "not a step from 1 to 60");
    check_refused("*/61 * * * *", "61", "not a step from 1 to 60");
    check_refused("*/ * * * *", "", "not a step");
    check_refused("1- * * * *", "", "`` is not a value");
    check_refused("-1 * * * *", "", "`` is not a value");
    check_refused("+1 * * * *", "+1", "`+1` is not a value");
    check_refused("0 0 L * *", "L", "other schedulers");
    check_refused("0 0 ? * *", "?", "other schedulers");
    check_refused("0 0 30 2 *", "30", "no month of the expression has this day");
    check_refused("0 0 31 4,6,9,11 */2", "31", "no month of the expression has this day");
    check_refused("@reboot", "@reboot", "is not a time");
    check_refused("@never", "@never", "write one of @yearly");
    check_refused("not a cron at all", "not", "minute: `not`");
    check_refused("\u{a0}* * * * *", "\u{a0}*", "is not a value");
    let long = format!("{} * * * *", ["1"; 600].join(","));
    assert!(Cron::parse(&long).unwrap_err().message.contains("at most 1024"));
}

#[test]
fn equal_expressions() {
    for (one, other) in [
        ("0 0 1 1 *", "@yearly"),
        ("0 0 1 1 *", "@Annually"),
        ("0 0 * * 0", "@weekly"),
        ("0 0 * * 7", "@weekly"),
        ("0 0 * * sun", "  @weekly "),
        ("0 * * * *", "@hourly"),
        ("0 0 1 * *", " @monthly"),
        ("\t5  5 1,2 JAN-mar/2  *", "5 5 1-2 1,3 *"),
        ("0 0 * * FRI-SUN", "0 0 * * 5-7"),
        ("0 9 * * SUN-SUN", "0 9 * * 0"),
        ("0 9 * * SUN-SUN/2", "0 9 * * 0"),
        ("0 9 * * 7-SUN", "0 9 * * 0"),
        ("0 9 * * 0-7", "0 9 * * 0-6"),
        ("0 9 * * SUN-SAT", "0 9 * * 0-6"),
        ("0 0 * * 0,5,6", "0 0 * * 5-7"),
        ("0-59/20 0 * * *", "0,20,40 0 * * *"),
    ] {
        assert_eq!(Cron::parse(one).unwrap(), Cron::parse(other).unwrap(), "{one} and {other}");
    }
}

#[test]
fn zones_are_found_by_their_names() {
    let named = |name: &str| Schedule::new("@daily", name).map(|schedule| schedule.zone_name().to_owned());
    assert_eq!(named("Europe/Berlin").unwrap(), "Europe/Berlin");
    assert_eq!(named("america/new_york").unwrap(), "America/New_York");
    assert_eq!(named("UTC").unwrap(), "UTC");
    for name in ["", "Mars/Olympus", "+02:00", "Etc/Unknown", "../etc/passwd"] {
        let error = named(name).unwrap_err();
        assert_eq!(error, ScheduleError::Zone(name.into()));
        assert!(error.to_string().contains(time_zone_version()), "{error}");
    }
}

/// Checks the next ticks after an instant.
#[track_caller]
fn check(expression: &str, zone: &str, from: &str, ticks: &[&str]) {
    let schedule = Schedule::new(expression, zone).unwrap();
    let from: Timestamp = from.parse().unwrap();
    let found = schedule.ticks_after(from.as_millisecond() as u64).take(ticks.len());
    let found: Vec<String> = found.map(|tick| Timestamp::from_millisecond(tick as i64).unwrap().to_string()).collect();
    assert_eq!(found, ticks);
}

#[test]
fn a_skipped_local_time_runs_at_the_end_of_the_gap() {
    let zone = "Europe/Berlin";
    check("30 2 * * *", zone, "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    // Several times in one gap, and one at its end, are one tick.
    check("0,20,40 2,3 * * *", zone, "2026-03-29T00:59:59Z", &["2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z"]);
    // Expressions of every hour or minute have no tick in the gap.
    check("30 * * * *", zone, "2026-03-29T00:00:00Z", &["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"]);
    check("*/30 2 * * *", zone, "2026-03-28T12:00:00Z", &["2026-03-30T00:00:00Z"]);
    // A search that starts at the end of the gap does not find its tick again.
    check("30 2 * * *", zone, "2026-03-29T01:00:00Z", &["2026-03-30T00:30:00Z"]);
    check("30 2 * * *", zone, "2026-03-29T00:59:59.999Z", &["2026-03-29T01:00:00Z"]);
    // A whole day that does not exist.
    check("0 12 * * *", "Pacific/Apia", "2011-12-30T00:00:00Z", &["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]);
    // Midnight does not exist.
    check("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", &["2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"]);
}

#[test]
fn a_repeated_local_time_runs_once_unless_the_hour_is_a_star() {
    let zone = "Europe/Berlin";
    check("30 2 * * *", zone, "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    check("*/30 2 * * *", zone, "2026-10-25T00:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"]);
    check("30 * * * *", zone, "2026-10-25T00:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    // A search that starts within the repetition.
    check("30 2 * * *", zone, "2026-10-25T01:10:00Z", &["2026-10-26T01:30:00Z"]);
    // Half an hour is repeated.
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00:00Z",
        &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
    );
}

#[test]
fn the_year_9999_ends_the_ticks() {
    let schedule = Schedule::new("@yearly", "UTC").unwrap();
    let last: Timestamp = "9999-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(schedule.next_after(last.as_millisecond() as u64), None);
    assert_eq!(schedule.next_after(u64::MAX), None);
    assert_eq!(schedule.next_after(0), Some(365 * 24 * 3_600_000));
    check("0 0 29 2 */7", "UTC", "2004-02-29T00:00:00Z", &["2032-02-29T00:00:00Z"]);
}

/// 10,000 random expressions, zones and instants. `tests/cron/generate.py` has written the expectations with other
/// implementations of cron and of time zones; it must have used the same release of the zone data.
#[test]
fn random_schedules_agree_with_another_implementation() {
    assert_eq!(time_zone_version(), "2026f", "write tests/cron/expected.txt with this release");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cron/expected.txt");
    let text = fs::read_to_string(file).unwrap();
    let mut wrong = Vec::new();
    for line in text.lines() {
        let [expression, zone, from, distances] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        let schedule = Schedule::new(expression, zone).unwrap_or_else(|error| panic!("{line}: {error}"));
        let from: u64 = from.parse().unwrap();
        let expected: Vec<u64> = distances.split(' ').map(|distance| distance.parse().unwrap()).collect();
        let ticks = schedule.ticks_after(from * 60_000).take(expected.len()).map(|tick| tick / 60_000);
        let minutes: Vec<u64> = std::iter::once(from).chain(ticks).collect();
        let found: Vec<u64> = minutes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if found != expected {
            wrong.push(format!("{line}: found {found:?}"));
        }
    }
    assert_eq!(text.lines().count(), 10_000);
    assert!(wrong.is_empty(), "{} differ, the first:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
