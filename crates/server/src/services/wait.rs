//! Waits for an execution to end or to reach an approval, for requests with a wait time.

use std::time::Duration;

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{ExecutionRow, is_final};

use crate::{
    app::App,
    http::problem::{Problem, Result},
    services::event_feed::fill::feed_of,
};

/// Most milliseconds that a request may wait: less than the read timeout of proxies (60 s or more in nginx and most
/// load balancers).
pub(crate) const WAIT_MS_MAX: u64 = 60_000;

/// Validates the wait time of a request.
pub(crate) fn checked(field: &str, wait_ms: u64) -> Result<Duration> {
    if wait_ms > WAIT_MS_MAX {
        return Err(Problem::field(field, format!("it must be at most {WAIT_MS_MAX}, not {wait_ms}")));
    }
    Ok(Duration::from_millis(wait_ms))
}

/// Waits until an execution has ended or waits for an approval, or until the time limit has passed. The caller holds a
/// [permit](crate::services::event_feed::Feeds::register) among the watchers.
pub(crate) async fn until_settled(app: &App, key: ExecutionKey, time: Duration) -> Result<()> {
    let feed = feed_of(app, key);
    let settled = async {
        let mut reader = feed.reader();
        loop {
            let row = app.run_short(move |app| Ok(app.engine.store().execution(key)?)).await?;
            let is_settled = |row: &ExecutionRow| is_final(&row.status) || row.status == "waiting_approval";
            if row.is_none_or(|row| is_settled(&row)) || !reader.changed().await {
                return Ok::<(), Problem>(());
            }
        }
    };
    tokio::time::timeout(time, settled).await.unwrap_or(Ok(()))
}
