//! The catalogue's rows of executions.

use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;
use tokio_postgres::Row;

use super::{
    connections::Session,
    failure::Fault,
    row::{self, start_key, word_key},
};
use crate::{ExecutionRow, Filter, number::integer};

/// Above every key, for a list that begins at the newest.
const ABOVE_ALL_KEYS: [u8; 17] = [0xff; 17];

pub(super) async fn by_key(session: &Session, key: ExecutionKey) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution.sql"), &[&&key.0[..]]).await?)
}

pub(super) async fn by_id(session: &Session, id: &str) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution_by_id.sql"), &[&&word_key(id).0[..]]).await?)
}

pub(super) async fn by_idempotency_key(
    session: &Session,
    workflow: Option<&str>,
    key: &str,
) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution_by_start.sql"), &[&&start_key(workflow, key).0[..]]).await?)
}

pub(super) async fn list(
    session: &Session,
    filter: &Filter,
    before: Option<ExecutionKey>,
    limit: usize,
) -> Result<Vec<ExecutionRow>, Fault> {
    let before = before.as_ref().map_or(&ABOVE_ALL_KEYS[..], |key| &key.0);
    let limit = integer(limit as u64);
    let statuses: BTreeSet<&[u8]> = filter.statuses.iter().map(String::as_bytes).collect();
    let statuses = Vec::from_iter(statuses);
    let workflow = filter.workflow.as_deref().map(word_key);
    let found = match (&workflow, statuses.is_empty()) {
        (None, true) => session.query(include_str!("sql/executions.sql"), &[&before, &limit]).await?,
        (None, false) => {
            session.query(include_str!("sql/executions_of_status.sql"), &[&before, &limit, &statuses]).await?
        }
        (Some(name), true) => {
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&before, &limit, &&name.0[..]];
            session.query(include_str!("sql/executions_of_workflow.sql"), &values).await?
        }
        (Some(name), false) => {
            let sql = include_str!("sql/executions_of_workflow_and_status.sql");
            session.query(sql, &[&before, &limit, &statuses, &&name.0[..]]).await?
        }
    };
    found.iter().map(of_row).collect()
}

fn one(rows: &[Row]) -> Result<Option<ExecutionRow>, Fault> {
    rows.first().map(of_row).transpose()
}

fn of_row(found: &Row) -> Result<ExecutionRow, Fault> {
    Ok(ExecutionRow {
        key: row::key(found, 0)?,
        id: row::word(found, 1)?,
        workflow: row::optional_word(found, 2)?,
        workflow_version: row::optional_word(found, 3)?,
        workflow_hash: row::word(found, 4)?,
        plan_hash: row::hash(found, 5)?,
        status: row::word(found, 6)?,
        outcome: row::optional_word(found, 7)?,
        error: row::optional_word(found, 8)?,
        trigger_type: row::word(found, 9)?,
        initiator_type: row::word(found, 10)?,
        initiator_user_id: row::optional_word(found, 11)?,
        idempotency_key: row::optional_word(found, 12)?,
        session_id: row::optional_word(found, 13)?,
        partition: row::small_number(found, 14)?,
        attempt_count: row::small_number(found, 15)?,
        started_at: row::number(found, 16)?,
        completed_at: row::optional_number(found, 17)?,
    })
}
