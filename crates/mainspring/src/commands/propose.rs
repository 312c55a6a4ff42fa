//! `mainspring propose`: proposes a change of a workflow of a server.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainspring_kernel::{
    definition::read,
    json::compact,
    value::{Map, Value},
};

use crate::{
    client::{Repeat, address::route, response::Response},
    context::{Context, block_on},
    definitions::{compiled, list, print_remote, syntax_of},
    error::{CliError, Exit},
    output::{
        review::print,
        terminal::{bold, dim, print_out},
        text::shown,
    },
    read_limited,
};

/// Propose a change of a workflow.
#[derive(Debug, Args)]
pub(crate) struct Propose {
    /// The workflow: its slug or id
    workflow: String,
    /// The proposed definition, YAML or JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// One sentence: what changes
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// The reasons for the change
    #[arg(long, value_name = "TEXT")]
    rationale: Option<String>,
}

pub(crate) fn propose(propose: &Propose, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("propose")?;
    let text = read_limited::file(&propose.from).map_err(|why| CliError::bad_input("unreadable", why))?;
    let Ok(document) = read(&text, syntax_of(&propose.from)) else {
        // The compiler reports the syntax error with its position.
        return compiled(&propose.from, context).map(|_| Exit::BadInput);
    };
    let mut change = Map::from([("proposedWorkflow".to_string(), document.value)]);
    for (key, text) in [("summary", &propose.summary), ("rationale", &propose.rationale)] {
        change.extend(text.iter().map(|text| (key.to_string(), Value::from(text.as_str()))));
    }
    let created = block_on(async {
        let workflow = client.get(&route(&["api", "workflows", &propose.workflow], &[])).await?;
        let base = Response::new(&client, "a workflow", &workflow).text("workflowHash")?;
        let body = Value::map([("baseWorkflowHash", Value::from(base)), ("proposal", change.into())]);
        let route = route(&["api", "workflows", &propose.workflow, "proposals"], &[]);
        // A repeated request would be a second proposal.
        Ok(client.post(&route, &body, Repeat::MustNot).await)
    })?;
    let created = match created {
        Ok(created) => created,
        Err(error) if error.is("INVALID_DEFINITION") => {
            if compiled(&propose.from, context)?.is_some() {
                print_remote(&list(&error.cli_error.failure.details, "diagnostics"), Some(&propose.from));
                return Err(error.into());
            }
            return Ok(Exit::BadInput);
        }
        Err(error) => return Err(error.into()),
    };
    let answer = Response::new(&client, "a proposal", &created);
    let id = answer.text("id")?;
    if context.global.json {
        print_out!("{}", compact(&created));
        return Ok(Exit::Fine);
    }
    print(&answer.any("report"));
    print_out!("{} {}", bold(&shown(&id)), dim(&shown(&format!("expires at {}", answer.text("expiresAt")?))));
    print_out!("{}", dim(&shown(&format!("mainspring proposals approve {} {id}", propose.workflow))));
    Ok(Exit::Fine)
}
