//! The errors that a caller of the engine must distinguish. The callers map them to HTTP status codes and exit codes.

use std::{fmt, path::PathBuf};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::StoreError;

use crate::journal_loader::LoadError;

/// The reason why the engine refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// The folder cannot be used.
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// Another process runs an engine on the folder.
    DirInUse {
        /// The path of the folder.
        path: PathBuf,
        /// The id of that process, if its lock file contains one.
        pid: Option<u32>,
    },
    /// The installation's key cannot be used.
    Key {
        /// The path of the key file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The folder or the store was created with another key.
    OtherKey {
        /// `the store`, or the path of the folder.
        place: String,
    },
    /// The store failed.
    Store(StoreError),
    /// So many inbox messages have no seal, and it is not proven that they precede an upgrade.
    Unsealed(usize),
    /// So many resources have no seal, and it is not proven that they precede an upgrade.
    UnsealedResources(usize),
    /// A journal cannot be read.
    Load(LoadError),
    /// No such execution exists.
    NoSuchExecution,
    /// The execution is quarantined, for this reason.
    Quarantined(String),
    /// The execution is not quarantined, or was ended in quarantine.
    NotQuarantined,
    /// The execution has not ended.
    NotEnded,
    /// The plan of the execution has no step of this name.
    NoSuchStep(String),
    /// Another execution has the name or the idempotency key.
    Exists(ExecutionKey),
    /// The engine has stopped, for this reason.
    Stopped(String),
    /// No open gate matches, for this reason.
    NoOpenGate(String),
    /// The execution belongs to another node or, during a handoff, to none.
    NotHere,
    /// The bound of pending requests is reached.
    Busy,
    /// The organization has reached its bound of unfinished executions, which is this number.
    TooMany(u32),
}

impl fmt::Display for EngineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, why } => write!(out, "the folder {} cannot be used: {why}", path.display()),
            Self::DirInUse { path, pid: Some(pid) } => {
                write!(out, "{} is in use by the process {pid}", path.display())
            }
            Self::DirInUse { path, pid: None } => write!(out, "{} is in use by another process", path.display()),
            Self::Key { path, why } => write!(out, "the key {} cannot be used: {why}", path.display()),
            Self::OtherKey { place } => write!(
                out,
                "the installation's key is not the one that {place} was created with; name that key's file with MAINSPRING_KEY_FILE"
            ),
            Self::Store(error) => error.fmt(out),
            Self::Unsealed(count) => write!(
                out,
                "inbox messages have no seal ({count}), and nothing proves that an older release wrote them. If another process \
                 upgrades the store now, try again. If an upgrade was interrupted or a backup of an older release was restored, \
                 `mainspring upgrade --accept-unsealed` accepts them. Otherwise something other than Mainspring has changed \
                 the store"
            ),
            Self::UnsealedResources(count) => write!(
                out,
                "resources (members, tokens, workflows, …) have no seal ({count}), and nothing proves that an older release wrote \
                 them. If another process upgrades the store now, try again. If an upgrade was interrupted or a backup of an \
                 older release was restored, `mainspring upgrade --accept-unsealed` accepts them. Otherwise something other than Mainspring has changed the store"
            ),
            Self::Load(error) => error.fmt(out),
            Self::NoSuchExecution => out.write_str("there is no such execution"),
            Self::Quarantined(why) => write!(out, "the execution is quarantined: {why}"),
            Self::NotQuarantined => {
                out.write_str("the execution is not quarantined, or was ended before: `mainspring quarantine list` names those that are")
            }
            Self::NotEnded => out.write_str("the execution has not ended: wait for its end or cancel it first"),
            Self::NoSuchStep(step) => write!(out, "the execution has no step `{step}`: `mainspring show` names its steps"),
            Self::Exists(key) => write!(out, "the execution {key} has this name or idempotency key already"),
            Self::Stopped(why) => write!(out, "the engine has stopped: {why}"),
            Self::NotHere => out.write_str("the execution belongs to another node: enqueue the input in its inbox"),
            Self::Busy => out.write_str("the write queue of this node is full: try again in a second"),
            Self::TooMany(most) => write!(
                out,
                "{most} executions of this organization have not ended, those included that others have started: wait for \
                 some to end, or cancel them"
            ),
            Self::NoOpenGate(why) => write!(out, "no gate is open for this: {why}"),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<LoadError> for EngineError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}
