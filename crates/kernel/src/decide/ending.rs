//! Ends an execution: no further step starts, running attempts are stopped or awaited, then open blocks are closed.

use alloc::{format, string::ToString, vec::Vec};

use crate::{
    apply::IllegalTransition,
    failure::Class,
    instance::Instance,
    limits::{EXECUTION_JOURNAL_BYTES_MAX, EXECUTION_MEMORY_BYTES_MAX, FINALLY_BYTES_MAX, TURN_RECORDS_MAX},
    record::{Ending, HaltReason, Record, StopReason},
    state::{Cleanup, Status},
    value::Value,
};

use super::{Decider, fault};

impl Decider<'_> {
    /// Cancels the execution. A cancel overrides an earlier end that is still waiting for running attempts.
    /// While the steps of `finally` run, it is only recorded: the result is settled.
    pub(super) fn cancel(&mut self, reason: &str, by: &str) -> Result<(), IllegalTransition> {
        let is_cleaning_up = self.state.is_cleaning_up();
        if self.state.is_stopping() || is_cleaning_up && self.state.end.is_cancel_requested {
            return Ok(());
        }
        self.record(Record::CancelRequested { reason: reason.to_string(), by: by.to_string() })?;
        match is_cleaning_up {
            true => Ok(()),
            false => self.record(Record::EndingBegun { ending: Ending::Cancelled { reason: reason.to_string() } }),
        }
    }

    /// Cancels a step. One that waits for the content of a form is canceled once its call has ended.
    pub(super) fn cancel_step(&mut self, instance: &Instance, reason: &str) -> Result<(), IllegalTransition> {
        if self.withdraw_form(instance)? {
            return Ok(());
        }
        self.record(Record::StepCancelled { instance: instance.clone(), reason: reason.into() })
    }

    /// Skips what is left of `finally`. Before the end, all of it is left.
    pub(super) fn skip_cleanup(&mut self, by: &str) -> Result<(), IllegalTransition> {
        let is_pending = self.state.plan.finally.is_some() && self.state.end.cleanup == Cleanup::Pending;
        match is_pending || self.state.is_cleaning_up() {
            true => self.halt_cleanup(HaltReason::Cancelled, Some(by)),
            false => Ok(()),
        }
    }

    /// Skips the steps of `finally`, or their rest.
    pub(super) fn halt_cleanup(&mut self, reason: HaltReason, by: Option<&str>) -> Result<(), IllegalTransition> {
        self.record(Record::FinallyHalted { reason, by: by.map(ToString::to_string) })
    }

    /// True if the steps of `finally` run when the execution has ended otherwise. Before its first step there is nothing
    /// to clean up.
    fn cleans_up_at_end(&self) -> bool {
        let is_due = self.state.plan.finally.is_some() && self.state.end.cleanup == Cleanup::Pending;
        is_due && !self.state.steps.is_empty()
    }

    /// Skips the rest of `finally` and returns true if it is at the limit on memory or journal size.
    pub(super) fn is_cleanup_out_of_memory(&mut self) -> Result<bool, IllegalTransition> {
        let counts = (self.state.counts.memory_bytes, self.state.journal.bytes);
        let bounds = (EXECUTION_MEMORY_BYTES_MAX, EXECUTION_JOURNAL_BYTES_MAX);
        if counts.0 <= bounds.0 + FINALLY_BYTES_MAX && counts.1 <= bounds.1 + FINALLY_BYTES_MAX {
            return Ok(false);
        }
        self.halt_cleanup(HaltReason::Limit, None).map(|()| true)
    }

    /// True if the execution is ending and its running work is stopped or awaited. False again while `finally` runs.
    pub(super) fn is_ending(&self) -> bool {
        self.state.end.ending.is_some() && !self.state.is_cleaning_up()
    }

    pub(super) fn deadline_passed(&mut self) -> Result<(), IllegalTransition> {
        if self.state.is_cleaning_up() {
            return self.halt_cleanup(HaltReason::Timeout, None);
        }
        let limit = self.state.start.as_ref().and_then(|start| start.policy.timeout_ms).unwrap_or_default();
        let message = format!("the execution did not end within {limit} ms; raise timeoutMs if it needs longer");
        let fault = fault(Class::Timeout, &format!("execution_timeout:{limit}"), message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: true } })
    }

    /// Makes the next change towards the end. Returns false while a running attempt or an evaluation must be awaited.
    pub(super) fn wind_down(&mut self) -> Result<bool, IllegalTransition> {
        self.agenda.dirty.scopes.clear();
        self.agenda.dirty.loops.clear();
        self.agenda.fresh.clear();
        self.agenda.ready.clear();
        self.agenda.waiting.clear();
        let reason = match &self.state.end.ending {
            Some(Ending::Cancelled { reason }) => reason.clone(),
            _ => "execution_ending".to_string(),
        };
        if self.ends_well() && !self.agenda.tasks.is_empty() {
            return Ok(false);
        }
        self.cancel_tasks(&reason)?;
        if let Some(instance) = self.state.open.waits.first().cloned() {
            self.cancel_step(&instance, &reason)?;
            return Ok(true);
        }
        if core::mem::take(&mut self.agenda.has_to_stop) && self.state.is_stopping() {
            return self.stop_all().map(|()| true);
        }
        if self.counts_memory() && self.stop_one_that_waits_for_people()? {
            return Ok(true);
        }
        if !self.state.open.attempts.is_empty() {
            return Ok(false);
        }
        if !self.end_containers(&reason)? {
            return Ok(true);
        }
        if let Some(finally) = self.state.plan.finally.filter(|_| self.cleans_up_at_end()) {
            let deadline = self.agenda.now.saturating_add(finally.timeout_ms);
            self.record(Record::FinallyBegun { outcome: self.state.outcome().to_string(), deadline })?;
            return Ok(true);
        }
        self.return_leases(true)?;
        self.record(Record::Ended { with_failures: self.state.end.with_failures })?;
        Ok(true)
    }

    /// True if a `return` completes the execution and no step inside this container was canceled. The container then
    /// completes.
    fn has_done_its_part(&self, owner: &Instance) -> bool {
        let is_well = matches!(self.state.end.ending, Some(Ending::Completed { .. }));
        is_well && !self.steps_of(owner).any(|status| status == Status::Cancelled)
    }

    /// Returns the statuses of the steps in the blocks of a container, in all of its rounds.
    fn steps_of(&self, owner: &Instance) -> impl Iterator<Item = Status> {
        let plan = &self.state.plan;
        let blocks = plan.step(owner.step).work.branches();
        let steps = blocks.into_iter().flat_map(|(_, block)| &plan.block(block).steps);
        steps.flat_map(|step| {
            let first = Instance { step: *step, rounds: owner.rounds.clone() };
            let of_step = self.state.steps.range(first..);
            let is_inside = |instance: &Instance| instance.step == *step && instance.rounds.starts_with(&owner.rounds);
            of_step.take_while(move |(instance, _)| is_inside(instance)).map(|(_, step)| step.status)
        })
    }

    /// Asks running attempts to stop, as many as the turn has room for.
    fn stop_all(&mut self) -> Result<(), IllegalTransition> {
        let room = TURN_RECORDS_MAX.saturating_sub(self.agenda.turn.records.len());
        let to_stop = self.state.open.attempts.iter().filter_map(|instance| {
            let step = self.state.steps.get(instance)?;
            (step.stopping != Some(StopReason::Ending)).then(|| (instance.clone(), step.attempt))
        });
        for (instance, attempt) in to_stop.take(room).collect::<Vec<_>>() {
            self.stop(&instance, attempt, StopReason::Ending)?;
        }
        Ok(())
    }

    /// Stops one child that waits for approvals, just as open gates of this execution are canceled. Returns false if
    /// there is none.
    fn stop_one_that_waits_for_people(&mut self) -> Result<bool, IllegalTransition> {
        let to_stop = self.state.open.held_children.iter().find_map(|instance| {
            let step = self.state.steps.get(instance)?;
            (step.stopping != Some(StopReason::Ending)).then(|| (instance.clone(), step.attempt))
        });
        match to_stop {
            Some((instance, attempt)) => self.stop(&instance, attempt, StopReason::Ending).map(|()| true),
            None => Ok(false),
        }
    }

    /// Ends all open containers, innermost first; blocks are numbered from the outside in. Returns false if the turn is
    /// full.
    fn end_containers(&mut self, reason: &str) -> Result<bool, IllegalTransition> {
        loop {
            if self.is_bounded() && self.agenda.is_full() {
                return Ok(false);
            }
            let finished = self.state.blocks.loops.iter().rev().find(|(_, rounds)| rounds.open == 0);
            if let Some(instance) = finished.map(|(instance, _)| instance.clone()) {
                let failed = self.state.blocks.loops.get(&instance).and_then(|rounds| rounds.failed.clone());
                self.end_container(&instance, failed, reason)?;
                continue;
            }
            let innermost = self.state.blocks.scopes.keys().rev().find(|scope| scope.owner(&self.state.plan).is_some());
            let Some(scope) = innermost.cloned() else { return Ok(true) };
            if let Some((instance, round)) = scope.round_of_loop(&self.state.plan) {
                self.record(Record::RoundEnded { instance, round })?;
                continue;
            }
            let Some(owner) = scope.owner(&self.state.plan) else { return Ok(true) };
            let failed = self.state.blocks.scopes.get(&scope).and_then(|here| here.failed.clone());
            self.end_container(&owner, failed, reason)?;
        }
    }

    fn end_container(
        &mut self,
        owner: &Instance,
        failed: Option<Instance>,
        reason: &str,
    ) -> Result<(), IllegalTransition> {
        match failed.and_then(|failed| self.state.steps.get(&failed)?.failure.clone()) {
            Some(failure) => self.fail(owner, failure),
            None if self.has_done_its_part(owner) => {
                let output = Value::Null.into();
                self.record(Record::StepCompleted { instance: owner.clone(), output })
            }
            None => self.cancel_step(owner, reason),
        }
    }
}
