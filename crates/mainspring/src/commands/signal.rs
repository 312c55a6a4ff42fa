//! `mainspring signal`: sends a named message to an execution.

use clap::Args;
use mainspring_engine::{EngineError, EngineScope};
use mainspring_kernel::{
    cbor,
    hash::hex,
    input::Input,
    json,
    limits::SIGNAL_BYTES_MAX,
    state::{SignalRejection, State},
    value::Value,
};
use mainspring_store::ExecutionRow;

use super::{
    audit_entry,
    delegate::delegate,
    follow::{From, Gates, follow},
    remote,
    resume::leave,
};
use crate::{
    cli::Global,
    error::{CliError, Exit},
    output::terminal::Terminal,
    paths,
    read_store::{block_on, engine, find, open_read_only},
    runner::{self, Signals},
};

/// Send a signal.
#[derive(Debug, Args)]
pub(crate) struct Signal {
    /// The execution: its id, the beginning of it, or `last`
    pub(super) id: String,
    /// The signal's name
    pub(super) name: String,
    /// The payload, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The id of the signal; a repeated id is ignored [default: a new one]
    #[arg(long, value_name = "ID")]
    signal_id: Option<String>,
}

/// Sends a signal. It is stored if no step waits for it yet.
pub(crate) fn signal(signal: &Signal, global: &Global, terminal: &Terminal) -> Result<Exit, CliError> {
    let payload = match &signal.payload {
        None => Value::Null,
        Some(text) => {
            let read = json::data(text.as_bytes());
            read.map_err(|error| CliError::bad_input("bad_payload", format!("--payload is not JSON: {error}")))?
        }
    };
    check_payload(&payload)?;
    if let Some(client) = global.client()? {
        return remote::signal(signal, payload, &client, global, terminal);
    }
    let opened = open_read_only(global)?;
    let row = find(&*opened.store, &signal.id)?;
    if mainspring_store::is_final(&row.status) {
        return Err(CliError::contract("ended", format!("`{}` has ended: it is {}", row.id, row.status)));
    }
    let input = Input::Signal { id: signal.message_id()?, name: signal.name.clone(), payload };
    let entry = audit_entry::signal(&row, &signal.name, &paths::user());
    let state = || -> Result<State, EngineError> {
        Ok(opened.loader.journal(row.key)?.ok_or(EngineError::NoSuchExecution)?.journal.state)
    };
    if opened.is_others() {
        was_kept(&row, &state()?, &input)?;
        let delegated = delegate(&opened, row.key, &input, entry, global)?;
        if delegated.accepted && !was_kept(&row, &state()?, &input)? {
            return Err(not_kept(&row, SignalRejection::Full));
        }
        return Ok(delegated.tell(global, terminal));
    }
    drop(opened);
    block_on(async {
        let mut signals = Signals::new()?;
        let engine = engine(global, EngineScope::named()).await?;
        let before = runner::snapshot(&engine, row.key, |_, _| ())?;
        let taken = engine.take(row.key, input.clone(), entry).await?;
        let is_there = if taken { Ok(true) } else { was_kept(&row, &engine.state(row.key)?, &input) };
        let exit = match is_there {
            Ok(_) => {
                if !taken {
                    terminal.note("nothing has changed: a signal of this identity came before");
                }
                engine.activate(row.key);
                let from = From::Frame(before.next_sequence);
                follow(&engine, row.key, Gates::Ask, from, global, terminal, &mut signals).await
            }
            Err(error) => Err(error),
        };
        leave(&engine, exit, terminal, &mut signals).await
    })
}

/// Rejects a payload above the limit of signals.
fn check_payload(payload: &Value) -> Result<(), CliError> {
    let bytes = cbor::byte_count(payload);
    if bytes <= SIGNAL_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "--payload takes {bytes} bytes in binary form, and a signal brings {SIGNAL_BYTES_MAX} at the most: put large data into files and name them"
    );
    Err(CliError::bad_input("payload_too_large", message))
}

/// Returns true if the execution has received this signal already. A signal that it would not keep is an error.
fn was_kept(row: &ExecutionRow, state: &State, input: &Input) -> Result<bool, CliError> {
    let Input::Signal { id, name, payload } = input else { return Ok(true) };
    match state.signal_rejection(id, name, payload) {
        None => Ok(false),
        Some(SignalRejection::Repeated) => Ok(true),
        Some(rejection) => Err(not_kept(row, rejection)),
    }
}

fn not_kept(row: &ExecutionRow, why: SignalRejection) -> CliError {
    CliError::contract("signal_not_kept", format!("the signal is not kept: `{}` {}", row.id, why.words()))
}

impl Signal {
    /// The id of the message: the given one, or a random one.
    pub(super) fn message_id(&self) -> Result<String, CliError> {
        self.signal_id.clone().map_or_else(fresh_id, Ok)
    }
}

/// A random id.
pub(super) fn fresh_id() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
    Ok(hex(&bytes))
}
