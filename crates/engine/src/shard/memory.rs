//! Bounds the memory that the large executions of one organization take together at this node. The largest is canceled
//! with the reason; small ones are bounded by their number.

use std::collections::BTreeMap;

use mainspring_kernel::{input::Input, key::ExecutionKey};

use super::{Queued, Shard, cell::Cell};
use crate::{
    evaluator::tenant_of,
    limits::{LARGE_EXECUTION_BYTES_MIN, ORGANIZATION_MEMORY_BYTES_MAX},
};

/// The actor of a cancel for memory.
const ACTOR: &str = "mainspring";

/// The executions that take much memory, by organization.
#[derive(Debug)]
pub(super) struct Memory {
    organization_bytes_max: u64,
    large: BTreeMap<String, BTreeMap<ExecutionKey, Large>>,
    to_cancel: Vec<(ExecutionKey, String)>,
}

impl Default for Memory {
    fn default() -> Self {
        let organization_bytes_max = ORGANIZATION_MEMORY_BYTES_MAX;
        Self { organization_bytes_max, large: BTreeMap::new(), to_cancel: Vec::new() }
    }
}

#[derive(Debug)]
struct Large {
    bytes: u64,
    is_cancelled: bool,
}

impl Shard {
    /// Changes how many bytes of memory the large executions of one organization may take together.
    pub fn bound_memory(&mut self, organization_bytes_max: u64) {
        self.memory.organization_bytes_max = organization_bytes_max;
    }

    /// Notes how much memory an execution takes after a turn.
    pub(super) fn weigh(&mut self, execution: ExecutionKey) {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        let (bytes, tenant) = (live.state.memory_bytes, tenant_of(&live.state));
        // The user of a command line answers for all of the machine.
        if bytes < LARGE_EXECUTION_BYTES_MIN || tenant.is_empty() {
            return;
        }
        let tenant = tenant.to_owned();
        let large = self.memory.large.entry(tenant.clone()).or_default();
        large.entry(execution).or_insert(Large { bytes, is_cancelled: false }).bytes = bytes;
        if total(large) > self.memory.organization_bytes_max {
            self.make_room(&tenant);
        }
    }

    /// Chooses the largest execution of an organization that takes too much, of those that are still in memory.
    fn make_room(&mut self, tenant: &str) {
        let (cells, memory) = (&self.cells, &mut self.memory);
        let bytes_max = memory.organization_bytes_max;
        let Some(large) = memory.large.get_mut(tenant) else { return };
        large.retain(|execution, large| match cells.get(execution) {
            Some(Cell::Live(live)) => {
                large.bytes = live.state.memory_bytes;
                large.bytes >= LARGE_EXECUTION_BYTES_MIN && live.state.ended_at.is_none()
            }
            Some(Cell::Evaluating(_)) => true,
            Some(Cell::Loading(_)) | None => false,
        });
        let bytes = total(large);
        if bytes <= bytes_max {
            return;
        }
        let running = large.iter_mut().filter(|(_, large)| !large.is_cancelled);
        let Some((execution, largest)) = running.max_by_key(|(_, large)| large.bytes) else { return };
        largest.is_cancelled = true;
        let reason = format!(
            "the executions of this organization take {bytes} bytes of memory at this node, more than {bytes_max}, and this one takes the most: {} bytes; write large outputs to files, or run fewer of them at a time",
            largest.bytes
        );
        memory.to_cancel.push((*execution, reason));
    }

    /// Cancels the executions that were chosen.
    pub(super) fn cancel_largest(&mut self, now: u64) {
        while let Some((execution, reason)) = self.memory.to_cancel.pop() {
            let input = Input::Cancel { reason, by: ACTOR.into() };
            self.take(now, execution, Queued::silent(input));
        }
    }
}

/// Bytes of those that go on. A canceled execution grows no more, and may wait long for an attempt that does not stop.
fn total(large: &BTreeMap<ExecutionKey, Large>) -> u64 {
    large.values().filter(|large| !large.is_cancelled).map(|large| large.bytes).sum()
}
