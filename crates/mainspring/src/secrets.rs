//! The secrets of this node: those of the settings file, and those that an organization has stored at the server.
//!
//! ```yaml
//! secrets:
//!   GITHUB: {env: GITHUB_TOKEN, workflows: [release]}
//!   SIGNING_KEY: {file: /run/secrets/signing-key, organizations: [acme]}
//!   DATABASE: {command: [pass, show, database]}
//!   PAYMENTS: {vault: {path: app/payments, field: key}}
//! vault: {address: "https://vault.example.com:8200", token: {file: /run/secrets/vault-token}}
//! ```

mod config;
mod local;
mod vault;

use std::sync::Arc;

use mainspring_effects::{
    BoxFuture,
    secrets::{Purpose, SecretError, SecretSource, SecretUser, SecretValue},
};
use mainspring_kernel::secret::SESSION_TOKEN;
use mainspring_server::services::stored_secrets::StoredSecrets;
use tokio::{sync::SetOnce, task::spawn_blocking};

use self::vault::{Vault, settings::VaultSettings};
use crate::{error::CliError, server_settings::ObjectSettings};
pub(crate) use config::{ConfiguredSecret, Source, read};

/// Reads the secrets of a node.
pub struct NodeSecrets {
    configured: Vec<ConfiguredSecret>,
    /// The server of the secrets with the source `vault`.
    vault: Option<Vault>,
    /// The settings file, for messages.
    path: String,
    /// Set when the engine has opened the store.
    stored: SetOnce<Arc<StoredSecrets>>,
}

impl NodeSecrets {
    /// Reads the secrets of a settings file. Their values are read when they are used.
    pub(crate) fn of(settings: &ObjectSettings) -> Result<Arc<Self>, CliError> {
        let path = settings.path.display().to_string();
        let bad = |errors: Vec<String>| {
            let message = format!("the settings in {path}: {}", errors.join("\n"));
            CliError::bad_input("bad_settings", message)
        };
        let configured = read(&settings.secrets).map_err(bad)?;
        let vault = VaultSettings::read(&settings.vault).and_then(|read| read.map(Vault::new).transpose());
        let vault = vault.map_err(|why| bad(vec![why]))?;
        let needs_vault = |secret: &&ConfiguredSecret| matches!(secret.source, Source::Vault(_));
        if let (None, Some(secret)) = (&vault, configured.iter().find(needs_vault)) {
            let why = "there is no server; add `vault: {address: URL, token: {env: VARIABLE}}` beside `secrets`";
            return Err(bad(vec![format!("secrets.{}.vault: {why}", secret.name)]));
        }
        Ok(Arc::new(Self { configured, vault, path, stored: SetOnce::new() }))
    }

    /// Takes the secrets of the store. Steps of organizations wait for them.
    pub(crate) fn bind(&self, stored: StoredSecrets) {
        let is_first = self.stored.set(Arc::new(stored)).is_ok();
        debug_assert!(is_first, "a node has one store");
    }

    /// The variables that hold secrets, which scripts do not inherit.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        let of_vault = self.vault.as_ref().and_then(Vault::variable);
        let own = self.configured.iter().filter_map(|secret| match &secret.source {
            Source::Local(source) => source.variable(),
            Source::Vault(_) => None,
        });
        own.chain(of_vault)
    }

    /// Reads the value of a secret from its source.
    async fn value_of(&self, source: &Source) -> Result<SecretValue, SecretError> {
        match (source, &self.vault) {
            (Source::Local(source), _) => local::value_of(source).await,
            (Source::Vault(location), Some(vault)) => vault.read(location).await,
            (Source::Vault(_), None) => Err(SecretError::Missing("the settings file has no `vault`".into())),
        }
    }

    /// Checks the server of the secrets with the source `vault`, and reads each of them: their number, and the
    /// mistakes with the names of the secrets. `None` without a server.
    pub(crate) async fn check_vault(&self) -> Option<(String, Result<usize, Vec<String>>)> {
        let vault = self.vault.as_ref()?;
        if let Err(error) = vault.check().await {
            return Some((vault.address(), Err(vec![error.to_string()])));
        }
        let (mut count, mut mistakes) = (0, Vec::new());
        for secret in &self.configured {
            let Source::Vault(location) = &secret.source else { continue };
            count += 1;
            let read = vault.read(location).await;
            mistakes.extend(read.err().map(|error| format!("the secret `{}`: {error}", secret.name)));
        }
        Some((vault.address(), if mistakes.is_empty() { Ok(count) } else { Err(mistakes) }))
    }

    async fn read(&self, name: &str, by: &SecretUser) -> Result<SecretValue, SecretError> {
        let Some(organization) = by.organization.as_deref() else {
            if name == SESSION_TOKEN {
                let why = "only executions of a server have a session with a token: use a secret of your own";
                return Err(SecretError::Missing(why.into()));
            }
            let secret = self.configured(name)?;
            check_workflow(secret, &by.purpose)?;
            return self.value_of(&secret.source).await;
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
        let value = self.value_of(&secret.source).await?;
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
