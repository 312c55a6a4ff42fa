//! Bounds of concurrent work, of all organizations and of each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots for work. The permits of an organization are few, so that others find some.
#[derive(Debug)]
pub(super) struct Slots {
    all: Arc<Semaphore>,
    of_organization: usize,
    organizations: Keyed<Semaphore>,
}

/// Values that exist while they are in use, by key.
#[derive(Debug)]
pub(super) struct Keyed<T>(Mutex<HashMap<String, Weak<T>>>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Keyed<T> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = values.get(key).and_then(Weak::upgrade) {
            return found;
        }
        values.retain(|_, value| value.strong_count() > 0);
        let made = Arc::new(make());
        values.insert(key.to_owned(), Arc::downgrade(&made));
        made
    }
}

/// A slot in use.
#[derive(Debug)]
pub(super) struct Slot {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
    /// The semaphore exists as long as one of its permits.
    _semaphore: Arc<Semaphore>,
}

impl Slots {
    /// Slots of all organizations, and of each.
    pub(super) fn new((all, of_organization): (usize, usize)) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_organization, organizations: Keyed::default() }
    }

    /// Waits for a slot. `None` never happens, as the semaphores are not closed.
    pub(super) async fn take(&self, organization: Option<&str>) -> Option<Slot> {
        let semaphore =
            self.organizations.get(organization.unwrap_or_default(), || Semaphore::new(self.of_organization));
        let own = semaphore.clone().acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Slot { _own: own, _all: all, _semaphore: semaphore })
    }
}
