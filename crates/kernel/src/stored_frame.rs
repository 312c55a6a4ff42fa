//! The form of a journal in a store: frames, the values beside them, and the head of the hash chain.
//!
//! Stores copy these types byte for byte and do not interpret them. `frame` writes and reads the bytes.

use alloc::vec::Vec;

use crate::{hash::Hash, key::ExecutionKey};

/// One frame of a journal, as a row of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFrame {
    /// Position in the journal, from 0.
    pub sequence: u64,
    /// The frame in deterministic CBOR. These bytes are hashed.
    pub frame: Vec<u8>,
    /// The payloads that the frame refers to by salted hash, in the order of their first reference.
    pub values: Vec<StoredValue>,
}

impl StoredFrame {
    /// Returns the size of the frame and its values, in bytes.
    pub fn byte_count(&self) -> usize {
        let bodies = self.values.iter().filter_map(|value| value.body.as_ref());
        self.frame.len() + bodies.map(Vec::len).sum::<usize>()
    }
}

/// A payload. The frame refers to it by the hash of the salt followed by the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// Random bytes, erased together with the body. Without them an erased value cannot be confirmed by guessing.
    pub salt: [u8; 16],
    /// The value in deterministic CBOR. `None` if it was erased; the salt is then all zeros.
    pub body: Option<Vec<u8>>,
}

/// The head of a journal: its last frame, authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Sequence of the last frame.
    pub sequence: u64,
    /// Hash of the last frame.
    pub hash: Hash,
    /// HMAC over the execution key and both fields above. Its key is not in the store.
    pub seal: Hash,
}

impl Head {
    /// Creates the head for a last frame, authenticated with `key`.
    pub fn sealed(key: &[u8; 32], execution: ExecutionKey, sequence: u64, hash: Hash) -> Self {
        Self { sequence, hash, seal: Self::seal_of(key, execution, sequence, hash) }
    }

    /// True if the head was authenticated with `key`.
    pub fn is_sealed_by(&self, key: &[u8; 32], execution: ExecutionKey) -> bool {
        Self::seal_of(key, execution, self.sequence, self.hash).equals_in_constant_time(&self.seal)
    }

    fn seal_of(key: &[u8; 32], execution: ExecutionKey, sequence: u64, hash: Hash) -> Hash {
        Hash::keyed(key, &[b"mainspring head 1", &execution.0, &sequence.to_be_bytes(), &hash.0])
    }
}
