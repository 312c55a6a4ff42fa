//! The pools of connections to the server, and retries.
//!
//! | user | connections | reason |
//! |---|---|---|
//! | `commit` | its own one | it never waits for other operations |
//! | operations of nodes | their own one | a late heartbeat costs a lease |
//! | all others | up to [`OTHERS_MAX`] | they share these |
//!
//! No operation hangs: the server aborts a statement after [`Limits::statement_ms`], a round of requests fails half as
//! long after that, and there are at most [`TRIES_MAX`] tries. A connection in an unknown state is closed and not
//! reused.

use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::future::join_all;
use metrics::Histogram;
use tokio_postgres::{Config, Row, types::ToSql};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    address::Address,
    blocking::Driver,
    error::{self, Fault, Meaning},
    tls,
};
use crate::{StoreError, metrics::sync_time};

/// More readers would only compete for the server's processors.
const OTHERS_MAX: usize = 8;

/// Maximum number of connections of a node, including the one that listens for notifications.
pub(super) const CONNECTIONS_OF_A_NODE: u64 = 3 + OTHERS_MAX as u64;

/// A failure that persists over eight tries with growing waits is not temporary.
const TRIES_MAX: u32 = 8;

/// The longest wait between two tries.
const WAIT_MS_MAX: u64 = 500;

/// Time to connect and authenticate, in milliseconds.
const CONNECT_MS: u64 = 10_000;

/// Interval of the keepalive probes of an idle connection.
const KEEPALIVE_MS: u64 = 15_000;

/// Time that a commit waits for a lock, in milliseconds. Other commits of the node wait behind it. Nodes hold these
/// locks only for a commit, so a longer wait is caused by a foreign transaction. PostgreSQL checks for a deadlock after
/// a second.
const COMMIT_LOCK_MS: u64 = 2_000;

/// Time for which a transaction that locks partitions may wait for its node, in milliseconds. A node that was cut off
/// between two rounds holds the locks for that time, so it is shorter than a lease.
const PARTITION_IDLE_MS: u64 = 5_000;

/// Time limits and permissions of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// One statement, on the server.
    pub(super) statement_ms: u64,
    /// True if the server should reject writes.
    pub(super) reads_only: bool,
}

/// The bounds on the waits of a transaction.
#[derive(Debug, Clone, Copy)]
struct Waits {
    /// For a lock; 0 means no limit.
    lock_ms: u64,
    /// For the next statement of the client.
    idle_ms: u64,
}

impl Limits {
    /// The limit of a round of requests. The server's limit is shorter, since its error is more precise.
    fn round_ms(self) -> u64 {
        self.statement_ms.saturating_add(self.statement_ms / 2)
    }
}

/// All connections of a store.
pub(super) struct Connections {
    pub(super) address: Address,
    /// The address without the password, for errors.
    pub(super) server: String,
    committer: Pool,
    leases: Pool,
    others: Pool,
    limits: Limits,
    /// The duration of the round that contains COMMIT.
    pub(super) sync_time: Histogram,
    pub(super) connector: MakeRustlsConnect,
    // After the pools, which are dropped first.
    pub(super) driver: Driver,
}

/// The pool of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    Committer,
    Leases,
    Others,
}

impl Connections {
    pub(super) fn new(address: Address, limits: Limits) -> Result<Self, StoreError> {
        let server = address.to_string();
        let connector = tls::connector(&address.tls)?;
        let fail = |what: &dyn ToString| StoreError::Unavailable(format!("{server}: {}", what.to_string()));
        let pool = |size, waits| pool(&address, &connector, limits, size, waits).map_err(|error| fail(&error));
        let idle_ms = limits.round_ms();
        let of_commits = Waits { lock_ms: COMMIT_LOCK_MS, idle_ms: idle_ms.min(PARTITION_IDLE_MS) };
        let of_leases = Waits { lock_ms: 0, ..of_commits };
        let of_others = Waits { lock_ms: 0, idle_ms };
        let (committer, leases, others) = (pool(1, of_commits)?, pool(1, of_leases)?, pool(OTHERS_MAX, of_others)?);
        let driver = Driver::new().map_err(|error| fail(&error))?;
        let sync_time = sync_time("postgres");
        Ok(Self { server, committer, leases, others, limits, sync_time, connector, driver, address })
    }

    /// Does work that may be repeated, with retries.
    pub(super) async fn repeat<T>(
        &self,
        who: Who,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.attempts(who, true, work).await.map_err(|fault| error::of_store(&self.server, fault))
    }

    /// Does work at most once: after a lost response it is not tried again.
    pub(super) async fn once<T>(
        &self,
        who: Who,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.attempts(who, false, work).await.map_err(|fault| error::of_store(&self.server, fault))
    }

    async fn attempts<T>(
        &self,
        who: Who,
        may_repeat: bool,
        work: impl AsyncFn(&Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut tries = Tries::default();
        loop {
            let (fault, is_certain) = match self.acquire(who).await {
                Err(fault) => (fault, true),
                Ok(session) => match work(&session).await {
                    Ok(done) => {
                        session.give_back();
                        return Ok(done);
                    }
                    Err(fault) => {
                        session.end(&fault).await;
                        (fault, may_repeat)
                    }
                },
            };
            let is_hopeful = match error::meaning(&fault) {
                Meaning::Again => true,
                Meaning::Lost => is_certain,
                Meaning::Refused => false,
            };
            if !is_hopeful || !tries.again().await {
                return Err(fault);
            }
        }
    }

    /// Takes a connection from a pool, which opens a new one if none is idle.
    pub(super) async fn acquire(&self, who: Who) -> Result<Session, Fault> {
        let pool = match who {
            Who::Committer => &self.committer,
            Who::Leases => &self.leases,
            Who::Others => &self.others,
        };
        let round_ms = self.limits.round_ms();
        let wait = Some(Duration::from_millis(round_ms));
        let connect = Some(Duration::from_millis(CONNECT_MS));
        let acquired = pool.timeout_get(&Timeouts { wait, create: connect, recycle: connect }).await;
        acquired.map(|object| Session { connection: Some(object), round_ms }).map_err(|error| match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => Fault::Postgres(error),
            PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Fault::Busy(round_ms),
            PoolError::Timeout(_) => Fault::Silence(CONNECT_MS),
            other => Fault::Store(StoreError::Unavailable(format!("{}: {other}", self.server))),
        })
    }
}

/// The settings of every connection.
pub(super) fn config(address: &Address) -> Config {
    let mut config = address.server.clone();
    config.application_name("mainspring");
    config.connect_timeout(Duration::from_millis(CONNECT_MS));
    config.keepalives_idle(Duration::from_millis(KEEPALIVE_MS));
    config.keepalives_interval(Duration::from_millis(KEEPALIVE_MS));
    config.keepalives_retries(2);
    config
}

fn pool(
    address: &Address,
    connector: &MakeRustlsConnect,
    limits: Limits,
    size: usize,
    waits: Waits,
) -> Result<Pool, deadpool_postgres::BuildError> {
    let reads_only = if limits.reads_only { sql!("connection.sql", "reads_only") } else { "" };
    let words = (sql!("connection.sql", "session").to_owned() + reads_only)
        .replace("{schema}", &address.schema)
        .replace("{statement_ms}", &limits.statement_ms.to_string())
        .replace("{lock_ms}", &waits.lock_ms.to_string())
        .replace("{idle_ms}", &waits.idle_ms.to_string());
    // A closed connection is detected without a query, and no connection in an unfinished state is kept.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config(address), connector.clone(), recycling);
    let introduce = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let words = words.clone();
        Box::pin(async move { client.batch_execute(&words).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager).max_size(size).runtime(Runtime::Tokio1).post_create(introduce).build()
}

/// The number of tries so far.
#[derive(Default)]
pub(super) struct Tries(u32);

impl Tries {
    /// Waits a short random time, so that transactions which conflicted do not conflict again. False after the last
    /// try.
    pub(super) async fn again(&mut self) -> bool {
        self.0 += 1;
        if self.0 >= TRIES_MAX {
            return false;
        }
        let longest_ms = (10 << self.0).min(WAIT_MS_MAX);
        // Without a random number the longest wait is used, and a repeated conflict is only another try.
        let wait_ms = getrandom::u64().map_or(longest_ms, |random| random % longest_ms);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        true
    }
}

/// A statement with its parameters.
pub(super) struct Request<'a> {
    sql: &'a str,
    values: Vec<&'a (dyn ToSql + Sync)>,
}

pub(super) fn ask<'a>(sql: &'a str, values: &[&'a (dyn ToSql + Sync)]) -> Request<'a> {
    Request { sql, values: values.to_vec() }
}

/// The failure of a round of requests.
pub(super) struct Stopped {
    /// The first request that failed; `None` if none was sent.
    pub(super) at: Option<usize>,
    pub(super) fault: Fault,
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        stopped.fault
    }
}

/// A pooled connection. Closed if it is dropped without [`give_back`](Self::give_back).
pub(super) struct Session {
    connection: Option<Object>,
    round_ms: u64,
}

impl Session {
    /// Sends all requests at once and waits for all responses, in one round trip. The server executes them in order.
    pub(super) async fn round(&self, requests: &[Request<'_>]) -> Result<Vec<Vec<Row>>, Stopped> {
        let limit = Duration::from_millis(self.round_ms);
        let silence = |at| Stopped { at, fault: Fault::Silence(self.round_ms) };
        let client = self.connection.as_ref().expect("a session has a connection until it is returned");
        let prepared = join_all(requests.iter().map(|request| client.prepare_cached(request.sql)));
        let prepared = tokio::time::timeout(limit, prepared).await.map_err(|_| silence(None))?;
        let prepared = prepared.into_iter().collect::<Result<Vec<_>, _>>();
        let prepared = prepared.map_err(|error| Stopped { at: None, fault: error.into() })?;
        let sent = requests.iter().zip(&prepared).map(|(request, statement)| client.query(statement, &request.values));
        let answers = tokio::time::timeout(limit, join_all(sent)).await.map_err(|_| silence(Some(0)))?;
        let numbered = answers.into_iter().enumerate();
        numbered.map(|(at, answer)| answer.map_err(|error| Stopped { at: Some(at), fault: error.into() })).collect()
    }

    /// Sends one request.
    pub(super) async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Fault> {
        Ok(self.round(&[ask(sql, values)]).await?.pop().unwrap_or_default())
    }

    /// Runs a text of several statements without parameters, which are not prepared.
    pub(super) async fn run(&self, text: &str) -> Result<(), Fault> {
        let client = self.connection.as_ref().expect("a session has a connection until it is returned");
        Ok(client.batch_execute(text).await?)
    }

    /// Returns the connection to its pool, in the state in which it was taken.
    pub(super) fn give_back(mut self) {
        drop(self.connection.take());
    }

    /// Rolls back an unfinished transaction, and returns the connection to its pool if that succeeds.
    pub(super) async fn end(self, fault: &Fault) {
        if error::meaning(fault) != Meaning::Lost && self.round(&[ask("ROLLBACK", &[])]).await.is_ok() {
            self.give_back();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(object) = self.connection.take() {
            drop(Object::take(object));
        }
    }
}
