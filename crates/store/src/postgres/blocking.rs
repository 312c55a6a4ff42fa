//! Runs the asynchronous connections, and lets callers wait for them: the contract is blocking, the driver below it is
//! not.
//!
//! One thread does the I/O of all connections and runs the timers. Requests are built and responses are parsed on the
//! caller's own thread, which can borrow its arguments and sleeps in between. It may even be a thread of an
//! asynchronous runtime, although the contract blocks.

use std::{
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use tokio::runtime::{Builder, Handle, Runtime};

/// The I/O thread. Dropping it ends the thread.
pub(super) struct Driver(Option<Runtime>);

impl Driver {
    pub(super) fn new() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        Ok(Self(Some(builder.worker_threads(1).thread_name("mainspring-postgres").enable_all().build()?)))
    }

    /// Returns the runtime for background tasks.
    pub(super) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until the drop").handle()
    }

    /// Runs a future on this thread, which sleeps while it waits.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        // For the timers and new connections of the future.
        let _context = self.handle().enter();
        // On a thread of an asynchronous runtime, tokio would charge the calling task's cooperative budget, and the
        // future would never complete.
        let mut work = pin!(tokio::task::unconstrained(work));
        let sleeper = Arc::new(Sleeper { thread: thread::current(), is_woken: AtomicBool::new(false) });
        let waker = Waker::from(sleeper.clone());
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done;
            }
            while !sleeper.is_woken.swap(false, Ordering::Acquire) {
                thread::park();
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Waiting for the thread would panic inside of an asynchronous runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A flag of its own: the token of parking may be consumed by any lock that the future waits for.
struct Sleeper {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
