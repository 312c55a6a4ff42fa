//! Reads values from this machine: a variable, a file, the output of a program.

use std::{fs::File, io::Read, path::Path, process::Stdio, time::Duration};

use mainspring_effects::secrets::{SECRET_BYTES_MAX, SecretError, SecretValue};
use tokio::{io::AsyncReadExt, process::Command, task::spawn_blocking, time::timeout};

use super::config::LocalSource;

/// The time in which a command prints a secret. It may ask a service, and a step waits for it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a value from its source.
pub(super) async fn value_of(source: &LocalSource) -> Result<SecretValue, SecretError> {
    let text = match source {
        LocalSource::Env(name) => {
            std::env::var(name).map_err(|_| SecretError::Missing(format!("the variable `{name}` is not set")))
        }
        LocalSource::File(path) => {
            let path = path.clone();
            let read = spawn_blocking(move || text_of_file(&path)).await;
            read.map_err(|error| SecretError::Unavailable(error.to_string()))?
        }
        LocalSource::Command(command) => output_of(command).await,
    }?;
    SecretValue::new(without_newline(&text)).map_err(SecretError::Missing)
}

fn text_of_file(path: &Path) -> Result<String, SecretError> {
    let shown = path.display();
    let failed = |why: String| SecretError::Missing(format!("the file {shown} cannot be read: {why}"));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
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
    let mut child = process.spawn().map_err(|error| unavailable(format!("cannot be started: {error}")))?;
    let Some(output) = child.stdout.take() else { return Err(unavailable("has no output".into())) };
    let read = async {
        let mut text = String::new();
        output.take(SECRET_BYTES_MAX as u64 + 2).read_to_string(&mut text).await.map_err(|error| error.to_string())?;
        let status = child.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(text) } else { Err(format!("failed ({status})")) }
    };
    match timeout(COMMAND_TIMEOUT, read).await {
        Ok(read) => read.map_err(unavailable),
        Err(_) => Err(unavailable(format!("did not end within {} s", COMMAND_TIMEOUT.as_secs()))),
    }
}

/// A newline at the end belongs to the file or the command.
fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}
