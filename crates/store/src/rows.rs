//! Types that operations of several areas share.

use std::sync::Arc;

use mainspring_kernel::{hash::Hash, note::Note};

use crate::audit::AuditEntry;

/// A compiled plan, stored once under its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlan {
    /// The hash of the bytes.
    pub hash: Hash,
    /// The plan in the kernel's encoding.
    pub bytes: Arc<[u8]>,
}

/// A receipt that came too late to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReceipt {
    /// The time of its arrival, in milliseconds since 1970.
    pub at: u64,
    /// An input in the kernel's encoding; empty once it was erased.
    pub body: Vec<u8>,
    /// The proof of its signature, erased with the body. A commit ignores it and writes that of
    /// [`Signed`](crate::Signed).
    pub proof: Option<Vec<u8>>,
}

impl LateReceipt {
    /// Decodes a row: an erased receipt is overwritten with zeros, with which no input starts.
    pub(crate) fn of_row(at: u64, body: Vec<u8>, proof: Option<Vec<u8>>) -> Self {
        match body.iter().all(|byte| *byte == 0) {
            true => Self { at, body: Vec::new(), proof: None },
            false => Self { at, body, proof },
        }
    }
}

/// The public part of an executor key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredExecutorKey {
    /// The id of the key.
    pub id: Hash,
    /// The certificate, in the encoding of its producer.
    pub certificate: Arc<[u8]>,
}

/// The head on which a part was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The sequence of the last frame.
    pub sequence: u64,
    /// The hash of the last frame, which covers all earlier ones.
    pub hash: Hash,
}

/// Notes to store, with their audit entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditedNotes<'a> {
    /// The notes, all of one execution.
    pub notes: &'a [Note],
    /// Audit entries that are written together with the notes.
    pub audit: &'a [AuditEntry],
    /// The key that seals the heads of audit logs.
    pub sealing: [u8; 32],
}

impl<'a> AuditedNotes<'a> {
    /// Makes notes without audit entries.
    pub fn of(notes: &'a [Note]) -> Self {
        Self { notes, audit: &[], sealing: [0; 32] }
    }
}
