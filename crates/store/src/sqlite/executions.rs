//! The catalogue's rows of executions.

use std::collections::BTreeSet;

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use rusqlite::{Connection, OptionalExtension, Row, Statement, ToSql, params, params_from_iter};

use crate::{
    ExecutionRow, Filter, Origin, OtherDefinitions, RolloutRow, RowChange, RowUsage, StartNames,
    sql::{integer, natural, only},
};

/// Greater than every key, for a list that starts with the newest.
pub(super) const ABOVE_ALL_KEYS: [u8; 17] = [0xff; 17];

/// The statement of [`insert`].
pub(super) const INSERT: &str = sql!("executions.sql", "execution_insert");

/// The statement of [`pending_organizations`].
pub(super) const PENDING_ORGANIZATIONS: &str = sql!("executions.sql", "pending_organizations");

/// The statement of [`count_other_definitions`].
const OTHER_DEFINITIONS: &str = sql!("executions.sql", "executions_of_other_definitions_count");

/// The statement of [`of_rollout`].
const ROLLOUT: &str = sql!("executions.sql", "rollout_executions");

/// The statement of [`change`].
pub(super) const CHANGE: &str = sql!("executions.sql", "execution_change");

/// False if the key, the external name or the idempotency key is taken; nothing is written then.
pub(super) fn insert(statement: &mut Statement<'_>, key: ExecutionKey, row: &ExecutionRow) -> rusqlite::Result<bool> {
    let values = params![
        key.0,
        row.id,
        row.workflow,
        row.workflow_version,
        row.workflow_hash,
        row.plan_hash.0,
        row.status,
        row.outcome,
        row.error,
        row.trigger_type,
        row.initiator_type,
        row.initiator_user_id,
        row.idempotency_key,
        row.session_id,
        row.partition,
        row.attempt_count,
        integer(row.started_at),
        row.completed_at.map(integer),
        row.organization,
        row.workflow_id,
        row.trigger_id,
        row.parent.map(|parent| parent.0),
        row.names.parent_id,
        row.names.workflow_name,
        row.names.rollout,
        row.usage.map(|usage| integer(usage.tokens)),
        row.usage.map(|usage| integer(usage.cost)),
    ];
    Ok(statement.execute(values)? == 1)
}

pub(super) fn change(statement: &mut Statement<'_>, key: ExecutionKey, change: &RowChange) -> rusqlite::Result<()> {
    let definition = change.definition.as_ref();
    let values = params![
        key.0,
        change.status,
        change.outcome,
        change.error,
        change.completed_at.map(integer),
        change.usage.map(|usage| integer(usage.tokens)),
        change.usage.map(|usage| integer(usage.cost)),
        definition.map(|definition| &definition.workflow_hash),
        definition.and_then(|definition| definition.workflow_version.as_ref()),
        definition.map(|definition| definition.plan_hash.0),
    ];
    statement.execute(values).map(drop)
}

pub(super) fn by_key(connection: &Connection, key: ExecutionKey) -> rusqlite::Result<Option<ExecutionRow>> {
    connection.prepare_cached(sql!("executions.sql", "execution"))?.query_row([key.0], of_row).optional()
}

pub(super) fn by_id(connection: &Connection, id: &str) -> rusqlite::Result<Option<ExecutionRow>> {
    connection.prepare_cached(sql!("executions.sql", "execution_by_id"))?.query_row([id], of_row).optional()
}

pub(super) fn by_idempotency_key(
    connection: &Connection,
    of: &Origin<'_>,
    key: &str,
) -> rusqlite::Result<Option<ExecutionRow>> {
    let sql = sql!("executions.sql", "execution_by_idempotency_key");
    connection
        .prepare_cached(sql)?
        .query_row(params![of.organization, of.workflow_id, of.workflow, key], of_row)
        .optional()
}

/// Reads a separate index range for each status, in the requested order, since the newest rows of all are among the
/// newest of each.
pub(super) fn list(
    connection: &Connection,
    filter: &Filter,
    before: Option<ExecutionKey>,
    limit: usize,
) -> rusqlite::Result<Vec<ExecutionRow>> {
    let before = before.as_ref().map_or(&ABOVE_ALL_KEYS[..], |key| &key.0);
    let limit_sql = integer(limit as u64);
    let Filter { statuses, workflow, organization, workflow_id, initiator, excludes_quarantined } = filter;
    let statuses: BTreeSet<Option<&String>> = match statuses.is_empty() {
        true => BTreeSet::from([None]),
        false => statuses.iter().map(Some).collect(),
    };
    let mut found = Vec::new();
    for status in statuses {
        let (mut asked, mut values): (Vec<&str>, Vec<&dyn ToSql>) = (Vec::new(), vec![&before, &limit_sql]);
        for (name, value) in [
            ("status", status),
            ("workflow", workflow.as_ref()),
            ("organization", organization.as_ref()),
            ("workflow_id", workflow_id.as_ref()),
            ("initiator", initiator.as_ref()),
        ] {
            asked.extend(value.is_some().then_some(name));
            values.extend(value.map(|value| value as &dyn ToSql));
        }
        if *excludes_quarantined {
            asked.push("excludes_quarantined");
            values.push(excludes_quarantined);
        }
        let sql = only(sql!("executions.sql", "executions"), '?', 2, &asked);
        let mut statement = connection.prepare_cached(&sql)?;
        for row in statement.query_map(params_from_iter(values), of_row)? {
            found.push(row?);
        }
    }
    found.sort_by_key(|row| std::cmp::Reverse(row.key));
    found.truncate(limit);
    Ok(found)
}

/// Reads a separate index range for each status.
pub(super) fn count(
    connection: &Connection,
    organization: &str,
    statuses: &[&str],
    most: usize,
) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare_cached(sql!("executions.sql", "executions_count"))?;
    let mut count = 0;
    for status in statuses {
        let left = integer((most - count) as u64);
        let found: i64 = statement.query_row(params![organization, status, left], |row| row.get(0))?;
        count += found as usize;
    }
    Ok(count)
}

/// Reads a separate index range between each two definitions that are left out.
pub(super) fn count_other_definitions(
    connection: &Connection,
    of: &OtherDefinitions<'_>,
    most: usize,
) -> rusqlite::Result<usize> {
    let mut count = 0;
    for (above, below) in of.ranges() {
        if count == most {
            break;
        }
        let left = integer((most - count) as u64);
        let (mut asked, mut values): (Vec<&str>, Vec<&dyn ToSql>) =
            (Vec::new(), vec![&of.organization, &of.workflow_id, &left]);
        for (name, bound) in [("above", &above), ("below", &below)] {
            asked.extend(bound.is_some().then_some(name));
            values.extend(bound.as_ref().map(|bound| bound as &dyn ToSql));
        }
        let sql = only(OTHER_DEFINITIONS, '?', 3, &asked);
        let found: i64 = connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
        count += found as usize;
    }
    Ok(count)
}

pub(super) fn pending_organizations(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    connection.prepare_cached(PENDING_ORGANIZATIONS)?.query_map([], |row| row.get(0))?.collect()
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<ExecutionRow> {
    Ok(ExecutionRow {
        key: ExecutionKey(row.get("execution")?),
        id: row.get("id")?,
        workflow: row.get("workflow")?,
        workflow_version: row.get("workflow_version")?,
        workflow_hash: row.get("workflow_hash")?,
        plan_hash: Hash(row.get("plan_hash")?),
        status: row.get("status")?,
        outcome: row.get("outcome")?,
        error: row.get("error")?,
        trigger_type: row.get("trigger_type")?,
        initiator_type: row.get("initiator_type")?,
        initiator_user_id: row.get("initiator_user_id")?,
        idempotency_key: row.get("idempotency_key")?,
        session_id: row.get("session_id")?,
        partition: row.get("partition")?,
        attempt_count: row.get("attempt_count")?,
        started_at: natural(row.get("started_at")?),
        completed_at: row.get::<_, Option<i64>>("completed_at")?.map(natural),
        organization: row.get("organization")?,
        workflow_id: row.get("workflow_id")?,
        trigger_id: row.get("trigger_id")?,
        parent: row.get::<_, Option<[u8; 16]>>("parent")?.map(ExecutionKey),
        names: StartNames {
            parent_id: row.get("parent_id")?,
            workflow_name: row.get("workflow_name")?,
            rollout: row.get("rollout")?,
        },
        usage: usage(row)?,
    })
}

fn usage(row: &Row<'_>) -> rusqlite::Result<Option<RowUsage>> {
    let amounts = (row.get::<_, Option<i64>>("tokens")?, row.get::<_, Option<i64>>("cost")?);
    let (Some(tokens), Some(cost)) = amounts else { return Ok(None) };
    Ok(Some(RowUsage { tokens: natural(tokens), cost: natural(cost) }))
}

pub(super) fn of_rollout(connection: &Connection, rollout: &str, limit: usize) -> rusqlite::Result<Vec<RolloutRow>> {
    let mut statement = connection.prepare_cached(ROLLOUT)?;
    let of_row = |row: &Row<'_>| {
        Ok(RolloutRow {
            execution: ExecutionKey(row.get("execution")?),
            parent: row.get::<_, Option<[u8; 16]>>("parent")?.map(ExecutionKey),
            parent_id: row.get("parent_id")?,
            error: row.get("error")?,
            status: row.get("status")?,
            started_at: natural(row.get("started_at")?),
            completed_at: row.get::<_, Option<i64>>("completed_at")?.map(natural),
            usage: usage(row)?,
        })
    };
    statement.query_map(params![rollout, integer(limit as u64)], of_row)?.collect()
}

pub(super) fn quarantine(connection: &Connection, execution: ExecutionKey, reason: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql!("executions.sql", "quarantine"))?.execute(params![execution.0, reason]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;

    fn explained(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![rusqlite::types::Null; statement.parameter_count()];
        statement.query_map(params_from_iter(values), |row| row.get("detail")).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn executions_of_other_definitions_are_read_from_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(SqliteStore::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        let steps = explained(&connection, &only(OTHER_DEFINITIONS, '?', 3, &["above", "below"]));
        let range = "executions_unfinished (organization=? AND workflow_id=? AND workflow_hash>? AND workflow_hash<?)";
        assert!(steps.iter().any(|step| step.contains(range)), "{steps:?}");
    }

    #[test]
    fn executions_of_a_rollout_are_read_in_order_from_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(SqliteStore::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        let steps = explained(&connection, ROLLOUT);
        assert_eq!(steps, ["SEARCH executions USING INDEX executions_by_rollout (rollout=?)"]);
    }

    #[test]
    fn organizations_with_pending_executions_are_read_from_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(SqliteStore::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        let steps = explained(&connection, PENDING_ORGANIZATIONS);
        let of_rows: Vec<_> = steps.iter().filter(|step| step.contains("executions")).collect();
        assert!(of_rows.len() >= 3, "{steps:?}");
        assert!(of_rows.iter().all(|step| step.contains("SEARCH") && step.contains("executions_pending")), "{steps:?}");
    }
}
