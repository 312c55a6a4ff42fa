//! The thread that starts containers.
//!
//! The kernel ends a container when the thread that started it ends, not when the process does (`PR_SET_PDEATHSIG`,
//! prctl(2)). Threads of an async runtime come and go; this one lives as long as the executor.

use std::{io, sync::mpsc, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

/// Starts containers on one thread.
#[derive(Debug)]
pub(crate) struct Launcher(mpsc::Sender<Launch>);

#[derive(Debug)]
struct Launch {
    command: Command,
    runtime: Handle,
    started: oneshot::Sender<io::Result<Child>>,
}

impl Launcher {
    /// Starts the thread.
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, launches) = mpsc::channel::<Launch>();
        thread::Builder::new().name("container launcher".into()).spawn(move || {
            while let Ok(Launch { mut command, runtime, started }) = launches.recv() {
                let _entered = runtime.enter();
                // A container whose caller was dropped ends by itself, since it never receives a script.
                drop(started.send(command.spawn()));
            }
        })?;
        Ok(Self(sender))
    }

    /// Starts a container. The command is dropped afterwards, which closes the ends of pipes that it holds.
    pub(crate) async fn start(&self, command: Command) -> io::Result<Child> {
        let (started, child) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts containers is gone");
        self.0.send(Launch { command, runtime: Handle::current(), started }).map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }
}
