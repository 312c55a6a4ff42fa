//! Runs an engine until no execution can continue by itself, and drains it.

use std::time::Duration;

use mainspring_engine::{Engine, EngineError, inbox, start_request::is_child};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{StoreError, is_final};

use crate::{
    context::Context,
    error::{CliError, Exit},
};

/// Drains a command's engine, once the inputs that other processes delegated to it are processed.
pub(crate) async fn leave(engine: &Engine, exit: Result<Exit, CliError>, context: &Context) -> Result<Exit, CliError> {
    let is_interrupted = engine.is_draining();
    if !is_interrupted {
        until_idle(engine, context, Announce::Once).await?;
    }
    engine.drain().await;
    let messages = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
    if !messages.is_empty() && !is_interrupted {
        context.terminal.note("an input arrived during shutdown: `mainspring resume --all` processes it");
    }
    exit
}

/// The polling interval for open work, and the polls without any before the process ends.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const IDLE_POLLS_MAX: u32 = 3;

/// Waits until earlier inbox messages of the execution are received. The wait is bounded, since a message may be
/// undeliverable.
pub(crate) async fn taken_in(engine: &Engine, key: ExecutionKey) -> Result<(), CliError> {
    let mut again = tokio::time::interval(POLL_INTERVAL);
    for _ in 0..INBOX_POLLS {
        again.tick().await;
        if !inbox::is_waiting(&**engine.store(), key, None).map_err(EngineError::from)? {
            return Ok(());
        }
    }
    Ok(())
}

const INBOX_POLLS: u32 = 40;

/// Inbox messages read at most.
const ROWS: usize = 10_000;

/// Selects whether the reason for waiting is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announce {
    Nothing,
    Once,
}

/// Runs the engine until no execution can continue by itself. An execution that only waits for approvals needs no
/// process: the command that decides resumes it.
pub(crate) async fn until_idle(engine: &Engine, context: &Context, mut announce: Announce) -> Result<Exit, CliError> {
    let (mut idle_polls, mut newest_message) = (0, 0);
    let mut again = tokio::time::interval(POLL_INTERVAL);
    while idle_polls < IDLE_POLLS_MAX {
        tokio::select! {
            () = context.signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(EngineError::Stopped(why).into());
        }
        let messages = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
        let message = messages.last().map_or(0, |arrived| arrived.number);
        let open_work = open_work_of(engine).await.map_err(EngineError::from)?;
        if let (Some(what), Announce::Once) = (open_work.description(), announce) {
            announce = Announce::Nothing;
            context
                .terminal
                .note(&format!("continuing with {what}; after Ctrl-C, `mainspring resume --all` continues it"));
        }
        if messages.is_empty() && open_work == OpenWork::Nothing {
            return Ok(Exit::Fine);
        }
        // An undeliverable message must not keep the process alive.
        let busy = message > newest_message || open_work != OpenWork::Nothing;
        newest_message = newest_message.max(message);
        idle_polls = if busy { 0 } else { idle_polls + 1 };
    }
    Ok(Exit::Fine)
}

/// The open work that needs no person.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenWork {
    Nothing,
    /// An execution is in memory although its row is settled or missing: it was just loaded, or is about to
    /// continue.
    Settling,
    /// A child execution that its parent does not wait for.
    Started,
    /// An execution that another process delegated.
    Delegated,
}

impl OpenWork {
    fn description(self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Settling => None,
            Self::Started => Some("a workflow that was started and is not waited for"),
            Self::Delegated => Some("what other processes have delegated"),
        }
    }
}

/// The most urgent open work, over all executions that are running or have a timer for anything but a decision.
async fn open_work_of(engine: &Engine) -> Result<OpenWork, StoreError> {
    let pending = engine.pending().await;
    let mut most = if pending.live.is_empty() { OpenWork::Nothing } else { OpenWork::Settling };
    for execution in pending.live.into_iter().chain(pending.timed) {
        most = match engine.store().execution(execution)? {
            Some(row) if row.status == "waiting_approval" || is_final(&row.status) => most,
            Some(row) if is_child(&row.trigger_type) => OpenWork::Started,
            Some(_) => return Ok(OpenWork::Delegated),
            // The first commit of the execution is still in progress; the next poll sees its row.
            None => most,
        };
    }
    Ok(most)
}
