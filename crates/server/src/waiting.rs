//! Waiting for an execution until it has ended or waits for people.

use std::time::Duration;

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{ExecutionRow, is_final};

use crate::{
    app::App,
    problem::{Answer, Problem},
};

/// Milliseconds that a request may wait: less than proxies leave a connection without a byte (nginx and most balancers: 60 s
/// or more).
pub(crate) const WAIT_MS_MAX: u64 = 60_000;

/// Milliseconds that a request asks to wait for, if a request may wait so long.
pub(crate) fn checked(field: &str, wait_ms: u64) -> Answer<Duration> {
    if wait_ms > WAIT_MS_MAX {
        return Err(Problem::field(field, format!("it must be at most {WAIT_MS_MAX}, not {wait_ms}")));
    }
    Ok(Duration::from_millis(wait_ms))
}

/// Waits until an execution has ended or waits for people, or until the time is over. The caller holds a
/// [place](crate::feed::Feeds::place) among the watchers.
pub(crate) async fn until_rest(app: &App, key: ExecutionKey, time: Duration) -> Answer<()> {
    let feed = app.feeds.of(app, key);
    let rests = async {
        let mut reader = feed.reader();
        loop {
            let row = app.look(move |app| Ok(app.engine.store().execution(key)?)).await?;
            let rests = |row: &ExecutionRow| is_final(&row.status) || row.status == "waiting_approval";
            if row.is_none_or(|row| rests(&row)) || !reader.changed().await {
                return Ok::<(), Problem>(());
            }
        }
    };
    tokio::time::timeout(time, rests).await.unwrap_or(Ok(()))
}
