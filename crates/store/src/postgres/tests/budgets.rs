//! Leases of one budget that several nodes request at a time.

use std::{collections::BTreeMap, thread};

use super::{commit, open};
use crate::prelude::*;
use crate::{
    AccountChange, Batch, Fence, LeaseOutcome, PartOutcome,
    contract_tests::{
        budgets::{request, returned, tokens},
        op::{EXECUTIONS, continues, opens},
        postgres::server,
    },
};

/// Each execution leases one call after the other until it is refused, and returns what it has not used with its next
/// commit. The sum of what they use never passes the limit.
#[test]
fn executions_on_three_nodes_never_use_more_than_the_limit() {
    const LIMIT: u64 = 3_000;
    const CALL: u64 = 40;
    let scratch = server().scratch();
    let address = scratch.address();
    open(&address).claim(0, "all").unwrap();
    let nodes: Vec<_> = (0..3).map(|_| open(&address)).collect();
    let work = |execution: u8| {
        let store = &nodes[usize::from(execution) % nodes.len()];
        assert_eq!(commit(store, 1, &[opens(execution)]).unwrap(), [PartOutcome::Durable]);
        let (mut used, mut after) = (0, 0);
        for number in 1.. {
            let block = match store.lease_budget(&request(execution, number, CALL, LIMIT)).unwrap() {
                LeaseOutcome::Granted { amount, .. } => amount.0[0].unwrap(),
                LeaseOutcome::Refused { .. } => break,
                LeaseOutcome::Stale => panic!("execution {execution} has not ended"),
            };
            // All but a half of the last call is used.
            let spent = block - CALL / 2;
            used += spent;
            let account = AccountChange {
                organization: "o".into(),
                workflow: "w".into(),
                used: BTreeMap::from([("2026-11-26".to_owned(), tokens(spent))]),
                leases: returned(number, tokens(spent)),
                ..AccountChange::default()
            };
            let mut part = continues(execution, after).part();
            part.receipts.account = Some(Box::new(account));
            let fences = vec![Fence { partition: 0, epoch: 1 }];
            let batch = Batch { fences, parts: vec![part], ..Batch::default() };
            assert_eq!(store.commit(&batch).unwrap(), [PartOutcome::Durable]);
            after += 1;
        }
        used
    };
    let used: u64 = thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..EXECUTIONS).map(|execution| scope.spawn(move || work(execution))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let account = nodes[0].period_account("o", "", "2026-11").unwrap().unwrap();
    assert_eq!(account.used.tokens, used, "every lease was returned");
    assert!((LIMIT - CALL + 1..=LIMIT).contains(&used), "{used} of {LIMIT}");
}
