//! The resources of a server and its audit log, in maps.

use std::collections::BTreeMap;

use super::MemoryStore;
use crate::{
    AuditEntry, AuditHead, AuditRow, Catalogue, Change, Changed, Item, Most, Put, Query, StoreError,
    catalogue::{chain, check_lengths, in_order},
};

/// Kind, organization and id.
type Place = (String, String, String);

#[derive(Debug, Default)]
pub(super) struct Things {
    items: BTreeMap<Place, Item>,
    audit: BTreeMap<String, Vec<AuditRow>>,
    audit_heads: BTreeMap<String, AuditHead>,
}

impl Things {
    pub(super) fn note<'a>(&mut self, sealing: &[u8; 32], entries: impl IntoIterator<Item = &'a AuditEntry>) {
        for row in chain(&mut self.audit_heads, sealing, entries) {
            self.audit.entry(row.entry.organization.clone()).or_default().push(row);
        }
    }

    fn change(&mut self, change: &Change) -> Changed {
        // The resources of the change after it; applied only if the whole change is valid.
        let mut new: BTreeMap<Place, Option<Item>> = BTreeMap::new();
        for removal in &change.removals {
            let place = (removal.noun.clone(), removal.organization.clone(), removal.id.clone());
            let found = new.get(&place).unwrap_or(&self.items.get(&place).cloned()).as_ref().map(|item| item.version);
            if found.is_none_or(|found| removal.expected.is_some_and(|expected| expected != found)) {
                return Changed::Conflict { id: removal.id.clone() };
            }
            new.insert(place, None);
        }
        for Put { item, expected } in &change.puts {
            let place = place(item);
            let found = new.get(&place).unwrap_or(&self.items.get(&place).cloned()).as_ref().map(|item| item.version);
            if found.unwrap_or(0) != *expected {
                return Changed::Conflict { id: item.id.clone() };
            }
            new.insert(place, Some(Item { version: expected + 1, names: vec![], ..item.clone() }));
        }
        for Put { item, .. } in &change.puts {
            let names = in_order(&item.names);
            for name in names.iter().filter(|name| name.is_unique) {
                let older = self.of(&item.noun, &item.organization).filter(|older| !new.contains_key(&place(older)));
                let is_of_noun = |other: &&Item| other.noun == item.noun && other.organization == item.organization;
                let mut others = older.chain(new.values().flatten().filter(is_of_noun));
                if others.any(|other| other.id != item.id && carries(other, &name.field, &name.value)) {
                    return Changed::NameTaken { id: item.id.clone(), field: name.field.clone() };
                }
            }
            new.insert(place(item), new[&place(item)].clone().map(|item| Item { names, ..item }));
        }
        for (place, item) in new {
            match item {
                Some(item) => self.items.insert(place, item),
                None => self.items.remove(&place),
            };
        }
        self.note(&change.sealing, &change.audit);
        Changed::Done
    }

    /// Sorted by id.
    fn of(&self, noun: &str, organization: &str) -> impl DoubleEndedIterator<Item = &Item> {
        let first = (noun.to_owned(), organization.to_owned(), String::new());
        // The next possible text is the same with U+0000 appended.
        let end = (noun.to_owned(), format!("{organization}\0"), String::new());
        self.items.range(first..end).map(|(_, item)| item)
    }
}

fn place(item: &Item) -> Place {
    (item.noun.clone(), item.organization.clone(), item.id.clone())
}

fn carries(item: &Item, field: &str, value: &str) -> bool {
    item.names.iter().any(|name| name.is_unique && name.field == field && name.value == value)
}

impl Catalogue for MemoryStore {
    fn item(&self, noun: &str, organization: &str, id: &str) -> Result<Option<Item>, StoreError> {
        let place = (noun.to_owned(), organization.to_owned(), id.to_owned());
        Ok(self.state().things.items.get(&place).cloned())
    }

    fn item_named(&self, noun: &str, organization: &str, field: &str, value: &str) -> Result<Option<Item>, StoreError> {
        let state = self.state();
        Ok(state.things.of(noun, organization).find(|item| carries(item, field, value)).cloned())
    }

    fn items(&self, query: &Query) -> Result<Vec<Item>, StoreError> {
        let state = self.state();
        let mut found: Vec<&Item> = state.things.of(&query.noun, &query.organization).collect();
        if query.is_descending {
            found.reverse();
        }
        if let Some((field, value)) = &query.name {
            found.retain(|item| item.names.iter().any(|name| name.field == *field && name.value == *value));
        }
        if let Some(after) = &query.after {
            found.retain(|item| if query.is_descending { item.id < *after } else { item.id > *after });
        }
        Ok(query.most.take(found.into_iter(), |item| item.body.len()).into_iter().cloned().collect())
    }

    fn change(&self, change: &Change) -> Result<Changed, StoreError> {
        check_lengths(change)?;
        Ok(self.state().things.change(change))
    }

    fn audit(&self, organization: &str, after: u64, most: Most) -> Result<Vec<AuditRow>, StoreError> {
        let state = self.state();
        let rows = state.things.audit.get(organization).into_iter().flatten().filter(|row| row.number > after);
        Ok(most.take(rows, |row| row.byte_count()).into_iter().cloned().collect())
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        Ok(self.state().things.audit_heads.get(organization).cloned())
    }
}
