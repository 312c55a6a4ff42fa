//! Writes a batch inside of its transaction, in two round trips for any number of parts.
//!
//! 1. BEGIN; the rows of its fences are locked against changes (`FOR SHARE`), then those of its heads and of the heads
//!    of audit logs (`FOR UPDATE`), each in the order of their keys; the external names of new executions are looked
//!    up.
//! 2. The parts that may be written are determined here, by the table below; then one statement for each table that
//!    changes, and COMMIT.
//!
//! | a part that | is refused as |
//! |---|---|
//! | names a partition without a valid fence in the batch | fence |
//! | names another partition than its execution's | partition |
//! | has frames although the execution has ended | ended |
//! | was decided on another head, or is new but has a head, or continues a head that does not exist | sequence |
//! | has frames that do not follow the head without gaps | sequence |
//! | is new, and its external name or idempotency key is taken | id taken, idempotency key taken |
//!
//! The first matching row counts.
//!
//! READ COMMITTED is sufficient, because everything that the decision depends on is locked or protected by a unique
//! key:
//! - A node acquires a partition by updating its row. The update waits for commits that have locked the row, and a
//!   commit that waited for the update reads the new epoch: a commit happens before the new epoch or is refused.
//! - A head is read after the fences were locked, by a separate statement with its own snapshot, and stays locked.
//! - Missing rows cannot be locked: a head of the same key, an external name, an idempotency key, the head of an empty
//!   log. If another transaction inserts one in between, the insertion here violates a unique key, and the transaction
//!   is rolled back and tried again, and then finds the row.
//!
//! All transactions lock in the same order: the number of partitions, partitions, heads, heads of audit logs, the
//! catalogue, blobs, plans, messages and the queue of events, and each of them in key order where several transactions
//! may want the same rows. The server rolls back the remaining deadlocks, and they are tried again here.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use metrics::Histogram;
use tokio_postgres::types::ToSql;

use super::{
    audit, budgets,
    columns::{self, start_key, word_key},
    connections::{Connections, Session, Tries, Who, ask},
    error::{self, Fault, Meaning},
    writes::Writes,
};
use crate::{
    AuditHead, Batch, CommitError, Part, PartOutcome, Refusal, SUBSCRIPTION_KIND, batch::follows, sql::integer,
};

/// The failure of one try.
enum Failed {
    /// Certainly nothing was written.
    NotWritten(Fault),
    /// COMMIT was sent, and its outcome is unknown.
    Unknown(Fault),
}

pub(super) async fn commit(connections: &Connections, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
    let mut tries = Tries::default();
    loop {
        let fault = match attempt(connections, batch).await {
            Ok(answers) => return Ok(answers),
            Err(Failed::Unknown(fault)) => return Err(error::unknown(&connections.server, &fault)),
            Err(Failed::NotWritten(fault)) => fault,
        };
        if error::meaning(&fault) == Meaning::Refused || !tries.again().await {
            return Err(error::not_written(&connections.server, &fault));
        }
    }
}

async fn attempt(connections: &Connections, batch: &Batch) -> Result<Vec<PartOutcome>, Failed> {
    let session = connections.acquire(Who::Committer).await.map_err(Failed::NotWritten)?;
    match write(&session, batch, &connections.sync_time).await {
        Ok(answers) => {
            session.give_back();
            Ok(answers)
        }
        Err(Failed::NotWritten(fault)) => {
            session.end(&fault).await;
            Err(Failed::NotWritten(fault))
        }
        // Dropping the session closes it.
        Err(unknown) => Err(unknown),
    }
}

async fn write(session: &Session, batch: &Batch, sync_time: &Histogram) -> Result<Vec<PartOutcome>, Failed> {
    let mut locked = LockedRows::lock(session, batch).await.map_err(Failed::NotWritten)?;
    let answers: Vec<PartOutcome> = batch.parts.iter().map(|part| locked.answer(part)).collect();
    let written = batch.parts.iter().zip(&answers).filter(|(_, answer)| **answer == PartOutcome::Durable);
    let parts: Vec<&Part> = written.map(|(part, _)| part).collect();
    let mut writes = Writes::of(&parts, locked.has_subscriptions);
    let audited = parts.iter().flat_map(|part| &part.audit);
    writes.extend(budgets::statements(&parts));
    writes.extend(audit::statements(&mut locked.audit_heads, &batch.sealing, audited));
    let mut requests = writes.requests();
    let commit_at = requests.len();
    // A batch that writes nothing need not wait for the disk.
    requests.push(ask(if commit_at == 0 { "ROLLBACK" } else { "COMMIT" }, &[]));
    let began = Instant::now();
    let round = session.round(&requests).await;
    sync_time.record(began.elapsed());
    let Err(stopped) = round else { return Ok(answers) };
    let is_certain = match stopped.at {
        None => true,
        Some(_) if commit_at == 0 => true,
        Some(at) if at < commit_at => error::ends_transaction(&stopped.fault),
        Some(_) => error::refuses_commit(&stopped.fault),
    };
    Err(if is_certain { Failed::NotWritten(stopped.fault) } else { Failed::Unknown(stopped.fault) })
}

/// The facts that decide about the parts of a batch, stable until the transaction ends.
#[derive(Default)]
struct LockedRows {
    /// The partitions with valid fences.
    held: BTreeSet<u32>,
    heads: BTreeMap<ExecutionKey, LockedHead>,
    /// The owners of external names, by the hash of the name.
    ids: BTreeMap<Hash, ExecutionKey>,
    /// The executions started with idempotency keys, by the hash of the key.
    starts: BTreeMap<Hash, ExecutionKey>,
    /// True if a subscription took part in commits when the fences were locked.
    has_subscriptions: bool,
    /// The heads of the logs for which parts have entries.
    audit_heads: BTreeMap<String, AuditHead>,
}

struct LockedHead {
    partition: u32,
    sequence: i64,
    hash: Hash,
    is_ended: bool,
}

impl LockedRows {
    async fn lock(session: &Session, batch: &Batch) -> Result<Self, Fault> {
        let partitions: BTreeSet<u32> = batch.parts.iter().map(|part| part.partition).collect();
        let partitions: Vec<i64> = partitions.into_iter().map(i64::from).collect();
        let executions: Vec<&[u8]> = batch.parts.iter().map(|part| &part.execution.0[..]).collect();
        let new = batch.parts.iter().filter(|part| part.expected.is_none()).filter_map(|part| part.row.as_ref());
        let ids: Vec<Vec<u8>> = new.clone().map(|row| word_key(&row.id).0.to_vec()).collect();
        let starts = new.filter_map(|row| Some(start_key(&row.origin(), row.idempotency_key.as_deref()?)));
        let starts: Vec<Vec<u8>> = starts.map(|hash| hash.0.to_vec()).collect();
        let logs = audit::logs(batch.parts.iter().flat_map(|part| &part.audit));
        let fenced: [&(dyn ToSql + Sync); 2] = [&partitions, &SUBSCRIPTION_KIND.as_bytes()];
        let mut requests = vec![
            ask("BEGIN", &[]),
            ask(sql!("journal.sql", "fences"), &fenced),
            ask(sql!("journal.sql", "heads_lock"), &[&executions]),
        ];
        if !logs.is_empty() {
            requests.push(ask(sql!("audit.sql", "audit_heads_lock"), &[&logs]));
        }
        let names_at = requests.len();
        if !ids.is_empty() {
            requests.push(ask(sql!("journal.sql", "names"), &[&ids, &starts]));
        }
        let answers = session.round(&requests).await?;
        let mut locked = Self::default();
        if !logs.is_empty() {
            locked.audit_heads = audit::heads(&answers[3]).map_err(Fault::of_shared_row)?;
        }
        for found in &answers[1] {
            let (partition, epoch): (_, i64) = (columns::small_number(found, 0)?, columns::column(found, 1)?);
            locked.has_subscriptions = columns::column(found, 2)?;
            let is_valid = |fence: &crate::Fence| fence.partition == partition && integer(fence.epoch) == epoch;
            locked.held.extend(batch.fences.iter().any(is_valid).then_some(partition));
        }
        for found in &answers[2] {
            let head = LockedHead {
                partition: columns::small_number(found, 1)?,
                sequence: columns::column(found, 2)?,
                hash: columns::hash(found, 3)?,
                is_ended: columns::column(found, 4)?,
            };
            locked.heads.insert(columns::key(found, 0)?, head);
        }
        for found in answers.get(names_at).into_iter().flatten() {
            let key = columns::key(found, 0)?;
            locked.ids.insert(columns::hash(found, 1)?, key);
            locked.starts.extend(columns::optional_hash(found, 2)?.map(|start| (start, key)));
        }
        Ok(locked)
    }

    /// Decides about a part. The names of an accepted part are taken for the following ones.
    fn answer(&mut self, part: &Part) -> PartOutcome {
        if let Some(refusal) = self.refusal(part) {
            return PartOutcome::Refused(refusal);
        }
        if let (None, Some(row), false) = (part.expected, &part.row, part.frames.is_empty()) {
            self.ids.insert(word_key(&row.id), part.execution);
            let idempotency_key = row.idempotency_key.as_deref();
            let start = idempotency_key.map(|key| start_key(&row.origin(), key));
            self.starts.extend(start.map(|start| (start, part.execution)));
        }
        PartOutcome::Durable
    }

    /// Applies the table above.
    fn refusal(&self, part: &Part) -> Option<Refusal> {
        let head = self.heads.get(&part.execution);
        if !self.held.contains(&part.partition) {
            return Some(Refusal::Fence);
        }
        if head.is_some_and(|head| head.partition != part.partition) {
            return Some(Refusal::Partition);
        }
        if part.expected.is_some() && head.is_some_and(|head| head.is_ended) && !part.frames.is_empty() {
            return Some(Refusal::Ended);
        }
        let expected = part.expected.map(|expected| (integer(expected.sequence), expected.hash));
        if expected != head.map(|head| (head.sequence, head.hash)) {
            return Some(Refusal::Sequence);
        }
        if part.frames.is_empty() {
            return None;
        }
        if !follows(part) {
            return Some(Refusal::Sequence);
        }
        let row = part.row.as_ref().filter(|_| part.expected.is_none())?;
        // Rows are read after heads, so a start of the same execution that commits in between has a row and no head here.
        let refused = |other: &ExecutionKey, why: fn(ExecutionKey) -> Refusal| match *other == part.execution {
            true => Refusal::Sequence,
            false => why(*other),
        };
        if let Some(other) = self.ids.get(&word_key(&row.id)) {
            return Some(refused(other, Refusal::IdTaken));
        }
        let start = start_key(&row.origin(), row.idempotency_key.as_deref()?);
        self.starts.get(&start).map(|other| refused(other, Refusal::IdempotencyKeyTaken))
    }
}
