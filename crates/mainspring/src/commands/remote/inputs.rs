//! `mainspring cancel` and `mainspring signal` at a server.

use mainspring_kernel::{state::ExecutionStatus, value::Value};

use super::find::find;
use crate::{
    cli::Global,
    client::{Client, ClientError, Repeat, address::route, execution::Execution, response::Response},
    commands::{cancel::Cancel, delegate::Delegated, signal::Signal},
    error::{CliError, Exit},
    output::terminal::Terminal,
    read_store::block_on,
};

/// Cancels an execution of a server.
pub(in crate::commands) fn cancel(
    cancel: &Cancel,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let delegated = block_on(async {
        let id = going(client, &cancel.id).await?;
        let body = Value::map([("reason", Value::from(cancel.reason.as_str()))]);
        let route = route(&["api", "executions", &id, "cancel"], &[]);
        let done = client.post(&route, &body, Repeat::MustNot).await.map_err(|error| ending(error, &id))?;
        Ok(delegated(client, &done)?)
    })?;
    Ok(delegated.tell(global, terminal))
}

/// Sends a signal. A request without a response is retried: the id of the signal makes it idempotent.
pub(in crate::commands) fn signal(
    signal: &Signal,
    payload: Value,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let message = signal.message_id()?;
    let delegated = block_on(async {
        let id = going(client, &signal.id).await?;
        let body = Value::map([
            ("id", Value::from(message.as_str())),
            ("name", signal.name.as_str().into()),
            ("payload", payload),
        ]);
        let route = route(&["api", "executions", &id, "signal"], &[]);
        let done = client.post(&route, &body, Repeat::May).await?;
        Ok(delegated(client, &done)?)
    })?;
    Ok(delegated.tell(global, terminal))
}

/// Resolves a name to the id of an open execution.
async fn going(client: &Client, name: &str) -> Result<String, CliError> {
    let id = find(client, name).await?;
    let execution = Execution::get(client, &id).await?;
    if execution.has_ended() {
        let status: ExecutionStatus = execution.listed.status;
        return Err(CliError::contract("ended", format!("`{id}` has ended: it is {}", status.name())));
    }
    Ok(id)
}

fn ending(error: ClientError, id: &str) -> CliError {
    if error.is("CONFLICT") {
        return error.saying("ended", format!("`{id}` has ended, or is ending already"));
    }
    error.into()
}

/// Reads the server's response to an input.
pub(super) fn delegated(client: &Client, done: &Value) -> Result<Delegated, ClientError> {
    let status = Response::new(client, "what came of it", done).text("status")?;
    Ok(Delegated { accepted: status != "accepted", by: "the server".into() })
}
