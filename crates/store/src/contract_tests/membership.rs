//! The cases of the conformance suite about nodes, handoffs of partitions and changes of their number.

use super::{
    Subject,
    journal::Case,
    op::{
        Op::{self, *},
        Turn, continues, opens,
    },
};

/// Longer than any test.
const LONG: u64 = 1_000_000;

pub(super) fn cases<S: Subject>() -> Vec<Case> {
    [who_takes::<S>(), leases(), ends_of_leases(), remote_attempts(), number_of_partitions(), metadata()]
        .into_iter()
        .flatten()
        .collect()
}

fn one(epoch: u64, turn: Turn) -> Op {
    Commit(epoch, vec![turn])
}

fn who_takes<S: Subject>() -> Vec<Case> {
    let one_of_two = match S::KEEPS_WHO_TAKES {
        true => "of 1: holds nothing; living: a(takes nothing) b",
        false => "of 1: holds nothing; living: a b",
    };
    vec![(
        "each heartbeat records whether its node accepts partitions",
        vec![
            (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
            (Acquire("a", vec![0]), "0@1"),
            (ReleasePartitions("a", vec![(0, 1)]), "done"),
            (
                HeartbeatWithoutPartitions("a", LONG),
                if S::KEEPS_WHO_TAKES {
                    "of 1: holds nothing; living: a(takes nothing)"
                } else {
                    "of 1: holds nothing; living: a"
                },
            ),
            (Heartbeat("b", LONG), one_of_two),
            (ClusterView, one_of_two),
            (Heartbeat("a", LONG), "of 1: holds nothing; living: a b"),
            (
                HeartbeatWithoutPartitions("c", LONG),
                if S::KEEPS_WHO_TAKES {
                    "of 1: holds nothing; living: a b c(takes nothing)"
                } else {
                    "of 1: holds nothing; living: a b c"
                },
            ),
            (HeartbeatWithoutPartitions("c", 0), "of 1: holds nothing; living: a b"),
            (HeartbeatWithoutPartitions("c", LONG), "lapsed"),
        ],
    )]
}

fn leases() -> Vec<Case> {
    vec![
        (
            "partitions of a live node are not acquired by others",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (Acquire("a", vec![3, 0, 3]), "0@1 3@1"),
                (Acquire("b", vec![0, 1]), "1@1"),
                (Acquire("a", vec![0, 1, 3]), ""),
                (Heartbeat("a", LONG), "of 1: holds 0@1 3@1; living: a b; 0:a 1:b 3:a"),
                (Heartbeat("b", LONG), "of 1: holds 1@1; living: a b; 0:a 1:b 3:a"),
                (ClusterView, "of 1: holds nothing; living: a b; 0:a 1:b 3:a"),
                (one(1, opens(0)), "durable"),
            ],
        ),
        (
            "a node without a heartbeat acquires nothing",
            vec![(Acquire("a", vec![0]), ""), (Heartbeat("b", LONG), "of 1: holds nothing; living: b")],
        ),
        (
            "a released partition can be acquired, with a new epoch",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (Acquire("a", vec![0, 1]), "0@1 1@1"),
                (ReleasePartitions("b", vec![(0, 1)]), "done"),
                (ReleasePartitions("a", vec![(0, 2)]), "done"),
                (Acquire("b", vec![0]), ""),
                (ReleasePartitions("a", vec![(0, 1), (7, 1)]), "done"),
                (Heartbeat("a", LONG), "of 1: holds 1@1; living: a b; 1:a"),
                // No other node has acquired it yet: a commit that was under way may still arrive.
                (one(1, opens(0)), "durable"),
                (Acquire("b", vec![0]), "0@2"),
                (one(1, continues(0, 0)), "fence"),
                (one(2, continues(0, 0)), "durable"),
            ],
        ),
        (
            "a claim is unconditional",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Acquire("a", vec![0]), "0@1"),
                (Claim(0), "2"),
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Acquire("a", vec![0]), "0@3"),
            ],
        ),
    ]
}

fn ends_of_leases() -> Vec<Case> {
    vec![
        (
            "partitions of an expired node are free, and its name is invalid",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Acquire("a", vec![0, 1]), "0@1 1@1"),
                (Heartbeat("a", 0), "of 1: holds 0@1 1@1; living: "),
                (Heartbeat("a", LONG), "lapsed"),
                (Acquire("a", vec![5]), ""),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: b"),
                (Acquire("b", vec![1]), "1@2"),
                (one(1, Turn { partition: 1, ..opens(1) }), "fence"),
                (one(2, Turn { partition: 1, ..opens(1) }), "durable"),
                // Its lease has expired, but no other node has acquired this partition: only the epoch counts.
                (one(1, opens(0)), "durable"),
            ],
        ),
        (
            "a node that leaves owns nothing",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (Acquire("a", vec![0]), "0@1"),
                (Leave("a"), "done"),
                (Leave("unknown"), "done"),
                (Acquire("b", vec![0]), "0@2"),
                (Heartbeat("a", LONG), "lapsed"),
                (Heartbeat("b", LONG), "of 1: holds 0@2; living: b; 0:b"),
            ],
        ),
    ]
}

fn remote_attempts() -> Vec<Case> {
    vec![
        (
            "an attempt that runs at a former owner stays recorded there until it ends",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (Acquire("a", vec![0, 1]), "0@1 1@1"),
                (ReleaseWithRunning("a", vec![(0, 1)], vec![(0, 1), (2, 1), (0, 3)]), "done"),
                (Remote(0), "0#1 at a 0#3 at a"),
                (Remote(1), ""),
                (Acquire("b", vec![0]), "0@2"),
                (EndRemote("b", vec![(0, 1)]), "done"),
                (Remote(0), "0#1 at a 0#3 at a"),
                (EndRemote("a", vec![(0, 1), (1, 1)]), "done"),
                (EndRemote("a", vec![]), "done"),
                (Remote(0), "0#3 at a"),
                (Remote(2), "2#1 at a"),
                // It is reacquired, and released again while the attempt still runs.
                (ReleaseWithRunning("b", vec![(0, 2)], vec![(0, 3)]), "done"),
                (Remote(0), "0#3 at b"),
                (ReleaseWithRunning("b", vec![], vec![(0, 3)]), "done"),
                (Remote(0), "0#3 at b"),
            ],
        ),
        (
            "the node of an attempt gets the stop request",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (StopRemote(0, 1), "done"),
                (ReleaseWithRunning("a", vec![], vec![(0, 1), (1, 1)]), "done"),
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (StopRemote(0, 1), "done"),
                (StopRemote(0, 2), "done"),
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a; to stop: 0#1"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (ClusterView, "of 1: holds nothing; living: a b"),
                // Repeating it does not withdraw the request to stop.
                (ReleaseWithRunning("a", vec![], vec![(0, 1)]), "done"),
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a b; to stop: 0#1"),
                (EndRemote("a", vec![(0, 1)]), "done"),
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a b"),
            ],
        ),
        (
            "an attempt of a crashed node is not recorded as running",
            vec![
                (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
                (Heartbeat("b", LONG), "of 1: holds nothing; living: a b"),
                (ReleaseWithRunning("a", vec![], vec![(0, 1)]), "done"),
                (ReleaseWithRunning("b", vec![], vec![(1, 1)]), "done"),
                (ReleaseWithRunning("unknown", vec![], vec![(2, 1)]), "done"),
                (Remote(2), ""),
                (Heartbeat("a", 0), "of 1: holds nothing; living: b"),
                (Remote(0), ""),
                (Leave("b"), "done"),
                (Remote(1), ""),
                (Heartbeat("c", LONG), "of 1: holds nothing; living: c"),
                (Remote(1), ""),
            ],
        ),
    ]
}

fn number_of_partitions() -> Vec<Case> {
    vec![(
        "repartitioning moves all executions and releases all partitions",
        vec![
            (Heartbeat("a", LONG), "of 1: holds nothing; living: a"),
            (Acquire("a", vec![0, 1]), "0@1 1@1"),
            (Commit(1, vec![opens(0), Turn { messages: vec![(3, "x")], ..opens(1) }]), "durable durable"),
            (Enqueue(2, "a"), "enqueued"),
            (Enqueue(5, "b"), "enqueued"),
            (Leave("a"), "done"),
            (Repartition(2), "done"),
            (Partitions, "2"),
            (Enqueue(4, "late"), "not enqueued"),
            (EnqueueAmong(2, 4, "c"), "enqueued"),
            (Inbox(0, 0, 9), "2:a 4:c"),
            (Inbox(1, 0, 9), "3:x 5:b"),
            (InboxOf(vec![1, 0], 9, 99), "3:x 2:a 5:b 4:c"),
            (InboxOf(vec![0, 1], 3, 99), "3:x 2:a 5:b"),
            (InboxOf(vec![], 9, 99), ""),
            // Each has eight bytes: the one that reaches the bound is the last, and the first is always returned.
            (InboxOf(vec![0, 1], 9, 1), "3:x"),
            (InboxOf(vec![1, 0], 9, 8), "3:x"),
            (InboxOf(vec![0, 1], 9, 9), "3:x 2:a"),
            (InboxOf(vec![0, 1], 9, 16), "3:x 2:a"),
            (InboxOf(vec![0, 1], 9, 17), "3:x 2:a 5:b"),
            (InboxOf(vec![0, 1], 9, 1000), "3:x 2:a 5:b 4:c"),
            (DueOf(vec![1, 0], 9), "0@0 1@0"),
            (DueOf(vec![1, 0], 1), "0@0"),
            (Head(0), "0 in 0 wake 0"),
            (Head(1), "0 in 1 wake 0"),
            (Row(1), "1::running:"),
            (one(1, continues(0, 0)), "fence"),
            (Heartbeat("b", LONG), "of 2: holds nothing; living: b"),
            (Acquire("b", vec![0, 1]), "0@3 1@3"),
            (one(3, continues(1, 0)), "partition"),
            (Commit(3, vec![continues(0, 0), Turn { partition: 1, ..continues(1, 0) }]), "durable durable"),
            (Repartition(1), "done"),
            (Inbox(0, 0, 9), "3:x 2:a 5:b 4:c"),
            (Head(1), "1 in 0 wake 0"),
            // The living node assumes for a while that it still owns its partitions.
            (Acquire("b", vec![0]), ""),
            (Heartbeat("c", LONG), "of 1: holds nothing; living: b c"),
            (Acquire("c", vec![0]), ""),
            (Claim(0), "5"),
        ],
    )]
}

fn metadata() -> Vec<Case> {
    vec![(
        "the first value of a name stays",
        vec![
            (Metadata("key"), "none"),
            (PutMetadata("key", "one"), "one"),
            (Metadata("key"), "one"),
            (PutMetadata("key", "two"), "one"),
            (PutMetadata("other", "two"), "two"),
            (PutMetadata("key", "three"), "one"),
        ],
    )]
}
