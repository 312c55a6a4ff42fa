//! Real nodes and a real PostgreSQL under blows, for as long as somebody likes.

use std::path::Path;
use std::process::Command;

/// The test that does it: a minute of it runs in every landing.
const TEST: [&str; 8] = ["test", "-p", "mainspring", "--test", "nodes", "whatever_befalls", "--", "--nocapture"];

/// Runs the test for so many minutes, in the profile that cargo builds by itself.
pub(crate) fn run(root: &Path, minutes: u32) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let seconds = u64::from(minutes) * 60;
    let mut test = Command::new(cargo);
    test.args(TEST).env("MAINSPRING_CHAOS_SECONDS", seconds.to_string()).current_dir(root);
    match test.status() {
        Ok(status) if status.success() => Ok(format!("{minutes} minutes of blows, and every execution ended.")),
        Ok(status) => Err(format!("The test has failed ({status}). What it said stands above.")),
        Err(error) => Err(format!("cargo cannot be started: {error}.")),
    }
}
