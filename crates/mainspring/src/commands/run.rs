//! `mainspring run`: runs a workflow, or delegates it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainspring_kernel::{
    json,
    limits::OUTPUT_BYTES_MAX,
    plan::Constraints,
    value::{Map, Value},
};

use super::repository_flags::StartRepository;
use crate::{
    backend::contract::RunRequest,
    context::Context,
    error::{CliError, Exit},
    telemetry::Metrics,
};

/// Run a workflow.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The definition, YAML or JSON; with a server, the slug or id of a saved workflow
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// With a server: save the file first, under its name
    #[arg(long)]
    save: bool,
    /// The input, `@input`: JSON, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// A variable, `@vars.NAME`: JSON, or else text; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// A subworkflow that is not in the folder of FILE under its name; repeatable
    #[arg(long = "workflow", value_name = "FILE", value_hint = ValueHint::FilePath)]
    workflows: Vec<PathBuf>,
    /// The execution id, unique in the data folder; an existing execution is resumed
    #[arg(long, value_name = "ID", value_parser = execution_id)]
    id: Option<String>,
    /// The idempotency key; a repeated key returns the first execution
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The workspace of the steps [default: the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    repository: StartRepository,
    /// Return at once; the execution continues in the background
    #[arg(long)]
    detach: bool,
    /// Approve every approval as the owner; otherwise `mainspring approvals` lists open ones
    #[arg(long, conflicts_with = "detach")]
    yes: bool,
    /// The exit code if the execution waits for an approval
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "detach")]
    exit_code_waiting: u8,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    metrics: Metrics,
}

/// The bounds of the execution.
#[derive(Debug, Args)]
struct Bounds {
    /// Maximum steps, containers and nested steps included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Maximum attempts of effects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_calls: Option<u32>,
    /// Maximum concurrent branches
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_parallel: Option<u32>,
    /// Timeout of the execution in milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
    /// Maximum bytes of a step's output in binary form
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=OUTPUT_BYTES_MAX as i64))]
    max_output_bytes: Option<u32>,
}

pub(crate) fn run(run: &Run, context: &Context) -> Result<Exit, CliError> {
    let exit = context.backend()?.start(&RunRequest {
        workflow: &run.file,
        subworkflows: &run.workflows,
        is_saved_first: run.save,
        input: run.input.as_deref(),
        variables: variables(&run.variables)?,
        bounds: run.bounds.constraints(),
        execution_id: run.id.as_deref(),
        idempotency_key: run.idempotency_key.as_deref(),
        workspace: run.workspace.as_deref(),
        repository: run.repository.value(),
        is_detached: run.detach,
        approves_all: run.yes,
        metrics: &run.metrics,
    })?;
    Ok(if exit == Exit::Waiting { Exit::Chosen(run.exit_code_waiting) } else { exit })
}

impl Bounds {
    fn constraints(&self) -> Constraints {
        Constraints {
            max_steps: self.max_steps,
            max_parallel: self.max_parallel,
            max_calls: self.max_calls,
            max_executions: None,
            max_output_bytes: self.max_output_bytes,
            timeout_ms: self.timeout_ms,
            budget: None,
            allow_self_modification: false,
        }
    }
}

pub(super) fn variables(given: &[String]) -> Result<Map, CliError> {
    let mut variables = Map::new();
    for pair in given {
        let refused = |why: &str| CliError::bad_input("bad_variable", format!("--var {pair}: {why}"));
        let (name, text) = pair.split_once('=').ok_or_else(|| refused("write NAME=VALUE"))?;
        if !mainspring_kernel::reference::is_name(name) {
            return Err(refused("a name is a letter or _, then letters, digits, _ and -"));
        }
        let value = json::data(text.as_bytes()).unwrap_or_else(|_| Value::from(text));
        if variables.insert(name.into(), value).is_some() {
            return Err(refused("it is given twice"));
        }
    }
    Ok(variables)
}

/// Accepts an id that other commands can take: without control characters, and not `last`.
fn execution_id(text: &str) -> Result<String, String> {
    let is_fine = !text.is_empty() && text.len() <= 200 && !text.chars().any(char::is_control) && text != "last";
    let help = "a name has 1 to 200 bytes, no control characters, and is not `last`";
    if is_fine { Ok(text.to_string()) } else { Err(help.to_string()) }
}
