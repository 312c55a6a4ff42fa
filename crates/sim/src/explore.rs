//! Searches for workflows and faults under which a rule is violated. Everything is generated from a seed.
//!
//! A seed generates a workflow, scripted responses, inbox entries and faults. Its run must satisfy every rule of the
//! simulator, the same seed must give the same bytes twice, and a run in which no call is killed must write the journal
//! of the straight run. A failure names its seed, which suffices to reproduce it.

pub mod migration;
pub mod shadow;
mod workflow;

use std::ops::Range;

use mainspring_kernel::{definition::compile, document::Document, json, value::Value};

use crate::{
    case::other_journal,
    faults::{Faults, Rng},
    fixture::Fixture,
    run::{Broken, Finished, run},
};

/// The totals and the violations of a search.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// The number of seeds.
    pub seeds: u64,
    /// Frames that were written in the straight runs.
    pub frames: u64,
    /// Calls that were made in the straight runs.
    pub calls: u64,
    /// Executions that ended in the straight runs, as opposed to waiting without end.
    pub ended: u64,
    /// The violations.
    pub found: Vec<Found>,
}

/// A violated rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The seed that reproduces it.
    pub seed: u64,
    /// The rule and the violation.
    pub why: String,
    /// The workflow, as JSON.
    pub definition: String,
    /// The journal up to that point as text; empty if there is none.
    pub picture: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "seed {}: {}\n{}\n{}", self.seed, self.why, self.definition, self.picture)
    }
}

/// Searches a range of seeds.
pub fn explore(seeds: Range<u64>) -> Explored {
    let mut explored = Explored::default();
    for seed in seeds {
        explored.seeds += 1;
        let mut rng = Rng::new(seed);
        let made = workflow::make(&mut rng);
        let found = |broken: Broken| Found {
            seed,
            why: broken.why,
            definition: json::pretty(&made.definition),
            picture: broken.picture,
        };
        match fixture(&made) {
            Err(why) => explored.found.push(found(Broken { why, picture: String::new() })),
            Ok(fixture) => match run_fixture(&fixture, random_faults(&mut rng), seed) {
                Err(broken) => explored.found.push(found(broken)),
                Ok(straight) => {
                    explored.frames += straight.frames.len() as u64;
                    explored.calls += straight.calls.len() as u64;
                    explored.ended += u64::from(straight.state.end.ended_at.is_some());
                }
            },
        }
    }
    explored
}

fn fixture(made: &workflow::Made) -> Result<Fixture, String> {
    let compiled = compile(&Document::placeless(made.definition.clone())).map_err(|problems| {
        let problems: String = problems.iter().map(|problem| format!("\n{problem}")).collect();
        format!("the generated workflow is refused:{problems}")
    })?;
    Ok(Fixture::new(compiled.plan, made.given.clone()))
}

/// Runs a workflow straight, with all faults that lose no call, and with killed calls.
fn run_fixture(fixture: &Fixture, faults: Faults, seed: u64) -> Result<Finished, Broken> {
    let broken = |why: String| Broken { why, picture: String::new() };
    let straight = run(fixture, Faults::NONE, seed)?;
    let harmless = run(fixture, Faults { kill_before_input: 0, ..faults }, seed)
        .map_err(|broken| Broken { why: format!("{} (with {faults:?})", broken.why), ..broken })?;
    if let Some(other) = other_journal(&straight, &harmless) {
        return Err(broken(format!("{other} (with {faults:?})")));
    }
    let killing = || {
        run(fixture, faults, seed)
            .map_err(|broken| Broken { why: format!("{} (with {faults:?})", broken.why), ..broken })
    };
    let (one, other) = (killing()?, killing()?);
    match other_journal(&one, &other) {
        Some(other) => Err(broken(format!("the same seed gives different bytes: {other}"))),
        None => Ok(straight),
    }
}

fn random_faults(rng: &mut Rng) -> Faults {
    let mut percent = |choices: &[u8]| *rng.pick(choices);
    const OFTEN: [u8; 6] = [0, 0, 10, 30, 60, 100];
    const SOMETIMES: [u8; 5] = [0, 0, 10, 30, 60];
    Faults {
        crash_before_input: percent(&OFTEN),
        kill_before_input: percent(&[0, 5, 15, 40]),
        deliver_twice: percent(&OFTEN),
        deliver_again: percent(&OFTEN),
        deliver_late: percent(&SOMETIMES),
        crash_before_commit: percent(&SOMETIMES),
        crash_after_commit: percent(&SOMETIMES),
        unknown_written: percent(&SOMETIMES),
        unknown_not_written: percent(&SOMETIMES),
        not_written: percent(&SOMETIMES),
        inbox_again: percent(&[0, 1]) == 1,
    }
}

/// Returns the workflow that a seed generates, as JSON, to investigate a failure.
pub fn definition_of(seed: u64) -> Value {
    workflow::make(&mut Rng::new(seed)).definition
}
