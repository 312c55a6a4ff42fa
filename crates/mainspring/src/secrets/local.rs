//! Reads values from this machine: a variable, a file, the output of a program.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use mainspring_effects::secrets::{SECRET_BYTES_MAX, SecretError, SecretValue};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::Command,
    sync::{Semaphore, oneshot},
    time::timeout,
};

use super::config::LocalSource;

/// The time in which a command prints a secret. It may ask a service, and a step waits for it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The time in which a file is read. A file of a network file system can be out of reach.
const FILE_TIMEOUT: Duration = Duration::from_secs(10);

/// Files that are read at a time. A thread that reads from a file system out of reach may stay until the process ends.
static FILES: Semaphore = Semaphore::const_new(16);

/// Reads a value from its source.
pub(super) async fn value_of(source: &LocalSource) -> Result<SecretValue, SecretError> {
    let text = match source {
        LocalSource::Env(name) => {
            std::env::var(name).map_err(|_| SecretError::Missing(format!("the variable `{name}` is not set")))
        }
        LocalSource::File(path) => file(path).await,
        LocalSource::Command(command) => output_of(command).await,
    }?;
    SecretValue::new(without_newline(&text)).map_err(SecretError::Missing)
}

/// Reads a file on a thread of its own. A pool would be exhausted by reads that do not return, and a process would wait for
/// them at its end.
async fn file(path: &Path) -> Result<String, SecretError> {
    let unavailable = || {
        let seconds = FILE_TIMEOUT.as_secs();
        SecretError::Unavailable(format!("the file {} could not be read within {seconds} s", path.display()))
    };
    let owned = path.to_owned();
    let read = async {
        let permit = FILES.acquire().await.map_err(|_| unavailable())?;
        let (answer, answered) = oneshot::channel();
        let started = thread::Builder::new().name("secret file".into()).spawn(move || {
            let text = text_of_file(&owned);
            drop(permit);
            let _ = answer.send(text);
        });
        started.map_err(|error| SecretError::Unavailable(error.to_string()))?;
        answered.await.unwrap_or_else(|_| Err(unavailable()))
    };
    timeout(FILE_TIMEOUT, read).await.unwrap_or_else(|_| Err(unavailable()))
}

fn text_of_file(path: &Path) -> Result<String, SecretError> {
    let shown = path.display();
    let failed = |why: String| SecretError::Missing(format!("the file {shown} cannot be read: {why}"));
    // Without the flag, opening a named pipe waits for a writer.
    let open = |path: &Path| -> std::io::Result<File> {
        OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()).open(path)
    };
    let file = open(path).map_err(|error| failed(error.to_string()))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(failed("it is not a regular file; use `command` for the output of a program".into()));
    }
    let mut text = String::new();
    let bytes_max = SECRET_BYTES_MAX as u64 + 2;
    file.take(bytes_max).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    Ok(text)
}

/// Runs a command and returns its output. Nothing that it prints is part of an error.
async fn output_of(command: &[String]) -> Result<String, SecretError> {
    let unavailable = |why: String| SecretError::Unavailable(format!("its command `{}` {why}", command[0]));
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    process.process_group(0);
    let mut child = process.spawn().map_err(|error| unavailable(format!("cannot be started: {error}")))?;
    let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let Some(output) = child.stdout.take() else { return Err(unavailable("has no output".into())) };
    let read = async {
        let mut text = String::new();
        output.take(SECRET_BYTES_MAX as u64 + 2).read_to_string(&mut text).await.map_err(|error| error.to_string())?;
        let status = child.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(text) } else { Err(format!("failed ({status})")) }
    };
    let read = timeout(COMMAND_TIMEOUT, read).await;
    drop(group);
    match read {
        Ok(read) => read.map_err(unavailable),
        Err(_) => Err(unavailable(format!("did not end within {} s", COMMAND_TIMEOUT.as_secs()))),
    }
}

/// The processes of a command. They end with the read, also those that the command has started.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A newline at the end belongs to the file or the command.
fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}
