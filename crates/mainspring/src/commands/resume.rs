//! `mainspring resume`: going on with what was left unfinished.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{Engine, EngineError, Reach, inbox, request::is_child};
use mainspring_kernel::{key::ExecutionKey, state::ExecutionStatus};
use mainspring_store::{StoreError, is_final};

use super::follow::{From, Gates, follow};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine, find, look},
    runner::Signals,
    seeing::Metrics,
    terminal::Terminal,
};

/// Go on with executions.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Resume {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    metrics: Metrics,
}

/// With what is gone on.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The execution: its name, the beginning of it, or `last`
    id: Option<String>,
    /// All of the folder, until nothing is left that can go on by itself
    #[arg(long)]
    all: bool,
    /// What was posted to the folder, until nothing of it is left that can go on by itself
    #[arg(long, hide = true)]
    posted: bool,
}

/// Goes on with one execution, shown, or with several, quietly.
pub(crate) fn resume(resume: &Resume, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    resume.metrics.begin(global, terminal)?;
    block_on(async {
        let mut signals = Signals::new()?;
        let Some(id) = &resume.which.id else {
            let reach = if resume.which.all { Reach::All } else { Reach::named() };
            let engine = engine(global, reach).await?;
            let exit = until_idle(&engine, terminal, Told::Nothing, &mut signals).await;
            engine.drain().await;
            return exit;
        };
        let row = find(&*look(global)?.store, id)?;
        if row.status == ExecutionStatus::Pending.name() {
            let message = "it waits in a queue until fewer of its organization run: `mainspring up` or `mainspring node` \
                lets it begin";
            return Err(Refusal::contract("queued", message));
        }
        let engine = engine(global, Reach::named()).await?;
        engine.attend(row.key);
        let exit = match taken_in(&engine, row.key).await {
            Ok(()) => follow(&engine, row.key, Gates::Ask, From::Now, global, terminal, &mut signals).await,
            Err(refusal) => Err(refusal),
        };
        leave(&engine, exit, terminal, &mut signals).await
    })
}

/// Ends a command's engine, once what others have handed over to it is done.
pub(crate) async fn leave(
    engine: &Engine,
    exit: Result<Exit, Refusal>,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Result<Exit, Refusal> {
    let is_interrupted = engine.is_draining();
    if !is_interrupted {
        until_idle(engine, terminal, Told::Once, signals).await?;
    }
    engine.drain().await;
    let letters = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
    if !letters.is_empty() && !is_interrupted {
        terminal.remark("something was posted in the last moment: `mainspring resume --all` takes it in");
    }
    exit
}

/// How often it is asked whether anything is left to do, and for how many times nothing must be found.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const ASKED_IN_VAIN: u32 = 3;

/// Letters that were posted before are taken in first; one that nobody can take in does not hold anybody up.
async fn taken_in(engine: &Engine, key: ExecutionKey) -> Result<(), Refusal> {
    let mut again = tokio::time::interval(ASK_AGAIN);
    for _ in 0..LOOKS_FOR_LETTERS {
        again.tick().await;
        if !inbox::is_waiting(&**engine.store(), key, None).map_err(EngineError::from)? {
            return Ok(());
        }
    }
    Ok(())
}

const LOOKS_FOR_LETTERS: u32 = 40;

/// Letters looked at for work.
const ROWS: usize = 10_000;

/// Whether it is said what is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Once,
}

/// An execution that only waits for people needs no process: whoever decides goes on with it.
async fn until_idle(
    engine: &Engine,
    terminal: &Terminal,
    mut told: Told,
    signals: &mut Signals,
) -> Result<Exit, Refusal> {
    let (mut asked_in_vain, mut newest_letter) = (0, 0);
    let mut again = tokio::time::interval(ASK_AGAIN);
    while asked_in_vain < ASKED_IN_VAIN {
        tokio::select! {
            () = signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(EngineError::Stopped(why).into());
        }
        let letters = inbox::waiting(&**engine.store(), ROWS).map_err(EngineError::from)?;
        let letter = letters.last().map_or(0, |arrived| arrived.number);
        let going = goes_on_by_itself(engine).await.map_err(EngineError::from)?;
        if let (Some(what), Told::Once) = (going.in_words(), told) {
            told = Told::Nothing;
            terminal.remark(&format!("going on with {what}; Ctrl-C leaves it for `mainspring resume --all`"));
        }
        if letters.is_empty() && going == Going::Nothing {
            return Ok(Exit::Fine);
        }
        // A letter that nobody can take in any more must not keep the process.
        let busy = letter > newest_letter || going != Going::Nothing;
        newest_letter = newest_letter.max(letter);
        asked_in_vain = if busy { 0 } else { asked_in_vain + 1 };
    }
    Ok(Exit::Fine)
}

/// What is left to do that needs nobody.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    Nothing,
    /// Something is in memory of which the catalogue says that it rests, or nothing yet: it is looked at, or about to go on.
    Resting,
    /// A workflow that another one has started and does not wait for.
    Started,
    /// What another process has handed over.
    HandedOver,
}

impl Going {
    fn in_words(self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Resting => None,
            Self::Started => Some("a workflow that was started and is not waited for"),
            Self::HandedOver => Some("what was handed over meanwhile"),
        }
    }
}

/// The most that is left: of an execution that runs, or has a time set for something other than a decision.
async fn goes_on_by_itself(engine: &Engine) -> Result<Going, StoreError> {
    let pending = engine.pending().await;
    let mut most = if pending.live.is_empty() { Going::Nothing } else { Going::Resting };
    for execution in pending.live.into_iter().chain(pending.timed) {
        most = match engine.store().execution(execution)? {
            Some(row) if row.status == "waiting_approval" || is_final(&row.status) => most,
            Some(row) if is_child(&row.trigger_type) => Going::Started,
            Some(_) => return Ok(Going::HandedOver),
            // It is on its way to the disk, and the next look knows what it is.
            None => most,
        };
    }
    Ok(most)
}
