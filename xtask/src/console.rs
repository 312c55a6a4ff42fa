//! The console: its checks and its tests, which npm runs in `web/`.

use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of the console, from the root of the repository.
const FOLDER: &str = "web";

/// Installs the pinned packages and runs the checks, on request with a new build before and browser tests after them.
pub(crate) fn run(root: &Path, build: bool, browser: bool) -> Result<String, String> {
    npm(root, &["ci"])?;
    if build {
        npm(root, &["run", "build"])?;
    }
    npm(root, &["run", "check"])?;
    if browser {
        npm(root, &["test"])?;
    }
    Ok("console: web/dist is the build of its source.".to_owned())
}

/// As [`run`] without options. A machine without npm, or without a way to its packages, has nothing to compare with,
/// since a build of the server needs no Node.
pub(crate) fn check_if_possible(root: &Path) -> Result<String, String> {
    let succeeds = |arguments: &[&str]| {
        let probe = Command::new("npm").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    };
    if !succeeds(&["--version"]) {
        return Ok("console: npm is not installed, so web/dist is not compared with its source.".to_owned());
    }
    if !succeeds(&["view", "vite", "version", "--fetch-retries=0"]) {
        let sentence = "console: npm reaches no registry, so web/dist is not compared with its source.";
        return Ok(sentence.to_owned());
    }
    run(root, false, false)
}

fn npm(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("npm {}", arguments.join(" "));
    match Command::new("npm").args(arguments).current_dir(root.join(FOLDER)).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` in {FOLDER}/ ended with {status}.")),
        Err(error) => Err(format!("`{command}` cannot be run: {error}. Install Node 20 or later.")),
    }
}
