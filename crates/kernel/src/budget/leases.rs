//! Leases: blocks of the budgets of a workflow or an organization for a day or a month.
//!
//! The account of a period is in the store, outside of executions. An execution leases a block of it, spends from the
//! block within its own journal, and returns the rest as soon as no call is in progress. The store is therefore asked
//! once for several calls, and a replay repeats the recorded answers.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::{
    budget::{Limits, QUANTITIES, Usage},
    instance::Instance,
    record::Payload,
    value::Value,
};

/// A change of a lease.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseChange {
    /// The store granted a block.
    Granted {
        /// The amounts that calls may reserve; `None` for a quantity that no budget limits.
        amount: Limits,
        /// End of the lease, in milliseconds since 1970: no call begins under it from then on.
        until: u64,
        /// The budgets that are now used up to the percentage of their warnings: a list of `{budget, period, workflow,
        /// used, limits}`.
        notice: Payload,
    },
    /// A budget does not suffice, and nothing was reserved.
    Refused {
        /// The budget: `{budget, period, workflow, asks, lacks, used, limits, raise, raisedTo}`.
        notice: Payload,
    },
    /// The execution returned what it has not used.
    Returned {
        /// The amounts that its calls have used.
        spent: Usage,
    },
}

/// A block in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Number of the lease within the execution, from 1.
    pub number: u32,
    /// The granted amounts; `None` for a quantity that no budget limits.
    pub granted: Limits,
    /// End of the lease, in milliseconds since 1970.
    pub until: u64,
    /// The amounts of settled calls.
    pub spent: Usage,
    /// The amounts that calls in progress may use.
    pub reserved: Usage,
}

impl Lease {
    /// True if a call of this amount may begin under the lease.
    pub fn covers(&self, amount: &Usage, now: u64) -> bool {
        let (used, amount) = (self.spent.plus(self.reserved).amounts(), amount.amounts());
        let has_left = |place: usize| {
            self.granted.0[place].is_none_or(|granted| used[place].saturating_add(amount[place]) <= granted)
        };
        now < self.until && (0..QUANTITIES).all(has_left)
    }
}

/// A call that waits for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// Number of the attempt that will start, from 1.
    pub attempt: u32,
    /// Number of the awaited lease.
    pub lease: u32,
    /// The amounts that the call may use.
    pub amount: Usage,
}

/// The answer to a request that a budget refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Number of the refused lease.
    pub lease: u32,
    /// The amounts that were requested.
    pub amount: Usage,
    /// See [`LeaseChange::Refused`].
    pub notice: Value,
}

/// The leases of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Leases {
    /// Number of the last requested lease; 0 before the first.
    pub last: u32,
    /// The amounts of the last request, until it is answered.
    pub requested: Option<Usage>,
    /// The blocks in use, by number. Calls begin under the last one.
    pub open: Vec<Lease>,
    /// The reservations of calls in progress, each with the number of its lease.
    pub calls: BTreeMap<Instance, (u32, Usage)>,
    /// The calls that wait for a lease.
    pub waiting: BTreeMap<Instance, WaitingCall>,
    /// The answer to the last request, if it was a refusal.
    pub refusal: Option<Refusal>,
}

impl Leases {
    /// Takes over a call that waits for a lease. The first call of a number requests it.
    pub(crate) fn wait(&mut self, instance: &Instance, call: WaitingCall) {
        if call.lease > self.last {
            (self.last, self.requested) = (call.lease, Some(call.amount));
        }
        self.waiting.insert(instance.clone(), call);
    }

    /// True if a call may wait for a lease of this number: the requested one, or else the next.
    pub(crate) fn may_await(&self, lease: u32) -> bool {
        lease == self.last.saturating_add(u32::from(self.requested.is_none()))
    }

    /// Applies a change; false if it is illegal in this state.
    pub(crate) fn change(&mut self, number: u32, change: &LeaseChange) -> bool {
        let is_answer = number == self.last && self.requested.is_some();
        match change {
            LeaseChange::Granted { amount, until, .. } if is_answer => {
                (self.requested, self.refusal) = (None, None);
                let (spent, reserved) = (Usage::default(), Usage::default());
                self.open.push(Lease { number, granted: *amount, until: *until, spent, reserved });
                true
            }
            LeaseChange::Refused { notice } if is_answer => {
                let amount = self.requested.take().unwrap_or_default();
                self.refusal = Some(Refusal { lease: number, amount, notice: notice.value().clone() });
                true
            }
            LeaseChange::Returned { .. } => {
                let before = self.open.len();
                self.open.retain(|lease| lease.number != number);
                self.open.len() < before
            }
            LeaseChange::Granted { .. } | LeaseChange::Refused { .. } => false,
        }
    }

    /// Reserves the amount of a call under the last lease.
    pub(crate) fn reserve(&mut self, instance: &Instance, amount: Usage) {
        // An earlier attempt that was not settled, such as a quarantined child, counts as used.
        self.drop_call(instance);
        if let Some(lease) = self.open.last_mut().filter(|_| !amount.is_zero()) {
            lease.reserved = lease.reserved.plus(amount);
            self.calls.insert(instance.clone(), (lease.number, amount));
        }
    }

    /// Replaces the reservation of a call by what it has used.
    pub(crate) fn settle(&mut self, instance: &Instance, used: Usage) {
        let Some((number, reserved)) = self.calls.remove(instance) else { return };
        if let Some(lease) = self.open.iter_mut().find(|lease| lease.number == number) {
            lease.reserved = lease.reserved.minus(reserved);
            lease.spent = lease.spent.plus(used);
        }
    }

    /// Counts a call that is never settled as used.
    pub(crate) fn drop_call(&mut self, instance: &Instance) {
        if let Some((_, reserved)) = self.calls.get(instance).copied() {
            self.settle(instance, reserved);
        }
    }
}
