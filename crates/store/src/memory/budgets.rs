//! The accounts of budgets for a day or a month, in maps.

use std::collections::BTreeMap;

use mainspring_kernel::{budget::Usage, key::ExecutionKey};

use super::MemoryStore;
use crate::{
    AccountChange, Budgets, LeaseOutcome, LeaseRequest, LeaseUse, PeriodAccount, StoreError, UsageQuery, UsageRow,
    budgets::{Balance, StoredLease, decide},
};

/// Organization, workflow and period.
type AccountKey = (String, String, String);

#[derive(Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<AccountKey, StoredAccount>,
    /// With the organization of each.
    leases: BTreeMap<ExecutionKey, Vec<(String, StoredLease)>>,
    /// By organization, day and workflow.
    usage: BTreeMap<AccountKey, Usage>,
}

#[derive(Debug, Default, Clone, Copy)]
struct StoredAccount {
    balance: Balance,
    raised: Usage,
    is_warned: bool,
    edition: u64,
}

impl Accounts {
    /// Returns an account with what was used in its period.
    fn account(&self, key: &AccountKey) -> PeriodAccount {
        let (organization, workflow, period) = key;
        let is_of = |(of, day, by): &&AccountKey| {
            of == organization && day.starts_with(period.as_str()) && (workflow.is_empty() || by == workflow)
        };
        let past =
            self.usage.iter().filter(|(key, _)| is_of(key)).fold(Usage::default(), |sum, (_, used)| sum.plus(*used));
        let StoredAccount { balance, raised, is_warned, edition } = self.accounts.get(key).copied().unwrap_or_default();
        PeriodAccount { used: balance.with(past), raised, is_warned, edition }
    }

    fn lease(&mut self, request: &LeaseRequest) -> LeaseOutcome {
        let key = |workflow: &String, period: &String| (request.organization.clone(), workflow.clone(), period.clone());
        let keys: Vec<_> = request.budgets.iter().map(|budget| key(&budget.workflow, &budget.period)).collect();
        let mut accounts: Vec<_> = keys.iter().map(|key| self.account(key)).collect();
        let held = self.leases.entry(request.execution).or_default();
        let leases: Vec<_> = held.iter().map(|(_, lease)| lease.clone()).collect();
        let (outcome, new) = decide(request, &mut accounts, &leases);
        if !new.is_empty() {
            held.retain(|(_, lease)| !lease.is_returned);
        }
        for ((key, account), lease) in keys.into_iter().zip(accounts).zip(new) {
            let stored = self.accounts.entry(key).or_default();
            let balance = stored.balance.charge(&lease);
            let PeriodAccount { raised, is_warned, edition, .. } = account;
            *stored = StoredAccount { balance, raised, is_warned, edition };
            held.push((request.organization.clone(), lease));
        }
        outcome
    }

    pub(super) fn change(&mut self, execution: ExecutionKey, change: &AccountChange) {
        let AccountChange { organization, workflow, used, leases, raised, is_end } = change;
        for (day, used) in used.iter().filter(|(_, used)| !used.is_zero()) {
            let row = self.usage.entry((organization.clone(), day.clone(), workflow.clone())).or_default();
            *row = row.plus(*used);
        }
        for raise in raised {
            let of = raise.workflow.clone().unwrap_or_default();
            let account = self.accounts.entry((organization.clone(), of, raise.period.clone())).or_default();
            let is_known = account.edition == raise.edition;
            let (own, to) = (account.raised.amounts(), raise.to.amounts());
            let most = |place: usize| if is_known { own[place].max(to[place]) } else { to[place] };
            account.raised = Usage::of_amounts(std::array::from_fn(most));
            (account.is_warned, account.edition) = (false, raise.edition);
        }
        for (organization, lease) in self.leases.get_mut(&execution).into_iter().flatten() {
            let unknown = LeaseUse { returned: Some(Usage::default()), ..LeaseUse::default() };
            let known = leases.get(&lease.number).copied();
            let Some(used) = known.or(is_end.then_some(unknown)).filter(|_| !lease.is_returned) else { continue };
            lease.is_returned = used.returned.is_some();
            let key = (organization.clone(), lease.workflow.clone(), lease.period.clone());
            if let Some(account) = self.accounts.get_mut(&key) {
                account.balance = account.balance.apply(lease, workflow, &used);
            }
        }
        if *is_end {
            self.leases.remove(&execution);
        }
    }

    fn rows(&self, query: &UsageQuery) -> Vec<UsageRow> {
        let length = if query.by_month { "2026-11".len() } else { "2026-11-26".len() };
        let mut rows: BTreeMap<(String, String), Usage> = BTreeMap::new();
        for ((organization, day, workflow), used) in &self.usage {
            if *organization == query.organization && (&query.from..=&query.to).contains(&day) {
                let workflow = if query.by_workflow { workflow.clone() } else { String::new() };
                let row = rows.entry((day[..length].to_owned(), workflow)).or_default();
                *row = row.plus(*used);
            }
        }
        let mut rows: Vec<_> =
            rows.into_iter().map(|((period, workflow), used)| UsageRow { period, workflow, used }).collect();
        rows.sort_by(|a, b| (&b.period, &a.workflow).cmp(&(&a.period, &b.workflow)));
        let is_after = |row: &UsageRow| {
            let after = query.after.as_ref();
            after.is_none_or(|(period, workflow)| (period, &row.workflow) > (&row.period, workflow))
        };
        rows.into_iter().filter(is_after).take(query.limit).collect()
    }
}

impl Budgets for MemoryStore {
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError> {
        let mut state = self.state();
        match state.heads.get(&request.execution) {
            Some(head) if !head.ended => Ok(state.receipts.accounts.lease(request)),
            _ => Ok(LeaseOutcome::Stale),
        }
    }

    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError> {
        let key = (organization.to_owned(), workflow.to_owned(), period.to_owned());
        let account = self.state().receipts.accounts.account(&key);
        Ok(Some(account).filter(|account| *account != PeriodAccount::default()))
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        Ok(self.state().receipts.accounts.rows(query))
    }
}
