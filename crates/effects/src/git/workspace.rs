//! Workspaces with a repository: an executor around that of scripts, which makes the files exist before the first of them.
//!
//! The note beside a workspace has the pinned repository, and a second file beside it says that the checkout is complete.
//! Neither is in the workspace, so no script can change them. An incomplete checkout is removed and made again.

use std::{
    borrow::Cow,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    input::REPOSITORY_IN_TRIGGER,
    json,
    key::ExecutionKey,
    value::{Map, Value},
};
use tokio::{
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, sleep, timeout_at},
};

use super::{Pinned, Repositories, Shared, cache::Cache, checkout::Checkout, error::GitError, limits::LOCK_POLL};
use crate::{
    Adopted, AttemptName, BoxFuture, CancelSignal, Executor,
    partial::PartialText,
    secrets::{Purpose, Redactor, SecretUser},
    shell::contain::remove_workspace,
};

/// File extension of the note of a workspace, and of the file that says that the checkout is complete.
const NOTE: &str = "start";
/// See [`NOTE`].
pub const CHECKED_OUT: &str = "checkout";

/// The effects of scripts, which get variables, and of tools, which may need no files.
const SCRIPT: &str = "bash";
const TOOL: &str = "tool";

/// Most bytes of a note.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// The variables of a script in a repository, with the keys of the pinned repository. A step may set its own.
const VARIABLES: [(&str, &str); 3] =
    [("SOURCE_REPO_FULL_NAME", "sourceRepoFullName"), ("SOURCE_REF", "ref"), ("SOURCE_COMMIT_SHA", "commitSha")];

/// Performs attempts in workspaces with the files of their repositories.
pub struct InRepository {
    inner: Arc<dyn Executor>,
    repositories: Repositories,
}

/// The content of a note that matters here.
struct Noted {
    path: PathBuf,
    repository: Value,
    /// The workflow whose start named the repository, for the permission to use the credential.
    workflow: Option<String>,
}

impl InRepository {
    /// Wraps an executor whose attempts work in workspaces.
    pub fn new(inner: Arc<dyn Executor>, repositories: Repositories) -> Self {
        Self { inner, repositories }
    }

    async fn run(&self, attempt: &Attempt, mut stop: CancelSignal, partial: Option<PartialText>) -> Outcome {
        let attempt = match self.prepared(attempt, &mut stop).await {
            Ok(None) => Cow::Borrowed(attempt),
            Ok(Some(repository)) => Cow::Owned(with_variables(attempt, &repository)),
            Err(GitError::Stopped) => return Outcome::Stopped(Value::Null),
            Err(error) => return Outcome::Failed(error.into()),
        };
        match partial {
            Some(partial) => self.inner.perform_shown(&attempt, stop, partial).await,
            None => self.inner.perform(&attempt, stop).await,
        }
    }

    /// Makes the files of an attempt's repository exist, and returns the repository. `None` if the attempt needs no files: a
    /// script or an agent of an execution with a repository never runs without them.
    async fn prepared(&self, attempt: &Attempt, stop: &mut CancelSignal) -> Result<Option<Value>, GitError> {
        // Without a workspace, no script is permitted.
        if !attempt.flags.has_repository || attempt.workspace.is_none() {
            return Ok(None);
        }
        // Tool servers that work in a folder report a missing one, and the others need none.
        let is_tool = attempt.effect == TOOL;
        if let Some(why) = self.repositories.why_out_of_reach(attempt.organization.as_deref()) {
            return if is_tool { Ok(None) } else { Err(GitError::Refused(why)) };
        }
        match Noted::of(attempt).await {
            Some(noted) => {
                self.prepare(attempt, &noted, stop).await?;
                Ok(Some(noted.repository))
            }
            None if is_tool => Ok(None),
            None => Err(GitError::Unavailable("the workspace of this execution is not on this node".into())),
        }
    }

    /// Makes the files of the repository exist. Attempts of the same workspace wait for each other, on all nodes that
    /// share its folder.
    async fn prepare(&self, attempt: &Attempt, noted: &Noted, stop: &mut CancelSignal) -> Result<(), GitError> {
        let workspace = noted.path.with_extension("");
        let done = noted.path.with_extension(CHECKED_OUT);
        if !workspace.is_dir() {
            return Err(GitError::Unavailable("the folder of this execution was removed".into()));
        }
        if done.exists() {
            return Ok(());
        }
        let shared = self.repositories.shared()?;
        let deadline = Instant::now() + shared.timeout;
        let timed_out = || GitError::TimedOut(shared.timeout.as_secs());
        let waiting = async {
            let lock = locked(&noted.path).await?;
            Ok::<_, GitError>((lock, shared.checkouts.take(attempt.organization.as_deref()).await))
        };
        let _held = tokio::select! {
            biased;
            () = stop.requested() => return Err(GitError::Stopped),
            held = timeout_at(deadline, waiting) => held.map_err(|_| timed_out())??,
        };
        if done.exists() {
            return Ok(());
        }
        let pinned = Pinned::of_value(&noted.repository, &shared.hosts);
        let pinned = pinned.map_err(|why| GitError::Refused(format!("the repository of this execution: {why}")))?;
        let pack = tokio::select! {
            biased;
            () = stop.requested() => return Err(GitError::Stopped),
            pack = timeout_at(deadline, shared.pack(&pinned, attempt, noted)) => pack.map_err(|_| timed_out())??,
        };
        empty(&workspace).await?;
        let checkout = Checkout {
            programs: &shared.programs,
            workspace: &workspace,
            pinned: &pinned,
            organization: attempt.organization.as_deref(),
            bytes_max: shared.pack_bytes_max,
            within: deadline.saturating_duration_since(Instant::now()),
        };
        if let Err(error) = checkout.run(pack, stop).await {
            // The files of a refused commit take no space until the execution ends.
            let _ = empty(&workspace).await;
            return Err(if let GitError::TimedOut(_) = error { timed_out() } else { error });
        }
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&done);
        written.map(drop).map_err(|error| GitError::Unavailable(format!("the checkout cannot be recorded: {error}")))
    }
}

impl Shared {
    /// The pack of a pinned commit: from the cache, or from the remote.
    async fn pack(&self, pinned: &Pinned, attempt: &Attempt, noted: &Noted) -> Result<File, GitError> {
        let organization = attempt.organization.as_deref();
        let name = Cache::name(organization, pinned.location.url(), &pinned.commit);
        let download = self.downloads.get(&name, || Mutex::new(()));
        let _alone = download.lock().await;
        if let Some(pack) = self.cache.open(&name) {
            return Ok(pack);
        }
        let by = SecretUser {
            organization: attempt.organization.clone(),
            purpose: Purpose::Step {
                workflow: noted.workflow.clone(),
                execution_id: attempt.execution_id.clone(),
                step: attempt.step.clone(),
                attempt: attempt.number,
            },
        };
        let value = self.value_of(pinned.credential.as_ref(), &by).await?;
        let remote = self.remote(&pinned.location, pinned.credential.as_ref(), value.as_ref(), organization);
        let received = async {
            let pack = remote.fetch(&pinned.commit).await?;
            self.cache.receive(&name, pack, self.pack_bytes_max).await
        };
        let redacted = |error: GitError| GitError::from(Redactor::new(value.clone()).failure(error.into()));
        received.await.map_err(redacted)
    }
}

impl Noted {
    /// The note of an attempt's workspace, if it names a repository.
    async fn of(attempt: &Attempt) -> Option<Self> {
        let path = Path::new(attempt.workspace.as_deref()?).with_extension(NOTE);
        let read = path.clone();
        let note = spawn_blocking(move || {
            let mut bytes = Vec::new();
            File::open(read).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
            json::read(&bytes).ok().map(|document| document.value)
        });
        let note = note.await.ok()??;
        let text = |key: &str| note.get(key).and_then(Value::as_text);
        if text("organization") != attempt.organization.as_deref() {
            return None;
        }
        let repository = note.get(REPOSITORY_IN_TRIGGER).filter(|repository| **repository != Value::Null)?.clone();
        Some(Self { path, repository, workflow: text("workflow").map(Into::into) })
    }
}

/// Locks a note for a checkout, across processes. The lock ends with the file.
async fn locked(note: &Path) -> Result<File, GitError> {
    let failed = |error: io::Error| GitError::Unavailable(format!("the workspace cannot be locked: {error}"));
    let file = File::open(note).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => sleep(LOCK_POLL).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Removes what an incomplete checkout has left in a workspace.
async fn empty(workspace: &Path) -> Result<(), GitError> {
    let workspace = workspace.to_owned();
    let emptied = spawn_blocking(move || remove_entries(&workspace)).await.map_err(io::Error::other);
    emptied.flatten().map_err(|error| GitError::Unavailable(format!("the workspace cannot be emptied: {error}")))
}

fn remove_entries(workspace: &Path) -> io::Result<()> {
    for entry in fs::read_dir(workspace)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove_workspace(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Adds the variables of a repository to those of a script. A value of the step takes precedence.
fn with_variables(attempt: &Attempt, repository: &Value) -> Attempt {
    let mut attempt = attempt.clone();
    let Value::Map(params) = &mut attempt.params else { return attempt };
    if attempt.effect != SCRIPT {
        return attempt;
    }
    let env = params.entry("env".into()).or_insert(Value::Null);
    if *env == Value::Null {
        *env = Value::Map(Map::new());
    }
    if let Value::Map(env) = env {
        for (name, key) in VARIABLES {
            let value = repository.get(key).cloned().unwrap_or_else(|| "".into());
            env.entry(name.into()).or_insert(value);
        }
    }
    attempt
}

impl Executor for InRepository {
    fn performs(&self, attempt: &Attempt) -> bool {
        self.inner.performs(attempt)
    }

    /// Failures of its own: `repositories_off`, `repository_refused` (`policy`), `repository_not_found` (`invalid`),
    /// `repository_unavailable` (`unavailable`), `repository_timeout` (`timeout`), those of secrets and of HTTP requests.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run(attempt, stop, None))
    }

    fn perform_shown<'a>(
        &'a self,
        attempt: &'a Attempt,
        stop: CancelSignal,
        partial: PartialText,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run(attempt, stop, Some(partial)))
    }

    fn watch<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Option<Outcome>> {
        self.inner.watch(attempt, stop)
    }

    /// A checkout is no part of an attempt: one that a dead process has left is made again.
    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Adopted> {
        self.inner.adopt(attempt)
    }

    fn forget(&self, attempt: AttemptName<'_>) {
        self.inner.forget(attempt);
    }

    fn execution_ended(&self, execution: ExecutionKey) {
        self.inner.execution_ended(execution);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
