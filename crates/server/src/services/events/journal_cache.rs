//! The journals whose events were sent last. A further pass of a subscription, and those of other subscriptions, read the
//! frames that were committed since, and not the whole journal.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_kernel::key::ExecutionKey;

use super::journal_events::JournalEvents;
use crate::http::problem::Result;

/// Journals in the cache, and the bytes of their frames. A larger journal is read as a whole for each pass.
const JOURNALS_MAX: usize = 256;
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// The journals that were used last.
#[derive(Default)]
pub(super) struct JournalCache {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_execution: HashMap<ExecutionKey, Entry>,
    /// The number of uses so far.
    uses: u64,
}

struct Entry {
    journal: Arc<Mutex<JournalEvents>>,
    bytes: usize,
    used: u64,
}

impl JournalCache {
    /// Calls a function with the journal of an execution, which other subscriptions wait for.
    pub(super) fn with<T>(
        &self,
        execution: ExecutionKey,
        work: impl FnOnce(&mut JournalEvents) -> Result<T>,
    ) -> Result<T> {
        let journal = lock(&self.entries).journal(execution);
        let mut journal = lock(&journal);
        let done = work(&mut journal);
        lock(&self.entries).keep(execution, journal.bytes);
        done
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entries {
    fn journal(&mut self, execution: ExecutionKey) -> Arc<Mutex<JournalEvents>> {
        self.uses += 1;
        let used = self.uses;
        let entry =
            self.by_execution.entry(execution).or_insert_with(|| Entry { journal: Arc::default(), bytes: 0, used });
        entry.used = used;
        entry.journal.clone()
    }

    /// Records the size of a journal, and removes those that were not used for longest beyond the bounds.
    fn keep(&mut self, execution: ExecutionKey, bytes: usize) {
        if let Some(entry) = self.by_execution.get_mut(&execution) {
            entry.bytes = bytes;
        }
        let mut all: usize = self.by_execution.values().map(|entry| entry.bytes).sum();
        while self.by_execution.len() > JOURNALS_MAX || all > BYTES_MAX {
            let oldest = self.by_execution.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(removed) = oldest.and_then(|key| self.by_execution.remove(&key)) else { return };
            all -= removed.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ExecutionKey {
        ExecutionKey((number as u128).to_be_bytes())
    }

    #[test]
    fn the_number_of_journals_and_their_bytes_are_bounded() {
        let cache = JournalCache::default();
        let use_with = |number: usize, bytes: usize| {
            cache.with(key(number), |journal| {
                journal.bytes = bytes;
                Ok(())
            })
        };
        for number in 0..JOURNALS_MAX + 10 {
            use_with(number, 1).unwrap();
        }
        let has = |number: usize| lock(&cache.entries).by_execution.contains_key(&key(number));
        assert!(!has(0) && !has(9) && has(10) && has(JOURNALS_MAX + 9));
        use_with(10, BYTES_MAX).unwrap();
        assert_eq!(lock(&cache.entries).by_execution.len(), 1, "the others are older");
        use_with(11, 1).unwrap();
        assert!(has(11) && !has(10));
        use_with(12, BYTES_MAX + 1).unwrap();
        assert!(!has(12));
    }
}
