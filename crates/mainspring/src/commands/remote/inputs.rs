//! `mainspring cancel` and `mainspring signal` at a server.

use mainspring_kernel::{state::ExecutionStatus, value::Value};

use super::find::find;
use crate::{
    cli::Global,
    commands::{cancel::Cancel, hand_over::Handed, signal::Signal},
    exit::{Exit, Refusal},
    naming::block_on,
    remote::{Client, Trouble, address::route, answer::Answer, client::Repeat, execution::Execution},
    terminal::Terminal,
};

/// Cancels an execution of a server.
pub(in crate::commands) fn cancel(
    cancel: &Cancel,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
    let handed = block_on(async {
        let id = going(client, &cancel.id).await?;
        let body = Value::map([("reason", Value::from(cancel.reason.as_str()))]);
        let route = route(&["api", "executions", &id, "cancel"], &[]);
        let done = client.post(&route, &body, Repeat::MustNot).await.map_err(|trouble| ending(trouble, &id))?;
        Ok(handed(client, &done)?)
    })?;
    Ok(handed.tell(global, terminal))
}

/// Sends a signal. A request without a response is retried: the id of the signal makes it idempotent.
pub(in crate::commands) fn signal(
    signal: &Signal,
    payload: Value,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, Refusal> {
    let message = signal.message_id()?;
    let handed = block_on(async {
        let id = going(client, &signal.id).await?;
        let body = Value::map([
            ("id", Value::from(message.as_str())),
            ("name", signal.name.as_str().into()),
            ("payload", payload),
        ]);
        let route = route(&["api", "executions", &id, "signal"], &[]);
        let done = client.post(&route, &body, Repeat::May).await?;
        Ok(handed(client, &done)?)
    })?;
    Ok(handed.tell(global, terminal))
}

/// Resolves a name to the id of an open execution.
async fn going(client: &Client, name: &str) -> Result<String, Refusal> {
    let id = find(client, name).await?;
    let execution = Execution::get(client, &id).await?;
    if execution.has_ended() {
        let status: ExecutionStatus = execution.listed.status;
        return Err(Refusal::contract("ended", format!("`{id}` has ended: it is {}", status.name())));
    }
    Ok(id)
}

fn ending(trouble: Trouble, id: &str) -> Refusal {
    if trouble.is("CONFLICT") {
        return trouble.saying("ended", format!("`{id}` has ended, or is ending already"));
    }
    trouble.into()
}

/// Reads the server's response to an input.
pub(super) fn handed(client: &Client, done: &Value) -> Result<Handed, Trouble> {
    let status = Answer::new(client, "what came of it", done).text("status")?;
    Ok(Handed { taken: status != "accepted", by: "the server".into() })
}
