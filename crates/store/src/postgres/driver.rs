//! Where connections live, and how a caller waits for them: the contract blocks, and the driver below it does not.
//!
//! One thread moves the bytes of all connections and keeps the timers. What is asked, what goes out for it and what its
//! answers mean is worked out on the caller's own thread, which borrows its arguments as usual and sleeps in between.
//! That thread may belong to an asynchronous runtime: nothing here minds, though the contract says that it blocks.

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

/// The thread of the connections. Ends when it is dropped.
pub(super) struct Driver(Option<Runtime>);

impl Driver {
    pub(super) fn new() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        Ok(Self(Some(builder.worker_threads(1).thread_name("mainspring-postgres").enable_all().build()?)))
    }

    /// For work that nobody waits for.
    pub(super) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until the drop").handle()
    }

    /// Does the work on this thread, and sleeps while it waits.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        // For the timers and new connections of the work.
        let _context = self.handle().enter();
        // On a thread of an asynchronous runtime, the turn of the task that called us would be counted on, and never end.
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
        // To wait for the thread would panic inside an asynchronous runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The mark is our own: the one that parking has may be taken by any lock that the work waits for.
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
