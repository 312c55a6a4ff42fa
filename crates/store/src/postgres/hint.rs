//! Hints that letters wait: told with NOTIFY, outside of every transaction, and heard on a connection of their own.
//!
//! A hint is never the truth, so nothing here is an error: what is told while another is on its way goes with the next,
//! what cannot be told is forgotten, and a database without NOTIFY only loses its hints. Whoever listens looks by itself
//! every now and then.

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
    failure::Fault,
    nodes,
};
use crate::Heard;

/// Between two hints that are told. All of a node's commits in between share one.
const BETWEEN: Duration = Duration::from_millis(5);

/// A notification holds 8000 bytes at most.
const BYTES_MAX: usize = 7_000;

/// Said of all partitions, where their numbers would be too long.
const ALL: &str = "all";

/// How long to wait before the listening connection is made anew: longer each time, up to this.
const RECONNECT_MS_MAX: u64 = 5_000;

/// What is to be told.
#[derive(Default)]
pub(super) struct Hints {
    waiting: Mutex<BTreeSet<u32>>,
    is_any: Notify,
}

impl Hints {
    /// Never waits.
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

/// The channel of a schema.
fn channel_of(address: &Address) -> String {
    format!("mainspring_{}", address.schema)
}

/// Tells what waits, until the driver ends.
pub(super) fn start_telling(connections: &Arc<Connections>, hints: &Arc<Hints>) {
    let (connections, hints) = (Arc::downgrade(connections), hints.clone());
    let Some(strong) = connections.upgrade() else { return };
    strong.driver.handle().spawn(async move {
        loop {
            hints.is_any.notified().await;
            let Some(connections) = connections.upgrade() else { return };
            if !tell(&connections, &hints.take()).await {
                return;
            }
            drop(connections);
            tokio::time::sleep(BETWEEN).await;
        }
    });
}

/// False if this database has no way to tell.
async fn tell(connections: &Connections, partitions: &BTreeSet<u32>) -> bool {
    let words: Vec<String> = partitions.iter().map(u32::to_string).collect();
    let mut text = words.join(",");
    if text.len() > BYTES_MAX {
        text = ALL.to_owned();
    }
    let channel = channel_of(&connections.address);
    let Ok(session) = connections.lend(Who::Others).await else { return true };
    match session.query(include_str!("sql/notify.sql"), &[&channel, &text]).await {
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

/// Calls `heard` on a thread of its own, which may use the store, until the driver ends.
pub(super) fn start_listening(connections: &Arc<Connections>, heard: Heard) {
    let (sender, receiver) = channel::<Vec<u32>>();
    let thread = thread::Builder::new().name("mainspring-hints".into());
    // Without a thread no hint is heard, which is allowed.
    if thread.spawn(move || receiver.iter().for_each(|partitions| heard(&partitions))).is_err() {
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
                // What was told while nobody listened.
                let missed = if wait_ms == 0 { "" } else { ALL };
                wait_ms = 0;
                let listen = include_str!("sql/listen.sql").replace("{channel}", &channel_of(&address));
                hear(&weak, client, connection, &listen, missed, &sender).await;
            }
            wait_ms = (wait_ms * 2).clamp(100, RECONNECT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    });
}

/// Until the connection ends, or the store does.
async fn hear<T>(
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
            Some(Ok(AsyncMessage::Notification(told))) => pass_on(connections, told.payload(), sender).await,
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
                let asked = connections.repeat(Who::Others, async |session| nodes::partitions(session).await).await;
                (0..asked.unwrap_or(0)).collect()
            }
        },
        // Anybody may tell anything on a channel: what is no number is passed over.
        _ => text.split(',').filter_map(|word| word.parse().ok()).collect::<Vec<u32>>(),
    };
    if !partitions.is_empty() {
        // The other side ends with the process only.
        let _ = sender.send(partitions);
    }
}
