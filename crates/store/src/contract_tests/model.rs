//! Random operations on every store at once: all must give the answers of the reference, and the same state after each
//! step.

use super::{
    Memory, Sqlite, Subject,
    catalogue::{CatalogueOp, PLACES},
    op::{EXECUTIONS, Flaw, Op, Text, Turn, key, look, run},
};
use crate::{BLOB_BYTES_MIN, Store, memory::MemoryStore, partition_of};

const SEEDS: u64 = 12;
const STEPS: usize = 120;

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

const MESSAGES: [&str; 3] = ["a", "b", "c"];

const STEPS_OF_GATES: [Text; 2] = ["s", "s\0"];

const ORGANIZATIONS: [Option<Text>; 3] = [None, Some("o"), Some("p")];

const NODES: [&str; 2] = ["n", "o"];

/// Leases last for the whole test, or expire at once.
const LEASES_MS: [u64; 3] = [1_000_000, 1_000_000, 0];

fn op(random: &mut Random, reference: &dyn Store, epoch: &mut u64) -> Op {
    let execution = random.below(usize::from(EXECUTIONS)) as u8;
    match random.below(27) {
        0 => {
            *epoch += 1;
            Op::Repartition(random.below(2) as u32 + 1)
        }
        23..26 => Op::Change(catalogue_op(random, reference)),
        26 if random.one_in(2) => {
            let after = (execution, random.of(&STEPS_OF_GATES), 1);
            Op::Gates(random.of(&ORGANIZATIONS), random.of(&[None, Some(after)]), random.below(5))
        }
        26 => {
            let name = random.of(&[None, Some(("slug", "x")), Some(("by", "x"))]);
            let after = random.of(&[None, Some("a"), Some("b"), Some("")]);
            Op::Items(("w o", name, after, random.one_in(2), random.below(4)))
        }
        20 => Op::Heartbeat(random.of(&NODES), random.of(&LEASES_MS)),
        // Partitions without writes, since all others are expected to have the same epoch.
        21 => Op::Acquire(random.of(&NODES), random.some(3, |random| random.of(&[2, 3, 4]))),
        22 => match random.below(6) {
            0 => Op::ReleasePartitions(random.of(&NODES), vec![(random.of(&[2, 3, 4]), random.below(4) as u64)]),
            3 => {
                let fences = vec![(random.of(&[2, 3, 4]), random.below(4) as u64)];
                Op::ReleaseWithRunning(random.of(&NODES), fences, random.some(3, |random| (random.below(3) as u8, 1)))
            }
            4 => Op::StopRemote(random.below(3) as u8, 1),
            5 => Op::EndRemote(random.of(&NODES), vec![(random.below(3) as u8, 1)]),
            1 if random.one_in(4) => Op::Leave(random.of(&NODES)),
            _ => Op::PutMetadata(random.of(&["p", "q"]), random.of(&["1", "2"])),
        },
        1..12 => {
            let first = usize::from(execution);
            let count = random.below(3) + 1;
            let executions = (first..first + count).map(|number| (number % usize::from(EXECUTIONS)) as u8);
            let turns = executions.map(|execution| turn(random, reference, execution)).collect();
            Op::Commit(if random.one_in(30) { *epoch - 1 } else { *epoch }, turns)
        }
        12 | 13 => enqueue(random, reference, execution),
        14 if random.one_in(2) => Op::SetWakeAt(execution, random.below(4) as u64, random.of(&[None, Some(20)])),
        14 => Op::Quarantine(execution, random.of(&["why", "why not"])),
        15 => of_quarantine(random, execution),
        16 => Op::Erase(execution, random.below(4) as u64, random.below(3)),
        17 if random.one_in(2) => Op::Due(0, random.below(60) as u64, random.below(4)),
        17 => {
            let after = (execution, random.of(&[0, 20, 50]));
            Op::DueAfter(0, random.below(60) as u64, after, random.below(4))
        }
        18 if random.one_in(2) => Op::InboxOf(vec![1, 0], random.below(4), random.below(40) + 1),
        18 if random.one_in(2) => Op::ReceiptProofs(execution, random.below(4) as u64, random.below(4)),
        18 => Op::Frames(execution, random.below(4) as u64, random.below(4)),
        _ => {
            let statuses = random.some(2, |random| random.of(&["running", "completed", "pending"]));
            if random.one_in(4) {
                return Op::UnfinishedRows(random.of(&["o", "p"]), statuses);
            }
            let (workflow, before) = (random.of(&[None, Some("flow")]), random.of(&[None, Some(execution)]));
            let words =
                [workflow, random.of(&ORGANIZATIONS), random.of(&[None, Some("f")]), random.of(&[None, Some("u")])];
            match random.one_in(3) {
                true => Op::RowByStart([words[1], words[2], words[0]], random.of(&["k", "l"])),
                false => Op::RowsOf(statuses, words, before, random.below(5)),
            }
        }
    }
}

fn of_quarantine(random: &mut Random, execution: u8) -> Op {
    match random.below(8) {
        0 => Op::ForceEnd(execution),
        3 | 4 => {
            let parent = random.below(usize::from(EXECUTIONS)) as u8;
            Op::ReleaseQuarantinedChild(execution, (parent, random.below(3) as u64), random.of(&["a", "b"]))
        }
        1 => Op::Quarantined(random.of(&[None, Some("o")])),
        2 => Op::Notes(execution),
        _ => Op::ReleaseQuarantined(execution),
    }
}

fn enqueue(random: &mut Random, reference: &dyn Store, execution: u8) -> Op {
    let spread = reference.partitions().unwrap();
    let believed = if random.one_in(6) { random.of(&[1, 2]) } else { spread };
    let audited = random.some(1, |random| (random.of(&["o", "p"]), "enqueued"));
    Op::EnqueueAudited(believed, execution, random.of(&MESSAGES), audited)
}

/// Makes a turn, usually one that continues the current head.
fn turn(random: &mut Random, reference: &dyn Store, execution: u8) -> Turn {
    let sound = reference.head(key(execution)).unwrap().map(|row| row.head.sequence);
    let after = if random.one_in(8) { random.of(&[None, Some(0), Some(3)]) } else { sound };
    let partitions = reference.partitions().unwrap();
    let gate = |random: &mut Random| (random.of(&STEPS_OF_GATES), random.below(2) as u32 + 1);
    Turn {
        execution,
        partition: if random.one_in(20) { random.of(&[1, 9]) } else { partition_of(key(execution), partitions) },
        partitions,
        after,
        frames: random.below(3) as u64,
        flaw: if random.one_in(10) { random.of(&[Some(Flaw::OtherHash), Some(Flaw::Gap)]) } else { None },
        wake_at: random.of(&[None, Some(0), Some(0), Some(0), Some(20), Some(50)]),
        ends: random.one_in(8),
        is_pending: random.one_in(3),
        id: random.of(&[None, None, None, Some("x"), Some("y")]),
        workflow: random.of(&[None, Some("flow"), Some("other")]),
        organization: random.of(&ORGANIZATIONS),
        workflow_id: random.of(&[None, Some("f"), Some("flow")]),
        initiator: random.of(&[None, Some("u")]),
        idempotency_key: random.of(&[None, None, Some("k"), Some("l")]),
        values: random
            .some(3, |random| random.of(&[None, Some(0), Some(9), Some(BLOB_BYTES_MIN), Some(BLOB_BYTES_MIN + 1)])),
        plan: random.of(&[None, Some(1), Some(2)]),
        consumed: random.some(2, |random| random.of(&MESSAGES)),
        messages: random.some(2, |random| (random.below(usize::from(EXECUTIONS)) as u8, random.of(&MESSAGES))),
        late: random.some(1, |random| random.below(9) as u64),
        signed_by: random.of(&[None, Some(1), Some(2), Some(9)]),
        gates_closed: random.some(1, gate),
        gates_opened: random.some(2, gate),
        audit: random.some(1, |random| (random.of(&["o", "p"]), "continued")),
    }
}

/// Makes a change, usually one with the current versions.
fn catalogue_op(random: &mut Random, reference: &dyn Store) -> CatalogueOp {
    let version = |random: &mut Random, at: Text| {
        let (kind, rest) = at.split_once(' ').unwrap();
        let (organization, id) = rest.split_once(' ').unwrap();
        let found = reference.catalogue().resource(kind, organization, id).unwrap();
        if random.one_in(8) { random.of(&[0, 1, 2]) } else { found.map_or(0, |item| item.version) }
    };
    let name = |random: &mut Random| (random.of(&["slug", "by"]), random.of(&["x", "y", "z\0"]), random.one_in(2));
    CatalogueOp {
        removals: random.some(1, |random| {
            let at = random.of(&PLACES);
            (at, Some(version(random, at)).filter(|_| !random.one_in(3)))
        }),
        puts: random.some(2, |random| {
            let at = random.of(&PLACES);
            (at, version(random, at), random.of(&["1", "2"]), random.some(2, name))
        }),
        audit: random.some(2, |random| (random.of(&["o", "p"]), random.of(&["did", "d\0"]))),
    }
}

fn check<S: Subject>(seeds: u64, make: impl Fn() -> S) {
    let mut durable = 0;
    for seed in 0..seeds {
        let (reference, mut subject) = (Memory(MemoryStore::new()), make());
        let (mut random, mut epoch, mut done) = (Random(seed), 1, vec![Op::Claim(0)]);
        for store in [reference.store(), subject.store()] {
            run(store, &done[0]);
            run(store, &Op::Claim(1));
        }
        for _ in 0..STEPS {
            done.push(op(&mut random, reference.store(), &mut epoch));
            let last = done.last().unwrap();
            let expected = run(reference.store(), last);
            let found = run(subject.store(), last);
            assert!(expected == found, "seed {seed}, after {done:?}\nreference: {expected}\nfound:     {found}");
            durable += expected.matches("durable").count();
            if random.one_in(10) {
                subject.reopen();
            }
            let (expected, found) = (look(reference.store()), look(subject.store()));
            assert!(expected == found, "seed {seed}, after {done:?}\nreference:\n{expected}\nfound:\n{found}");
        }
    }
    assert!(durable as u64 > 40 * seeds, "the verbs reach so little that they prove nothing: {durable}");
}

#[test]
fn random_operations_equal_the_reference() {
    check(SEEDS, Sqlite::new);
}

/// Each step takes some forty round trips, most of them to compare the whole state.
#[cfg(feature = "postgres")]
const SEEDS_ON_POSTGRES: u64 = 3;

#[cfg(feature = "postgres")]
#[test]
fn random_operations_equal_the_reference_on_postgres() {
    check(SEEDS_ON_POSTGRES, super::postgres::Postgres::new);
}
