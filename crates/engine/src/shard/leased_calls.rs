//! The calls of an execution that are in progress under leases.

use std::collections::BTreeMap;

use mainspring_kernel::{budget::Usage, instance::Instance, state::State};

use crate::period_budgets::Period;

/// A call in progress under a lease.
#[derive(Debug)]
pub(super) struct LeasedCall {
    /// Number of the lease. `None` if no budget applied.
    pub(super) lease: Option<u32>,
    /// The amounts that the execution itself reserved for it.
    pub(super) reserved: Usage,
    /// The day for which it counts: that of its lease.
    pub(super) day: String,
}

impl LeasedCall {
    /// Returns the part of a settled amount that the execution has used itself. A child leases and counts its own calls;
    /// the execution then reserves a tool call and no time.
    pub(super) fn own(&self, settled: Usage) -> Usage {
        let is_child = self.reserved.time_ms == 0;
        if is_child { self.reserved } else { settled }
    }
}

/// Returns the calls of an execution that are in progress.
pub(super) fn calls_of(state: &State) -> BTreeMap<Instance, LeasedCall> {
    let leases = &state.counts.budgets.leases;
    let of_call = |(instance, (number, reserved)): (&Instance, &(u32, Usage))| {
        let lease = leases.open.iter().find(|lease| lease.number == *number && !lease.is_unlimited());
        let began_at = state.steps.get(instance).map_or(state.now, |step| step.times.handed_out_at);
        // A lease ends with its day.
        let at = lease.map_or(began_at, |lease| lease.until.saturating_sub(1));
        let call = LeasedCall { lease: lease.map(|lease| lease.number), reserved: *reserved, day: Period::Day.at(at) };
        (instance.clone(), call)
    };
    leases.calls.iter().map(of_call).collect()
}
