//! Writes a batch inside of its transaction.
//!
//! | a part that | is refused as |
//! |---|---|
//! | names a partition without a valid fence in the batch | fence |
//! | names another partition than its execution's | partition |
//! | is new but has a head, or continues a head that does not exist | sequence |
//! | has frames although the execution has ended | ended |
//! | was decided on another head, or has frames that do not follow it without gaps | sequence |
//! | is new, and its external name or idempotency key is taken | id taken, idempotency key taken |
//!
//! The first matching row counts. The common path reads nothing before it writes: the statements contain these
//! conditions, and the reason is read only when nothing was written.

use std::collections::BTreeSet;

use rusqlite::{CachedStatement, Connection, Error, OptionalExtension, params, types::Type};

use super::{approvals, audit, budgets, event_queue, executions, journal};
use crate::{
    Batch, ExecutionRow, Expected, InboxMessage, Part, PartOutcome, Refusal, SUBSCRIPTION_KIND, StoredPlan,
    batch::{follows, is_end, wake_at},
    payloads,
    sql::{integer, natural},
};

/// Statements that are executed for almost every part, prepared once for a batch.
struct Statements<'a> {
    connection: &'a Connection,
    /// The number of the last inserted frame; 0 before the first.
    newest_frame: u64,
    head_insert: CachedStatement<'a>,
    head_advance: CachedStatement<'a>,
    head_advance_and_wake: CachedStatement<'a>,
    frame_insert: CachedStatement<'a>,
    row_insert: CachedStatement<'a>,
    row_change: CachedStatement<'a>,
}

impl<'a> Statements<'a> {
    fn of(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            newest_frame: 0,
            head_insert: connection.prepare_cached(sql!("journal.sql", "head_insert"))?,
            head_advance: connection.prepare_cached(sql!("journal.sql", "head_advance"))?,
            head_advance_and_wake: connection.prepare_cached(sql!("journal.sql", "head_advance_and_wake"))?,
            frame_insert: connection.prepare_cached(sql!("journal.sql", "frame_insert"))?,
            row_insert: connection.prepare_cached(executions::INSERT)?,
            row_change: connection.prepare_cached(executions::CHANGE)?,
        })
    }
}

/// Writes all valid parts. Returns the answer to each part, and the number of the last frame or 0. The caller commits.
pub(super) fn write(connection: &Connection, batch: &Batch) -> rusqlite::Result<(Vec<PartOutcome>, u64)> {
    let Fences { held, has_subscriptions } = Fences::of(connection, batch)?;
    let mut statements = Statements::of(connection)?;
    let mut answer = |part| write_part(&mut statements, &held, part);
    let answers = batch.parts.iter().map(|part| Ok(answer(part)?.map_or(PartOutcome::Durable, PartOutcome::Refused)));
    let answers: Vec<_> = answers.collect::<rusqlite::Result<_>>()?;
    let written = batch.parts.iter().zip(&answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
    for message in written.clone().flat_map(|(part, _)| &part.messages) {
        enqueue(connection, message)?;
    }
    if has_subscriptions {
        written.clone().try_for_each(|(part, _)| event_queue::record(connection, part))?;
    }
    audit::append(connection, &batch.sealing, &written.flat_map(|(part, _)| &part.audit).collect::<Vec<_>>())?;
    Ok((answers, statements.newest_frame))
}

/// The result of the fences of a batch, stable until the transaction ends.
#[derive(Default)]
struct Fences {
    /// The partitions with valid fences. They cannot be claimed before the transaction ends.
    held: BTreeSet<u32>,
    /// True if a subscription takes part in commits.
    has_subscriptions: bool,
}

impl Fences {
    fn of(connection: &Connection, batch: &Batch) -> rusqlite::Result<Self> {
        let mut fences = Self::default();
        let mut statement = connection.prepare_cached(sql!("membership.sql", "fence"))?;
        for fence in &batch.fences {
            let values = params![fence.partition, integer(fence.epoch), SUBSCRIPTION_KIND];
            if let Some(has_subscriptions) = statement.query_row(values, |row| row.get(0)).optional()? {
                fences.held.insert(fence.partition);
                fences.has_subscriptions = has_subscriptions;
            }
        }
        Ok(fences)
    }
}

fn write_part(statements: &mut Statements<'_>, held: &BTreeSet<u32>, part: &Part) -> rusqlite::Result<Option<Refusal>> {
    let connection = statements.connection;
    if !held.contains(&part.partition) {
        return Ok(Some(Refusal::Fence));
    }
    let refusal = match part.expected {
        _ if part.frames.is_empty() => compare_head(connection, part)?,
        _ if !follows(part) => Some(why_not(connection, part)?),
        None => open_journal(statements, part)?,
        Some(expected) => advance_journal(statements, part, expected)?,
    };
    if refusal.is_some() {
        return Ok(refusal);
    }
    put_plans(connection, &part.plans)?;
    for (frame, proof) in part.frames_with_proofs() {
        let packed = payloads::pack(&frame.values, |hash, body| {
            let sql = sql!("journal.sql", "blob_put");
            connection.prepare_cached(sql)?.execute(params![hash.0, body]).map(drop)
        })?;
        let values = params![part.execution.0, integer(frame.sequence), frame.frame, packed, proof];
        statements.newest_frame = natural(statements.frame_insert.insert(values)?);
    }
    if let (Some(change), false) = (&part.change, part.frames.is_empty()) {
        executions::change(&mut statements.row_change, part.execution, change)?;
    }
    if !part.frames.is_empty() {
        approvals::write(connection, part)?;
    }
    budgets::write(connection, part)?;
    for id in &part.consumed {
        connection.prepare_cached(sql!("inbox.sql", "message_remove"))?.execute(params![part.execution.0, id])?;
    }
    for (late, proof) in part.late_with_proofs() {
        let sql = sql!("journal.sql", "late_receipt_insert");
        connection.prepare_cached(sql)?.execute(params![part.execution.0, integer(late.at), late.body, proof])?;
    }
    if let Some(key) = part.executor_key() {
        let sql = sql!("journal.sql", "executor_key_put");
        connection.prepare_cached(sql)?.execute(params![key.id.0, &key.certificate[..]])?;
    }
    Ok(None)
}

fn open_journal(statements: &mut Statements<'_>, part: &Part) -> rusqlite::Result<Option<Refusal>> {
    let connection = statements.connection;
    let sequence = integer(part.head.sequence);
    let (hash, seal) = (part.head.hash.0, part.head.seal.0);
    let values = params![part.execution.0, part.partition, sequence, hash, seal, wake_at(part), is_end(part)];
    if statements.head_insert.execute(values)? == 0 {
        return why_not(connection, part).map(Some);
    }
    let Some(row) = &part.row else { return Ok(None) };
    if executions::insert(&mut statements.row_insert, part.execution, row)? {
        return Ok(None);
    }
    connection.prepare_cached(sql!("journal.sql", "head_remove"))?.execute([part.execution.0])?;
    whose(connection, row).map(Some)
}

/// Returns the owner of the external name, or else of the idempotency key.
fn whose(connection: &Connection, row: &ExecutionRow) -> rusqlite::Result<Refusal> {
    if let Some(other) = executions::by_id(connection, &row.id)? {
        return Ok(Refusal::IdTaken(other.key));
    }
    if let Some(key) = &row.idempotency_key
        && let Some(other) = executions::by_idempotency_key(connection, &row.origin(), key)?
    {
        return Ok(Refusal::IdempotencyKeyTaken(other.key));
    }
    let what = format!("the catalogue has a row of {}, which has no journal", row.key);
    Err(Error::FromSqlConversionFailure(0, Type::Blob, what.into()))
}

fn advance_journal(
    statements: &mut Statements<'_>,
    part: &Part,
    expected: Expected,
) -> rusqlite::Result<Option<Refusal>> {
    let head = [integer(part.head.sequence), integer(expected.sequence)];
    let (hash, seal, wake_at) = (part.head.hash.0, part.head.seal.0, wake_at(part));
    let (key, partition, before) = (part.execution.0, part.partition, expected.hash.0);
    if !is_end(part) {
        let values = params![head[0], hash, seal, key, partition, head[1], before, wake_at];
        if statements.head_advance.execute(values)? == 1 {
            return Ok(None);
        }
    }
    let values = params![head[0], hash, seal, key, partition, head[1], before, wake_at, is_end(part)];
    if statements.head_advance_and_wake.execute(values)? == 1 {
        return Ok(None);
    }
    why_not(statements.connection, part).map(Some)
}

/// Checks the head of a part without frames, which does not change the head.
fn compare_head(connection: &Connection, part: &Part) -> rusqlite::Result<Option<Refusal>> {
    let row = journal::head(connection, part.execution)?;
    let in_partition = row.as_ref().is_none_or(|row| row.partition == part.partition);
    let found = row.map(|row| Expected { sequence: row.head.sequence, hash: row.head.hash });
    if found == part.expected && in_partition { Ok(None) } else { why_not(connection, part).map(Some) }
}

/// Returns the reason, by the table above, why nothing of a part was written.
fn why_not(connection: &Connection, part: &Part) -> rusqlite::Result<Refusal> {
    Ok(match (part.expected, journal::head(connection, part.execution)?) {
        (_, Some(row)) if row.partition != part.partition => Refusal::Partition,
        (Some(_), Some(row)) if row.ended && !part.frames.is_empty() => Refusal::Ended,
        _ => Refusal::Sequence,
    })
}

pub(super) fn put_plans(connection: &Connection, plans: &[StoredPlan]) -> rusqlite::Result<()> {
    for plan in plans {
        let values = params![plan.hash.0, &plan.bytes[..]];
        connection.prepare_cached(sql!("journal.sql", "plan_put"))?.execute(values)?;
    }
    Ok(())
}

/// False if the message exists already.
pub(super) fn enqueue(connection: &Connection, message: &InboxMessage) -> rusqlite::Result<bool> {
    let InboxMessage { execution, partition, id, body, enqueued_at } = message;
    let values = params![execution.0, id, partition, body, integer(*enqueued_at)];
    Ok(connection.prepare_cached(sql!("inbox.sql", "message_insert"))?.execute(values)? == 1)
}
