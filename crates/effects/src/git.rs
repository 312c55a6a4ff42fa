//! Repositories of executions: the commit of a ref is resolved and pinned before the start, and its files are in the
//! workspace before the first script.
//!
//! | part | place |
//! |---|---|
//! | credential, network, protocol | this process, with the address filter of `http` steps ([`remote`]) |
//! | reading the pack, writing files | Git in a container without a network ([`checkout`]) |
//! | packs that were received | a folder of the node, which no container shows ([`cache`]) |
//!
//! No credential is in an argument, an environment or a configuration of Git, since Git connects to nothing.

mod cache;
mod checkout;
mod error;
mod limits;
mod location;
mod packet;
mod pinned;
mod refs;
mod remote;
mod slots;
mod workspace;

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use mainspring_kernel::{failure::Failure, secret::SecretReference};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    http::{HttpOptions, StreamClient},
    sandbox::{Profiles, WorkspaceMode},
    secrets::{Redactor, SecretSource, SecretUser, SecretValue, read_reference},
    shell::{contain::Container, program::Programs},
};
use cache::Cache;
use error::GitError;
use limits::{CHECKOUTS, RESOLUTIONS, RESOLVE_TIMEOUT};
use remote::Remote;
use slots::{Keyed, Slots};

pub use limits::{
    CACHE_BYTES_DEFAULT, CHECKOUT_TIMEOUT_DEFAULT, CHECKOUT_TIMEOUT_MAX, PACK_BYTES_DEFAULT, PACK_BYTES_MAX,
};
pub use location::{Host, Location};
pub use pinned::{Credential, Pinned};
pub use refs::{DEFAULT_REF, check_ref};
pub use workspace::{CHECKED_OUT, InRepository};

/// The repositories that a node may use.
#[derive(Clone)]
pub struct Repositories(Result<Arc<Shared>, Arc<str>>);

/// Settings of [`Repositories`].
pub struct RepositoryOptions {
    /// The permitted hosts, at least one.
    pub hosts: Vec<Host>,
    /// The address filter.
    pub http: HttpOptions,
    /// The containers in which Git runs.
    pub container: Arc<Container>,
    /// The sandboxes of organizations, which may not show the files of a node.
    pub sandboxes: Profiles,
    /// The source of credentials.
    pub secrets: Option<Arc<dyn SecretSource>>,
    /// The folder of the cache. It is made when it is first needed.
    pub cache: PathBuf,
    /// Bytes of a pack.
    pub pack_bytes_max: u64,
    /// Bytes of the cache.
    pub cache_bytes_max: u64,
    /// Time of a checkout with its download.
    pub timeout: Duration,
}

struct Shared {
    hosts: Vec<Host>,
    client: StreamClient,
    programs: Programs,
    sandboxes: Profiles,
    secrets: Option<Arc<dyn SecretSource>>,
    cache: Cache,
    pack_bytes_max: u64,
    timeout: Duration,
    resolving: Slots,
    checkouts: Slots,
    /// One download at a time for each pack.
    downloads: Keyed<Mutex<()>>,
}

/// Uses none.
impl Default for Repositories {
    fn default() -> Self {
        Self::off("this process has no settings for them")
    }
}

impl fmt::Debug for Repositories {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(shared) => out.debug_tuple("Repositories").field(&shared.hosts).finish(),
            Err(why) => out.debug_tuple("Off").field(why).finish(),
        }
    }
}

/// A ref to resolve.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The repository.
    pub location: &'a Location,
    /// A branch, a tag, a full ref or a commit.
    pub reference: &'a str,
    /// User and secret; `None` for a public repository.
    pub credential: Option<&'a Credential>,
}

impl Repositories {
    /// Uses repositories.
    pub fn new(options: RepositoryOptions) -> Self {
        let RepositoryOptions {
            hosts,
            http,
            container,
            sandboxes,
            secrets,
            cache,
            pack_bytes_max,
            cache_bytes_max,
            timeout,
        } = options;
        Self(Ok(Arc::new(Shared {
            hosts,
            client: StreamClient::new(http),
            programs: Programs::new(container),
            sandboxes,
            secrets,
            cache: Cache::new(cache, cache_bytes_max),
            pack_bytes_max,
            timeout,
            resolving: Slots::new(RESOLUTIONS),
            checkouts: Slots::new(CHECKOUTS),
            downloads: Keyed::default(),
        })))
    }

    /// Uses none, with the reason as a sentence.
    pub fn off(why: impl Into<String>) -> Self {
        Self(Err(why.into().into()))
    }

    /// The reason why no repository can be used.
    pub fn why_off(&self) -> Option<&str> {
        self.0.as_ref().err().map(|why| &**why)
    }

    /// The permitted hosts.
    pub fn hosts(&self) -> &[Host] {
        self.0.as_ref().map_or(&[], |shared| &shared.hosts)
    }

    /// Removes old packs.
    pub fn tidy(&self) {
        if let Ok(shared) = &self.0 {
            shared.cache.tidy(SystemTime::now());
        }
    }

    /// Returns the reason why scripts of an organization cannot have the files of a repository, as a sentence: their sandboxes
    /// have folders of their own.
    fn why_out_of_reach(&self, organization: Option<&str>) -> Option<String> {
        let profile = self.0.as_ref().ok()?.sandboxes.of(organization)?;
        (profile.workspace == WorkspaceMode::Own).then(|| {
            format!(
                "scripts of this organization run in the sandbox profile `{}` with `workspace: own`, which does not have the \
                 files of a repository; its operator can set `workspace: shared`",
                profile.name
            )
        })
    }

    /// Resolves a ref to its present commit. No message of a failure has the credential.
    pub async fn resolve(&self, wanted: Wanted<'_>, by: &SecretUser) -> Result<Pinned, Failure> {
        let shared = self.shared()?;
        if let Some(why) = self.why_out_of_reach(by.organization.as_deref()) {
            return Err(GitError::Refused(why).into());
        }
        let value = shared.value_of(wanted.credential, by).await.map_err(Failure::from)?;
        let remote = shared.remote(wanted.location, wanted.credential, value.as_ref(), by.organization.as_deref());
        let slot = timeout(RESOLVE_TIMEOUT, shared.resolving.take(by.organization.as_deref())).await;
        let _slot = slot.map_err(|_| Failure::from(GitError::Busy))?;
        let resolved = timeout(RESOLVE_TIMEOUT, remote.resolve(wanted.reference)).await;
        let resolved = resolved.unwrap_or(Err(GitError::TimedOut(RESOLVE_TIMEOUT.as_secs())));
        let found = resolved.map_err(|error| Redactor::new(value.clone()).failure(error.into()))?;
        Ok(Pinned {
            location: wanted.location.clone(),
            reference: found.reference,
            commit: found.commit,
            credential: wanted.credential.cloned(),
        })
    }

    fn shared(&self) -> Result<&Arc<Shared>, GitError> {
        self.0.as_ref().map_err(|why| GitError::Off(why.to_string()))
    }
}

impl Shared {
    async fn value_of(
        &self,
        credential: Option<&Credential>,
        by: &SecretUser,
    ) -> Result<Option<SecretValue>, GitError> {
        let Some(credential) = credential else { return Ok(None) };
        let reference = SecretReference { name: credential.secret.clone(), prefix: String::new() };
        let read = read_reference(self.secrets.as_ref(), &reference, by).await;
        let failed = |error: crate::secrets::SecretError| {
            let (class, code) = error.kind();
            let message = format!("the credential `{}` of the repository cannot be used: {error}", credential.secret);
            GitError::from(Failure::new(class, code, message))
        };
        read.map(|(value, _)| Some(value)).map_err(failed)
    }

    fn remote<'a>(
        &'a self,
        location: &'a Location,
        credential: Option<&'a Credential>,
        value: Option<&'a SecretValue>,
        organization: Option<&'a str>,
    ) -> Remote<'a> {
        let credential = credential.map(Credential::user).zip(value);
        Remote { client: &self.client, location, organization, credential }
    }
}
