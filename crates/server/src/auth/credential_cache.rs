//! Credential cache: callers of recently authenticated requests, so that not every request reads the store.
//!
//! A change on this node takes effect at once: [`CatalogueWatch`] sees every change of a credential or a member on its way to
//! the store and invalidates the whole cache. A change on another node takes effect when the cached entry expires.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use mainspring_engine::{Engine, clock::now_ms};
use mainspring_kernel::hash::Hash;
use mainspring_store::{
    Audit, AuditHead, AuditRow, Budgets, Catalogue, Change, ChangeOutcome, LeaseOutcome, LeaseRequest, PeriodAccount,
    ReadLimit, ResourceId, ResourceQuery, ResourceRow, StoreError, UsageQuery, UsageRow,
};
use tokio::sync::watch;

use crate::{
    auth::caller::Caller,
    http::rate_limit::Clock,
    resources::{Member, Token, repository::Resource},
};

/// Lifetime of a cached credential, and the longest that a revocation on another node takes effect late.
pub(crate) const CACHED_US: u64 = 1_000_000;

/// Most cached credentials. Beyond that the cache is cleared, which costs one read for each.
const CREDENTIALS_MAX: usize = 16_384;

/// The cached callers, by a hash of the credential.
pub(crate) struct CredentialCache {
    clock: Clock,
    entries: Mutex<HashMap<Hash, Entry>>,
}

/// A cached caller, its expiry, and the number of changes at the lookup.
struct Entry {
    caller: Caller,
    until_us: u64,
    changes: u64,
}

impl CredentialCache {
    /// An empty cache.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, entries: Mutex::default() }
    }

    /// The caller of a credential, unless it expired or was invalidated.
    pub(crate) fn get(&self, credential: &Hash, changes: u64) -> Option<Caller> {
        let entries = self.entries();
        let entry = entries.get(credential)?;
        let is_current = entry.changes == changes && (self.clock)() < entry.until_us;
        let is_unexpired = entry.caller.expires_at.is_none_or(|at| now_ms() < at);
        (is_current && is_unexpired).then(|| entry.caller.clone())
    }

    /// Caches a caller. `changes` is the number of changes before the lookup.
    pub(crate) fn set(&self, credential: Hash, caller: Caller, changes: u64) {
        let until_us = (self.clock)() + CACHED_US;
        let mut entries = self.entries();
        if entries.len() >= CREDENTIALS_MAX {
            entries.clear();
        }
        entries.insert(credential, Entry { caller, until_us, changes });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Hash, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The catalogue of the store, with a counter of the changes that concern credentials.
pub(crate) struct CatalogueWatch {
    engine: Arc<Engine>,
    changes: AtomicU64,
    watched: Mutex<HashMap<WatchedRow, watch::Sender<()>>>,
}

/// A row that a credential depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum WatchedRow {
    Token(String),
    Member { organization: String, id: String },
}

impl WatchedRow {
    fn of(kind: &str, organization: &str, id: &str) -> Option<Self> {
        match kind {
            Token::KIND => Some(Self::Token(id.into())),
            Member::KIND => Some(Self::Member { organization: organization.into(), id: id.into() }),
            _ => None,
        }
    }
}

/// Follows the changes of a credential and of its member.
pub(crate) struct CredentialWatch {
    token: watch::Receiver<()>,
    member: watch::Receiver<()>,
}

impl CredentialWatch {
    /// Waits until one of them has changed since the last call of [`has_changed`](Self::has_changed).
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            _ = self.token.changed() => self.token.mark_changed(),
            _ = self.member.changed() => self.member.mark_changed(),
        }
    }

    /// True if one of them has changed since the last call.
    pub(crate) fn has_changed(&mut self) -> bool {
        let changed = |one: &watch::Receiver<()>| one.has_changed().unwrap_or(true);
        let has_changed = changed(&self.token) || changed(&self.member);
        self.token.mark_unchanged();
        self.member.mark_unchanged();
        has_changed
    }
}

impl CatalogueWatch {
    /// Wraps the catalogue of an engine's store.
    pub(crate) fn of(engine: Arc<Engine>) -> Self {
        Self { engine, changes: AtomicU64::new(0), watched: Mutex::default() }
    }

    /// Number of changes that concerned credentials.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Follows the credential of a caller and its member, for changes on this node.
    pub(crate) fn watch(&self, caller: &Caller) -> CredentialWatch {
        let mut watched = self.watched();
        watched.retain(|_, sender| sender.receiver_count() > 0);
        let mut receiver = |of: WatchedRow| watched.entry(of).or_insert_with(|| watch::Sender::new(())).subscribe();
        CredentialWatch {
            token: receiver(WatchedRow::Token(caller.token.clone())),
            member: receiver(WatchedRow::Member { organization: caller.organization.clone(), id: caller.user.clone() }),
        }
    }

    fn notify(&self, change: &Change) {
        let puts = change.puts.iter().map(|put| (&put.resource.kind, &put.resource.organization, &put.resource.id));
        let removals = change.removals.iter().map(|gone| (&gone.kind, &gone.organization, &gone.id));
        let watched = self.watched();
        for of in puts.chain(removals).filter_map(|(kind, organization, id)| WatchedRow::of(kind, organization, id)) {
            if let Some(sender) = watched.get(&of) {
                sender.send_replace(());
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<WatchedRow, watch::Sender<()>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inner(&self) -> &dyn Catalogue {
        self.engine.store().catalogue()
    }
}

/// True if a change may invalidate a credential.
fn concerns_credentials(change: &Change) -> bool {
    let put = change.puts.iter().map(|put| &put.resource.kind);
    let mut kinds = put.chain(change.removals.iter().map(|removal| &removal.kind));
    kinds.any(|kind| kind == Token::KIND || kind == Member::KIND)
}

impl Catalogue for CatalogueWatch {
    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        let changed = self.inner().change(change);
        // Also after an error, since the change may have been written; and before the response, so that the caller sees
        // its effect.
        if concerns_credentials(change) {
            self.changes.fetch_add(1, Ordering::SeqCst);
            self.notify(change);
        }
        changed
    }

    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError> {
        self.inner().resource(kind, organization, id)
    }

    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError> {
        self.inner().resource_by_key(kind, organization, field, value)
    }

    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
        self.inner().resources(query)
    }

    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError> {
        self.inner().all_resources(after, limit)
    }
}

impl Budgets for CatalogueWatch {
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError> {
        self.inner().lease_budget(request)
    }

    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError> {
        self.inner().period_account(organization, workflow, period)
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        self.inner().usage(query)
    }
}

impl Audit for CatalogueWatch {
    fn audit(&self, organization: &str, after: u64, most: ReadLimit) -> Result<Vec<AuditRow>, StoreError> {
        self.inner().audit(organization, after, most)
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        self.inner().audit_head(organization)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{caller::Kind, permission::Role};

    #[test]
    fn a_credential_is_cached_for_a_second_or_until_a_change() {
        let now = Arc::new(AtomicU64::new(0));
        let cache = CredentialCache::new({
            let now = now.clone();
            Arc::new(move || now.load(Ordering::SeqCst))
        });
        let caller = |expires_at: Option<u64>| Caller {
            organization: "o".into(),
            user: "u".into(),
            role: Role::Member,
            kind: Kind::Person,
            token: "t".into(),
            sign_in: None,
            scopes: vec![],
            is_operator: false,
            made_by: None,
            known_to: None,
            expires_at,
        };
        let [one, ended] = [b"1", b"2"].map(|text| Hash::of(text));
        cache.set(one, caller(None), 7);
        cache.set(ended, caller(Some(1)), 7);
        let is_cached = |credential: &Hash, changes: u64| cache.get(credential, changes).is_some();
        assert!(is_cached(&one, 7) && !is_cached(&ended, 7), "an expired credential is not valid");
        assert!(!is_cached(&one, 8), "something has changed");
        now.store(CACHED_US - 1, Ordering::SeqCst);
        assert!(is_cached(&one, 7));
        now.store(CACHED_US, Ordering::SeqCst);
        assert!(!is_cached(&one, 7), "another node may have changed something");
        for number in 0..CREDENTIALS_MAX as u64 {
            cache.set(Hash::of(&number.to_be_bytes()), caller(None), 7);
        }
        assert!(cache.entries().len() <= CREDENTIALS_MAX);
    }
}
