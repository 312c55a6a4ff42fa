//! How an execution ends: nothing new starts, what runs is stopped or awaited, then it is over.

use alloc::{format, string::ToString};

use crate::{
    apply::Illegal,
    failure::Class,
    instance::Instance,
    record::{Ending, Record, StopReason},
    state::Status,
    value::Value,
};

use super::{Decider, fault};

impl Decider<'_> {
    /// Calls the execution off. A cancel goes before an end that still waits for its running steps.
    pub(super) fn cancel(&mut self, reason: &str, by: &str) -> Result<(), Illegal> {
        if self.state.ending.as_ref().is_some_and(Ending::stops) {
            return Ok(());
        }
        self.record(Record::CancelRequested { reason: reason.to_string(), by: by.to_string() })?;
        self.record(Record::EndingBegun { ending: Ending::Cancelled { reason: reason.to_string() } })
    }

    pub(super) fn deadline_passed(&mut self) -> Result<(), Illegal> {
        let limit = self.state.start.as_ref().and_then(|start| start.policy.timeout_ms).unwrap_or_default();
        let message = format!("the execution did not end within {limit} ms; raise timeoutMs if it needs longer");
        let fault = fault(Class::Timeout, &format!("execution_timeout:{limit}"), message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: true } })
    }

    /// One step towards the end; false while something is still out.
    pub(super) fn wind_down(&mut self) -> Result<bool, Illegal> {
        self.agenda.dirty.clear();
        self.agenda.dirty_loops.clear();
        self.agenda.fresh.clear();
        self.agenda.ready.clear();
        self.agenda.waiting.clear();
        let reason = match &self.state.ending {
            Some(Ending::Cancelled { reason }) => reason.clone(),
            _ => "execution_ending".to_string(),
        };
        self.call_off_tasks(&reason)?;
        if let Some(instance) = self.state.waits.first().cloned() {
            self.call_off(&instance, &reason)?;
            return Ok(true);
        }
        if self.state.ending.as_ref().is_some_and(Ending::stops)
            && let Some((instance, attempt)) = self.next_to_stop()
        {
            self.stop(&instance, attempt, StopReason::Ending)?;
            return Ok(true);
        }
        if !self.state.open_attempts.is_empty() {
            return Ok(false);
        }
        self.end_containers(&reason)?;
        self.record(Record::Ended { with_failures: self.state.with_failures })?;
        Ok(true)
    }

    /// Around a `return` that ended the execution well, nothing was called off: what contains it has done its part.
    fn has_done_its_part(&self, owner: &Instance) -> bool {
        let is_well = matches!(self.state.ending, Some(Ending::Completed { .. }));
        let blocks = self.state.plan.step(owner.step).work.branches();
        let lies_inside = |instance: &Instance| {
            let block = self.state.plan.step(instance.step).block;
            instance.rounds.starts_with(&owner.rounds) && blocks.iter().any(|(_, inner)| *inner == block)
        };
        let mut steps = self.state.steps.iter().filter(|(instance, _)| lies_inside(instance));
        is_well && !steps.any(|(_, step)| step.status == Status::Cancelled)
    }

    fn next_to_stop(&self) -> Option<(Instance, u32)> {
        self.state.open_attempts.iter().find_map(|instance| {
            let step = self.state.steps.get(instance)?;
            (step.stopping != Some(StopReason::Ending)).then(|| (instance.clone(), step.attempt))
        })
    }

    /// The innermost first: blocks are numbered from the outside in.
    fn end_containers(&mut self, reason: &str) -> Result<(), Illegal> {
        loop {
            let finished = self.state.loops.iter().rev().find(|(_, rounds)| rounds.open == 0);
            if let Some(instance) = finished.map(|(instance, _)| instance.clone()) {
                let failed = self.state.loops.get(&instance).and_then(|rounds| rounds.failed.clone());
                self.end_container(&instance, failed, reason)?;
                continue;
            }
            let innermost = self.state.scopes.keys().rev().find(|scope| scope.owner(&self.state.plan).is_some());
            let Some(scope) = innermost.cloned() else { return Ok(()) };
            if let Some((instance, round)) = scope.round_of_loop(&self.state.plan) {
                self.record(Record::RoundEnded { instance, round })?;
                continue;
            }
            let Some(owner) = scope.owner(&self.state.plan) else { return Ok(()) };
            let failed = self.state.scopes.get(&scope).and_then(|here| here.failed.clone());
            self.end_container(&owner, failed, reason)?;
        }
    }

    fn end_container(&mut self, owner: &Instance, failed: Option<Instance>, reason: &str) -> Result<(), Illegal> {
        match failed.and_then(|failed| self.state.steps.get(&failed)?.failure.clone()) {
            Some(failure) => self.fail(owner, failure),
            None if self.has_done_its_part(owner) => {
                let output = Value::Null.into();
                self.record(Record::StepCompleted { instance: owner.clone(), output })
            }
            None => self.call_off(owner, reason),
        }
    }
}
