//! When the shard looks at which execution again: at most one time for each execution.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::key::ExecutionKey;

/// The times, in their order and by execution: setting or removing one costs the logarithm of their number.
#[derive(Debug, Default)]
pub(super) struct Timers {
    order: BTreeSet<(u64, ExecutionKey)>,
    times: BTreeMap<ExecutionKey, u64>,
}

impl Timers {
    /// The earliest time, with its execution.
    pub(super) fn first(&self) -> Option<(u64, ExecutionKey)> {
        self.order.first().copied()
    }

    /// Replaces the time of an execution.
    pub(super) fn set(&mut self, execution: ExecutionKey, at: Option<u64>) {
        let Some(at) = at else { return self.remove(execution) };
        let before = self.times.insert(execution, at);
        if before != Some(at) {
            before.map(|before| self.order.remove(&(before, execution)));
            self.order.insert((at, execution));
        }
    }

    /// Sets the time of an execution unless it has an earlier one.
    pub(super) fn set_at_latest(&mut self, execution: ExecutionKey, at: u64) {
        if self.times.get(&execution).is_none_or(|known| at < *known) {
            self.set(execution, Some(at));
        }
    }

    pub(super) fn remove(&mut self, execution: ExecutionKey) {
        if let Some(at) = self.times.remove(&execution) {
            self.order.remove(&(at, execution));
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ExecutionKey) -> bool) {
        self.times.retain(|execution, _| keep(execution));
        self.order.retain(|(_, execution)| keep(execution));
    }

    /// The executions that have a time set, in the order of their keys.
    pub(super) fn executions(&self) -> impl Iterator<Item = ExecutionKey> + '_ {
        self.times.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> ExecutionKey {
        ExecutionKey([number; 16])
    }

    #[test]
    fn an_execution_has_one_time() {
        let mut timers = Timers::default();
        timers.set(key(1), Some(20));
        timers.set(key(2), Some(10));
        assert_eq!(timers.first(), Some((10, key(2))));
        timers.set(key(2), Some(30));
        assert_eq!(timers.first(), Some((20, key(1))), "the time at 10 is replaced");
        timers.set_at_latest(key(2), 40);
        timers.set_at_latest(key(2), 5);
        assert_eq!(timers.first(), Some((5, key(2))));
        timers.set(key(2), None);
        assert_eq!(timers.executions().collect::<Vec<_>>(), [key(1)]);
        timers.retain(|execution| *execution != key(1));
        assert_eq!((timers.first(), timers.order.len(), timers.times.len()), (None, 0, 0));
    }
}
