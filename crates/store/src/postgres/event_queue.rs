//! The queue of events.

use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore,
    columns::{self, name_key},
    connections::{Session, ask},
    error::Fault,
};
use crate::{
    DueSubscription, DueTimes, EventCursor, EventQueue, RECORDING_KEY, SUBSCRIPTION_KIND, StoreError,
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
    fn due_subscriptions(&self, due: DueTimes) -> Result<Vec<DueSubscription>, StoreError> {
        self.with_session(async |session| {
            let values: [&(dyn ToSql + Sync); 2] = [&integer(due.now_ms), &integer(due.latest_ms)];
            let found = session.query(sql!("events.sql", "due_subscriptions"), &values).await?;
            let of_row = |found: &Row| {
                Ok(DueSubscription { id: columns::word(found, 0)?, organization: columns::word(found, 1)? })
            };
            found.iter().map(of_row).collect()
        })
    }

    fn due_events(&self, subscription: &str, due: DueTimes, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        self.with_session(async |session| {
            let (now, latest, limit) = (integer(due.now_ms), integer(due.latest_ms), integer(limit as u64));
            let values: [&(dyn ToSql + Sync); 4] = [&subscription.as_bytes(), &now, &latest, &limit];
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

    fn retry_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.with_session(async |session| {
            session.query(sql!("events.sql", "events_retry"), &[&subscription.as_bytes()]).await.map(drop)
        })
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.with_session(async |session| {
            let key = name_key(RECORDING_KEY.0, RECORDING_KEY.1).0;
            let values: [&(dyn ToSql + Sync); 3] = [&subscription.as_bytes(), &SUBSCRIPTION_KIND.as_bytes(), &&key[..]];
            session.query(sql!("events.sql", "events_remove"), &values).await.map(drop)
        })
    }
}
