//! The resources of a server other than executions. A few operations serve every kind of resource; the server defines the
//! content of their bodies.

use crate::{
    audit::{Audit, AuditEntry},
    budgets::Budgets,
    error::StoreError,
    read_limit::ReadLimit,
};

/// Maximum length of a kind, organization or id. Three of them fit into a third of a page, the limit of an index in
/// PostgreSQL. Names have no such limit.
pub const ID_BYTES_MAX: usize = 512;

/// Stores the resources of a server. Blocking, like [`Store`](crate::Store).
pub trait Catalogue: Audit + Budgets {
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

    /// Returns resources of all kinds and organizations, sorted by kind, organization and id, after the given one.
    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError>;

    /// Applies a change, all or nothing. Durable when it returns [`ChangeOutcome::Done`]. A key longer than [`ID_BYTES_MAX`]
    /// bytes is [`StoreError::Unavailable`].
    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError>;
}

/// Kind, organization and id of a resource.
pub type ResourceId = (String, String, String);

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

impl ResourceRow {
    /// Kind, organization and id.
    pub fn resource_id(&self) -> ResourceId {
        (self.kind.clone(), self.organization.clone(), self.id.clone())
    }
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
