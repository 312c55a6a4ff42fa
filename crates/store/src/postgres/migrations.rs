//! The format of a store's tables, and upgrades.
//!
//! One row of the table `mainspring_format` identifies the tables and their format. Nodes that open a store at the same
//! time all lock that row: one migrates, in one transaction, and the others find the migration done.

use super::{
    Options,
    address::Address,
    columns,
    connections::{Session, ask},
    error::Fault,
};
use crate::StoreError;

/// The format that this build writes, the newest that it reads.
pub(super) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// Each upgrades from format n to n + 1. Entries are only ever appended.
pub(super) const MIGRATIONS: [&str; 14] = [
    include_str!("sql/migrations/0001.sql"),
    include_str!("sql/migrations/0002.sql"),
    include_str!("sql/migrations/0003.sql"),
    include_str!("sql/migrations/0004.sql"),
    include_str!("sql/migrations/0005.sql"),
    include_str!("sql/migrations/0006.sql"),
    include_str!("sql/migrations/0007.sql"),
    include_str!("sql/migrations/0008.sql"),
    include_str!("sql/migrations/0009.sql"),
    include_str!("sql/migrations/0010.sql"),
    include_str!("sql/migrations/0011.sql"),
    include_str!("sql/migrations/0012.sql"),
    include_str!("sql/migrations/0013.sql"),
    include_str!("sql/migrations/0014.sql"),
];

/// The first format whose inbox messages have seals.
pub(super) const FORMAT_WITH_SEALS: u32 = 5;

/// The first format whose resources have seals.
pub(super) const FORMAT_WITH_SEALED_RESOURCES: u32 = 14;

/// The first format in which tables and columns have today's names.
pub(super) const FORMAT_WITH_NAMES: u32 = 10;

const PROGRAM: &str = "mainspring";

const FORMAT_TABLE: &str = "mainspring_format";

/// Tables of these names without that row belong to another program.
const TABLES: [&str; 23] = [
    FORMAT_TABLE,
    "frames",
    "heads",
    "partitions",
    "nodes",
    "inbox",
    "plans",
    "blobs",
    "late_receipts",
    "executions",
    "metadata",
    "partitioning",
    "remote_attempts",
    "resources",
    "resource_keys",
    "audit",
    "audit_heads",
    "pending_approvals",
    "notes",
    "executor_keys",
    "budget_accounts",
    "budget_leases",
    "usage_days",
];

/// Returns the format of the tables; 0 if there are none.
pub(super) async fn look(session: &Session, address: &Address) -> Result<u32, Fault> {
    let found = session.query(sql!("connection.sql", "tables"), &[&address.schema]).await?;
    let tables = found.iter().map(|found| columns::column(found, 0)).collect::<Result<Vec<String>, _>>()?;
    if tables.iter().any(|name| name == FORMAT_TABLE) {
        let rows =
            session.query(sql!("format.sql", "format"), &[]).await.map_err(|fault| of_another(fault, address))?;
        return format(&rows, address);
    }
    match tables.iter().find(|name| TABLES.contains(&name.as_str())) {
        Some(name) => Err(another_program(address, &format!("there is a table {name} and no {FORMAT_TABLE}"))),
        None => Ok(0),
    }
}

/// Upgrades the tables to [`FORMAT`] if that is permitted, or makes them with the given number of partitions. Returns
/// the format that they had.
pub(super) async fn migrate(session: &Session, address: &Address, options: Options) -> Result<u32, Fault> {
    match look(session, address).await? {
        FORMAT => return Ok(FORMAT),
        // There may be no tables; making them twice is harmless.
        0 => create(session, address).await.map_err(raced)?,
        found if !options.upgrades => return Err(is_older(address, found)),
        _ => {}
    }
    let locked = session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("connection.sql", "no_time_limit"), &[]),
            ask(sql!("connection.sql", "no_lock_limit"), &[]),
            ask(sql!("format.sql", "format_lock"), &[]),
            ask(sql!("connection.sql", "upgrade_lock_limit"), &[]),
        ])
        .await?;
    let before = format(&locked[3], address)?;
    if (1..FORMAT).contains(&before) {
        let refused =
            if options.upgrades { at_work(session, address, before).await? } else { Some(is_older(address, before)) };
        if let Some(refused) = refused {
            session.query("ROLLBACK", &[]).await?;
            return Err(refused);
        }
    }
    for migration in &MIGRATIONS[before as usize..] {
        session.run(migration).await?;
    }
    let (format, partitions) = (i64::from(FORMAT), i64::from(options.partitions.max(1)));
    let mut requests = vec![ask(sql!("format.sql", "format_set"), &[&format])];
    if before == 0 {
        requests.push(ask(sql!("membership.sql", "partitioning_insert"), &[&partitions]));
    }
    requests.push(ask("COMMIT", &[]));
    session.round(&requests).await?;
    Ok(before)
}

/// Rejects an upgrade while nodes are alive: all of them run the release that wrote the older format.
async fn at_work(session: &Session, address: &Address, before: u32) -> Result<Option<Fault>, Fault> {
    let nodes = match before < FORMAT_WITH_NAMES {
        true => sql!("format.sql", "living_nodes_before_format_10"),
        false => sql!("format.sql", "living_nodes"),
    };
    let mut alive = Vec::new();
    for found in session.query(nodes, &[]).await? {
        let (name, place, release) = (columns::word(&found, 0)?, columns::word(&found, 1)?, columns::word(&found, 2)?);
        alive.push(format!("{name} at {place} of release {release}"));
    }
    let nodes = alive.join(", ");
    Ok((!alive.is_empty()).then(|| {
        Fault::Store(StoreError::Unavailable(format!(
            "{address}: it has an older format, and nodes of an older release work on it ({nodes}): stop all of them, wait \
             until their leases are over, and try again"
        )))
    }))
}

fn is_older(address: &Address, found: u32) -> Fault {
    Fault::Store(StoreError::Unavailable(format!(
        "{address} has format {found}, of an older release: stop all nodes of that release, then `mainspring upgrade` with \
         the same --store brings it to format {FORMAT}"
    )))
}

/// Rejects a store that was upgraded to a newer format, as a heartbeat detects.
pub(super) fn check_current(rows: &[tokio_postgres::Row]) -> Result<(), Fault> {
    let Some(found) = rows.first() else { return Ok(()) };
    match columns::small_number(found, 1)? {
        found if found > FORMAT => Err(Fault::Store(StoreError::Newer { found, readable: FORMAT })),
        _ => Ok(()),
    }
}

/// Makes the schema only if it is missing, so that the permission is needed only then.
async fn create(session: &Session, address: &Address) -> Result<(), Fault> {
    if session.query(sql!("connection.sql", "schema_found"), &[&address.schema]).await?.is_empty() {
        session.run(&sql!("connection.sql", "schema_create").replace("{schema}", &address.schema)).await?;
    }
    session.run(sql!("format.sql", "format_create")).await
}

/// Returns the format of the row, if this build can read or upgrade it.
fn format(rows: &[tokio_postgres::Row], address: &Address) -> Result<u32, Fault> {
    let Some(found) = rows.first() else { return Err(another_program(address, &format!("{FORMAT_TABLE} is empty"))) };
    if columns::column::<String>(found, 0)? != PROGRAM {
        return Err(another_program(address, &format!("{FORMAT_TABLE} names another program")));
    }
    match columns::small_number(found, 1)? {
        found if found > FORMAT => Err(Fault::Store(StoreError::Newer { found, readable: FORMAT })),
        found => Ok(found),
    }
}

/// Explains a table of this name that cannot be read: it has other columns, or the user lacks USAGE on the schema,
/// which a search then silently skips.
fn of_another(fault: Fault, address: &Address) -> Fault {
    let code = match &fault {
        Fault::Postgres(error) => error.code().map_or("", |code| code.code()),
        _ => "",
    };
    match code {
        "42703" => another_program(address, &format!("{FORMAT_TABLE} has other columns")),
        "42P01" => Fault::Store(StoreError::Unavailable(format!(
            "{address}: the user may not use this schema: grant the user USAGE on it, and all on its tables"
        ))),
        _ => fault,
    }
}

fn another_program(address: &Address, why: &str) -> Fault {
    Fault::Damaged(format!(
        "the schema {} is another program's ({why}): name one that does not exist yet with ?schema=NAME",
        address.schema
    ))
}

/// IF NOT EXISTS is not atomic: of two concurrent statements, one fails because the object exists.
fn raced(fault: Fault) -> Fault {
    match &fault {
        Fault::Postgres(error)
            if error.code().is_some_and(|code| matches!(code.code(), "42P06" | "42P07" | "42710")) =>
        {
            Fault::Raced
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_documentation_has_the_current_format() {
        let said = format!("| PostgreSQL store | {};", super::FORMAT);
        assert!(include_str!("../../../../docs/reference/journal-format.md").contains(&said), "{said}");
    }
}
