//! The types of a release from quarantine.

use mainspring_kernel::key::ExecutionKey;

use crate::{AuditedNotes, Expected};

/// A release from quarantine.
#[derive(Debug, Clone)]
pub struct QuarantineRelease<'a> {
    /// The quarantined execution.
    pub execution: ExecutionKey,
    /// The execution that waits for it, if there is one.
    pub parent: Option<AwaitingParent<'a>>,
    /// The notes and audit entries of the release.
    pub audited: AuditedNotes<'a>,
}

/// An execution that waits for another one.
#[derive(Debug, Clone, Copy)]
pub struct AwaitingParent<'a> {
    /// Its key.
    pub execution: ExecutionKey,
    /// Its head at the time when it was seen to wait.
    pub head: Expected,
    /// The id of the message that notice it of the other one's quarantine.
    pub notice: &'a str,
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The execution is released.
    Released,
    /// It is unknown, is not quarantined, or has ended; nothing was written.
    NotQuarantined,
    /// The waiting execution has advanced since its head was read; nothing was written.
    ParentMoved,
}
