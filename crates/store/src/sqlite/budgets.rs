//! The accounts of budgets for a day or a month.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use crate::{
    AccountChange, Budgets, LeaseOutcome, LeaseRequest, Part, PeriodAccount, StoreError, UsageQuery, UsageRow,
    budgets::{CELL_MAX, StoredLease, USAGE_SHARDS, decide},
    kernel::{
        budget::{Limits, Usage},
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
        self.read(|connection| account(connection, organization, workflow, period))
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
    let mut accounts = Vec::with_capacity(budgets.len());
    for budget in budgets {
        let (workflow, period) = (&budget.workflow, &budget.period);
        let values = params![organization, workflow, period];
        connection.prepare_cached(sql!("budgets.sql", "account_open"))?.execute(values)?;
        accounts.push(account(connection, organization, workflow, period)?.unwrap_or_default());
    }
    let leases: Vec<_> = leases(connection, *execution)?.into_iter().map(|(_, lease)| lease).collect();
    let (outcome, new) = decide(request, &mut accounts, &leases);
    if new.is_empty() {
        return Ok(outcome);
    }
    for (budget, account) in budgets.iter().zip(&accounts) {
        set_account(connection, organization, &budget.workflow, &budget.period, account)?;
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
    let AccountChange { organization, workflow, day, used, returned, raised, is_end } = change;
    if !used.is_zero() {
        let [tokens, cost, model_calls, tool_calls, time_ms] =
            used.amounts().map(|amount| integer(amount.min(CELL_MAX)));
        let (shard, most) = (part.partition % USAGE_SHARDS, integer(CELL_MAX));
        let values = params![organization, day, workflow, shard, tokens, cost, model_calls, tool_calls, time_ms, most];
        connection.prepare_cached(sql!("budgets.sql", "usage_add"))?.execute(values)?;
    }
    for raise in raised {
        let [tokens, cost, model_calls, tool_calls, time_ms] = raise.to.amounts().map(integer);
        let workflow = raise.workflow.as_deref().unwrap_or_default();
        let values = params![organization, workflow, raise.period, tokens, cost, model_calls, tool_calls, time_ms];
        connection.prepare_cached(sql!("budgets.sql", "account_raise"))?.execute(values)?;
    }
    if returned.is_empty() && !is_end {
        return Ok(());
    }
    for (organization, lease) in leases(connection, part.execution)?.into_iter().filter(|(_, lease)| !lease.is_returned)
    {
        let spent = returned.iter().find(|(number, _)| *number == lease.number).map(|(_, spent)| *spent);
        let Some(spent) = spent.or(is_end.then(Usage::default)) else { continue };
        let (workflow, period) = (&lease.workflow, &lease.period);
        if let Some(mut account) = account(connection, &organization, workflow, period)? {
            account.used = account.used.minus(lease.charged()).plus(spent);
            set_account(connection, &organization, workflow, period, &account)?;
        }
        let values = params![part.execution.0, lease.number];
        connection.prepare_cached(sql!("budgets.sql", "lease_return"))?.execute(values)?;
    }
    if *is_end {
        connection.prepare_cached(sql!("budgets.sql", "leases_remove"))?.execute([part.execution.0])?;
    }
    Ok(())
}

fn account(
    connection: &Connection,
    organization: &str,
    workflow: &str,
    period: &str,
) -> rusqlite::Result<Option<PeriodAccount>> {
    let read = |row: &Row<'_>| {
        Ok(PeriodAccount { used: usage_at(row, 0)?, raised: usage_at(row, 5)?, is_warned: row.get(10)? })
    };
    let mut statement = connection.prepare_cached(sql!("budgets.sql", "account"))?;
    statement.query_row(params![organization, workflow, period], read).optional()
}

fn set_account(
    connection: &Connection,
    organization: &str,
    workflow: &str,
    period: &str,
    account: &PeriodAccount,
) -> rusqlite::Result<()> {
    let [tokens, cost, model_calls, tool_calls, time_ms] = account.used.amounts().map(integer);
    let values =
        params![organization, workflow, period, tokens, cost, model_calls, tool_calls, time_ms, account.is_warned];
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
