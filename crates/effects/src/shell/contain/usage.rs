//! Disk usage of the workspaces of each organization, as last counted by this process.
//!
//! When the disk is nearly full, the scripts of an organization that uses more than half of it are ended first.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Semaphore;

use super::disk::Usage;
use crate::shell::limits::DISK_WALKS_OF_ORGANIZATION;

/// Each workspace with its organization and its usage at the last count.
static STOCK: Mutex<BTreeMap<PathBuf, (String, Usage)>> = Mutex::new(BTreeMap::new());

/// The semaphores that bound parallel scans of workspaces, for each organization that waits for a scan or runs one.
static TURNS: Mutex<BTreeMap<String, Weak<Semaphore>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the usage of a workspace that was counted.
pub(super) fn set(workspace: &Path, organization: &str, taken: Usage) {
    locked(&STOCK).insert(workspace.to_owned(), (organization.to_owned(), taken));
}

/// Forgets a workspace that was removed.
pub(super) fn forget(workspace: &Path) {
    locked(&STOCK).remove(workspace);
}

/// Returns whether an organization's workspaces hold more than half of the sum of all workspaces and the free space, in
/// bytes or in files.
pub(super) fn has_most(organization: &str, free: Usage) -> bool {
    let usage = locked(&STOCK);
    let sum = |is_meant: &dyn Fn(&str) -> bool| {
        let meant = usage.values().filter(|(whose, _)| is_meant(whose)).map(|(_, taken)| taken);
        meant.fold(Usage::default(), |sum, taken| sum.and(*taken))
    };
    let (own, all) = (sum(&|whose| whose == organization), sum(&|_| true).and(free));
    own.bytes > all.bytes / 2 || own.entries > all.entries / 2
}

/// Returns the semaphore that bounds the parallel scans of an organization's workspaces.
pub(super) fn turns_of(organization: &str) -> Arc<Semaphore> {
    let mut turns = locked(&TURNS);
    if let Some(turns) = turns.get(organization).and_then(Weak::upgrade) {
        return turns;
    }
    turns.retain(|_, turns| turns.strong_count() > 0);
    let new = Arc::new(Semaphore::new(DISK_WALKS_OF_ORGANIZATION));
    turns.insert(organization.to_owned(), Arc::downgrade(&new));
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_with_more_than_half_uses_most() {
        let of = |bytes, entries| Usage { bytes, entries };
        let free = of(100, 1_000);
        set(Path::new("/usage/1"), "large", of(90, 10));
        set(Path::new("/usage/2"), "small", of(10, 10));
        assert!(!has_most("large", free) && !has_most("small", free) && !has_most("none", free));
        set(Path::new("/usage/3"), "large", of(40, 10));
        assert!(has_most("large", free) && !has_most("small", free));
        forget(Path::new("/usage/3"));
        assert!(!has_most("large", free));
        set(Path::new("/usage/3"), "small", of(0, 2_000));
        assert!(has_most("small", free) && !has_most("large", free), "files count as bytes do");
        (1..=3).for_each(|number| forget(&Path::new("/usage").join(number.to_string())));
    }

    #[test]
    fn an_organization_has_turns_of_its_own() {
        let (one, other) = (turns_of("one"), turns_of("other"));
        let _taken: Vec<_> = (0..DISK_WALKS_OF_ORGANIZATION).map(|_| one.try_acquire().unwrap()).collect();
        assert!(turns_of("one").try_acquire().is_err() && other.try_acquire().is_ok());
    }
}
