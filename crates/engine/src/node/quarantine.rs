//! Quarantined executions: records each in the store, and notifies the executions that wait for them.
//!
//! The owner of a quarantined execution notifies its parent. A node can crash between the quarantine and the
//! notification, so the next owner of the partition reads its quarantined executions and notifies again. A repeated
//! notification is the same message, and the journal of the parent says if it still waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Store, StoreError};
use tracing::warn;

use super::{Node, NodeEvent, NodeOutput, Report};
use crate::{
    clock::MonotonicMs,
    limits::{
        NOTIFIED_AT_A_TIME, NOTIFY_RETRY_MS_MAX, NOTIFY_RETRY_MS_MIN, QUARANTINED_AT_A_TIME, QUARANTINED_KNOWN_MAX,
    },
    options::EngineScope,
    quarantine::{Place, notify, notify_of_not_started, parent_of},
    shard::{Event, LoadAnswer},
};

/// State of the notifications about quarantined executions.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    pending_quarantines: BTreeMap<ExecutionKey, String>,
    /// Quarantined executions that this process has met, with the progress of each notification.
    met: BTreeMap<ExecutionKey, Met>,
    /// The size above the bound at which `met` is searched again for executions to forget.
    full_at: usize,
    /// Executions among them whose parents are notified next.
    to_notify: BTreeSet<ExecutionKey>,
    /// Children among them that are not quarantined but cannot start, with the parent that each names.
    unbegun: BTreeMap<ExecutionKey, ExecutionKey>,
    /// A batch of parents is being notified. Only one is in progress at a time.
    is_notifying: bool,
    /// `is_wanted`: the quarantined executions are to be read. `is_reading`: a read is in progress.
    is_wanted: bool,
    is_reading: bool,
}

/// Progress of the notification of one parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
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

/// Children whose parents were to be notified. `Some(true)` if a parent waits, `None` if that is unknown.
pub type NotifiedParents = Vec<(ExecutionKey, Option<bool>)>;

/// Children whose parents are to be notified.
#[derive(Debug)]
pub struct UnnotifiedParents {
    children: Vec<ExecutionKey>,
    /// The children among them that cannot start, with the parent that each names.
    unbegun: BTreeMap<ExecutionKey, ExecutionKey>,
}

impl Aside {
    /// Records that an execution is quarantined.
    fn meet(&mut self, execution: ExecutionKey) {
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
    fn retry(&mut self, now: MonotonicMs) {
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
    fn next_batch(&mut self) -> Option<Vec<ExecutionKey>> {
        if self.is_notifying || self.to_notify.is_empty() {
            return None;
        }
        self.is_notifying = true;
        Some((0..NOTIFIED_AT_A_TIME).map_while(|_| self.to_notify.pop_first()).collect())
    }

    fn notified(&mut self, notified: NotifiedParents, now: MonotonicMs) {
        self.is_notifying = false;
        for (child, is_notified) in notified {
            // Remains in `met`: when the execution is released, its messages are read again.
            let Some(met) = self.met.get_mut(&child) else { continue };
            let Met::InProgress { tries } = *met else { continue };
            if is_notified.is_some() && self.unbegun.remove(&child).is_some() {
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

impl UnnotifiedParents {
    /// Notifies the parents. The journal of each parent is read once, and an error of one does not affect the others.
    /// Blocks.
    pub fn notify(&self, place: Place<'_>) -> NotifiedParents {
        notify_all(place, &self.children, &self.unbegun)
    }

    /// The answer if the store does not answer.
    pub fn unanswered(&self) -> NotifiedParents {
        self.children.iter().map(|child| (*child, None)).collect()
    }
}

impl Node {
    /// Quarantines an execution without waiting for the store. Until the store has recorded it, the journal is not read
    /// again.
    pub(super) fn quarantine(&mut self, execution: ExecutionKey, why: String) {
        self.aside.pending_quarantines.insert(execution, why.clone());
        self.outputs.push_back(NodeOutput::Quarantine(execution, why));
    }

    /// True if the quarantine of no execution is being recorded.
    pub(super) fn has_set_all_aside(&self) -> bool {
        self.aside.pending_quarantines.is_empty()
    }

    /// Requests a journal. `None` if the quarantine of the execution is not recorded yet: the request is answered here.
    pub(super) fn load(&mut self, execution: ExecutionKey, number: u64) -> Option<NodeOutput> {
        let Some(why) = self.aside.pending_quarantines.get(&execution) else {
            return Some(NodeOutput::Load(execution, number));
        };
        // PendingInput, since it may produce outputs of its own.
        let answer = Box::new(LoadAnswer::Quarantined(why.clone()));
        self.receive(NodeEvent::Shard(Event::Loaded(execution, number, answer)));
        None
    }

    /// Handles the store's answer to a quarantine. With a shared store, a failed one is repeated when the execution is
    /// loaded again. The execution's messages were rejected in the meantime, so they are read again.
    pub(super) fn on_quarantine_recorded(
        &mut self,
        execution: ExecutionKey,
        answer: Result<Option<String>, StoreError>,
    ) {
        let why = self.aside.pending_quarantines.remove(&execution).unwrap_or_default();
        match answer {
            Ok(organization) => {
                self.report(Report::Quarantined(execution, why));
                self.count_out(execution, organization);
                self.quarantined(execution);
            }
            Err(error) if self.is_alone() => {
                self.stop(format!("an execution cannot be quarantined: {error}"));
            }
            Err(_) => self.reset_inbox_cursor(),
        }
    }

    /// Notifies the parent of an execution that was quarantined just now.
    pub(super) fn quarantined(&mut self, execution: ExecutionKey) {
        self.aside.met.remove(&execution);
        self.aside.meet(execution);
        self.notify_parents();
    }

    /// Compares the result of a load with the known quarantined executions. An execution that is no longer quarantined
    /// was released, so the inbox is read again for the messages that it could not receive.
    pub(super) fn meet_quarantined(&mut self, event: &Event) {
        let Event::Loaded(execution, _, answer) = event else { return };
        match **answer {
            LoadAnswer::Quarantined(_) => {
                self.aside.meet(*execution);
                self.notify_parents();
            }
            LoadAnswer::Journal(_) if self.aside.met.remove(execution).is_some() => {
                self.reset_inbox_cursor();
                self.poll_inbox();
            }
            _ => {}
        }
    }

    /// Partitions were acquired: their former owner may have notified no parent of the executions quarantined in them.
    pub(super) fn want_quarantined(&mut self) {
        self.aside.is_wanted = true;
        self.read_quarantined();
    }

    /// Reads the quarantined executions if that was requested, one read at a time. An engine that works on named
    /// executions notifies their parents when it loads them.
    pub(super) fn read_quarantined(&mut self) {
        self.aside.retry(self.now.monotonic);
        self.notify_parents();
        if !self.aside.is_wanted || self.aside.is_reading || self.scope != EngineScope::All {
            return;
        }
        (self.aside.is_wanted, self.aside.is_reading) = (false, true);
        self.outputs.push_back(NodeOutput::ReadQuarantined);
    }

    pub(super) fn found_quarantined(&mut self, found: Option<Vec<ExecutionKey>>) {
        self.aside.is_reading = false;
        let Some(found) = found else {
            // Retried with the next poll of timers.
            self.aside.is_wanted = true;
            return;
        };
        for execution in found {
            if self.shard.holds(execution) {
                self.aside.meet(execution);
            }
        }
        self.read_quarantined();
    }

    /// Notifies the next batch of parents.
    fn notify_parents(&mut self) {
        let Some(children) = self.aside.next_batch() else { return };
        let unbegun = children.iter().filter_map(|child| Some((*child, *self.aside.unbegun.get(child)?))).collect();
        self.outputs.push_back(NodeOutput::NotifyParents(UnnotifiedParents { children, unbegun }));
    }

    /// Notifies the parent of a child whose start message was forged, if that parent waits for this child.
    pub(super) fn unbegun(&mut self, child: ExecutionKey, parent: Option<ExecutionKey>) {
        let Some(parent) = parent.filter(|_| !self.aside.met.contains_key(&child)) else { return };
        self.aside.meet(child);
        self.aside.unbegun.insert(child, parent);
        self.notify_parents();
    }

    pub(super) fn parents_notified(&mut self, notified: NotifiedParents) {
        self.aside.notified(notified, self.now.monotonic);
        self.notify_parents();
    }
}

/// Quarantines an execution in the store. Returns the organization that it counted for, if `counts` is set. Blocks.
pub fn record(
    store: &dyn Store,
    execution: ExecutionKey,
    why: &str,
    counts: bool,
) -> Result<Option<String>, StoreError> {
    store.quarantine(execution, why)?;
    // Quarantines are rare, so the organization is read here and not kept in memory.
    let row = if counts { store.execution(execution).ok().flatten() } else { None };
    Ok(row.and_then(|row| row.organization))
}

fn notify_all(
    place: Place<'_>,
    children: &[ExecutionKey],
    unbegun: &BTreeMap<ExecutionKey, ExecutionKey>,
) -> NotifiedParents {
    let mut all = Vec::new();
    let mut trees: BTreeMap<ExecutionKey, Vec<ExecutionKey>> = BTreeMap::new();
    for child in children {
        if let Some(parent) = unbegun.get(child) {
            let notified = catch_unwind(AssertUnwindSafe(|| notify_of_not_started(place, *parent, *child)));
            all.push((*child, notified.ok().and_then(Result::ok)));
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| parent_of(place, *child))) {
            Ok(Ok(Some(parent))) => trees.entry(parent).or_default().push(*child),
            Ok(Ok(None)) => all.push((*child, Some(false))),
            Ok(Err(_)) | Err(_) => all.push((*child, None)),
        }
    }
    for (parent, children) in trees {
        let notified = catch_unwind(AssertUnwindSafe(|| notify(place, parent, &children)));
        if let Ok(Err(error)) = &notified {
            warn!(%parent, %error, "the parent of quarantined executions could not be notified, and is notified again");
        }
        let notified = notified.ok().and_then(Result::ok);
        all.extend(
            children.into_iter().map(|child| (child, notified.as_ref().map(|notified| notified.contains(&child)))),
        );
    }
    all
}

/// Reads the quarantined executions of a store, up to a bound. Blocks.
pub fn all_quarantined(store: &dyn Store) -> Result<Vec<ExecutionKey>, StoreError> {
    let mut all: Vec<ExecutionKey> = Vec::new();
    loop {
        let page = store.quarantined(None, all.last().copied(), QUARANTINED_AT_A_TIME)?;
        all.extend(page.iter().map(|row| row.execution));
        if page.len() < QUARANTINED_AT_A_TIME || all.len() >= QUARANTINED_KNOWN_MAX {
            return Ok(all);
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
    fn one_batch_of_bounded_size_is_told_at_a_time() {
        let mut aside = Aside::default();
        (0..=NOTIFIED_AT_A_TIME).for_each(|number| aside.meet(key(number)));
        let batch = aside.next_batch().unwrap();
        assert_eq!(batch.len(), NOTIFIED_AT_A_TIME);
        assert_eq!(aside.next_batch(), None, "one is under way");
        aside.notified(batch.into_iter().map(|child| (child, Some(child != key(0)))).collect(), MonotonicMs(0));
        aside.meet(key(1));
        assert_eq!(aside.next_batch(), Some(vec![key(NOTIFIED_AT_A_TIME)]), "who was notified is not notified again");
        aside.notified(vec![(key(NOTIFIED_AT_A_TIME), Some(true))], MonotonicMs(0));
        aside.meet(key(0));
        assert_eq!(aside.next_batch(), Some(vec![key(0)]), "nobody waited for this one");
    }

    /// The parents of a full set of quarantined executions were notified, and two were not.
    #[test]
    fn a_full_set_forgets_no_execution_whose_parent_is_to_be_told() {
        let mut aside = Aside::default();
        let (later, next) = (key(0), key(QUARANTINED_KNOWN_MAX));
        (0..QUARANTINED_KNOWN_MAX).for_each(|number| aside.meet(key(number)));
        aside.unbegun.insert(later, next);
        while let Some(batch) = aside.next_batch() {
            aside.notified(
                batch.into_iter().map(|child| (child, (child != later).then_some(true))).collect(),
                MonotonicMs(0),
            );
        }
        aside.meet(next);
        assert_eq!(aside.met.len(), 2, "those whose parents were notified are forgotten");
        aside.retry(MonotonicMs(NOTIFY_RETRY_MS_MIN));
        assert_eq!(aside.next_batch(), Some(vec![later, next]));
        assert!(aside.unbegun.contains_key(&later));
        // All parents cannot be read: the set grows, and is not searched for each execution.
        let mut aside = Aside::default();
        (0..2 * QUARANTINED_KNOWN_MAX).for_each(|number| aside.meet(key(number)));
        assert_eq!(aside.to_notify.len(), 2 * QUARANTINED_KNOWN_MAX);
    }

    #[test]
    fn a_parent_that_cannot_be_read_is_asked_less_and_less_often() {
        let (mut aside, mut now, mut asked_at) = (Aside::default(), 0, Vec::new());
        aside.meet(key(0));
        while asked_at.len() < 12 {
            aside.meet(key(0));
            aside.retry(MonotonicMs(now));
            if let Some(batch) = aside.next_batch() {
                asked_at.push(now);
                aside.notified(batch.into_iter().map(|child| (child, None)).collect(), MonotonicMs(now));
            }
            now += NOTIFY_RETRY_MS_MIN;
        }
        let pauses: Vec<u64> = asked_at.windows(2).map(|times| times[1] - times[0]).collect();
        assert_eq!(pauses[..3], [NOTIFY_RETRY_MS_MIN, 2 * NOTIFY_RETRY_MS_MIN, 4 * NOTIFY_RETRY_MS_MIN]);
        assert_eq!(pauses.last(), Some(&NOTIFY_RETRY_MS_MAX));
        // A new quarantine is notified at once.
        aside.met.remove(&key(0));
        aside.meet(key(0));
        assert!(aside.next_batch().is_some());
    }
}
