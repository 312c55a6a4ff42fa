//! Admission at a node: its state machine, the admissions sent to other nodes, and the notifications to follow.

use std::collections::{BTreeSet, VecDeque};

use mainspring_kernel::key::ExecutionKey;

use crate::{admission::Admission, clock::MonotonicMs, unfinished::UnfinishedCounts};

/// State of admission.
#[derive(Debug, Default)]
pub(in crate::node) struct AdmissionControl {
    pub(in crate::node) machine: Admission,
    pub(in crate::node) is_searching_queues: bool,
    pub(in crate::node) notifications: Notifications,
    pub(in crate::node) unfinished: UnfinishedCounts,
    pub(in crate::node) sent: SentAdmissions,
}

/// Milliseconds in which an admission is not sent to another node again. A read that began before the admission was
/// committed still finds the execution queued. A second message that is stored between the commit of the first one and
/// the end of its release would be taken for the first one, and stay in the inbox.
pub(in crate::node) const SEND_AGAIN_MS: u64 = 10_000;

/// The admissions that were sent to other nodes lately.
#[derive(Debug, Default)]
pub(in crate::node) struct SentAdmissions {
    pub(in crate::node) by_time: VecDeque<(MonotonicMs, ExecutionKey)>,
    pub(in crate::node) executions: BTreeSet<ExecutionKey>,
}

impl SentAdmissions {
    /// Adds an admission. False if it was sent a short time ago.
    pub(in crate::node) fn add(&mut self, execution: ExecutionKey, now: MonotonicMs) -> bool {
        while let Some((_, old)) = self.by_time.pop_front_if(|(at, _)| at.0 + SEND_AGAIN_MS <= now.0) {
            self.executions.remove(&old);
        }
        let is_new = self.executions.insert(execution);
        if is_new {
            self.by_time.push_back((now, execution));
        }
        is_new
    }
}

/// Milliseconds between two reads caused by notifications. Notifications also announce messages and arrive constantly,
/// and the cost of a read grows with the unfinished executions of the organization.
pub(in crate::node) const NOTIFICATION_PAUSE_MS: u64 = 200;

/// Partitions named by notifications. None is lost: a notification within the pause is followed when the pause ends.
#[derive(Debug, Default)]
pub(in crate::node) struct Notifications {
    pub(in crate::node) partitions: BTreeSet<u32>,
    pub(in crate::node) followed_at: Option<MonotonicMs>,
    /// The time at which they are followed. `None` if there are none.
    pub(in crate::node) follow_at: Option<MonotonicMs>,
}

impl Notifications {
    /// Schedules the reads. Notifications within the pause are followed together.
    pub(in crate::node) fn add(&mut self, partitions: &[u32], now: MonotonicMs) {
        self.partitions.extend(partitions);
        let at = self.followed_at.map_or(now, |at| MonotonicMs(at.0 + NOTIFICATION_PAUSE_MS).max(now));
        self.follow_at.get_or_insert(at);
    }

    /// Returns the partitions whose time has come.
    pub(in crate::node) fn follow(&mut self, now: MonotonicMs) -> Option<BTreeSet<u32>> {
        self.follow_at.take_if(|at| *at <= now)?;
        self.followed_at = Some(now);
        Some(std::mem::take(&mut self.partitions))
    }
}

impl AdmissionControl {
    /// The number of executions with a slot, and of queued ones.
    pub(in crate::node) fn counts(&self) -> [usize; 2] {
        self.machine.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_is_resent_only_after_a_delay() {
        let mut sent = SentAdmissions::default();
        let mut add = |number, now_ms| sent.add(ExecutionKey([number; 16]), MonotonicMs(now_ms));
        assert!(add(1, 0) && add(2, 1));
        assert!(!add(1, SEND_AGAIN_MS - 1));
        assert!(add(1, SEND_AGAIN_MS) && !add(2, SEND_AGAIN_MS));
        assert!(add(2, SEND_AGAIN_MS + 1) && !add(1, SEND_AGAIN_MS + 1));
    }

    #[test]
    fn notifications_are_handled_once_per_interval() {
        let mut notifications = Notifications::default();
        notifications.add(&[1], MonotonicMs(1_000));
        assert_eq!(notifications.follow(MonotonicMs(1_000)), Some([1].into()));
        notifications.add(&[2], MonotonicMs(1_050));
        notifications.add(&[3], MonotonicMs(1_060));
        assert_eq!(notifications.follow(MonotonicMs(1_199)), None);
        assert_eq!(notifications.follow(MonotonicMs(1_200)), Some([2, 3].into()), "one pause for all that comes in it");
        notifications.add(&[4], MonotonicMs(2_000));
        assert_eq!(notifications.follow(MonotonicMs(2_000)), Some([4].into()));
    }
}
