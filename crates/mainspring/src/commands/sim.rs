//! `mainspring sim`: runs scenario files on several simulated nodes, with faults that are drawn from seeds.

use std::{
    collections::BTreeMap,
    ops::Range,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint, builder::PossibleValuesParser, value_parser};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_sim::{
    cluster::Size,
    scenario::{self, Case},
    simulate::{Fault, SeedReport, Simulation},
};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::{dim, print_err, print_out, status, waits},
    output::text::{counted, one_line, shown},
};

/// Run scenarios on simulated nodes with injected faults
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Files, or folders that are searched for *.scenario.json and *.scenario.yaml
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The number of seeds from 0, or a range FROM..TO
    #[arg(long, value_name = "SEEDS", default_value = "20", value_parser = seeds)]
    seeds: Range<u64>,
    /// Concurrent executions per seed
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = value_parser!(u32).range(1..=1_000))]
    executions: u32,
    /// Nodes that share the simulated store
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = value_parser!(u8).range(1..=16))]
    nodes: u8,
    /// Partitions of the simulated store
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = value_parser!(u32).range(1..=256))]
    partitions: u32,
    /// Only this fault; repeatable [default: a mixture drawn from each seed]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Fault::ALL.map(|(name, _)| name)))]
    fault: Vec<String>,
    /// Show every seed, not only failed ones
    #[arg(long, short)]
    verbose: bool,
}

/// Seeds of one command.
const SEEDS_MAX: u64 = 1_000_000;

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = match text.split_once("..") {
        Some((from, to)) => from.parse().ok().zip(to.parse().ok()).map(|(from, to)| from..to),
        None => text.parse().ok().map(|count| 0..count),
    };
    let range = range.filter(|range| !range.is_empty() && range.end - range.start <= SEEDS_MAX);
    range.ok_or_else(|| format!("write a number from 1 to {SEEDS_MAX}, or a range such as 100..200"))
}

/// A case with its file.
struct Simulated {
    file: PathBuf,
    name: String,
    simulation: Simulation,
}

/// Runs every seed of every case. First each case must end without faults.
pub(crate) fn sim(sim: &Sim, context: &Context) -> Result<Exit, CliError> {
    let unreadable = |error: scenario::Unreadable| CliError::bad_input("bad_scenario", error.to_string());
    let (mut simulated, mut refused) = (Vec::new(), Vec::new());
    for file in scenario::find(&sim.paths).map_err(unreadable)? {
        for case in scenario::read(&file).map_err(unreadable)? {
            if is_asked_for(sim, &case) {
                match prepared(&file, &case) {
                    Ok(case) => simulated.push(case),
                    Err(why) => refused.push(why),
                }
            }
        }
    }
    if simulated.is_empty() && refused.is_empty() {
        let message = "no cases were found that could be simulated; a scenario is a file named *.scenario.json or \
                       *.scenario.yaml, and cases with `accepted: false` run nowhere";
        return Err(CliError::bad_input("no_scenarios", message));
    }
    let failed = simulated.iter().filter(|simulated| !run(simulated, sim, context)).count();
    if !context.global.json && !simulated.is_empty() {
        let others = if refused.is_empty() { String::new() } else { format!(", {} not simulated", refused.len()) };
        print_out!("\n{} passed, {failed} failed{others}", simulated.len() - failed);
    }
    // A case that cannot be simulated does not stop the others. It is the result if none of them failed.
    match (failed, refused.is_empty()) {
        (0, true) => Ok(Exit::Fine),
        (0, false) => Err(CliError::bad_input("bad_scenario", refused.join("\n"))),
        _ => {
            refused.iter().for_each(|why| print_err!("{}", shown(why)));
            Ok(Exit::NotSo)
        }
    }
}

fn is_asked_for(sim: &Sim, case: &Case) -> bool {
    let is_named = sim.only.as_ref().is_none_or(|only| case.name.contains(only));
    is_named && case.expect.accepted != Some(false)
}

/// Returns the simulation of a case, or the reason why there is none.
fn prepared(file: &Path, case: &Case) -> Result<Simulated, String> {
    let simulation = Simulation::of(case)
        .map_err(|why| format!("{}: {:?} cannot be simulated: {why}", file.display(), case.name))?;
    Ok(Simulated { file: file.into(), name: case.name.clone(), simulation })
}

/// Runs the seeds of a case and prints the result. Returns true if all pass.
fn run(simulated: &Simulated, sim: &Sim, context: &Context) -> bool {
    let size = Size { executions: sim.executions, nodes: sim.nodes.into(), partitions: sim.partitions };
    let is_asked = |name: &str| sim.fault.iter().any(|asked| asked == name);
    let faults: Vec<Fault> =
        Fault::ALL.into_iter().filter(|(name, _)| is_asked(name)).map(|(_, fault)| fault).collect();
    let (mut executions, mut calls, mut failed) = (0, 0, 0);
    let mut repeated: BTreeMap<String, u64> = BTreeMap::new();
    for seed in sim.seeds.clone() {
        let report = catch_unwind(|| simulated.simulation.run(seed, size, &faults));
        let report = report.unwrap_or_else(|_| SeedReport {
            seed,
            executions: 0,
            calls: 0,
            repeated: BTreeMap::new(),
            failures: vec!["the simulation panicked (see above): please report it with this seed".into()],
        });
        executions += report.executions;
        calls += report.calls;
        failed += u64::from(!report.failures.is_empty());
        for (step, times) in &report.repeated {
            *repeated.entry(step.clone()).or_default() += times;
        }
        show_seed(&report, simulated, sim, context);
    }
    if !context.global.json {
        let word = if failed == 0 { status("ok") } else { status("failed") };
        let seeds = sim.seeds.end - sim.seeds.start;
        let counts = format!("{}, {}", counted(seeds, "seed", "seeds"), executions_and_calls(executions, calls));
        let file = shown(&simulated.file.display().to_string());
        print_out!("{word}  {}  {}", shown(&simulated.name), dim(&format!("{counts}, {file}")));
        for (step, times) in &repeated {
            let what = format!(
                "`{step}` was called again {} after it had succeeded, because a node died",
                counted(*times, "time", "times")
            );
            print_out!("      {} {}", waits("note:"), one_line(&what));
        }
    }
    failed == 0
}

fn executions_and_calls(executions: u64, calls: u64) -> String {
    format!("{}, {}", counted(executions, "execution", "executions"), counted(calls, "call", "calls"))
}

fn show_seed(report: &SeedReport, simulated: &Simulated, sim: &Sim, context: &Context) {
    let holds = report.failures.is_empty();
    if context.global.json {
        let texts: Vec<Value> = report.failures.iter().map(|text| Value::from(text.as_str())).collect();
        let repeated = report.repeated.iter().map(|(step, times)| (step.as_str(), Value::from(*times)));
        let line = Value::map([
            ("name", simulated.name.as_str().into()),
            ("seed", report.seed.into()),
            ("ok", holds.into()),
            ("expected", simulated.simulation.expected().status.into()),
            ("executions", report.executions.into()),
            ("calls", report.calls.into()),
            ("repeated", Value::map(repeated)),
            ("failures", texts.into()),
            ("reproduce", if holds { Value::Null } else { reproduce(report.seed, simulated, sim).into() }),
        ]);
        return print_out!("{}", compact(&line));
    }
    if holds && sim.verbose {
        print_out!("      seed {}: {}", report.seed, executions_and_calls(report.executions, report.calls));
    }
    if holds {
        return;
    }
    print_out!(
        "      seed {} failed; reproduce it with\n        {}",
        report.seed,
        reproduce(report.seed, simulated, sim)
    );
    for failure in report.failures.iter().take(SHOWN_MAX) {
        print_out!("{}", failure.lines().map(|line| format!("        {}", shown(line))).collect::<Vec<_>>().join("\n"));
    }
    if report.failures.len() > SHOWN_MAX {
        print_out!("        and {} more", report.failures.len() - SHOWN_MAX);
    }
}

/// Printed failures of one seed.
const SHOWN_MAX: usize = 5;

/// The command that runs one seed of one case again.
fn reproduce(seed: u64, simulated: &Simulated, sim: &Sim) -> String {
    let faults: String = sim.fault.iter().map(|name| format!(" --fault {name}")).collect();
    format!(
        "mainspring sim {} --only {} --seeds {seed}..{} --executions {} --nodes {} --partitions {}{faults}",
        quoted(&simulated.file.display().to_string()),
        quoted(&simulated.name),
        seed + 1,
        sim.executions,
        sim.nodes,
        sim.partitions,
    )
}

/// Quotes an argument for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", shown(word).replace('\'', "'\\''")),
    }
}
