//! The catalogue's rows of executions.

use std::collections::BTreeSet;

use mainspring_kernel::key::ExecutionKey;
use tokio_postgres::{Row, types::ToSql};

use super::{
    columns::{self, start_key, word_key},
    connections::Session,
    error::Fault,
};
use crate::{
    ExecutionRow, Filter, Origin, OtherDefinitions, RolloutRow, RowUsage, StartNames,
    sql::{integer, only},
};

/// Greater than every key, for a list that starts with the newest.
pub(super) const ABOVE_ALL_KEYS: [u8; 17] = [0xff; 17];

pub(super) async fn by_key(session: &Session, key: ExecutionKey) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(sql!("executions.sql", "execution"), &[&&key.0[..]]).await?)
}

pub(super) async fn by_id(session: &Session, id: &str) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(sql!("executions.sql", "execution_by_id"), &[&&word_key(id).0[..]]).await?)
}

pub(super) async fn by_idempotency_key(
    session: &Session,
    of: &Origin<'_>,
    key: &str,
) -> Result<Option<ExecutionRow>, Fault> {
    one(&session.query(sql!("executions.sql", "execution_by_start"), &[&&start_key(of, key).0[..]]).await?)
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
    let mut sql = sql!("executions.sql", "executions");
    if !statuses.is_empty() {
        sql = sql!("executions.sql", "executions_of_status");
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
    let found = session.query(sql!("executions.sql", "executions_count"), &[&key, &statuses, &most]).await?;
    found.first().map_or(Ok(0), |found| columns::number(found, 0).map(|count| count as usize))
}

/// Reads a separate index range between each two definitions that are left out.
pub(super) async fn count_other_definitions(
    session: &Session,
    of: &OtherDefinitions<'_>,
    most: usize,
) -> Result<usize, Fault> {
    let [organization, workflow] = [of.organization, of.workflow_id].map(|word| word_key(word).0.to_vec());
    let mut count = 0;
    for (above, below) in of.ranges() {
        if count == most {
            break;
        }
        let left = integer((most - count) as u64);
        let (above, below) = (above.map(str::as_bytes), below.map(str::as_bytes));
        let (mut asked, mut values): (Vec<&str>, Vec<&(dyn ToSql + Sync)>) =
            (Vec::new(), vec![&organization, &workflow, &left]);
        for (name, bound) in [("above", &above), ("below", &below)] {
            asked.extend(bound.is_some().then_some(name));
            values.extend(bound.as_ref().map(|bound| bound as &(dyn ToSql + Sync)));
        }
        let sql = only(sql!("executions.sql", "executions_of_other_definitions_count"), '$', 3, &asked);
        let found = session.query(&sql, &values).await?;
        count += found.first().map_or(Ok(0), |found| columns::number(found, 0))? as usize;
    }
    Ok(count)
}

pub(super) async fn pending_organizations(session: &Session) -> Result<BTreeSet<String>, Fault> {
    let found = session.query(sql!("executions.sql", "pending_organizations"), &[]).await?;
    found.iter().map(|found| columns::word(found, 0)).collect()
}

fn one(rows: &[Row]) -> Result<Option<ExecutionRow>, Fault> {
    rows.first().map(of_row).transpose()
}

fn of_row(found: &Row) -> Result<ExecutionRow, Fault> {
    Ok(ExecutionRow {
        key: columns::key(found, 0)?,
        id: columns::word(found, 1)?,
        workflow: columns::optional_word(found, 2)?,
        workflow_version: columns::optional_word(found, 3)?,
        workflow_hash: columns::word(found, 4)?,
        plan_hash: columns::hash(found, 5)?,
        status: columns::word(found, 6)?,
        outcome: columns::optional_word(found, 7)?,
        error: columns::optional_word(found, 8)?,
        trigger_type: columns::word(found, 9)?,
        initiator_type: columns::word(found, 10)?,
        initiator_user_id: columns::optional_word(found, 11)?,
        idempotency_key: columns::optional_word(found, 12)?,
        session_id: columns::optional_word(found, 13)?,
        partition: columns::small_number(found, 14)?,
        attempt_count: columns::small_number(found, 15)?,
        started_at: columns::number(found, 16)?,
        completed_at: columns::optional_number(found, 17)?,
        organization: columns::optional_word(found, 18)?,
        workflow_id: columns::optional_word(found, 19)?,
        trigger_id: columns::optional_word(found, 20)?,
        parent: columns::optional_key(found, 21)?,
        names: StartNames {
            parent_id: columns::optional_word(found, 22)?,
            workflow_name: columns::optional_word(found, 23)?,
            rollout: columns::optional_word(found, 24)?,
        },
        usage: usage(found, 25)?,
    })
}

/// Reads the tokens at a column, and the cost at the next one.
fn usage(found: &Row, at: usize) -> Result<Option<RowUsage>, Fault> {
    let amounts = (columns::optional_number(found, at)?, columns::optional_number(found, at + 1)?);
    let (Some(tokens), Some(cost)) = amounts else { return Ok(None) };
    Ok(Some(RowUsage { tokens, cost }))
}

pub(super) async fn of_rollout(session: &Session, rollout: &str, limit: usize) -> Result<Vec<RolloutRow>, Fault> {
    let (rollout, limit) = (rollout.as_bytes(), integer(limit as u64));
    let found = session.query(sql!("executions.sql", "rollout_executions"), &[&rollout, &limit]).await?;
    let of_row = |found: &Row| {
        Ok(RolloutRow {
            execution: columns::key(found, 0)?,
            parent: columns::optional_key(found, 1)?,
            parent_id: columns::optional_word(found, 2)?,
            error: columns::optional_word(found, 3)?,
            status: columns::word(found, 4)?,
            started_at: columns::number(found, 5)?,
            completed_at: columns::optional_number(found, 6)?,
            usage: usage(found, 7)?,
        })
    };
    found.iter().map(of_row).collect()
}
