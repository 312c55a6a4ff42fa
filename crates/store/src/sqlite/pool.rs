//! The pool of reading connections: opened on demand, reused, and bounded.

use std::{
    path::PathBuf,
    sync::{Condvar, Mutex, PoisonError},
};

use rusqlite::Connection;

use super::{
    connection::{self, Beside},
    error, lock,
};
use crate::StoreError;

/// Maximum number of reading connections; further readers wait. Opening one takes as long as a hundred reads, so all
/// are kept. Each holds pages and statements, so they are few. A read takes some microseconds of processor time, and
/// machines for which one file suffices rarely have more processors than this.
const READERS_MAX: usize = 16;

/// The reading connections of a store.
pub(super) struct Readers {
    path: PathBuf,
    beside: Beside,
    state: Mutex<State>,
    freed: Condvar,
}

/// Free connections, the number of open or pending ones, and the number of waiting readers.
#[derive(Default)]
struct State {
    free: Vec<Connection>,
    open: usize,
    waiting: usize,
}

impl Readers {
    /// Makes an empty pool.
    pub(super) fn of(path: PathBuf, beside: Beside) -> Self {
        Self { path, beside, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Opens the first connection, which reports whether there is a store.
    pub(super) fn open_first(&self) -> Result<(), StoreError> {
        self.with_connection(|_| Ok(()))
    }

    /// Returns whether a connection is idle.
    pub(super) fn is_one_free(&self) -> bool {
        !lock(&self.state).free.is_empty()
    }

    /// Reads with a connection in a snapshot of the current state.
    pub(super) fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut pooled = self.place();
        let connection = match pooled.connection.take() {
            Some(connection) => connection,
            None => connection::open_reader(&self.path, self.beside)?,
        };
        let transaction = connection.unchecked_transaction();
        let found = transaction.and_then(|transaction| {
            let found = work(&transaction)?;
            transaction.commit()?;
            Ok(found)
        });
        // A connection that has failed is not reused: opening the next one gives a more precise error.
        let found = found.map_err(|error| error::of_store(&self.path, &error))?;
        pooled.connection = Some(connection);
        Ok(found)
    }

    /// Waits for a slot, which contains an idle connection if there is one.
    fn place(&self) -> PooledConnection<'_> {
        let mut state = lock(&self.state);
        loop {
            if let Some(connection) = state.take() {
                return PooledConnection { readers: self, connection };
            }
            state.waiting += 1;
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl State {
    /// Takes a slot, with an idle connection if there is one; `None` if all slots are taken.
    fn take(&mut self) -> Option<Option<Connection>> {
        if let Some(connection) = self.free.pop() {
            return Some(Some(connection));
        }
        let has_room = self.open < READERS_MAX;
        self.open += usize::from(has_room);
        has_room.then_some(None)
    }
}

/// A slot of the pool, released when dropped.
struct PooledConnection<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.readers.state);
        match self.connection.take() {
            Some(connection) => state.free.push(connection),
            None => state.open -= 1,
        }
        // Waking is a system call even if no thread waits.
        if state.waiting > 0 {
            self.readers.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::sqlite::SqliteStore;

    #[test]
    fn readers_wait_for_a_connection_and_failures_return_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let _store = SqliteStore::open(&path).unwrap();
        let readers = Readers::of(path, Beside::Anybody);
        let read =
            || readers.with_connection(|connection| connection.query_row("SELECT 7", [], |row| row.get::<_, u32>(0)));
        let mut acquired: Vec<PooledConnection<'_>> = (0..READERS_MAX).map(|_| readers.place()).collect();
        assert!(lock(&readers.state).take().is_none());
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
            while lock(&readers.state).waiting < waiting.len() {
                std::thread::yield_now();
            }
            drop(acquired.pop());
            waiting.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), Ok(7)));
        });
        let count = || {
            let state = lock(&readers.state);
            (state.free.len(), state.open)
        };
        assert_eq!(count(), (1, READERS_MAX), "one connection serves several readers in turn");
        drop(acquired);
        assert_eq!(count(), (1, 1));
        readers.with_connection(|connection| connection.execute_batch("SELECT nothing")).unwrap_err();
        assert_eq!(count(), (0, 0), "a failed connection is not used again");
        let breaks_off = AssertUnwindSafe(|| readers.with_connection::<()>(|_| panic!("a reader breaks off")));
        catch_unwind(breaks_off).unwrap_err();
        assert_eq!(count(), (0, 0));
        assert!(!readers.is_one_free());
        assert_eq!(read(), Ok(7));
        assert_eq!(count(), (1, 1));
        assert!(readers.is_one_free());
    }
}
