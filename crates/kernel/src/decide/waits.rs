//! Waits: signals, sleeps, and the end of all waits in a failing block.

use alloc::{format, string::ToString, vec::Vec};
use core::ops::Bound;

use crate::{
    apply::IllegalTransition,
    failure::{Class, Failure},
    instance::{Instance, Scope},
    plan::Work,
    record::Record,
    state::{State, Status},
    value::Value,
};

use super::Decider;

impl Decider<'_> {
    /// Consumes the first kept signal of the name, or starts to wait for one.
    pub(super) fn wait_for_signal(&mut self, instance: &Instance, name: &str) -> Result<(), IllegalTransition> {
        self.started(instance, Value::Null, None)?;
        let kept = self.state.signals.kept.iter().find(|signal| signal.name == name);
        match kept.map(|signal| (signal.id.clone(), signal.payload.clone())) {
            Some((id, payload)) => self.take_signal(instance, &id, payload),
            None => {
                let timeout_ms = self.state.plan.step(instance.step).timeout_ms;
                let until = timeout_ms.map(|timeout_ms| self.agenda.now.saturating_add(timeout_ms));
                self.record(Record::WaitStarted { instance: instance.clone(), until })
            }
        }
    }

    /// Processes the end of a wait: a sleep is over, or the timeout of a signal has expired.
    pub(super) fn wait_is_over(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        if self.state.conversation_of_message(instance.step).is_some() {
            return self.answer_is_late(instance);
        }
        let Work::Signal { name } = &step.work else { return self.complete(instance, Value::Null) };
        let limit = step.timeout_ms.unwrap_or_default();
        let message = format!("step `{}`: no signal `{name}` came within {limit} ms", step.id);
        self.fail(instance, Failure::new(Class::Timeout, format!("signal_timeout:{limit}"), message))
    }

    /// Processes a signal. The first step in plan order that waits for its name consumes it. If none waits, the signal
    /// is kept; a repeated id is ignored.
    pub(super) fn signal(&mut self, id: &str, name: &str, payload: &Value) -> Result<(), IllegalTransition> {
        if self.state.signal_rejection(id, name, payload).is_some() {
            return Ok(());
        }
        let (kept_id, kept_name) = (id.to_string(), name.to_string());
        self.record(Record::SignalKept { id: kept_id, name: kept_name, payload: payload.clone().into() })?;
        match self.state.wait_for_signal(name).cloned() {
            Some(instance) => self.take_signal(&instance, id, payload.clone()),
            None => Ok(()),
        }
    }

    fn take_signal(&mut self, instance: &Instance, id: &str, payload: Value) -> Result<(), IllegalTransition> {
        self.record(Record::SignalTaken { instance: instance.clone(), id: id.to_string() })?;
        self.complete(instance, payload)
    }

    /// Ends all waits inside a failing block, except those of cleanup steps. A step between two attempts fails, the
    /// others are canceled. Returns false if nothing waits.
    pub(super) fn cancel_waits(&mut self, scope: &Scope) -> Result<bool, IllegalTransition> {
        let waits = waits_inside(self.state, scope);
        let waits: Vec<_> = waits
            .into_iter()
            .filter(|instance| self.is_instance_halted(instance) && !self.is_asked(instance))
            .collect();
        for instance in &waits {
            match self.state.steps.get(instance).and_then(|step| step.failure.clone()) {
                Some(failure) if self.status_of(instance) == Status::Retrying => self.fail(instance, failure)?,
                _ => self.cancel_step(instance, "sibling_failed")?,
            }
        }
        Ok(!waits.is_empty())
    }
}

/// Returns the waiting step instances inside a block, at any depth. Steps inside a block have consecutive numbers,
/// which limits the search to waits that may be inside. Searching each round instead would be slow, because a loop can
/// have many.
fn waits_inside(state: &State, scope: &Scope) -> Vec<Instance> {
    let mut found = Vec::new();
    let Some(first) = state.plan.block(scope.block).steps.first() else { return found };
    let end = state.plan.end_of_block(scope.block);
    let mut from = scope.instance(*first);
    while let Some(instance) = state.open.waits.range(&from..).next().filter(|instance| instance.step < end) {
        if instance.rounds.starts_with(&scope.rounds) {
            let after = state.open.waits.range((Bound::Excluded(instance), Bound::Unbounded));
            let of_step = after.take_while(|next| next.step == instance.step && next.rounds.starts_with(&scope.rounds));
            found.push(instance.clone());
            found.extend(of_step.cloned());
            from = scope.instance(instance.step + 1);
        } else if instance.rounds < scope.rounds {
            from = scope.instance(instance.step);
        } else {
            from = scope.instance(instance.step + 1);
        }
    }
    found
}
