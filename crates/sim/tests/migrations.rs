//! Executions that continue with a mutated plan end as if they had begun with it, for some seeds or for the range in
//! `MAINSPRING_SEEDS` (`from..to`). 500 seeds take four minutes without optimization.

use std::ops::Range;

use mainspring_sim::explore::migration::explore_migrations;

/// Few enough for a test run without optimization.
const SEEDS: Range<u64> = 0..100;

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("MAINSPRING_SEEDS") else { return SEEDS };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("MAINSPRING_SEEDS is written as 0..100000, not {asked:?}"))
}

#[test]
fn migrated_executions_end_as_if_started_with_the_new_plan() {
    let explored = explore_migrations(seeds());
    println!("{explored:?}");
    assert!(explored.found.is_empty(), "{} seeds:\n{}", explored.found.len(), explored.found[0]);
    // Migrations are varied: some executions stay, and most of the migrated ones can be compared to their end.
    let seeds = seeds().end - seeds().start;
    assert!(explored.migrated * 8 > seeds && explored.stayed * 8 > seeds, "{explored:?}");
    assert!(explored.equal * 2 > explored.migrated && explored.continued * 20 > seeds, "{explored:?}");
}
