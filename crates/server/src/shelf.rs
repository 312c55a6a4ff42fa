//! Typed things in the catalogue: what is stored of a noun, and how it is found.

use mainspring_engine::engine::now_ms;
use mainspring_kernel::{cbor, value::Value};
use mainspring_store::{AuditEntry, Catalogue, Change, Changed, Item, Name, Put, Query, Removal};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    body::Tag,
    identity::Caller,
    problem::{Answer, Code, Problem},
};

/// Things on one page of a list at the most.
pub const PAGE_MAX: usize = 200;

/// Things on a page if nobody says otherwise.
pub const PAGE_DEFAULT: usize = 50;

/// A noun of the catalogue: its stored form.
pub trait Noun: Serialize + DeserializeOwned {
    /// Its name in the store.
    const NOUN: &'static str;
    /// What it is called where it is not found.
    const WORD: &'static str;

    /// By which other names it is found: field, value, whether it is unique.
    fn names(&self) -> Vec<(&'static str, String, bool)>;
}

/// A thing as the catalogue has it.
#[derive(Debug, Clone)]
pub struct Held<T> {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// What is stored.
    pub body: T,
}

/// A noun whose things can be edited by many.
pub trait Dated: Noun {
    /// When it was made, in milliseconds.
    fn created_at(&self) -> u64;
}

impl<T: Dated> Held<T> {
    /// What `If-Match` takes.
    pub(crate) fn tag(&self) -> Tag {
        Tag::new(self.version, self.body.created_at())
    }
}

/// The catalogue with its types, for one organisation; the empty name is the installation.
#[derive(Clone, Copy)]
pub struct Shelf<'a> {
    catalogue: &'a dyn Catalogue,
    organization: &'a str,
}

impl<'a> Shelf<'a> {
    /// What is an organisation's.
    pub fn of(catalogue: &'a dyn Catalogue, organization: &'a str) -> Self {
        Self { catalogue, organization }
    }

    /// A thing by its id.
    pub fn get<T: Noun>(self, id: &str) -> Answer<Option<Held<T>>> {
        self.catalogue.item(T::NOUN, self.organization, id)?.map(read).transpose()
    }

    /// A thing by its id, which must be there.
    pub fn must<T: Noun>(self, id: &str) -> Answer<Held<T>> {
        self.get(id)?.ok_or_else(|| Problem::not_found(T::WORD))
    }

    /// A thing by a unique name.
    pub fn named<T: Noun>(self, field: &str, value: &str) -> Answer<Option<Held<T>>> {
        self.catalogue.item_named(T::NOUN, self.organization, field, value)?.map(read).transpose()
    }

    /// Things by their ids.
    pub fn list<T: Noun>(self, listing: Listing) -> Answer<Vec<Held<T>>> {
        let Listing { name, after, is_descending, limit } = listing;
        let name = name.map(|(field, value)| (field.to_string(), value));
        let (noun, organization) = (T::NOUN.to_string(), self.organization.to_string());
        let found = self.catalogue.items(&Query { noun, organization, name, after, is_descending, limit })?;
        found.into_iter().map(read).collect()
    }

    /// All things of a noun that carry a name, however many.
    pub fn all<T: Noun>(self, name: Option<(&'static str, String)>) -> Answer<Vec<Held<T>>> {
        let mut all: Vec<Held<T>> = Vec::new();
        loop {
            let after = all.last().map(|last| last.id.clone());
            let page = self.list(Listing { name: name.clone(), after, is_descending: false, limit: PAGE_MAX })?;
            let is_last = page.len() < PAGE_MAX;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// What puts a thing in the place of `expected`, 0 for a new one.
    pub fn put<T: Noun>(self, id: &str, body: &T, expected: u64) -> Answer<Put> {
        let name = |(field, value, is_unique): (&str, String, bool)| Name { field: field.into(), value, is_unique };
        let encoded = serde_json::to_vec(body).map_err(|error| {
            Problem::new(Code::InternalError, format!("The {} cannot be stored: {error}.", T::WORD))
        })?;
        let item = Item {
            noun: T::NOUN.into(),
            organization: self.organization.into(),
            id: id.into(),
            version: expected + 1,
            names: body.names().into_iter().map(name).collect(),
            body: encoded,
        };
        Ok(Put { item, expected })
    }

    /// What removes a thing of a version.
    pub fn removal<T: Noun>(self, held: &Held<T>) -> Removal {
        Removal {
            noun: T::NOUN.into(),
            organization: self.organization.into(),
            id: held.id.clone(),
            expected: Some(held.version),
        }
    }
}

/// Which things of a list.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Only those that carry this name: field and value.
    pub name: Option<(&'static str, String)>,
    /// Only those behind this id.
    pub after: Option<String>,
    /// Whether the largest id comes first.
    pub is_descending: bool,
    /// At most so many.
    pub limit: usize,
}

fn read<T: Noun>(item: Item) -> Answer<Held<T>> {
    let body = serde_json::from_slice(&item.body).map_err(|error| {
        let message = format!("The stored {} `{}` cannot be read: {error}.", T::WORD, item.id);
        Problem::new(Code::InternalError, message)
    })?;
    Ok(Held { id: item.id, version: item.version, body })
}

/// Makes a change true. `Err` says which thing had changed meanwhile, or whose name was taken.
pub fn make(catalogue: &dyn Catalogue, change: &Change) -> Answer<Result<(), Changed>> {
    match catalogue.change(change)? {
        Changed::Done => Ok(Ok(())),
        other => Ok(Err(other)),
    }
}

/// Makes a change that is prepared anew when something else has changed the same things meanwhile, so many times at the most.
pub fn retried<T>(
    catalogue: &dyn Catalogue,
    tries: usize,
    mut prepare: impl FnMut() -> Answer<(Change, T)>,
) -> Answer<T> {
    for _ in 0..tries {
        let (change, done) = prepare()?;
        if make(catalogue, &change)?.is_ok() {
            return Ok(done);
        }
    }
    Err(Problem::raced())
}

/// What the audit log says of an act. No secrets, and no payloads but the reasons of decisions, which are given for it: a
/// log cannot be erased.
pub fn entry(caller: &Caller, action: &str, target: &str, detail: Value) -> AuditEntry {
    // By which credential: one that an admin has made for somebody is told from their own.
    let mut map = detail.as_map().cloned().unwrap_or_default();
    map.insert("by".into(), caller.token.as_str().into());
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
