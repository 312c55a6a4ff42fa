//! The queue of events.

use mainspring_kernel::key::ExecutionKey;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use crate::{
    DueSubscription, DueTimes, EventCursor, EventQueue, Part, RECORDING_KEY, SUBSCRIPTION_KIND, StoreError,
    sql::{integer, natural},
};

/// Adds the frames of a part to the queues of the subscriptions of its organization.
pub(super) fn record(connection: &Connection, part: &Part) -> rusqlite::Result<()> {
    let Some((first, last)) = part.frames.first().zip(part.frames.last()) else { return Ok(()) };
    let (field, value) = RECORDING_KEY;
    let values =
        params![part.execution.0, integer(first.sequence), integer(last.sequence), SUBSCRIPTION_KIND, field, value];
    connection.prepare_cached(sql!("events.sql", "events_record"))?.execute(values).map(drop)
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<EventCursor> {
    Ok(EventCursor {
        subscription: row.get(0)?,
        execution: ExecutionKey(row.get(1)?),
        organization: row.get(2)?,
        sequence: natural(row.get(3)?),
        position: row.get(4)?,
        newest: natural(row.get(5)?),
        due_at: natural(row.get(6)?),
        attempts: row.get(7)?,
        failing_since: row.get::<_, Option<i64>>(8)?.map(natural),
    })
}

fn move_row(connection: &Connection, read: &EventCursor, to: &EventCursor) -> rusqlite::Result<bool> {
    let (subscription, execution, sequence) = (&read.subscription, read.execution.0, integer(read.sequence));
    let (position, attempts) = (read.position, read.attempts);
    let values = params![subscription, execution, sequence, position, attempts, integer(to.sequence)];
    if connection.prepare_cached(sql!("events.sql", "events_finish"))?.execute(values)? == 1 {
        return Ok(true);
    }
    let values = params![
        subscription,
        execution,
        sequence,
        position,
        attempts,
        integer(to.sequence),
        to.position,
        integer(to.due_at),
        to.attempts,
        to.failing_since.map(integer),
    ];
    Ok(connection.prepare_cached(sql!("events.sql", "events_move"))?.execute(values)? == 1)
}

impl EventQueue for SqliteStore {
    fn due_subscriptions(&self, due: DueTimes) -> Result<Vec<DueSubscription>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql!("events.sql", "due_subscriptions"))?;
            let values = [integer(due.now_ms), integer(due.latest_ms)];
            let of_row = |row: &Row<'_>| Ok(DueSubscription { id: row.get(0)?, organization: row.get(1)? });
            statement.query_map(values, of_row)?.collect()
        })
    }

    fn due_events(&self, subscription: &str, due: DueTimes, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql!("events.sql", "due_events"))?;
            let values = params![subscription, integer(due.now_ms), integer(due.latest_ms), integer(limit as u64)];
            statement.query_map(values, of_row)?.collect()
        })
    }

    fn count_events(&self, subscription: &str, most: usize) -> Result<usize, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql!("events.sql", "events_count"))?;
            let count: i64 = statement.query_row(params![subscription, integer(most as u64)], |row| row.get(0))?;
            Ok(natural(count) as usize)
        })
    }

    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError> {
        self.write(|connection| move_row(connection, read, to))
    }

    fn retry_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.write(|connection| {
            connection.prepare_cached(sql!("events.sql", "events_retry"))?.execute([subscription]).map(drop)
        })
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        let (field, value) = RECORDING_KEY;
        self.write(|connection| {
            let values = params![subscription, SUBSCRIPTION_KIND, field, value];
            connection.prepare_cached(sql!("events.sql", "events_remove"))?.execute(values).map(drop)
        })
    }
}
