//! The flags of `workflow`, as the first specification defines them.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use mainspring_kernel::plan::Decision;

use crate::{
    error::{CliError, Exit},
    scripts::ScriptFlags,
};

/// Run one workflow durably, with JSON on standard streams.
#[derive(Debug, Parser)]
#[command(name = "workflow", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Execute a workflow; the request is read from standard input
    Run(Run),
    /// Decide an open approval, and resume the execution
    Resume(Resume),
    /// Check a definition without executing it
    Validate(Validate),
    /// Propose a change to a workflow
    Propose(Propose),
    /// Perform the scripts of an execution of a server, which speaks on standard streams
    Serve(Serve),
}

/// Execute a workflow.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The execution id; an existing execution is resumed
    #[arg(long, value_name = "ID")]
    pub(super) execution_id: String,
    /// The hash that the definition must have, with or without `sha256:`
    #[arg(long, value_name = "SHA256")]
    pub(super) workflow_hash: String,
    /// The workspace of the steps
    #[arg(long, value_name = "PATH")]
    pub(super) workspace: PathBuf,
    /// Timeout of the execution in milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout_ms: Option<u64>,
    /// Maximum steps, containers and nested steps included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_steps: Option<u32>,
    /// Maximum concurrent branches
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_parallel: Option<u32>,
    /// The folder of journals, with a folder per execution [default: $XDG_STATE_HOME/workflow]
    #[arg(long, value_name = "DIR")]
    pub(super) state_dir: Option<PathBuf>,
}

/// Continue an execution.
#[derive(Debug, Args)]
pub(super) struct Resume {
    /// The id of an execution with an open approval
    #[arg(long, value_name = "ID")]
    pub(super) execution_id: String,
    /// The resume token of the approval
    #[arg(long, value_name = "TOKEN")]
    pub(super) resume_token: String,
    /// The decision: approve or deny
    #[arg(long, value_name = "DECISION", default_value = "approve", value_parser = decision())]
    pub(super) decision: Decision,
    /// The folder of journals, with a folder per execution [default: $XDG_STATE_HOME/workflow]
    #[arg(long, value_name = "DIR")]
    pub(super) state_dir: Option<PathBuf>,
}

/// Check a definition.
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The definition's file, JSON or YAML
    #[arg(long, value_name = "PATH", required_unless_present = "workflow_json", conflicts_with = "workflow_json")]
    pub(super) workflow_path: Option<PathBuf>,
    /// `-` for a definition on standard input
    #[arg(long, value_name = "-", allow_hyphen_values = true, value_parser = ["-"])]
    pub(super) workflow_json: Option<String>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(super) strict: bool,
}

/// Propose a change.
#[derive(Debug, Args)]
pub(super) struct Propose {
    /// The workflow
    #[arg(long, value_name = "ID")]
    pub(super) workflow_id: String,
    /// The hash that the change is based on
    #[arg(long, value_name = "SHA256")]
    pub(super) base_hash: String,
    /// The intended change
    #[arg(long, value_name = "TEXT")]
    pub(super) intent: String,
}

/// Perform scripts for a server.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The workspace of scripts that come without one [default: an empty folder]
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    #[command(flatten)]
    pub(super) scripts: ScriptFlags,
}

/// The result of parsing a command line.
pub(super) enum Parsed {
    Command(Command),
    Shown(Exit),
    /// The arguments are invalid.
    Refused(CliError),
}

impl Command {
    /// The execution that the command names.
    pub(super) fn execution_id(&self) -> Option<&str> {
        match self {
            Self::Run(run) => Some(&run.execution_id),
            Self::Resume(resume) => Some(&resume.execution_id),
            Self::Validate(_) | Self::Propose(_) | Self::Serve(_) => None,
        }
    }
}

pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Parsed {
    let parsed = CommandLine::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| CommandLine::from_arg_matches(&matches));
    let error = match parsed {
        Ok(line) => return Parsed::Command(line.command),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            show(&error.render());
            Parsed::Shown(Exit::Fine)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            show(&CommandLine::command().render_help());
            Parsed::Shown(Exit::Fine)
        }
        _ => Parsed::Refused(CliError::arguments(&error)),
    }
}

/// Write errors are ignored, since the reader may close the pipe, as in `workflow --help | head -1`.
fn show(text: &clap::builder::StyledStr) {
    use std::io::Write;
    let _ = write!(std::io::stdout().lock(), "{text}");
}

fn decision() -> impl clap::builder::TypedValueParser<Value = Decision> {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(["approve", "deny"])
        .map(|word| Decision::parse(&word).expect("only the words of decisions are let through"))
}
