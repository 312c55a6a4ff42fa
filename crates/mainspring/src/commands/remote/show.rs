//! `mainspring show` at a server.

use mainspring_engine::clock::now_ms;

use super::find::find;
use crate::{
    cli::Global,
    client::{
        Client,
        execution::{Execution, attempts},
    },
    commands::show::{ExecutionView, Show},
    error::{CliError, Exit},
    read_store::block_on,
};

pub(in crate::commands) fn show(show: &Show, client: &Client, global: &Global) -> Result<Exit, CliError> {
    let (execution, (mut values, attempts)) = block_on(async {
        let id = find(client, &show.id).await?;
        // Steps are read first. The execution that is read afterwards is newer and has everything that they refer to.
        let attempts = attempts(client, &id).await?;
        Ok((Execution::get(client, &id).await?, attempts))
    })?;
    if global.json {
        let count = values.len();
        let page = values.drain(show.page(count)).collect();
        show.answer(execution.envelope(page), count, execution.listed.row.parent.clone());
        return Ok(Exit::Fine);
    }
    let row = &execution.listed.row;
    let by = execution.listed.started_by.clone().unwrap_or_else(|| "nobody".into());
    show.print(&ExecutionView {
        name: execution.workflow_name.clone().unwrap_or_else(|| "workflow".into()),
        workflow_hash: execution.listed.workflow_hash.clone(),
        began: Some((row.started_at, by, execution.id().to_string())),
        parent: row.parent.clone(),
        quarantined: execution.quarantined.clone(),
        attempts,
        summary: execution.summary(now_ms()),
    });
    Ok(Exit::Fine)
}
