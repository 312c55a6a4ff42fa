//! Background tasks of a connection, which end with it.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The tasks of one connection. Dropping it aborts them, so that a canceled request leaves no connection open.
/// Otherwise HTTP/2 would first try to shut down gracefully, with a server that may not read any more.
#[derive(Debug, Default)]
pub(super) struct Tasks(Spawner);

/// Starts tasks that end with their [`Tasks`].
#[derive(Debug, Clone, Default)]
pub(super) struct Spawner(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// Returns a handle that starts tasks.
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn tasks_end_with_their_guard() {
        let tasks = Tasks::default();
        let (held, ended) = oneshot::channel::<()>();
        // The task holds its own spawner, as HTTP/2 connections do.
        let spawner = tasks.spawner();
        tasks.spawner().execute(async move {
            std::future::pending::<()>().await;
            drop((held, spawner));
        });
        tokio::task::yield_now().await;
        drop(tasks);
        assert!(ended.await.is_err());
    }
}
