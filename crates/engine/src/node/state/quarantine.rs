//! The quarantined executions that a node knows, and the progress of the notifications of their parents.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::key::ExecutionKey;

use crate::{
    clock::MonotonicMs,
    limits::{NOTIFIED_AT_A_TIME, NOTIFY_RETRY_MS_MAX, NOTIFY_RETRY_MS_MIN, QUARANTINED_KNOWN_MAX},
    node::quarantine_requests::NotifiedParents,
};

/// State of the notifications about quarantined executions.
#[derive(Debug, Default)]
pub(in crate::node) struct QuarantineProgress {
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    pub(in crate::node) pending_quarantines: BTreeMap<ExecutionKey, String>,
    /// Quarantined executions that this process has met, with the progress of each notification.
    pub(in crate::node) met: BTreeMap<ExecutionKey, Met>,
    /// The size above the bound at which `met` is searched again for executions to forget.
    pub(in crate::node) full_at: usize,
    /// Executions among them whose parents are notified next.
    pub(in crate::node) to_notify: BTreeSet<ExecutionKey>,
    /// Children among them that are not quarantined but cannot start, with the parent that each names.
    pub(in crate::node) not_started: BTreeMap<ExecutionKey, ExecutionKey>,
    /// A batch of parents is being notified. Only one is in progress at a time.
    pub(in crate::node) is_notifying: bool,
    /// `is_wanted`: the quarantined executions are to be read. `is_reading`: a read is in progress.
    pub(in crate::node) is_wanted: bool,
    pub(in crate::node) is_reading: bool,
}

/// Progress of the notification of one parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) enum Met {
    /// Notified next, or in progress.
    InProgress {
        tries: u32,
    },
    Notified,
    /// No parent waits. Tried again whenever the execution is met: the parent may be quarantined itself and released
    /// later.
    NoParentWaits,
    /// The store did not answer, or the parent cannot be read. Retried at the given time.
    Later {
        tries: u32,
        at: MonotonicMs,
    },
}

impl QuarantineProgress {
    /// Records that an execution is quarantined.
    pub(in crate::node) fn meet(&mut self, execution: ExecutionKey) {
        if self.met.len() >= QUARANTINED_KNOWN_MAX.max(self.full_at) {
            // The parents of the others wait: nothing else reminds this node of a child without a journal.
            self.met.retain(|_, met| !matches!(met, Met::Notified | Met::NoParentWaits));
            self.full_at = 2 * self.met.len();
        }
        if matches!(self.met.get(&execution), None | Some(Met::NoParentWaits)) {
            self.met.insert(execution, Met::InProgress { tries: 0 });
            self.to_notify.insert(execution);
        }
    }

    /// Schedules the notifications whose retry time has come.
    pub(in crate::node) fn retry(&mut self, now: MonotonicMs) {
        for (execution, met) in &mut self.met {
            if let Met::Later { tries, at } = *met
                && at <= now
            {
                *met = Met::InProgress { tries };
                self.to_notify.insert(*execution);
            }
        }
    }

    /// Returns the children of the next batch, unless a batch is in progress.
    pub(in crate::node) fn next_batch(&mut self) -> Option<Vec<ExecutionKey>> {
        if self.is_notifying || self.to_notify.is_empty() {
            return None;
        }
        self.is_notifying = true;
        Some((0..NOTIFIED_AT_A_TIME).map_while(|_| self.to_notify.pop_first()).collect())
    }

    pub(in crate::node) fn notified(&mut self, notified: NotifiedParents, now: MonotonicMs) {
        self.is_notifying = false;
        for (child, is_notified) in notified {
            // Remains in `met`: when the execution is released, its messages are read again.
            let Some(met) = self.met.get_mut(&child) else { continue };
            let Met::InProgress { tries } = *met else { continue };
            if is_notified.is_some() && self.not_started.remove(&child).is_some() {
                self.met.remove(&child);
                continue;
            }
            *met = match is_notified {
                Some(true) => Met::Notified,
                Some(false) => Met::NoParentWaits,
                None => {
                    let pause_ms = (NOTIFY_RETRY_MS_MIN << tries.min(16)).min(NOTIFY_RETRY_MS_MAX);
                    Met::Later { tries: tries.saturating_add(1), at: MonotonicMs(now.0.saturating_add(pause_ms)) }
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ExecutionKey {
        let mut key = ExecutionKey([0; 16]);
        key.0[..8].copy_from_slice(&(number as u64).to_be_bytes());
        key
    }

    #[test]
    fn one_bounded_batch_is_notified_at_a_time() {
        let mut quarantine = QuarantineProgress::default();
        (0..=NOTIFIED_AT_A_TIME).for_each(|number| quarantine.meet(key(number)));
        let batch = quarantine.next_batch().unwrap();
        assert_eq!(batch.len(), NOTIFIED_AT_A_TIME);
        assert_eq!(quarantine.next_batch(), None, "one is under way");
        quarantine.notified(batch.into_iter().map(|child| (child, Some(child != key(0)))).collect(), MonotonicMs(0));
        quarantine.meet(key(1));
        assert_eq!(
            quarantine.next_batch(),
            Some(vec![key(NOTIFIED_AT_A_TIME)]),
            "a notified parent is not notified again"
        );
        quarantine.notified(vec![(key(NOTIFIED_AT_A_TIME), Some(true))], MonotonicMs(0));
        quarantine.meet(key(0));
        assert_eq!(quarantine.next_batch(), Some(vec![key(0)]), "no parent waited for this one");
    }

    /// The parents of a full set of quarantined executions were notified, and two were not.
    #[test]
    fn a_full_set_keeps_executions_with_unnotified_parents() {
        let mut quarantine = QuarantineProgress::default();
        let (later, next) = (key(0), key(QUARANTINED_KNOWN_MAX));
        (0..QUARANTINED_KNOWN_MAX).for_each(|number| quarantine.meet(key(number)));
        quarantine.not_started.insert(later, next);
        while let Some(batch) = quarantine.next_batch() {
            quarantine.notified(
                batch.into_iter().map(|child| (child, (child != later).then_some(true))).collect(),
                MonotonicMs(0),
            );
        }
        quarantine.meet(next);
        assert_eq!(quarantine.met.len(), 2, "those whose parents were notified are forgotten");
        quarantine.retry(MonotonicMs(NOTIFY_RETRY_MS_MIN));
        assert_eq!(quarantine.next_batch(), Some(vec![later, next]));
        assert!(quarantine.not_started.contains_key(&later));
        // All parents cannot be read: the set grows, and is not searched for each execution.
        let mut quarantine = QuarantineProgress::default();
        (0..2 * QUARANTINED_KNOWN_MAX).for_each(|number| quarantine.meet(key(number)));
        assert_eq!(quarantine.to_notify.len(), 2 * QUARANTINED_KNOWN_MAX);
    }

    #[test]
    fn notifications_of_an_unreadable_parent_use_backoff() {
        let (mut quarantine, mut now, mut asked_at) = (QuarantineProgress::default(), 0, Vec::new());
        quarantine.meet(key(0));
        while asked_at.len() < 12 {
            quarantine.meet(key(0));
            quarantine.retry(MonotonicMs(now));
            if let Some(batch) = quarantine.next_batch() {
                asked_at.push(now);
                quarantine.notified(batch.into_iter().map(|child| (child, None)).collect(), MonotonicMs(now));
            }
            now += NOTIFY_RETRY_MS_MIN;
        }
        let pauses: Vec<u64> = asked_at.windows(2).map(|times| times[1] - times[0]).collect();
        assert_eq!(pauses[..3], [NOTIFY_RETRY_MS_MIN, 2 * NOTIFY_RETRY_MS_MIN, 4 * NOTIFY_RETRY_MS_MIN]);
        assert_eq!(pauses.last(), Some(&NOTIFY_RETRY_MS_MAX));
        // A new quarantine is notified at once.
        quarantine.met.remove(&key(0));
        quarantine.meet(key(0));
        assert!(quarantine.next_batch().is_some());
    }
}
