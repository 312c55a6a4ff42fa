//! The keys that encrypt values in the store. The installation's key is the first one. The key file may have others, so
//! that the key changes while nodes run: all of them decrypt, and the primary one, which the store names, encrypts.

use std::{
    fmt,
    path::PathBuf,
    sync::{PoisonError, RwLock},
};

use mainspring_engine::keys;
use mainspring_kernel::hash::Hash;
use mainspring_store::Catalogue;

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{PRIMARY_KEY, PrimaryKey, repository::Repository},
};

/// Hexadecimal digits of the id of a key.
const ID_DIGITS: usize = 16;

/// The keys of this node.
pub struct EncryptionKeys {
    installation: [u8; 32],
    /// The key file; `None` for a node with the installation's key only.
    file: Option<PathBuf>,
    /// The other keys of the file when it was last read, the newest last.
    others: RwLock<Vec<[u8; 32]>>,
}

/// A key that encrypts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Identifies the key without revealing it.
    pub id: String,
    pub bytes: [u8; 32],
    /// True for the installation's key. Values from before there were others do not name it.
    pub is_installation: bool,
}

/// The keys with the one that encrypts now.
pub(crate) struct Sealer<'a> {
    pub keys: &'a EncryptionKeys,
    pub primary: Key,
}

impl Key {
    fn of(bytes: [u8; 32], is_installation: bool) -> Self {
        Self { id: key_id(&bytes), bytes, is_installation }
    }
}

/// Identifies a key without revealing it.
pub fn key_id(key: &[u8; 32]) -> String {
    Hash::keyed(key, &[b"mainspring secret key 1"]).hex()[..ID_DIGITS].to_owned()
}

impl EncryptionKeys {
    /// The installation's key, and the others of a file. The file is read again when a value names a key that is not
    /// known, so that a key which was added to it needs no restart.
    pub fn new(installation: [u8; 32], file: Option<PathBuf>) -> Self {
        Self { installation, file, others: RwLock::default() }
    }

    /// The installation's key only.
    pub fn of_installation(installation: [u8; 32]) -> Self {
        Self::new(installation, None)
    }

    /// The installation's key.
    pub(crate) fn installation(&self) -> &[u8; 32] {
        &self.installation
    }

    /// The key with an id. `None` if this node does not have it.
    pub(crate) fn find(&self, id: &str) -> Option<Key> {
        self.known(id).or_else(|| {
            self.read_file().ok()?;
            self.known(id)
        })
    }

    /// All keys of the file as it is now, the newest last.
    pub(crate) fn all(&self) -> Result<Vec<Key>> {
        self.read_file()?;
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let others = others.iter().map(|bytes| Key::of(*bytes, false));
        Ok([Key::of(self.installation, true)].into_iter().chain(others).collect())
    }

    /// The key that encrypts now: the one that the store names, or the installation's key.
    pub(crate) fn primary(&self, catalogue: &dyn Catalogue) -> Result<Key> {
        let Some(stored) = Repository::of(catalogue, "").get::<PrimaryKey>(PRIMARY_KEY)? else {
            return Ok(Key::of(self.installation, true));
        };
        let id = stored.body.key_id;
        self.find(&id).ok_or_else(|| {
            let message = format!(
                "This node lacks the encryption key {id}, so it cannot store secrets: copy the key file of a node that \
                 has it."
            );
            Problem::new(Code::Unavailable, message)
        })
    }

    /// The installation's key as the one that encrypts, for values that are not stored.
    pub(crate) fn unstored_sealer(&self) -> Sealer<'_> {
        Sealer { keys: self, primary: Key::of(self.installation, true) }
    }

    fn known(&self, id: &str) -> Option<Key> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let others = others.iter().map(|bytes| Key::of(*bytes, false));
        [Key::of(self.installation, true)].into_iter().chain(others).find(|key| key.id == id)
    }

    /// Reads the file. Keys that are no longer in it stay known until the process ends: a value that is being stored may
    /// still be encrypted with one.
    fn read_file(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let read = keys::encryption_keys(file).map_err(|error| {
            Problem::new(Code::InternalError, "The key file of this node cannot be read.").because(error)
        })?;
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let mut kept: Vec<[u8; 32]> = others.iter().filter(|key| !read.contains(key)).copied().collect();
        kept.extend(read);
        *others = kept;
        Ok(())
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EncryptionKeys")
    }
}
