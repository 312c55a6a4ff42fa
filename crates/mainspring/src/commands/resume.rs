//! `mainspring resume`: going on with what was left unfinished.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{Engine, EngineError, Reach, request::PARTITION};
use mainspring_store::StoreError;

use super::follow::{Gates, follow};
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
}

/// Goes on with one execution, shown, or with all of them, quietly.
pub(crate) fn resume(resume: &Resume, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    block_on(async {
        let Some(id) = &resume.id else {
            let engine = engine(global, Reach::All).await?;
            let exit = until_idle(&engine).await;
            engine.drain().await;
            return exit;
        };
        let row = find(&*look(global)?.store, id)?;
        let engine = engine(global, Reach::named()).await?;
        engine.attend(row.key);
        let exit = follow(&engine, row.key, Gates::Ask, global, terminal).await;
        engine.drain().await;
        exit
    })
}

/// How often it is asked whether anything is left to do, and for how many times nothing must be found.
const ASK_AGAIN: Duration = Duration::from_millis(250);
const ASKED_IN_VAIN: u32 = 8;

/// An execution that only waits for people needs no process: whoever decides goes on with it.
async fn until_idle(engine: &Engine) -> Result<Exit, Refusal> {
    let mut signals = Signals::new()?;
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
        let letter = newest(engine).map_err(EngineError::from)?;
        // A letter that nobody can take in any more must not keep the process.
        let busy = letter > newest_letter || goes_on_by_itself(engine).map_err(EngineError::from)?;
        newest_letter = newest_letter.max(letter);
        asked_in_vain = if busy { 0 } else { asked_in_vain + 1 };
    }
    Ok(Exit::Fine)
}

/// Executions looked at for work.
const ROWS: usize = 10_000;

fn newest(engine: &Engine) -> Result<u64, StoreError> {
    let letters = engine.store().inbox(PARTITION, 0, ROWS)?;
    Ok(letters.last().map_or(0, |arrived| arrived.number))
}

/// Whether an execution runs, or has a time set for something other than a decision.
fn goes_on_by_itself(engine: &Engine) -> Result<bool, StoreError> {
    let store = engine.store();
    for due in store.due(PARTITION, u64::MAX >> 1, ROWS)? {
        if store.execution(due.execution)?.is_some_and(|row| row.status != "waiting_approval") {
            return Ok(true);
        }
    }
    Ok(false)
}
