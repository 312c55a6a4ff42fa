//! Notifications that messages wait: sent with NOTIFY outside of transactions, and received on a separate connection.
//!
//! Notifications are best effort, so nothing here is an error. Notifications during another one are merged into the
//! next; notifications that cannot be sent are dropped; a database without NOTIFY only loses them. Subscribers also
//! poll at intervals.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, error::SqlState};

use super::{
    address::Address,
    connections::{self, Connections, Who},
    error::Fault,
    membership,
};
use crate::NotifyCallback;

/// Time between two notifications. All commits of a node in between share one.
const BETWEEN: Duration = Duration::from_millis(5);

/// A notification holds at most 8000 bytes.
const BYTES_MAX: usize = 7_000;

/// Stands for all partitions, if the list of their numbers would be too long.
const ALL: &str = "all";

/// Longest wait before the listening connection is reopened; the wait grows up to it.
const RECONNECT_MS_MAX: u64 = 5_000;

/// The partitions to notify about.
#[derive(Default)]
pub(super) struct PendingNotifications {
    waiting: Mutex<BTreeSet<u32>>,
    is_any: Notify,
}

impl PendingNotifications {
    /// Never blocks.
    pub(super) fn add(&self, partitions: &[u32]) {
        if !partitions.is_empty() {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).extend(partitions);
            self.is_any.notify_one();
        }
    }

    fn take(&self) -> BTreeSet<u32> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the channel of a schema.
fn channel_of(address: &Address) -> String {
    format!("mainspring_{}", address.schema)
}

/// Sends notifications until the driver ends.
pub(super) fn start_notifying(connections: &Arc<Connections>, notifications: &Arc<PendingNotifications>) {
    let (connections, notifications) = (Arc::downgrade(connections), notifications.clone());
    let Some(strong) = connections.upgrade() else { return };
    strong.driver.handle().spawn(async move {
        loop {
            notifications.is_any.notified().await;
            let Some(connections) = connections.upgrade() else { return };
            if !send(&connections, &notifications.take()).await {
                return;
            }
            drop(connections);
            tokio::time::sleep(BETWEEN).await;
        }
    });
}

/// False if this database does not support notifications.
async fn send(connections: &Connections, partitions: &BTreeSet<u32>) -> bool {
    let words: Vec<String> = partitions.iter().map(u32::to_string).collect();
    let mut text = words.join(",");
    if text.len() > BYTES_MAX {
        text = ALL.to_owned();
    }
    let channel = channel_of(&connections.address);
    let Ok(session) = connections.acquire(Who::Others).await else { return true };
    match session.query(sql!("connection.sql", "notify"), &[&channel, &text]).await {
        Ok(_) => {
            session.give_back();
            true
        }
        Err(fault) => {
            let is_unknown =
                matches!(&fault, Fault::Postgres(error) if error.code() == Some(&SqlState::UNDEFINED_FUNCTION));
            session.end(&fault).await;
            !is_unknown
        }
    }
}

/// Calls `notified` on a separate thread, which may use the store, until the driver ends.
pub(super) fn start_listening(connections: &Arc<Connections>, notified: NotifyCallback) {
    let (sender, receiver) = channel::<Vec<u32>>();
    let thread = thread::Builder::new().name("mainspring-notify".into());
    // Without a thread no notification arrives, which is permitted.
    if thread.spawn(move || receiver.iter().for_each(|partitions| notified(&partitions))).is_err() {
        return;
    }
    let weak = Arc::downgrade(connections);
    connections.driver.handle().spawn(async move {
        let mut wait_ms = 0;
        loop {
            let Some(connections) = weak.upgrade() else { return };
            let (address, connector) = (connections.address.clone(), connections.connector.clone());
            drop(connections);
            let config = connections::config(&address);
            if let Ok((client, connection)) = config.connect(connector).await {
                // Covers notifications that were sent while the connection was closed.
                let missed = if wait_ms == 0 { "" } else { ALL };
                wait_ms = 0;
                let listen = sql!("connection.sql", "listen").replace("{channel}", &channel_of(&address));
                receive(&weak, client, connection, &listen, missed, &sender).await;
            }
            wait_ms = (wait_ms * 2).clamp(100, RECONNECT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    });
}

/// Receives until the connection or the store ends.
async fn receive<T>(
    connections: &std::sync::Weak<Connections>,
    client: tokio_postgres::Client,
    mut connection: tokio_postgres::Connection<tokio_postgres::Socket, T>,
    listen: &str,
    missed: &str,
    sender: &Sender<Vec<u32>>,
) where
    T: tokio_postgres::tls::TlsStream + Unpin,
{
    let mut asked = std::pin::pin!(client.batch_execute(listen));
    let mut is_listening = false;
    pass_on(connections, missed, sender).await;
    loop {
        let message = poll_fn(|context| {
            if !is_listening && asked.as_mut().poll(context).is_ready() {
                is_listening = true;
            }
            connection.poll_message(context)
        });
        match message.await {
            Some(Ok(AsyncMessage::Notification(notice))) => pass_on(connections, notice.payload(), sender).await,
            Some(Ok(_)) => {}
            _ => return,
        }
    }
}

async fn pass_on(connections: &std::sync::Weak<Connections>, text: &str, sender: &Sender<Vec<u32>>) {
    let partitions = match text {
        ALL => match connections.upgrade() {
            None => return,
            Some(connections) => {
                let asked =
                    connections.repeat(Who::Others, async |session| membership::partitions(session).await).await;
                (0..asked.unwrap_or(0)).collect()
            }
        },
        // Any user may send any text on a channel: parts that are not numbers are skipped.
        _ => text.split(',').filter_map(|word| word.parse().ok()).collect::<Vec<u32>>(),
    };
    if !partitions.is_empty() {
        // The receiver ends only with the process.
        let _ = sender.send(partitions);
    }
}
