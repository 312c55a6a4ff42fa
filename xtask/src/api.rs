//! Sends generated requests to a running server and compares the responses with its OpenAPI description.

use crate::cargo;
use std::path::Path;
use std::process::Command;

/// The test that runs Schemathesis.
const TEST: [&str; 8] = ["test", "-p", "mainspring", "--test", "server", "outside", "--", "--ignored"];

/// The program that generates the requests, and the command that installs it.
const PROGRAM: &str = "schemathesis";
const INSTALL: &str = "python3 -m pip install schemathesis";

/// Runs the test with this number of cases per operation and run.
pub(crate) fn run(root: &Path, cases: u32) -> Result<String, String> {
    let program = std::env::var("MAINSPRING_SCHEMATHESIS").unwrap_or_else(|_| PROGRAM.to_owned());
    let version = Command::new(&program).arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err(format!(
            "`{program}` is missing (it generates the requests): {INSTALL}, or set MAINSPRING_SCHEMATHESIS to its path."
        ));
    }
    let mut test = cargo::command();
    test.args(TEST).arg("--nocapture").current_dir(root);
    test.env("MAINSPRING_API_CASES", cases.to_string()).env("MAINSPRING_SCHEMATHESIS", program);
    match test.status() {
        Ok(status) if status.success() => Ok("Every response was documented.".to_owned()),
        Ok(status) => Err(format!("The test failed ({status}). Its output is above.")),
        Err(error) => Err(format!("cargo cannot be started: {error}.")),
    }
}
