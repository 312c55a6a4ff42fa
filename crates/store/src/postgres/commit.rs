//! A batch inside its transaction: two round trips, however many parts it has.
//!
//! 1. BEGIN; the rows of its fences are locked against change (`FOR SHARE`), then those of its heads and of the ends of
//!    audit logs (`FOR UPDATE`), each in the order of their keys; the names that new executions ask for are looked up.
//! 2. What may be written is decided here, by the table below; then one statement for each table that changes, and COMMIT.
//!
//! | a part that | is refused as |
//! |---|---|
//! | names a partition that no valid fence of the batch names | fence |
//! | names a partition that its execution is not in | partition |
//! | has frames, and the execution has ended | ended |
//! | was decided on another head, or on none where there is one, or on one where there is none | sequence |
//! | has frames that do not follow the head one by one up to the new head | sequence |
//! | is new, with another's name or idempotency key | id taken, idempotency key taken |
//!
//! The first row that fits counts.
//!
//! READ COMMITTED is enough, because everything that is decided on is locked, or cannot change unseen:
//! - Whoever takes a partition updates its row. That waits for a commit that has the row locked, and a commit that waited
//!   for it reads the new epoch: a commit is before the new epoch or is refused.
//! - A head is read after the fences were locked, by a statement of its own with a view of its own, and stays locked.
//! - What is not there cannot be locked: a head of the same key, a name, an idempotency key, an empty log's end. Should another transaction put
//!   one there in between, the insertion fails on the unique key, the transaction is rolled back and tried again, and then
//!   finds it.
//!
//! Everybody locks the number of partitions, then partitions, then heads, then the ends of audit logs, then the catalogue,
//! blobs, plans and letters, in the order of keys wherever there can be two who want the same. What still runs into each other is rolled back by the
//! server and tried again here.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use metrics::Histogram;

use super::{
    audit,
    connections::{Connections, Session, Tries, Who, ask},
    failure::{self, Fault, Meaning},
    row::{self, start_key, word_key},
    writes::Writes,
};
use crate::{Answer, AuditHead, Batch, CommitError, Part, Refusal, number::integer, part::follows};

/// Why a try came to nothing.
enum Failed {
    /// Nothing of it was written, certainly.
    NotWritten(Fault),
    /// COMMIT was sent, and no answer came that says what became of it.
    Unknown(Fault),
}

/// Makes a batch true.
pub(super) async fn commit(connections: &Connections, batch: &Batch) -> Result<Vec<Answer>, CommitError> {
    let mut tries = Tries::default();
    loop {
        let fault = match attempt(connections, batch).await {
            Ok(answers) => return Ok(answers),
            Err(Failed::Unknown(fault)) => return Err(failure::unknown(&connections.server, &fault)),
            Err(Failed::NotWritten(fault)) => fault,
        };
        if failure::meaning(&fault) == Meaning::Refused || !tries.again().await {
            return Err(failure::not_written(&connections.server, &fault));
        }
    }
}

async fn attempt(connections: &Connections, batch: &Batch) -> Result<Vec<Answer>, Failed> {
    let session = connections.lend(Who::Committer).await.map_err(Failed::NotWritten)?;
    match write(&session, batch, &connections.sync_time).await {
        Ok(answers) => {
            session.give_back();
            Ok(answers)
        }
        Err(Failed::NotWritten(fault)) => {
            session.end(&fault).await;
            Err(Failed::NotWritten(fault))
        }
        // Dropped, and closed with that.
        Err(unknown) => Err(unknown),
    }
}

async fn write(session: &Session, batch: &Batch, sync_time: &Histogram) -> Result<Vec<Answer>, Failed> {
    let mut ground = Ground::lock(session, batch).await.map_err(Failed::NotWritten)?;
    let answers: Vec<Answer> = batch.parts.iter().map(|part| ground.answer(part)).collect();
    let written = batch.parts.iter().zip(&answers).filter(|(_, answer)| **answer == Answer::Durable);
    let parts: Vec<&Part> = written.map(|(part, _)| part).collect();
    let mut writes = Writes::of(&parts);
    let noted = parts.iter().flat_map(|part| &part.audit);
    writes.extend(audit::statements(&mut ground.audit_heads, &batch.sealing, noted));
    let mut requests = writes.requests();
    let commit_at = requests.len();
    // Where nothing is written, there is nothing to wait for either.
    requests.push(ask(if commit_at == 0 { "ROLLBACK" } else { "COMMIT" }, &[]));
    let began = Instant::now();
    let round = session.round(&requests).await;
    sync_time.record(began.elapsed());
    let Err(stopped) = round else { return Ok(answers) };
    let is_certain = match stopped.at {
        None => true,
        Some(_) if commit_at == 0 => true,
        Some(at) if at < commit_at => failure::ends_transaction(&stopped.fault),
        Some(_) => failure::refuses_commit(&stopped.fault),
    };
    Err(if is_certain { Failed::NotWritten(stopped.fault) } else { Failed::Unknown(stopped.fault) })
}

/// What the parts of a batch are decided on, all of it as it will be until the transaction ends.
#[derive(Default)]
struct Ground {
    /// The partitions whose fences are valid.
    held: BTreeSet<u32>,
    heads: BTreeMap<ExecutionKey, LockedHead>,
    /// Who has a name, by the hash of the name.
    ids: BTreeMap<Hash, ExecutionKey>,
    /// Who was started with an idempotency key, by its hash.
    starts: BTreeMap<Hash, ExecutionKey>,
    /// Where the logs end that parts have entries for.
    audit_heads: BTreeMap<String, AuditHead>,
}

struct LockedHead {
    partition: u32,
    sequence: i64,
    hash: Hash,
    is_ended: bool,
}

impl Ground {
    async fn lock(session: &Session, batch: &Batch) -> Result<Self, Fault> {
        let partitions: BTreeSet<u32> = batch.parts.iter().map(|part| part.partition).collect();
        let partitions: Vec<i64> = partitions.into_iter().map(i64::from).collect();
        let executions: Vec<&[u8]> = batch.parts.iter().map(|part| &part.execution.0[..]).collect();
        let new = batch.parts.iter().filter(|part| part.expected.is_none()).filter_map(|part| part.row.as_ref());
        let ids: Vec<Vec<u8>> = new.clone().map(|row| word_key(&row.id).0.to_vec()).collect();
        let starts = new.filter_map(|row| Some(start_key(&row.origin(), row.idempotency_key.as_deref()?)));
        let starts: Vec<Vec<u8>> = starts.map(|hash| hash.0.to_vec()).collect();
        let logs = audit::logs(batch.parts.iter().flat_map(|part| &part.audit));
        let mut requests = vec![
            ask("BEGIN", &[]),
            ask(include_str!("sql/fences.sql"), &[&partitions]),
            ask(include_str!("sql/heads_lock.sql"), &[&executions]),
        ];
        if !logs.is_empty() {
            requests.push(ask(include_str!("sql/audit_heads_lock.sql"), &[&logs]));
        }
        let names_at = requests.len();
        if !ids.is_empty() {
            requests.push(ask(include_str!("sql/names.sql"), &[&ids, &starts]));
        }
        let answers = session.round(&requests).await?;
        let mut ground = Self::default();
        if !logs.is_empty() {
            ground.audit_heads = audit::heads(&answers[3]).map_err(Fault::of_shared_row)?;
        }
        for found in &answers[1] {
            let (partition, epoch): (_, i64) = (row::small_number(found, 0)?, row::column(found, 1)?);
            let is_valid = |fence: &crate::Fence| fence.partition == partition && integer(fence.epoch) == epoch;
            ground.held.extend(batch.fences.iter().any(is_valid).then_some(partition));
        }
        for found in &answers[2] {
            let head = LockedHead {
                partition: row::small_number(found, 1)?,
                sequence: row::column(found, 2)?,
                hash: row::hash(found, 3)?,
                is_ended: row::column(found, 4)?,
            };
            ground.heads.insert(row::key(found, 0)?, head);
        }
        for found in answers.get(names_at).into_iter().flatten() {
            let key = row::key(found, 0)?;
            ground.ids.insert(row::hash(found, 1)?, key);
            ground.starts.extend(row::optional_hash(found, 2)?.map(|start| (start, key)));
        }
        Ok(ground)
    }

    /// What becomes of a part. One that is taken has its names from now on.
    fn answer(&mut self, part: &Part) -> Answer {
        if let Some(refusal) = self.refusal(part) {
            return Answer::Refused(refusal);
        }
        if let (None, Some(row), false) = (part.expected, &part.row, part.frames.is_empty()) {
            self.ids.insert(word_key(&row.id), part.execution);
            let idempotency_key = row.idempotency_key.as_deref();
            let start = idempotency_key.map(|key| start_key(&row.origin(), key));
            self.starts.extend(start.map(|start| (start, part.execution)));
        }
        Answer::Durable
    }

    /// The rows of the table above.
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
        if let Some(other) = self.ids.get(&word_key(&row.id)) {
            return Some(Refusal::IdTaken(*other));
        }
        let start = start_key(&row.origin(), row.idempotency_key.as_deref()?);
        self.starts.get(&start).map(|other| Refusal::IdempotencyKeyTaken(*other))
    }
}
