//! `mainspring propose`: proposes a change of a workflow of a server.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueHint};
use mainspring_kernel::{
    definition::read,
    json::compact,
    value::{Map, Value},
};

use crate::{
    client::{Client, Repeat, address::route, response::Response},
    context::{Context, block_on},
    definitions::{compiled, list, print_remote, syntax_of},
    error::{CliError, Exit},
    output::{
        review::print,
        terminal::{bold, dim, print_out},
        text::{counted, paragraph, shown},
    },
    read_limited,
};

/// Propose a change of a workflow: a definition, or a change in prose that a model of the server turns into one.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["intent", "from"]).required(true))]
pub(crate) struct Propose {
    /// The workflow: its slug or id
    workflow: String,
    /// The change in prose, for a language model of the server
    intent: Option<String>,
    /// The proposed definition, YAML or JSON; no model is asked
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,
    /// One sentence: what changes
    #[arg(long, value_name = "TEXT", conflicts_with = "intent")]
    summary: Option<String>,
    /// The reasons for the change
    #[arg(long, value_name = "TEXT", conflicts_with = "intent")]
    rationale: Option<String>,
    /// The model that writes the change [default: the default model of the server]
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    model: Option<String>,
}

pub(crate) fn propose(propose: &Propose, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("propose")?;
    let created = match (&propose.from, &propose.intent) {
        (Some(file), _) => match from_file(propose, file, &client, context)? {
            Some(created) => created,
            None => return Ok(Exit::BadInput),
        },
        (None, intent) => from_words(propose, intent.as_deref().unwrap_or_default(), &client)?,
    };
    let answer = Response::new(&client, "a proposal", &created);
    let id = answer.text("id")?;
    if context.global.json {
        print_out!("{}", compact(&created));
        return Ok(Exit::Fine);
    }
    print(&answer.any("report"));
    print_written(&created);
    print_out!("{} {}", bold(&shown(&id)), dim(&shown(&format!("expires at {}", answer.text("expiresAt")?))));
    print_out!("{}", dim(&shown(&format!("mainspring proposals approve {} {id}", propose.workflow))));
    Ok(Exit::Fine)
}

/// Prints what a model has written about its change.
fn print_written(created: &Value) {
    let change = created.get("proposal").cloned().unwrap_or_default();
    let Some(written) = change.get("written").filter(|written| **written != Value::Null) else { return };
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let number = |key: &str| written.get(key).and_then(Value::as_u64).unwrap_or_default();
    print_out!("{}", paragraph(&text(&change, "summary")));
    if change.get("rationale").is_some_and(|rationale| *rationale != Value::Null) {
        print_out!("{}", paragraph(&text(&change, "rationale")));
    }
    let (calls, tokens) = (number("calls"), number("inputTokens").saturating_add(number("outputTokens")));
    let (calls, tokens) = (counted(calls, "answer", "answers"), counted(tokens, "token", "tokens"));
    let by = format!("written by {} in {calls}, {tokens}", text(written, "model"));
    print_out!("{}", dim(&shown(&by)));
}

/// Has a model of the server write the change.
fn from_words(propose: &Propose, intent: &str, client: &Client) -> Result<Value, CliError> {
    let model = propose.model.as_deref().map(|model| ("model", Value::from(model)));
    let body = Value::map([("intent", Value::from(intent))].into_iter().chain(model));
    let route = route(&["api", "workflows", &propose.workflow, "proposals", "write"], &[]);
    block_on(async { Ok(client.post_to_model(&route, &body).await?) })
}

/// Proposes the definition of a file. `None` if it is invalid, which is printed.
fn from_file(propose: &Propose, file: &Path, client: &Client, context: &Context) -> Result<Option<Value>, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let Ok(document) = read(&text, syntax_of(file)) else {
        // The compiler reports the syntax error with its position.
        return compiled(file, context).map(|_| None);
    };
    let mut change = Map::from([("proposedWorkflow".to_string(), document.value)]);
    for (key, text) in [("summary", &propose.summary), ("rationale", &propose.rationale)] {
        change.extend(text.iter().map(|text| (key.to_string(), Value::from(text.as_str()))));
    }
    let created = block_on(async {
        let workflow = client.get(&route(&["api", "workflows", &propose.workflow], &[])).await?;
        let base = Response::new(client, "a workflow", &workflow).text("workflowHash")?;
        let body = Value::map([("baseWorkflowHash", Value::from(base)), ("proposal", change.into())]);
        let route = route(&["api", "workflows", &propose.workflow, "proposals"], &[]);
        // A repeated request would be a second proposal.
        Ok(client.post(&route, &body, Repeat::MustNot).await)
    })?;
    match created {
        Ok(created) => Ok(Some(created)),
        Err(error) if error.is("INVALID_DEFINITION") => {
            if compiled(file, context)?.is_some() {
                print_remote(&list(&error.cli_error.failure.details, "diagnostics"), Some(file));
                return Err(error.into());
            }
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
