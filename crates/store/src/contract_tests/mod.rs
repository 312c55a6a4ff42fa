//! One conformance suite and one randomized model test for every store. A new store implements `Subject` and gets both.

pub(crate) mod budgets;
mod catalogue;
mod event_queue;
mod journal;
mod membership;
mod model;
pub(crate) mod op;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;

use crate::{Store, memory::MemoryStore, sqlite::SqliteStore};
use op::run;

/// A store under test, and its choices where the contract permits several.
trait Subject {
    fn store(&self) -> &dyn Store;
    /// Closes the store and opens it again, as after a restart of the process.
    fn reopen(&mut self);
    /// True if a consumed message is remembered, so that a repetition is not inserted.
    const REMEMBERS_CONSUMED_MESSAGES: bool;
    /// True if it stores whether a node takes partitions.
    const KEEPS_WHO_TAKES: bool;
}

struct Memory(MemoryStore);

impl Subject for Memory {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    fn reopen(&mut self) {
        self.0 = self.0.clone();
    }

    const REMEMBERS_CONSUMED_MESSAGES: bool = false;
    const KEEPS_WHO_TAKES: bool = true;
}

struct Sqlite {
    folder: tempfile::TempDir,
    store: Option<SqliteStore>,
}

impl Sqlite {
    fn new() -> Self {
        let mut new = Self { folder: tempfile::tempdir().unwrap(), store: None };
        new.reopen();
        new
    }
}

impl Subject for Sqlite {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(SqliteStore::open(&self.folder.path().join("store.db")).unwrap());
    }

    const REMEMBERS_CONSUMED_MESSAGES: bool = false;
    // Only one process uses it.
    const KEEPS_WHO_TAKES: bool = false;
}

fn check<S: Subject>(make: impl Fn() -> S, reopening: bool) {
    for (case, steps) in journal::cases::<S>() {
        let mut subject = make();
        for (number, (op, expected)) in steps.iter().enumerate() {
            assert_eq!(run(subject.store(), op), *expected, "{case}, step {number}: {op:?}");
            if reopening {
                subject.reopen();
            }
        }
    }
}

#[test]
fn memory() {
    check(|| Memory(MemoryStore::new()), false);
    check(|| Memory(MemoryStore::new()), true);
    event_queue::check(&mut Memory(MemoryStore::new()));
}

#[test]
fn sqlite() {
    check(Sqlite::new, false);
    event_queue::check(&mut Sqlite::new());
    let subject = Sqlite::new();
    event_queue::check_commits_without_subscriptions(&subject, |table| {
        let connection = rusqlite::Connection::open(subject.folder.path().join("store.db")).unwrap();
        connection.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    });
}

#[test]
fn sqlite_opened_again_after_every_step() {
    check(Sqlite::new, true);
}
