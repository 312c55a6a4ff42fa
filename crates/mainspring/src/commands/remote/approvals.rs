//! `mainspring approvals` at a server.

use crate::{
    cli::Global,
    client::{Client, ClientError, address::route, response::Response},
    commands::approvals::{Approvals, Named, Waits, show},
    error::{CliError, Exit},
    read_store::block_on,
};

use super::find::PAGE_ROWS;

/// Lists the open approvals of a server.
pub(in crate::commands) fn approvals(
    approvals: &Approvals,
    client: &Client,
    global: &Global,
) -> Result<Exit, CliError> {
    let (mut waits, mut cursor, limit) = (Vec::new(), approvals.cursor.clone(), approvals.limit as usize);
    block_on(async {
        loop {
            let rows = (limit - waits.len()).min(PAGE_ROWS).to_string();
            let mut query = vec![("limit", rows.as_str())];
            query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
            let page = client.get(&route(&["api", "approvals"], &query)).await?;
            let answer = Response::new(client, "a page of approvals", &page);
            for gate in answer.objects("approvals", "an approval")? {
                waits.push(read(gate)?);
            }
            let next = answer.maybe_text("nextCursor")?;
            // Ends the loop if a faulty server repeats a cursor.
            let is_over = next.is_none() || next == cursor;
            cursor = next;
            if is_over || waits.len() >= limit {
                return Ok::<_, CliError>(());
            }
        }
    })?;
    show(&waits, cursor.as_deref(), global);
    Ok(Exit::Fine)
}

fn read(answer: Response<'_>) -> Result<Waits, ClientError> {
    let gate = answer.object("gate", "a gate")?;
    let named = |one: Response<'_>| Ok(Named { user: one.text("userId")?, can_decide: Some(one.flag("canDecide")?) });
    let approvers = answer.objects("approvers", "an approver")?.into_iter().map(named);
    Ok(Waits {
        execution: answer.text("executionId")?,
        workflow: answer
            .maybe_text("workflowName")?
            .map_or_else(|| answer.maybe_text("workflowId"), |name| Ok(Some(name)))?,
        step: answer.text("stepId")?,
        prompt: answer.text("message")?,
        approvers: approvers.collect::<Result<Vec<_>, ClientError>>()?,
        owner: answer.maybe_text("userId")?,
        count: gate.number("count")?,
        approved_by: gate.texts("approvedBy")?,
        since: answer.maybe_time("requestedAt")?,
        until: answer.time("timeoutAt")?,
        default_action: answer.text("defaultAction")?,
        can_be_approved: Some(answer.flag("canBeApproved")?),
        url: answer.maybe_text("url")?,
    })
}
