//! Open attempts. Each has one state: it runs here, runs for another node, runs on another node, is being recovered, or
//! was not started.
//!
//! The timeout of an attempt that waited for a permit counts from its start, so that a full node does not let scripts
//! time out before they run.

use std::collections::BTreeMap;

use mainspring_kernel::{instance::Instance, key::ExecutionKey};

use super::protocol::AttemptRecovery;

/// An attempt of a step of an execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AttemptId {
    pub(super) execution: ExecutionKey,
    pub(super) instance: Instance,
    /// The number of the attempt, from 1.
    pub(super) number: u32,
}

impl AttemptId {
    pub(super) fn new(execution: ExecutionKey, instance: Instance, number: u32) -> Self {
        Self { execution, instance, number }
    }
}

/// The state of an open attempt.
#[derive(Debug)]
pub(super) enum AttemptState {
    /// It runs in this process, or waits for a permit. An execution whose journal could not be read again has no entry,
    /// but its attempts still become detached when its partition is released.
    Running(RunningAttempt),
    /// It runs here, and its execution was released to another node.
    Detached(DetachedAttempt),
    /// It runs on the named node, which has released its execution.
    Remote(String),
    /// Its outcome is being recovered.
    Reconciling,
    /// Its recovered outcome waits for the state of its execution, and for the inputs that arrived before it.
    Recovered(AttemptRecovery),
    /// It was decided in a commit with an unknown outcome, and was therefore not started. While its partition is owned
    /// here, no other node has started it.
    NotStarted,
}

impl AttemptState {
    /// True from the request for the outcome until the outcome is applied to the state of the execution.
    pub(super) fn is_being_recovered(&self) -> bool {
        matches!(self, Self::Reconciling | Self::Recovered(_))
    }
}

#[derive(Debug)]
pub(super) struct RunningAttempt {
    /// The name of its step.
    pub(super) step: String,
    pub(super) timeout: Timeout,
}

#[derive(Debug)]
pub(super) struct DetachedAttempt {
    /// The name of the step instance.
    pub(super) step: String,
    /// It was asked to stop, since the lease under which the new owner waits for it has expired.
    pub(super) is_stopped: bool,
}

/// The time from which the timeout of an attempt counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timeout {
    /// Its dispatch: the timer fires at its own time.
    FromDispatch,
    /// It waits for a permit, and the timeout does not count yet.
    Waits,
    /// This time, in milliseconds.
    Since(u64),
}

/// The open attempts of the shard.
#[derive(Debug, Default)]
pub(super) struct Attempts(BTreeMap<AttemptId, AttemptState>);

impl Attempts {
    pub(super) fn get(&self, id: &AttemptId) -> Option<&AttemptState> {
        self.0.get(id)
    }

    pub(super) fn set(&mut self, id: AttemptId, state: AttemptState) {
        self.0.insert(id, state);
    }

    /// Records that an attempt of the named step runs here.
    pub(super) fn run(&mut self, id: AttemptId, step: String) {
        self.set(id, AttemptState::Running(RunningAttempt { step, timeout: Timeout::FromDispatch }));
    }

    /// Removes an attempt whose receipt was processed.
    pub(super) fn end(&mut self, id: &AttemptId) {
        if matches!(self.0.get(id), Some(AttemptState::Running(_) | AttemptState::Remote(_))) {
            self.0.remove(id);
        }
    }

    pub(super) fn is_running(&self, id: &AttemptId) -> bool {
        matches!(self.0.get(id), Some(AttemptState::Running(_)))
    }

    /// Removes a detached attempt.
    pub(super) fn take_detached(&mut self, id: &AttemptId) -> Option<DetachedAttempt> {
        match self.0.remove(id)? {
            AttemptState::Detached(detached) => Some(detached),
            other => {
                self.0.insert(id.clone(), other);
                None
            }
        }
    }

    /// Records that an attempt that was not started is recovered as such. False if it has another state.
    pub(super) fn recover_not_started(&mut self, id: &AttemptId) -> bool {
        let state = self.0.get_mut(id).filter(|state| matches!(state, AttemptState::NotStarted));
        state.map(|state| *state = AttemptState::Recovered(AttemptRecovery::NeverStarted)).is_some()
    }

    /// Records that an attempt is being recovered. False if that is in progress already.
    pub(super) fn begin_reconciling(&mut self, id: AttemptId) -> bool {
        if matches!(self.0.get(&id), Some(AttemptState::Reconciling)) {
            return false;
        }
        // The answer for an earlier attempt of the instance is outdated.
        let earlier = self
            .of(id.execution)
            .find(|(other, state)| other.instance == id.instance && matches!(state, AttemptState::Reconciling));
        if let Some(earlier) = earlier.map(|(other, _)| other.clone()) {
            self.0.remove(&earlier);
        }
        self.set(id, AttemptState::Reconciling);
        true
    }

    /// Records the recovered outcome of an attempt. False if it was not being recovered: the answer is outdated.
    pub(super) fn end_reconciling(&mut self, id: &AttemptId, recovery: AttemptRecovery) -> bool {
        let state = self.0.get_mut(id).filter(|state| matches!(state, AttemptState::Reconciling));
        state.map(|state| *state = AttemptState::Recovered(recovery)).is_some()
    }

    pub(super) fn is_recovered(&self, id: &AttemptId) -> bool {
        matches!(self.0.get(id), Some(AttemptState::Recovered(_)))
    }

    /// Removes the first attempt of an execution with a recovered outcome.
    pub(super) fn take_recovered(&mut self, execution: ExecutionKey) -> Option<(AttemptId, AttemptRecovery)> {
        let recovered = self.of(execution).find_map(|(id, state)| match state {
            AttemptState::Recovered(recovery) => Some((id.clone(), *recovery)),
            _ => None,
        })?;
        self.0.remove(&recovered.0);
        Some(recovered)
    }

    /// The attempts of an execution.
    pub(super) fn of(&self, execution: ExecutionKey) -> impl Iterator<Item = (&AttemptId, &AttemptState)> {
        let first = AttemptId::new(execution, Instance { step: 0, rounds: Vec::new() }, 0);
        self.0.range(first..).take_while(move |(id, _)| id.execution == execution)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&AttemptId, &AttemptState)> {
        self.0.iter()
    }

    /// The detached attempts.
    pub(super) fn detached(&self) -> impl Iterator<Item = (&AttemptId, &DetachedAttempt)> {
        self.0.iter().filter_map(|(id, state)| match state {
            AttemptState::Detached(detached) => Some((id, detached)),
            _ => None,
        })
    }

    pub(super) fn detached_mut(&mut self) -> impl Iterator<Item = (&AttemptId, &mut DetachedAttempt)> {
        self.0.iter_mut().filter_map(|(id, state)| match state {
            AttemptState::Detached(detached) => Some((id, detached)),
            _ => None,
        })
    }

    /// Removes the attempts for which the predicate holds.
    pub(super) fn remove_if(&mut self, is_removed: impl Fn(&AttemptId, &AttemptState) -> bool) {
        self.0.retain(|id, state| !is_removed(id, state));
    }

    /// Removes the running attempts of the executions for which the predicate holds, and returns them with their steps.
    pub(super) fn take_running(&mut self, is_taken: impl Fn(&ExecutionKey) -> bool) -> BTreeMap<AttemptId, String> {
        let is_taken = |id: &AttemptId, state: &mut AttemptState| {
            is_taken(&id.execution) && matches!(state, AttemptState::Running(_))
        };
        let running = self.0.extract_if(.., is_taken);
        let with_step = |(id, state)| match state {
            AttemptState::Running(running) => Some((id, running.step)),
            _ => None,
        };
        running.filter_map(with_step).collect()
    }

    /// Removes the attempts that still run here, as their recovery has shown, of the executions for which the predicate
    /// holds.
    pub(super) fn take_still_running(&mut self, is_taken: impl Fn(&ExecutionKey) -> bool) -> Vec<AttemptId> {
        let is_taken = |id: &AttemptId, state: &mut AttemptState| {
            is_taken(&id.execution) && matches!(state, AttemptState::Recovered(AttemptRecovery::StillRunning))
        };
        self.0.extract_if(.., is_taken).map(|(id, _)| id).collect()
    }

    pub(super) fn running_mut(&mut self, id: &AttemptId) -> Option<&mut RunningAttempt> {
        match self.0.get_mut(id)? {
            AttemptState::Running(running) => Some(running),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(step: u32, number: u32) -> AttemptId {
        AttemptId::new(ExecutionKey([1; 16]), Instance { step, rounds: Vec::new() }, number)
    }

    #[test]
    fn an_instance_reconciles_its_newest_attempt_only() {
        let mut attempts = Attempts::default();
        assert!(attempts.begin_reconciling(id(0, 1)) && !attempts.begin_reconciling(id(0, 1)));
        assert!(attempts.begin_reconciling(id(1, 1)) && attempts.begin_reconciling(id(0, 2)));
        let execution = id(0, 1).execution;
        assert!(!attempts.end_reconciling(&id(0, 1), AttemptRecovery::Interrupted), "its answer is outdated");
        assert!(attempts.end_reconciling(&id(1, 1), AttemptRecovery::Interrupted));
        assert!(!attempts.end_reconciling(&id(1, 1), AttemptRecovery::Interrupted), "it is answered");
        assert!(attempts.end_reconciling(&id(0, 2), AttemptRecovery::NeverStarted));
        assert_eq!(attempts.take_recovered(execution), Some((id(0, 2), AttemptRecovery::NeverStarted)));
        assert_eq!(attempts.take_recovered(execution), Some((id(1, 1), AttemptRecovery::Interrupted)));
        assert_eq!(attempts.take_recovered(execution), None);
    }

    #[test]
    fn a_receipt_ends_running_and_remote_attempts() {
        let mut attempts = Attempts::default();
        attempts.run(id(0, 1), "a".into());
        attempts.set(id(1, 1), AttemptState::Remote("node".into()));
        attempts.set(id(2, 1), AttemptState::Detached(DetachedAttempt { step: "c".into(), is_stopped: false }));
        (0..3).for_each(|step| attempts.end(&id(step, 1)));
        assert_eq!(attempts.iter().map(|(id, _)| id.instance.step).collect::<Vec<_>>(), [2]);
        assert!(attempts.take_detached(&id(2, 1)).is_some() && attempts.take_detached(&id(2, 1)).is_none());
    }
}
