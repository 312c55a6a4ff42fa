//! The secrets of this node: those of the settings file, and those that an organization has stored at the server.
//!
//! ```yaml
//! secrets:
//!   GITHUB: {env: GITHUB_TOKEN, workflows: [release]}
//!   SIGNING_KEY: {file: /run/secrets/signing-key, organizations: [acme]}
//!   DATABASE: {command: [pass, show, database]}
//! ```

mod config;

use std::{fs::File, io::Read, path::Path, process::Stdio, sync::Arc, time::Duration};

use mainspring_effects::{
    BoxFuture,
    secrets::{Purpose, SECRET_BYTES_MAX, SecretError, SecretSource, SecretUser, SecretValue},
};
use mainspring_kernel::secret::SESSION_TOKEN;
use mainspring_server::services::stored_secrets::StoredSecrets;
use tokio::{io::AsyncReadExt, process::Command, sync::SetOnce, task::spawn_blocking, time::timeout};

use crate::{error::CliError, server_settings::ObjectSettings};
pub(crate) use config::{ConfiguredSecret, Source, read};

/// The time in which a command prints a secret. It may ask a service, and a step waits for it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the secrets of a node.
pub struct NodeSecrets {
    configured: Vec<ConfiguredSecret>,
    /// The settings file, for messages.
    path: String,
    /// Set when the engine has opened the store.
    stored: SetOnce<Arc<StoredSecrets>>,
}

impl NodeSecrets {
    /// Reads the secrets of a settings file. Their values are read when they are used.
    pub(crate) fn of(settings: &ObjectSettings) -> Result<Arc<Self>, CliError> {
        let path = settings.path.display().to_string();
        let configured = read(&settings.secrets).map_err(|errors| {
            let message = format!("the settings in {path}: {}", errors.join("\n"));
            CliError::bad_input("bad_settings", message)
        })?;
        Ok(Arc::new(Self { configured, path, stored: SetOnce::new() }))
    }

    /// Takes the secrets of the store. Steps of organizations wait for them.
    pub(crate) fn bind(&self, stored: StoredSecrets) {
        let is_first = self.stored.set(Arc::new(stored)).is_ok();
        debug_assert!(is_first, "a node has one store");
    }

    /// The variables that hold secrets, which scripts do not inherit.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.configured.iter().filter_map(|secret| match &secret.source {
            Source::Env(name) => Some(name.as_str()),
            _ => None,
        })
    }

    async fn read(&self, name: &str, by: &SecretUser) -> Result<SecretValue, SecretError> {
        let Some(organization) = by.organization.as_deref() else {
            if name == SESSION_TOKEN {
                let why = "only executions of a server have a session with a token: use a secret of your own";
                return Err(SecretError::Missing(why.into()));
            }
            let secret = self.configured(name)?;
            check_workflow(secret, &by.purpose)?;
            return value_of(&secret.source).await;
        };
        let stored = self.stored.wait().await.clone();
        if name == SESSION_TOKEN {
            let (organization, purpose) = (organization.to_owned(), by.purpose.clone());
            let read = spawn_blocking(move || stored.session_token(&organization, &purpose)).await;
            return read.map_err(|error| SecretError::Unavailable(error.to_string()))?;
        }
        if let Purpose::Step { .. } | Purpose::Start { .. } = by.purpose {
            let (store, organization) = (stored.clone(), organization.to_owned());
            let (name, purpose) = (name.to_owned(), by.purpose.clone());
            let read = spawn_blocking(move || store.read(&organization, &name, &purpose)).await;
            if let Some(value) = read.map_err(|error| SecretError::Unavailable(error.to_string()))?? {
                return Ok(value);
            }
        }
        let secret = self.configured(name)?;
        let is_step = matches!(by.purpose, Purpose::Step { .. } | Purpose::Start { .. });
        if is_step && !secret.organizations.iter().any(|permitted| permitted == organization) {
            // The message is the same as for a secret that does not exist, since the settings are the operator's.
            return Err(self.missing());
        }
        check_workflow(secret, &by.purpose)?;
        let value = value_of(&secret.source).await?;
        let (organization, name, purpose) = (organization.to_owned(), name.to_owned(), by.purpose.clone());
        let recorded = spawn_blocking(move || stored.record(&organization, &name, &purpose)).await;
        recorded.map_err(|error| SecretError::Unavailable(error.to_string()))??;
        Ok(value)
    }

    fn configured(&self, name: &str) -> Result<&ConfiguredSecret, SecretError> {
        self.configured.iter().find(|secret| secret.name == name).ok_or_else(|| self.missing())
    }

    fn missing(&self) -> SecretError {
        let file = if self.path.is_empty() { "the settings file" } else { &self.path };
        SecretError::Missing(format!(
            "there is no such secret: set it at a server with `mainspring secret set NAME`, or add it to `secrets` in {file}"
        ))
    }
}

impl SecretSource for NodeSecrets {
    fn read<'a>(&'a self, name: &'a str, by: &'a SecretUser) -> BoxFuture<'a, Result<SecretValue, SecretError>> {
        Box::pin(self.read(name, by))
    }
}

/// Checks that a workflow may use a secret of the settings file. Parts of the same file may use all of them.
fn check_workflow(secret: &ConfiguredSecret, purpose: &Purpose) -> Result<(), SecretError> {
    let (Some(permitted), Purpose::Step { workflow, .. } | Purpose::Start { workflow }) = (&secret.workflows, purpose)
    else {
        return Ok(());
    };
    match workflow {
        Some(workflow) if permitted.contains(workflow) => Ok(()),
        _ => {
            let why = format!("only the workflows {} may use it", permitted.join(", "));
            Err(SecretError::NotPermitted(why))
        }
    }
}

/// Reads a value from its source.
async fn value_of(source: &Source) -> Result<SecretValue, SecretError> {
    let text = match source {
        Source::Env(name) => {
            std::env::var(name).map_err(|_| SecretError::Missing(format!("the variable `{name}` is not set")))
        }
        Source::File(path) => {
            let path = path.clone();
            let read = spawn_blocking(move || text_of_file(&path)).await;
            read.map_err(|error| SecretError::Unavailable(error.to_string()))?
        }
        Source::Command(command) => output_of(command).await,
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
