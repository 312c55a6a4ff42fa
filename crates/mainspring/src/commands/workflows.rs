//! `mainspring workflows`: lists the workflows of a server.

use clap::Args;
use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use crate::{
    client::{Client, ClientError, address::route, response::Response},
    context::Context,
    context::block_on,
    error::{CliError, Exit},
    output::terminal::{bold, dim, print_out},
    output::text::{columns, shown},
};

/// List the workflows of a server.
#[derive(Debug, Args)]
pub(crate) struct Workflows {}

/// Workflows per page, fewer if they are large, and workflows listed at most.
const PAGE: usize = 100;
const ROWS_MAX: usize = 100_000;

pub(crate) fn workflows(_: &Workflows, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("workflows")?;
    let found = block_on(async { Ok(all(&client).await?) })?;
    if context.global.json {
        found.iter().for_each(|workflow| print_out!("{}", compact(workflow)));
        return Ok(Exit::Fine);
    }
    if found.is_empty() {
        print_out!("{}", dim("none"));
    }
    let mut rows = Vec::new();
    for workflow in &found {
        let answer = Response::new(&client, "a workflow", workflow);
        let id = answer.text("id")?;
        let note = if answer.flag("enabled")? { "" } else { "disabled" };
        let name = answer.maybe_text("slug")?.unwrap_or_else(|| id.clone());
        rows.push(
            [name, answer.text("version")?, answer.text("updatedAt")?, answer.text("name")?, note.to_string()]
                .map(|cell| shown(&cell)),
        );
    }
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &rows {
        let pad = |column: usize| " ".repeat(widths[column] - columns(&row[column]));
        let [slug, version, updated, name, note] = row;
        let line = format!("{}{}  {version}{}  {}  {name}{}  {note}", bold(slug), pad(0), pad(1), dim(updated), pad(3));
        print_out!("{}", line.trim_end());
    }
    Ok(Exit::Fine)
}

/// Fetches all workflows without their definitions.
async fn all(client: &Client) -> Result<Vec<Value>, ClientError> {
    let without_data = |workflow: &Value| {
        let own = workflow.as_map().into_iter().flatten().filter(|(key, _)| *key != "data");
        Value::Map(own.map(|(key, value)| (key.clone(), value.clone())).collect::<Map>())
    };
    pages(client, without_data).await
}

/// Fetches all workflows with their definitions.
pub(super) async fn all_with_data(client: &Client) -> Result<Vec<Value>, ClientError> {
    pages(client, Value::clone).await
}

async fn pages(client: &Client, part: impl Fn(&Value) -> Value) -> Result<Vec<Value>, ClientError> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < ROWS_MAX {
        let limit = PAGE.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
        let page = client.get(&route(&["api", "workflows"], &query)).await?;
        let answer = Response::new(client, "a page of workflows", &page);
        let workflows = answer.list("workflows")?;
        found.extend(workflows.iter().map(&part));
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        if next.is_none() || next == cursor || workflows.is_empty() {
            break;
        }
        cursor = next;
    }
    Ok(found)
}
