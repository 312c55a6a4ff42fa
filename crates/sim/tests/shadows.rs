//! Shadow runs equal real runs up to the horizon, for some seeds or for the range in `MAINSPRING_SEEDS` (`from..to`).

use std::ops::Range;

use mainspring_sim::explore::shadow::explore_shadows;

/// Few enough for a test run without optimization.
const SEEDS: Range<u64> = 0..600;

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("MAINSPRING_SEEDS") else { return SEEDS };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("MAINSPRING_SEEDS is written as 0..100000, not {asked:?}"))
}

#[test]
fn replays_equal_real_runs_up_to_the_horizon() {
    let explored = explore_shadows(seeds());
    println!("{explored:?}");
    assert!(explored.found.is_empty(), "{} seeds:\n{}", explored.found.len(), explored.found[0]);
    // Mutations are varied: every grade occurs, and many replays end.
    assert!(explored.compared >= 200 && explored.ended > explored.compared / 4, "{explored:?}");
    for grade in ["same", "other_path", "other_input", "no_answer"] {
        assert!(explored.grades.contains_key(grade), "{grade}: {explored:?}");
    }
}
