//! The idle cache: executions in memory that wait for a time, a signal or a decision. The cache contains keys and
//! sizes, and the states stay with the shard.
//!
//! Reading an execution back costs as much as its journal is long, and an execution that sleeps in a loop would be read
//! once per round. Idle executions therefore stay while there is room, and the one that was idle longest is evicted
//! first.

use std::collections::BTreeMap;

use mainspring_kernel::key::ExecutionKey;

/// Idle executions and their memory. An execution that becomes active keeps its entry until it is idle again or
/// dropped.
#[derive(Debug)]
pub(super) struct IdleCache {
    /// Bound of the memory of their states, in bytes.
    bytes_max: usize,
    bytes: usize,
    /// Executions by the order in which they became idle.
    order: BTreeMap<u64, ExecutionKey>,
    /// Position in that order, and bytes.
    places: BTreeMap<ExecutionKey, (u64, usize)>,
    next: u64,
}

impl IdleCache {
    /// Creates a cache for states of so many bytes in total.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, order: BTreeMap::new(), places: BTreeMap::new(), next: 0 }
    }

    /// Adds an idle execution. False if it exceeds the whole bound by itself: it is not cached, and it evicts no other.
    pub(super) fn add(&mut self, execution: ExecutionKey, bytes: usize) -> bool {
        self.remove(execution);
        if bytes > self.bytes_max {
            return false;
        }
        self.order.insert(self.next, execution);
        self.places.insert(execution, (self.next, bytes));
        self.next += 1;
        self.bytes += bytes;
        true
    }

    /// Removes an execution that is no longer in memory.
    pub(super) fn remove(&mut self, execution: ExecutionKey) {
        if let Some((place, bytes)) = self.places.remove(&execution) {
            self.order.remove(&place);
            self.bytes -= bytes;
        }
    }

    /// Returns the next execution to evict, while the cache exceeds its bound.
    pub(super) fn pop_surplus(&mut self) -> Option<ExecutionKey> {
        if self.bytes <= self.bytes_max {
            return None;
        }
        let first = self.order.first_key_value().map(|(_, execution)| *execution)?;
        self.remove(first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> ExecutionKey {
        ExecutionKey([number; 16])
    }

    #[test]
    fn the_longest_idle_execution_is_evicted_first() {
        let mut idle = IdleCache::new(10);
        for number in [1, 2, 3] {
            assert!(idle.add(key(number), 3));
        }
        assert_eq!(idle.pop_surplus(), None);
        // A cached execution that was active is added again with its new size.
        assert!(idle.add(key(1), 6));
        assert_eq!(idle.bytes, 12);
        assert_eq!(idle.pop_surplus(), Some(key(2)));
        assert_eq!(idle.pop_surplus(), None);
        assert!(idle.add(key(4), 10), "one of exactly the room there is stays, and the others go");
        assert_eq!([(); 3].map(|()| idle.pop_surplus()), [Some(key(3)), Some(key(1)), None]);
        idle.remove(key(4));
        assert!(idle.add(key(5), 4));
        idle.remove(key(5));
        idle.remove(key(6));
        assert_eq!((idle.bytes, idle.order.len(), idle.places.len()), (0, 0, 0));
    }

    #[test]
    fn a_journal_above_the_bound_evicts_no_other() {
        let mut idle = IdleCache::new(10);
        assert!(idle.add(key(1), 6) && idle.add(key(2), 4));
        assert!(!idle.add(key(3), 11));
        assert_eq!((idle.pop_surplus(), idle.bytes), (None, 10));
        // A cached execution that has outgrown the bound leaves alone.
        assert!(!idle.add(key(1), 12));
        assert_eq!((idle.pop_surplus(), idle.bytes), (None, 4));
    }
}
