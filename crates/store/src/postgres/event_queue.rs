//! The queue of events.

use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, columns,
    connections::{Session, ask},
    error::Fault,
};
use crate::{
    EventCursor, EventQueue, StoreError,
    sql::{integer, natural},
};

fn of_row(found: &Row) -> Result<EventCursor, Fault> {
    Ok(EventCursor {
        subscription: columns::word(found, 0)?,
        execution: columns::key(found, 1)?,
        organization: columns::word(found, 2)?,
        sequence: columns::number(found, 3)?,
        position: columns::small_number(found, 4)?,
        newest: columns::number(found, 5)?,
        due_at: columns::number(found, 6)?,
        attempts: columns::small_number(found, 7)?,
        failing_since: columns::optional_number(found, 8)?,
    })
}

/// Removes or moves a row in one transaction. A commit that adds a frame at the same time waits for it or is waited for,
/// and each statement checks its conditions on the newest version of the row.
async fn move_row(session: &Session, read: &EventCursor, to: &EventCursor) -> Result<bool, Fault> {
    let (subscription, execution) = (read.subscription.as_bytes(), &read.execution.0[..]);
    let [sequence, position, attempts] = [integer(read.sequence), i64::from(read.position), i64::from(read.attempts)];
    let [next, at, due_at, failed] =
        [integer(to.sequence), i64::from(to.position), integer(to.due_at), i64::from(to.attempts)];
    let failing_since = to.failing_since.map(integer);
    let of_read: [&(dyn ToSql + Sync); 5] = [&subscription, &execution, &sequence, &position, &attempts];
    let finish = [&of_read[..], &[&next]].concat();
    let moving = [&of_read[..], &[&next, &at, &due_at, &failed, &failing_since]].concat();
    let answers = session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("events.sql", "events_finish"), &finish),
            ask(sql!("events.sql", "events_move"), &moving),
            ask("COMMIT", &[]),
        ])
        .await?;
    Ok(!answers[1].is_empty() || !answers[2].is_empty())
}

impl EventQueue for PostgresStore {
    fn due_subscriptions(&self, until_ms: u64) -> Result<Vec<String>, StoreError> {
        self.with_session(async |session| {
            let found = session.query(sql!("events.sql", "due_subscriptions"), &[&integer(until_ms)]).await?;
            found.iter().map(|found| columns::word(found, 0)).collect()
        })
    }

    fn due_events(&self, subscription: &str, until_ms: u64, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        self.with_session(async |session| {
            let (until_ms, limit) = (integer(until_ms), integer(limit as u64));
            let values: [&(dyn ToSql + Sync); 3] = [&subscription.as_bytes(), &until_ms, &limit];
            let found = session.query(sql!("events.sql", "due_events"), &values).await?;
            found.iter().map(of_row).collect()
        })
    }

    fn count_events(&self, subscription: &str, most: usize) -> Result<usize, StoreError> {
        self.with_session(async |session| {
            let values: [&(dyn ToSql + Sync); 2] = [&subscription.as_bytes(), &integer(most as u64)];
            let found = session.query(sql!("events.sql", "events_count"), &values).await?;
            found.first().map_or(Ok(0), |found| columns::column(found, 0).map(|count| natural(count) as usize))
        })
    }

    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError> {
        self.with_session(async |session| move_row(session, read, to).await)
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.with_session(async |session| {
            session.query(sql!("events.sql", "events_remove"), &[&subscription.as_bytes()]).await.map(drop)
        })
    }
}
