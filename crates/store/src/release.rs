//! The words of a release from quarantine.

use mainspring_kernel::key::ExecutionKey;

use crate::{Expected, Noted};

/// A release from quarantine.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The execution.
    pub execution: ExecutionKey,
    /// The execution that waits for it, if there is one.
    pub parent: Option<Awaiting<'a>>,
    /// What audit logs say of it.
    pub noted: Noted<'a>,
}

/// An execution that waits for another one.
#[derive(Debug, Clone, Copy)]
pub struct Awaiting<'a> {
    /// Which.
    pub execution: ExecutionKey,
    /// Its head when it was seen to wait.
    pub head: Expected,
    /// The id of the message by which it was told that the other one is quarantined.
    pub told: &'a str,
}

/// What became of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// It is released.
    Released,
    /// It is unknown, is not quarantined, or has ended; nothing is written.
    NotQuarantined,
    /// The execution that waited for it has gone on since it was looked at; nothing is written.
    ParentMoved,
}
