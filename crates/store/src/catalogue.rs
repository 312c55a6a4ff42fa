//! The catalogue of a server: what must be listed and searched beside executions, and the audit log. One handful of
//! verbs for every noun; what a noun's body says is its owner's to know.

use std::collections::BTreeMap;

use mainspring_kernel::{cbor::Writer, hash::Hash};

use crate::{Most, StoreError};

/// The longest noun, organisation or id of a thing: three of them fit into a third of a page, which is what an index of
/// PostgreSQL takes. Names may be as long as they like.
pub const ID_BYTES_MAX: usize = 512;

/// What keeps a server's things. Blocking, as [`Store`](crate::Store) is.
pub trait Catalogue: Send + Sync {
    /// One thing, if it is there.
    fn item(&self, noun: &str, organization: &str, id: &str) -> Result<Option<Item>, StoreError>;

    /// The one thing of a noun and an organisation that carries a unique name.
    fn item_named(&self, noun: &str, organization: &str, field: &str, value: &str) -> Result<Option<Item>, StoreError>;

    /// Things of one noun and one organisation, by their ids, at most [`Query::most`]. Their bytes are those of their bodies.
    fn items(&self, query: &Query) -> Result<Vec<Item>, StoreError>;

    /// Makes a change true, all of it or nothing. Durable when this returns [`Changed::Done`]. Whatever it names with more
    /// than [`ID_BYTES_MAX`] bytes is [`StoreError::Unavailable`].
    fn change(&self, change: &Change) -> Result<Changed, StoreError>;

    /// An organisation's audit log from behind a number on (0 for the first), in order. Its bytes are those of
    /// [`AuditRow::byte_count`].
    fn audit(&self, organization: &str, after: u64, most: Most) -> Result<Vec<AuditRow>, StoreError>;

    /// Where an organisation's audit log ends; `None` while it is empty.
    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError>;
}

/// A thing of the catalogue. Noun, organisation and id together name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is: `workflow`, `token`, …
    pub noun: String,
    /// Whose it is; empty for what belongs to the installation.
    pub organization: String,
    /// Its name among those.
    pub id: String,
    /// How often it was put, from 1; also when it was removed and is put again. What [`Put::item`] says here is not looked
    /// at.
    pub version: u64,
    /// Other names by which it is found, read back by field and value. No two of one field and value.
    pub names: Vec<Name>,
    /// All else, in the form of its noun.
    pub body: Vec<u8>,
}

/// Another name of a thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// What kind of name.
    pub field: String,
    /// The name.
    pub value: String,
    /// Whether no other thing of its noun and organisation may carry it as a unique one.
    pub is_unique: bool,
}

/// Which things.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// What they are.
    pub noun: String,
    /// Whose they are.
    pub organization: String,
    /// Only those that carry this name, unique or not: field and value.
    pub name: Option<(String, String)>,
    /// Only those behind this id, in the order asked for.
    pub after: Option<String>,
    /// Whether the largest id comes first. Ids are compared by their bytes.
    pub is_descending: bool,
    /// At most so much.
    pub most: Most,
}

/// What is made true together, in this order: things are removed first, then put. All versions are looked at before any
/// name; the names that a thing had and has no more are free for the others of the same change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Things that go, with their names. One that is not there any more is a conflict.
    pub removals: Vec<Removal>,
    /// Things that come, or are changed.
    pub puts: Vec<Put>,
    /// What the audit log says of it. Written only with the rest.
    pub audit: Vec<AuditEntry>,
    /// What the heads of audit logs are sealed with.
    pub sealing: [u8; 32],
}

/// A thing to put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The thing.
    pub item: Item,
    /// The version that it is to have until now: 0 if it must not be there.
    pub expected: u64,
}

/// A thing to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// What it is.
    pub noun: String,
    /// Whose it is.
    pub organization: String,
    /// Its name among those.
    pub id: String,
    /// The version that it is to have until now; `None` for whichever it has.
    pub expected: Option<u64>,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// It is on disk.
    Done,
    /// Nothing was written: the thing of this id has another version, is not there, or is there already. The first such
    /// one, removals before puts.
    Conflict {
        /// Which thing.
        id: String,
    },
    /// Nothing was written: another thing carries a name that must be unique. The first such name.
    NameTaken {
        /// The thing that was to carry it.
        id: String,
        /// What kind of name.
        field: String,
    },
}

/// What the audit log says of one act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// In whose log.
    pub organization: String,
    /// When, in milliseconds since 1970. A time above 2^63-1 is kept as that.
    pub at: u64,
    /// Who, by the credential.
    pub actor: String,
    /// What was done, as `workflow.update`.
    pub action: String,
    /// To what.
    pub target: String,
    /// More about it, as canonical CBOR. No secrets, and no payloads but the reasons of decisions: a log cannot be erased.
    pub detail: Vec<u8>,
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Counted from 1 in each organisation's log, without gaps.
    pub number: u64,
    /// The entry.
    pub entry: AuditEntry,
    /// Of the hash before it and of everything here.
    pub hash: Hash,
}

/// Where a log ends. Sealed with a key that is not in the store, so that a log which was written anew is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// The last entry.
    pub number: u64,
    /// Its hash.
    pub hash: Hash,
    /// The keyed hash of both and of whose log it is.
    pub seal: Hash,
}

impl AuditRow {
    /// The entry that follows a head; the first, if there is none.
    pub fn following(before: Option<&AuditHead>, entry: AuditEntry) -> Self {
        let (number, hash) = before.map_or((1, Hash::default()), |head| (head.number + 1, head.hash));
        // As it can be read back from every store: otherwise its hash would be of something else.
        let entry = AuditEntry { at: entry.at.min(i64::MAX as u64), ..entry };
        let hash = chained(hash, number, &entry);
        Self { number, entry, hash }
    }

    /// How much there is of what may be of any length: the target, and what is said about it.
    pub fn byte_count(&self) -> usize {
        self.entry.target.len() + self.entry.detail.len()
    }

    /// Whether it is what followed `before`, which is all zeros for the first.
    pub fn follows(&self, before: Hash) -> bool {
        chained(before, self.number, &self.entry) == self.hash
    }
}

impl AuditHead {
    /// The head of a log that ends with a row.
    pub fn sealed(key: &[u8; 32], row: &AuditRow) -> Self {
        let seal = seal(key, &row.entry.organization, row.number, row.hash);
        Self { number: row.number, hash: row.hash, seal }
    }

    /// Whether it was sealed with a key for an organisation's log.
    pub fn is_sealed(&self, key: &[u8; 32], organization: &str) -> bool {
        seal(key, organization, self.number, self.hash).equals_in_constant_time(&self.seal)
    }
}

/// Entries as the rows that follow the heads of their logs, each of which becomes that of its log's last row.
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

/// Names as they are read back.
pub(crate) fn in_order(names: &[Name]) -> Vec<Name> {
    let mut names = names.to_vec();
    names.sort_by(|a, b| (&a.field, &a.value, b.is_unique).cmp(&(&b.field, &b.value, a.is_unique)));
    names.dedup_by(|a, b| (&a.field, &a.value) == (&b.field, &b.value));
    names
}

/// Refuses what no index takes.
pub(crate) fn check_lengths(change: &Change) -> Result<(), StoreError> {
    let removed = change.removals.iter().map(|removal| [&removal.noun, &removal.organization, &removal.id]);
    let put = change.puts.iter().map(|put| [&put.item.noun, &put.item.organization, &put.item.id]);
    match removed.chain(put).flatten().find(|word| word.len() > ID_BYTES_MAX) {
        None => Ok(()),
        Some(word) => Err(StoreError::Unavailable(format!(
            "a noun, organisation or id of {} bytes is longer than {ID_BYTES_MAX}: choose a shorter one",
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
