//! The accounts of budgets for a day or a month.
//!
//! A lease takes two round trips: the head of its execution is locked against its end, then the accounts in key order;
//! usage is read after these locks, so that a call counts either in its lease or in the usage. The lease is decided here,
//! and written.

use std::collections::BTreeMap;

use mainspring_kernel::{
    budget::{Limits, NAMES, Usage},
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
    AccountChange, Budgets, LeaseOutcome, LeaseRequest, LeaseUse, Part, PeriodAccount, PeriodBudget, StoreError,
    UsageQuery, UsageRow,
    budgets::{Balance, CELL_MAX, StoredLease, USAGE_SHARDS, decide, periods_of},
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
            let found = rows.first().map(|row| Ok::<_, Fault>(account_at(row)?.with(amounts_at(row, 14)?)));
            Ok(found.transpose()?.filter(|account| *account != PeriodAccount::default()))
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
            ask(sql!("budgets.sql", "past"), &[&organization, &workflows, &periods]),
            ask(sql!("budgets.sql", "leases"), &[&execution]),
        ])
        .await?;
    let has_ended = answers[1].first().map(|row| columns::column::<bool>(row, 0)).transpose()?;
    let (accounts, past) = (by_budget(&answers[3], account_at)?, by_budget(&answers[4], |row| amounts_at(row, 2))?);
    let key = |budget: &&PeriodBudget| (budget.workflow.clone(), budget.period.clone());
    let stored = |budget: &&PeriodBudget| accounts.get(&key(budget)).copied().unwrap_or_default();
    let stored: Vec<AccountRow> = budgets.iter().map(stored).collect();
    let past = budgets.iter().map(|budget| past.get(&key(budget)).copied().unwrap_or_default());
    let mut accounts: Vec<PeriodAccount> = stored.iter().zip(past).map(|(row, past)| row.with(past)).collect();
    let leases = answers[5].iter().map(lease_at).collect::<Result<Vec<_>, Fault>>()?;
    let (outcome, new) = match has_ended {
        Some(false) => decide(request, &mut accounts, &leases),
        _ => (LeaseOutcome::Stale, Vec::new()),
    };
    if new.is_empty() {
        // Accounts that were opened stay.
        session.query("COMMIT", &[]).await?;
        return Ok(outcome);
    }
    let balances: Vec<Balance> = stored.iter().zip(&new).map(|(row, lease)| row.balance.charge(lease)).collect();
    write_lease(session, request, (&accounts, &balances), &new).await?;
    Ok(outcome)
}

/// Writes a granted lease and its accounts, and commits.
async fn write_lease(
    session: &Session,
    request: &LeaseRequest,
    (accounts, balances): (&[PeriodAccount], &[Balance]),
    new: &[StoredLease],
) -> Result<(), Fault> {
    let (execution, organization) = (&request.execution.0[..], request.organization.as_bytes());
    let workflows: Vec<&[u8]> = request.budgets.iter().map(|budget| budget.workflow.as_bytes()).collect();
    let periods: Vec<&str> = request.budgets.iter().map(|budget| budget.period.as_str()).collect();
    let number = i64::from(request.number);
    let used = |place: usize| balances.iter().map(|balance| balance.0[place]).collect::<Vec<_>>();
    let used = [used(0), used(1), used(2), used(3), used(4)];
    let editions: Vec<i64> = accounts.iter().map(|account| integer(account.edition)).collect();
    let is_warned: Vec<bool> = accounts.iter().map(|account| account.is_warned).collect();
    let granted = |place: usize| new.iter().map(|lease| lease.granted.0[place].map(integer)).collect::<Vec<_>>();
    let granted = [granted(0), granted(1), granted(2), granted(3), granted(4)];
    let warns: Vec<bool> = new.iter().map(|lease| lease.warns).collect();
    session
        .round(&[
            ask(
                sql!("budgets.sql", "accounts_set"),
                &[
                    &organization,
                    &workflows,
                    &periods,
                    &used[0],
                    &used[1],
                    &used[2],
                    &used[3],
                    &used[4],
                    &is_warned,
                    &editions,
                ],
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
    Ok(())
}

/// The row of an account, without the usage of its period.
#[derive(Default, Clone, Copy)]
struct AccountRow {
    balance: Balance,
    raised: Usage,
    is_warned: bool,
    edition: u64,
}

impl AccountRow {
    fn with(self, past: Usage) -> PeriodAccount {
        let Self { balance, raised, is_warned, edition } = self;
        PeriodAccount { used: balance.with(past), raised, is_warned, edition }
    }
}

/// Reads rows by their workflows and periods.
fn by_budget<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T, Fault>) -> Result<BTreeMap<(String, String), T>, Fault> {
    let entry = |row: &Row| Ok(((columns::word(row, 0)?, columns::column(row, 1)?), read(row)?));
    rows.iter().map(entry).collect()
}

/// Reads an account after its workflow and period.
fn account_at(row: &Row) -> Result<AccountRow, Fault> {
    let mut balance = [0; NAMES.len()];
    for (place, amount) in balance.iter_mut().enumerate() {
        *amount = columns::column(row, 2 + place)?;
    }
    let (raised, is_warned) = (amounts_at(row, 7)?, columns::column(row, 12)?);
    Ok(AccountRow { balance: Balance(balance), raised, is_warned, edition: columns::number(row, 13)? })
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
    usage_statement(&mut statements, &changes);
    raise_statement(&mut statements, &changes);
    lease_statement(&mut statements, &changes);
    let ended: Vec<&'a [u8]> =
        changes.iter().filter(|(_, change)| change.is_end).map(|(part, _)| &part.execution.0[..]).collect();
    let columns = vec![column(&ended, |execution| execution)];
    push(&mut statements, &ended, sql!("budgets.sql", "leases_end"), columns);
    statements
}

fn usage_statement<'a>(statements: &mut Vec<Statement<'a>>, changes: &[(&'a Part, &'a AccountChange)]) {
    let mut used: BTreeMap<(&str, &str, &str, u32), Usage> = BTreeMap::new();
    for (part, change) in changes {
        let shard = part.partition % USAGE_SHARDS;
        for (day, amount) in change.used.iter().filter(|(_, amount)| !amount.is_zero()) {
            for period in periods_of(day) {
                let row = used.entry((&change.organization, period, &change.workflow, shard)).or_default();
                *row = row.plus(*amount);
            }
        }
    }
    let rows: Vec<_> = used.into_iter().collect();
    let amount = |place: usize| column(&rows, move |(_, used)| integer(used.amounts()[place].min(CELL_MAX)));
    let columns = vec![
        column(&rows, |((organization, ..), _)| organization.as_bytes()),
        column(&rows, |((_, period, ..), _)| period),
        column(&rows, |((_, _, workflow, _), _)| workflow.as_bytes()),
        column(&rows, |((.., shard), _)| i64::from(shard)),
        amount(0),
        amount(1),
        amount(2),
        amount(3),
        amount(4),
    ];
    push(statements, &rows, sql!("budgets.sql", "usage_add"), columns);
}

fn raise_statement<'a>(statements: &mut Vec<Statement<'a>>, changes: &[(&'a Part, &'a AccountChange)]) {
    let mut raised: BTreeMap<(&str, &str, &str), (Usage, u64)> = BTreeMap::new();
    for (_, change) in changes {
        for PeriodRaise { workflow, period, to, edition, .. } in &change.raised {
            let key: (&str, &str, &str) = (&change.organization, workflow.as_deref().unwrap_or_default(), period);
            let row = raised.entry(key).or_default();
            let (own, to) = (if row.1 == *edition { row.0.amounts() } else { [0; NAMES.len()] }, to.amounts());
            *row = (Usage::of_amounts(std::array::from_fn(|place| own[place].max(to[place]))), *edition);
        }
    }
    let rows: Vec<_> = raised.into_iter().collect();
    let amount = |place: usize| column(&rows, move |(_, (to, _))| integer(to.amounts()[place]));
    let columns = vec![
        column(&rows, |((organization, ..), _)| organization.as_bytes()),
        column(&rows, |((_, workflow, _), _)| workflow.as_bytes()),
        column(&rows, |((.., period), _)| period),
        amount(0),
        amount(1),
        amount(2),
        amount(3),
        amount(4),
        column(&rows, |(_, (_, edition))| integer(edition)),
    ];
    push(statements, &rows, sql!("budgets.sql", "accounts_raise"), columns);
}

fn lease_statement<'a>(statements: &mut Vec<Statement<'a>>, changes: &[(&'a Part, &'a AccountChange)]) {
    let of_change = |(part, change): &(&'a Part, &'a AccountChange)| {
        let (execution, workflow) = (&part.execution.0[..], change.workflow.as_bytes());
        change.leases.iter().map(move |(number, used)| (execution, workflow, *number, *used)).collect::<Vec<_>>()
    };
    let rows: Vec<(&'a [u8], &'a [u8], u32, LeaseUse)> = changes.iter().flat_map(of_change).collect();
    let bounded = |usage: Usage, place: usize| integer(usage.amounts()[place].min(CELL_MAX));
    let settled = |place: usize| column(&rows, move |(.., used)| bounded(used.settled, place));
    let spent = |place: usize| column(&rows, move |(.., used)| bounded(used.returned.unwrap_or_default(), place));
    let mut columns = vec![
        column(&rows, |(execution, ..)| execution),
        column(&rows, |(_, workflow, ..)| workflow),
        column(&rows, |(_, _, number, _)| i64::from(number)),
        column(&rows, |(.., used)| used.returned.is_some()),
    ];
    columns.extend((0..NAMES.len()).map(settled));
    columns.extend((0..NAMES.len()).map(spent));
    push(statements, &rows, sql!("budgets.sql", "leases_use"), columns);
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
