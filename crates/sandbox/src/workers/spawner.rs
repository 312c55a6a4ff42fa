//! The thread that starts workers.
//!
//! The kernel kills a worker when the thread that started it ends, not when the process does (`PR_SET_PDEATHSIG`,
//! prctl(2)). So one thread starts all workers of a pool, and lives as long as the pool.

use super::link::{Link, WorkerCommand};
use crate::fault::{Fault, FaultKind};
use crate::limits::IDLE_LOOK;
use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

/// A request for a worker: the channel for the result.
type Order = SyncSender<io::Result<Link>>;

/// Ends workers that have been idle for long.
pub(super) type EndIdle = Arc<dyn Fn() + Send + Sync>;

/// Starts workers on a thread of its own, which is started with the first of them.
pub(super) struct Spawner {
    command: WorkerCommand,
    end_idle: EndIdle,
    running: OnceLock<Running>,
}

/// The thread and its channel.
struct Running {
    /// Both exist until the owner is dropped. The mutex makes the sender shareable among threads.
    orders: Mutex<Option<SyncSender<Order>>>,
    thread: Option<JoinHandle<()>>,
}

impl Spawner {
    /// `end_idle` is called at intervals while no worker is requested.
    pub(super) fn new(command: WorkerCommand, end_idle: EndIdle) -> Spawner {
        Spawner { command, end_idle, running: OnceLock::new() }
    }

    pub(super) fn start(&self) -> Result<Link, Fault> {
        let (order, started) = sync_channel(1);
        let running = self.running.get_or_init(|| Running::begin(self.command.clone(), self.end_idle.clone()));
        let orders = running.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = orders.is_some_and(|orders| orders.send(order).is_ok());
        let started = if sent { started.recv().ok() } else { None };
        started.unwrap_or_else(|| Err(io::Error::other("the thread that starts them is gone"))).map_err(|error| {
            let message = format!("No worker could be started ({}): {error}.", self.command.program.display());
            Fault::new(FaultKind::Unavailable, message)
        })
    }
}

impl Running {
    fn begin(command: WorkerCommand, end_idle: EndIdle) -> Self {
        let (orders, taken) = sync_channel(0);
        let thread =
            thread::Builder::new().name("sandbox spawner".to_owned()).spawn(move || keep(&command, &end_idle, &taken));
        // Without its thread the channel is closed, and every start fails with a message.
        Self { orders: Mutex::new(Some(orders)), thread: thread.ok() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has left no worker behind: the kernel has killed them.
            let _ = thread.join();
        }
    }
}

fn keep(command: &WorkerCommand, end_idle: &EndIdle, orders: &Receiver<Order>) {
    loop {
        match orders.recv_timeout(IDLE_LOOK) {
            // If the caller is gone, dropping the link ends its worker.
            Ok(order) => drop(order.send(Link::start(command))),
            Err(RecvTimeoutError::Timeout) => end_idle(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
