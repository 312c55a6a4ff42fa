//! Randomly generated definitions with random executions. Each valid definition runs to an end, its journal folds and
//! re-decides to the same records, and repeated, late or unexpected inputs change nothing.
//!
//! A seed determines a case. `MAINSPRING_SEEDS` sets the number of cases, `MAINSPRING_SEED` the first seed.

mod author;
mod halted;
mod numbers;
mod world;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use author::{Author, Written};
use mainspring_kernel::{
    definition::compile,
    diagnostic::{Diagnostic, Severity},
    document::Document,
    json,
    plan::Plan,
};
use numbers::Numbers;
use world::{Broken, World};

/// Cases of an ordinary run, unless `MAINSPRING_SEEDS` is set.
const SEEDS_DEFAULT: u64 = 800;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Totals over all cases.
#[derive(Default)]
struct Sum {
    accepted: u64,
    refused: u64,
    seen: BTreeMap<String, u64>,
}

fn run(seed: u64, sum: &mut Sum) {
    let mut numbers = Numbers::of(seed);
    let Written { definition, ends_early } = Author::write(Numbers::of(numbers.next()));
    let text = json::pretty(&definition);
    let outcome = catch_unwind(AssertUnwindSafe(|| compile(&Document::placeless(definition))));
    let Ok(outcome) = outcome else { panic!("seed {seed}: compiling panics\n{text}") };
    let compiled = match outcome {
        Ok(compiled) => compiled,
        Err(found) => {
            sum.refused += 1;
            return check_refusal(&found).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"));
        }
    };
    sum.accepted += 1;
    let plan = Plan::decode(&compiled.plan.encode());
    assert_eq!(plan.as_ref(), Ok(&compiled.plan), "seed {seed}: the stored plan\n{text}");
    let mut world = World::new(compiled.plan, numbers);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let left_out = if ends_early { None } else { world.left_out() };
    let why = match outcome {
        Ok(Ok(())) => left_out,
        Ok(Err(why)) => Some(why),
        Err(_) => Some("a panic".to_string()),
    };
    if let Some(why) = why {
        panic!("seed {seed}: {why}\n{text}\nafter\n{}", world.story());
    }
    for (name, count) in world.seen {
        *sum.seen.entry(name).or_default() += count;
    }
}

/// Checks that a rejected definition has errors that say how to correct it.
fn check_refusal(found: &[Diagnostic]) -> Result<(), Broken> {
    let errors: Vec<_> = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).collect();
    let says_something = |diagnostic: &&Diagnostic| diagnostic.message.contains('`') || !diagnostic.help.is_empty();
    match errors.as_slice() {
        [] => Err(format!("refused without an error: {found:?}")),
        errors if errors.iter().all(says_something) => Ok(()),
        errors => Err(format!("an error that names nothing: {errors:?}")),
    }
}

/// All records and outcomes that can occur in an execution that fits into one turn.
const SEEN: [&str; 32] = [
    "Started",
    "LineageSet",
    "StepSkipped",
    "StepStarted",
    "BranchTaken",
    "AttemptStarted",
    "AttemptStopping",
    "AttemptFailed",
    "WaitStarted",
    "GateOpened",
    "GateDecided",
    "StepCompleted",
    "StepFailed",
    "StepCancelled",
    "RoundStarted",
    "RoundEnded",
    "FailureBoundReached",
    "SignalKept",
    "SignalTaken",
    "CancelRequested",
    "DeadlineHeld",
    "ParentNotified",
    "Queued",
    "Admitted",
    "EndingBegun",
    "FinallyBegun",
    "FinallyHalted",
    "FinallyEnded",
    "Ended",
    "completed",
    "failed",
    "cancelled",
];

#[test]
fn every_accepted_definition_runs_to_an_end() {
    let (first, count) = (from_environment("MAINSPRING_SEED", 0), from_environment("MAINSPRING_SEEDS", SEEDS_DEFAULT));
    let mut sum = Sum::default();
    (first..first + count).for_each(|seed| run(seed, &mut sum));
    println!("{} accepted, {} refused, {:#?}", sum.accepted, sum.refused, sum.seen);
    if count >= SEEDS_DEFAULT {
        assert!(sum.accepted * 2 > count, "{} of {count} accepted", sum.accepted);
        assert!(sum.refused * 50 > count, "{} of {count} refused", sum.refused);
        let missing: Vec<_> = SEEN.into_iter().filter(|name| !sum.seen.contains_key(*name)).collect();
        assert_eq!(missing, Vec::<&str>::new(), "never came up");
    }
}
