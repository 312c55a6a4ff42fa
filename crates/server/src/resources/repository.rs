//! Typed repository over the catalogue of the store: encodes resources, reads them by id or index, and lists them in
//! pages.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{
    AuditEntry, Catalogue, Change, ChangeOutcome, Put, ReadLimit, Removal, ResourceKey, ResourceQuery, ResourceRow,
    SEAL_BYTES,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    auth::caller::Caller,
    http::{
        body::Tag,
        pagination::{PAGE_MAX, Page},
        problem::{Code, Problem, Result},
    },
};

/// A type of resource: its stored form.
pub trait Resource: Serialize + DeserializeOwned {
    /// ResourceKey of the type in the store.
    const KIND: &'static str;
    /// ResourceKey of the type in error messages.
    const DISPLAY_NAME: &'static str;

    /// Index entries of the resource: field, value, and true for a unique one.
    fn names(&self) -> Vec<(&'static str, String, bool)>;
}

/// A stored resource.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// Unique among the resources of this type in the organization.
    pub id: String,
    /// Version, incremented by each change.
    pub version: u64,
    /// The stored form.
    pub body: T,
}

/// Resources with an ETag, which several clients may change.
pub trait Versioned: Resource {
    /// Time of creation in milliseconds since 1970.
    fn created_at(&self) -> u64;
}

impl<T: Versioned> Stored<T> {
    /// The ETag, for `If-Match`.
    pub(crate) fn tag(&self) -> Tag {
        Tag::new(self.version, self.body.created_at())
    }
}

/// The repository of one organization; the empty id is the installation.
#[derive(Clone, Copy)]
pub struct Repository<'a> {
    catalogue: &'a dyn Catalogue,
    organization: &'a str,
}

impl<'a> Repository<'a> {
    /// The repository of an organization.
    pub fn of(catalogue: &'a dyn Catalogue, organization: &'a str) -> Self {
        Self { catalogue, organization }
    }

    /// Id of the organization; empty for the installation.
    pub fn organization(self) -> &'a str {
        self.organization
    }

    /// Reads a resource by its id.
    pub fn get<T: Resource>(self, id: &str) -> Result<Option<Stored<T>>> {
        self.catalogue.resource(T::KIND, self.organization, id)?.map(read).transpose()
    }

    /// Reads a resource by its id; a missing one is a 404.
    pub fn require<T: Resource>(self, id: &str) -> Result<Stored<T>> {
        self.get(id)?.ok_or_else(|| Problem::not_found(T::DISPLAY_NAME))
    }

    /// Reads a resource by a unique index entry.
    pub fn find_by_name<T: Resource>(self, field: &str, value: &str) -> Result<Option<Stored<T>>> {
        self.catalogue.resource_by_key(T::KIND, self.organization, field, value)?.map(read).transpose()
    }

    /// Reads a page of resources in the order of their ids.
    pub fn list<T: Resource>(self, listing: Listing) -> Result<Page<Stored<T>>> {
        let Listing { name, after, is_descending, most } = listing;
        let name = name.map(|(field, value)| (field.to_string(), value));
        let (kind, organization) = (T::KIND.to_string(), self.organization.to_string());
        let found = self.catalogue.resources(&ResourceQuery {
            kind,
            organization,
            key: name,
            after,
            is_descending,
            limit: most,
        })?;
        let mut page = Page::new(most);
        for item in found {
            // The store counts the seal as well. A smaller sum would take a page that the store has cut for the last one.
            let bytes = item.body.len() + SEAL_BYTES;
            page.add(read(item)?, bytes);
        }
        Ok(page)
    }

    /// Iterates over all resources of a type, optionally with an index entry. One page is in memory at a time, so keep
    /// only the needed part of each.
    pub fn all<T: Resource>(self, name: Option<(&'static str, String)>) -> All<'a, T> {
        self.each(name, ReadLimit::of(PAGE_MAX))
    }

    fn each<T: Resource>(self, name: Option<(&'static str, String)>, most: ReadLimit) -> All<'a, T> {
        let next = Some(Listing { name, most, ..Listing::default() });
        All { repository: self, page: Vec::new().into_iter(), next }
    }

    /// A write that replaces version `expected`; 0 to create.
    pub fn put<T: Resource>(self, id: &str, body: &T, expected: u64) -> Result<Put> {
        let name =
            |(field, value, is_unique): (&str, String, bool)| ResourceKey { field: field.into(), value, is_unique };
        let encoded = serde_json::to_vec(body).map_err(|error| {
            Problem::new(Code::InternalError, format!("The {} cannot be stored: {error}.", T::DISPLAY_NAME))
        })?;
        let item = ResourceRow {
            kind: T::KIND.into(),
            organization: self.organization.into(),
            id: id.into(),
            version: expected + 1,
            keys: body.names().into_iter().map(name).collect(),
            body: encoded,
        };
        Ok(Put { resource: item, expected })
    }

    /// A removal of the version that was read.
    pub fn removal<T: Resource>(self, stored: &Stored<T>) -> Removal {
        Removal {
            kind: T::KIND.into(),
            organization: self.organization.into(),
            id: stored.id.clone(),
            expected: Some(stored.version),
        }
    }
}

/// Selection and order of a list.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Only resources with this index entry: field and value.
    pub name: Option<(&'static str, String)>,
    /// Only resources behind this id.
    pub after: Option<String>,
    /// Descending order of ids.
    pub is_descending: bool,
    /// Bounds of the page.
    pub most: ReadLimit,
}

/// Iterator over resources in the order of their ids, page by page.
pub struct All<'a, T> {
    repository: Repository<'a>,
    page: std::vec::IntoIter<Stored<T>>,
    /// The next page; `None` at the end.
    next: Option<Listing>,
}

impl<T: Resource> Iterator for All<'_, T> {
    type Item = Result<Stored<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(stored) = self.page.next() {
                return Some(Ok(stored));
            }
            let listing = self.next.take()?;
            let page = match self.repository.list::<T>(listing.clone()) {
                Ok(page) => page,
                Err(problem) => return Some(Err(problem)),
            };
            let after = page.next_cursor(|last| last.id.clone());
            self.next = after.map(|after| Listing { after: Some(after), ..listing });
            self.page = page.rows.into_iter();
        }
    }
}

fn read<T: Resource>(item: ResourceRow) -> Result<Stored<T>> {
    let body = serde_json::from_slice(&item.body).map_err(|error| {
        let message = format!("The stored {} `{}` cannot be read: {error}.", T::DISPLAY_NAME, item.id);
        Problem::new(Code::InternalError, message)
    })?;
    Ok(Stored { id: item.id, version: item.version, body })
}

/// Commits a change. The inner `Err` names the resource with a concurrent change, or the taken index entry.
pub fn apply(catalogue: &dyn Catalogue, change: &Change) -> Result<Result<(), ChangeOutcome>> {
    match catalogue.change(change)? {
        ChangeOutcome::Done => Ok(Ok(())),
        other => Ok(Err(other)),
    }
}

/// Commits a change, which is prepared again after each conflict with a concurrent change, up to `tries` times.
pub fn with_retries<T>(
    catalogue: &dyn Catalogue,
    tries: usize,
    mut prepare: impl FnMut() -> Result<(Change, T)>,
) -> Result<T> {
    for _ in 0..tries {
        let (change, done) = prepare()?;
        if apply(catalogue, &change)?.is_ok() {
            return Ok(done);
        }
    }
    Err(Problem::concurrent_change())
}

/// An audit entry for an action of the caller, with the credential and the member who created it for another. It contains
/// no secrets and no payloads, because the log cannot be erased; only the reasons of decisions are meant for it.
pub fn entry(caller: &Caller, action: &str, target: &str, detail: Value) -> AuditEntry {
    // Names the credential, so that one created by an admin is distinguished from the member's own.
    let mut map = detail.as_map().cloned().unwrap_or_default();
    map.insert("by".into(), caller.token.as_str().into());
    map.extend(caller.made_by_detail().map(|(key, maker)| (key.into(), maker)));
    let detail = Value::Map(map);
    AuditEntry {
        organization: caller.organization.clone(),
        at: now_ms(),
        actor: caller.user.clone(),
        action: action.into(),
        target: target.into(),
        detail: cbor::encode(&detail),
    }
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Stone(String);

    impl Resource for Stone {
        const KIND: &'static str = "stone";
        const DISPLAY_NAME: &'static str = "stone";

        fn names(&self) -> Vec<(&'static str, String, bool)> {
            vec![("first letter", self.0[..1].into(), false)]
        }
    }

    /// Stones named by their position. Every third one has a kilobyte and another first letter.
    fn stones(count: usize) -> MemoryStore {
        let store = MemoryStore::new();
        let repository = Repository::of(&store, "o");
        let stone = |place| Stone(if place % 3 == 2 { "b".repeat(1000) } else { "a".into() });
        let puts = (0..count).map(|place| repository.put(&format!("{place:03}"), &stone(place), 0).unwrap()).collect();
        assert_eq!(apply(&store, &Change { puts, ..Change::default() }), Ok(Ok(())));
        store
    }

    #[test]
    fn pages_together_are_the_whole_list() {
        let store = stones(10);
        let pages = |rows: usize, bytes: usize, is_descending: bool| {
            let (mut pages, mut after): (Vec<Vec<String>>, _) = (Vec::new(), None);
            loop {
                let listing = Listing { name: None, after, is_descending, most: ReadLimit { rows, bytes } };
                let page = Repository::of(&store, "o").list::<Stone>(listing).unwrap();
                after = page.next_cursor(|last| last.id.clone());
                pages.push(page.rows.into_iter().map(|stored| stored.id).collect());
                if after.is_none() {
                    return pages;
                }
            }
        };
        // A small stone has three bytes: a quoted letter.
        assert_eq!(pages(9, 1_000, false)[..3], [["000", "001", "002"], ["003", "004", "005"], ["006", "007", "008"]]);
        assert_eq!(pages(9, 3, true)[..2], [["009"], ["008"]]);
        let all: Vec<String> = (0..10).map(|place| format!("{place:03}")).collect();
        for rows in 1..12 {
            for bytes in [1, 4, 1_000, 1_010, 100_000] {
                assert_eq!(pages(rows, bytes, false).concat(), all, "{rows} rows of {bytes} bytes");
                let mut down = pages(rows, bytes, true).concat();
                down.reverse();
                assert_eq!(down, all, "{rows} rows of {bytes} bytes, downwards");
            }
        }
    }

    #[test]
    fn all_returns_every_resource_for_any_page_size() {
        let store = stones(PAGE_MAX * 2 + 1);
        let repository = Repository::of(&store, "o");
        let count = |stones: All<'_, Stone>| stones.map(|stored| stored.unwrap().id).collect::<Vec<_>>().len();
        assert_eq!(count(repository.all(None)), PAGE_MAX * 2 + 1);
        for most in [ReadLimit { rows: 7, bytes: 1 }, ReadLimit { rows: 7, bytes: 2_000 }] {
            assert_eq!(count(repository.each(None, most)), PAGE_MAX * 2 + 1, "{most:?}");
            assert_eq!(count(repository.each(Some(("first letter", "b".into())), most)), 133, "{most:?}");
        }
    }
}
