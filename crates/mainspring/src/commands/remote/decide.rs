//! `mainspring approve` and `deny` at a server.

use mainspring_kernel::{plan::Decision, value::Value};

use super::{
    find::{find, user},
    inputs::delegated,
};
use crate::output::summary::show_items;
use crate::{
    cli::Global,
    client::{
        Client, Repeat,
        address::route,
        execution::{Execution, Gate},
    },
    commands::{decide::At, delegate::Delegated},
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, print_out},
    output::text::paragraph,
    read_store::block_on,
};

/// Decides at a gate of an execution of a server.
pub(in crate::commands) fn decide(
    at: &At,
    decision: Decision,
    client: &Client,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let delegated = block_on(async {
        let id = find(client, &at.id).await?;
        let execution = Execution::get(client, &id).await?;
        let gate = open_gate(&execution, at)?;
        let Some(token) = &gate.token else { return Err(no_approver(client, gate).await?) };
        if !global.json {
            print_out!("{}", bold(&paragraph(&gate.prompt)));
            show_items(&gate.items);
        }
        send(client, &id, gate, token, decision, at.reason.as_deref()).await
    })?;
    Ok(delegated.tell(global, terminal))
}

/// Sends a decision, without retries: a repeated decision could apply to the gate of a later round.
pub(super) async fn send(
    client: &Client,
    id: &str,
    gate: &Gate,
    token: &str,
    decision: Decision,
    reason: Option<&str>,
) -> Result<Delegated, CliError> {
    let body = Value::map([
        ("approve", Value::Bool(decision == Decision::Approve)),
        ("resumeToken", token.into()),
        ("reason", reason.map_or(Value::Null, Value::from)),
    ]);
    let done = client.post(&route(&["api", "executions", id, "approve"], &[]), &body, Repeat::MustNot).await;
    let done = done.map_err(|error| match error.is("INVALID_RESUME_TOKEN") {
        true => error.saying("not_open", too_late(&gate.path)),
        false => error.into(),
    })?;
    Ok(delegated(client, &done)?)
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
fn open_gate<'a>(execution: &'a Execution, at: &At) -> Result<&'a Gate, CliError> {
    let all: Vec<&Gate> = execution.gates.iter().collect();
    let names = |gates: &[&Gate]| gates.iter().map(|gate| gate.path.as_str()).collect::<Vec<_>>().join(", ");
    let several = |gates: &[&Gate]| {
        let message = format!("several gates are open; name one with --step: {}", names(gates));
        CliError::bad_input("several_gates", message)
    };
    if all.is_empty() {
        let status = execution.listed.status.name();
        return Err(CliError::contract(
            "no_open_gate",
            format!("`{}` has no open approval: its status is {status}", at.id),
        ));
    }
    let Some(step) = &at.step else {
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
