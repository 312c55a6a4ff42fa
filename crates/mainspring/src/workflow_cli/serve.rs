//! `workflow serve`: performs the scripts of one execution of a server, inside of a sandbox that a sandbox profile made.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use mainspring_effects::{
    sandbox::{Serve as Serving, Timing, serve as serve_attempts},
    shell::{GRACE_DEFAULT, Shell, ShellOptions, contain::Scripts},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    runtime::Handle,
};

use super::{arguments::Serve, say};
use crate::{
    error::{CliError, Exit},
    paths::{HIDDEN_VARIABLES, HIDDEN_WITH_TRACES},
    scripts::{close_this_process, words},
    signals::Signals,
};

/// Bytes between a standard stream and its thread: those of a pipe.
const STREAM_BYTES: usize = 64 * 1024;

/// Time for the last messages to be taken. A server that is there takes them at once.
const LAST_MESSAGES_MAX: Duration = Duration::from_secs(5);

/// Serves until standard input ends. Standard output has the messages of the protocol and no envelope.
pub(super) fn serve(serve: &Serve) -> Exit {
    match served(serve) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            say(&error.failure.message);
            error.exit
        }
    }
}

fn served(serve: &Serve) -> Result<(), CliError> {
    close_this_process()?;
    let state = State::new()?;
    let scripts = serve.scripts.rules()?.in_sandbox(&state.folder)?;
    let workspace = match &serve.workspace {
        Some(given) => given.canonicalize().map_err(|error| {
            let message = format!("--workspace {}: {error}: name a folder that exists", given.display());
            CliError::bad_input("bad_workspace", message)
        })?,
        None => state.make("workspaces/own")?,
    };
    let (mode, why) = words(&scripts);
    let options = Serving {
        shell: shell(state.folder.join("processes"), scripts),
        workspace,
        release: env!("CARGO_PKG_VERSION").into(),
        scripts: (mode.into(), why),
        silence: Timing::default().silence,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::internal("no_runtime", error.to_string()))?;
    let (all_written, is_written) = mpsc::channel();
    let served = runtime.block_on(async {
        let signals = Signals::default();
        signals.install()?;
        let served = serve_attempts(options, input(), output(all_written), signals.any()).await;
        served
            .map_err(|why| CliError::contract("channel_closed", format!("the channel to the server was closed: {why}")))
    });
    // Fails if it takes longer. Then the server is gone.
    let _ = is_written.recv_timeout(LAST_MESSAGES_MAX);
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    served
}

/// Standard input. A thread reads it, since reads of it block.
fn input() -> DuplexStream {
    let ((mut writer, reader), runtime) = (tokio::io::duplex(STREAM_BYTES), Handle::current());
    thread::spawn(move || {
        let (mut buffer, mut stdin) = (vec![0; STREAM_BYTES], io::stdin().lock());
        loop {
            let count = match stdin.read(&mut buffer) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(_) | Err(_) => return,
            };
            let read = buffer.get(..count).unwrap_or_default();
            if runtime.block_on(writer.write_all(read)).is_err() {
                return;
            }
        }
    });
    reader
}

/// Standard output. A thread writes it, so that a server that does not read cannot keep scripts from being ended.
fn output(all_written: mpsc::Sender<()>) -> DuplexStream {
    let ((writer, mut reader), runtime) = (tokio::io::duplex(STREAM_BYTES), Handle::current());
    thread::spawn(move || {
        let (mut buffer, mut stdout) = (vec![0; STREAM_BYTES], io::stdout().lock());
        while let Ok(count @ 1..) = runtime.block_on(reader.read(&mut buffer)) {
            let read = buffer.get(..count).unwrap_or_default();
            if stdout.write_all(read).and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
        // The main thread may have stopped waiting.
        let _ = all_written.send(());
    });
    writer
}

fn shell(records: PathBuf, scripts: Scripts) -> Box<dyn FnOnce(bool) -> Shell + Send> {
    Box::new(move |traces| {
        let mut hidden_env = HIDDEN_VARIABLES.map(String::from).to_vec();
        if traces {
            hidden_env.extend(HIDDEN_WITH_TRACES.map(String::from));
        }
        let (same_boot, untrusted_before_ms, grace) = (false, 0, GRACE_DEFAULT);
        let needs_workspace = true;
        Shell::new(ShellOptions {
            records,
            same_boot,
            untrusted_before_ms,
            hidden_env,
            grace,
            traces,
            scripts,
            needs_workspace,
        })
    })
}

/// A folder for this process, removed at its end.
struct State {
    folder: PathBuf,
}

impl State {
    fn new() -> Result<Self, CliError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
        let name = format!("workflow-serve-{}", mainspring_kernel::hash::hex(&random));
        let folder = std::env::temp_dir().join(name);
        make(&folder)?;
        Ok(Self { folder })
    }

    fn make(&self, name: &str) -> Result<PathBuf, CliError> {
        let folder = self.folder.join(name);
        make(&folder)?;
        Ok(folder)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn make(folder: &Path) -> Result<(), CliError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| CliError::bad_input("no_folder", format!("the folder {}: {error}", folder.display())))
}
