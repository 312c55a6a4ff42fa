//! The accounts of budgets for a day or a month, the blocks that executions have leased of them, and the usage by day.

use mainspring_kernel::{
    budget::{Limits, NAMES, TIME, Usage},
    decide::PeriodRaise,
    key::ExecutionKey,
};

use std::collections::BTreeMap;

use crate::error::StoreError;

/// Part of a limit that one lease takes at most, unless its first call needs more: few requests to the store while much
/// is left, and small blocks near the limit.
const BLOCK_PARTS: u64 = 32;

/// Calls of the size of the first one that a lease covers at most.
const BLOCK_CALLS: u64 = 8;

/// Shards of the usage of a workflow and a day. Nodes own different partitions, and seldom wait for the row of another.
pub(crate) const USAGE_SHARDS: u32 = 16;

/// The most of a quantity that a row of usage counts: more than anyone pays for, and little enough that no sum of two
/// overflows. A provider may claim any number of tokens.
pub(crate) const CELL_MAX: u64 = 1_000_000_000_000_000;

/// The most of a quantity that the balance of an account has, so that a sum with the usage does not overflow.
const BALANCE_MAX: i64 = 9_000_000_000_000_000_000;

/// Rows of usage in an answer.
pub const USAGE_ROWS_MAX: usize = 1_000;

/// Keeps the accounts of periods. Executions change them with their commits; see [`AccountChange`].
pub trait Budgets: Send + Sync {
    /// Grants a block of all named budgets, or refuses it. Durable. A repeated request of the same number returns the
    /// same grant. Nothing is granted to an execution that has ended.
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError>;

    /// Returns the account of a budget in a period: what was used in it, also without a budget, and what is leased. `None`
    /// if nothing was.
    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError>;

    /// Returns the usage of an organization, the newest period first, then by workflow, at most [`UsageQuery::limit`].
    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError>;
}

/// A request for a block of the budgets of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The execution that gets the block.
    pub execution: ExecutionKey,
    /// Number of the lease within the execution, from 1.
    pub number: u32,
    /// The amounts that the first call needs.
    pub amount: Usage,
    /// The organization; empty for executions of a command line.
    pub organization: String,
    /// The budgets that apply, without two for the same workflow and period.
    pub budgets: Vec<PeriodBudget>,
}

/// A budget in one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodBudget {
    /// The workflow; empty for the budget of the organization.
    pub workflow: String,
    /// The day or month, as `2026-11-26` or `2026-11`.
    pub period: String,
    /// The limits, without raises.
    pub limits: Limits,
    /// The percentage of a limit at which a warning is due.
    pub warn_percent: u32,
    /// Identifies the limits and the time at which they were set. A raise counts for the edition that people have raised.
    pub edition: u64,
}

/// The answer to a [`LeaseRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// A block was granted.
    Granted {
        /// The amounts; `None` for a quantity that no budget limits.
        amount: Limits,
        /// The accounts of the budgets, in the order of the request. True for a budget that this lease used up to the
        /// percentage of its warning.
        accounts: Vec<(PeriodAccount, bool)>,
    },
    /// A budget does not suffice. Nothing was changed.
    Refused {
        /// The place of the budget in the request.
        budget: usize,
        /// The quantities that do not suffice, by their places in [`NAMES`].
        lacks: Vec<usize>,
        /// The account of the budget.
        account: PeriodAccount,
    },
    /// The execution has ended, or has requested a later lease since. Nothing was changed.
    Stale,
}

/// The account of a budget in one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeriodAccount {
    /// The amounts that were used, and those that executions have leased.
    pub used: Usage,
    /// The amounts by which people have raised the limits.
    pub raised: Usage,
    /// True if a warning was given since the last raise.
    pub is_warned: bool,
    /// The edition of the budget that the raises and the warning belong to.
    pub edition: u64,
}

/// The changes of an organization's accounts by a part of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountChange {
    /// The organization; empty for executions of a command line.
    pub organization: String,
    /// The workflow of the execution.
    pub workflow: String,
    /// The amounts that the execution has used itself, by the days on which its calls began, as `2026-11-26`.
    pub used: BTreeMap<String, Usage>,
    /// The leases under which calls ended, and those that it returned, by their numbers.
    pub leases: BTreeMap<u32, LeaseUse>,
    /// The budgets that people have raised.
    pub raised: Vec<PeriodRaise>,
    /// True if the execution ends. Leases that it does not know of are then returned unused.
    pub is_end: bool,
}

/// The use of a lease in a part of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseUse {
    /// The amounts of [`AccountChange::used`] that calls under the lease have used.
    pub settled: Usage,
    /// All amounts that its calls have used, if the execution returned the lease. A call in progress at the end of the
    /// execution counts as its reservation.
    pub returned: Option<Usage>,
}

/// Selects usage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageQuery {
    /// The organization; empty for executions of a command line.
    pub organization: String,
    /// The first day, inclusive.
    pub from: String,
    /// The last day, inclusive.
    pub to: String,
    /// True to group by month, false by day.
    pub by_month: bool,
    /// True to group by workflow, false to add up all of them.
    pub by_workflow: bool,
    /// Only rows after this period and workflow, in the order of the answer.
    pub after: Option<(String, String)>,
    /// The maximum number of rows.
    pub limit: usize,
}

/// The usage of a workflow, or of a whole organization, in one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// The day or month.
    pub period: String,
    /// The workflow; empty for all.
    pub workflow: String,
    /// The used amounts.
    pub used: Usage,
}

/// A lease as it is stored, once for each of its budgets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLease {
    pub(crate) number: u32,
    pub(crate) workflow: String,
    pub(crate) period: String,
    pub(crate) granted: Limits,
    pub(crate) warns: bool,
    pub(crate) is_returned: bool,
}

/// The stored amounts of an account. Together with the usage of its period they are what is used and leased, so calls
/// count that no budget limited when they were made. A lease adds its block; the usage of its calls replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Balance(pub(crate) [i64; NAMES.len()]);

impl Balance {
    fn change(self, by: impl Fn(usize) -> i128) -> Self {
        let most = i128::from(BALANCE_MAX);
        Self(std::array::from_fn(|place| {
            // The bounds are those of the type of the result.
            (i128::from(self.0[place]) + by(place)).clamp(-most, most) as i64
        }))
    }

    /// Adds the block of a new lease.
    pub(crate) fn charge(self, lease: &StoredLease) -> Self {
        let charged = lease.charged().amounts();
        self.change(|place| i128::from(charged[place]))
    }

    /// Applies the use of a lease by an execution of a workflow. Its usage counts for the organization and its workflow; the
    /// budget of another workflow, that of the root, keeps the amounts here.
    pub(crate) fn apply(self, lease: &StoredLease, workflow: &str, used: &LeaseUse) -> Self {
        let is_counted = lease.workflow.is_empty() || lease.workflow == workflow;
        let bounded = |usage: Usage| usage.amounts().map(|amount| i128::from(amount.min(CELL_MAX)));
        let (settled, charged) = (bounded(used.settled), lease.charged().amounts());
        let returned = used.returned.map(bounded);
        self.change(|place| {
            let returned = returned.map_or(0, |spent| spent[place] - i128::from(charged[place]));
            if is_counted { returned - settled[place] } else { returned }
        })
    }

    /// Returns the amounts that are used and leased.
    pub(crate) fn with(self, past: Usage) -> Usage {
        let past = past.amounts();
        Usage::of_amounts(std::array::from_fn(|place| {
            let sum = (i128::from(self.0[place]) + i128::from(past[place])).max(0);
            u64::try_from(sum).unwrap_or(u64::MAX)
        }))
    }
}

impl PeriodAccount {
    fn limits(&self, budget: &PeriodBudget) -> Limits {
        let raised = self.raised.amounts();
        Limits(std::array::from_fn(|place| Some(budget.limits.0[place]?.saturating_add(raised[place]))))
    }

    /// The amounts that are left; `None` for no limit.
    pub fn left(&self, budget: &PeriodBudget) -> Limits {
        let used = self.used.amounts();
        let limits = self.limits(budget).0;
        Limits(std::array::from_fn(|place| Some(limits[place]?.saturating_sub(used[place]))))
    }

    fn is_near_limit(&self, budget: &PeriodBudget) -> bool {
        let (limits, used) = (self.limits(budget).0, self.used.amounts());
        let percent = u128::from(budget.warn_percent);
        limits
            .iter()
            .zip(used)
            .any(|(limit, used)| limit.is_some_and(|limit| u128::from(used) * 100 >= u128::from(limit) * percent))
    }
}

impl StoredLease {
    /// The granted amounts that its account contains.
    pub(crate) fn charged(&self) -> Usage {
        Usage::of_amounts(self.granted.0.map(|amount| amount.unwrap_or_default().min(BALANCE_MAX.unsigned_abs())))
    }
}

/// Decides about a request with the accounts of its budgets, which are changed by a grant, and the leases that the
/// execution has. A grant returns the leases to store.
pub(crate) fn decide(
    request: &LeaseRequest,
    accounts: &mut [PeriodAccount],
    leases: &[StoredLease],
) -> (LeaseOutcome, Vec<StoredLease>) {
    for (budget, account) in request.budgets.iter().zip(accounts.iter_mut()) {
        if account.edition != budget.edition {
            (account.raised, account.is_warned, account.edition) = (Usage::default(), false, budget.edition);
        }
    }
    let known: Vec<&StoredLease> = leases.iter().filter(|lease| lease.number == request.number).collect();
    if leases.iter().any(|lease| lease.number > request.number) || known.iter().any(|lease| lease.is_returned) {
        return (LeaseOutcome::Stale, Vec::new());
    }
    if let Some(first) = known.first() {
        let warns = |budget: &PeriodBudget| {
            let is_of = |lease: &&&StoredLease| (&lease.workflow, &lease.period) == (&budget.workflow, &budget.period);
            known.iter().find(is_of).is_some_and(|lease| lease.warns)
        };
        let accounts = request.budgets.iter().zip(&*accounts).map(|(budget, account)| (*account, warns(budget)));
        return (LeaseOutcome::Granted { amount: first.granted, accounts: accounts.collect() }, Vec::new());
    }
    let need = request.amount.amounts();
    let mut block = [None; NAMES.len()];
    for (place, (budget, account)) in request.budgets.iter().zip(&*accounts).enumerate() {
        let left = account.left(budget).0;
        // A call may take the time that is left.
        let least = |place: usize| if place == TIME { need[place].min(1) } else { need[place] };
        let lacks = |place: &usize| left[*place].is_some_and(|left| left < least(*place));
        let lacks: Vec<usize> = (0..NAMES.len()).filter(lacks).collect();
        if !lacks.is_empty() {
            return (LeaseOutcome::Refused { budget: place, lacks, account: *account }, Vec::new());
        }
        for (quantity, block) in block.iter_mut().enumerate() {
            let Some(left) = left[quantity] else { continue };
            let usual = need[quantity].saturating_mul(BLOCK_CALLS).min(left / BLOCK_PARTS);
            let own = usual.max(need[quantity]).min(left);
            *block = Some(block.map_or(own, |block: u64| block.min(own)));
        }
    }
    let amount = Limits(block);
    let charged = Usage::of_amounts(block.map(Option::unwrap_or_default));
    let (mut shown, mut stored) = (Vec::new(), Vec::new());
    for (budget, account) in request.budgets.iter().zip(accounts) {
        account.used = account.used.plus(charged);
        let warns = !account.is_warned && account.is_near_limit(budget);
        account.is_warned |= warns;
        shown.push((*account, warns));
        stored.push(StoredLease {
            number: request.number,
            workflow: budget.workflow.clone(),
            period: budget.period.clone(),
            granted: amount,
            warns,
            is_returned: false,
        });
    }
    (LeaseOutcome::Granted { amount, accounts: shown }, stored)
}

/// Returns the periods of a day that usage is stored for: the day and its month.
pub(crate) fn periods_of(day: &str) -> [&str; 2] {
    [day, day.get(.."2026-11".len()).unwrap_or(day)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(tokens: u64) -> PeriodBudget {
        let limits = Limits([Some(tokens), None, None, None, None]);
        PeriodBudget { workflow: String::new(), period: "2026-11".into(), limits, warn_percent: 80, edition: 0 }
    }

    fn request(tokens: u64, budgets: Vec<PeriodBudget>) -> LeaseRequest {
        let amount = Usage { tokens, model_calls: 1, ..Usage::default() };
        LeaseRequest { execution: ExecutionKey([1; 16]), number: 1, amount, organization: String::new(), budgets }
    }

    #[test]
    fn a_block_has_room_for_some_calls_and_shrinks_near_the_limit() {
        let granted = |used: u64| {
            let mut accounts =
                [PeriodAccount { used: Usage { tokens: used, ..Usage::default() }, ..Default::default() }];
            match decide(&request(100, vec![budget(100_000)]), &mut accounts, &[]).0 {
                LeaseOutcome::Granted { amount, .. } => amount.0[0],
                LeaseOutcome::Refused { lacks, .. } => {
                    assert_eq!((lacks, accounts[0].used.tokens), (vec![0], used));
                    None
                }
                LeaseOutcome::Stale => panic!("the request is new"),
            }
        };
        assert_eq!(granted(0), Some(800));
        assert_eq!(granted(90_000), Some(312));
        assert_eq!(granted(99_900), Some(100));
        assert_eq!(granted(99_901), None);
    }

    #[test]
    fn the_strictest_budget_decides_and_unlimited_quantities_are_free() {
        let mut accounts = [PeriodAccount::default(); 2];
        let (outcome, stored) = decide(&request(100, vec![budget(100_000), budget(6_400)]), &mut accounts, &[]);
        let LeaseOutcome::Granted { amount, accounts: shown } = outcome else { panic!("{outcome:?}") };
        assert_eq!(amount.0, [Some(200), None, None, None, None]);
        assert_eq!(shown, accounts.map(|account| (account, false)));
        assert_eq!((stored.len(), accounts[0].used.tokens, accounts[1].used.tokens), (2, 200, 200));
    }

    #[test]
    fn a_call_may_take_the_time_that_is_left() {
        let limits = Limits([None, None, None, None, Some(1_000)]);
        let day = PeriodBudget { period: "2026-11-26".into(), limits, ..budget(1) };
        let granted = |used: u64, need: u64| {
            let used = Usage { time_ms: used, ..Usage::default() };
            let mut accounts = [PeriodAccount { used, ..PeriodAccount::default() }];
            let amount = Usage { time_ms: need, model_calls: 1, ..Usage::default() };
            let request = LeaseRequest { amount, ..request(0, vec![day.clone()]) };
            match decide(&request, &mut accounts, &[]).0 {
                LeaseOutcome::Granted { amount, .. } => amount.0[TIME],
                LeaseOutcome::Refused { lacks, .. } => {
                    assert_eq!(lacks, [TIME]);
                    None
                }
                LeaseOutcome::Stale => panic!("the request is new"),
            }
        };
        assert_eq!([granted(0, 600), granted(900, 600), granted(999, 600)], [Some(600), Some(100), Some(1)]);
        assert_eq!([granted(1_000, 600), granted(5_000, 600)], [None, None]);
    }

    #[test]
    fn a_limit_below_the_use_and_huge_amounts_grant_nothing() {
        let used = Usage { tokens: u64::MAX, ..Usage::default() };
        let mut accounts = [PeriodAccount { used, ..PeriodAccount::default() }];
        let (outcome, stored) = decide(&request(1, vec![budget(10)]), &mut accounts, &[]);
        assert!(matches!(outcome, LeaseOutcome::Refused { .. }) && stored.is_empty(), "{outcome:?}");
        let mut accounts = [PeriodAccount::default()];
        let (outcome, _) = decide(&request(u64::MAX, vec![budget(u64::MAX)]), &mut accounts, &[]);
        let LeaseOutcome::Granted { amount, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!((amount.0[0], accounts[0].used.tokens), (Some(u64::MAX), u64::MAX));
    }

    #[test]
    fn a_warning_is_given_once() {
        let mut accounts = [PeriodAccount::default()];
        let warned = |accounts: &mut [PeriodAccount]| match decide(&request(40, vec![budget(100)]), accounts, &[]).0 {
            LeaseOutcome::Granted { accounts, .. } => accounts.iter().filter(|(_, warns)| *warns).count(),
            other => panic!("{other:?}"),
        };
        assert_eq!(warned(&mut accounts), 0);
        assert_eq!(warned(&mut accounts), 1);
        accounts[0].used.tokens = 60;
        assert_eq!(warned(&mut accounts), 0);
    }
}
