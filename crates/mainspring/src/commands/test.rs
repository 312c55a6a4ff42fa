//! `mainspring test`: runs scenario files on virtual time.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_sim::{CaseReport, run_case, scenario};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::{dim, print_out, status, waits},
    output::text::{one_line, shown},
};

/// Run scenarios.
///
/// Each case runs in four modes, which must give the same result and the same journal: straight, with a crash before
/// every input, with every input twice, and with every input once more at the end. `mainspring explain scenario` has the
/// format.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files, or folders that are searched for *.scenario.json and *.scenario.yaml
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Show the journal of every case
    #[arg(long, short)]
    verbose: bool,
}

/// Runs every case in every mode. First every file must be readable.
pub(crate) fn test(test: &Test, context: &Context) -> Result<Exit, CliError> {
    let unreadable = |error: scenario::Unreadable| CliError::bad_input("bad_scenario", error.to_string());
    let files = scenario::find(&test.paths).map_err(unreadable)?;
    let mut cases = Vec::new();
    for file in &files {
        let read = scenario::read(file).map_err(unreadable)?;
        cases.extend(read.into_iter().map(|case| (file, case)));
    }
    if let Some(only) = &test.only {
        cases.retain(|(_, case)| case.name.contains(only));
    }
    if cases.is_empty() {
        return Err(CliError::bad_input(
            "no_scenarios",
            "no cases were found; a scenario is a file named *.scenario.json or *.scenario.yaml",
        ));
    }
    let failed = cases.iter().filter(|(file, case)| !show_case(file, &run_case(case), test.verbose, context)).count();
    if !context.global.json {
        print_out!("\n{} passed, {failed} failed", cases.len() - failed);
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::NotSo })
}

/// Prints the result of a case. Returns true if all expectations hold.
pub(super) fn show_case(file: &Path, report: &CaseReport, verbose: bool, context: &Context) -> bool {
    let holds = report.holds();
    if context.global.json {
        let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>();
        let line = Value::map([
            ("name", report.name.as_str().into()),
            ("ok", holds.into()),
            ("failures", texts(&report.failures).into()),
            ("warnings", texts(&report.warnings).into()),
        ]);
        print_out!("{}", compact(&line));
        return holds;
    }
    let word = if holds { status("ok") } else { status("failed") };
    let modes = match report.modes.len() {
        0 => String::new(),
        1 => "1 mode, ".to_string(),
        modes => format!("{modes} modes, "),
    };
    print_out!("{word}  {}  {}", shown(&report.name), dim(&format!("{modes}{}", shown(&file.display().to_string()))));
    for failure in &report.failures {
        print_out!("{}", indent(failure));
    }
    for warning in &report.warnings {
        print_out!("      {} {}", waits("warning:"), one_line(warning));
    }
    if let Some(mode) = report.modes.first().filter(|_| verbose) {
        print_out!("{}", indent(&mode.picture));
    }
    holds
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("      {}", shown(line))).collect::<Vec<_>>().join("\n")
}
