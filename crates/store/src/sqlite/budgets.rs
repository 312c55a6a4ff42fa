//! The accounts of budgets for a day or a month.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use crate::{
    AccountChange, Budgets, LeaseOutcome, LeaseRequest, LeaseUse, Part, PeriodAccount, StoreError, UsageQuery,
    UsageRow,
    budgets::{Balance, CELL_MAX, StoredLease, USAGE_SHARDS, decide, periods_of},
    kernel::{
        budget::{Limits, NAMES, Usage},
        decide::PeriodRaise,
        key::ExecutionKey,
    },
    sql::{integer, natural},
};

impl Budgets for SqliteStore {
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError> {
        self.write(|connection| lease(connection, request))
    }

    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError> {
        let found = self.read(|connection| account(connection, organization, workflow, period))?;
        Ok(Some(found.0).filter(|account| *account != PeriodAccount::default()))
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        self.read(|connection| usage(connection, query))
    }
}

fn lease(connection: &Connection, request: &LeaseRequest) -> rusqlite::Result<LeaseOutcome> {
    let LeaseRequest { execution, organization, budgets, .. } = request;
    let has_ended = connection.prepare_cached(sql!("budgets.sql", "has_ended"))?;
    if { has_ended }.query_row([execution.0], |row| row.get::<_, bool>(0)).optional()? != Some(false) {
        return Ok(LeaseOutcome::Stale);
    }
    let (mut accounts, mut balances) = (Vec::with_capacity(budgets.len()), Vec::with_capacity(budgets.len()));
    for budget in budgets {
        let (account, balance) = account(connection, organization, &budget.workflow, &budget.period)?;
        accounts.push(account);
        balances.push(balance);
    }
    let leases: Vec<_> = leases(connection, *execution)?.into_iter().map(|(_, lease)| lease).collect();
    let (outcome, new) = decide(request, &mut accounts, &leases);
    if new.is_empty() {
        return Ok(outcome);
    }
    for ((lease, account), balance) in new.iter().zip(&accounts).zip(balances) {
        set_account(connection, organization, lease, account, balance.charge(lease))?;
    }
    let values = params![execution.0, request.number];
    connection.prepare_cached(sql!("budgets.sql", "leases_forget"))?.execute(values)?;
    for lease in new {
        let granted = lease.granted.0.map(|amount| amount.map(integer));
        let StoredLease { number, workflow, period, warns, .. } = lease;
        let values = params![
            execution.0,
            number,
            workflow,
            period,
            organization,
            granted[0],
            granted[1],
            granted[2],
            granted[3],
            granted[4],
            warns
        ];
        connection.prepare_cached(sql!("budgets.sql", "lease_insert"))?.execute(values)?;
    }
    Ok(outcome)
}

/// Applies what an accepted part changes.
pub(super) fn write(connection: &Connection, part: &Part) -> rusqlite::Result<()> {
    let Some(change) = part.receipts.account.as_deref().filter(|_| !part.frames.is_empty()) else { return Ok(()) };
    let AccountChange { organization, workflow, used, leases: uses, raised, is_end } = change;
    for (day, used) in used.iter().filter(|(_, used)| !used.is_zero()) {
        let [tokens, cost, model_calls, tool_calls, time_ms] =
            used.amounts().map(|amount| integer(amount.min(CELL_MAX)));
        let (shard, most) = (part.partition % USAGE_SHARDS, integer(CELL_MAX));
        for period in periods_of(day) {
            let values =
                params![organization, period, workflow, shard, tokens, cost, model_calls, tool_calls, time_ms, most];
            connection.prepare_cached(sql!("budgets.sql", "usage_add"))?.execute(values)?;
        }
    }
    for PeriodRaise { workflow, period, to, edition, .. } in raised {
        let [tokens, cost, model_calls, tool_calls, time_ms] = to.amounts().map(integer);
        let (workflow, edition) = (workflow.as_deref().unwrap_or_default(), integer(*edition));
        let values = params![organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, edition];
        connection.prepare_cached(sql!("budgets.sql", "account_raise"))?.execute(values)?;
    }
    if uses.is_empty() && !is_end {
        return Ok(());
    }
    for (organization, lease) in leases(connection, part.execution)?.into_iter().filter(|(_, lease)| !lease.is_returned)
    {
        let unknown = LeaseUse { returned: Some(Usage::default()), ..LeaseUse::default() };
        let Some(used) = uses.get(&lease.number).copied().or(is_end.then_some(unknown)) else { continue };
        let [tokens, cost, model_calls, tool_calls, time_ms] = Balance::default().apply(&lease, workflow, &used).0;
        let (of, period) = (&lease.workflow, &lease.period);
        let values = params![organization, of, period, tokens, cost, model_calls, tool_calls, time_ms];
        connection.prepare_cached(sql!("budgets.sql", "account_add"))?.execute(values)?;
        if used.returned.is_some() {
            let values = params![part.execution.0, lease.number];
            connection.prepare_cached(sql!("budgets.sql", "lease_return"))?.execute(values)?;
        }
    }
    if *is_end {
        connection.prepare_cached(sql!("budgets.sql", "leases_remove"))?.execute([part.execution.0])?;
    }
    Ok(())
}

/// Returns an account with what was used in its period, and its stored amounts alone.
fn account(
    connection: &Connection,
    organization: &str,
    workflow: &str,
    period: &str,
) -> rusqlite::Result<(PeriodAccount, Balance)> {
    let read = |row: &Row<'_>| {
        let mut balance = [0; NAMES.len()];
        for (place, amount) in balance.iter_mut().enumerate() {
            *amount = row.get(place)?;
        }
        let (raised, is_warned, edition) = (usage_at(row, 5)?, row.get(10)?, natural(row.get(11)?));
        let (balance, past) = (Balance(balance), usage_at(row, 12)?);
        Ok((PeriodAccount { used: balance.with(past), raised, is_warned, edition }, balance))
    };
    let mut statement = connection.prepare_cached(sql!("budgets.sql", "account"))?;
    statement.query_row(params![organization, workflow, period], read)
}

fn set_account(
    connection: &Connection,
    organization: &str,
    lease: &StoredLease,
    account: &PeriodAccount,
    balance: Balance,
) -> rusqlite::Result<()> {
    let [tokens, cost, model_calls, tool_calls, time_ms] = balance.0;
    let (workflow, period, edition) = (&lease.workflow, &lease.period, integer(account.edition));
    let warned = account.is_warned;
    let values =
        params![organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, warned, edition];
    connection.prepare_cached(sql!("budgets.sql", "account_set"))?.execute(values).map(drop)
}

/// Reads five amounts.
fn usage_at(row: &Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    let amount = |place: usize| row.get::<_, i64>(first + place).map(natural);
    Ok(Usage::of_amounts([amount(0)?, amount(1)?, amount(2)?, amount(3)?, amount(4)?]))
}

/// Returns the leases of an execution, each with its organization.
fn leases(connection: &Connection, execution: ExecutionKey) -> rusqlite::Result<Vec<(String, StoredLease)>> {
    let mut statement = connection.prepare_cached(sql!("budgets.sql", "leases"))?;
    let rows = statement.query_map([execution.0], |row| {
        let amount = |place: usize| row.get::<_, Option<i64>>(place).map(|amount| amount.map(natural));
        let lease = StoredLease {
            number: row.get(0)?,
            workflow: row.get(1)?,
            period: row.get(2)?,
            granted: Limits([amount(3)?, amount(4)?, amount(5)?, amount(6)?, amount(7)?]),
            warns: row.get(8)?,
            is_returned: row.get(9)?,
        };
        Ok((row.get(10)?, lease))
    })?;
    rows.collect()
}

fn usage(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<Vec<UsageRow>> {
    let UsageQuery { organization, from, to, by_month, by_workflow, after, limit } = query;
    let length = if *by_month { "2026-11".len() } else { "2026-11-26".len() };
    let (period, workflow) = after.clone().unzip();
    let values =
        params![organization, from, to, integer(length as u64), by_workflow, period, workflow, integer(*limit as u64)];
    let mut statement = connection.prepare_cached(sql!("budgets.sql", "usage"))?;
    let rows = statement.query_map(values, |row| {
        Ok(UsageRow { period: row.get(0)?, workflow: row.get(1)?, used: usage_at(row, 2)? })
    })?;
    rows.collect()
}
