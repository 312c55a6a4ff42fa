//! Executions that stay in memory although nothing of them is going on: for a time, a signal, a decision.
//!
//! Reading one back costs as much as its journal is long. One that sleeps in a loop would be read once for every round.
//! So they stay as long as there is room; the one that has rested longest goes first.

use std::collections::BTreeMap;

use mainspring_kernel::key::ExecutionKey;

/// Who rests, and how much room that takes. Whoever goes on keeps its place here until it rests again or is let go.
#[derive(Debug)]
pub(super) struct Resting {
    /// Bytes of memory that their states take.
    bytes_max: usize,
    bytes: usize,
    /// In the order in which they came to rest.
    order: BTreeMap<u64, ExecutionKey>,
    /// The place in that order, and bytes.
    places: BTreeMap<ExecutionKey, (u64, usize)>,
    next: u64,
}

impl Resting {
    /// Room for executions whose states take so many bytes of memory together.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, order: BTreeMap::new(), places: BTreeMap::new(), next: 0 }
    }

    /// An execution comes to rest. False if there would be no room for it even without all others: then it does not stay,
    /// and none of those gives way to it.
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

    /// An execution is not in memory any more.
    pub(super) fn remove(&mut self, execution: ExecutionKey) {
        if let Some((place, bytes)) = self.places.remove(&execution) {
            self.order.remove(&place);
            self.bytes -= bytes;
        }
    }

    /// The one to let go, as long as there is not enough room for all.
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
    fn who_has_rested_longest_goes_first_and_only_for_room() {
        let mut resting = Resting::new(10);
        for number in [1, 2, 3] {
            assert!(resting.add(key(number), 3));
        }
        assert_eq!(resting.pop_surplus(), None);
        // One that has moved meanwhile rests anew, with what it has become.
        assert!(resting.add(key(1), 6));
        assert_eq!(resting.bytes, 12);
        assert_eq!(resting.pop_surplus(), Some(key(2)));
        assert_eq!(resting.pop_surplus(), None);
        assert!(resting.add(key(4), 10), "one of exactly the room there is stays, and the others go");
        assert_eq!([(); 3].map(|()| resting.pop_surplus()), [Some(key(3)), Some(key(1)), None]);
        resting.remove(key(4));
        assert!(resting.add(key(5), 4));
        resting.remove(key(5));
        resting.remove(key(6));
        assert_eq!((resting.bytes, resting.order.len(), resting.places.len()), (0, 0, 0));
    }

    #[test]
    fn a_journal_larger_than_the_room_evicts_nobody() {
        let mut resting = Resting::new(10);
        assert!(resting.add(key(1), 6) && resting.add(key(2), 4));
        assert!(!resting.add(key(3), 11));
        assert_eq!((resting.pop_surplus(), resting.bytes), (None, 10));
        // One that rests and has grown beyond the room goes alone.
        assert!(!resting.add(key(1), 12));
        assert_eq!((resting.pop_surplus(), resting.bytes), (None, 4));
    }
}
