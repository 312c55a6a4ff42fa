//! Runs the seeds of a simulator with a seeded bug, one process per seed, up to the first that fails.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const TEST: &str = "random_cluster_runs_keep_all_rules";
const SEEDS_VARIABLE: &str = "MAINSPRING_SEEDS";

/// This variable is unset, since the seeds of the table are for the default number of executions.
const SIZE_VARIABLE: &str = "MAINSPRING_EXECUTIONS";

/// Time limit of a seed, which usually takes a tenth of a second. A seed without progress fails by itself, so only an
/// endless loop takes longer.
const SEED_TAKES_AT_MOST: Duration = Duration::from_secs(60);

/// The seed that finds a bug, with its message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) seed: u64,
    pub(super) why: String,
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "seed {}: {}", self.seed, self.why)
    }
}

/// Returns the first seed whose tests fail or time out.
pub(super) fn first(program: &Path, seeds: Range<u64>) -> Result<Option<Found>, String> {
    for seed in seeds {
        let mut command = Command::new(program);
        command.args([TEST, "--exact"]).env_remove(SIZE_VARIABLE).env(SEEDS_VARIABLE, format!("{seed}..{}", seed + 1));
        if let Some(why) = run(&mut command, seed, SEED_TAKES_AT_MOST)? {
            return Ok(Some(Found { seed, why }));
        }
    }
    Ok(None)
}

/// Runs a seed and returns its failure; `None` if it passes.
fn run(command: &mut Command, seed: u64, at_most: Duration) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("The simulator cannot be run: {error}.");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    let mut stdout = child.stdout.take().ok_or("The simulator has no output.")?;
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.read_to_end(&mut bytes);
        // After a timeout the receiver was dropped.
        let _ = sender.send(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()));
    });
    let said = receiver.recv_timeout(at_most);
    if said.is_err() {
        child.kill().map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let _ = reader.join();
    match said {
        Err(_) => Ok(Some(format!("it hangs: no end within {} s", at_most.as_secs()))),
        Ok(_) if status.success() => Ok(None),
        Ok(said) => Ok(Some(why(&said.map_err(failed)?, seed).unwrap_or_else(|| format!("it ended with {status}")))),
    }
}

/// Extracts the message of a seed from the output of the simulator.
fn why(said: &str, seed: u64) -> Option<String> {
    let prefix = format!("seed {seed}: ");
    said.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{run, why};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn the_message_of_the_seed_is_found() {
        let said = "running 1 test\nthread panicked\n1 seeds:\nseed 12: at 5 ms: made before\nseed 13: more\n";
        assert_eq!(why(said, 12).as_deref(), Some("at 5 ms: made before"));
        assert_eq!(why(said, 1), None);
    }

    #[test]
    fn a_seed_passes_fails_breaks_off_or_hangs() {
        let check = |script: &str, at_most, expected: Option<&str>| {
            let why = run(Command::new("bash").args(["-c", script]), 1, at_most).unwrap();
            assert_eq!(why.as_deref(), expected, "{script}");
        };
        let minute = Duration::from_secs(60);
        check("true", minute, None);
        check("echo 'seed 1: lost'; exit 101", minute, Some("lost"));
        check("exit 3", minute, Some("it ended with exit status: 3"));
        check("exec tail -f /dev/null", Duration::from_millis(1), Some("it hangs: no end within 0 s"));
    }
}
