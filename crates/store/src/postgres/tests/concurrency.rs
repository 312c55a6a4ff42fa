//! Several stores on one schema, as with several nodes.

use std::{
    collections::BTreeSet,
    sync::{Barrier, mpsc},
    thread,
};

use super::{LOOKS_MAX, commit, message, open, wait_until, wait_until_blocked};
use crate::prelude::*;
use crate::{
    EnqueueRequest, Fence, Node, PartOutcome, ReadLimit, Refusal,
    contract_tests::{
        op::{Turn, continues, key, opens},
        postgres::server,
    },
};

fn node(name: &str) -> Node {
    Node { name: name.into(), address: "here".into(), release: "1".into(), decide_version: 1, accepts_partitions: true }
}

#[test]
fn one_of_two_concurrent_commits_to_a_head_succeeds() {
    const ROUNDS: u64 = 60;
    let scratch = server().scratch();
    let stores = [open(&scratch.address()), open(&scratch.address())];
    stores[0].claim(0, "both").unwrap();
    let together = Barrier::new(2);
    let answers = thread::scope(|scope| {
        let workers = stores.each_ref().map(|store| {
            let work = || {
                let continued = (0..ROUNDS).map(|round| {
                    together.wait();
                    let turn = round.checked_sub(1).map_or(opens(0), |after| continues(0, after));
                    commit(store, 1, &[turn, opens(1 + (round % 2) as u8)]).unwrap().remove(0)
                });
                continued.collect::<Vec<_>>()
            };
            scope.spawn(work)
        });
        workers.map(|worker| worker.join().unwrap())
    });
    for (round, pair) in answers[0].iter().zip(&answers[1]).enumerate() {
        let refused = PartOutcome::Refused(Refusal::Sequence);
        let expected = [(&PartOutcome::Durable, &refused), (&refused, &PartOutcome::Durable)];
        assert!(expected.contains(&pair), "round {round}: {pair:?}");
    }
    assert_eq!(stores[0].head(key(0)).unwrap().unwrap().head.sequence, ROUNDS - 1);
}

#[test]
fn an_id_claimed_concurrently_belongs_to_the_first_writer() {
    let scratch = server().scratch();
    let (store, other) = (open(&scratch.address()), open(&scratch.address()));
    store.claim(0, "both").unwrap();
    commit(&store, 1, &[Turn { id: Some("before"), ..opens(0) }]).unwrap();
    let beside = scratch.beside().unwrap();
    // Another transaction, not yet committed, takes the name.
    beside.execute("BEGIN; UPDATE executions SET id = 'name', id_key = sha256('name') WHERE id = 'before'").unwrap();
    thread::scope(|scope| {
        let work = || commit(&other, 1, &[Turn { id: Some("name"), ..opens(1) }, opens(2)]);
        let waiting = scope.spawn(work);
        wait_until_blocked(&server().beside().unwrap(), scratch.schema());
        beside.execute("COMMIT").unwrap();
        let expected = vec![PartOutcome::Refused(Refusal::IdTaken(key(0))), PartOutcome::Durable];
        assert_eq!(waiting.join().unwrap(), Ok(expected));
    });
    assert_eq!(store.head(key(1)), Ok(None));
}

#[test]
fn one_of_many_concurrent_acquisitions_gets_the_partition() {
    const PARTITIONS: u32 = 24;
    const NODES: usize = 6;
    const ROUNDS: usize = 5;
    let scratch = server().scratch();
    let stores: Vec<_> = (0..NODES).map(|_| open(&scratch.address())).collect();
    let together = Barrier::new(NODES);
    let all: Vec<u32> = (0..PARTITIONS).collect();
    let taken = thread::scope(|scope| {
        let mut workers = Vec::new();
        for (number, store) in stores.iter().enumerate() {
            let (all, together) = (&all, &together);
            workers.push(scope.spawn(move || {
                let name = format!("node {number}");
                let mut rounds = Vec::new();
                for _ in 0..ROUNDS {
                    together.wait();
                    // A node's first heartbeat is concurrent with other nodes' acquisitions: it must count as alive.
                    store.heartbeat(&node(&name), 1_000_000).unwrap().expect("it lives");
                    let fences = store.acquire(&name, all).unwrap();
                    together.wait();
                    assert_eq!(store.heartbeat(&node(&name), 1_000_000).unwrap().unwrap().held, fences);
                    store.release(&name, &fences, &[]).unwrap();
                    rounds.push(fences);
                }
                rounds
            }));
        }
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let mut seen = BTreeSet::new();
    for round in 0..ROUNDS {
        let fences: Vec<Fence> = taken.iter().flat_map(|rounds| &rounds[round]).copied().collect();
        let mut partitions: Vec<u32> = fences.iter().map(|fence| fence.partition).collect();
        partitions.sort_unstable();
        assert_eq!(partitions, all, "round {round}: each partition has one owner");
        assert!(fences.iter().all(|fence| seen.insert((fence.partition, fence.epoch))), "an epoch was given twice");
    }
}

#[test]
fn a_commit_of_an_old_epoch_is_refused() {
    const ROUNDS: u64 = 20;
    let scratch = server().scratch();
    let (old, new) = (open(&scratch.address()), open(&scratch.address()));
    let mut epoch = old.claim(0, "old").unwrap();
    commit(&old, epoch, &[opens(0)]).unwrap();
    for round in 0..ROUNDS {
        let before = old.head(key(0)).unwrap().unwrap().head.sequence;
        let (started, has_started) = mpsc::channel();
        let (taken, at_take) = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut after = before;
                loop {
                    match commit(&old, epoch, &[continues(0, after)]).unwrap().remove(0) {
                        PartOutcome::Durable => after += 1,
                        refused => return (after, refused),
                    }
                    // The receiver may have been dropped after the first value.
                    let _ = started.send(());
                }
            });
            has_started.recv().unwrap();
            let taken = new.claim(0, "new").unwrap();
            let at_take = new.head(key(0)).unwrap().unwrap().head.sequence;
            let (after, refused) = writer.join().unwrap();
            assert_eq!((after, refused), (at_take, PartOutcome::Refused(Refusal::Fence)), "round {round}");
            (taken, at_take)
        });
        assert_eq!(new.head(key(0)).unwrap().unwrap().head.sequence, at_take, "round {round}");
        epoch = taken;
    }
}

#[test]
fn acquisitions_and_commits_in_flight_wait_for_each_other() {
    let scratch = server().scratch();
    let (old, new) = (open(&scratch.address()), open(&scratch.address()));
    let (blocker, looker) = (scratch.beside().unwrap(), scratch.beside().unwrap());
    old.claim(0, "old").unwrap();
    commit(&old, 1, &[opens(0)]).unwrap();
    blocker.execute("BEGIN; SELECT 1 FROM executions FOR UPDATE").unwrap();
    thread::scope(|scope| {
        // It has its fences and waits for a row of the catalogue.
        let committing = scope.spawn(|| commit(&old, 1, &[continues(0, 0)]));
        wait_until_blocked(&looker, scratch.schema());
        let taking = scope.spawn(|| new.claim(0, "new"));
        wait_until(&looker, "the claim does not wait for the commit", &waiting(scratch.schema(), 2));
        assert!(!taking.is_finished());
        blocker.execute("ROLLBACK").unwrap();
        assert_eq!(committing.join().unwrap(), Ok(vec![PartOutcome::Durable]));
        assert_eq!(taking.join().unwrap(), Ok(2));
    });
    // A new epoch that is not yet committed.
    blocker.execute("BEGIN; UPDATE partitions SET epoch = 3").unwrap();
    thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&old, 2, &[continues(0, 1)]));
        wait_until_blocked(&looker, scratch.schema());
        blocker.execute("COMMIT").unwrap();
        assert_eq!(committing.join().unwrap(), Ok(vec![PartOutcome::Refused(Refusal::Fence)]));
    });
}

/// The condition that so many connections wait for locks.
fn waiting(schema: &str, count: u32) -> String {
    format!(
        "count(DISTINCT pid) >= {count} FROM pg_stat_activity JOIN pg_locks USING (pid) JOIN pg_class ON relation = \
         pg_class.oid WHERE wait_event_type = 'Lock' AND relnamespace = '{schema}'::regnamespace"
    )
}

#[test]
fn a_message_is_stored_in_the_current_partition() {
    let scratch = server().scratch();
    let (store, other) = (open(&scratch.address()), open(&scratch.address()));
    let (blocker, looker) = (scratch.beside().unwrap(), scratch.beside().unwrap());
    store.enqueue(&EnqueueRequest::of(&message("before"), 1)).unwrap();
    blocker.execute("BEGIN; SELECT 1 FROM inbox FOR UPDATE").unwrap();
    thread::scope(|scope| {
        let spreading = scope.spawn(|| store.repartition(2));
        wait_until_blocked(&looker, scratch.schema());
        let request = scope.spawn(|| other.enqueue(&EnqueueRequest::of(&message("meanwhile"), 1)));
        let both_wait = waiting(scratch.schema(), 2);
        let has_come = || request.is_finished() || looker.ask(&format!("SELECT {both_wait}")).unwrap() == "t";
        assert!((0..LOOKS_MAX).any(|_| has_come()), "the message is neither put nor waits");
        blocker.execute("COMMIT").unwrap();
        assert_eq!(spreading.join().unwrap(), Ok(()));
        // It waited, and was then rejected; or it came first, and was moved with the others.
        let posted = request.join().unwrap().unwrap();
        let partition = crate::partition_of(key(5), 2);
        assert_eq!(store.inbox(&[partition], 0, ReadLimit::of(9)).unwrap().len(), 1 + usize::from(posted));
        assert_eq!(store.inbox(&[0, 1], 0, ReadLimit::of(9)).unwrap().len(), 1 + usize::from(posted));
    });
}

#[test]
fn a_deadlock_is_retried() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let (blocker, looker) = (scratch.beside().unwrap(), scratch.beside().unwrap());
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0), opens(1)]).unwrap();
    // Only the store checks for deadlocks, so that it is the one that detects it.
    blocker.execute("SET deadlock_timeout = '1h'").unwrap();
    let lock = |number| {
        format!("SELECT 1 FROM heads WHERE execution = '\\x{}' FOR UPDATE", key(number).to_string().replace('-', ""))
    };
    blocker.execute(&format!("BEGIN; {}", lock(1))).unwrap();
    let before = deadlocks(&looker);
    thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&store, 1, &[continues(0, 0), continues(1, 0)]));
        wait_until_blocked(&looker, scratch.schema());
        blocker.execute(&lock(0)).unwrap();
        blocker.execute("COMMIT").unwrap();
        assert_eq!(committing.join().unwrap(), Ok(vec![PartOutcome::Durable, PartOutcome::Durable]));
    });
    wait_until(
        &looker,
        "there was no deadlock",
        &format!("deadlocks > {before} FROM pg_stat_database WHERE datname = current_database()"),
    );
}

fn deadlocks(beside: &crate::postgres::server::Beside<'_>) -> u64 {
    beside.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").unwrap().parse().unwrap()
}

#[test]
fn a_notification_is_received_by_another_store_and_many_are_merged() {
    let scratch = server().scratch();
    let (teller, listener) = (open(&scratch.address()), open(&scratch.address()));
    let (sender, received) = mpsc::channel();
    listener.repartition(3).unwrap();
    let number = std::sync::Arc::new(open(&scratch.address()));
    let asked = number.clone();
    listener.subscribe(Box::new(move |partitions| {
        // A subscriber may use a store.
        assert_eq!(asked.partitions(), Ok(3));
        let _ = sender.send(partitions.to_vec());
    }));
    // There is no signal for an active subscription, so the notification is repeated until it arrives.
    let receives = |notice: &[u32], expected: &[u32]| {
        (0..LOOKS_MAX).any(|_| {
            teller.notify(notice);
            teller.partitions().unwrap();
            received.try_iter().any(|partitions| partitions == expected)
        })
    };
    assert!(receives(&[2, 0], &[0, 2]), "nothing was received");
    assert!(receives(&Vec::from_iter(0..100_000), &[0, 1, 2]), "too many are all that there are");
    // The listening connection is reopened, and the missed notifications stand for all partitions.
    let beside = server().beside().unwrap();
    let listening = format!("query LIKE 'LISTEN mainspring_{}%'", scratch.schema());
    let cut = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {listening}");
    received.try_iter().for_each(drop);
    assert_eq!(beside.ask(&cut).unwrap(), "1", "{cut}");
    assert!(receives(&[1], &[1]), "it does not listen again");
}

#[test]
fn a_part_without_frames_needs_the_expected_head() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let blocker = scratch.beside().unwrap();
    store.claim(0, "node").unwrap();
    commit(&store, 1, &[opens(0)]).unwrap();
    blocker.execute("BEGIN; UPDATE heads SET sequence = 1").unwrap();
    thread::scope(|scope| {
        let turn = Turn { frames: 0, messages: vec![(5, "late")], ..continues(0, 0) };
        let committing = scope.spawn(|| commit(&store, 1, &[turn]));
        wait_until_blocked(&scratch.beside().unwrap(), scratch.schema());
        blocker.execute("COMMIT").unwrap();
        assert_eq!(committing.join().unwrap(), Ok(vec![PartOutcome::Refused(Refusal::Sequence)]));
    });
    assert_eq!(store.inbox(&[0], 0, ReadLimit::of(9)), Ok(vec![]));
}

#[test]
fn concurrent_acquisitions_do_not_take_the_same_partition() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let blocker = scratch.beside().unwrap();
    store.claim(0, "gone").unwrap();
    store.heartbeat(&node("second"), 1_000_000).unwrap();
    // Its first heartbeat and its acquisition become visible after the second node has started to acquire. A locked row
    // is skipped, and a row that is being inserted is awaited.
    for (name, taken, wanted, left, waits) in [
        ("first", "UPDATE partitions SET epoch = 2, holder = 'first'", 0, 2, false),
        ("third", "INSERT INTO partitions VALUES (1, 1, 'third')", 1, 3, true),
    ] {
        blocker
            .execute(&format!("BEGIN; INSERT INTO nodes VALUES ('{name}', '', '', 1, 9000000000000000, 9)"))
            .unwrap();
        blocker.execute(taken).unwrap();
        thread::scope(|scope| {
            let taking = scope.spawn(|| store.acquire("second", &[wanted, left]));
            if waits {
                wait_until_blocked(&scratch.beside().unwrap(), scratch.schema());
                blocker.execute("COMMIT").unwrap();
            }
            assert_eq!(taking.join().unwrap(), Ok(vec![Fence { partition: left, epoch: 1 }]), "{name}");
        });
        if !waits {
            blocker.execute("COMMIT").unwrap();
            assert_eq!(store.acquire("second", &[wanted]), Ok(vec![]), "{name}");
        }
    }
}

/// A node that was cut off between the two rounds of a commit leaves its partitions locked.
#[test]
fn locks_of_a_disconnected_node_delay_no_heartbeat() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let cut_off = scratch.beside().unwrap();
    let gone = store.claim(0, "gone").unwrap();
    store.claim(1, "gone").unwrap();
    store.heartbeat(&node("second"), 1_000_000).unwrap();
    cut_off.execute("BEGIN; SELECT 1 FROM partitions WHERE partition = 0 FOR SHARE").unwrap();
    assert_eq!(store.acquire("second", &[0, 1]), Ok(vec![Fence { partition: 1, epoch: 2 }]));
    let released = store.release("gone", &[Fence { partition: 0, epoch: gone }], &[]);
    assert!(released.unwrap_err().to_string().contains("55P03"), "a release waits for a bounded time");
    cut_off.execute("ROLLBACK").unwrap();
    assert_eq!(store.acquire("second", &[0]), Ok(vec![Fence { partition: 0, epoch: 2 }]));
}
