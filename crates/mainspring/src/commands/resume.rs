//! `mainspring resume`: resumes unfinished executions.

use clap::Args;
use mainspring_engine::EngineScope;
use mainspring_kernel::state::ExecutionStatus;

use crate::{
    backend::{
        engine_follow::{From, Gates, follow},
        idle::{Announce, leave, taken_in, until_idle},
        read_store::{engine, find, open_read_only},
    },
    context::{Context, block_on},
    error::{CliError, Exit},
    telemetry::Metrics,
};

/// Resume executions.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Resume {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    metrics: Metrics,
}

/// The executions to resume.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The execution: its id, the beginning of it, or `last`
    id: Option<String>,
    /// All executions of the data folder, until none can continue by itself
    #[arg(long)]
    all: bool,
    /// Runs executions that were delegated to the folder, until none of them can continue by itself
    #[arg(long, hide = true)]
    posted: bool,
}

/// Resumes one execution and shows its progress, or several without output.
pub(crate) fn resume(resume: &Resume, context: &Context) -> Result<Exit, CliError> {
    resume.metrics.begin(context.global.json, &context.terminal)?;
    block_on(async {
        context.signals.install()?;
        let Some(id) = &resume.which.id else {
            let reach = if resume.which.all { EngineScope::All } else { EngineScope::named() };
            let engine = engine(&context.global, reach).await?;
            let exit = until_idle(&engine, context, Announce::Nothing).await;
            engine.drain().await;
            return exit;
        };
        let row = find(&*open_read_only(&context.global)?.store, id)?;
        if row.status == ExecutionStatus::Pending.name() {
            let message = "it is queued by a concurrency limit of its organization: run `mainspring up` or `mainspring \
                node`";
            return Err(CliError::contract("queued", message));
        }
        let engine = engine(&context.global, EngineScope::named()).await?;
        engine.activate(row.key);
        let exit = match taken_in(&engine, row.key).await {
            Ok(()) => follow(&engine, row.key, Gates::Ask, From::Now, context).await,
            Err(error) => Err(error),
        };
        leave(&engine, exit, context).await
    })
}
