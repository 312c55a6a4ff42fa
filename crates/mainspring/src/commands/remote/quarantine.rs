//! `mainspring quarantine` and `mainspring erase` at a server.

use mainspring_kernel::value::Value;

use crate::{
    cli::Global,
    client::{Client, Repeat, address::route, response::Response},
    commands::{
        erase::{self, Erase},
        quarantine::{Action, Quarantine, print, tell},
    },
    error::{CliError, Exit},
    output::terminal::{Terminal, dim, print_out},
    read_store::block_on,
};

/// Lists the quarantined executions of a server, or acts on one. An unreadable execution must be named by its whole id.
pub(in crate::commands) fn quarantine(
    quarantine: &Quarantine,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let (which, verb) = match &quarantine.action {
        Action::List => return list(client, global),
        Action::Release(which) => (which, "release"),
        Action::End(which) => (which, "end"),
    };
    let body = Value::map([("reason", which.reason.as_str().into())]);
    let route = route(&["api", "executions", &which.id, verb], &[]);
    let done = block_on(async { Ok(client.post(&route, &body, Repeat::MustNot).await?) })?;
    let answer = Response::new(client, "what came of it", &done);
    let (id, status) = (answer.text("executionId")?, answer.text("status")?);
    let words = match status.as_str() {
        "cancelled" => "released and cancelled, because its parent has continued without it",
        "ended" => "ended; its journal stays as it is",
        _ => "released; the server continues it",
    };
    Ok(tell(&id, &status, words, global, terminal))
}

fn list(client: &Client, global: &Global) -> Result<Exit, CliError> {
    let (mut cursor, mut is_any) = (None::<String>, false);
    loop {
        let query: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
        let route = route(&["api", "quarantine"], &query);
        let page = block_on(async { Ok(client.get(&route).await?) })?;
        let answer = Response::new(client, "a page of quarantined executions", &page);
        for row in answer.objects("quarantined", "a quarantined execution")? {
            is_any = true;
            print(&row.text("executionId")?, &row.text("reason")?, global);
        }
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    if !is_any && !global.json {
        print_out!("{}", dim("none"));
    }
    Ok(Exit::Fine)
}

/// Erases values of an execution of a server.
pub(in crate::commands) fn erase(
    erase: &Erase,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let steps: Vec<Value> = erase.step.iter().map(|step| step.as_str().into()).collect();
    let body = Value::map([("reason", erase.reason.as_str().into()), ("steps", steps.into())]);
    let done = block_on(async {
        let id = super::find::find(client, &erase.id).await?;
        let route = route(&["api", "executions", &id, "erase"], &[]);
        Ok(client.post(&route, &body, Repeat::May).await?)
    })?;
    let answer = Response::new(client, "what was erased", &done);
    Ok(erase::tell(&answer.text("executionId")?, answer.number("erased")?, global, terminal))
}
