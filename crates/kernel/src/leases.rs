//! Leases: blocks of the budgets of a workflow or an organization for a day or a month.
//!
//! The account of a period is in the store, outside of executions. An execution leases a block of it, spends from the
//! block within its own journal, and returns the rest as soon as no call is in progress. The store is therefore asked
//! once for several calls, and a replay repeats the recorded answers.

use alloc::{collections::BTreeMap, string::ToString, vec::Vec};

use crate::{
    budget::{Limits, NAMES, QUANTITIES, TIME, Usage},
    instance::Instance,
    payload::Payload,
    value::{Map, Value},
};

/// An answer of the store, or a return.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseChange {
    /// The store granted a block.
    Granted {
        /// The amounts that calls may reserve; `None` for a quantity that no budget limits.
        amount: Limits,
        /// End of the lease, in milliseconds since 1970: no call begins under it from then on.
        until: u64,
        /// The budgets: a list of `{budget, period, workflow, used, limits, left, warns}`. `warns` is true for a budget that
        /// this lease used up to the percentage of its warning, and missing otherwise.
        notice: Payload,
    },
    /// A budget does not suffice, and nothing was reserved.
    Refused {
        /// The budget: `{budget, period, workflow, asks, lacks, used, limits, raise, raisedTo, edition, source}`. `edition`
        /// identifies its limits, in hexadecimal digits. `source` is `settings` or `stored`.
        notice: Payload,
    },
    /// The execution returned what it has not used.
    Returned {
        /// The amounts that its calls have used.
        spent: Usage,
    },
}

impl LeaseChange {
    /// The amounts that calls have used of a returned lease. `None` for an answer of the store.
    pub fn returned(&self) -> Option<Usage> {
        match self {
            Self::Returned { spent } => Some(*spent),
            Self::Granted { .. } | Self::Refused { .. } => None,
        }
    }
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
            let Some(granted) = self.granted.0[place] else { return true };
            let need = if place == TIME { amount[place].min(1) } else { amount[place] };
            used[place].saturating_add(need) <= granted
        };
        now < self.until && (0..QUANTITIES).all(has_left)
    }

    /// The milliseconds that a call under this lease may take, if they are limited.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        let used = self.spent.plus(self.reserved).time_ms;
        self.granted.0[TIME].map(|granted| granted.saturating_sub(used))
    }

    /// True if no budget applies. Such a lease holds nothing, so it is kept to its end.
    pub fn is_unlimited(&self) -> bool {
        self.granted.is_empty()
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

/// The budgets of the last grant, as the tool `budget` shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Number of the lease.
    pub number: u32,
    /// The granted amounts.
    pub granted: Limits,
    /// The amounts that calls had used of them when the lease was returned.
    pub spent: Usage,
    /// The budgets; see [`LeaseChange::Granted`].
    pub budgets: Value,
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
    /// The last grant of limited budgets.
    pub seen: Option<Seen>,
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
            LeaseChange::Granted { amount, until, notice } if is_answer => {
                (self.requested, self.refusal) = (None, None);
                let (spent, reserved) = (Usage::default(), Usage::default());
                self.seen = (!amount.is_empty()).then(|| Seen {
                    number,
                    granted: *amount,
                    spent,
                    budgets: notice.value().clone(),
                });
                self.open.retain(|lease| !lease.is_unlimited());
                self.open.push(Lease { number, granted: *amount, until: *until, spent, reserved });
                true
            }
            LeaseChange::Refused { notice } if is_answer => {
                let amount = self.requested.take().unwrap_or_default();
                self.refusal = Some(Refusal { lease: number, amount, notice: notice.value().clone() });
                true
            }
            LeaseChange::Returned { spent } => {
                if let Some(seen) = self.seen.as_mut().filter(|seen| seen.number == number) {
                    seen.spent = *spent;
                }
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

    /// Returns `{budget, period, workflow, left}` of each budget as of the last grant: what was left in its account then,
    /// and what this execution has left of its block. Other executions have used more since.
    pub(crate) fn left(&self) -> Vec<Value> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let open = self.open.iter().find(|lease| lease.number == seen.number);
        let used = open.map_or(seen.spent, |lease| lease.spent.plus(lease.reserved)).amounts();
        let unused: [u64; QUANTITIES] =
            core::array::from_fn(|place| seen.granted.0[place].unwrap_or_default().saturating_sub(used[place]));
        let of_budget = |budget: &Value| {
            let named = ["budget", "period", "workflow", "workflowName"];
            let named = named.iter().filter_map(|key| Some(((*key).to_string(), budget.get(key)?.clone())));
            let mut shown: Map = named.collect::<Map>();
            let left = budget.get("left").cloned().unwrap_or_default();
            let amounts = Usage::of_shown(&left).amounts();
            let total = |place: usize| left.get(NAMES[place]).map(|_| amounts[place].saturating_add(unused[place]));
            shown.insert("left".into(), Limits(core::array::from_fn(total)).to_value());
            Value::Map(shown)
        };
        seen.budgets.as_list().into_iter().flatten().map(of_budget).collect()
    }

    /// Counts a call that is never settled as used.
    pub(crate) fn drop_call(&mut self, instance: &Instance) {
        if let Some((_, reserved)) = self.calls.get(instance).copied() {
            self.settle(instance, reserved);
        }
    }
}
