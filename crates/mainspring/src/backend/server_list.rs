//! Lists executions of a server.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::value::{Map, Value};

use super::{
    contract::{ListQuery, ListedExecution},
    server_find::Pages,
};
use crate::{
    client::{Client, address::route, execution::Listed, response::Response},
    error::CliError,
};

/// Lists the executions of a server.
pub(super) async fn list(client: &Client, query: &ListQuery) -> Result<Vec<ListedExecution>, CliError> {
    let mut parameters = Vec::new();
    if !query.statuses.is_empty() {
        parameters.push(("status", query.statuses.join(",")));
    }
    parameters.extend(query.workflow.iter().map(|workflow| ("workflowId", workflow.clone())));
    let mut pages = Pages::new(client, parameters, query.limit);
    let mut rows: Vec<Listed> = Vec::new();
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            break;
        }
        rows.extend(page);
    }
    if rows.is_empty() && !query.is_narrowed() {
        let message = format!("there are no executions at {}; `mainspring run WORKFLOW` starts one", client.address());
        return Err(CliError::bad_input("no_executions", message));
    }
    name_workflows(client, &mut rows).await?;
    Ok(rows.into_iter().map(|listed| ListedExecution { value: value(&listed), row: listed.row }).collect())
}

/// Number of workflows that are shown by slug, each with a request; further ones are shown by id.
const NAMED_MAX: usize = 20;

/// Replaces the ids of workflows by slugs. An id stays if its workflow cannot be read.
async fn name_workflows(client: &Client, rows: &mut [Listed]) -> Result<(), CliError> {
    let ids: BTreeSet<String> = rows.iter().filter_map(|row| row.row.workflow.clone()).collect();
    let mut slugs = BTreeMap::new();
    for id in ids.into_iter().take(NAMED_MAX) {
        match client.get(&route(&["api", "workflows", &id], &[])).await {
            Ok(workflow) => drop(slugs.insert(id, Response::new(client, "a workflow", &workflow).maybe_text("slug")?)),
            Err(error) if error.is("NOT_FOUND") || error.is("FORBIDDEN") || error.is("CONFLICT") => {}
            Err(error) => return Err(error.into()),
        }
    }
    for row in rows {
        let slug = row.row.workflow.as_ref().and_then(|id| slugs.get(id).cloned().flatten());
        row.row.workflow = slug.or(row.row.workflow.take());
    }
    Ok(())
}

/// Renames the keys of the server to those of `mainspring list` with a local store.
fn value(row: &Listed) -> Value {
    let renamed = |key: &str| match key {
        "id" => "executionId".to_string(),
        "errorCode" => "error".to_string(),
        key => key.to_string(),
    };
    // A local store has the code of an error under `error`; the server has the whole error.
    let own = row.value.as_map().into_iter().flatten().filter(|(key, _)| *key != "error");
    let mut map: Map = own.map(|(key, value)| (renamed(key), value.clone())).collect();
    map.insert("workflow".into(), row.row.workflow.as_deref().into());
    map.entry("key".into()).or_insert_with(|| row.id.as_str().into());
    Value::Map(map)
}
