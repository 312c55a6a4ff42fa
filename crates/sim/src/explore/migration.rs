//! Migrates running executions to mutated plans. Everything is generated from a seed.
//!
//! A seed generates a workflow, a mutation of it, a world that answers each call, and a time. The workflow runs until that
//! time and then continues with the mutated plan, if it can. From then on its records must be those of an execution that
//! began with the mutated plan in the same world, unless that one took another way before the migration. With crashes before
//! or after every commit the journal must be the same, byte for byte, so an execution is never half migrated.

use std::{ops::Range, sync::Arc};

use mainspring_kernel::{
    json,
    plan::{Plan, PlanBytes},
    record::Record,
};

use super::{
    shadow::{Answer, inbox, mutate, plan_of, real, without_id, world},
    workflow,
};
use crate::{
    case::other_journal,
    faults::{Faults, Rng},
    fixture::START_MS,
    run::Finished,
    scenario::{At, Entry, EntryAction},
};

/// The totals and the violations of a search.
#[derive(Debug, Clone, Default)]
pub struct MigrationsExplored {
    /// Executions that continued with the mutated plan.
    pub migrated: u64,
    /// Executions that stayed.
    pub stayed: u64,
    /// Migrated executions whose records equal those of an execution that began with the mutated plan.
    pub equal: u64,
    /// Equal executions of which a step began after the migration.
    pub continued: u64,
    /// Violations, each with its seed.
    pub found: Vec<String>,
}

/// Crashes at the boundaries of commits: the journal is the same whenever the node dies.
const CRASHES: [Faults; 3] = [
    Faults { crash_before_commit: 100, ..Faults::NONE },
    Faults { crash_after_commit: 100, ..Faults::NONE },
    Faults { crash_before_commit: 40, crash_after_commit: 60, deliver_twice: 50, deliver_again: 50, ..Faults::NONE },
];

/// Searches a range of seeds.
pub fn explore_migrations(seeds: Range<u64>) -> MigrationsExplored {
    let mut explored = MigrationsExplored::default();
    for seed in seeds {
        if let Err(why) = explore_seed(seed, &mut explored) {
            explored.found.push(format!("seed {seed}: {why}"));
        }
    }
    explored
}

fn explore_seed(seed: u64, explored: &mut MigrationsExplored) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let made = workflow::make(&mut rng);
    let mut entries = inbox(&mut rng);
    let Some(old) = plan_of(&made.definition) else { return Err("the generated workflow is refused".into()) };
    let mut definition = made.definition.clone();
    for _ in 0..1 + rng.below(3) {
        mutate(&mut definition, &mut rng);
    }
    let Some(new) = plan_of(&definition).filter(|new| *new != old) else { return Ok(()) };
    let answers = || -> Answer { Arc::new(move |attempt| world(seed, attempt)) };
    let before = real(&old, &made.given, &entries, (answers(), Faults::NONE, seed))?;
    // Most executions wait for something at this time, and no other event has it.
    let times: Vec<u64> = before.frames.iter().map(|frame| frame.now - START_MS + 2).collect();
    let at = *rng.pick(&times);
    let begun = real(&new, &made.given, &entries, (answers(), Faults::NONE, seed))?;
    entries.push(Entry { at: At::Time(at), action: EntryAction::Migrate { plan: PlanBytes(new.encode().into()) } });
    let run = |faults| real(&old, &made.given, &entries, (answers(), faults, seed));
    let migrated = run(Faults::NONE)?;
    for faults in CRASHES {
        if let Some(other) = other_journal(&migrated, &run(faults)?) {
            return Err(format!("with {faults:?}: {other}"));
        }
    }
    let migrations = records(&migrated, &old, &new).into_iter().filter(|(_, record)| is_migration(record)).count();
    match (migrations, migrated.state.journal.migration.is_some()) {
        (0, false) => explored.stayed += 1,
        (1, true) => {
            explored.migrated += 1;
            compare(&migrated, &begun, (&old, &new), at + START_MS, explored).map_err(|why| {
                format!("{why}\n{}\nmutated\n{}", json::pretty(&made.definition), json::pretty(&definition))
            })?;
        }
        (count, _) => return Err(format!("{count} migrations are recorded")),
    }
    Ok(())
}

fn compare(
    migrated: &Finished,
    begun: &Finished,
    (old, new): (&Plan, &Plan),
    at: u64,
    explored: &mut MigrationsExplored,
) -> Result<(), String> {
    let own: Vec<_> = records(migrated, old, new).into_iter().filter(|(_, record)| !is_migration(record)).collect();
    let expected = records(begun, new, new);
    let early =
        |records: &[(u64, String)]| records.iter().take_while(|(now, _)| *now < at).cloned().collect::<Vec<_>>();
    if early(&own) != early(&expected) {
        return Ok(());
    }
    let is_same = own.iter().zip(&expected).take_while(|(own, expected)| own == expected).count();
    if is_same < own.len().max(expected.len()) {
        let sides = (own.get(is_same), expected.get(is_same));
        return Err(format!("migrated at {at}, record {is_same}: migrated {:?}, begun {:?}", sides.0, sides.1));
    }
    explored.equal += 1;
    let begins = |(now, record): &(u64, String)| *now > at && record.starts_with("StepStarted");
    explored.continued += u64::from(own.iter().any(begins));
    let end = |run: &Finished| (run.state.status(), run.state.outputs.clone(), run.state.end.clone());
    if end(migrated) != end(begun) {
        return Err("the ends differ".into());
    }
    Ok(())
}

fn is_migration(record: &str) -> bool {
    record.starts_with("Migrated")
}

/// The records with their times, without what names a plan: its hashes and the numbers of its blocks.
fn records(run: &Finished, old: &Plan, new: &Plan) -> Vec<(u64, String)> {
    let mut plan = old;
    let mut all = Vec::new();
    for frame in &run.frames {
        for record in &frame.records {
            let mut record = without_id(record);
            match &mut record {
                Record::Started { workflow_hash, plan_hash, .. } => {
                    (*workflow_hash, *plan_hash) = Default::default();
                }
                Record::BranchTaken { instance, block: Some(block) } => {
                    let branches = plan.step(instance.step).work.branches();
                    *block = branches.iter().position(|(_, own)| own == block).unwrap_or_default() as u32;
                }
                Record::Migrated { .. } => plan = new,
                _ => {}
            }
            all.push((frame.now, format!("{record:?}")));
        }
    }
    all
}
