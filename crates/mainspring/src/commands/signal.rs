//! `mainspring signal`: sends a named message to an execution.

use clap::Args;
use mainspring_kernel::{cbor, json, limits::SIGNAL_BYTES_MAX, value::Value};

use crate::{
    backend::contract::{SignalRequest, fresh_id},
    context::Context,
    error::{CliError, Exit},
};

/// Send a signal.
#[derive(Debug, Args)]
pub(crate) struct Signal {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// The signal's name
    name: String,
    /// The payload, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The id of the signal; a repeated id is ignored [default: a new one]
    #[arg(long, value_name = "ID")]
    signal_id: Option<String>,
}

/// Sends a signal. It is stored if no step waits for it yet.
pub(crate) fn signal(signal: &Signal, context: &Context) -> Result<Exit, CliError> {
    let payload = match &signal.payload {
        None => Value::Null,
        Some(text) => {
            let read = json::data(text.as_bytes());
            read.map_err(|error| CliError::bad_input("bad_payload", format!("--payload is not JSON: {error}")))?
        }
    };
    check_payload(&payload)?;
    let id = signal.signal_id.clone().map_or_else(fresh_id, Ok)?;
    let request = SignalRequest { id, name: signal.name.clone(), payload };
    Ok(context.backend()?.signal(&signal.id, &request)?.conclude(context))
}

/// Rejects a payload above the limit of signals.
fn check_payload(payload: &Value) -> Result<(), CliError> {
    let bytes = cbor::byte_count(payload);
    if bytes <= SIGNAL_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "--payload takes {bytes} bytes in binary form, and a signal has at most {SIGNAL_BYTES_MAX}: put large data into files and name them"
    );
    Err(CliError::bad_input("payload_too_large", message))
}
