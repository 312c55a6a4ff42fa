//! `mainspring rollback`: returns a workflow of a server to a version of its history.

use clap::Args;
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    client::{Repeat, address::route, response::Response},
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::shown,
    },
};

/// Return a workflow to an earlier version.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The workflow: its slug or id
    workflow: String,
    /// The hash of the version, as the history has it: `sha256:…`
    hash: String,
}

pub(crate) fn rollback(rollback: &Rollback, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("rollback")?;
    let route = route(&["api", "workflows", &rollback.workflow, "rollback"], &[]);
    let body = Value::map([("workflowHash", Value::from(rollback.hash.as_str()))]);
    // A repeated rollback finds the workflow at the version.
    let done = block_on(async { Ok(client.post(&route, &body, Repeat::May).await?) })?;
    if context.global.json {
        print_out!("{}", compact(&done));
        return Ok(Exit::Fine);
    }
    let answer = Response::new(&client, "a workflow", &done);
    let note = if answer.flag("alreadyAtVersion")? { " (it had this version already)" } else { "" };
    let (version, hash) = (answer.text("version")?, answer.text("workflowHash")?);
    print_out!("{} {}{note} {}", bold(&shown(&rollback.workflow)), shown(&version), dim(&shown(&hash)));
    Ok(Exit::Fine)
}
