//! `mainspring resume`: going on with what was left unfinished.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{Engine, EngineError, Reach, request::PARTITION};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::StoreError;

use super::follow::{From, Gates, follow};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine, find, look},
    runner::Signals,
    terminal::Terminal,
};

/// Go on with executions.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Resume {
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
    block_on(async {
        let mut signals = Signals::new()?;
        let Some(id) = &resume.id else {
            let reach = if resume.all { Reach::All } else { Reach::named() };
            let engine = engine(global, reach).await?;
            let exit = until_idle(&engine, terminal, Told::Nothing, &mut signals).await;
            engine.drain().await;
            return exit;
        };
        let row = find(&*look(global)?.store, id)?;
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
        let letters = engine.store().inbox(PARTITION, 0, ROWS).map_err(EngineError::from)?;
        if !letters.iter().any(|arrived| arrived.letter.execution == key) {
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
        let letters = engine.store().inbox(PARTITION, 0, ROWS).map_err(EngineError::from)?;
        let letter = letters.last().map_or(0, |arrived| arrived.number);
        let going = goes_on_by_itself(engine).await.map_err(EngineError::from)?;
        if going.is_some() && told == Told::Once {
            told = Told::Nothing;
            terminal
                .remark("going on with what was handed over meanwhile; Ctrl-C leaves it for `mainspring resume --all`");
        }
        // A letter that nobody can take in any more must not keep the process.
        let busy = letter > newest_letter || going.is_some();
        newest_letter = newest_letter.max(letter);
        asked_in_vain = if busy { 0 } else { asked_in_vain + 1 };
    }
    Ok(Exit::Fine)
}

/// An execution that runs, or has a time set for something other than a decision.
async fn goes_on_by_itself(engine: &Engine) -> Result<Option<ExecutionKey>, StoreError> {
    let pending = engine.pending().await;
    if let Some(live) = pending.live.first() {
        return Ok(Some(*live));
    }
    for timed in pending.timed {
        if engine.store().execution(timed)?.is_some_and(|row| row.status != "waiting_approval") {
            return Ok(Some(timed));
        }
    }
    Ok(None)
}
