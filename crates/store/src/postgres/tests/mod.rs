//! Tests beyond the conformance suite: several stores on one schema, servers that fail, ways to connect.

mod budgets;
mod catalogue;
mod concurrency;
mod connection;
mod faults;
mod lost_replies;
mod upgrades;

use super::{Options, PostgresStore, migrations::MIGRATIONS, server::Beside};
use crate::{
    Batch, CommitError, Fence, InboxMessage, Part, PartOutcome, Store,
    contract_tests::op::{Turn, key},
};

/// Polls after which a condition is assumed to stay false.
const LOOKS_MAX: usize = 100_000;

fn open(address: &str) -> PostgresStore {
    PostgresStore::open_with(address, Options { partitions: 1, ..Options::default() }).unwrap()
}

/// The table with the number of partitions, by its name in a format.
fn partitioning(format: u32) -> &'static str {
    if format < 10 { "spread" } else { "partitioning" }
}

/// Makes the tables of an older format.
fn make_older(beside: &Beside<'_>, schema: &str, format: u32) {
    beside.execute(&format!("CREATE SCHEMA {schema}")).unwrap();
    beside.execute(crate::sql::named(include_str!("../sql/format.sql"), "format_create")).unwrap();
    for migration in &MIGRATIONS[..format as usize] {
        beside.execute(migration).unwrap();
    }
    beside.execute(&format!("UPDATE mainspring_format SET format = {format}")).unwrap();
}

fn commit(store: &dyn Store, epoch: u64, turns: &[Turn]) -> Result<Vec<PartOutcome>, CommitError> {
    let parts: Vec<Part> = turns.iter().map(Turn::part).collect();
    store.commit(&Batch { fences: vec![Fence { partition: 0, epoch }], parts, ..Batch::default() })
}

fn message(id: &str) -> InboxMessage {
    InboxMessage { execution: key(5), partition: 0, id: id.into(), body: id.as_bytes().to_vec(), enqueued_at: 1 }
}

/// Polls until a condition holds.
fn wait_until(beside: &Beside<'_>, what: &str, condition: &str) {
    let is_so = || beside.ask(&format!("SELECT {condition}")).unwrap() == "t";
    assert!((0..LOOKS_MAX).any(|_| is_so()), "{what}");
}

/// Waits until a statement of a store waits for a lock on a table of this schema.
fn wait_until_blocked(beside: &Beside<'_>, schema: &str) {
    let condition = format!(
        "EXISTS (SELECT 1 FROM pg_locks AS waits JOIN pg_locks AS has USING (pid) JOIN pg_class ON has.relation = \
         pg_class.oid WHERE NOT waits.granted AND pg_class.relnamespace = '{schema}'::regnamespace AND has.granted)"
    );
    wait_until(beside, "nobody waits for a lock", &condition);
}
