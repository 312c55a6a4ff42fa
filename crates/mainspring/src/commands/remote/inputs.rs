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

/// Calls an execution of a server off.
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

/// Sends an execution of a server a message. One that was lost on its way is sent again: it has a name of its own.
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

/// The id of an execution that has not ended.
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

/// What the server has made of an input.
pub(super) fn handed(client: &Client, done: &Value) -> Result<Handed, Trouble> {
    let status = Answer::new(client, "what came of it", done).text("status")?;
    Ok(Handed { taken: status != "accepted", by: "the server".into() })
}
