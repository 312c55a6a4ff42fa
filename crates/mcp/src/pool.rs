//! Connections that are open: one for each server and scope, shared by the calls of that scope.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, OnceCell},
    time::Instant,
};

use crate::{
    config::ServerConfig,
    connection::{Access, Connection, Scope},
    error::ToolError,
    limits::{CONNECTIONS_MAX, SWEEP_INTERVAL_MIN},
};

/// The open connections of a node.
pub struct Pool {
    servers: Vec<ServerConfig>,
    access: Access,
    idle_max: Duration,
    entries: Mutex<BTreeMap<(Scope, String), Entry>>,
    is_swept: AtomicBool,
}

/// A connection, or one that is being opened, with the calls that use it.
#[derive(Clone)]
struct Entry {
    connection: Arc<OnceCell<Arc<Connection>>>,
    users: Arc<AtomicUsize>,
    used_at: Instant,
}

/// A connection in use. Dropping it allows the connection to close.
pub struct Lease {
    connection: Arc<Connection>,
    _user: User,
}

/// Counts as a user of a connection until it is dropped, also when the wait for the connection is canceled.
struct User(Arc<AtomicUsize>);

impl User {
    fn of(users: &Arc<AtomicUsize>) -> Self {
        users.fetch_add(1, Ordering::SeqCst);
        Self(users.clone())
    }
}

impl std::ops::Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Pool {
    /// Makes a pool. No server is started before its first use. A connection without calls for `idle_max` is closed.
    pub fn new(servers: Vec<ServerConfig>, access: Access, idle_max: Duration) -> Self {
        Self { servers, access, idle_max, entries: Mutex::default(), is_swept: AtomicBool::new(false) }
    }

    /// Returns the configured servers, sorted by name.
    pub fn servers(&self) -> &[ServerConfig] {
        &self.servers
    }

    /// Returns a connection to a server, opened if there is none that works.
    pub async fn connection(self: &Arc<Self>, server: &ServerConfig, scope: &Scope) -> Result<Lease, ToolError> {
        if !self.is_swept.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self), self.idle_max));
        }
        let (entry, user, closed) = self.entry(server, scope).await?;
        for connection in closed {
            close(connection).await;
        }
        let opened = entry
            .connection
            .get_or_try_init(|| {
                let opening = Connection::open(server, scope, &self.access);
                async move { opening.await.map(Arc::new) }
            })
            .await;
        Ok(Lease { connection: opened?.clone(), _user: user })
    }

    /// Finds or makes the entry of a server, and takes out the connections that are to be closed. The caller is a user of
    /// the entry from then on, so no other call takes it out as idle before the connection is open.
    async fn entry(&self, server: &ServerConfig, scope: &Scope) -> Result<(Entry, User, Vec<Entry>), ToolError> {
        let key = (scope.clone(), server.name.clone());
        let now = Instant::now();
        let mut entries = self.entries.lock().await;
        let mut closed = take_if(&mut entries, |at, entry| {
            let is_closed = entry.connection.get().is_some_and(|connection| connection.is_closed());
            let is_idle = entry.is_unused() && now.duration_since(entry.used_at) > self.idle_max;
            is_closed || (is_idle && *at != key)
        });
        // A retired connection closes with its last user.
        entries.retain(|_, entry| !entry.connection.get().is_some_and(|connection| connection.is_retired()));
        if let Some(entry) = entries.get_mut(&key) {
            entry.used_at = now;
            return Ok((entry.clone(), User::of(&entry.users), closed));
        }
        let of_organization = entries.iter().filter(|((other, _), _)| other.organization == scope.organization).count();
        if of_organization >= CONNECTIONS_MAX {
            let oldest = entries
                .iter()
                .filter(|((other, _), entry)| other.organization == scope.organization && entry.is_unused())
                .min_by_key(|(_, entry)| entry.used_at)
                .map(|(key, _)| key.clone());
            let oldest = oldest.ok_or_else(|| ToolError::TooManyCalls(server.name.clone(), CONNECTIONS_MAX))?;
            closed.extend(entries.remove(&oldest));
        }
        let entry = Entry { connection: Arc::default(), users: Arc::default(), used_at: now };
        entries.insert(key, entry.clone());
        let user = User::of(&entry.users);
        Ok((entry, user, closed))
    }

    /// Closes the connections that had no call for the idle time.
    pub async fn close_idle(&self) {
        let now = Instant::now();
        let closed = take_if(&mut *self.entries.lock().await, |_, entry| {
            entry.is_unused() && now.duration_since(entry.used_at) > self.idle_max
        });
        for entry in closed {
            close(entry).await;
        }
    }

    /// Closes all connections, also those in use.
    pub async fn close_all(&self) {
        let closed = std::mem::take(&mut *self.entries.lock().await);
        for entry in closed.into_values() {
            close(entry).await;
        }
    }

    /// Returns the number of open connections.
    pub async fn connection_count(&self) -> usize {
        self.entries.lock().await.len()
    }
}

impl Entry {
    fn is_unused(&self) -> bool {
        self.users.load(Ordering::SeqCst) == 0
    }
}

fn take_if(
    entries: &mut BTreeMap<(Scope, String), Entry>,
    is_taken: impl Fn(&(Scope, String), &Entry) -> bool,
) -> Vec<Entry> {
    let keys: Vec<_> = entries.iter().filter(|(key, entry)| is_taken(key, entry)).map(|(key, _)| key.clone()).collect();
    keys.iter().filter_map(|key| entries.remove(key)).collect()
}

/// Closes idle connections from time to time, as long as the pool exists.
async fn sweep(pool: Weak<Pool>, idle_max: Duration) {
    loop {
        tokio::time::sleep(idle_max.max(SWEEP_INTERVAL_MIN)).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.close_idle().await;
    }
}

/// Closes a connection that nothing uses any more. One that is still in use ends when its last user drops it.
async fn close(entry: Entry) {
    let Entry { connection, .. } = entry;
    let connection = Arc::into_inner(connection).and_then(OnceCell::into_inner).and_then(Arc::into_inner);
    if let Some(connection) = connection {
        connection.close().await;
    }
}

#[cfg(test)]
mod tests {
    use mainspring_effects::{
        http::{SystemResolver, TlsRoots},
        stdio::Uncontained,
    };

    use super::*;
    use crate::{
        config::{StdioConfig, TransportConfig},
        http::HttpAccess,
    };

    #[tokio::test]
    async fn an_entry_that_was_found_is_in_use() {
        let http = HttpAccess {
            allow: "127.0.0.1".parse().unwrap(),
            trust: TlsRoots::default(),
            resolver: Arc::new(SystemResolver),
            connect_timeout: Duration::from_secs(1),
        };
        let stdio = StdioConfig { command: "none".into(), args: Vec::new(), env: BTreeMap::new(), cwd: None };
        let server = ServerConfig { name: "s".into(), transport: TransportConfig::Stdio(stdio) };
        let access = Access { start: Arc::new(Uncontained), http, secrets: None };
        let pool = Pool::new(vec![server.clone()], access, Duration::ZERO);
        let (_, first, _) = pool.entry(&server, &Scope::default()).await.unwrap();
        pool.close_idle().await;
        assert_eq!(pool.connection_count().await, 1, "the entry was found and is not used yet");
        let (_, second, _) = pool.entry(&server, &Scope::default()).await.unwrap();
        drop(first);
        pool.close_idle().await;
        assert_eq!(pool.connection_count().await, 1, "another call still uses it");
        drop(second);
        pool.close_idle().await;
        assert_eq!(pool.connection_count().await, 0);
    }
}
