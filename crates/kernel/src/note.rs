//! Notes: sealed statements about a journal that stand beside it.
//!
//! A journal is only appended to. An erasure, and an end that an operator forces on an execution whose journal cannot be
//! folded, have no place in it. Each is a note that is sealed with the installation's key, so that nobody who has only the
//! store can write one, change one, or move one to another execution, frame or value.

use alloc::string::String;

use crate::{cbor::Writer, hash::Hash, key::ExecutionKey};

/// A sealed statement about an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The execution.
    pub execution: ExecutionKey,
    /// What is stated.
    pub subject: Subject,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The user who asked for it.
    pub by: String,
    /// The reason that the user gave.
    pub reason: String,
    /// Authenticates all of the above with a key that is not in the store.
    pub seal: Hash,
}

/// The statement of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A value was erased.
    Erased {
        /// The frame.
        sequence: u64,
        /// The place among the frame's values.
        place: u64,
    },
    /// The execution was ended from outside of its journal.
    Ended,
}

impl Note {
    /// A note that is sealed with `key`.
    pub fn sealed(
        key: &[u8; 32],
        execution: ExecutionKey,
        subject: Subject,
        at: u64,
        by: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (by, reason) = (by.into(), reason.into());
        // Stores keep times up to 2^63-1.
        let at = at.min(i64::MAX as u64);
        let mut note = Self { execution, subject, at, by, reason, seal: Hash::default() };
        note.seal = note.seal_of(key);
        note
    }

    /// Whether the note was sealed with `key`.
    pub fn is_sealed_by(&self, key: &[u8; 32]) -> bool {
        self.seal_of(key).equals_in_constant_time(&self.seal)
    }

    fn seal_of(&self, key: &[u8; 32]) -> Hash {
        let (kind, sequence, place) = match self.subject {
            Subject::Erased { sequence, place } => ("erased", sequence, place),
            Subject::Ended => ("ended", 0, 0),
        };
        let mut writer = Writer::default();
        writer.array(8);
        writer.text("mainspring note 1");
        writer.byte_string(&self.execution.0);
        writer.text(kind);
        [sequence, place, self.at].into_iter().for_each(|number| writer.unsigned(number));
        writer.text(&self.by);
        writer.text(&self.reason);
        Hash::keyed(key, &[&writer.bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_bound_to_everything_it_says() {
        let (key, execution) = ([1; 32], ExecutionKey([2; 16]));
        let subject = Subject::Erased { sequence: 3, place: 4 };
        let note = Note::sealed(&key, execution, subject, 5, "ada", "request 17");
        assert!(note.is_sealed_by(&key) && !note.is_sealed_by(&[9; 32]));
        let changed = [
            Note { execution: ExecutionKey([3; 16]), ..note.clone() },
            Note { subject: Subject::Ended, ..note.clone() },
            Note { subject: Subject::Erased { sequence: 4, place: 4 }, ..note.clone() },
            Note { subject: Subject::Erased { sequence: 3, place: 5 }, ..note.clone() },
            Note { at: 6, ..note.clone() },
            Note { by: "adar".into(), reason: "equest 17".into(), ..note.clone() },
            Note { reason: String::new(), ..note.clone() },
            Note { seal: Hash::default(), ..note },
        ];
        assert!(changed.iter().all(|note| !note.is_sealed_by(&key)), "{changed:?}");
    }
}
