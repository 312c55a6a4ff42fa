//! Runs the fuzz targets with a simple mutator: some thousands of inputs in each test run.
//!
//! `MAINSPRING_FUZZ_ROUNDS=1000000 cargo test --release -p mainspring-kernel --test fuzz` runs more inputs, and
//! `MAINSPRING_FUZZ_SEED` selects others. Inputs that failed once are stored in `fuzz/found` and run first.

mod corpus;
#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "fuzz/targets.rs"]
mod targets;

use std::{fs, panic};

use mainspring_kernel::value::Value;
use targets::{TARGETS, Target};

/// Inputs for each target in an ordinary test run.
const ROUNDS_DEFAULT: u64 = 3_000;

const FOUND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/found");

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number")))
}

fn run(name: &str, target: Target) {
    let definitions: Vec<Value> = corpus::all().into_iter().map(|(_, definition)| definition).collect();
    let seeds = targets::seeds_of(name, &definitions);
    assert!(seeds.len() >= 10, "{} seeds for {name}", seeds.len());
    let seed = number("MAINSPRING_FUZZ_SEED").unwrap_or(2026);
    let rounds = number("MAINSPRING_FUZZ_ROUNDS").unwrap_or(ROUNDS_DEFAULT);
    for (at, bytes) in found(name).into_iter().chain(seeds.clone()).enumerate() {
        attempt(&format!("{name}, found input or seed {at}"), target, &bytes);
    }
    let mut numbers = mutate::Numbers::new(seed);
    for round in 0..rounds {
        let bytes = mutate::mutated(&seeds, &mut numbers);
        attempt(&format!("{name}, seed {seed}, round {round}"), target, &bytes);
    }
}

/// Returns the stored inputs that once made a target fail.
fn found(name: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(FOUND).expect("the folder of what was found");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.to_string_lossy().contains(&format!("/{name}-"))).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("an input")).collect()
}

fn attempt(which: &str, target: Target, bytes: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| target(bytes)) {
        eprintln!("{which}: {}", bytes.escape_ascii());
        panic::resume_unwind(cause);
    }
}

fn target(name: &str) -> Target {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target).expect("a known target")
}

#[test]
fn definitions() {
    run("definitions", target("definitions"));
}

#[test]
fn references() {
    run("references", target("references"));
}

#[test]
fn conditions() {
    run("conditions", target("conditions"));
}

#[test]
fn schemas() {
    run("schemas", target("schemas"));
}

#[test]
fn frames() {
    run("frames", target("frames"));
}
