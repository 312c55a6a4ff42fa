//! The checks that a change must pass before it lands: steps in order, each with its time, up to the first failure.

use crate::{cargo, conformance, console, need, test_run, tidy};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The variable that names the folder with the given conformance cases.
const CASES_VARIABLE: &str = "MAINSPRING_CASES";

/// The folder with the cases if the variable is not set, from the root of the repository.
const CASES_DEFAULT: &str = "../shared/cases";

/// One step of a landing.
struct Step {
    name: &'static str,
    work: Work,
}

/// The work of a step.
enum Work {
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// All tests: a test that hangs fails by name.
    Tests,
    Tidy,
    /// Compares the cases with the given ones, where those are.
    Conformance,
    /// Compares the build of the console with its source, where npm is installed.
    Console,
}

const STEPS: [Step; 7] = [
    Step { name: "format", work: Work::Cargo(&["fmt", "--check"]) },
    Step { name: "tidy", work: Work::Tidy },
    Step { name: "console", work: Work::Console },
    Step { name: "clippy", work: Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]) },
    // Tests need more features of dependencies. The executables must build without those.
    Step { name: "check", work: Work::Cargo(&["check", "--workspace", "--bins"]) },
    Step { name: "test", work: Work::Tests },
    Step { name: "conformance", work: Work::Conformance },
];

/// The values of `--only`.
pub(crate) fn step_names() -> [&'static str; STEPS.len()] {
    STEPS.each_ref().map(|step| step.name)
}

/// Runs all steps, or the named one. The error names the failed step and the command that repeats it alone.
pub(crate) fn run(root: &Path, only: Option<&str>) -> Result<String, String> {
    let missing = need::missing();
    if !missing.is_empty() {
        return Err(missing.join("\n"));
    }
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| only.is_none_or(|name| name == step.name)).collect();
    run_steps(&chosen, &mut io::stderr(), |step| perform(root, step))
}

fn run_steps(
    steps: &[&Step],
    terminal: &mut dyn Write,
    mut perform: impl FnMut(&Step) -> (Result<String, String>, Duration),
) -> Result<String, String> {
    for step in steps {
        // A closed terminal does not stop the tests.
        let _ = writeln!(terminal, "==> {}: {}", step.name, step.work.as_command());
        let (outcome, took) = perform(step);
        let seconds = took.as_secs_f64();
        match outcome {
            Ok(sentence) => {
                let _ = writeln!(terminal, "{sentence}\n    {} passed in {seconds:.1} s", step.name);
            }
            Err(report) => {
                let alone = format!("Run it alone: cargo xtask test --only {}", step.name);
                return Err(format!("{report}\n    {} failed after {seconds:.1} s. {alone}", step.name));
            }
        }
    }
    Ok("Everything passed.".to_owned())
}

fn perform(root: &Path, step: &Step) -> (Result<String, String>, Duration) {
    let started = Instant::now();
    let outcome = match step.work {
        Work::Cargo(arguments) => cargo(root, arguments),
        Work::Tests => test_run::run(root),
        Work::Tidy => tidy::run(root),
        Work::Console => console::check_if_possible(root),
        Work::Conformance => compare_cases(root, std::env::var_os(CASES_VARIABLE).map(PathBuf::from)),
    };
    (outcome, started.elapsed())
}

impl Work {
    fn as_command(&self) -> String {
        match self {
            Work::Cargo(arguments) => format!("cargo {}", arguments.join(" ")),
            Work::Tests => "cargo test --workspace".to_owned(),
            Work::Tidy => "cargo xtask tidy".to_owned(),
            Work::Console => "cargo xtask console".to_owned(),
            Work::Conformance => "cargo xtask conformance --against DIR".to_owned(),
        }
    }
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String, String> {
    match cargo::command().args(arguments).current_dir(root).status() {
        Ok(status) if status.success() => Ok(String::new()),
        Ok(status) => Err(format!("cargo {} ended with {status}.", arguments.join(" "))),
        Err(error) => Err(format!("cargo cannot be run: {error}.")),
    }
}

/// Compares the cases with the given ones. A missing folder is an error only if the variable names it.
fn compare_cases(root: &Path, named: Option<PathBuf>) -> Result<String, String> {
    let is_named = named.is_some();
    let folder = root.join(named.unwrap_or_else(|| PathBuf::from(CASES_DEFAULT)));
    match (folder.is_dir(), is_named) {
        (true, _) => conformance::run(root, &folder),
        (false, true) => Err(format!("{CASES_VARIABLE} names {}, which is no folder.", folder.display())),
        (false, false) => Ok(format!("conformance: nothing to compare with; {CASES_VARIABLE} can name a folder.")),
    }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, Step, compare_cases, run_steps, step_names};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Returns the names of the steps that were run, and the output, if the given step fails.
    fn run_where_it_fails(failing: Option<&str>) -> (Vec<&'static str>, String) {
        let mut run = Vec::new();
        let mut terminal = Vec::new();
        let steps: Vec<&Step> = STEPS.iter().collect();
        let outcome = run_steps(&steps, &mut terminal, |step| {
            run.push(step.name);
            let outcome = if Some(step.name) == failing { Err("no".to_owned()) } else { Ok("yes".to_owned()) };
            (outcome, Duration::from_millis(1_500))
        });
        assert_eq!(outcome.is_err(), failing.is_some());
        let said = String::from_utf8(terminal).unwrap() + &outcome.unwrap_or_else(|report| report);
        (run, said)
    }

    #[test]
    fn every_step_is_run_and_named_with_its_time() {
        let (run, said) = run_where_it_fails(None);
        assert_eq!(run, step_names());
        for name in step_names() {
            assert!(
                said.contains(&format!("==> {name}: cargo ")) && said.contains(&format!("{name} passed in 1.5 s")),
                "{said}"
            );
        }
    }

    #[test]
    fn the_first_failure_ends_the_run_and_prints_the_command() {
        for (index, name) in step_names().into_iter().enumerate() {
            let (run, said) = run_where_it_fails(Some(name));
            assert_eq!(run, step_names()[..=index]);
            assert!(
                said.ends_with(&format!("{name} failed after 1.5 s. Run it alone: cargo xtask test --only {name}")),
                "{said}"
            );
        }
    }

    #[test]
    fn step_names_are_unique() {
        assert_eq!(BTreeSet::from(step_names()).len(), STEPS.len());
    }

    #[test]
    fn conformance_cases_are_compared_if_present() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().join("main");
        fs::create_dir_all(root.join("conformance")).unwrap();
        let said = |named: Option<&str>| compare_cases(&root, named.map(PathBuf::from));
        assert!(said(None).unwrap().contains("nothing to compare"));
        assert!(said(Some("absent")).unwrap_err().contains("no folder"));
        let given = root.join("../shared/cases");
        fs::create_dir_all(&given).unwrap();
        fs::write(given.join("a.json"), "{}").unwrap();
        assert!(said(None).unwrap_err().contains("missing: a.json"));
        fs::write(root.join("conformance/a.json"), "{}").unwrap();
        assert!(said(None).unwrap().contains("all as given"));
    }
}
