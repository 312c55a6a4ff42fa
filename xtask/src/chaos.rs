//! Real processes under faults, for a chosen time: several nodes with a real PostgreSQL, and one server on an embedded
//! store.

use crate::cargo;
use std::path::Path;

/// The tests, by file and name. Every landing runs them for some seconds.
const TESTS: [(&str, &str); 2] =
    [("nodes", "every_execution_ends_under_all_faults"), ("embedded_chaos", "acknowledged_work_survives")];

/// Runs the tests one after the other, each for its share of the minutes, in cargo's default profile.
pub(crate) fn run(root: &Path, minutes: u32) -> Result<String, String> {
    let seconds = u64::from(minutes) * 60 / TESTS.len() as u64;
    for (file, name) in TESTS {
        let mut test = cargo::command();
        test.args(["test", "-p", "mainspring", "--test", file, name, "--", "--nocapture"]);
        test.env("MAINSPRING_CHAOS_SECONDS", seconds.to_string()).current_dir(root);
        match test.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("The test `{file}` failed ({status}). Its output is above.")),
            Err(error) => return Err(format!("cargo cannot be started: {error}.")),
        }
    }
    Ok(format!("{minutes} minutes of faults, and every execution ended."))
}
