//! The thread of the driver. On a thread of the runtime, the driver would wait behind each request that is processed
//! there, and the requests behind the driver, however long each of them takes.

use std::thread::JoinHandle as Thread;

use tokio::{
    runtime::{Builder, Handle, RuntimeFlavor},
    sync::oneshot,
    task::JoinHandle,
};

use crate::driver::{Driver, Received};

/// Runs the driver beside the runtime of the caller. The task ends with the driver, and its end by a shutdown of the
/// runtime ends the driver. A runtime with a single thread runs the driver itself, and so does one on a machine that
/// provides no thread.
pub(crate) fn run(driver: Driver, received: Received) -> JoinHandle<()> {
    let runtime = Handle::current();
    if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return runtime.spawn(driver.run(received));
    }
    let Ok(own) = Builder::new_current_thread().enable_all().build() else {
        return runtime.spawn(driver.run(received));
    };
    let (keeps_running, is_over) = oneshot::channel::<()>();
    let (ended, has_ended) = oneshot::channel::<()>();
    // The driver is passed through a channel, so that it is left if no thread can be started.
    let (to_thread, passed) = std::sync::mpsc::channel::<(Driver, Received)>();
    let work = move || {
        let Ok((driver, received)) = passed.recv() else { return };
        own.block_on(async {
            tokio::select! {
                biased;
                _ = is_over => {}
                () = driver.run(received) => {}
            }
        });
        drop(ended);
    };
    match std::thread::Builder::new().name("driver".into()).spawn(work) {
        Ok(thread) => {
            let _ = to_thread.send((driver, received));
            let joined = Joined { keeps_running: Some(keeps_running), thread: Some(thread) };
            runtime.spawn(async move {
                let _joined = joined;
                let _ = has_ended.await;
            })
        }
        Err(error) => {
            tracing::warn!(%error, "the thread of the driver could not be started: the driver shares those of requests");
            runtime.spawn(driver.run(received))
        }
    }
}

/// Ends the driver when it is dropped, and waits until its thread has ended: the folder is unlocked then.
struct Joined {
    keeps_running: Option<oneshot::Sender<()>>,
    thread: Option<Thread<()>>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        drop(self.keeps_running.take());
        // A panic of the driver was reported when it happened.
        let _ = self.thread.take().map(Thread::join);
    }
}
