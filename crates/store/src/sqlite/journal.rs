//! Reads of journals, inboxes and due executions.

use std::sync::Arc;

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    stored_frame::{Head, StoredFrame, StoredValue},
};
use rusqlite::{Connection, Error, OptionalExtension, Row, params, types::Type};

use crate::{
    Due, Expected, HeadRow, InboxEntry, InboxMessage, LateReceipt, ReadLimit, StoredExecutorKey,
    payloads::{Content, PackedValue, unpack},
    sql::{integer, natural},
};

pub(super) fn head(connection: &Connection, execution: ExecutionKey) -> rusqlite::Result<Option<HeadRow>> {
    let sql = sql!("journal.sql", "head");
    connection.prepare_cached(sql)?.query_row([execution.0], head_of_row).optional()
}

/// Returns the number of the newest frame; 0 before the first.
pub(super) fn newest_frame(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = sql!("journal.sql", "newest_frame");
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0).map(natural))
}

/// Returns whether the head was the expected one.
pub(super) fn set_wake_at(
    connection: &Connection,
    execution: ExecutionKey,
    head: Expected,
    wake_at: Option<u64>,
) -> rusqlite::Result<bool> {
    let values = params![execution.0, integer(head.sequence), head.hash.0, wake_at.map(integer)];
    Ok(connection.prepare_cached(sql!("journal.sql", "set_wake_at"))?.execute(values)? == 1)
}

pub(super) fn plan(connection: &Connection, hash: Hash) -> rusqlite::Result<Option<Arc<[u8]>>> {
    let bytes = |row: &Row<'_>| Ok(Arc::from(row.get_ref(0)?.as_blob()?));
    connection.prepare_cached(sql!("journal.sql", "plan"))?.query_row([hash.0], bytes).optional()
}

fn head_of_row(row: &Row<'_>) -> rusqlite::Result<HeadRow> {
    Ok(HeadRow {
        head: Head { sequence: natural(row.get(0)?), hash: Hash(row.get(1)?), seal: Hash(row.get(2)?) },
        partition: row.get(3)?,
        wake_at: row.get::<_, Option<i64>>(4)?.map(natural),
        ended: row.get(5)?,
        quarantined: row.get(6)?,
    })
}

pub(super) fn frames(
    connection: &Connection,
    execution: ExecutionKey,
    from: u64,
    bound: ReadLimit,
) -> rusqlite::Result<Vec<StoredFrame>> {
    let mut statement = connection.prepare_cached(sql!("journal.sql", "frames"))?;
    let mut rows = statement.query(params![execution.0, integer(from), integer(bound.rows as u64)])?;
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while !bound.is_reached(frames.len(), bytes) {
        let Some(row) = rows.next()? else { break };
        let sequence = natural(row.get(0)?);
        let packed = unpack(row.get_ref(2)?.as_blob()?).ok_or_else(|| {
            damaged(execution, sequence, "the values beside it do not have the form they were written in")
        })?;
        let values = packed.into_iter().map(|value| load(connection, execution, sequence, value));
        let frame = StoredFrame { sequence, frame: row.get(1)?, values: values.collect::<Result<_, _>>()? };
        bytes += frame.byte_count();
        frames.push(frame);
    }
    Ok(frames)
}

fn load(
    connection: &Connection,
    execution: ExecutionKey,
    sequence: u64,
    value: PackedValue,
) -> rusqlite::Result<StoredValue> {
    let body = match value.content {
        Content::Inline(body) => Some(body),
        Content::Erased(_) => None,
        Content::Blob(hash) => {
            let sql = sql!("journal.sql", "blob");
            let bytes: Option<Vec<u8>> =
                connection.prepare_cached(sql)?.query_row([hash.0], |row| row.get(0)).optional()?;
            let sound = bytes.filter(|bytes| Hash::of(bytes) == hash);
            Some(sound.ok_or_else(|| damaged(execution, sequence, "a blob that it names is missing or changed"))?)
        }
    };
    Ok(StoredValue { salt: value.salt, body })
}

/// Makes an error that names the frame.
pub(super) fn damaged(execution: ExecutionKey, sequence: u64, what: &str) -> Error {
    let what = format!(
        "frame {sequence} of {execution}: {what}; compare with the latest backup (a file of `mainspring backup`)"
    );
    Error::FromSqlConversionFailure(0, Type::Blob, what.into())
}

/// Reads a separate index range for each partition, in the requested order, since the first rows of all are among the
/// first of each.
pub(super) fn due(
    connection: &Connection,
    partitions: &[u32],
    until_ms: u64,
    after: Option<Due>,
    limit: usize,
) -> rusqlite::Result<Vec<Due>> {
    let mut statement = connection.prepare_cached(sql!("journal.sql", "due"))?;
    let due = |row: &Row<'_>| Ok(Due { execution: ExecutionKey(row.get(0)?), wake_at: natural(row.get(1)?) });
    // No time is below 0, so this comes before every row.
    let (wake_at, execution) = after.map_or((-1, [0; 16]), |after| (integer(after.wake_at), after.execution.0));
    let mut found = Vec::new();
    for partition in partitions {
        let parameters = params![partition, integer(until_ms), wake_at, execution, integer(limit as u64)];
        for due in statement.query_map(parameters, due)? {
            found.push(due?);
        }
    }
    found.sort_by_key(|due| (due.wake_at, due.execution));
    found.truncate(limit);
    Ok(found)
}

pub(super) fn inbox(
    connection: &Connection,
    partitions: &[u32],
    after: u64,
    bound: ReadLimit,
) -> rusqlite::Result<Vec<InboxEntry>> {
    let mut statement = connection.prepare_cached(sql!("inbox.sql", "inbox"))?;
    let arrived = |row: &Row<'_>| -> rusqlite::Result<InboxEntry> {
        let message = InboxMessage {
            execution: ExecutionKey(row.get(1)?),
            id: row.get(2)?,
            partition: row.get(3)?,
            body: row.get(4)?,
            enqueued_at: natural(row.get(5)?),
        };
        Ok(InboxEntry { number: natural(row.get(0)?), message })
    };
    let asked: Vec<String> = partitions.iter().map(u32::to_string).collect();
    let asked = format!("[{}]", asked.join(","));
    let mut rows = statement.query(params![asked, integer(after), integer(bound.rows as u64)])?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while !bound.is_reached(messages.len(), bytes) {
        let Some(row) = rows.next()? else { break };
        let message = arrived(row)?;
        bytes += message.byte_count();
        messages.push(message);
    }
    Ok(messages)
}

pub(super) fn late_receipts(connection: &Connection, execution: ExecutionKey) -> rusqlite::Result<Vec<LateReceipt>> {
    let mut statement = connection.prepare_cached(sql!("journal.sql", "late_receipts"))?;
    let late = |row: &Row<'_>| Ok(LateReceipt::of_row(natural(row.get(0)?), row.get(1)?, row.get(2)?));
    statement.query_map([execution.0], late)?.collect()
}

pub(super) fn receipt_proofs(
    connection: &Connection,
    execution: ExecutionKey,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let mut statement = connection.prepare_cached(sql!("journal.sql", "receipt_proofs"))?;
    let proof = |row: &Row<'_>| Ok((natural(row.get(0)?), row.get(1)?));
    statement.query_map(params![execution.0, integer(from), integer(limit as u64)], proof)?.collect()
}

pub(super) fn executor_key(connection: &Connection, id: Hash) -> rusqlite::Result<Option<StoredExecutorKey>> {
    let sql = sql!("journal.sql", "executor_key");
    connection.prepare_cached(sql)?.query_row([id.0], executor_key_of_row).optional()
}

pub(super) fn executor_keys(
    connection: &Connection,
    after: Option<Hash>,
    limit: usize,
) -> rusqlite::Result<Vec<StoredExecutorKey>> {
    let mut statement = connection.prepare_cached(sql!("journal.sql", "executor_keys"))?;
    // Shorter than every id, so it comes before all.
    let after = after.as_ref().map_or(&[][..], |after| &after.0);
    statement.query_map(params![after, integer(limit as u64)], executor_key_of_row)?.collect()
}

fn executor_key_of_row(row: &Row<'_>) -> rusqlite::Result<StoredExecutorKey> {
    Ok(StoredExecutorKey { id: Hash(row.get(0)?), certificate: row.get_ref(1)?.as_blob()?.into() })
}
