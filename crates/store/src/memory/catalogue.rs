//! The resources of a server and its audit log, in maps.

use std::{collections::BTreeMap, ops::Bound};

use mainspring_kernel::key::ExecutionKey;

use super::MemoryStore;
use crate::{
    AuditEntry, AuditHead, AuditRow, Catalogue, Change, ChangeOutcome, EventCursor, Put, ReadLimit, ResourceId,
    ResourceQuery, ResourceRow, StoreError,
    audit::chain,
    catalogue::{check_lengths, in_order},
};

#[derive(Debug, Default)]
pub(super) struct Resources {
    items: BTreeMap<ResourceId, ResourceRow>,
    pub(super) audit: BTreeMap<String, Vec<AuditRow>>,
    pub(super) audit_heads: BTreeMap<String, AuditHead>,
    /// By subscription and execution.
    pub(super) event_cursors: BTreeMap<(String, ExecutionKey), EventCursor>,
}

impl Resources {
    pub(super) fn note<'a>(&mut self, sealing: &[u8; 32], entries: impl IntoIterator<Item = &'a AuditEntry>) {
        for row in chain(&mut self.audit_heads, sealing, entries) {
            self.audit.entry(row.entry.organization.clone()).or_default().push(row);
        }
    }

    fn change(&mut self, change: &Change) -> ChangeOutcome {
        // The resources of the change after it; applied only if the whole change is valid.
        let mut new: BTreeMap<ResourceId, Option<ResourceRow>> = BTreeMap::new();
        for removal in &change.removals {
            let place = (removal.kind.clone(), removal.organization.clone(), removal.id.clone());
            let found = new.get(&place).unwrap_or(&self.items.get(&place).cloned()).as_ref().map(|item| item.version);
            if found.is_none_or(|found| removal.expected.is_some_and(|expected| expected != found)) {
                return ChangeOutcome::Conflict { id: removal.id.clone() };
            }
            new.insert(place, None);
        }
        for Put { resource: item, expected } in &change.puts {
            let place = item.resource_id();
            let found = new.get(&place).unwrap_or(&self.items.get(&place).cloned()).as_ref().map(|item| item.version);
            if found.unwrap_or(0) != *expected {
                return ChangeOutcome::Conflict { id: item.id.clone() };
            }
            new.insert(place, Some(ResourceRow { version: expected + 1, keys: vec![], ..item.clone() }));
        }
        for Put { resource: item, .. } in &change.puts {
            let names = in_order(&item.keys);
            for name in names.iter().filter(|name| name.is_unique) {
                let older =
                    self.of(&item.kind, &item.organization).filter(|older| !new.contains_key(&older.resource_id()));
                let is_of_kind =
                    |other: &&ResourceRow| other.kind == item.kind && other.organization == item.organization;
                let mut others = older.chain(new.values().flatten().filter(is_of_kind));
                if others.any(|other| other.id != item.id && carries(other, &name.field, &name.value)) {
                    return ChangeOutcome::KeyTaken { id: item.id.clone(), field: name.field.clone() };
                }
            }
            new.insert(
                item.resource_id(),
                new[&item.resource_id()].clone().map(|item| ResourceRow { keys: names, ..item }),
            );
        }
        for (place, item) in new {
            match item {
                Some(item) => self.items.insert(place, item),
                None => self.items.remove(&place),
            };
        }
        self.note(&change.sealing, &change.audit);
        ChangeOutcome::Done
    }

    /// The ids of the resources with a key.
    pub(super) fn with_key(&self, kind: &str, organization: &str, (field, value): (&str, &str)) -> Vec<String> {
        let has_key = |item: &&ResourceRow| item.keys.iter().any(|key| key.field == field && key.value == value);
        self.of(kind, organization).filter(has_key).map(|item| item.id.clone()).collect()
    }

    /// Sorted by id.
    fn of(&self, kind: &str, organization: &str) -> impl DoubleEndedIterator<Item = &ResourceRow> {
        let first = (kind.to_owned(), organization.to_owned(), String::new());
        // The next possible text is the same with U+0000 appended.
        let end = (kind.to_owned(), format!("{organization}\0"), String::new());
        self.items.range(first..end).map(|(_, item)| item)
    }
}

fn carries(item: &ResourceRow, field: &str, value: &str) -> bool {
    item.keys.iter().any(|name| name.is_unique && name.field == field && name.value == value)
}

impl Catalogue for MemoryStore {
    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError> {
        let place = (kind.to_owned(), organization.to_owned(), id.to_owned());
        Ok(self.state().catalogue.items.get(&place).cloned())
    }

    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError> {
        let state = self.state();
        Ok(state.catalogue.of(kind, organization).find(|item| carries(item, field, value)).cloned())
    }

    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
        let state = self.state();
        let mut found: Vec<&ResourceRow> = state.catalogue.of(&query.kind, &query.organization).collect();
        if query.is_descending {
            found.reverse();
        }
        if let Some((field, value)) = &query.key {
            found.retain(|item| item.keys.iter().any(|name| name.field == *field && name.value == *value));
        }
        if let Some(after) = &query.after {
            found.retain(|item| if query.is_descending { item.id < *after } else { item.id > *after });
        }
        Ok(query.limit.take(found.into_iter(), |item| item.body.len()).into_iter().cloned().collect())
    }

    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError> {
        let state = self.state();
        let rest = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let rows = state.catalogue.items.range::<ResourceId, _>(rest).map(|(_, item)| item);
        Ok(limit.take(rows, |item| item.body.len()).into_iter().cloned().collect())
    }

    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        check_lengths(change)?;
        Ok(self.state().catalogue.change(change))
    }
}
