//! Audit logs: chained entries, one log for each organization, with a sealed head.

use std::collections::BTreeMap;

use mainspring_kernel::{cbor::Writer, hash::Hash};

use crate::{error::StoreError, read_limit::ReadLimit};

/// Reads audit logs. Entries are written together with the changes that they describe.
pub trait Audit: Send + Sync {
    /// Returns an organization's audit log in order, after a number (0 for the first). The limit counts
    /// [`AuditRow::byte_count`].
    fn audit(&self, organization: &str, after: u64, limit: ReadLimit) -> Result<Vec<AuditRow>, StoreError>;

    /// Returns the head of an organization's audit log; `None` while it is empty.
    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError>;
}

/// One entry of an audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The organization whose log contains it.
    pub organization: String,
    /// Milliseconds since 1970; the largest storable time is 2^63-1.
    pub at: u64,
    /// The actor, as identified by the credential.
    pub actor: String,
    /// The action, as `workflow.update`.
    pub action: String,
    /// The object of the action.
    pub target: String,
    /// Details, as canonical CBOR. It contains no secrets, and no payloads except the reasons of decisions, since a log
    /// cannot be erased.
    pub detail: Vec<u8>,
}

/// An entry with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Counted from 1 in each organization's log, without gaps.
    pub number: u64,
    /// The entry as it was hashed.
    pub entry: AuditEntry,
    /// The hash of the previous hash and of all fields here.
    pub hash: Hash,
}

/// The end of a log, sealed with a key that is not in the store, so that a rewritten log is detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// The number of the last entry.
    pub number: u64,
    /// The hash of the last entry.
    pub hash: Hash,
    /// The keyed hash of both and of the organization.
    pub seal: Hash,
}

impl AuditRow {
    /// Makes the entry after a head, or the first one without a head.
    pub fn following(before: Option<&AuditHead>, entry: AuditEntry) -> Self {
        let (number, hash) = before.map_or((1, Hash::default()), |head| (head.number + 1, head.hash));
        // Normalized to a value that every store can return, since its hash must match after a read.
        let entry = AuditEntry { at: entry.at.min(i64::MAX as u64), ..entry };
        let hash = chained(hash, number, &entry);
        Self { number, entry, hash }
    }

    /// Bytes of the fields without a length limit: target and details.
    pub fn byte_count(&self) -> usize {
        self.entry.target.len() + self.entry.detail.len()
    }

    /// Returns whether it follows the entry with the hash `before`, which is all zeros for the first one.
    pub fn follows(&self, before: Hash) -> bool {
        chained(before, self.number, &self.entry) == self.hash
    }
}

impl AuditHead {
    /// Makes the sealed head of a log that ends with a row.
    pub fn sealed(key: &[u8; 32], row: &AuditRow) -> Self {
        let seal = seal(key, &row.entry.organization, row.number, row.hash);
        Self { number: row.number, hash: row.hash, seal }
    }

    /// Returns whether it was sealed with a key for an organization's log.
    pub fn is_sealed(&self, key: &[u8; 32], organization: &str) -> bool {
        seal(key, organization, self.number, self.hash).equals_in_constant_time(&self.seal)
    }
}

/// Chains entries to the heads of their logs, and updates the heads.
pub(crate) fn chain<'a>(
    heads: &mut BTreeMap<String, AuditHead>,
    sealing: &[u8; 32],
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> Vec<AuditRow> {
    let mut follow = |entry: &AuditEntry| {
        let row = AuditRow::following(heads.get(&entry.organization), entry.clone());
        heads.insert(entry.organization.clone(), AuditHead::sealed(sealing, &row));
        row
    };
    entries.into_iter().map(&mut follow).collect()
}

fn chained(before: Hash, number: u64, entry: &AuditEntry) -> Hash {
    let AuditEntry { organization, at, actor, action, target, detail } = entry;
    let mut writer = Writer::default();
    writer.array(9);
    writer.text("mainspring audit 1");
    writer.byte_string(&before.0);
    writer.unsigned(number);
    writer.text(organization);
    writer.unsigned(*at);
    [actor, action, target].into_iter().for_each(|text| writer.text(text));
    writer.byte_string(detail);
    Hash::of(&writer.bytes)
}

fn seal(key: &[u8; 32], organization: &str, number: u64, hash: Hash) -> Hash {
    let mut writer = Writer::default();
    writer.array(4);
    writer.text("mainspring audit head 1");
    writer.text(organization);
    writer.unsigned(number);
    writer.byte_string(&hash.0);
    Hash::keyed(key, &[&writer.bytes])
}
