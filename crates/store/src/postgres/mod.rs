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
mod catalogue;
mod columns;
mod commit;
mod connections;
mod erase;
mod error;
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
mod writes;

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};

pub use self::inspect::{InspectedServer, PostgresInspection};
use self::{
    address::Address,
    connections::{Connections, Limits, Session, Who},
    error::Fault,
    notify::Hints,
};
use crate::{
    AuditedNotes, Batch, Catalogue, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow, Executions, Expected,
    Fence, Filter, GateRow, HeadRow, Inbox, InboxEntry, Journal, LateReceipt, Membership, Node, NotifyCallback, Origin,
    PartOutcome, QuarantineRelease, QuarantinedRow, ReadLimit, ReleaseOutcome, RemoteAttempt, Store, StoreError,
};

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
    hints: Arc<Hints>,
    /// True if opening it has upgraded it from a format without seals.
    is_of_unsealed_format: bool,
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
        let mut store = Self { connections, hints: Arc::default(), is_of_unsealed_format: false };
        let address = &store.connections.address;
        let migrate = async |session: &Session| migrations::migrate(session, address, options).await;
        let before = store.repeat(Who::Committer, migrate)?;
        store.is_of_unsealed_format = (1..migrations::FORMAT_WITH_SEALS).contains(&before);
        notify::start_telling(&store.connections, &store.hints);
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
    fn lent<T>(&self, work: impl AsyncFn(&Session) -> Result<T, Fault>) -> Result<T, StoreError> {
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

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.lent(async |session| membership::metadata(session, name).await)
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.lent(async |session| membership::put_metadata_if_absent(session, name, value).await)
    }

    fn is_of_unsealed_format(&self) -> bool {
        self.is_of_unsealed_format
    }
}

impl Journal for PostgresStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        if batch.parts.is_empty() {
            return Ok(Vec::new());
        }
        self.connections.driver.wait(commit::commit(&self.connections, batch))
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.lent(async |session| journal::head(session, execution).await)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        self.lent(async |session| journal::frames(session, execution, from, bound).await)
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.lent(async |session| journal::due(session, partitions, until_ms, after, limit).await)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.lent(async |session| journal::set_wake_at(session, execution, head, wake_at).await)
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.lent(async |session| journal::plan(session, hash).await)
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.lent(async |session| journal::late_receipts(session, execution).await)
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.lent(async |session| notes::list(session, execution).await)
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        self.once(Who::Others, async |session| erase::erase(session, execution, audited).await)
    }
}

impl Inbox for PostgresStore {
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.lent(async |session| journal::enqueue(session, request).await)
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.lent(async |session| journal::inbox(session, partitions, after, bound).await)
    }

    fn notify(&self, partitions: &[u32]) {
        self.hints.add(partitions);
    }

    fn subscribe(&self, notify: NotifyCallback) {
        notify::start_listening(&self.connections, notify);
    }
}

impl Membership for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.repeat(Who::Leases, async |session| membership::claim(session, partition, holder).await)
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.lent(async |session| membership::partitions(session).await)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.lent(async |session| membership::repartition(session, partitions.max(1)).await)
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        self.lent(async |session| membership::cluster_view(session, "").await)
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.repeat(Who::Leases, async |session| membership::heartbeat(session, node, lease_ms).await)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.once(Who::Leases, async |session| membership::acquire(session, node, partitions).await)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.repeat(Who::Leases, async |session| membership::release(session, node, fences, running).await)
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.repeat(Who::Leases, async |session| membership::leave(session, node).await)
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        self.lent(async |session| remote_attempts::of_execution(session, execution).await)
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.lent(async |session| remote_attempts::stop(session, attempt).await)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.lent(async |session| remote_attempts::end(session, node, attempts).await)
    }
}

impl Executions for PostgresStore {
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.lent(async |session| executions::by_key(session, execution).await)
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.lent(async |session| executions::by_id(session, id).await)
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.lent(async |session| executions::by_idempotency_key(session, of, key).await)
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.lent(async |session| executions::list(session, filter, before, limit).await)
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        self.lent(async |session| executions::count(session, organization, statuses, most).await)
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        self.lent(async |session| executions::pending_organizations(session).await)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.lent(async |session| approvals::list(session, organization, after, limit).await)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        self.lent(async |session| journal::set_quarantine(session, execution, reason).await)
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.lent(async |session| notes::quarantined(session, organization, after, limit).await)
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.once(Who::Others, async |session| notes::release(session, release).await)
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.once(Who::Others, async |session| notes::force_end(session, audited).await)
    }
}
