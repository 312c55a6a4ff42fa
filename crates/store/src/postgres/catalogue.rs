//! The catalogue's rows of executions.

use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;
use tokio_postgres::{Row, types::ToSql};

use super::{
    connections::Session,
    failure::Fault,
    row::{self, start_key, word_key},
};
use crate::{ExecutionRow, Filter, Origin, conditions::only, number::integer};

/// Greater than every key, for a list that starts with the newest.
pub(super) const ABOVE_ALL_KEYS: [u8; 17] = [0xff; 17];

pub(super) async fn by_key(session: &Session, key: ExecutionKey) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution.sql"), &[&&key.0[..]]).await?)
}

pub(super) async fn by_id(session: &Session, id: &str) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution_by_id.sql"), &[&&word_key(id).0[..]]).await?)
}

pub(super) async fn by_idempotency_key(
    session: &Session,
    of: &Origin<'_>,
    key: &str,
) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(include_str!("sql/execution_by_start.sql"), &[&&start_key(of, key).0[..]]).await?)
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
    let Filter { workflow, organization, workflow_id, initiator, .. } = filter;
    let key = |word: &Option<String>| word.as_ref().map(|word| word_key(word).0.to_vec());
    let wanted = [
        ("workflow", key(workflow)),
        ("organization", key(organization)),
        ("workflow_id", key(workflow_id)),
        ("initiator", initiator.clone().map(String::into_bytes)),
    ];
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&before, &limit];
    let mut sql = include_str!("sql/executions.sql");
    if !statuses.is_empty() {
        sql = include_str!("sql/executions_of_status.sql");
        values.push(&statuses);
    }
    let fixed = values.len();
    let mut asked: Vec<&str> = wanted.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
    values.extend(wanted.iter().filter_map(|(_, value)| value.as_ref()).map(|value| value as &(dyn ToSql + Sync)));
    if filter.excludes_quarantined {
        asked.push("excludes_quarantined");
        values.push(&filter.excludes_quarantined);
    }
    let found = session.query(&only(sql, '$', fixed, &asked), &values).await?;
    found.iter().map(of_row).collect()
}

pub(super) async fn count(
    session: &Session,
    organization: &str,
    statuses: &[&str],
    most: usize,
) -> Result<usize, Fault> {
    let (key, most) = (word_key(organization).0.to_vec(), integer(most as u64));
    let statuses: Vec<&[u8]> = statuses.iter().map(|status| status.as_bytes()).collect();
    let found = session.query(include_str!("sql/executions_count.sql"), &[&key, &statuses, &most]).await?;
    found.first().map_or(Ok(0), |found| row::number(found, 0).map(|count| count as usize))
}

pub(super) async fn pending_organizations(session: &Session) -> Result<BTreeSet<String>, Fault> {
    let found = session.query(include_str!("sql/pending_organizations.sql"), &[]).await?;
    found.iter().map(|found| row::word(found, 0)).collect()
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
        organization: row::optional_word(found, 18)?,
        workflow_id: row::optional_word(found, 19)?,
        trigger_id: row::optional_word(found, 20)?,
        parent: row::optional_key(found, 21)?,
        parent_id: row::optional_word(found, 22)?,
        workflow_name: row::optional_word(found, 23)?,
    })
}
