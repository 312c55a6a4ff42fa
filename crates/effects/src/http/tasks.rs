//! What runs beside a request for its connection, and ends with it.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The tasks of one connection. Ended when the guard is dropped, so that a request which is stopped leaves no connection
/// open: dropping handles alone would let HTTP/2 take its leave of a server that may not listen.
#[derive(Debug, Default)]
pub(super) struct Tasks(Spawner);

/// Starts tasks that end with their [`Tasks`].
#[derive(Debug, Clone, Default)]
pub(super) struct Spawner(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// For those who start them.
    pub(super) fn spawner(&self) -> Spawner {
        self.0.clone()
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Spawner {
    fn execute(&self, future: F) {
        let task = async move { drop(future.await) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}
