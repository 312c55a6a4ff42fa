//! Reads of journals, inboxes and due executions, and writes of messages.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    stored_frame::{Head, StoredFrame, StoredValue},
};
use tokio_postgres::{Row, types::ToSql};

use super::{
    audit,
    columns::{self, word_key},
    connections::{Session, ask},
    error::Fault,
    writes::Writes,
};
use crate::{
    Due, EnqueueRequest, Expected, HeadRow, InboxEntry, InboxMessage, LateReceipt, ReadLimit, StoredExecutorKey,
    payloads::{Content, PackedValue, unpack},
    sql::integer,
};

pub(super) async fn head(session: &Session, execution: ExecutionKey) -> Result<Option<HeadRow>, Fault> {
    let found = session.query(sql!("journal.sql", "head"), &[&&execution.0[..]]).await?;
    found.first().map(head_of_row).transpose()
}

fn head_of_row(found: &Row) -> Result<HeadRow, Fault> {
    Ok(HeadRow {
        head: Head {
            sequence: columns::number(found, 0)?,
            hash: columns::hash(found, 1)?,
            seal: columns::hash(found, 2)?,
        },
        partition: columns::small_number(found, 3)?,
        wake_at: columns::optional_number(found, 4)?,
        ended: columns::column(found, 5)?,
        quarantined: columns::optional_word(found, 6)?,
    })
}

/// Reads frames, and then the blobs that they refer to. If a value and its blob are erased between the two reads, both
/// are repeated in one snapshot, where a missing blob is an error. The statements bound frames and blobs separately, so
/// the result is cut once more.
pub(super) async fn frames(
    session: &Session,
    execution: ExecutionKey,
    from: u64,
    bound: ReadLimit,
) -> Result<Vec<StoredFrame>, Fault> {
    let (key, from, limit) = (&execution.0[..], integer(from), integer(bound.rows as u64));
    let (sql, bytes) = (sql!("journal.sql", "frames"), integer(bound.bytes as u64));
    let rows = session.query(sql, &[&key, &from, &limit, &bytes]).await?;
    let frames = packed(execution, &rows)?;
    let bodies = blobs(session, &frames, bytes).await?;
    if named(&frames).all(|hash| bodies.contains_key(&hash)) {
        return loaded(execution, frames, &bodies, bound);
    }
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let answers = session.round(&[ask(begin, &[]), ask(sql, &[&key, &from, &limit, &bytes])]).await?;
    let frames = packed(execution, &answers[1])?;
    let bodies = blobs(session, &frames, bytes).await?;
    session.query("COMMIT", &[]).await?;
    loaded(execution, frames, &bodies, bound)
}

/// A frame with packed values: sequence, frame, values.
type PackedFrame = (u64, Vec<u8>, Vec<PackedValue>);

fn packed(execution: ExecutionKey, rows: &[Row]) -> Result<Vec<PackedFrame>, Fault> {
    let packed = |found| {
        let sequence = columns::number(found, 0)?;
        let values = unpack(columns::column(found, 2)?).ok_or_else(|| {
            damaged(execution, sequence, "the values beside it do not have the form they were written in")
        })?;
        Ok((sequence, columns::column(found, 1)?, values))
    };
    rows.iter().map(packed).collect()
}

fn named(frames: &[PackedFrame]) -> impl Iterator<Item = Hash> {
    frames.iter().flat_map(|(_, _, values)| blobs_of(values))
}

fn blobs_of(values: &[PackedValue]) -> impl Iterator<Item = Hash> {
    values.iter().filter_map(|value| match value.content {
        Content::Blob(hash) => Some(hash),
        _ => None,
    })
}

/// Blobs by hash; `None` for those that exist and were not read, because earlier frames reached the bound.
type Blobs = BTreeMap<Hash, Option<Vec<u8>>>;

async fn blobs(session: &Session, frames: &[PackedFrame], bytes: i64) -> Result<Blobs, Fault> {
    let mut wanted: BTreeMap<Hash, i64> = BTreeMap::new();
    for (sequence, _, values) in frames {
        blobs_of(values).for_each(|hash| _ = wanted.entry(hash).or_insert(integer(*sequence)));
    }
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let hashes: Vec<&[u8]> = wanted.keys().map(|hash| &hash.0[..]).collect();
    let sequences: Vec<i64> = wanted.values().copied().collect();
    let found = session.query(sql!("journal.sql", "blobs"), &[&hashes, &sequences, &bytes]).await?;
    found.iter().map(|found| Ok((columns::hash(found, 0)?, columns::column(found, 1)?))).collect()
}

/// Returns the frames before the first one with unread blobs.
fn loaded(
    execution: ExecutionKey,
    frames: Vec<PackedFrame>,
    bodies: &Blobs,
    bound: ReadLimit,
) -> Result<Vec<StoredFrame>, Fault> {
    let is_beyond = |hash: Hash| bodies.get(&hash).is_some_and(Option::is_none);
    let is_read = |(_, _, values): &PackedFrame| !blobs_of(values).any(is_beyond);
    let frame = |(sequence, frame, values): PackedFrame| {
        let value = |value: PackedValue| {
            let body = match value.content {
                Content::Inline(body) => Some(body),
                Content::Erased(_) => None,
                Content::Blob(hash) => {
                    let sound = bodies.get(&hash).and_then(Option::as_ref).filter(|bytes| Hash::of(bytes) == hash);
                    let what = "a blob that it names is missing or changed";
                    Some(sound.ok_or_else(|| damaged(execution, sequence, what))?.clone())
                }
            };
            Ok(StoredValue { salt: value.salt, body })
        };
        let values = values.into_iter().map(value).collect::<Result<_, Fault>>()?;
        Ok(StoredFrame { sequence, frame, values })
    };
    let frames: Vec<StoredFrame> = frames.into_iter().take_while(is_read).map(frame).collect::<Result<_, Fault>>()?;
    Ok(bound.take(frames.into_iter(), StoredFrame::byte_count))
}

/// Makes an error that names the frame.
pub(super) fn damaged(execution: ExecutionKey, sequence: u64, what: &str) -> Fault {
    Fault::Damaged(format!(
        "frame {sequence} of {execution}: {what}; compare with the latest backup (of pg_dump or pg_basebackup)"
    ))
}

pub(super) async fn due(
    session: &Session,
    partitions: &[u32],
    until_ms: u64,
    after: Option<Due>,
    limit: usize,
) -> Result<Vec<Due>, Fault> {
    // No time is below 0, so this comes before every row.
    let (wake_at, execution) = after.map_or((-1, [0; 16]), |after| (integer(after.wake_at), after.execution.0));
    let (partitions, until_ms, limit) = (each_once(partitions), integer(until_ms), integer(limit as u64));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&partitions, &until_ms, &wake_at, &&execution[..], &limit];
    let found = session.query(sql!("journal.sql", "due"), &values).await?;
    let due = |found| Ok(Due { execution: columns::key(found, 0)?, wake_at: columns::number(found, 1)? });
    found.iter().map(due).collect()
}

fn each_once(partitions: &[u32]) -> Vec<i64> {
    Vec::from_iter(partitions.iter().copied().map(i64::from).collect::<BTreeSet<_>>())
}

/// False, and nothing is written, if the number of partitions has changed. Locks heads of audit logs before plans and
/// messages, like a commit.
pub(super) async fn enqueue(session: &Session, request: &EnqueueRequest<'_>) -> Result<bool, Fault> {
    let EnqueueRequest { message, plans, partitions, audit, sealing } = *request;
    let plans: BTreeMap<Hash, &[u8]> = plans.iter().map(|plan| (plan.hash, &plan.bytes[..])).collect();
    let hashes: Vec<&[u8]> = plans.keys().map(|hash| &hash.0[..]).collect();
    let bytes: Vec<&[u8]> = plans.values().copied().collect();
    let (key, id_key, id) = (&message.execution.0[..], word_key(&message.id).0, message.id.as_bytes());
    let (partition, enqueued_at) = (i64::from(message.partition), integer(message.enqueued_at));
    let (id_key, body, of_partitions) = (&id_key[..], &message.body[..], i64::from(partitions));
    let logs = audit::logs(audit);
    let mut requests = vec![ask("BEGIN", &[]), ask(sql!("membership.sql", "partitioning_share"), &[])];
    if !logs.is_empty() {
        requests.push(ask(sql!("audit.sql", "audit_heads_lock"), &[&logs]));
    }
    if !plans.is_empty() {
        requests.push(ask(sql!("inbox.sql", "enqueue_plans"), &[&hashes, &bytes, &of_partitions]));
    }
    requests.push(ask(
        sql!("inbox.sql", "enqueue"),
        &[&key, &id_key, &id, &partition, &body, &enqueued_at, &of_partitions],
    ));
    if logs.is_empty() {
        requests.push(ask("COMMIT", &[]));
    }
    let answers = session.round(&requests).await?;
    let spread = answers[1].first().map(|found| columns::small_number(found, 0)).transpose()?;
    if !logs.is_empty() {
        let mut writes = Writes::default();
        if answers.last().is_some_and(|put| !put.is_empty()) {
            writes.extend(audit::statements(&mut audit::heads(&answers[2])?, &sealing, audit));
        }
        let mut requests = writes.requests();
        requests.push(ask("COMMIT", &[]));
        session.round(&requests).await?;
    }
    Ok(spread == Some(partitions))
}

pub(super) async fn inbox(
    session: &Session,
    partitions: &[u32],
    after: u64,
    bound: ReadLimit,
) -> Result<Vec<InboxEntry>, Fault> {
    let (partitions, after) = (each_once(partitions), integer(after));
    let (rows, bytes) = (integer(bound.rows as u64), integer(bound.bytes as u64));
    let found = session.query(sql!("inbox.sql", "inbox"), &[&partitions, &after, &rows, &bytes]).await?;
    let arrived = |found| {
        let message = InboxMessage {
            execution: columns::key(found, 1)?,
            id: columns::word(found, 2)?,
            partition: columns::small_number(found, 3)?,
            body: columns::column(found, 4)?,
            enqueued_at: columns::number(found, 5)?,
        };
        Ok(InboxEntry { number: columns::number(found, 0)?, message })
    };
    found.iter().map(arrived).collect()
}

pub(super) async fn plan(session: &Session, hash: Hash) -> Result<Option<Arc<[u8]>>, Fault> {
    let found = session.query(sql!("journal.sql", "plan"), &[&&hash.0[..]]).await?;
    found.first().map(|found| columns::column::<&[u8]>(found, 0).map(Arc::from)).transpose()
}

pub(super) async fn set_wake_at(
    session: &Session,
    execution: ExecutionKey,
    head: Expected,
    wake_at: Option<u64>,
) -> Result<bool, Fault> {
    let (sequence, wake_at) = (integer(head.sequence), wake_at.map(integer));
    let values: &[&(dyn ToSql + Sync)] = &[&&execution.0[..], &sequence, &&head.hash.0[..], &wake_at];
    Ok(!session.query(sql!("journal.sql", "set_wake_at"), values).await?.is_empty())
}

pub(super) async fn set_quarantine(session: &Session, execution: ExecutionKey, reason: &str) -> Result<(), Fault> {
    let reason = reason.as_bytes();
    session.query(sql!("executions.sql", "quarantine"), &[&&execution.0[..], &reason]).await.map(drop)
}

pub(super) async fn late_receipts(session: &Session, execution: ExecutionKey) -> Result<Vec<LateReceipt>, Fault> {
    let found = session.query(sql!("journal.sql", "late_receipts"), &[&&execution.0[..]]).await?;
    found
        .iter()
        .map(|found| {
            Ok(LateReceipt::of_row(columns::number(found, 0)?, columns::column(found, 1)?, columns::column(found, 2)?))
        })
        .collect()
}

pub(super) async fn receipt_proofs(
    session: &Session,
    execution: ExecutionKey,
    from: u64,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let (from, limit) = (integer(from), integer(limit as u64));
    let found = session.query(sql!("journal.sql", "receipt_proofs"), &[&&execution.0[..], &from, &limit]).await?;
    found.iter().map(|found| Ok((columns::number(found, 0)?, columns::column(found, 1)?))).collect()
}

pub(super) async fn executor_key(session: &Session, id: Hash) -> Result<Option<StoredExecutorKey>, Fault> {
    let found = session.query(sql!("journal.sql", "executor_key"), &[&&id.0[..]]).await?;
    found.first().map(executor_key_of_row).transpose()
}

pub(super) async fn executor_keys(
    session: &Session,
    after: Option<Hash>,
    limit: usize,
) -> Result<Vec<StoredExecutorKey>, Fault> {
    // Shorter than every id, so it comes before all.
    let (after, limit) = (after.as_ref().map_or(&[][..], |after| &after.0), integer(limit as u64));
    let found = session.query(sql!("journal.sql", "executor_keys"), &[&after, &limit]).await?;
    found.iter().map(executor_key_of_row).collect()
}

fn executor_key_of_row(found: &tokio_postgres::Row) -> Result<StoredExecutorKey, Fault> {
    let certificate = columns::column::<&[u8]>(found, 1)?.into();
    Ok(StoredExecutorKey { id: columns::hash(found, 0)?, certificate })
}
