//! Nodes, their leases, and the owners of partitions.

use mainspring_kernel::key::ExecutionKey;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    ClusterView, Fence, Node, RemoteAttempt, partition_of,
    sql::{integer, natural},
};

pub(super) fn claim(connection: &Connection, partition: u32, holder: &str) -> rusqlite::Result<u64> {
    let sql = sql!("membership.sql", "claim");
    connection.prepare_cached(sql)?.query_row(params![partition, holder], |row| row.get(0).map(natural))
}

pub(super) fn partitions(connection: &Connection) -> rusqlite::Result<u32> {
    connection.prepare_cached(sql!("membership.sql", "partitions"))?.query_row([], |row| row.get(0))
}

/// Recomputes the partition of every execution and message.
pub(super) fn repartition(connection: &Connection, partitions: u32) -> rusqlite::Result<()> {
    connection.execute(sql!("membership.sql", "partitioning_set"), [partitions])?;
    let of_row = |row: &Row<'_>| row.get(0).map(ExecutionKey);
    let mut select = connection.prepare(sql!("membership.sql", "partitioned_executions"))?;
    let all: Vec<ExecutionKey> = select.query_map([], of_row)?.collect::<Result<_, _>>()?;
    for key in all {
        let values = params![key.0, partition_of(key, partitions)];
        connection.prepare_cached(sql!("membership.sql", "move_head"))?.execute(values)?;
        connection.prepare_cached(sql!("membership.sql", "move_execution"))?.execute(values)?;
        connection.prepare_cached(sql!("membership.sql", "move_messages"))?.execute(values)?;
    }
    connection.execute(sql!("membership.sql", "partitions_release_all"), [])?;
    Ok(())
}

pub(super) fn put_metadata_if_absent(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<String> {
    connection.prepare_cached(sql!("metadata.sql", "metadata_insert"))?.execute([name, value])?;
    connection.prepare_cached(sql!("metadata.sql", "metadata"))?.query_row([name], |row| row.get(0))
}

/// Replaces a metadata entry.
pub(super) fn note(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql!("metadata.sql", "metadata_put"))?.execute([name, value]).map(drop)
}

pub(super) fn metadata(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection.prepare_cached(sql!("metadata.sql", "metadata"))?.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn heartbeat(connection: &Connection, node: &Node, lease_ms: u64) -> rusqlite::Result<Option<ClusterView>> {
    let now = clock(connection)?;
    connection.prepare_cached(sql!("membership.sql", "nodes_remove_expired"))?.execute([now])?;
    connection.prepare_cached(sql!("membership.sql", "remote_attempts_remove_orphaned"))?.execute([])?;
    let Node { name, address: place, release, decide_version, accepts_partitions: _ } = node;
    let values = params![name, place, release, decide_version, now, now.saturating_add(integer(lease_ms))];
    if connection.prepare_cached(sql!("membership.sql", "heartbeat"))?.execute(values)? == 0 {
        return Ok(None);
    }
    cluster_view(connection, name).map(Some)
}

/// Returns the cluster view of a node.
pub(super) fn cluster_view(connection: &Connection, name: &str) -> rusqlite::Result<ClusterView> {
    let now = clock(connection)?;
    let fence = |row: &Row<'_>| Ok(Fence { partition: row.get(0)?, epoch: natural(row.get(1)?) });
    let holder = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (mut held, mut holders, mut nodes, mut stop_requested) = (
        connection.prepare_cached(sql!("membership.sql", "held"))?,
        connection.prepare_cached(sql!("membership.sql", "holders"))?,
        connection.prepare_cached(sql!("membership.sql", "nodes"))?,
        connection.prepare_cached(sql!("membership.sql", "remote_attempts_to_stop"))?,
    );
    Ok(ClusterView {
        partitions: partitions(connection)?,
        held: held.query_map([name], fence)?.collect::<Result<_, _>>()?,
        holders: holders.query_map([now], holder)?.collect::<Result<_, _>>()?,
        nodes: nodes.query_map([now], node_of_row)?.collect::<Result<_, _>>()?,
        stop_requested: stop_requested.query_map([name], remote_of_row)?.collect::<Result<_, _>>()?,
        clock_ms: natural(now),
    })
}

fn node_of_row(row: &Row<'_>) -> rusqlite::Result<Node> {
    let (name, place, release, decide_version) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(Node { name, address: place, release, decide_version, accepts_partitions: true })
}

pub(super) fn acquire(connection: &Connection, node: &str, partitions: &[u32]) -> rusqlite::Result<Vec<Fence>> {
    let now = clock(connection)?;
    let mut taken = Vec::new();
    if !connection.prepare_cached(sql!("membership.sql", "node_may_acquire"))?.exists(params![node, now])? {
        return Ok(taken);
    }
    let mut partitions = partitions.to_vec();
    partitions.sort_unstable();
    partitions.dedup();
    let mut statement = connection.prepare_cached(sql!("membership.sql", "acquire"))?;
    for partition in partitions {
        let epoch = statement.query_row(params![partition, node, now], |row| row.get(0).map(natural)).optional()?;
        taken.extend(epoch.map(|epoch| Fence { partition, epoch }));
    }
    Ok(taken)
}

pub(super) fn release(
    connection: &Connection,
    node: &str,
    fences: &[Fence],
    running: &[RemoteAttempt],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql!("membership.sql", "release"))?;
    for fence in fences {
        statement.execute(params![node, fence.partition, integer(fence.epoch)])?;
    }
    let mut statement = connection.prepare_cached(sql!("membership.sql", "remote_attempt_put"))?;
    for RemoteAttempt { execution, step, number } in running {
        statement.execute(params![execution.0, step, number, node])?;
    }
    Ok(())
}

pub(super) fn remote_attempts(
    connection: &Connection,
    execution: ExecutionKey,
) -> rusqlite::Result<Vec<(RemoteAttempt, String)>> {
    let mut statement = connection.prepare_cached(sql!("membership.sql", "remote_attempts"))?;
    let of_row = |row: &Row<'_>| Ok((remote_of_row(row)?, row.get(3)?));
    statement.query_map(params![execution.0, clock(connection)?], of_row)?.collect()
}

pub(super) fn stop_remote(connection: &Connection, attempt: &RemoteAttempt) -> rusqlite::Result<()> {
    let RemoteAttempt { execution, step, number } = attempt;
    connection.prepare_cached(sql!("membership.sql", "remote_attempt_stop"))?.execute(params![
        execution.0,
        step,
        number
    ])?;
    Ok(())
}

pub(super) fn end_remote(connection: &Connection, node: &str, attempts: &[RemoteAttempt]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql!("membership.sql", "remote_attempt_remove"))?;
    for RemoteAttempt { execution, step, number } in attempts {
        statement.execute(params![execution.0, step, number, node])?;
    }
    Ok(())
}

fn remote_of_row(row: &Row<'_>) -> rusqlite::Result<RemoteAttempt> {
    Ok(RemoteAttempt { execution: ExecutionKey(row.get(0)?), step: row.get(1)?, number: row.get(2)? })
}

pub(super) fn leave(connection: &Connection, node: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql!("membership.sql", "node_leave"))?.execute(params![node, clock(connection)?])?;
    Ok(())
}

pub(super) fn clock(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql!("connection.sql", "clock"))?.query_row([], |row| row.get(0))
}
