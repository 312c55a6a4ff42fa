//! The accounts of budgets for a day or a month.
//!
//! A lease takes two round trips: the head of its execution is locked against its end, then the accounts in key order;
//! the lease is decided here, and written.

use std::collections::BTreeMap;

use mainspring_kernel::{
    budget::{Limits, Usage},
    decide::PeriodRaise,
};
use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, columns,
    connections::{Session, ask},
    error::Fault,
    writes::{Statement, column},
};
use crate::{
    AccountChange, Budgets, LeaseOutcome, LeaseRequest, Part, PeriodAccount, PeriodBudget, StoreError, UsageQuery,
    UsageRow,
    budgets::{CELL_MAX, StoredLease, USAGE_SHARDS, decide},
    sql::integer,
};

impl Budgets for PostgresStore {
    fn lease_budget(&self, request: &LeaseRequest) -> Result<LeaseOutcome, StoreError> {
        self.with_session(async |session| lease(session, request).await)
    }

    fn period_account(
        &self,
        organization: &str,
        workflow: &str,
        period: &str,
    ) -> Result<Option<PeriodAccount>, StoreError> {
        self.with_session(async |session| {
            let values: [&(dyn ToSql + Sync); 3] = [&organization.as_bytes(), &workflow.as_bytes(), &period];
            let rows = session.query(sql!("budgets.sql", "account"), &values).await?;
            rows.first().map(account_at).transpose()
        })
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        self.with_session(async |session| usage(session, query).await)
    }
}

async fn lease(session: &Session, request: &LeaseRequest) -> Result<LeaseOutcome, Fault> {
    let (execution, organization) = (&request.execution.0[..], request.organization.as_bytes());
    let budgets: Vec<&PeriodBudget> = request.budgets.iter().collect();
    let workflows: Vec<&[u8]> = budgets.iter().map(|budget| budget.workflow.as_bytes()).collect();
    let periods: Vec<&str> = budgets.iter().map(|budget| budget.period.as_str()).collect();
    let answers = session
        .round(&[
            ask("BEGIN", &[]),
            ask(sql!("budgets.sql", "head_share"), &[&execution]),
            ask(sql!("budgets.sql", "accounts_open"), &[&organization, &workflows, &periods]),
            ask(sql!("budgets.sql", "accounts_lock"), &[&organization, &workflows, &periods]),
            ask(sql!("budgets.sql", "leases"), &[&execution]),
        ])
        .await?;
    let has_ended = answers[1].first().map(|row| columns::column::<bool>(row, 0)).transpose()?;
    let mut found = BTreeMap::new();
    for row in &answers[3] {
        let period: String = columns::column(row, 1)?;
        found.insert((columns::word(row, 0)?, period), account_at(row)?);
    }
    let of_budget = |budget: &&PeriodBudget| {
        found.get(&(budget.workflow.clone(), budget.period.clone())).copied().unwrap_or_default()
    };
    let mut accounts: Vec<PeriodAccount> = budgets.iter().map(of_budget).collect();
    let leases = answers[4].iter().map(lease_at).collect::<Result<Vec<_>, Fault>>()?;
    let (outcome, new) = match has_ended {
        Some(false) => decide(request, &mut accounts, &leases),
        _ => (LeaseOutcome::Stale, Vec::new()),
    };
    if new.is_empty() {
        // Accounts that were opened stay.
        session.query("COMMIT", &[]).await?;
        return Ok(outcome);
    }
    let number = i64::from(request.number);
    let used = |place: usize| accounts.iter().map(|account| integer(account.used.amounts()[place])).collect::<Vec<_>>();
    let used = [used(0), used(1), used(2), used(3), used(4)];
    let is_warned: Vec<bool> = accounts.iter().map(|account| account.is_warned).collect();
    let granted = |place: usize| new.iter().map(|lease| lease.granted.0[place].map(integer)).collect::<Vec<_>>();
    let granted = [granted(0), granted(1), granted(2), granted(3), granted(4)];
    let warns: Vec<bool> = new.iter().map(|lease| lease.warns).collect();
    session
        .round(&[
            ask(
                sql!("budgets.sql", "accounts_set"),
                &[&organization, &workflows, &periods, &used[0], &used[1], &used[2], &used[3], &used[4], &is_warned],
            ),
            ask(sql!("budgets.sql", "leases_forget"), &[&execution, &number]),
            ask(
                sql!("budgets.sql", "leases_insert"),
                &[
                    &execution,
                    &number,
                    &organization,
                    &workflows,
                    &periods,
                    &granted[0],
                    &granted[1],
                    &granted[2],
                    &granted[3],
                    &granted[4],
                    &warns,
                ],
            ),
            ask("COMMIT", &[]),
        ])
        .await?;
    Ok(outcome)
}

/// Reads an account after its workflow and period.
fn account_at(row: &Row) -> Result<PeriodAccount, Fault> {
    Ok(PeriodAccount { used: amounts_at(row, 2)?, raised: amounts_at(row, 7)?, is_warned: columns::column(row, 12)? })
}

/// Reads five amounts.
fn amounts_at(row: &Row, first: usize) -> Result<Usage, Fault> {
    let amount = |place: usize| columns::number(row, first + place);
    Ok(Usage::of_amounts([amount(0)?, amount(1)?, amount(2)?, amount(3)?, amount(4)?]))
}

fn lease_at(row: &Row) -> Result<StoredLease, Fault> {
    let amount = |place: usize| columns::optional_number(row, place);
    Ok(StoredLease {
        number: columns::small_number(row, 0)?,
        workflow: columns::word(row, 1)?,
        period: columns::column(row, 2)?,
        granted: Limits([amount(3)?, amount(4)?, amount(5)?, amount(6)?, amount(7)?]),
        warns: columns::column(row, 8)?,
        is_returned: columns::column(row, 9)?,
    })
}

async fn usage(session: &Session, query: &UsageQuery) -> Result<Vec<UsageRow>, Fault> {
    let UsageQuery { organization, from, to, by_month, by_workflow, after, limit } = query;
    let length = if *by_month { "2026-11".len() } else { "2026-11-26".len() } as i64;
    let (period, workflow) = after.clone().unzip();
    let (workflow, limit) = (workflow.map(String::into_bytes), integer(*limit as u64));
    let values: [&(dyn ToSql + Sync); 8] =
        [&organization.as_bytes(), from, to, &length, by_workflow, &period, &workflow, &limit];
    let rows = session.query(sql!("budgets.sql", "usage"), &values).await?;
    let row = |row: &Row| {
        let (period, workflow) = (columns::column(row, 0)?, columns::word(row, 1)?);
        Ok(UsageRow { period, workflow, used: amounts_at(row, 2)? })
    };
    rows.iter().map(row).collect()
}

/// The statements for the accounts that accepted parts change.
pub(super) fn statements<'a>(parts: &[&'a Part]) -> Vec<Statement<'a>> {
    let changed = parts.iter().filter(|part| !part.frames.is_empty());
    let changes: Vec<(&Part, &AccountChange)> =
        changed.filter_map(|part| Some((*part, part.receipts.account.as_deref()?))).collect();
    let mut statements = Vec::new();
    let mut used: BTreeMap<(&str, &str, &str, u32), Usage> = BTreeMap::new();
    let mut raised: BTreeMap<(&str, &str, &str), Usage> = BTreeMap::new();
    for (part, change) in &changes {
        if !change.used.is_zero() {
            let shard = part.partition % USAGE_SHARDS;
            let row = used.entry((&change.organization, &change.day, &change.workflow, shard)).or_default();
            *row = row.plus(change.used);
        }
        for PeriodRaise { workflow, period, to, .. } in &change.raised {
            let row =
                raised.entry((&change.organization, workflow.as_deref().unwrap_or_default(), period)).or_default();
            let (own, to) = (row.amounts(), to.amounts());
            *row = Usage::of_amounts(std::array::from_fn(|place| own[place].max(to[place])));
        }
    }
    let rows: Vec<_> = used.into_iter().collect();
    let amount = |place: usize| column(&rows, move |(_, used)| integer(used.amounts()[place].min(CELL_MAX)));
    let columns = vec![
        column(&rows, |((organization, ..), _)| organization.as_bytes()),
        column(&rows, |((_, day, ..), _)| day),
        column(&rows, |((_, _, workflow, _), _)| workflow.as_bytes()),
        column(&rows, |((.., shard), _)| i64::from(shard)),
        amount(0),
        amount(1),
        amount(2),
        amount(3),
        amount(4),
    ];
    push(&mut statements, &rows, sql!("budgets.sql", "usage_add"), columns);
    let rows: Vec<_> = raised.into_iter().collect();
    let amount = |place: usize| column(&rows, move |(_, to)| integer(to.amounts()[place]));
    let columns = vec![
        column(&rows, |((organization, ..), _)| organization.as_bytes()),
        column(&rows, |((_, workflow, _), _)| workflow.as_bytes()),
        column(&rows, |((.., period), _)| period),
        amount(0),
        amount(1),
        amount(2),
        amount(3),
        amount(4),
    ];
    push(&mut statements, &rows, sql!("budgets.sql", "accounts_raise"), columns);
    let returned = |(part, change): &(&'a Part, &'a AccountChange)| {
        let execution = &part.execution.0[..];
        change.returned.iter().map(move |(number, spent)| (execution, *number, *spent)).collect::<Vec<_>>()
    };
    let rows: Vec<(&'a [u8], u32, Usage)> = changes.iter().flat_map(returned).collect();
    let amount = |place: usize| column(&rows, move |(.., spent)| integer(spent.amounts()[place].min(CELL_MAX)));
    let columns = vec![
        column(&rows, |(execution, ..)| execution),
        column(&rows, |(_, number, _)| i64::from(number)),
        amount(0),
        amount(1),
        amount(2),
        amount(3),
        amount(4),
    ];
    push(&mut statements, &rows, sql!("budgets.sql", "leases_return"), columns);
    let ended: Vec<&'a [u8]> =
        changes.iter().filter(|(_, change)| change.is_end).map(|(part, _)| &part.execution.0[..]).collect();
    let columns = vec![column(&ended, |execution| execution)];
    push(&mut statements, &ended, sql!("budgets.sql", "leases_end"), columns);
    statements
}

fn push<'a, R>(
    statements: &mut Vec<Statement<'a>>,
    rows: &[R],
    sql: &'static str,
    columns: Vec<super::writes::Column<'a>>,
) {
    if !rows.is_empty() {
        statements.push((sql, columns));
    }
}
