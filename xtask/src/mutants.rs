//! Mutates files with `cargo mutants`, and lists the mutants that no test detects.

use crate::cargo;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The output folder of the tool, which git ignores.
const OUTPUT: &str = "target/mutants";

const INSTALL: &str = "cargo install --locked cargo-mutants";

/// The default files, as globs: `decide` and `apply`, on which the correctness of every journal depends.
const USUAL_FILES: [&str; 2] = ["crates/kernel/src/{apply,decide}.rs", "crates/kernel/src/{apply,decide}/*.rs"];

/// Mutants of the kernel are tested by the kernel and the simulator, others by their own crate.
const KERNEL: &str = "crates/kernel/";
const THOROUGH_TESTS: [&str; 3] = ["--iterate", "--test-package=mainspring-kernel", "--test-package=mainspring-sim"];

/// The kernel's tests that detect most mutants within two seconds. Only mutants that they miss are tested by all
/// others, which take half a minute each.
const QUICK_TESTS: [&str; 8] = [
    "--test-package=mainspring-kernel",
    "--shuffle",
    "--cargo-arg=--lib",
    "--cargo-arg=--test=generated",
    "--cargo-arg=--test=decide",
    "--cargo-arg=--test=apply",
    "--cargo-arg=--test=journals",
    "--cargo-arg=--test=rounds",
];
const QUICK_SEEDS: (&str, &str) = ("MAINSPRING_SEEDS", "150");

/// The decision record that lists the equivalent mutants.
const EXPLAINED: &str = "docs/decisions/0023-four-equivalent-mutants-of-the-kernel.md";

/// Runs the tool over the given files, which are paths from the root, or over the default files.
pub(crate) fn run(root: &Path, files: &[String]) -> Result<String, String> {
    if let Some(absent) = files.iter().find(|file| !root.join(file).is_file()) {
        return Err(format!("There is no file {absent}. Files are named from the root of the repository."));
    }
    let asked = cargo::command().args(["mutants", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !asked.is_ok_and(|status| status.success()) {
        return Err(format!("cargo mutants is not installed. Install it with: {INSTALL}"));
    }
    fs::create_dir_all(root.join(OUTPUT)).map_err(|error| format!("{OUTPUT} cannot be created: {error}."))?;
    let is_kernel = files.iter().all(|file| file.starts_with(KERNEL));
    if is_kernel {
        let quick = ask(cargo::command().args(arguments(files, &QUICK_TESTS)).env(QUICK_SEEDS.0, QUICK_SEEDS.1), root)?;
        // Only mutants that the quick run missed are tested again, not those that it could not test.
        if !matches!(quick, Some(0 | 2 | 3)) {
            return verdict(quick, "");
        }
    }
    let code = ask(cargo::command().args(arguments(files, if is_kernel { &THOROUGH_TESTS } else { &[] })), root)?;
    let missed = fs::read_to_string(root.join(OUTPUT).join("mutants.out/missed.txt")).unwrap_or_default();
    verdict(code, &missed)
}

fn ask(command: &mut Command, root: &Path) -> Result<Option<i32>, String> {
    let status =
        command.current_dir(root).status().map_err(|error| format!("cargo mutants cannot be run: {error}."))?;
    Ok(status.code())
}

fn arguments<'a>(files: &'a [String], tests: &[&'a str]) -> Vec<&'a str> {
    let files: Vec<&str> =
        if files.is_empty() { USUAL_FILES.to_vec() } else { files.iter().map(String::as_str).collect() };
    let mut arguments = vec!["mutants", "--output", OUTPUT];
    arguments.extend(tests);
    arguments.extend(files.iter().flat_map(|file| ["--file", file]));
    arguments
}

/// Interprets the exit code of the tool. Code 3 means that a mutant made a test hang, which counts as detected. The
/// tool then does not report missed mutants by its exit code, so `missed` is checked too.
fn verdict(code: Option<i32>, missed: &str) -> Result<String, String> {
    match (code, missed.lines().count()) {
        (Some(0 | 3), 0) => Ok("mutants: every mutant was caught.".to_owned()),
        (Some(2 | 3), count) => Err(format!(
            "{missed}mutants: {count} not caught by any test. Each is a missing test, unless {EXPLAINED} explains why it changes nothing."
        )),
        (Some(4), _) => Err("mutants: tests fail already without a break; fix them first.".to_owned()),
        (code, _) => {
            let code = code.map_or("a signal".to_owned(), |code| format!("code {code}"));
            Err(format!("mutants: cargo mutants ended with {code}; see its output above."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXPLAINED, arguments, run, verdict};
    use std::path::Path;

    #[test]
    fn each_file_is_an_argument() {
        let check = |files: &[&str], tests: &[&str], expected: &str| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            assert_eq!(arguments(&files, tests).join(" "), format!("mutants --output target/mutants {expected}"));
        };
        check(&["a.rs", "b.rs"], &[], "--file a.rs --file b.rs");
        check(&["a.rs"], &["--iterate", "--test-package=b"], "--iterate --test-package=b --file a.rs");
        let [files, folders] = ["crates/kernel/src/{apply,decide}.rs", "crates/kernel/src/{apply,decide}/*.rs"];
        check(&[], &[], &format!("--file {files} --file {folders}"));
    }

    #[test]
    fn a_missing_file_is_a_failure() {
        let empty = tempfile::tempdir().unwrap();
        assert!(run(empty.path(), &["a.rs".to_owned()]).unwrap_err().contains("no file a.rs"));
    }

    #[test]
    fn missed_mutants_are_reported_and_timeouts_count_as_caught() {
        let one = "a.rs:1:1: replace f with ()\n";
        let check = |code, missed, expected: Result<(), &str>| match (verdict(code, missed), expected) {
            (Ok(_), Ok(())) => {}
            (Err(told), Err(words)) => assert!(told.contains(words), "{told}"),
            (told, _) => panic!("{code:?}: {told:?}"),
        };
        check(Some(0), "", Ok(()));
        check(Some(3), "", Ok(()));
        check(Some(2), one, Err("a.rs:1:1: replace f with ()\nmutants: 1 not caught"));
        check(Some(3), one, Err("mutants: 1 not caught"));
        check(Some(4), "", Err("without a break"));
        check(Some(1), "", Err("code 1"));
        check(None, "", Err("a signal"));
    }

    #[test]
    fn the_documentation_page_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(root.join(EXPLAINED).is_file());
    }
}
