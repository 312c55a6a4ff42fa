//! PostgreSQL as a subject: one server for all tests of the process, and a schema for each store.

use std::sync::OnceLock;

use super::{Subject, check, event_queue};
use crate::{
    Store,
    postgres::{
        Options, PostgresStore,
        server::{self, Scratch, Server},
    },
};

/// The server of this process. These tests do not check durability, so it runs without fsync.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(server::Options { fsync: false, tls: false }).unwrap())
}

pub(super) struct Postgres {
    // Closed before its schema is removed.
    store: Option<PostgresStore>,
    scratch: Scratch<'static>,
}

impl Postgres {
    pub(super) fn new() -> Self {
        let mut new = Self { store: None, scratch: server().scratch() };
        new.reopen();
        new
    }
}

impl Subject for Postgres {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        let options = Options { partitions: 1, ..Options::default() };
        self.store = Some(PostgresStore::open_with(&self.scratch.address(), options).unwrap());
    }

    const REMEMBERS_CONSUMED_MESSAGES: bool = false;
    const KEEPS_WHO_TAKES: bool = true;
}

#[test]
fn postgres() {
    check(Postgres::new, false);
    event_queue::check(&mut Postgres::new());
    let subject = Postgres::new();
    event_queue::check_commits_without_subscriptions(&subject, |table| {
        subject.scratch.beside().unwrap().execute(&format!("DROP TABLE {table}")).unwrap();
    });
}

#[test]
fn postgres_opened_again_after_every_step() {
    check(Postgres::new, true);
}
