//! Breaks files on purpose, by `cargo mutants`, and names the breaks that no test notices.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder for what the tool writes: one that git passes over already.
const OUTPUT: &str = "target/mutants";

const INSTALL: &str = "cargo install --locked cargo-mutants";

/// Runs the tool over the given files, which are paths from the root.
pub(crate) fn run(root: &Path, files: &[String]) -> Result<String, String> {
    if let Some(absent) = files.iter().find(|file| !root.join(file).is_file()) {
        return Err(format!("There is no file {absent}. Files are named from the root of the repository."));
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let asked =
        Command::new(&cargo).args(["mutants", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !asked.is_ok_and(|status| status.success()) {
        return Err(format!("cargo mutants is not installed. Install it with: {INSTALL}"));
    }
    fs::create_dir_all(root.join(OUTPUT)).map_err(|error| format!("{OUTPUT} cannot be made: {error}."))?;
    let status = Command::new(&cargo).args(arguments(files)).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok("mutants: every break was noticed.".to_owned()),
        Ok(status) => {
            Err(format!("mutants: not every break was noticed ({status}); see {OUTPUT}/mutants.out/missed.txt."))
        }
        Err(error) => Err(format!("cargo mutants cannot be run: {error}.")),
    }
}

fn arguments(files: &[String]) -> Vec<&str> {
    let mut arguments = vec!["mutants", "--output", OUTPUT];
    arguments.extend(files.iter().flat_map(|file| ["--file", file.as_str()]));
    arguments
}

#[cfg(test)]
mod tests {
    use super::{arguments, run};

    #[test]
    fn each_file_is_asked_for() {
        let files = ["a.rs", "b.rs"].map(str::to_owned);
        assert_eq!(arguments(&files).join(" "), "mutants --output target/mutants --file a.rs --file b.rs");
    }

    #[test]
    fn a_file_that_is_not_there_is_not_a_success() {
        let empty = tempfile::tempdir().unwrap();
        assert!(run(empty.path(), &["a.rs".to_owned()]).unwrap_err().contains("no file a.rs"));
    }
}
