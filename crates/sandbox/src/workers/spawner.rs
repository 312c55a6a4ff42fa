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

/// A request for a worker: the receiver of the result, called on the thread that starts workers.
type Order = Box<dyn FnOnce(io::Result<Link>) + Send>;

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
        let (answer, started) = sync_channel(1);
        // If the caller was dropped, dropping the link ends its worker.
        let order: Order = Box::new(move |link| drop(answer.send(link)));
        let sent = self.orders().is_some_and(|orders| orders.send(order).is_ok());
        let started = if sent { started.recv().ok() } else { None };
        started.unwrap_or_else(|| Err(io::Error::other("the thread that starts them is gone"))).map_err(|error| {
            let message = format!("No worker could be started ({}): {error}.", self.command.program.display());
            Fault::new(FaultKind::Unavailable, message)
        })
    }

    /// Starts a worker without waiting for it. Does nothing while another one is being started.
    pub(super) fn start_in_background(&self, started: impl FnOnce(Link) + Send + 'static) {
        let order: Order = Box::new(move |link| {
            if let Ok(link) = link {
                started(link);
            }
        });
        if let Some(orders) = self.orders() {
            // A busy channel drops the order: no call waits for it, and later calls request a worker again.
            drop(orders.try_send(order));
        }
    }

    fn orders(&self) -> Option<SyncSender<Order>> {
        let running = self.running.get_or_init(|| Running::begin(self.command.clone(), self.end_idle.clone()));
        running.orders.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
            Ok(order) => order(Link::start(command)),
            Err(RecvTimeoutError::Timeout) => end_idle(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
