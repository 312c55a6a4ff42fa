//! `mainspring list`: the executions of a folder.

use clap::Args;
use mainspring_engine::EngineError;
use mainspring_kernel::{json::compact, time::rfc3339, value::Value};
use mainspring_store::{ExecutionRow, Filter};

use crate::{
    cli::Global,
    exit::{Exit, Refusal},
    naming::{look, no_executions},
    terminal::{Terminal, bold, dim, duration, say, status},
    text::shown,
};

/// List executions.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those of this status; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = ["pending", "running", "waiting_approval", "completed", "failed", "cancelled"])]
    status: Vec<String>,
    /// Only those of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// Lists executions.
pub(crate) fn list(list: &List, global: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    let filter = Filter { statuses: list.status.clone(), workflow: list.workflow.clone() };
    let looked = look(global)?;
    let rows = looked.store.executions(&filter, None, list.limit as usize).map_err(EngineError::from)?;
    if rows.is_empty() && filter == Filter::default() {
        return Err(no_executions(&looked.home));
    }
    if global.json {
        rows.iter().for_each(|row| say!("{}", compact(&row_value(row))));
        return Ok(Exit::Fine);
    }
    if rows.is_empty() {
        say!("{}", dim("none"));
    }
    let width = rows.iter().map(|row| row.id.chars().count()).max().unwrap_or(0);
    for row in &rows {
        let workflow = shown(row.workflow.as_deref().unwrap_or("-"));
        let word = format!("{:<16}", row.status);
        let took = row.completed_at.map(|at| duration(at.saturating_sub(row.started_at))).unwrap_or_default();
        let note = [row.outcome.as_deref(), row.error.as_deref()]
            .into_iter()
            .flatten()
            .map(shown)
            .collect::<Vec<_>>()
            .join(" ");
        let id = shown(&row.id);
        let started = rfc3339(row.started_at);
        say!(
            "{}  {}  {workflow}  {}  {took}  {note}",
            bold(&format!("{id:<width$}")),
            status(&word).replace(&word, word.trim_end()) + &" ".repeat(word.len() - word.trim_end().len()),
            dim(&started)
        );
    }
    Ok(Exit::Fine)
}

/// A row as the second specification spells it.
pub(crate) fn row_value(row: &ExecutionRow) -> Value {
    Value::map([
        ("executionId", row.id.as_str().into()),
        ("key", row.key.to_string().into()),
        ("workflow", row.workflow.as_deref().into()),
        ("workflowVersion", row.workflow_version.as_deref().into()),
        ("workflowHash", row.workflow_hash.as_str().into()),
        ("status", row.status.as_str().into()),
        ("outcome", row.outcome.as_deref().into()),
        ("error", row.error.as_deref().into()),
        ("triggerType", row.trigger_type.as_str().into()),
        ("initiatorType", row.initiator_type.as_str().into()),
        ("initiatorUserId", row.initiator_user_id.as_deref().into()),
        ("idempotencyKey", row.idempotency_key.as_deref().into()),
        ("attemptCount", row.attempt_count.into()),
        ("startedAt", rfc3339(row.started_at).into()),
        ("completedAt", row.completed_at.map(rfc3339).into()),
    ])
}
