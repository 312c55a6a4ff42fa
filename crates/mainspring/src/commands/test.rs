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

/// Most names of cases with the same failures.
const NAMES_SHOWN_MAX: usize = 10;

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
    show_as(&report.name, file, report);
    if let Some(mode) = report.modes.first().filter(|_| verbose) {
        print_out!("{}", indent(&mode.picture));
    }
    holds
}

/// Prints the cases that fail, those with the same failures together.
pub(super) fn show_failed(file: &Path, reports: &[CaseReport]) {
    for (report, names) in failed_groups(reports) {
        show_as(&names, file, report);
    }
}

/// The cases that fail: each with the names of all that have the same failures.
fn failed_groups(reports: &[CaseReport]) -> Vec<(&CaseReport, String)> {
    let mut groups: Vec<(&CaseReport, Vec<&str>)> = Vec::new();
    for report in reports.iter().filter(|report| !report.holds()) {
        let is_same = |first: &CaseReport| first.failures == report.failures && first.warnings == report.warnings;
        match groups.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, names)) => names.push(&report.name),
            None => groups.push((report, vec![&report.name])),
        }
    }
    let listed = |names: &[&str]| match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMES_SHOWN_MAX].join(", ")),
    };
    groups.iter().map(|(report, names)| (*report, listed(names))).collect()
}

/// Prints a result under a name.
fn show_as(name: &str, file: &Path, report: &CaseReport) {
    let word = if report.holds() { status("ok") } else { status("failed") };
    let modes = match report.modes.len() {
        0 => String::new(),
        1 => "1 mode, ".to_string(),
        modes => format!("{modes} modes, "),
    };
    print_out!("{word}  {}  {}", shown(name), dim(&format!("{modes}{}", shown(&file.display().to_string()))));
    for failure in &report.failures {
        print_out!("{}", indent(failure));
    }
    for warning in &report.warnings {
        print_out!("      {} {}", waits("warning:"), one_line(warning));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("      {}", shown(line))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_with_the_same_failures_are_one_group() {
        let report = |name: &str, failures: &[&str]| CaseReport {
            name: name.into(),
            why: String::new(),
            modes: Vec::new(),
            failures: failures.iter().map(ToString::to_string).collect(),
            warnings: Vec::new(),
        };
        let reports = [
            report("a", &["unknown_type"]),
            report("b", &[]),
            report("c", &["the status is failed"]),
            report("d", &["unknown_type"]),
        ];
        let names: Vec<String> = failed_groups(&reports).into_iter().map(|(_, names)| names).collect();
        assert_eq!(names, ["a, d", "c"]);
        let many: Vec<CaseReport> = (0..12).map(|number| report(&format!("n{number}"), &["same"])).collect();
        let groups = failed_groups(&many);
        assert!(groups.len() == 1 && groups[0].1.ends_with("n9 and 2 more"), "{}", groups[0].1);
    }
}
