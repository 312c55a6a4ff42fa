//! The failures of a store.

use std::fmt;

/// The reason why a store could not complete an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// A newer release wrote the store.
    Newer {
        /// The format of the store.
        found: u32,
        /// The newest format this build reads.
        readable: u32,
    },
    /// The store's files are damaged; the text names the frame if one is known.
    Damaged(String),
    /// No space, no permission, no such folder: the operating system's message, and the path.
    Unavailable(String),
}

/// The reason why a batch has no answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitError {
    /// Certainly nothing was written, because of the store: it is unreachable, full, or read-only. The same batch may
    /// succeed later.
    NotWritten(String),
    /// Certainly nothing was written, because of the batch: a row that contradicts it, or a value or size that the
    /// store rejects. Other parts may be written; the same batch would be refused again.
    Refused(String),
    /// Certainly nothing was written, because of a state shared with other writers: a lock that was not released in
    /// time, or a damaged row of a whole organization. Other parts may be written now, and the same parts later.
    Blocked(String),
    /// It may or may not be on disk: read the heads before any other commit.
    Unknown(String),
    /// The disk failed (fsync): nothing that this process assumes about it is certain.
    Fatal(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, readable } => write!(
                out,
                "the store has format {found} and this build reads up to {readable}: use the release that wrote it, or a newer one"
            ),
            Self::Damaged(what) => write!(out, "the store is damaged: {what}"),
            Self::Unavailable(why) => write!(out, "the store cannot be used: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritten(why) => write!(out, "nothing was written: {why}"),
            Self::Refused(why) => write!(out, "the store refused the write: {why}"),
            Self::Blocked(why) => write!(out, "nothing was written because of a lock or a concurrent change: {why}"),
            Self::Unknown(why) => write!(out, "whether it was written is unknown: {why}"),
            Self::Fatal(why) => write!(out, "the disk failed: {why}"),
        }
    }
}

impl std::error::Error for CommitError {}
