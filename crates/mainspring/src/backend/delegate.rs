//! Delegates an input through the inbox to the process or node that runs the execution.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use mainspring_engine::{EngineError, inbox};
use mainspring_kernel::{input::Input, key::ExecutionKey};
use mainspring_store::AuditEntry;

use super::{contract::Delegated, read_store::ReadStore};
use crate::{
    context::{Context, Global, block_on},
    error::CliError,
    store_location::StoreLocation,
};

/// Enqueues an input with its audit entry, and waits a bounded time until it was received.
pub(super) fn delegate(
    read: &ReadStore,
    key: ExecutionKey,
    input: &Input,
    entry: Option<AuditEntry>,
    context: &Context,
) -> Result<Delegated, CliError> {
    let location = &read.location;
    let store = location.store()?;
    // Only the receiver finds out whether the input has an effect, so the action of the entry has the suffix
    // `.posted`.
    let entry = entry.map(|entry| AuditEntry { action: format!("{}.posted", entry.action), ..entry });
    let id = inbox::enqueue(&*store, location.home(), &read.key, (key, input), entry.as_ref())?;
    let gone = || -> Result<Option<()>, EngineError> {
        let waits = inbox::is_waiting(&*store, key, Some(&id))?;
        Ok((!waits).then_some(()))
    };
    let accepted = taken_in(location, context, gone)?.is_some();
    let by = location.engine_description(&*store).unwrap_or_else(|| "the next engine".to_string());
    Ok(Delegated { accepted, by })
}

/// The polling interval for the receipt of a message, and the number of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS: u32 = 200;

/// Waits a bounded time until the engine has processed a message. A background process is started whenever no
/// process owns the data folder, because the owner may end at any moment. Nodes of a shared store are started by
/// operators only.
pub(super) fn taken_in<T>(
    location: &StoreLocation,
    context: &Context,
    shows: impl Fn() -> Result<Option<T>, EngineError>,
) -> Result<Option<T>, CliError> {
    block_on(async {
        let (mut again, mut started_at) = (tokio::time::interval(POLL_INTERVAL), None);
        for poll in 0..POLLS {
            again.tick().await;
            if let Some(shown) = shows()? {
                return Ok(Some(shown));
            }
            // A started process needs some time to lock the folder.
            let may_start = started_at.is_none_or(|started| poll - started > 20);
            if location.home().is_some_and(|home| home.holder().is_none()) && may_start {
                start_in_background(&context.global)?;
                started_at = Some(poll);
            }
        }
        Ok(None)
    })
}

/// Starts a background process for enqueued messages, in a session of its own, so that it outlives the terminal.
fn start_in_background(global: &Global) -> Result<(), CliError> {
    let failed = |error: std::io::Error| {
        CliError::internal("not_started", format!("`setsid` cannot start the background process: {error}"))
    };
    let this = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new("setsid");
    command.arg(this).args(["resume", "--posted", "--json", "--dir"]).arg(global.home()?.folder());
    command.args(global.telemetry.otlp.iter().flat_map(|address| ["--otlp", address]));
    // The port belongs to the process that was started with `--metrics`.
    command.env_remove("MAINSPRING_METRICS");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(failed)?;
    Ok(())
}
