//! `mainspring signal`: a named message to an execution.

use clap::Args;
use mainspring_engine::Reach;
use mainspring_kernel::{hash::hex, input::Input, json, value::Value};

use super::{
    follow::{From, Gates, follow},
    hand_over::hand_over,
    remote,
    resume::leave,
};
use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{block_on, engine, find, look},
    runner::{self, Signals},
    terminal::Terminal,
};

/// Send a signal.
#[derive(Debug, Args)]
pub(crate) struct Signal {
    /// The execution: its name, the beginning of it, or `last`
    pub(super) id: String,
    /// The signal's name
    pub(super) name: String,
    /// What it brings, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The message's identity: the second of the same is no message [default: a new one]
    #[arg(long, value_name = "ID")]
    signal_id: Option<String>,
}

/// Sends a signal; it is kept if nothing waits for it yet.
pub(crate) fn signal(signal: &Signal, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    let payload = match &signal.payload {
        None => Value::Null,
        Some(text) => {
            let read = json::read(text.as_bytes());
            read.map_err(|error| Refusal::bad_input("bad_payload", format!("--payload is not JSON: {error}")))?.value
        }
    };
    if let Some(client) = global.client()? {
        return remote::signal(signal, payload, &client, global, terminal);
    }
    let looked = look(global)?;
    let row = find(&*looked.store, &signal.id)?;
    if mainspring_store::is_final(&row.status) {
        return Err(Refusal::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    let id = signal.message_id()?;
    if looked.is_others() {
        let input = Input::Signal { id: id.clone(), name: signal.name.clone(), payload };
        return Ok(hand_over(&looked.ground, row.key, &input, global)?.tell(global, terminal));
    }
    drop(looked);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, Reach::named()).await?;
        let before = runner::standing(&engine, row.key, |_, _| ())?;
        let taken = engine.signal(row.key, id, signal.name.clone(), payload).await?;
        if !taken {
            terminal.remark("nothing has changed: a signal of this identity came before, or the execution is ending");
        }
        engine.attend(row.key);
        let from = From::Frame(before.next_sequence);
        let exit = follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await;
        leave(&engine, exit, terminal, &mut signals).await
    })
}

impl Signal {
    /// The message's identity: what was given, or a fresh one.
    pub(super) fn message_id(&self) -> Result<String, Refusal> {
        self.signal_id.clone().map_or_else(fresh_id, Ok)
    }
}

/// An identity that nobody else gives.
pub(super) fn fresh_id() -> Result<String, Refusal> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Refusal::internal("no_randomness", error.to_string()))?;
    Ok(hex(&bytes))
}
