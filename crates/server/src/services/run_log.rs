//! The run log of triggers. Entries are collected in memory and written together, so that a burst of deliveries costs
//! one write for many of them, and no response waits for it. A crash loses entries that were not written; the executions
//! themselves are durable before the response.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mainspring_store::Change;
use mainspring_triggers::limits::RUN_REASON_CHARS_MAX;
use tracing::warn;

use crate::{
    auth::token::random,
    http::problem::Result,
    resources::{
        Run, RunOutcome, TriggerState,
        repository::{Repository, with_retries},
    },
};

/// Entries that wait for a write. Further ones are dropped while the store does not respond.
const PENDING_MAX: usize = 10_000;

/// Milliseconds between two entries of one trigger about requests that failed verification: a sender without the secret
/// must not push the other entries out of the log.
const UNVERIFIED_EVERY_MS: u64 = 60_000;

/// Triggers whose last such entry is remembered.
const UNVERIFIED_MAX: usize = 10_000;

/// Attempts of a write that conflicts with one of another node.
const TRIES: usize = 20;

/// The trigger of an entry: organization and id.
pub(crate) type TriggerKey = (String, String);

/// Entries that are not stored yet.
#[derive(Debug, Default)]
pub(crate) struct PendingRuns {
    pending: Mutex<Vec<(TriggerKey, Run)>>,
    unverified_at: Mutex<HashMap<TriggerKey, u64>>,
    /// Locked during a write, so that a reader can wait for it.
    writing: Mutex<()>,
}

/// An event of a trigger with its outcome.
#[derive(Debug, Clone)]
pub(crate) struct RunEntry {
    pub(crate) at: u64,
    pub(crate) source: &'static str,
    pub(crate) outcome: RunOutcome,
    pub(crate) status: Option<u16>,
    pub(crate) execution: Option<String>,
    pub(crate) delivery: Option<String>,
    pub(crate) reason: Option<String>,
}

impl PendingRuns {
    /// Adds an entry. True if the caller should write, because no write was pending.
    pub(crate) fn add(&self, trigger: TriggerKey, entry: RunEntry) -> bool {
        let Ok(id) = random(8) else { return false };
        let RunEntry { at, source, outcome, status, execution, delivery, reason } = entry;
        let reason = reason.map(|reason| reason.chars().take(RUN_REASON_CHARS_MAX).collect());
        let run = Run { id, at, source: source.into(), outcome, status, execution, delivery, reason, prompt: None };
        let mut pending = lock(&self.pending);
        if pending.len() >= PENDING_MAX {
            return false;
        }
        pending.push((trigger, run));
        pending.len() == 1
    }

    /// True if no entry waits for a write.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.pending).is_empty()
    }

    /// True if a failed verification is to be logged, at most once a minute for each trigger.
    pub(crate) fn logs_unverified(&self, trigger: &TriggerKey, now: u64) -> bool {
        let mut unverified_at = lock(&self.unverified_at);
        if unverified_at.get(trigger).is_some_and(|at| now.saturating_sub(*at) < UNVERIFIED_EVERY_MS) {
            return false;
        }
        if unverified_at.len() >= UNVERIFIED_MAX {
            unverified_at.clear();
        }
        unverified_at.insert(trigger.clone(), now);
        true
    }

    /// Writes all pending entries. Blocking. When it returns, entries that were added before are stored or dropped.
    pub(crate) fn write(&self, catalogue: &dyn mainspring_store::Catalogue) {
        let _writing = lock(&self.writing);
        let mut by_trigger: BTreeMap<TriggerKey, Vec<Run>> = BTreeMap::new();
        for (trigger, run) in mem::take(&mut *lock(&self.pending)) {
            by_trigger.entry(trigger).or_default().push(run);
        }
        for ((organization, trigger), runs) in by_trigger {
            let written = write_runs(catalogue, (&organization, &trigger), &runs);
            if let Err(problem) = written {
                warn!(trigger, runs = runs.len(), error = problem.full_message(), "the run log was not written");
            }
        }
    }
}

/// Adds entries to the state of a trigger. A deleted trigger has no state, and its entries are dropped.
fn write_runs(
    catalogue: &dyn mainspring_store::Catalogue,
    (organization, trigger): (&str, &str),
    runs: &[Run],
) -> Result<()> {
    let repository = Repository::of(catalogue, organization);
    with_retries(catalogue, TRIES, || {
        let Some(mut stored) = repository.get::<TriggerState>(trigger)? else { return Ok((Change::default(), ())) };
        runs.iter().cloned().for_each(|run| stored.body.add(run));
        let puts = vec![repository.put(trigger, &stored.body, stored.version)?];
        Ok((Change { puts, ..Change::default() }, ()))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use mainspring_store::memory::MemoryStore;
    use mainspring_triggers::limits::RUN_LOG_ENTRIES_MAX;

    use super::*;
    use crate::resources::repository::apply;

    fn entry(at: u64) -> RunEntry {
        let (outcome, execution) = (RunOutcome::Started, Some(format!("e{at}")));
        RunEntry { at, source: "webhook", outcome, status: Some(202), execution, delivery: None, reason: None }
    }

    #[test]
    fn the_newest_runs_of_an_existing_trigger_are_kept() {
        let store = MemoryStore::new();
        let repository = Repository::of(&store, "acme");
        let puts = vec![repository.put("t1", &TriggerState::default(), 0).unwrap()];
        apply(&store, &Change { puts, ..Change::default() }).unwrap().unwrap();
        let pending = PendingRuns::default();
        let key = |trigger: &str| ("acme".to_string(), trigger.to_string());
        assert!(pending.add(key("t1"), entry(1)) && !pending.add(key("t1"), entry(2)), "one write for both");
        assert!(!pending.add(key("deleted"), entry(3)));
        pending.write(&store);
        let state = || repository.get::<TriggerState>("t1").unwrap().unwrap().body;
        assert_eq!(state().runs.iter().map(|run| run.at).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((state().last_run_at, state().last_execution.as_deref()), (Some(2), Some("e2")));
        assert!(repository.get::<TriggerState>("deleted").unwrap().is_none());
        for at in 3..3 + RUN_LOG_ENTRIES_MAX as u64 {
            pending.add(key("t1"), entry(at));
        }
        pending.write(&store);
        assert_eq!((state().runs.len(), state().runs[0].at), (RUN_LOG_ENTRIES_MAX, 3));
    }

    #[test]
    fn failed_verifications_of_a_trigger_are_logged_once_a_minute() {
        let (pending, key) = (PendingRuns::default(), |id: &str| ("acme".to_string(), id.to_string()));
        let logs = |id: &str, now| pending.logs_unverified(&key(id), now);
        assert_eq!([logs("a", 0), logs("a", 59_999), logs("b", 1), logs("a", 60_000)], [true, false, true, true]);
    }
}
