//! `mainspring run`: a workflow from its file to its end.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use clap::{Args, ValueHint};
use mainspring_engine::{Engine, EngineError, Reach, Submitted, inbox, request::Request};
use mainspring_kernel::{
    json,
    key::ExecutionKey,
    plan::Constraints,
    value::{Map, Value},
};
use mainspring_store::sqlite::SqliteStore;

use super::{
    follow::{Gates, follow},
    validate::compiled,
};
use crate::{
    bounded,
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine},
    place,
    terminal::{Terminal, bold, dim},
};

/// Run a workflow.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The input, `@input`: JSON, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// A variable, `@vars.NAME`: JSON if it is JSON, else text; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// The execution's name, unique in its folder; running it again goes on where it was
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// A repeated key gives the first execution
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The folder in which the steps work [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
    /// Return at once; the execution goes on in the background
    #[arg(long)]
    detach: bool,
    /// Approve every gate, as the owner
    #[arg(long)]
    yes: bool,
    /// Steps that may be visited, containers and nested ones included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Branches at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_parallel: Option<u32>,
    /// Milliseconds for the whole execution
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
}

/// Runs a workflow.
pub(crate) fn run(run: &Run, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    let Some(compiled) = compiled(&run.file, global)? else { return Ok(Exit::BadInput) };
    let request = request(run, Arc::new(compiled.plan))?;
    if run.detach {
        return detach(request, global);
    }
    block_on(async {
        let engine = engine(global, Reach::named()).await.map_err(|refusal| held(refusal, &run.file))?;
        let exit = attached(&engine, request, run.yes, global, terminal).await;
        engine.drain().await;
        exit
    })
}

async fn attached(
    engine: &Engine,
    request: Request,
    yes: bool,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
    let (hash, title) = (request.plan.workflow_hash, title(&request));
    let Submitted { execution, existed } = engine.submit(request).await?;
    let state = engine.state(execution)?;
    if state.plan.workflow_hash != hash {
        let message = format!(
            "an execution of this name was begun with another definition, {}",
            state.plan.workflow_hash.prefixed()
        );
        return Err(Refusal::contract("hash_mismatch", message));
    }
    engine.attend(execution);
    if !global.json {
        let id = state.start.as_ref().map(|start| start.execution_id.clone()).unwrap_or_default();
        let again = if existed { ", which exists" } else { "" };
        anstream::println!("{} {}", bold(&title), dim(&format!("{id}{again}")));
    }
    let gates = if yes { Gates::Approve } else { Gates::Ask };
    follow(engine, execution, gates, global, terminal).await
}

fn request(run: &Run, plan: Arc<mainspring_kernel::plan::Plan>) -> Result<Request, Refusal> {
    let folder = run.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    Ok(Request {
        execution_id: run.id.clone(),
        input: input(run.input.as_deref())?,
        variables: variables(&run.variables)?,
        bounds: Constraints {
            max_steps: run.max_steps,
            max_parallel: run.max_parallel,
            timeout_ms: run.timeout_ms,
            allow_self_modification: false,
        },
        idempotency_key: run.idempotency_key.clone(),
        workspace: Some(place::text(&place::workspace(&folder)?)?),
        ..Request::new(plan, place::user())
    })
}

fn title(request: &Request) -> String {
    let name = request.plan.name.as_deref().unwrap_or("workflow");
    let version = request.plan.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    crate::terminal::printable(&format!("{name}{version}"))
}

fn input(given: Option<&str>) -> Result<Value, Refusal> {
    let bytes = match given {
        None => return Ok(Value::Null),
        Some("-") => bounded::stdin(),
        Some(given) => match given.strip_prefix('@') {
            Some(path) => bounded::file(path.as_ref()),
            None => Ok(given.as_bytes().to_vec()),
        },
    };
    let bytes = bytes.map_err(|why| Refusal::bad_input("bad_input", format!("--input: {why}")))?;
    let read =
        json::read(&bytes).map_err(|error| Refusal::bad_input("bad_input", format!("--input is not JSON: {error}")))?;
    Ok(read.value)
}

fn variables(given: &[String]) -> Result<Map, Refusal> {
    let mut variables = Map::new();
    for pair in given {
        let refused = |why: &str| Refusal::bad_input("bad_variable", format!("--var {pair}: {why}"));
        let (name, text) = pair.split_once('=').ok_or_else(|| refused("write NAME=VALUE"))?;
        if !mainspring_kernel::reference::is_name(name) {
            return Err(refused("a name is a letter or _, then letters, digits, _ and -"));
        }
        let value = json::read(text.as_bytes()).map_or_else(|_| Value::from(text), |document| document.value);
        if variables.insert(name.into(), value).is_some() {
            return Err(refused("it is given twice"));
        }
    }
    Ok(variables)
}

/// Hands the execution to the process that holds the folder, or to one that is started for it.
fn detach(request: Request, global: &Global) -> Result<Exit, Refusal> {
    let home = global.home()?;
    home.create()?;
    let store = SqliteStore::open(&home.journal()).map_err(EngineError::from)?;
    let id = request.execution_id.clone();
    let key: ExecutionKey = inbox::post_start(&store, &home, request)?;
    if home.holder().is_none() {
        start_in_background(global)?;
    }
    let id = id.unwrap_or_else(|| key.to_string());
    if global.json {
        println!("{}", json::compact(&Value::map([("executionId", id.into()), ("status", "pending".into())])));
    } else {
        anstream::println!("{id}\n{}", dim(&format!("mainspring tail {id}")));
    }
    Ok(Exit::Fine)
}

/// `mainspring resume --all` in a session of its own, so that it outlives this terminal.
pub(crate) fn start_in_background(global: &Global) -> Result<(), Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::internal("not_started", format!("the background process cannot be started: {error}"))
    };
    let this = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new("setsid");
    command.arg(this).args(["resume", "--all", "--json", "--dir"]).arg(global.home()?.folder());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(failed)?;
    Ok(())
}

fn held(mut refusal: Refusal, file: &std::path::Path) -> Refusal {
    if refusal.failure.code == "folder_in_use" {
        let mend = format!(
            "; `mainspring run --detach {}` hands the execution to it, --dir names another folder",
            file.display()
        );
        refusal.failure.message.push_str(&mend);
    }
    refusal
}
