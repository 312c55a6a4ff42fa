//! Converts a batch to columns: one statement for each table, for any number of parts.

use std::collections::BTreeMap;

use mainspring_kernel::{hash::Hash, key::ExecutionKey};
use tokio_postgres::types::ToSql;

use super::{
    columns::{name_key, start_key, word_key},
    connections::{Request, ask},
};
use crate::{
    ExecutionRow, InboxMessage, Part, RECORDING_KEY, RowChange, SUBSCRIPTION_KIND, StoredPlan,
    batch::{is_end, wake_at},
    payloads,
    sql::integer,
};

/// The values of a parameter: one for each row.
pub(super) type Column<'a> = Box<dyn ToSql + Sync + 'a>;

/// A statement with its parameters.
pub(super) type Statement<'a> = (&'static str, Vec<Column<'a>>);

/// The statements of a batch, in the order in which they lock.
#[derive(Default)]
pub(super) struct Writes<'a>(Vec<Statement<'a>>);

impl<'a> Writes<'a> {
    /// Collects all content of these parts, which the caller has accepted.
    pub(super) fn of(parts: &[&'a Part], has_subscriptions: bool) -> Self {
        let mut writes = Self::default();
        let moved = parts.iter().copied().filter(|part| !part.frames.is_empty());
        let (new, older): (Vec<&Part>, Vec<&Part>) = moved.clone().partition(|part| part.expected.is_none());
        writes.heads(&new, &older);
        let rows: Vec<_> = new.iter().filter_map(|part| Some((part.execution, part.row.as_ref()?))).collect();
        let changes: Vec<_> = moved.filter_map(|part| Some((part.execution, part.change.as_ref()?))).collect();
        writes.catalogue(&rows, &changes);
        writes.frames(parts);
        writes.plans(parts.iter().flat_map(|part| &part.plans));
        writes.messages(parts);
        writes.gates(&[new, older].concat());
        writes.executor_keys(parts);
        if has_subscriptions {
            writes.events(parts);
        }
        writes
    }

    /// Returns the statements with their values.
    pub(super) fn requests(&self) -> Vec<Request<'_>> {
        let mut requests = Vec::new();
        for (sql, columns) in &self.0 {
            let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
            requests.push(ask(sql, &values));
        }
        requests
    }

    /// Adds a statement, unless it has no rows.
    pub(super) fn push<R>(&mut self, rows: &[R], sql: &'static str, columns: Vec<Column<'a>>) {
        if !rows.is_empty() {
            self.0.push((sql, columns));
        }
    }

    pub(super) fn extend(&mut self, statements: impl IntoIterator<Item = Statement<'a>>) {
        self.0.extend(statements);
    }

    fn heads(&mut self, new: &[&'a Part], older: &[&'a Part]) {
        let columns = vec![
            column(new, |part| &part.execution.0[..]),
            column(new, |part| i64::from(part.partition)),
            column(new, |part| integer(part.head.sequence)),
            column(new, |part| &part.head.hash.0[..]),
            column(new, |part| &part.head.seal.0[..]),
            column(new, wake_at),
            column(new, is_end),
        ];
        self.push(new, sql!("journal.sql", "heads_insert"), columns);
        let columns = vec![
            column(older, |part| &part.execution.0[..]),
            column(older, |part| integer(part.head.sequence)),
            column(older, |part| &part.head.hash.0[..]),
            column(older, |part| &part.head.seal.0[..]),
            column(older, wake_at),
            column(older, is_end),
        ];
        self.push(older, sql!("journal.sql", "heads_advance"), columns);
    }

    fn catalogue(&mut self, rows: &[(ExecutionKey, &'a ExecutionRow)], changes: &[(ExecutionKey, &'a RowChange)]) {
        let start = |row: &ExecutionRow| {
            let key = row.idempotency_key.as_deref();
            key.map(|key| start_key(&row.origin(), key).0.to_vec())
        };
        let columns = vec![
            column(rows, |(key, _)| key.0.to_vec()),
            column(rows, |(_, row)| word_key(&row.id).0.to_vec()),
            column(rows, |(_, row)| row.id.as_bytes()),
            column(rows, |(_, row)| key_of(&row.workflow)),
            column(rows, |(_, row)| bytes(&row.workflow)),
            column(rows, |(_, row)| bytes(&row.workflow_version)),
            column(rows, |(_, row)| row.workflow_hash.as_bytes()),
            column(rows, |(_, row)| &row.plan_hash.0[..]),
            column(rows, |(_, row)| row.status.as_bytes()),
            column(rows, |(_, row)| bytes(&row.outcome)),
            column(rows, |(_, row)| bytes(&row.error)),
            column(rows, |(_, row)| row.trigger_type.as_bytes()),
            column(rows, |(_, row)| row.initiator_type.as_bytes()),
            column(rows, |(_, row)| bytes(&row.initiator_user_id)),
            column(rows, |(_, row)| start(row)),
            column(rows, |(_, row)| bytes(&row.idempotency_key)),
            column(rows, |(_, row)| bytes(&row.session_id)),
            column(rows, |(_, row)| i64::from(row.partition)),
            column(rows, |(_, row)| i64::from(row.attempt_count)),
            column(rows, |(_, row)| integer(row.started_at)),
            column(rows, |(_, row)| row.completed_at.map(integer)),
            column(rows, |(_, row)| key_of(&row.organization)),
            column(rows, |(_, row)| bytes(&row.organization)),
            column(rows, |(_, row)| key_of(&row.workflow_id)),
            column(rows, |(_, row)| bytes(&row.workflow_id)),
            column(rows, |(_, row)| bytes(&row.trigger_id)),
            column(rows, |(_, row)| row.parent.map(|parent| parent.0.to_vec())),
            column(rows, |(_, row)| bytes(&row.names.parent_id)),
            column(rows, |(_, row)| bytes(&row.names.workflow_name)),
            column(rows, |(_, row)| bytes(&row.names.rollout)),
            column(rows, |(_, row)| row.usage.map(|usage| integer(usage.tokens))),
            column(rows, |(_, row)| row.usage.map(|usage| integer(usage.cost))),
        ];
        self.push(rows, sql!("executions.sql", "executions_insert"), columns);
        let definition = |change: &'a RowChange| change.definition.as_ref();
        let columns = vec![
            column(changes, |(key, _)| key.0.to_vec()),
            column(changes, |(_, change)| change.status.as_bytes()),
            column(changes, |(_, change)| bytes(&change.outcome)),
            column(changes, |(_, change)| bytes(&change.error)),
            column(changes, |(_, change)| change.completed_at.map(integer)),
            column(changes, |(_, change)| change.usage.map(|usage| integer(usage.tokens))),
            column(changes, |(_, change)| change.usage.map(|usage| integer(usage.cost))),
            column(changes, |(_, change)| definition(change).map(|definition| definition.workflow_hash.as_bytes())),
            column(changes, |(_, change)| {
                definition(change).and_then(|definition| bytes(&definition.workflow_version))
            }),
            column(changes, |(_, change)| definition(change).map(|definition| &definition.plan_hash.0[..])),
        ];
        self.push(changes, sql!("executions.sql", "executions_change"), columns);
    }

    fn frames(&mut self, parts: &[&'a Part]) {
        let mut blobs: BTreeMap<Hash, (i64, &'a [u8])> = BTreeMap::new();
        let of_part = |part: &&'a Part| {
            let key = &part.execution.0;
            part.frames_with_proofs().map(move |(frame, proof)| (key, frame, proof)).collect::<Vec<_>>()
        };
        let frames: Vec<_> = parts.iter().flat_map(of_part).collect();
        let packed = column(&frames, |(_, frame, _)| {
            let Ok(packed) = payloads::pack(&frame.values, |hash, body| {
                blobs.entry(hash).or_insert((0, body)).0 += 1;
                Ok::<_, std::convert::Infallible>(())
            });
            packed
        });
        let columns = vec![
            column(&frames, |(key, ..)| &key[..]),
            column(&frames, |(_, frame, _)| integer(frame.sequence)),
            column(&frames, |(_, frame, _)| &frame.frame[..]),
            packed,
            column(&frames, |(.., proof)| proof),
        ];
        self.push(&frames, sql!("journal.sql", "frames_insert"), columns);
        let blobs: Vec<_> = blobs.into_iter().collect();
        let columns = vec![
            column(&blobs, |(hash, _)| hash.0.to_vec()),
            column(&blobs, |(_, (refs, _))| refs),
            column(&blobs, |(_, (_, body))| body),
        ];
        self.push(&blobs, sql!("journal.sql", "blobs_put"), columns);
    }

    /// Adds frames to the queues of subscriptions.
    fn events(&mut self, parts: &[&'a Part]) {
        let range = |part: &&'a Part| {
            let (first, last) = part.frames.first().zip(part.frames.last())?;
            Some((&part.execution.0[..], integer(first.sequence), integer(last.sequence)))
        };
        let moved: Vec<_> = parts.iter().filter_map(range).collect();
        let columns = vec![
            column(&moved, |(key, ..)| key),
            column(&moved, |(_, first, _)| first),
            column(&moved, |(.., last)| last),
            Box::new(SUBSCRIPTION_KIND.as_bytes()),
            Box::new(name_key(RECORDING_KEY.0, RECORDING_KEY.1).0.to_vec()),
        ];
        self.push(&moved, sql!("events.sql", "events_record"), columns);
    }

    fn executor_keys(&mut self, parts: &[&'a Part]) {
        let keys: BTreeMap<Hash, &[u8]> =
            parts.iter().filter_map(|part| part.executor_key()).map(|key| (key.id, &key.certificate[..])).collect();
        let keys: Vec<_> = keys.into_iter().collect();
        let columns = vec![column(&keys, |(id, _)| id.0.to_vec()), column(&keys, |(_, certificate)| certificate)];
        self.push(&keys, sql!("journal.sql", "executor_keys_put"), columns);
    }

    fn plans(&mut self, plans: impl Iterator<Item = &'a StoredPlan>) {
        let plans: BTreeMap<Hash, &[u8]> = plans.map(|plan| (plan.hash, &plan.bytes[..])).collect();
        let plans: Vec<_> = plans.into_iter().collect();
        let columns = vec![column(&plans, |(hash, _)| hash.0.to_vec()), column(&plans, |(_, bytes)| bytes)];
        self.push(&plans, sql!("journal.sql", "plans_put"), columns);
    }

    fn messages(&mut self, parts: &[&'a Part]) {
        let taken_in: Vec<(&[u8], &str)> =
            parts.iter().flat_map(|part| part.consumed.iter().map(|id| (&part.execution.0[..], id.as_str()))).collect();
        let columns = vec![column(&taken_in, |(key, _)| key), column(&taken_in, |(_, id)| word_key(id).0.to_vec())];
        self.push(&taken_in, sql!("inbox.sql", "messages_consume"), columns);
        let messages: Vec<&InboxMessage> = parts.iter().flat_map(|part| &part.messages).collect();
        let columns = vec![
            column(&messages, |message| &message.execution.0[..]),
            column(&messages, |message| word_key(&message.id).0.to_vec()),
            column(&messages, |message| message.id.as_bytes()),
            column(&messages, |message| i64::from(message.partition)),
            column(&messages, |message| &message.body[..]),
            column(&messages, |message| integer(message.enqueued_at)),
        ];
        self.push(&messages, sql!("inbox.sql", "messages_insert"), columns);
        let of_part = |part: &&'a Part| {
            let key = &part.execution.0[..];
            part.late_with_proofs().map(move |(late, proof)| (key, late, proof)).collect::<Vec<_>>()
        };
        let late: Vec<_> = parts.iter().flat_map(of_part).collect();
        let columns = vec![
            column(&late, |(key, ..)| key),
            column(&late, |(_, late, _)| integer(late.at)),
            column(&late, |(_, late, _)| &late.body[..]),
            column(&late, |(.., proof)| proof),
        ];
        self.push(&late, sql!("journal.sql", "late_receipts_insert"), columns);
    }
}

pub(super) fn column<'a, R: Copy, T: ToSql + Sync + 'a>(rows: &[R], of_row: impl FnMut(R) -> T) -> Column<'a> {
    Box::new(rows.iter().copied().map(of_row).collect::<Vec<T>>())
}

pub(super) fn key_of(word: &Option<String>) -> Option<Vec<u8>> {
    word.as_ref().map(|word| word_key(word).0.to_vec())
}

pub(super) fn bytes(word: &Option<String>) -> Option<&[u8]> {
    word.as_ref().map(String::as_bytes)
}
