//! The command line `workflow`, which runs one execution inside of a sandbox, with JSON on standard streams.
//!
//! The contract is section 6 of the first specification: a request on standard input, one envelope on standard
//! output, progress as NDJSON on standard error, and exit codes. Every command except `--help`, `--version` and `serve`
//! prints an envelope.

mod arguments;
mod claim;
mod payload;
mod propose;
mod resume;
mod run;
mod serve;
mod validate;

use std::{ffi::OsString, io::Write, path::PathBuf};

use mainspring_engine::{data_dir::DataDir, envelope};
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    error::{CliError, Exit},
    output::text::shown,
    paths,
};
use arguments::{Command, Parsed};

/// The result of a command: the exit code and the envelope.
type Answer = (Exit, Value);

/// Runs the command line, and prints its envelope on standard output.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let (exit, envelope) = match arguments::parse(arguments) {
        Parsed::Shown(exit) => return exit,
        Parsed::Refused(error) => refused(None, &error),
        Parsed::Command(command) => {
            let execution_id = command.execution_id().map(ToString::to_string);
            match obey(command) {
                Ok((exit, Some(envelope))) => (exit, envelope),
                Ok((exit, None)) => return exit,
                Err(error) => refused(execution_id.as_deref(), &error),
            }
        }
    };
    // A closed pipe does not change the result.
    let _ = writeln!(std::io::stdout().lock(), "{}", compact(&envelope));
    exit
}

/// Carries out a command. Without an envelope, standard output belongs to the command.
fn obey(command: Command) -> Result<(Exit, Option<Value>), CliError> {
    let (exit, envelope) = match command {
        Command::Run(run) => run::run(&run)?,
        Command::Resume(resume) => resume::resume(&resume)?,
        Command::Validate(validate) => validate::validate(&validate)?,
        Command::Propose(propose) => propose::propose(&propose),
        Command::Serve(serve) => return Ok((serve::serve(&serve), None)),
    };
    Ok((exit, Some(envelope)))
}

fn refused(execution_id: Option<&str>, error: &CliError) -> Answer {
    say(&error.failure.message);
    (error.exit, envelope::of_refusal(execution_id, &error.failure))
}

/// Prints a message on standard error. Every line has a prefix, because a line that starts with `{` would be parsed
/// as an event.
fn say(message: &str) {
    let marked = message.trim_end().lines().map(|line| format!("workflow: {}\n", shown(line)));
    let _ = write!(std::io::stderr().lock(), "{}", marked.collect::<String>());
}

/// The data folder of one execution. Its name is the execution id with other characters percent-encoded: two ids
/// never share a folder, and no id is a path to another folder.
fn home(state_dir: Option<&PathBuf>, execution_id: &str) -> Result<DataDir, CliError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name: String = execution_id
        .bytes()
        .enumerate()
        .map(|(at, byte)| {
            if plain(byte) || (byte == b'.' && at > 0) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        })
        .collect();
    if name.is_empty() || name.len() > EXECUTION_ID_BYTES_MAX {
        let message = format!("--execution-id: a name of 1 to {EXECUTION_ID_BYTES_MAX} bytes, please");
        return Err(CliError::bad_input("bad_execution_id", message));
    }
    Ok(DataDir::new(base(state_dir)?.join(name)))
}

/// The folder that contains the data folders of all executions.
fn base(state_dir: Option<&PathBuf>) -> Result<PathBuf, CliError> {
    state_dir.map_or_else(|| Ok(paths::state_home()?.join("workflow")), |given| Ok(given.clone()))
}

/// The file name limit of common file systems, less room for suffixes.
const EXECUTION_ID_BYTES_MAX: usize = 200;

/// Runs a future on a runtime of one thread.
fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::internal("no_runtime", error.to_string()))?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_execution_has_a_folder_of_its_own() {
        let base = PathBuf::from("/s");
        let folder = |id: &str| home(Some(&base), id).map(|home| home.folder().display().to_string());
        for (id, expected) in [
            ("ex_1", "/s/ex_1"),
            ("../x", "/s/%2E.%2Fx"),
            ("..", "/s/%2E."),
            ("a.b", "/s/a.b"),
            ("a b/é", "/s/a%20b%2F%C3%A9"),
        ] {
            assert_eq!(folder(id).unwrap(), expected);
        }
        assert!(folder("").is_err() && folder(&"x".repeat(300)).is_err());
    }
}
