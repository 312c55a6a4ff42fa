//! Bounds the memory of all active executions of one organization on this node.
//!
//! Each active execution counts, small ones with a minimum. Idle executions have a bound of their own (`idle_cache`).
//! Above the bound, the largest execution is canceled, or the newest root if all are small. A canceled execution and
//! its children count separately until they leave memory, so that no other execution is canceled while they stop. Above
//! twice the bound, the attempts of canceled executions are killed. A journal that would not fit is read later.

mod sums;

use std::sync::{Arc, Weak, atomic::AtomicBool};

use mainspring_kernel::{
    cbor,
    input::{Input, Parent, Start, Timer},
    key::ExecutionKey,
    state::State,
    value::{Map, Value},
};
use mainspring_store::AuditEntry;

use super::{
    Output, PendingInput, Shard,
    attempts::{AttemptId, AttemptState},
    entry::ExecutionEntry,
};
use crate::{
    evaluator::tenant_of,
    limits::{HELD_BACK_MS_MAX, HELD_BACK_RETRY_MS},
};

pub(super) use sums::Memory;
use sums::Victim;

/// The actor of a cancel for memory.
const ACTOR: &str = "mainspring";

/// The prefix of the reason of a cancel for memory, and the reason code in the audit log.
pub(crate) const REASON_CODE: &str = "organization_memory_exceeded";

impl Shard {
    /// Sets the bound of the memory of one organization's executions, in bytes.
    pub fn bound_memory(&mut self, organization_bytes_max: u64) {
        self.memory.set_bound(organization_bytes_max);
    }

    /// Records the memory of an execution after a turn, or after its journal was read.
    pub(super) fn weigh(&mut self, execution: ExecutionKey) {
        self.weigh_with(execution, None);
    }

    /// The same, before a turn on another thread. A new execution counts the memory of its start input.
    pub(super) fn weigh_before(&mut self, execution: ExecutionKey, input: &Input) {
        match input {
            Input::Start(start) => self.weigh_with(execution, Some(start)),
            _ => self.weigh(execution),
        }
    }

    fn weigh_with(&mut self, execution: ExecutionKey, start: Option<&Start>) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let (state, tenant) = (&loaded.state, loaded.organization());
        // The bound does not apply to the user of a command line, who owns the machine.
        if tenant.is_empty() {
            return;
        }
        let start = start.filter(|_| state.start.is_none());
        let lineage = start.map_or(Some(&state.lineage), |start| start.lineage.as_ref());
        let parent = lineage.and_then(|lineage| lineage.parent.as_ref()).map(|Parent { execution, .. }| *execution);
        let bytes = state.counts.memory_bytes + start.map_or(0, Start::memory_bytes);
        self.memory.weigh(execution, tenant, bytes, parent, state.is_stopping());
    }

    /// Cancels executions of organizations above the bound, until no organization is.
    pub(super) fn make_room(&mut self, now: u64) {
        while let Some(tenant) = self.memory.next_over() {
            while let Some(victim) = self.memory.choose(&tenant) {
                self.cancel_for_memory(now, &tenant, victim);
            }
            for execution in self.memory.take_stopping(&tenant) {
                self.kill_attempts(execution);
            }
        }
    }

    fn cancel_for_memory(&mut self, now: u64, tenant: &str, victim: Victim) {
        let Victim { execution, bytes, total_bytes, bytes_max, is_largest } = victim;
        let why = if is_largest { "takes the most" } else { "was started last" };
        let reason = format!(
            "{REASON_CODE}: the executions of this organization take {total_bytes} bytes of memory at this node, more than {bytes_max}, and this one {why}: {bytes} bytes; write large outputs to files, or run fewer of them at a time"
        );
        let target = match self.executions.get(&execution) {
            Some(ExecutionEntry::Loaded(loaded)) => loaded.state.start.as_ref().map(|start| start.execution_id.clone()),
            _ => None,
        };
        let detail = Map::from([
            ("by".into(), "memory".into()),
            ("reason".into(), reason.as_str().into()),
            ("reasonCode".into(), REASON_CODE.into()),
            ("executionBytes".into(), bytes.into()),
            ("organizationBytes".into(), total_bytes.into()),
            ("organizationBytesMax".into(), bytes_max.into()),
        ]);
        let audit = AuditEntry {
            organization: tenant.into(),
            at: now,
            actor: ACTOR.into(),
            action: "execution.cancel".into(),
            target: target.unwrap_or_else(|| execution.to_string()),
            detail: cbor::encode(&Value::Map(detail)),
        };
        let input = Input::Cancel { reason, by: ACTOR.into() };
        self.take(now, execution, PendingInput { audit: Some(Box::new(audit)), ..PendingInput::without_reply(input) });
        self.memory.asked(execution);
    }

    /// Kills the attempts of a canceled execution, since its organization exceeds twice the bound.
    fn kill_attempts(&mut self, execution: ExecutionKey) {
        let is_running = |state: &AttemptState| matches!(state, AttemptState::Running(_));
        let running = self.attempts.of(execution).filter(|(_, state)| is_running(state));
        self.outputs.extend(running.map(|(AttemptId { execution, instance, number }, _)| Output::Kill {
            execution: *execution,
            instance: instance.clone(),
            attempt: *number,
        }));
    }

    /// Returns true if an execution whose journal was read waits for memory, together with its inputs. It would
    /// otherwise exceed the bound of its organization and another execution would be canceled. Inputs that end the
    /// execution do not wait.
    pub(super) fn hold_back(&mut self, now: u64, state: &State, waiting: &mut Vec<PendingInput>) -> bool {
        let (execution, tenant) = (state.key, tenant_of(state));
        let is_ending = state.is_stopping() || waiting.iter().any(ends);
        if tenant.is_empty() || is_ending || !self.memory.hold_back(execution, tenant, state.counts.memory_bytes, now) {
            self.memory.admit_held_back(execution);
            return false;
        }
        let waiting = std::mem::take(waiting);
        if !waiting.is_empty() {
            self.loads.deferred_inputs.entry(execution).or_default().extend(waiting);
        }
        self.timers.set_at_latest(execution, now + HELD_BACK_RETRY_MS);
        true
    }

    /// True if a delayed execution still has to wait with these inputs, which is decided without reading its journal.
    pub(super) fn is_held_back(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        queued: Vec<PendingInput>,
    ) -> Option<Vec<PendingInput>> {
        if queued.iter().any(ends) || !self.memory.is_held_back(execution, now) {
            return Some(queued);
        }
        if !queued.is_empty() {
            self.loads.deferred_inputs.entry(execution).or_default().extend(queued);
        }
        self.timers.set_at_latest(execution, now + HELD_BACK_RETRY_MS);
        None
    }

    /// Removes an execution from the sums. A state on an evaluation thread counts until the evaluation ends.
    pub(super) fn unweigh(&mut self, execution: ExecutionKey, out: Option<&Arc<AtomicBool>>) {
        self.memory.remove(execution, out.map_or_else(Weak::new, Arc::downgrade));
    }
}

/// True for an input that ends its execution.
fn ends(queued: &PendingInput) -> bool {
    matches!(queued.input, Input::Cancel { .. } | Input::Timer(Timer::Deadline))
}

const _: () = assert!(HELD_BACK_RETRY_MS < HELD_BACK_MS_MAX);
