//! Turns of organizations: items that wait, in an order in which those of one organization, however many, delay those of
//! the others by little.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

/// Items that wait, by organization.
pub(super) struct Turns<T> {
    waiting: BTreeMap<String, VecDeque<T>>,
    /// The organization that had the last turn.
    last: String,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last: String::new() }
    }
}

impl<T> Turns<T> {
    /// Replaces the items that wait. The turns continue.
    pub(super) fn replace(&mut self, waiting: BTreeMap<String, VecDeque<T>>) {
        self.waiting = waiting;
    }

    /// The number of items that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Takes the first item of the next organization that may have a further one in progress.
    pub(super) fn take(&mut self, may_start: impl Fn(&str) -> bool) -> Option<T> {
        let after = self.waiting.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded));
        let until = self.waiting.range::<str, _>((Bound::Unbounded, Bound::Included(self.last.as_str())));
        let mut turns = after.chain(until).map(|(organization, _)| organization);
        let organization = turns.find(|organization| may_start(organization))?.clone();
        let items = self.waiting.get_mut(&organization)?;
        let item = items.pop_front();
        if items.is_empty() {
            self.waiting.remove(&organization);
        }
        self.last = organization;
        item
    }
}
