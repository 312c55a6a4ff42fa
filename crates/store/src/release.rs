//! The types of a release from quarantine.

use mainspring_kernel::key::ExecutionKey;

use crate::{Expected, Noted};

/// A release from quarantine.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The quarantined execution.
    pub execution: ExecutionKey,
    /// The execution that waits for it, if there is one.
    pub parent: Option<Awaiting<'a>>,
    /// The notes and audit entries of the release.
    pub noted: Noted<'a>,
}

/// An execution that waits for another one.
#[derive(Debug, Clone, Copy)]
pub struct Awaiting<'a> {
    /// Its key.
    pub execution: ExecutionKey,
    /// Its head at the time when it was seen to wait.
    pub head: Expected,
    /// The id of the message that told it of the other one's quarantine.
    pub told: &'a str,
}

/// The result of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The execution is released.
    Released,
    /// It is unknown, is not quarantined, or has ended; nothing was written.
    NotQuarantined,
    /// The waiting execution has advanced since its head was read; nothing was written.
    ParentMoved,
}
