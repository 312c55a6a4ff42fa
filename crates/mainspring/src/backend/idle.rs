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
        until_idle(engine, context, Told::Once).await?;
    }
    engine.drain().await;
    let letters = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
    if !letters.is_empty() && !is_interrupted {
        context.terminal.note("an input arrived during shutdown: `mainspring resume --all` processes it");
    }
    exit
}

/// The polling interval for open work, and the polls without any before the process ends.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const ASKED_IN_VAIN: u32 = 3;

/// Waits until earlier inbox messages of the execution are received. The wait is bounded, since a message may be
/// undeliverable.
pub(crate) async fn taken_in(engine: &Engine, key: ExecutionKey) -> Result<(), CliError> {
    let mut again = tokio::time::interval(ASK_AGAIN);
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
pub(crate) enum Told {
    Nothing,
    Once,
}

/// Runs the engine until no execution can continue by itself. An execution that only waits for approvals needs no
/// process: the command that decides resumes it.
pub(crate) async fn until_idle(engine: &Engine, context: &Context, mut told: Told) -> Result<Exit, CliError> {
    let (mut asked_in_vain, mut newest_letter) = (0, 0);
    let mut again = tokio::time::interval(ASK_AGAIN);
    while asked_in_vain < ASKED_IN_VAIN {
        tokio::select! {
            () = context.signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(EngineError::Stopped(why).into());
        }
        let letters = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
        let letter = letters.last().map_or(0, |arrived| arrived.number);
        let going = autonomous_work(engine).await.map_err(EngineError::from)?;
        if let (Some(what), Told::Once) = (going.in_words(), told) {
            told = Told::Nothing;
            context.terminal.note(&format!("continuing with {what}; Ctrl-C leaves it for `mainspring resume --all`"));
        }
        if letters.is_empty() && going == Going::Nothing {
            return Ok(Exit::Fine);
        }
        // An undeliverable message must not keep the process alive.
        let busy = letter > newest_letter || going != Going::Nothing;
        newest_letter = newest_letter.max(letter);
        asked_in_vain = if busy { 0 } else { asked_in_vain + 1 };
    }
    Ok(Exit::Fine)
}

/// The open work that needs no person.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    Nothing,
    /// An execution is in memory although its row is settled or missing: it was just loaded, or is about to
    /// continue.
    Settling,
    /// A child execution that its parent does not wait for.
    Started,
    /// An execution that another process delegated.
    Delegated,
}

impl Going {
    fn in_words(self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Settling => None,
            Self::Started => Some("a workflow that was started and is not waited for"),
            Self::Delegated => Some("what other processes have delegated"),
        }
    }
}

/// The most urgent open work, over all executions that are running or have a timer for anything but a decision.
async fn autonomous_work(engine: &Engine) -> Result<Going, StoreError> {
    let pending = engine.pending().await;
    let mut most = if pending.live.is_empty() { Going::Nothing } else { Going::Settling };
    for execution in pending.live.into_iter().chain(pending.timed) {
        most = match engine.store().execution(execution)? {
            Some(row) if row.status == "waiting_approval" || is_final(&row.status) => most,
            Some(row) if is_child(&row.trigger_type) => Going::Started,
            Some(_) => return Ok(Going::Delegated),
            // The first commit of the execution is still in progress; the next poll sees its row.
            None => most,
        };
    }
    Ok(most)
}
