//! Bounds the unfinished executions of each organization, including children.
//!
//! A state machine without I/O, performed by the driver: it adds the starts on this node to the last count of the
//! store. Each node counts by itself, and more often while many executions start. An organization therefore exceeds its
//! bound only by the starts of all nodes between two counts.

use std::collections::BTreeMap;

use crate::clock::MonotonicMs;

/// Milliseconds between two counts of an organization with starts on this node.
const COUNT_AGAIN_MS: u64 = 20_000;

/// Milliseconds between two counts of an organization at its bound.
const COUNT_FULL_MS: u64 = 1_000;

/// An organization is also counted after this fraction of its bound has started here.
const COUNT_AFTER_PART: u64 = 16;

/// The counts of organizations with starts on this node.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedCounts(BTreeMap<String, Count>);

#[derive(Debug, Default)]
struct Count {
    /// The bound. `None` until the store was read.
    most: Option<u32>,
    counted: u64,
    /// Starts on this node since the last count was requested.
    begun: u64,
    /// Starts among them that precede the count in progress.
    begun_before: u64,
    asked_at: Option<MonotonicMs>,
    is_asked: bool,
    is_used: bool,
}

impl Count {
    fn is_full(&self) -> Option<u32> {
        self.most.filter(|most| self.counted + self.begun >= u64::from(*most))
    }

    /// True if a count is due. It is then marked as requested.
    fn ask(&mut self, now: MonotonicMs) -> bool {
        let is_due = self.is_due(now);
        if is_due {
            (self.is_asked, self.asked_at, self.begun_before) = (true, Some(now), self.begun);
        }
        is_due
    }

    fn is_due(&self, now: MonotonicMs) -> bool {
        let age_ms = self.asked_at.map_or(u64::MAX, |at| now.0.saturating_sub(at.0));
        let part = u64::from(self.most.unwrap_or(0)) / COUNT_AFTER_PART;
        let is_full = self.is_full().is_some() || self.begun > part;
        !self.is_asked && (age_ms >= COUNT_AGAIN_MS || is_full && age_ms >= COUNT_FULL_MS)
    }
}

impl UnfinishedCounts {
    /// Records a start, unless it would exceed the bound, which is then the error. The second value is true if a count
    /// is due. Its result is passed to [`counted`](Self::counted).
    pub(crate) fn begin(&mut self, organization: &str, now: MonotonicMs) -> (Result<(), u32>, bool) {
        if !self.0.contains_key(organization) {
            self.0.insert(organization.to_owned(), Count::default());
        }
        let Some(count) = self.0.get_mut(organization) else { return (Ok(()), false) };
        count.is_used = true;
        let answer = count.is_full().map_or(Ok(()), Err);
        count.begun += u64::from(answer.is_ok());
        (answer, count.ask(now))
    }

    /// The first value is false if the organization is at its bound. The second value is that of
    /// [`begin`](Self::begin).
    pub(crate) fn has_room(&mut self, organization: &str, now: MonotonicMs) -> (bool, bool) {
        let Some(count) = self.0.get_mut(organization).filter(|count| count.is_full().is_some()) else {
            return (true, false);
        };
        count.is_used = true;
        (false, count.ask(now))
    }

    /// Handles the result of a count: the bound and the number. `None` keeps the last result until the next count.
    pub(crate) fn counted(&mut self, organization: &str, found: Option<(u32, u64)>) {
        let Some(count) = self.0.get_mut(organization) else { return };
        count.is_asked = false;
        if let Some((most, counted)) = found {
            (count.most, count.counted) = (Some(most), counted);
            count.begun -= count.begun_before;
        }
    }

    /// Forgets organizations without starts since the last call.
    pub(crate) fn forget_unused(&mut self) {
        self.0.retain(|_, count| std::mem::take(&mut count.is_used) || count.is_asked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_the_bound_wait_for_an_end() {
        let mut live = UnfinishedCounts::default();
        let at = |ms: u64| MonotonicMs(100_000 + ms);
        assert_eq!(live.begin("o", at(0)), (Ok(()), true), "the first one has it counted");
        assert_eq!(live.begin("o", at(1)), (Ok(()), false), "one count at a time");
        live.counted("o", Some((4, 1)));
        assert_eq!(live.begin("o", at(2)), (Ok(()), false), "what has begun meanwhile is one");
        assert_eq!(live.begin("o", at(3)), (Ok(()), false));
        assert_eq!(live.begin("o", at(4)), (Err(4), false));
        assert_eq!(live.begin("p", at(4)), (Ok(()), true), "others have a bound of their own");
        assert_eq!(live.begin("o", at(1_000)), (Err(4), true));
        live.counted("o", None);
        assert_eq!(live.begin("o", at(1_001)), (Err(4), false), "a store that does not answer lets nobody in");
        assert_eq!(live.begin("o", at(2_000)), (Err(4), true));
        live.counted("o", Some((4, 3)));
        assert_eq!(live.begin("o", at(2_001)).0, Ok(()));
        assert_eq!(live.begin("o", at(2_002)).0, Err(4));
        assert_eq!(live.has_room("o", at(2_003)), (false, false));
        assert_eq!(live.has_room("o", at(3_000)), (false, true), "who waits for room has it counted");
        live.counted("o", Some((4, 3)));
        assert_eq!(live.has_room("o", at(3_001)), (true, false));
    }

    #[test]
    fn unused_counts_are_removed() {
        let mut live = UnfinishedCounts::default();
        assert!(live.begin("o", MonotonicMs(1)).0.is_ok());
        live.counted("o", Some((9, 0)));
        live.forget_unused();
        assert_eq!(live.0.len(), 1);
        live.forget_unused();
        assert_eq!(live.0.len(), 0);
    }
}
