//! Nodes, their leases, and the owners of partitions.

use std::collections::BTreeSet;

use super::{
    columns,
    connections::{Session, ask},
    error::{self, Fault},
    migrations, remote_attempts,
};
use crate::{ClusterView, Fence, Node, RemoteAttempt, partition_of, sql::integer};

/// Longer than any lease, and far below the largest time.
const LEASE_MS_MAX: i64 = 1 << 52;

/// Executions that are moved by one statement.
const PAGE: i64 = 4096;

pub(super) async fn claim(session: &Session, partition: u32, holder: &str) -> Result<u64, Fault> {
    let answers = session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("membership.sql", "partitioning_share"), &[]),
            ask(sql!("membership.sql", "claim"), &[&i64::from(partition), &holder.as_bytes()]),
            ask("COMMIT", &[]),
        ])
        .await?;
    columns::number(first(&answers[2])?, 0)
}

pub(super) async fn partitions(session: &Session) -> Result<u32, Fault> {
    columns::small_number(first(&session.query(sql!("membership.sql", "partitioning"), &[]).await?)?, 0)
}

/// Recomputes the partition of every execution and message. It and concurrent writers wait for each other.
pub(super) async fn repartition(session: &Session, partitions: u32) -> Result<(), Fault> {
    session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("connection.sql", "no_time_limit"), &[]),
            ask(sql!("membership.sql", "partitioning_lock"), &[]),
            ask(sql!("membership.sql", "partitions_lock_all"), &[]),
            ask(sql!("membership.sql", "partitions_release_all"), &[]),
            ask(sql!("membership.sql", "partitioning_set"), &[&i64::from(partitions)]),
        ])
        .await?;
    let mut after = Vec::new();
    loop {
        let page = session.query(sql!("membership.sql", "move_page"), &[&after, &PAGE]).await?;
        let keys = page.iter().map(|found| columns::key(found, 0)).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = keys.last() else { break };
        after = last.0.to_vec();
        let executions: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let new: Vec<i64> = keys.iter().map(|key| i64::from(partition_of(*key, partitions))).collect();
        session
            .round(&[
                ask(sql!("membership.sql", "move_heads"), &[&executions, &new]),
                ask(sql!("membership.sql", "move_executions"), &[&executions, &new]),
                ask(sql!("membership.sql", "move_inbox"), &[&executions, &new]),
            ])
            .await?;
    }
    session.round(&[ask("COMMIT", &[])]).await?;
    Ok(())
}

pub(super) async fn put_metadata_if_absent(session: &Session, name: &str, value: &str) -> Result<String, Fault> {
    let answers = session
        .round(&[
            ask(sql!("metadata.sql", "metadata_insert"), &[&name.as_bytes(), &value.as_bytes()]),
            ask(sql!("metadata.sql", "metadata"), &[&name.as_bytes()]),
        ])
        .await?;
    columns::word(first(&answers[1])?, 0)
}

pub(super) async fn metadata(session: &Session, name: &str) -> Result<Option<String>, Fault> {
    let found = session.query(sql!("metadata.sql", "metadata"), &[&name.as_bytes()]).await?;
    found.first().map(|found| columns::word(found, 0)).transpose()
}

/// Returns the cluster view of a node.
pub(super) async fn cluster_view(session: &Session, name: &str) -> Result<ClusterView, Fault> {
    let answers = session
        .round(&[
            ask(sql!("membership.sql", "partitioning"), &[]),
            ask(sql!("membership.sql", "holders"), &[]),
            ask(sql!("membership.sql", "nodes"), &[]),
            ask(sql!("membership.sql", "remote_attempts_to_stop"), &[&name.as_bytes()]),
        ])
        .await?;
    table_of(name, &answers)
}

/// Builds the cluster view from the rows of four statements.
fn table_of(name: &str, answers: &[Vec<tokio_postgres::Row>]) -> Result<ClusterView, Fault> {
    let (partitions, clock_ms) =
        (columns::small_number(first(&answers[0])?, 0)?, columns::number(first(&answers[0])?, 1)?);
    let mut table =
        ClusterView { partitions, held: vec![], holders: vec![], nodes: vec![], stop_requested: vec![], clock_ms };
    for found in &answers[1] {
        let (partition, epoch, holder) =
            (columns::small_number(found, 0)?, columns::number(found, 1)?, columns::word(found, 2)?);
        table.held.extend((holder == name).then_some(Fence { partition, epoch }));
        table.holders.extend(columns::column::<bool>(found, 3)?.then_some((partition, holder)));
    }
    for found in &answers[2] {
        let (name, place, release) = (columns::word(found, 0)?, columns::word(found, 1)?, columns::word(found, 2)?);
        let (decide_version, takes) = (columns::small_number(found, 3)?, columns::column(found, 4)?);
        table.nodes.push(Node { name, address: place, release, decide_version, accepts_partitions: takes });
    }
    table.stop_requested = answers[3].iter().map(remote_attempts::of_row).collect::<Result<_, _>>()?;
    Ok(table)
}

/// Separate transactions for each statement, so that a heartbeat locks only its own row.
pub(super) async fn heartbeat(session: &Session, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, Fault> {
    match heartbeat_in_format(session, node, lease_ms).await {
        // A newer release has upgraded the tables, so that statements of this one miss tables or columns.
        Err(fault) if error::is_damage_of_schema(&fault) => {
            let found = session.query(sql!("format.sql", "format"), &[]).await?;
            migrations::check_current(&found)?;
            Err(fault)
        }
        other => other,
    }
}

async fn heartbeat_in_format(session: &Session, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, Fault> {
    let (name, place, release) = (node.name.as_bytes(), node.address.as_bytes(), node.release.as_bytes());
    let lease_ms = integer(lease_ms).min(LEASE_MS_MAX);
    let answers = session
        .round(&[
            ask(sql!("membership.sql", "nodes_remove_expired"), &[]),
            ask(sql!("membership.sql", "remote_attempts_remove_orphaned"), &[]),
            ask(
                sql!("membership.sql", "heartbeat"),
                &[&name, &place, &release, &i64::from(node.decide_version), &lease_ms, &node.accepts_partitions],
            ),
            ask(sql!("membership.sql", "partitioning"), &[]),
            ask(sql!("membership.sql", "holders"), &[]),
            ask(sql!("membership.sql", "nodes"), &[]),
            ask(sql!("membership.sql", "remote_attempts_to_stop"), &[&name]),
            ask(sql!("format.sql", "format"), &[]),
        ])
        .await?;
    migrations::check_current(&answers[7])?;
    if answers[2].is_empty() {
        return Ok(None);
    }
    table_of(&node.name, &answers[3..]).map(Some)
}

/// Makes and locks the rows, in order, before it checks which nodes are alive: of two nodes that acquire the same
/// partition, the second sees the first as its living owner, or skips its locked row. A row can stay locked by the commit
/// of a node that was cut off, and the heartbeats of the other nodes must not wait for that.
pub(super) async fn acquire(session: &Session, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, Fault> {
    let partitions: BTreeSet<i64> = partitions.iter().copied().map(i64::from).collect();
    let partitions = Vec::from_iter(partitions);
    let node = node.as_bytes();
    let answers = session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("membership.sql", "lock_limit"), &[]),
            ask(sql!("membership.sql", "partitioning_share"), &[]),
            ask(sql!("membership.sql", "acquire_seed"), &[&partitions, &node]),
            ask(sql!("membership.sql", "partitions_lock_free"), &[&partitions]),
            ask(sql!("membership.sql", "acquire"), &[&node]),
            ask("COMMIT", &[]),
        ])
        .await?;
    let fence = |found| Ok(Fence { partition: columns::small_number(found, 0)?, epoch: columns::number(found, 1)? });
    let mut taken = answers[5].iter().map(fence).collect::<Result<Vec<_>, Fault>>()?;
    taken.sort_by_key(|fence| fence.partition);
    Ok(taken)
}

pub(super) async fn release(
    session: &Session,
    node: &str,
    fences: &[Fence],
    running: &[RemoteAttempt],
) -> Result<(), Fault> {
    // Without duplicates: a statement must not update a row that it has inserted.
    let running = Vec::from_iter(running.iter().cloned().collect::<BTreeSet<_>>());
    let remote_attempts::Columns { executions, step_keys, steps, numbers } = remote_attempts::columns(&running);
    let partitions: Vec<i64> = fences.iter().map(|fence| i64::from(fence.partition)).collect();
    let epochs: Vec<i64> = fences.iter().map(|fence| integer(fence.epoch)).collect();
    session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("membership.sql", "lock_limit"), &[]),
            ask(sql!("membership.sql", "partitions_lock"), &[&partitions]),
            ask(sql!("membership.sql", "release"), &[&partitions, &epochs, &node.as_bytes()]),
            ask(
                sql!("membership.sql", "remote_attempts_put"),
                &[&executions, &step_keys, &steps, &numbers, &node.as_bytes()],
            ),
            ask("COMMIT", &[]),
        ])
        .await?;
    Ok(())
}

pub(super) async fn leave(session: &Session, node: &str) -> Result<(), Fault> {
    session.query(sql!("membership.sql", "node_leave"), &[&node.as_bytes()]).await.map(drop)
}

/// Returns the row of a statement that always has one.
fn first(rows: &[tokio_postgres::Row]) -> Result<&tokio_postgres::Row, Fault> {
    let missing = || {
        Fault::Damaged(
            "a row that every store has is missing: restore the latest backup (of pg_dump or pg_basebackup)".into(),
        )
    };
    rows.first().ok_or_else(missing)
}
