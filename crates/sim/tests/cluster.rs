//! Several nodes on one store under all faults: some seeds in every test run, or the range in `MAINSPRING_SEEDS`
//! (`from..to`).

use std::{collections::BTreeMap, ops::Range, panic::catch_unwind};

use mainspring_sim::cluster::{self, FaultCoverage, Size};

/// About two minutes in a test run without optimization. They meet every rare fault.
const SEEDS: Range<u64> = 0..108;

const SIZE: Size = Size { executions: 60, nodes: 3, partitions: 8 };

/// Executions of a seed; `MAINSPRING_EXECUTIONS` overrides it.
fn size() -> Size {
    let asked = std::env::var("MAINSPRING_EXECUTIONS").ok().map(|asked| asked.parse().expect("a number of executions"));
    Size { executions: asked.unwrap_or(SIZE.executions), ..SIZE }
}

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("MAINSPRING_SEEDS") else { return SEEDS };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("MAINSPRING_SEEDS is written as 0..100000, not {asked:?}"))
}

#[test]
fn random_cluster_runs_keep_all_rules() {
    let (mut all, mut table, mut found) = (BTreeMap::new(), FaultCoverage::default(), Vec::new());
    for seed in seeds() {
        match catch_unwind(|| cluster::run(seed, size()))
            .unwrap_or_else(|_| Err("it panics; the message is above".into()))
        {
            Ok(report) => {
                cluster::add(&mut all, &report);
                table.add(&report.coverage);
            }
            Err(why) => found.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{all:?}\n{table}\nnever met: {:?}", table.missing());
    if seeds() == SEEDS {
        assert!(table.missing_faults().is_empty(), "no seed meets {:?}", table.missing_faults());
    }
    assert!(found.is_empty(), "{} seeds:\n{}", found.len(), found[..found.len().min(5)].join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in [3, 1_000_003] {
        let bytes = || cluster::run(seed, SIZE).map(|report| report.bytes);
        assert_eq!(bytes(), bytes(), "seed {seed}");
    }
    assert_ne!(cluster::run(3, SIZE).unwrap().bytes, cluster::run(4, SIZE).unwrap().bytes);
}
