//! Searches some seeds in every test run, or the range in `MAINSPRING_SEEDS` (`from..to`).

use std::ops::Range;

use mainspring_sim::explore::explore;

/// Few enough for a test run without optimization.
const SEEDS: Range<u64> = 0..400;

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("MAINSPRING_SEEDS") else { return SEEDS };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("MAINSPRING_SEEDS is written as 0..100000, not {asked:?}"))
}

#[test]
fn random_runs_keep_all_rules() {
    let explored = explore(seeds());
    let found: Vec<String> = explored.found.iter().take(5).map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} of {} seeds:\n{}", explored.found.len(), explored.seeds, found.join("\n"));
    // The generated workflows are varied: they make calls, and some but not all of them end.
    assert!(explored.calls > explored.seeds && explored.frames > 3 * explored.seeds, "{explored:?}");
    assert!(explored.ended > explored.seeds / 3 && explored.ended < explored.seeds, "{explored:?}");
}
