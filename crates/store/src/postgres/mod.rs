//! The shared store: several nodes on one PostgreSQL, or on a compatible database.
//!
//! The server guarantees the durability of commits; `synchronous_commit` is switched on where it is off. A batch is one
//! transaction of two round trips (see `commit`). The store uses plain statements only: no advisory locks, triggers,
//! procedures or extensions. NOTIFY is best effort, and may be missing.
//!
//! Times and numbers above 2^63-1 are stored as that, the largest of the database. The database numbers a message when
//! it is inserted, but the message becomes visible when its transaction commits. With several writers, a smaller number
//! may become visible after a larger one.
//!
//! A server with `fsync=off`, or a standby that takes over before it has received everything, breaks the durability,
//! and no client can prevent that.

mod address;
mod approvals;
mod audit;
mod blocking;
mod budgets;
mod catalogue;
mod columns;
mod commit;
mod connections;
mod erase;
mod error;
mod event_queue;
mod executions;
mod inspect;
mod journal;
mod membership;
mod migrations;
mod notes;
mod notify;
mod remote_attempts;
#[cfg(any(test, feature = "postgres-server"))]
pub mod server;
#[cfg(test)]
mod tests;
mod tls;
mod traits;
mod writes;

use std::sync::Arc;

pub use self::inspect::{InspectedServer, PostgresInspection};
use self::{
    address::Address,
    connections::{Connections, Limits, Session, Who},
    error::Fault,
    notify::PendingNotifications,
};
use crate::{Catalogue, EventQueue, Store, StoreError};

/// Number of partitions of a new store: enough to divide them evenly among some dozen nodes, few enough for each node
/// to poll its own with one statement.
const PARTITIONS: u32 = 64;

/// Time limit of one statement on the server. Those of a batch take milliseconds, so a longer one hangs.
const STATEMENT_MS: u64 = 30_000;

/// The options for opening a store.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The number of partitions of a new store, at least 1.
    pub partitions: u32,
    /// Time limit of one statement on the server, in milliseconds. An operation takes at most some tens of times as
    /// long: it sends a handful of statements, and tries eight times after conflicts and lost connections.
    pub statement_ms: u64,
    /// Permits the upgrade of an older format, which locks out processes of older releases. It is rejected while one of
    /// those is a living node.
    pub upgrades: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { partitions: PARTITIONS, statement_ms: STATEMENT_MS, upgrades: true }
    }
}

/// A store in a schema of a database.
pub struct PostgresStore {
    connections: Arc<Connections>,
    notifications: Arc<PendingNotifications>,
    /// The format before it was opened, which may have upgraded it; 0 if there were no tables.
    format_before: u32,
}

impl PostgresStore {
    /// Connects to a database, `postgres://user:password@host:port/database?schema=name`, and makes the tables or
    /// upgrades them to the newest format.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        Self::open_with(address, Options::default())
    }

    /// As [`open`](Self::open), with options.
    pub fn open_with(address: &str, options: Options) -> Result<Self, StoreError> {
        let limits = Limits { statement_ms: options.statement_ms, reads_only: false };
        let connections = Arc::new(Connections::new(Address::parse(address)?, limits)?);
        let mut store = Self { connections, notifications: Arc::default(), format_before: migrations::FORMAT };
        let address = &store.connections.address;
        let migrate = async |session: &Session| migrations::migrate(session, address, options).await;
        store.format_before = store.repeat(Who::Committer, migrate)?;
        notify::start_notifying(&store.connections, &store.notifications);
        Ok(store)
    }

    /// Connects to a database of any format for inspection. The server itself rejects writes. Returns within some
    /// seconds, even without a response.
    pub fn inspect(address: &str) -> Result<PostgresInspection, StoreError> {
        PostgresInspection::open(Address::parse(address)?)
    }

    /// Checks the syntax of an address, without a connection.
    pub fn check_address(address: &str) -> Result<(), StoreError> {
        Address::parse(address).map(drop)
    }

    /// Returns whether an address contains a password.
    pub fn has_password(address: &str) -> bool {
        Address::parse(address).is_ok_and(|address| address.server.get_password().is_some())
    }

    /// Returns the paths of the Unix sockets of an address.
    pub fn sockets(address: &str) -> Vec<std::path::PathBuf> {
        Address::parse(address).map(|address| address.sockets()).unwrap_or_default()
    }

    /// Returns the identity of the store of an address, independent of its spelling. `None` for an invalid address.
    pub fn identity(address: &str) -> Option<String> {
        Address::parse(address).ok().map(|address| address.identity())
    }

    /// Returns an address without credentials, for messages. `None` for an invalid address.
    pub fn shown_address(address: &str) -> Option<String> {
        Address::parse(address).ok().map(|address| address.to_string())
    }

    /// Drops the schema of the store with everything in it, including foreign objects.
    pub fn remove(self) -> Result<(), StoreError> {
        let schema = &self.connections.address.schema;
        // The name was checked when the address was parsed, and needs no quotes.
        let statement = format!("DROP SCHEMA {schema} CASCADE");
        self.repeat(Who::Others, async |session| session.run(&statement).await)
    }

    /// Does work that may be repeated, on a pooled connection.
    fn repeat<T>(&self, who: Who, work: impl AsyncFn(&Session) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.connections.driver.wait(self.connections.repeat(who, work))
    }

    /// The same for most operations.
    fn with_session<T>(&self, work: impl AsyncFn(&Session) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.repeat(Who::Others, work)
    }

    /// Does work that would return another result the second time: a lost response is reported to the caller.
    fn once<T>(&self, who: Who, work: impl AsyncFn(&Session) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.connections.driver.wait(self.connections.once(who, work))
    }
}

impl Store for PostgresStore {
    fn catalogue(&self) -> &dyn Catalogue {
        self
    }

    fn event_queue(&self) -> &dyn EventQueue {
        self
    }

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.with_session(async |session| membership::metadata(session, name).await)
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.with_session(async |session| membership::put_metadata_if_absent(session, name, value).await)
    }

    fn is_of_unsealed_format(&self) -> bool {
        (1..migrations::FORMAT_WITH_SEALS).contains(&self.format_before)
    }

    fn has_unsealed_resources(&self) -> bool {
        (1..migrations::FORMAT_WITH_SEALED_RESOURCES).contains(&self.format_before)
    }
}
