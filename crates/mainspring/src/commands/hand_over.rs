//! Handing an input over to the process that holds the folder.

use mainspring_engine::{EngineError, home::Home, inbox};
use mainspring_kernel::{input::Input, json::compact, key::ExecutionKey, value::Value};
use mainspring_store::sqlite::SqliteStore;

use super::run::taken_in;
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    terminal::{Terminal, say},
};

/// What became of an input that was handed over.
pub(crate) struct Handed {
    /// Whether it was taken in while this process waited; else it lies in the inbox.
    pub(crate) taken: bool,
    /// Who takes it in, in words.
    by: String,
}

/// Posts an input to the process that holds the folder, and waits until it was taken in.
pub(crate) fn hand_over(home: &Home, key: ExecutionKey, input: &Input, global: &Global) -> Result<Handed, Refusal> {
    let store = SqliteStore::open(&home.journal()).map_err(EngineError::from)?;
    let id = inbox::post(&store, Some(home), key, input)?;
    let gone = || -> Result<Option<()>, EngineError> {
        let letters = inbox::waiting(&store, usize::MAX >> 1)?;
        let waits = letters.iter().any(|arrived| arrived.letter.execution == key && arrived.letter.id == id);
        Ok((!waits).then_some(()))
    };
    let taken = taken_in(home, global, gone)?.is_some();
    let by = home.holder().flatten().map_or("another process".to_string(), |pid| format!("the process {pid}"));
    Ok(Handed { taken, by })
}

impl Handed {
    /// Says what became of it.
    pub(crate) fn tell(&self, global: &Global, terminal: &Terminal) -> Exit {
        let Self { taken, by } = self;
        let words =
            if *taken { format!("{by} has taken it in and goes on") } else { format!("posted; {by} will take it in") };
        if global.json {
            say!("{}", compact(&Value::map([("ok", true.into()), ("taken", (*taken).into())])));
        } else {
            terminal.remark(&words);
        }
        Exit::Fine
    }
}
