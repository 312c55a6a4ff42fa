//! The form in which a journal lies in a store: frames, the values beside them, and the head of their chain.

use alloc::vec::Vec;

use crate::{hash::Hash, key::ExecutionKey};

/// One row of a journal. The store keeps it as it is; only the kernel can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFrame {
    /// Place in the journal, from 0.
    pub sequence: u64,
    /// The frame in deterministic CBOR. The chain runs over these bytes.
    pub frame: Vec<u8>,
    /// The payloads that the frame names by salted hash, in the order in which it first names them.
    pub values: Vec<StoredValue>,
}

impl StoredFrame {
    /// How much there is of it.
    pub fn byte_count(&self) -> usize {
        let bodies = self.values.iter().filter_map(|value| value.body.as_ref());
        self.frame.len() + bodies.map(Vec::len).sum::<usize>()
    }
}

/// A payload. Its hash in the frame is that of the salt followed by the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// Random, and gone with the body: a value that was erased cannot be guessed and confirmed.
    pub salt: [u8; 16],
    /// The value in deterministic CBOR, or nothing once it was erased (the salt is zeros then).
    pub body: Option<Vec<u8>>,
}

/// Where a journal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last frame's sequence.
    pub sequence: u64,
    /// The last frame's hash.
    pub hash: Hash,
    /// Authenticates the two above and the execution with a key that is not in the store.
    pub seal: Hash,
}

impl Head {
    /// The head after a frame, sealed with `key`.
    pub fn sealed(key: &[u8; 32], execution: ExecutionKey, sequence: u64, hash: Hash) -> Self {
        Self { sequence, hash, seal: Self::seal_of(key, execution, sequence, hash) }
    }

    /// Whether the seal is that of `key`.
    pub fn is_sealed_by(&self, key: &[u8; 32], execution: ExecutionKey) -> bool {
        Self::seal_of(key, execution, self.sequence, self.hash).equals_in_constant_time(&self.seal)
    }

    fn seal_of(key: &[u8; 32], execution: ExecutionKey, sequence: u64, hash: Hash) -> Hash {
        Hash::keyed(key, &[b"mainspring head 1", &execution.0, &sequence.to_be_bytes(), &hash.0])
    }
}
