//! Read-only inspection of a database and of its server.
//!
//! The server is queried first, on a separate connection with a time limit of some seconds; later queries are retried
//! like those of a store.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use tokio_postgres::{Client, Row};

use super::{
    PostgresStore,
    address::Address,
    columns,
    connections::{self, CONNECTIONS_OF_A_NODE, Connections, Limits, Session, Who},
    error::{self, Fault},
    journal,
    migrations::{self, FORMAT, FORMAT_WITH_NAMES},
};
use crate::{
    Format, InspectedExecution, InspectedExecutions, InspectedNode, Inspection, ReadLimit, Store, StoreError,
    sql::integer,
};

/// Time to connect, authenticate and query the server.
const ANSWER_MS: u64 = 5_000;

/// Time limit of one statement on the server: some of them scan whole tables.
const STATEMENT_MS: u64 = 20_000;

/// Round trips that are measured.
const ROUNDS: usize = 5;

/// Executions read for the newest frame, since frames are only ordered within their execution.
const NEWEST_EXECUTIONS: usize = 64;

/// The first format with open gates.
const FORMAT_WITH_GATES: u32 = 3;
/// A database under inspection.
pub struct PostgresInspection {
    store: PostgresStore,
    found: u32,
    server: InspectedServer,
    /// Tables that the role may not read or write.
    locked: Vec<String>,
}

/// The properties of a server, as it reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedServer {
    /// The version text.
    pub version: String,
    /// The major version.
    pub major: u64,
    /// True if commits reach its disk.
    pub fsync: bool,
    /// True if a page that was torn by a crash can be restored.
    pub full_page_writes: bool,
    /// True for a standby, or a server configured as read-only.
    pub reads_only: bool,
    /// The TLS version of this connection; `None` without TLS.
    pub tls: Option<String>,
    /// True if the address is a Unix socket.
    pub is_local: bool,
    /// Connections available to ordinary roles.
    pub connections_max: u64,
    /// Connections in use, including this one.
    pub connections: u64,
    /// Maximum number of connections of this role; `None` without a limit.
    pub connections_of_role_max: Option<u64>,
    /// Maximum number of connections of a node.
    pub connections_of_node: u64,
    /// True if the role may make a schema.
    pub may_create: bool,
    /// Milliseconds by which its clock is ahead of this machine's, with an error of half a round trip.
    pub clock_ahead_ms: i64,
    /// The median of some round trips, in microseconds.
    pub round_us: u64,
}

impl PostgresInspection {
    pub(super) fn open(address: Address) -> Result<Self, StoreError> {
        let limits = Limits { statement_ms: STATEMENT_MS, reads_only: true };
        let connections = Connections::new(address, limits)?;
        let Connections { address, server: name, driver, .. } = &connections;
        let asked = driver.wait(async { timeout(Duration::from_millis(ANSWER_MS), ask(&connections)).await });
        let asked = asked.unwrap_or(Err(Fault::Silence(ANSWER_MS)));
        let server = asked.map_err(|fault| error::of_store(name, fault))?;
        let look = async |session: &Session| {
            let found = migrations::look(session, address).await?;
            let locked = session.query(sql!("inspect.sql", "permissions"), &[&address.schema]).await?;
            Ok((found, locked.iter().map(|found| columns::column(found, 0)).collect::<Result<_, _>>()?))
        };
        let (found, locked) = driver.wait(connections.repeat(Who::Others, look))?;
        let store = PostgresStore {
            connections: Arc::new(connections),
            notifications: Arc::default(),
            format_before: migrations::FORMAT,
        };
        Ok(Self { store, found, server, locked })
    }

    /// Returns the properties of the server.
    pub fn server(&self) -> &InspectedServer {
        &self.server
    }

    /// Lists tables of the schema that the role may not read or write.
    pub fn locked_tables(&self) -> &[String] {
        &self.locked
    }

    fn by_format(&self, before: &'static str, since: &'static str) -> &'static str {
        if self.found < FORMAT_WITH_NAMES { before } else { since }
    }

    fn since<T>(&self, format: u32, ask: impl AsyncFn(&Session) -> Result<T, Fault>) -> Result<Option<T>, StoreError> {
        if self.found < format {
            return Ok(None);
        }
        self.store.with_session(ask).map(Some)
    }
}

impl Inspection for PostgresInspection {
    fn format(&self) -> Format {
        Format { found: self.found, readable: FORMAT }
    }

    fn metadata(&self, name: &str) -> Result<Option<Option<String>>, StoreError> {
        let sql = self.by_format(sql!("inspect.sql", "metadata_before_format_10"), sql!("metadata.sql", "metadata"));
        self.since(1, async |session| {
            let found = session.query(sql, &[&name.as_bytes()]).await?;
            found.first().map(|found| columns::word(found, 0)).transpose()
        })
    }

    fn quarantined(&self, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let (sql, limit) = (sql!("inspect.sql", "quarantined"), integer(limit as u64));
        self.since(1, async |session| listed(&session.query(sql, &[&limit]).await?))
    }

    fn overdue(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let (sql, limit) = (sql!("inspect.sql", "overdue"), integer(limit as u64));
        self.since(1, async |session| listed(&session.query(sql, &[&limit, &integer(before_ms)]).await?))
    }

    fn waiting_since(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let (sql, limit) = (sql!("inspect.sql", "waiting"), integer(limit as u64));
        let ask = async |session: &Session| listed(&session.query(sql, &[&limit, &integer(before_ms)]).await?);
        self.since(FORMAT_WITH_GATES, ask)
    }

    fn nodes(&self) -> Result<Option<Vec<InspectedNode>>, StoreError> {
        let of_row = |found: &Row| {
            let (name, place, release) = (columns::word(found, 0)?, columns::word(found, 1)?, columns::word(found, 2)?);
            Ok(InspectedNode { name, address: place, release, is_alive: columns::column(found, 3)? })
        };
        let sql = self.by_format(sql!("inspect.sql", "nodes_before_format_10"), sql!("inspect.sql", "nodes"));
        self.since(1, async |session| session.query(sql, &[]).await?.iter().map(of_row).collect())
    }

    fn newest_frame_ms(&self) -> Result<Option<u64>, StoreError> {
        self.since(1, async |session| {
            let limit = integer(NEWEST_EXECUTIONS as u64);
            let mut newest_ms = 0;
            for found in session.query(sql!("inspect.sql", "newest_frame"), &[&limit]).await? {
                let (execution, sequence) = (columns::key(&found, 0)?, columns::number(&found, 1)?);
                let frame = journal::frames(session, execution, sequence, ReadLimit::of(1)).await?.pop();
                // A frame that cannot be read is reported by `mainspring verify`.
                let read = frame.and_then(|frame| mainspring_kernel::frame::Frame::read(&frame).ok());
                newest_ms = read.map_or(newest_ms, |(frame, _)| frame.now.max(newest_ms));
            }
            Ok(newest_ms)
        })
    }

    fn store(self: Box<Self>) -> Option<Arc<dyn Store>> {
        (self.found == FORMAT).then(|| Arc::new(self.store) as Arc<dyn Store>)
    }
}

/// Connects, and queries the server's properties.
async fn ask(connections: &Connections) -> Result<InspectedServer, Fault> {
    let config = connections::config(&connections.address);
    let (client, connection) = config.connect(connections.connector.clone()).await?;
    connections.driver.handle().spawn(connection);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        client.query(sql!("inspect.sql", "snapshot"), &[]).await?;
        rounds.push(begun.elapsed());
    }
    rounds.sort_unstable();
    let round_us = u64::try_from(rounds[ROUNDS / 2].as_micros()).unwrap_or(u64::MAX);
    seen(&client, &connections.address, round_us).await
}

async fn seen(client: &Client, address: &Address, round_us: u64) -> Result<InspectedServer, Fault> {
    let statement = client.prepare(sql!("inspect.sql", "server")).await?;
    let before = now_ms();
    let rows = client.query(&statement, &[]).await?;
    let here = before.midpoint(now_ms());
    let row = rows.first().ok_or_else(|| Fault::Damaged("the server does not report its version".into()))?;
    let is_local = address.server.get_hosts().iter().all(|host| matches!(host, tokio_postgres::config::Host::Unix(_)));
    Ok(InspectedServer {
        version: columns::column(row, 0)?,
        major: columns::number(row, 1)? / 10_000,
        fsync: columns::column(row, 2)?,
        full_page_writes: columns::column(row, 3)?,
        reads_only: columns::column(row, 4)?,
        tls: columns::column(row, 5)?,
        is_local,
        connections_max: columns::number(row, 6)?,
        connections: columns::number(row, 7)?,
        connections_of_role_max: columns::column::<Option<i64>>(row, 8)?.and_then(|max| u64::try_from(max).ok()),
        connections_of_node: CONNECTIONS_OF_A_NODE,
        may_create: columns::column(row, 9)?,
        clock_ahead_ms: columns::column::<i64>(row, 10)? - here,
        round_us,
    })
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Collects rows of key, id, time, reason and total.
fn listed(rows: &[Row]) -> Result<InspectedExecutions, Fault> {
    let mut listed = InspectedExecutions::default();
    for found in rows {
        let id = columns::optional_word(found, 1)?;
        let id = id.map_or_else(|| columns::key(found, 0).map(|key| key.to_string()), Ok)?;
        let (at_ms, why) = (columns::optional_number(found, 2)?, columns::optional_word(found, 3)?);
        listed.first.push(InspectedExecution { id, at_ms, reason: why });
        listed.count = columns::number(found, 4)?;
    }
    Ok(listed)
}
