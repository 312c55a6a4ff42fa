//! The catalogue of a server: its resources other than executions, and the audit log. A few operations serve every kind
//! of resource; the server defines the content of their bodies.

use std::collections::BTreeMap;

use mainspring_kernel::{cbor::Writer, hash::Hash};

use crate::{ReadLimit, StoreError};

/// Maximum length of a kind, organization or id. Three of them fit into a third of a page, the limit of an index in
/// PostgreSQL. Names have no such limit.
pub const ID_BYTES_MAX: usize = 512;

/// Stores the resources of a server. Blocking, like [`Store`](crate::Store).
pub trait Catalogue: Send + Sync {
    /// Returns one resource, if it exists.
    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError>;

    /// Returns the resource of a kind and an organization that has a unique name.
    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError>;

    /// Returns resources of one kind and one organization, sorted by id, at most [`ResourceResourceQuery::limit`], which counts the
    /// bytes of their bodies.
    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError>;

    /// Applies a change, all or nothing. Durable when it returns [`ChangeOutcome::Done`]. A key longer than [`ID_BYTES_MAX`]
    /// bytes is [`StoreError::Unavailable`].
    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError>;

    /// Returns an organization's audit log in order, after a number (0 for the first). The bound counts
    /// [`AuditRow::byte_count`].
    fn audit(&self, organization: &str, after: u64, bound: ReadLimit) -> Result<Vec<AuditRow>, StoreError>;

    /// Returns the head of an organization's audit log; `None` while it is empty.
    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError>;
}

/// A resource of the catalogue. Kind, organization and id together identify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its kind: `workflow`, `token`, …
    pub kind: String,
    /// Its organization; empty for a resource of the installation.
    pub organization: String,
    /// Its id, unique within kind and organization.
    pub id: String,
    /// The number of times that it was written, from 1; it continues after a removal. Ignored in [`Put::resource`].
    pub version: u64,
    /// Other names by which it is found, sorted by field and value when read. No two have the same field and value.
    pub keys: Vec<ResourceKey>,
    /// All other data, in the format of its kind.
    pub body: Vec<u8>,
}

/// Another name of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKey {
    /// The kind of name.
    pub field: String,
    /// The name.
    pub value: String,
    /// True if no other resource of its kind and organization may have it as a unique one.
    pub is_unique: bool,
}

/// Selects resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceQuery {
    /// Their kind.
    pub kind: String,
    /// Their organization.
    pub organization: String,
    /// Only those with this name, unique or not: field and value.
    pub key: Option<(String, String)>,
    /// Only those after this id, in the requested order.
    pub after: Option<String>,
    /// True to sort the largest id first. Ids are compared by their bytes.
    pub is_descending: bool,
    /// The bound of the read.
    pub limit: ReadLimit,
}

/// Changes that are applied together: resources are removed first, then written. All versions are checked before any
/// name. Names that a resource loses in the change are free for other resources of the change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Resources to remove, with their names. A resource that does not exist is a conflict.
    pub removals: Vec<Removal>,
    /// Resources to create or update.
    pub puts: Vec<Put>,
    /// Audit entries, written only together with the rest.
    pub audit: Vec<AuditEntry>,
    /// The key that seals the heads of audit logs.
    pub sealing: [u8; 32],
}

/// A resource to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Its version is ignored.
    pub resource: ResourceRow,
    /// Its current version; 0 if it must not exist.
    pub expected: u64,
}

/// A resource to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// As [`ResourceRow::kind`].
    pub kind: String,
    /// Its organization; empty for a resource of the installation.
    pub organization: String,
    /// Its id, unique within kind and organization.
    pub id: String,
    /// Its current version; `None` for any.
    pub expected: Option<u64>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is on disk.
    Done,
    /// Nothing was written: the resource of this id has another version, does not exist, or exists already. The first
    /// such one, removals before updates.
    Conflict {
        /// The id of the first such resource.
        id: String,
    },
    /// Nothing was written: another resource has a name that must be unique. The first such name.
    KeyTaken {
        /// The id of the resource that should get it.
        id: String,
        /// The kind of name.
        field: String,
    },
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

/// Sorts names as they are returned by reads.
pub(crate) fn in_order(names: &[ResourceKey]) -> Vec<ResourceKey> {
    let mut names = names.to_vec();
    names.sort_by(|a, b| (&a.field, &a.value, b.is_unique).cmp(&(&b.field, &b.value, a.is_unique)));
    names.dedup_by(|a, b| (&a.field, &a.value) == (&b.field, &b.value));
    names
}

/// Rejects keys that are too long for an index.
pub(crate) fn check_lengths(change: &Change) -> Result<(), StoreError> {
    let removed = change.removals.iter().map(|removal| [&removal.kind, &removal.organization, &removal.id]);
    let put = change.puts.iter().map(|put| [&put.resource.kind, &put.resource.organization, &put.resource.id]);
    match removed.chain(put).flatten().find(|word| word.len() > ID_BYTES_MAX) {
        None => Ok(()),
        Some(word) => Err(StoreError::Unavailable(format!(
            "a kind, organization or id of {} bytes is longer than {ID_BYTES_MAX}: choose a shorter one",
            word.len()
        ))),
    }
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
