//! Checks at the end of every run, for every workflow.

use mainspring_kernel::{decide::child_key, key::ExecutionKey, state::Status};
use mainspring_store::ReadLimit;
use mainspring_store::prelude::*;

use crate::{fixture::SIMULATED_PARTITION, journal_mirror::JournalMirror, world::Stage};

use super::Run;

impl Run<'_> {
    pub(super) fn check_at_end(&self) -> Result<(), String> {
        for (execution, member) in self.tree.members() {
            self.check_journal(*execution, member)?;
            self.check_catalogue(*execution, member)?;
            self.check_calls(*execution, member)?;
        }
        let messages = self
            .store
            .inbox(&[SIMULATED_PARTITION], 0, ReadLimit::of(usize::MAX))
            .map_err(|error| error.to_string())?;
        if messages.is_empty() { Ok(()) } else { Err(format!("nothing moves, and {} messages wait", messages.len())) }
    }

    /// The journal verifies: its chain, its values, every decision, its head.
    fn check_journal(&self, execution: ExecutionKey, member: &JournalMirror) -> Result<(), String> {
        let verified = self.loader.verify(execution).map_err(|error| error.to_string())?;
        match verified {
            None => Err("the execution is not in the store".into()),
            Some(verified) if verified.decided_again != member.frames.len() as u64 => {
                Err(format!("{} of {} frames were decided again", verified.decided_again, member.frames.len()))
            }
            Some(_) => Ok(()),
        }
    }

    /// The catalogue agrees with the journal.
    fn check_catalogue(&self, key: ExecutionKey, member: &JournalMirror) -> Result<(), String> {
        let state = member.state();
        let row = self.store.execution(key).map_err(|error| error.to_string())?.ok_or("the execution has no row")?;
        let head = self.store.head(key).map_err(|error| error.to_string())?.ok_or("the execution has no head")?;
        let said = (row.status.as_str(), row.completed_at, head.ended, head.wake_at);
        let is = (state.status().name(), state.end.ended_at, state.end.ended_at.is_some(), state.wake_at());
        if said == is { Ok(()) } else { Err(format!("the catalogue says {said:?} and the journal {is:?}")) }
    }

    /// An execution that has not ended waits for an input from outside, and its open calls were really made.
    fn check_calls(&self, execution: ExecutionKey, member: &JournalMirror) -> Result<(), String> {
        let state = member.state();
        for instance in &state.open.attempts {
            let number = state.steps.get(instance).map_or(0, |step| step.attempt);
            let name = instance.name(&state.plan);
            if state.started_workflow(instance).is_some() {
                let child = child_key(state, instance, number);
                let has_ended = self.tree.member(child).is_none_or(|child| child.state().end.ended_at.is_some());
                if has_ended {
                    return Err(format!("nothing moves, and `{name}` waits for a child that does not run"));
                }
                continue;
            }
            match self.world.stage(execution, instance, number) {
                Some(Stage::Out(None)) => {}
                stage => return Err(format!("nothing moves, and attempt {number} of `{name}` is {stage:?}")),
            }
        }
        let waits = state.open.waits.iter().filter_map(|instance| state.steps.get(instance));
        let waits_outside =
            waits.filter(|step| matches!(step.status, Status::Waiting | Status::WaitingApproval)).count();
        if state.end.ended_at.is_some() || waits_outside > 0 || !state.open.attempts.is_empty() {
            return Ok(());
        }
        Err("nothing moves, and the execution has neither ended nor does it wait for anything".into())
    }
}
