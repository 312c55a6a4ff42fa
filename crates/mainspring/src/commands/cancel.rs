//! `mainspring cancel`: calling an execution off.

use clap::Args;
use mainspring_engine::{EngineError, Reach, home::Home, inbox};
use mainspring_kernel::{input::Input, json::compact, key::ExecutionKey, value::Value};
use mainspring_store::{Store, sqlite::SqliteStore};

use super::{
    follow::{From, Gates, follow},
    resume::leave,
    run::taken_in,
};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine, find, look},
    place, runner,
    terminal::{Terminal, say},
};

/// Cancel an execution.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The execution: its name, the beginning of it, or `last`
    id: String,
    /// A word for why
    #[arg(long, value_name = "WORD", default_value = "user_cancelled")]
    reason: String,
}

/// Cancels an execution: what runs is stopped, nothing new starts, all traces are kept.
pub(crate) fn cancel(cancel: &Cancel, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    let looked = look(global)?;
    let row = find(&*looked.store, &cancel.id)?;
    if mainspring_store::is_final(&row.status) {
        return Err(Refusal::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    let by = place::user();
    let home = looked.home.clone();
    drop(looked);
    if home.holder().is_some() {
        let input = Input::Cancel { reason: cancel.reason.clone(), by };
        return hand_over(&home, row.key, "cancel".into(), &input, global, terminal);
    }
    block_on(async {
        let engine = engine(global, Reach::named()).await?;
        let before = runner::standing(&engine, row.key, |_, _| ())?;
        engine.cancel(row.key, &cancel.reason, &by).await?;
        engine.attend(row.key);
        let from = From::Frame(before.next_sequence);
        let exit = follow(&engine, row.key, Gates::Ask, from, global, terminal).await;
        leave(&engine, exit, terminal).await
    })
}

/// Posts an input to the process that holds the folder, and waits until it was taken in.
pub(crate) fn hand_over(
    home: &Home,
    key: ExecutionKey,
    id: String,
    input: &Input,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
    let store = SqliteStore::open(&home.journal()).map_err(EngineError::from)?;
    inbox::post(&store, home, key, id.clone(), input)?;
    let gone = || -> Result<Option<()>, EngineError> {
        let letters = store.inbox(mainspring_engine::request::PARTITION, 0, usize::MAX >> 1)?;
        let waits = letters.iter().any(|arrived| arrived.letter.execution == key && arrived.letter.id == id);
        Ok((!waits).then_some(()))
    };
    let taken = taken_in(home, global, gone)?.is_some();
    let pid = home.holder().flatten().map_or("another process".to_string(), |pid| format!("the process {pid}"));
    let words =
        if taken { format!("{pid} has taken it in and goes on") } else { format!("posted; {pid} will take it in") };
    if global.json {
        say!("{}", compact(&Value::map([("ok", true.into()), ("taken", taken.into())])));
    } else {
        terminal.remark(&words);
    }
    Ok(Exit::Fine)
}
