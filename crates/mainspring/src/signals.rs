//! The signals that ask a process to stop: SIGINT, SIGTERM and SIGHUP.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Mutex,
};

use crate::error::CliError;

/// The signals of this process; clones are handles of the same. Before [`Signals::install`] they end the process.
#[derive(Clone, Default)]
pub struct Signals {
    streams: Arc<Mutex<Option<Streams>>>,
    /// True if the last received signal was SIGTERM.
    is_terminated: Arc<AtomicBool>,
}

struct Streams {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Installs the handlers on the current runtime. From now on these signals no longer end the process. This
    /// precedes the opening of an engine, so that an early signal is not missed.
    pub fn install(&self) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::internal("store_unavailable", format!("signals cannot be received: {error}"))
        };
        let stream = |kind| signal(kind).map_err(failed);
        let streams = Streams {
            interrupt: stream(SignalKind::interrupt())?,
            terminate: stream(SignalKind::terminate())?,
            hangup: stream(SignalKind::hangup())?,
        };
        let mut installed =
            self.streams.try_lock().expect("no task waits for a signal before the handlers are installed");
        *installed = Some(streams);
        Ok(())
    }

    /// Waits for the first of the signals.
    pub async fn any(&self) {
        let mut streams = self.streams.lock().await;
        let Some(Streams { interrupt, terminate, hangup }) = &mut *streams else { return std::future::pending().await };
        let is_terminated = tokio::select! {
            _ = interrupt.recv() => false,
            _ = terminate.recv() => true,
            _ = hangup.recv() => false,
        };
        self.is_terminated.store(is_terminated, Ordering::Relaxed);
    }

    /// True if the last received signal was SIGTERM.
    pub fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::Relaxed)
    }
}
