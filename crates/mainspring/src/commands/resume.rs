//! `mainspring resume`: going on with what was left unfinished.

use std::time::Duration;

use clap::Args;
use mainspring_engine::{Engine, EngineError, Reach};
use mainspring_store::Filter;

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

/// An execution that only waits for people, for a signal or for a time beyond the minute needs no process.
async fn until_idle(engine: &Engine) -> Result<Exit, Refusal> {
    let mut signals = Signals::new()?;
    let mut asked_in_vain = 0;
    let mut again = tokio::time::interval(ASK_AGAIN);
    while asked_in_vain < ASKED_IN_VAIN {
        tokio::select! {
            () = signals.any() => return Ok(Exit::Fine),
            _ = again.tick() => {}
        }
        if let Some(why) = engine.why_stopped() {
            return Err(EngineError::Stopped(why).into());
        }
        let busy = has_work(engine).map_err(EngineError::from)?;
        asked_in_vain = if busy { 0 } else { asked_in_vain + 1 };
    }
    Ok(Exit::Fine)
}

fn has_work(engine: &Engine) -> Result<bool, mainspring_store::StoreError> {
    let soon = mainspring_engine::engine::now_ms() + WAITED_FOR_MS;
    let store = engine.store();
    let partition = mainspring_engine::request::PARTITION;
    let is_due = !store.due(partition, soon, 1)?.is_empty();
    let has_letters = !store.inbox(partition, 0, 1)?.is_empty();
    let filter = Filter { statuses: vec!["pending".into()], workflow: None };
    Ok(is_due || has_letters || !store.executions(&filter, None, 1)?.is_empty())
}

/// Timers further away than this are not waited for in the background: a day of sleep needs no process.
const WAITED_FOR_MS: u64 = 24 * 3600 * 1000;
