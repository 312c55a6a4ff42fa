//! Due ticks under each treatment of missed ticks, and jitter.

use mainspring_triggers::{
    catch_up::{CatchUp, DueTicks, MissedTicks, due, jitter_ms},
    schedule::Schedule,
};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Checks the ticks of an hourly schedule, in minutes, and whether others were dropped.
#[track_caller]
fn check(missed: MissedTicks, window_ms: u64, cursor: u64, now_ms: u64, ticks: &[u64], has_dropped: bool) {
    let schedule = Schedule::new("@hourly", "UTC").unwrap();
    let found = due(&schedule, CatchUp { missed, window_ms }, 0, cursor * MINUTE_MS, now_ms, 100);
    let expected: Vec<u64> = ticks.iter().map(|minute| minute * MINUTE_MS).collect();
    assert_eq!((found.ticks_ms, found.has_dropped), (expected, has_dropped));
    assert_eq!(found.cursor_ms, now_ms.max(cursor * MINUTE_MS));
}

#[test]
fn missed_ticks() {
    use MissedTicks::{All, Once, Skip};
    let (day_ms, late_ms) = (24 * HOUR_MS, 4 * HOUR_MS + 30 * MINUTE_MS);
    let on_time_ms = 4 * HOUR_MS + MINUTE_MS - 1;
    for missed in [Skip, Once, All] {
        check(missed, day_ms, 239, on_time_ms, &[240], false);
        check(missed, day_ms, 240, on_time_ms, &[], false);
        check(missed, day_ms, 300, on_time_ms, &[], false);
    }
    check(Skip, day_ms, 90, late_ms, &[], true);
    check(Skip, day_ms, 90, on_time_ms, &[240], true);
    check(Once, day_ms, 90, late_ms, &[240], true);
    check(Once, day_ms, 230, late_ms, &[240], false);
    check(All, day_ms, 90, late_ms, &[120, 180, 240], false);
    // Older ticks than the window never run; one at its edge does.
    check(All, 90 * MINUTE_MS, 90, late_ms, &[180, 240], true);
    check(All, 89 * MINUTE_MS, 90, late_ms, &[240], true);
    check(Once, 29 * MINUTE_MS, 90, late_ms, &[], true);
    check(All, 0, 90, late_ms, &[], true);
}

#[test]
fn many_missed_ticks_are_returned_in_parts() {
    let schedule = Schedule::new("* * * * *", "UTC").unwrap();
    let catch_up = CatchUp { missed: MissedTicks::All, window_ms: 24 * HOUR_MS };
    let (mut cursor_ms, mut ticks) = (0, Vec::new());
    while cursor_ms < HOUR_MS {
        let DueTicks { ticks_ms, cursor_ms: next_ms, has_dropped } = due(&schedule, catch_up, 0, cursor_ms, HOUR_MS, 7);
        assert!(ticks_ms.len() <= 7 && !has_dropped && next_ms > cursor_ms);
        ticks.extend(ticks_ms);
        cursor_ms = next_ms;
    }
    assert_eq!(ticks, (1..=60).map(|minute| minute * MINUTE_MS).collect::<Vec<_>>());
}

#[test]
fn a_month_of_missed_minutes_is_one_run() {
    let schedule = Schedule::new("* * * * *", "UTC").unwrap();
    let catch_up = CatchUp { missed: MissedTicks::Once, window_ms: u64::MAX };
    let now_ms = 40 * 24 * HOUR_MS + 5;
    assert_eq!(due(&schedule, catch_up, 0, 0, now_ms, 10).ticks_ms, [now_ms - 5]);
    let schedule = Schedule::new("0 3 2 * *", "UTC").unwrap();
    assert_eq!(due(&schedule, catch_up, 0, 0, now_ms, 10).ticks_ms, [(32 * 24 + 3) * HOUR_MS]);
}

#[test]
fn jitter_delays_ticks_without_changing_them() {
    let schedule = Schedule::new("@hourly", "UTC").unwrap();
    let catch_up = CatchUp { missed: MissedTicks::Skip, window_ms: 0 };
    let ticks = |now_ms| due(&schedule, catch_up, 5_000, HOUR_MS - 1, now_ms, 10).ticks_ms;
    assert_eq!(ticks(HOUR_MS + 4_999), [0; 0]);
    assert_eq!(ticks(HOUR_MS + 5_000), [HOUR_MS]);
}

#[test]
fn jitter_is_the_same_for_each_tick_of_a_trigger() {
    assert_eq!(jitter_ms("trigger-1", 10_000), jitter_ms("trigger-1", 10_000));
    assert_eq!(jitter_ms("trigger-1", 0), 0);
    let spread: Vec<u64> = (0..1000).map(|number| jitter_ms(&format!("trigger-{number}"), 999) / 100).collect();
    for tenth in 0..10 {
        let count = spread.iter().filter(|value| **value == tenth).count();
        assert!((60..140).contains(&count), "{count} of 1000 triggers in tenth {tenth}");
    }
    assert!((0..100).all(|number| jitter_ms(&number.to_string(), u64::MAX) <= 3_600_000));
}
