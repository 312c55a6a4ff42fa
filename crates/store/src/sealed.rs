//! Seals of resources: a store that returns only resources that were written with the installation's key.
//!
//! The body of a sealed resource is the byte [`SEALED`], an HMAC-SHA-256 of 32 bytes, and the content. The seal covers
//! kind, organization, id, keys and content, so a row that is copied to another place is not valid there. It does not
//! cover the version: the rollback of one row to an earlier content is not detected.
//!
//! Older releases wrote the content alone. It is JSON, which never starts with this byte.

use std::sync::Arc;

use mainspring_kernel::{cbor::Writer, hash::Hash};

use crate::{
    Audit, AuditHead, AuditRow, Budgets, Catalogue, Change, ChangeOutcome, Executions, Inbox, Journal, LeaseOutcome,
    LeaseRequest, Membership, PeriodAccount, Put, ReadLimit, ResourceId, ResourceKey, ResourceQuery, ResourceRow,
    Store, StoreError, UsageQuery, UsageRow, catalogue::in_order,
};

const SEALED: u8 = 1;

/// Length of the byte and the seal. A stored body is so much longer than the content.
pub const SEAL_BYTES: usize = 1 + 32;

/// A store that seals the resources that it writes, and refuses to read those without a valid seal.
pub struct SealedStore {
    store: Arc<dyn Store>,
    /// `None` to read without the key.
    key: Option<[u8; 32]>,
}

impl SealedStore {
    /// Wraps a store, unless it seals resources already.
    pub fn over(store: Arc<dyn Store>, key: [u8; 32]) -> Arc<dyn Store> {
        if store.seals_resources() { store } else { Arc::new(Self { store, key: Some(key) }) }
    }

    /// Wraps a store for a diagnosis without the key: seals are not checked, and changes are refused.
    pub fn without_key(store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Self { store, key: None })
    }

    fn opened(&self, row: ResourceRow) -> Result<ResourceRow, StoreError> {
        let Some(content) = content(self.key.as_ref(), &row) else { return Err(forged(&row)) };
        Ok(ResourceRow { body: content.to_vec(), ..row })
    }

    fn all_opened(&self, rows: Vec<ResourceRow>) -> Result<Vec<ResourceRow>, StoreError> {
        rows.into_iter().map(|row| self.opened(row)).collect()
    }
}

/// Creates the body of a resource: its content behind the seal.
pub fn seal_resource(key: &[u8; 32], row: &ResourceRow) -> Vec<u8> {
    let mut body = Vec::with_capacity(SEAL_BYTES + row.body.len());
    body.push(SEALED);
    body.extend(code(key, row, &row.body).0);
    body.extend(&row.body);
    body
}

/// Returns true if a stored resource has a seal, valid or not.
pub fn has_seal(row: &ResourceRow) -> bool {
    row.body.first() == Some(&SEALED)
}

/// Returns true if a stored resource has a valid seal of this key.
pub fn has_valid_seal(key: &[u8; 32], row: &ResourceRow) -> bool {
    content(Some(key), row).is_some()
}

/// The content of a stored resource; `None` without a valid seal. Without a key the seal is not checked.
fn content<'a>(key: Option<&[u8; 32]>, row: &'a ResourceRow) -> Option<&'a [u8]> {
    let Some((&SEALED, rest)) = row.body.split_first() else { return key.is_none().then_some(&row.body[..]) };
    let (seal, content) = rest.split_first_chunk::<32>()?;
    let is_valid = key.is_none_or(|key| code(key, row, content).equals_in_constant_time(&Hash(*seal)));
    is_valid.then_some(content)
}

fn code(key: &[u8; 32], row: &ResourceRow, content: &[u8]) -> Hash {
    let keys = in_order(&row.keys);
    let mut writer = Writer::default();
    writer.array(5);
    writer.text("mainspring resource 1");
    writer.text(&row.kind);
    writer.text(&row.organization);
    writer.text(&row.id);
    writer.array(keys.len());
    for name in &keys {
        writer.array(3);
        writer.text(&name.field);
        writer.text(&name.value);
        writer.unsigned(name.is_unique.into());
    }
    Hash::keyed(key, &[&writer.bytes, content])
}

/// Checks that a row answers the question. A genuine row that is returned for another one, e.g. by a view in the place of the
/// table, proves nothing about that one.
fn check_id(row: &ResourceRow, asked: (&str, &str, &str)) -> Result<(), StoreError> {
    let is_answer = (&*row.kind, &*row.organization, &*row.id) == asked;
    if is_answer { Ok(()) } else { Err(no_answer(row)) }
}

fn check_unique_key(row: &ResourceRow, place: (&str, &str), (field, value): (&str, &str)) -> Result<(), StoreError> {
    let is_asked = |key: &ResourceKey| key.is_unique && key.field == field && key.value == value;
    let is_answer = (&*row.kind, &*row.organization) == place && row.keys.iter().any(is_asked);
    if is_answer { Ok(()) } else { Err(no_answer(row)) }
}

fn check_list(rows: &[ResourceRow], query: &ResourceQuery) -> Result<(), StoreError> {
    let mut last = query.after.as_deref();
    for row in rows {
        let is_next = last.is_none_or(|last| match query.is_descending {
            false => row.id.as_str() > last,
            true => row.id.as_str() < last,
        });
        let has =
            |(field, value): &(String, String)| row.keys.iter().any(|key| key.field == *field && key.value == *value);
        let is_of_query = row.kind == query.kind && row.organization == query.organization;
        if !(is_next && is_of_query && query.key.as_ref().is_none_or(has)) {
            return Err(no_answer(row));
        }
        last = Some(&row.id);
    }
    Ok(())
}

fn check_order(after: Option<&ResourceId>, rows: &[ResourceRow]) -> Result<(), StoreError> {
    let mut last = after.cloned();
    for row in rows {
        let id = row.resource_id();
        if last.is_some_and(|last| last >= id) {
            return Err(no_answer(row));
        }
        last = Some(id);
    }
    Ok(())
}

fn no_answer(ResourceRow { kind, id, .. }: &ResourceRow) -> StoreError {
    StoreError::Damaged(format!(
        "a query returned the {kind} {id:?}, which is not what was asked for, so something other than Mainspring has changed the \
         tables or an index: find out who writes to the store, then restore the latest backup"
    ))
}

fn forged(ResourceRow { kind, organization, id, .. }: &ResourceRow) -> StoreError {
    let of =
        if organization.is_empty() { "the installation".into() } else { format!("the organization {organization:?}") };
    StoreError::Damaged(format!(
        "the {kind} {id:?} of {of} has no valid seal, so something other than Mainspring has written it: find out who writes \
         to the store, then restore the latest backup (`mainspring doctor --deep` names all such rows)"
    ))
}

impl Catalogue for SealedStore {
    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError> {
        let Some(row) = self.store.catalogue().resource(kind, organization, id)? else { return Ok(None) };
        check_id(&row, (kind, organization, id))?;
        self.opened(row).map(Some)
    }

    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError> {
        let found = self.store.catalogue().resource_by_key(kind, organization, field, value)?;
        let Some(row) = found else { return Ok(None) };
        check_unique_key(&row, (kind, organization), (field, value))?;
        self.opened(row).map(Some)
    }

    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
        let rows = self.store.catalogue().resources(query)?;
        check_list(&rows, query)?;
        self.all_opened(rows)
    }

    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError> {
        let rows = self.store.catalogue().all_resources(after, limit)?;
        check_order(after, &rows)?;
        self.all_opened(rows)
    }

    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        let Some(key) = &self.key else {
            return Err(StoreError::Unavailable("resources are written with the installation's key only".into()));
        };
        let sealed = |put: &Put| {
            let body = seal_resource(key, &put.resource);
            Put { resource: ResourceRow { body, ..put.resource.clone() }, expected: put.expected }
        };
        let Change { removals, puts, audit, sealing } = change;
        let puts = puts.iter().map(sealed).collect();
        let change = Change { removals: removals.clone(), puts, audit: audit.clone(), sealing: *sealing };
        self.store.catalogue().change(&change)
    }
}

impl Budgets for SealedStore {
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError> {
        self.store.catalogue().lease_budget(request)
    }

    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError> {
        self.store.catalogue().period_account(organization, workflow, period)
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        self.store.catalogue().usage(query)
    }
}

impl Audit for SealedStore {
    fn audit(&self, organization: &str, after: u64, limit: ReadLimit) -> Result<Vec<AuditRow>, StoreError> {
        self.store.catalogue().audit(organization, after, limit)
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        self.store.catalogue().audit_head(organization)
    }
}

// Methods with a default are forwarded too: the default of `newest_frame` would hide that a store was restored.
impl Journal for SealedStore {
    crate::forward!(store: newest_frame, commit, head, frames, due, set_wake_at, plan, late_receipts, receipt_proofs, executor_key, executor_keys, notes, erase);
}

impl Inbox for SealedStore {
    crate::forward!(store: enqueue, inbox, notify, subscribe);
}

impl Membership for SealedStore {
    crate::forward!(store: is_shared, claim, partitions, repartition, cluster_view, heartbeat, acquire, release, leave, remote_attempts, stop_remote, end_remote);
}

impl Executions for SealedStore {
    crate::forward!(store: execution, execution_by_id, execution_by_idempotency_key, executions, count_executions, count_other_definitions, rollout_executions, pending_organizations, pending_approvals, quarantine, quarantined, release_quarantine, force_end);
}

impl Store for SealedStore {
    crate::forward!(store: event_queue, metadata, put_metadata_if_absent, can_read_inline, check_files, is_of_unsealed_format, has_unsealed_resources);

    fn catalogue(&self) -> &dyn Catalogue {
        self
    }

    fn seals_resources(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    const KEY: [u8; 32] = [1; 32];

    fn row(id: &str) -> ResourceRow {
        let key =
            |field: &str, value: &str, is_unique| ResourceKey { field: field.into(), value: value.into(), is_unique };
        ResourceRow {
            kind: "token".into(),
            organization: "acme".into(),
            id: id.into(),
            version: 1,
            // Unsorted, and one of them twice.
            keys: vec![key("owner", "ada", false), key("hash", id, true), key("owner", "ada", false)],
            body: br#"{"role":"viewer"}"#.to_vec(),
        }
    }

    fn put(row: ResourceRow) -> Change {
        Change { puts: vec![Put { resource: row, expected: 0 }], ..Change::default() }
    }

    /// A store with the token `a`, and the same store under its seals.
    fn stored() -> (MemoryStore, Arc<dyn Store>) {
        let plain = MemoryStore::new();
        let sealed = SealedStore::over(Arc::new(plain.clone()), KEY);
        assert_eq!(sealed.catalogue().change(&put(row("a"))), Ok(ChangeOutcome::Done));
        (plain, sealed)
    }

    fn query() -> ResourceQuery {
        ResourceQuery {
            kind: "token".into(),
            organization: "acme".into(),
            limit: ReadLimit::of(9),
            ..ResourceQuery::default()
        }
    }

    #[test]
    fn sealed_resources_are_read_by_every_way() {
        let (plain, sealed) = stored();
        let catalogue = sealed.catalogue();
        let expected = ResourceRow { keys: in_order(&row("a").keys), ..row("a") };
        assert_eq!(catalogue.resource("token", "acme", "a"), Ok(Some(expected.clone())));
        assert_eq!(catalogue.resource_by_key("token", "acme", "hash", "a"), Ok(Some(expected.clone())));
        assert_eq!(catalogue.resources(&query()), Ok(vec![expected.clone()]));
        assert_eq!(catalogue.all_resources(None, ReadLimit::of(9)), Ok(vec![expected.clone()]));
        // A second wrapper adds no second seal.
        let again = SealedStore::over(sealed.clone(), KEY);
        assert_eq!(again.catalogue().resource("token", "acme", "a"), Ok(Some(expected.clone())));
        let unproved = SealedStore::without_key(Arc::new(plain.clone()));
        assert_eq!(unproved.catalogue().resource("token", "acme", "a"), Ok(Some(expected)));
        assert!(unproved.catalogue().change(&put(row("b"))).is_err());
        let stored = plain.resource("token", "acme", "a").unwrap().unwrap();
        assert!(has_seal(&stored) && has_valid_seal(&KEY, &stored) && !has_valid_seal(&[2; 32], &stored));
        assert_eq!(stored.body.len(), row("a").body.len() + SEAL_BYTES);
    }

    #[test]
    fn forged_and_moved_resources_are_refused() {
        let (plain, _) = stored();
        let genuine = plain.resource("token", "acme", "a").unwrap().unwrap();
        let sealed_by = |key: &[u8; 32], row: ResourceRow| ResourceRow { body: seal_resource(key, &row), ..row };
        let mut changed = genuine.clone();
        *changed.body.last_mut().unwrap() ^= 1;
        let mut without_keys = genuine.clone();
        without_keys.keys.clear();
        let mut with_unique = genuine.clone();
        with_unique.keys[1].is_unique = !with_unique.keys[1].is_unique;
        let forgeries = [
            row("b"),
            sealed_by(&[2; 32], row("b")),
            ResourceRow { id: "b".into(), keys: Vec::new(), ..genuine.clone() },
            ResourceRow { organization: "globex".into(), ..genuine.clone() },
            ResourceRow { kind: "member".into(), ..genuine.clone() },
            ResourceRow { body: vec![SEALED; 20], ..row("b") },
            ResourceRow { body: Vec::new(), ..row("b") },
            changed,
            without_keys,
            with_unique,
        ];
        for forged in forgeries {
            let plain = MemoryStore::new();
            let sealed = SealedStore::over(Arc::new(plain.clone()), KEY);
            assert_eq!(plain.change(&put(forged.clone())), Ok(ChangeOutcome::Done));
            let error = sealed.catalogue().resource(&forged.kind, &forged.organization, &forged.id).unwrap_err();
            assert!(error.to_string().contains("has no valid seal"), "{error}");
            assert!(sealed.catalogue().all_resources(None, ReadLimit::of(9)).is_err(), "{forged:?}");
            let query =
                ResourceQuery { kind: forged.kind.clone(), organization: forged.organization.clone(), ..query() };
            assert!(sealed.catalogue().resources(&query).is_err(), "{forged:?}");
        }
    }

    #[test]
    fn a_genuine_resource_does_not_answer_for_another() {
        let row = row("a");
        let is_refused = |error: StoreError| error.to_string().contains("is not what was asked for");
        assert!(check_id(&row, ("token", "acme", "a")).is_ok());
        for other in [("token", "acme", "b"), ("token", "globex", "a"), ("member", "acme", "a")] {
            assert!(is_refused(check_id(&row, other).unwrap_err()), "{other:?}");
        }
        assert!(check_unique_key(&row, ("token", "acme"), ("hash", "a")).is_ok());
        for other in [("hash", "b"), ("owner", "ada")] {
            assert!(is_refused(check_unique_key(&row, ("token", "acme"), other).unwrap_err()), "{other:?}");
        }
        assert!(is_refused(check_unique_key(&row, ("token", "globex"), ("hash", "a")).unwrap_err()));
    }

    #[test]
    fn a_list_has_each_resource_of_its_query_once_in_order() {
        let check = |ids: &[&str], query: &ResourceQuery| {
            check_list(&ids.iter().map(|id| row(id)).collect::<Vec<_>>(), query).is_ok()
        };
        let after = |id: &str, is_descending| ResourceQuery { after: Some(id.into()), is_descending, ..query() };
        let of = |field: &str, value: &str| ResourceQuery { key: Some((field.into(), value.into())), ..query() };
        assert!(check(&["a", "b", "c"], &query()) && check(&[], &query()));
        assert!(check(&["b"], &after("a", false)) && check(&["b", "a"], &after("c", true)));
        assert!(check(&["a", "b"], &of("owner", "ada")));
        assert!(!check(&["a", "a"], &query()) && !check(&["b", "a"], &query()));
        assert!(!check(&["a"], &after("a", false)) && !check(&["d"], &after("c", true)));
        assert!(!check(&["a"], &of("owner", "bob")) && !check(&["a", "b"], &of("hash", "a")));
        assert!(!check(&["a"], &ResourceQuery { kind: "member".into(), ..query() }));
        let all = |after: Option<&str>, ids: &[&str]| {
            let after = after.map(|id| row(id).resource_id());
            check_order(after.as_ref(), &ids.iter().map(|id| row(id)).collect::<Vec<_>>()).is_ok()
        };
        assert!(all(None, &["a", "b"]) && all(Some("a"), &["b"]) && all(None, &[]));
        assert!(!all(None, &["a", "a"]) && !all(Some("b"), &["a"]) && !all(Some("a"), &["b", "a"]));
    }
}
