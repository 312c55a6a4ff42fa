//! Notes: authenticated statements about a journal, stored beside it.
//!
//! A journal is append-only. Two facts cannot become records in it: that a value was erased, and that an operator ended
//! an execution whose journal cannot be replayed. Each is a note, authenticated with the installation's key. Access to
//! the store alone is not enough to forge a note, to change one, or to move one to another execution, frame or value.

use alloc::string::String;

use crate::{cbor::Writer, hash::Hash, key::ExecutionKey};

/// An authenticated statement about an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The execution beside whose journal the note is.
    pub execution: ExecutionKey,
    /// The statement.
    pub subject: Subject,
    /// Time of the statement, in milliseconds since 1970.
    pub at: u64,
    /// User id of the operator.
    pub by: String,
    /// Reason given by the operator.
    pub reason: String,
    /// HMAC over all of the above. Its key is not in the store.
    pub seal: Hash,
}

/// The content of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A value was erased.
    Erased {
        /// Sequence of the frame in the journal.
        sequence: u64,
        /// Index of the value within the frame.
        place: u64,
    },
    /// An operator ended the execution without a record in its journal.
    Ended,
}

impl Note {
    /// Creates a note authenticated with `key`.
    pub fn sealed(
        key: &[u8; 32],
        execution: ExecutionKey,
        subject: Subject,
        at: u64,
        by: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (by, reason) = (by.into(), reason.into());
        // Stores keep times as signed 64-bit numbers.
        let at = at.min(i64::MAX as u64);
        let mut note = Self { execution, subject, at, by, reason, seal: Hash::default() };
        note.seal = note.seal_of(key);
        note
    }

    /// True if the note was authenticated with `key`.
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
    fn the_seal_of_a_note_covers_all_of_its_fields() {
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
