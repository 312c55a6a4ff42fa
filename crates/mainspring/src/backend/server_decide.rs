//! Decides approvals of a server.

use mainspring_kernel::{decide::Words, plan::Decision, value::Value};

use super::{
    contract::{DecideRequest, Delegated},
    delivery::{none_open, wait_for_it},
    server_find::{find, user},
};
use crate::{
    client::{
        Client, ClientError, Repeat,
        address::route,
        execution::{Execution, Gate},
        response::Response,
    },
    error::CliError,
};

/// Decides at a gate of an execution of a server.
pub(super) async fn decide(
    request: &DecideRequest<'_>,
    client: &Client,
    announce: &dyn Fn(&str, &Value),
) -> Result<Delegated, CliError> {
    let id = find(client, request.name).await?;
    let execution = Execution::get(client, &id).await?;
    let gate = match open_gate(&execution, request) {
        Ok(gate) => gate,
        Err(error) => return Err(explained(error, &id, request, client).await),
    };
    let Some(token) = &gate.token else { return Err(no_approver(client, gate).await?) };
    announce(&gate.prompt, &gate.items);
    send(client, &id, gate, token, request.decision, &request.words).await
}

/// Replaces the error of a gate that is not open by the server's reason. A server of an older release gives none.
async fn explained(error: CliError, id: &str, request: &DecideRequest<'_>, client: &Client) -> CliError {
    let Some(step) = request.step.filter(|_| error.failure.code == "no_open_gate") else { return error };
    let of_step = route(&["api", "approvals", &format!("{id}:{step}")], &[]);
    let why = match client.get(&of_step).await {
        Err(why) if why.is("NOT_FOUND") => why.cli_error.failure,
        _ => return error,
    };
    let Some(reason) = why.details.get("approval").and_then(Value::as_text) else { return error };
    let wait = if reason == "not_yet_open" { wait_for_it(request) } else { String::new() };
    let code = if matches!(reason, "decided" | "expired") { "not_open" } else { "no_open_gate" };
    let mut words = why.message.chars();
    let first = words.next().map(|first| first.to_ascii_lowercase().to_string()).unwrap_or_default();
    CliError::contract(code, format!("{first}{}{wait}", words.as_str()))
}

/// Sends a decision, without retries: a repeated decision could apply to the gate of a later round.
pub(super) async fn send(
    client: &Client,
    id: &str,
    gate: &Gate,
    token: &str,
    decision: Decision,
    words: &Words,
) -> Result<Delegated, CliError> {
    let content = words.content.clone().map(|content| ("content", content));
    let cancel = words.cancels.then(|| ("cancel", true.into()));
    let fields = [
        ("approve", Value::Bool(decision == Decision::Approve)),
        ("resumeToken", token.into()),
        ("reason", words.reason.as_deref().map_or(Value::Null, Value::from)),
    ];
    let body = Value::map(fields.into_iter().chain(content).chain(cancel));
    let done = client.post(&route(&["api", "executions", id, "approve"], &[]), &body, Repeat::MustNot).await;
    let done = done.map_err(|error| match error.is("INVALID_RESUME_TOKEN") {
        true => error.with_message("not_open", too_late(&gate.path)),
        false => error.into(),
    })?;
    Ok(delegated(client, &done)?)
}

/// Reads the server's response to an input.
pub(super) fn delegated(client: &Client, done: &Value) -> Result<Delegated, ClientError> {
    let status = Response::new(client, "what came of it", done).text("status")?;
    Ok(Delegated { accepted: status != "accepted", by: "the server".into() })
}

fn too_late(path: &str) -> String {
    format!("the decision has no effect: the approval `{path}` was already decided, or its timeout has expired")
}

/// Builds the error for a user who is not an approver of the gate.
pub(super) async fn no_approver(client: &Client, gate: &Gate) -> Result<CliError, CliError> {
    let by = user(client).await?;
    let names = |names: &[String]| if names.is_empty() { "nobody".into() } else { names.join(", ") };
    let who = match gate.approvers.as_slice() {
        [] => "the execution's owner and the admins may decide".to_string(),
        named => format!("its approvers are {}", names(named)),
    };
    let (count, has) = (gate.count, names(&gate.approved_by));
    let message = format!("`{by}` cannot decide the approval `{}`: {who}, {count} must approve, {has} has", gate.path);
    Ok(CliError::contract("not_an_approver", message))
}

/// Finds the open gate that the arguments name, or the only open one.
fn open_gate<'a>(execution: &'a Execution, request: &DecideRequest<'_>) -> Result<&'a Gate, CliError> {
    let all: Vec<&Gate> = execution.gates.iter().collect();
    let names = |gates: &[&Gate]| gates.iter().map(|gate| gate.path.as_str()).collect::<Vec<_>>().join(", ");
    let several = |gates: &[&Gate]| {
        let message = format!("several gates are open; name one with --step: {}", names(gates));
        CliError::bad_input("several_gates", message)
    };
    if all.is_empty() {
        return Err(none_open(execution.listed.status, request));
    }
    let Some(step) = request.step else {
        return if let [only] = all.as_slice() { Ok(only) } else { Err(several(&all)) };
    };
    match named(&all, step).as_slice() {
        [only] => Ok(only),
        [] => {
            let message = format!("no gate is open at `{step}`; open are: {}", names(&all));
            Err(CliError::contract("no_open_gate", message))
        }
        found => Err(several(found)),
    }
}

/// Finds the gates with this path, or else those whose path ends with it.
fn named<'a>(gates: &[&'a Gate], name: &str) -> Vec<&'a Gate> {
    let is_end = |path: &str| path.strip_suffix(name).is_some_and(|way| way.ends_with('/'));
    let exact: Vec<_> = gates.iter().copied().filter(|gate| gate.path == name).collect();
    if exact.is_empty() { gates.iter().copied().filter(|gate| is_end(&gate.path)).collect() } else { exact }
}
