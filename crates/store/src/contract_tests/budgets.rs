//! The accounts of periods, in all stores: grants, refusals, returns, raises, usage.

use std::collections::BTreeMap;

use mainspring_kernel::{
    budget::{Limits, Usage},
    decide::PeriodRaise,
};

use super::{
    Memory, Sqlite, Subject,
    op::{Turn, continues, key, opens},
};
use crate::{
    AccountChange, Batch, Fence, LeaseOutcome, LeaseRequest, LeaseUse, PartOutcome, PeriodBudget, Store, UsageQuery,
    memory::MemoryStore,
};

pub(crate) fn tokens(tokens: u64) -> Usage {
    Usage { tokens, ..Usage::default() }
}

/// A request for tokens of the budget of the organization for a month.
pub(crate) fn request(execution: u8, number: u32, amount: u64, limit: u64) -> LeaseRequest {
    let limits = Limits([Some(limit), None, None, None, None]);
    let month =
        PeriodBudget { workflow: String::new(), period: "2026-11".into(), limits, warn_percent: 100, edition: 0 };
    let (organization, amount) = ("o".to_owned(), tokens(amount));
    LeaseRequest { execution: key(execution), number, amount, organization, budgets: vec![month] }
}

fn commit(store: &dyn Store, turn: &Turn, account: Option<AccountChange>) {
    let mut part = turn.part();
    part.receipts.account = account.map(Box::new);
    let batch = Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts: vec![part], ..Batch::default() };
    assert_eq!(store.commit(&batch).unwrap(), [PartOutcome::Durable]);
}

fn change(workflow: &str, day: &str, used: u64) -> AccountChange {
    let used = BTreeMap::from([(day.to_owned(), tokens(used))]);
    AccountChange { organization: "o".into(), workflow: workflow.into(), used, ..AccountChange::default() }
}

/// The return of a lease under which all of its usage was settled in the same commit.
pub(crate) fn returned(number: u32, spent: Usage) -> BTreeMap<u32, LeaseUse> {
    BTreeMap::from([(number, LeaseUse { settled: spent, returned: Some(spent) })])
}

fn granted(store: &dyn Store, request: &LeaseRequest) -> Option<u64> {
    match store.catalogue().lease_budget(request).unwrap() {
        LeaseOutcome::Granted { amount, .. } => amount.0[0],
        LeaseOutcome::Refused { .. } => Some(0),
        LeaseOutcome::Stale => None,
    }
}

fn used(store: &dyn Store) -> u64 {
    store.catalogue().period_account("o", "", "2026-11").unwrap().map_or(0, |account| account.used.tokens)
}

fn leases(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    commit(subject.store(), &opens(1), None);
    commit(subject.store(), &opens(2), None);
    assert_eq!(granted(subject.store(), &request(3, 1, 40, 100)), None, "there is no such execution");
    assert_eq!(granted(subject.store(), &request(1, 1, 40, 100)), Some(40));
    subject.reopen();
    // The answer was lost, and the request is repeated.
    assert_eq!(granted(subject.store(), &request(1, 1, 40, 100)), Some(40));
    assert_eq!(used(subject.store()), 40);
    assert_eq!(granted(subject.store(), &request(2, 1, 60, 100)), Some(60));
    assert_eq!(granted(subject.store(), &request(2, 2, 1, 100)), Some(0), "nothing is left");
    // The first lease is returned with 15 used, and its late repetition gets nothing.
    let back = AccountChange { leases: returned(1, tokens(15)), ..change("w", "2026-11-26", 15) };
    commit(subject.store(), &continues(1, 0), Some(back));
    subject.reopen();
    assert_eq!((used(subject.store()), granted(subject.store(), &request(1, 1, 40, 100))), (75, None));
    // A raise is to a sum, so that a second approval of the same question changes nothing.
    let (by, period) = ("ann".to_owned(), "2026-11".to_owned());
    let raise = PeriodRaise { by, workflow: None, period, to: tokens(50), edition: 0 };
    let raised = AccountChange { raised: vec![raise.clone(), raise], ..change("w", "2026-11-26", 0) };
    commit(subject.store(), &continues(2, 0), Some(raised));
    let account = subject.store().catalogue().period_account("o", "", "2026-11").unwrap().unwrap();
    assert_eq!((account.used.tokens, account.raised.tokens), (75, 50));
    assert_eq!(granted(subject.store(), &request(2, 2, 76, 100)), Some(0));
    assert_eq!(granted(subject.store(), &request(2, 2, 75, 100)), Some(75));
    // A lease that the execution does not know of is returned at its end: it was granted and never recorded.
    let end = AccountChange { leases: returned(1, tokens(60)), is_end: true, ..change("w", "2026-11-26", 60) };
    commit(subject.store(), &Turn { ends: true, ..continues(2, 1) }, Some(end));
    assert_eq!(used(subject.store()), 75);
    assert_eq!(granted(subject.store(), &request(2, 3, 1, 100)), None, "it has ended");
    // Another organization has an account of its own, and so has another month.
    let other = LeaseRequest { organization: "p".into(), ..request(1, 2, 90, 100) };
    assert_eq!(granted(subject.store(), &other), Some(90));
    let mut december = request(1, 3, 90, 100);
    december.budgets[0].period = "2026-12".into();
    assert_eq!(granted(subject.store(), &december), Some(90));
}

fn usage(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    commit(subject.store(), &opens(1), Some(change("w", "2026-10-31", 1)));
    for (after, (workflow, day, used)) in
        [("w", "2026-11-01", 2), ("v", "2026-11-01", 4), ("w", "2026-11-01", 8), ("w", "2026-11-30", 16)]
            .into_iter()
            .enumerate()
    {
        commit(subject.store(), &continues(1, after as u64), Some(change(workflow, day, used)));
    }
    subject.reopen();
    let rows = |by_month, by_workflow, after: Option<(&str, &str)>| {
        let after = after.map(|(period, workflow)| (period.to_owned(), workflow.to_owned()));
        let (organization, from, to) = ("o".to_owned(), "2026-10-31".to_owned(), "2026-11-29".to_owned());
        let query = UsageQuery { organization, from, to, by_month, by_workflow, after, limit: 2 };
        let rows = subject.store().catalogue().usage(&query).unwrap();
        let rows = rows.into_iter().map(|row| format!("{} {} {}", row.period, row.workflow, row.used.tokens));
        rows.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(rows(true, false, None), "2026-11  14; 2026-10  1");
    assert_eq!(rows(true, true, None), "2026-11 v 4; 2026-11 w 10");
    assert_eq!(rows(false, true, Some(("2026-11-01", "w"))), "2026-10-31 w 1");
    // A budget that is set within a month counts what was used before.
    assert_eq!(granted(subject.store(), &request(1, 1, 71, 100)), Some(0));
    assert_eq!(granted(subject.store(), &request(1, 1, 70, 100)), Some(70));
    let mut of_workflow = request(1, 2, 96, 100);
    of_workflow.budgets[0].workflow = "v".into();
    assert_eq!(granted(subject.store(), &of_workflow), Some(96));
}

/// A provider may claim any number of tokens. No sum overflows, and the execution continues.
fn huge(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    let usage = || Usage::of_amounts([u64::MAX; 5]);
    let changed = |leases, day: &str| AccountChange {
        used: BTreeMap::from([(day.to_owned(), usage())]),
        leases,
        ..change("w", "", 0)
    };
    commit(subject.store(), &opens(1), Some(changed(BTreeMap::new(), "2026-11-26")));
    for turn in 0..3 {
        commit(subject.store(), &continues(1, turn), Some(changed(BTreeMap::new(), "2026-11-26")));
    }
    let limited = |number, period: &str| {
        let mut request = request(1, number, 1, 100);
        request.budgets[0].period = period.into();
        request
    };
    assert_eq!(granted(subject.store(), &limited(1, "2026-11")), Some(0), "nothing is left");
    assert_eq!(granted(subject.store(), &limited(1, "2026-12")), Some(3));
    commit(subject.store(), &continues(1, 3), Some(changed(returned(1, usage()), "2026-12-01")));
    assert_eq!(granted(subject.store(), &limited(2, "2026-12")), Some(0), "a receipt may pass its lease");
    let raise = PeriodRaise { by: "ann".into(), workflow: None, period: "2026-12".into(), to: usage(), edition: 0 };
    let raised = AccountChange { raised: vec![raise], ..change("w", "2026-11-26", 0) };
    commit(subject.store(), &continues(1, 4), Some(raised));
    assert!(granted(subject.store(), &limited(2, "2026-12")).is_some());
    let query = UsageQuery {
        organization: "o".into(),
        from: "2026-11-01".into(),
        to: "2026-11-30".into(),
        by_month: true,
        by_workflow: false,
        after: None,
        limit: 10,
    };
    let rows = subject.store().catalogue().usage(&query).unwrap();
    assert!(rows.len() == 1 && rows[0].used.amounts().iter().all(|used| *used >= 1_000_000_000_000_000), "{rows:?}");
}

/// A lease of time is returned like any other.
fn time(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    commit(subject.store(), &opens(1), None);
    let ms = |time_ms| Usage { time_ms, ..Usage::default() };
    let mut request = request(1, 1, 0, 0);
    request.amount = Usage { model_calls: 1, ..ms(600) };
    request.budgets[0].limits = Limits([None, None, None, None, Some(1_000)]);
    let granted = |request: &LeaseRequest, store: &dyn Store| match store.catalogue().lease_budget(request).unwrap() {
        LeaseOutcome::Granted { amount, .. } => amount.0[4],
        LeaseOutcome::Refused { lacks, .. } => {
            assert_eq!(lacks, [4]);
            None
        }
        LeaseOutcome::Stale => panic!("it has not ended"),
    };
    assert_eq!(granted(&request, subject.store()), Some(600));
    subject.reopen();
    assert_eq!(granted(&request, subject.store()), Some(600), "the same lease");
    let back = AccountChange {
        used: BTreeMap::from([("2026-11-26".to_owned(), ms(100))]),
        leases: returned(1, ms(100)),
        ..change("w", "", 0)
    };
    commit(subject.store(), &continues(1, 0), Some(back));
    request.number = 2;
    request.amount.time_ms = 5_000;
    assert_eq!(granted(&request, subject.store()), Some(900), "all that is left");
    request.number = 3;
    assert_eq!(granted(&request, subject.store()), None);
    let raise = PeriodRaise { by: "ann".into(), workflow: None, period: "2026-11".into(), to: ms(50), edition: 0 };
    let raised = AccountChange { raised: vec![raise], ..change("w", "2026-11-26", 0) };
    commit(subject.store(), &continues(1, 1), Some(raised));
    subject.reopen();
    assert_eq!(granted(&request, subject.store()), Some(50));
}

/// The use counts from the usage of the period, also of calls that no lease of the budget covered, and each call once.
fn reconciled(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    commit(subject.store(), &opens(1), None);
    // A lease of 40 has a settled call of 10; another execution uses 30 without a lease.
    assert_eq!(granted(subject.store(), &request(1, 1, 40, 100)), Some(40));
    let partly = LeaseUse { settled: tokens(10), returned: None };
    let partly = AccountChange { leases: BTreeMap::from([(1, partly)]), ..change("w", "2026-11-26", 10) };
    commit(subject.store(), &continues(1, 0), Some(partly));
    assert_eq!(used(subject.store()), 40, "a settled call counts once");
    commit(subject.store(), &opens(2), Some(change("v", "2026-11-26", 30)));
    subject.reopen();
    assert_eq!(used(subject.store()), 70);
    assert_eq!(granted(subject.store(), &request(2, 1, 31, 100)), Some(0), "calls without a lease count");
    // The lease is returned with 25 used. The budget is removed, and 40 more are used without it.
    let back = LeaseUse { settled: tokens(15), returned: Some(tokens(25)) };
    let back = AccountChange { leases: BTreeMap::from([(1, back)]), ..change("w", "2026-11-27", 15) };
    commit(subject.store(), &continues(1, 1), Some(back));
    assert_eq!(used(subject.store()), 55);
    commit(subject.store(), &continues(2, 0), Some(change("v", "2026-11-28", 40)));
    assert_eq!(granted(subject.store(), &request(2, 1, 6, 100)), Some(0));
    assert_eq!(granted(subject.store(), &request(2, 1, 5, 100)), Some(5));
    // The usage of an execution counts for its own workflow; the budget of the workflow of its root keeps the amounts.
    let of = |workflow: &str| {
        let mut request = request(1, 2, 10, 100);
        request.budgets[0].workflow = workflow.into();
        request
    };
    assert_eq!(granted(subject.store(), &of("root")), Some(10));
    let back = AccountChange { leases: returned(2, tokens(7)), ..change("w", "2026-11-28", 7) };
    commit(subject.store(), &continues(1, 2), Some(back));
    let used_of = |workflow: &str| {
        let account = subject.store().catalogue().period_account("o", workflow, "2026-11").unwrap();
        account.map_or(0, |account| account.used.tokens)
    };
    assert_eq!([used_of("root"), used_of("w"), used_of("none")], [7, 32, 0]);
}

/// A raise counts for the edition of the budget that it was approved for.
fn editions(subject: &mut impl Subject) {
    subject.store().claim(0, "me").unwrap();
    commit(subject.store(), &opens(1), None);
    let of = |number: u32, amount: u64, edition: u64| {
        let mut request = request(1, number, amount, 100);
        request.budgets[0].edition = edition;
        request
    };
    let raise = |to: u64, edition: u64| {
        let raise = PeriodRaise { by: "ann".into(), workflow: None, period: "2026-11".into(), to: tokens(to), edition };
        Some(AccountChange { raised: vec![raise], ..change("w", "2026-11-26", 0) })
    };
    assert_eq!(granted(subject.store(), &of(1, 101, 1)), Some(0));
    commit(subject.store(), &continues(1, 0), raise(50, 1));
    subject.reopen();
    assert_eq!(granted(subject.store(), &of(1, 101, 2)), Some(0), "the budget was set again");
    assert_eq!(granted(subject.store(), &of(1, 150, 1)), Some(150));
    assert_eq!(granted(subject.store(), &of(2, 1, 2)), Some(0));
    let back = AccountChange { leases: returned(1, tokens(0)), ..change("w", "2026-11-26", 0) };
    commit(subject.store(), &continues(1, 1), Some(back));
    assert_eq!(granted(subject.store(), &of(2, 100, 2)), Some(100));
    let account = subject.store().catalogue().period_account("o", "", "2026-11").unwrap().unwrap();
    assert_eq!((account.raised, account.edition), (tokens(0), 2));
    assert_eq!(granted(subject.store(), &of(3, 1, 2)), Some(0));
    // An approval of an old question does not lift the budget of today.
    commit(subject.store(), &continues(1, 2), raise(90, 1));
    assert_eq!(granted(subject.store(), &of(3, 1, 2)), Some(0));
}

#[test]
fn memory() {
    reconciled(&mut Memory(MemoryStore::new()));
    editions(&mut Memory(MemoryStore::new()));
    leases(&mut Memory(MemoryStore::new()));
    huge(&mut Memory(MemoryStore::new()));
    time(&mut Memory(MemoryStore::new()));
    usage(&mut Memory(MemoryStore::new()));
}

#[test]
fn sqlite() {
    reconciled(&mut Sqlite::new());
    editions(&mut Sqlite::new());
    leases(&mut Sqlite::new());
    huge(&mut Sqlite::new());
    time(&mut Sqlite::new());
    usage(&mut Sqlite::new());
}

#[cfg(feature = "postgres")]
#[test]
fn postgres() {
    reconciled(&mut super::postgres::Postgres::new());
    editions(&mut super::postgres::Postgres::new());
    leases(&mut super::postgres::Postgres::new());
    huge(&mut super::postgres::Postgres::new());
    time(&mut super::postgres::Postgres::new());
    usage(&mut super::postgres::Postgres::new());
}
