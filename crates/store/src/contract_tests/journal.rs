//! The cases of the conformance suite: lists of operations with their answers. Each starts with an empty store.

use super::{
    Subject,
    op::{Flaw, Op, Op::*, Text, Turn, continues, opens},
};
use crate::BLOB_BYTES_MIN;

fn one(turn: Turn) -> Op {
    Commit(1, vec![turn])
}

fn erased() -> Vec<Option<usize>> {
    vec![None]
}

/// The subject of the case, and operations with the formatted answers.
pub(super) type Case = (&'static str, Vec<(Op, &'static str)>);

/// Lists all cases, for a store with its declared differences.
pub(super) fn cases<S: Subject>() -> Vec<Case> {
    let executions = [
        journals(),
        ends(),
        refusals(),
        looking_again(),
        ends_by_force(),
        looking_anew(),
        releases(),
        messages::<S>(),
        payloads(),
        catalogue(),
        origins(),
        other_definitions(),
        rollouts(),
    ];
    let (gates, pending, enough) = (gates(), pending_ones(), enough());
    executions
        .into_iter()
        .chain([gates, pending, enough, super::membership::cases::<S>(), super::catalogue::cases()])
        .flatten()
        .collect()
}

fn journals() -> Vec<Case> {
    vec![
        (
            "a claim gives a larger epoch, for each partition by itself",
            vec![(Claim(0), "1"), (Claim(0), "2"), (Claim(1), "1"), (Claim(u32::MAX), "1"), (Claim(0), "3")],
        ),
        (
            "an unknown execution is not found",
            vec![
                (Head(0), "none"),
                (Frames(0, 0, 9), ""),
                (LateReceipt(0), ""),
                (Row(0), ""),
                (Plan(1), "None"),
                (Quarantine(0, "no"), "done"),
                (ReleaseQuarantined(0), "not quarantined"),
                (Head(0), "none"),
            ],
        ),
        (
            "frames are read back in order, from anywhere, in pages",
            vec![
                (Claim(0), "1"),
                (one(Turn { frames: 2, ..opens(0) }), "durable"),
                (one(Turn { frames: 3, ..continues(0, 1) }), "durable"),
                (Head(0), "4 in 0 wake 0"),
                (Frames(0, 0, 9), "0[] 1[] 2[] 3[] 4[]"),
                (Frames(0, 1, 2), "1[] 2[]"),
                (Frames(0, 5, 9), ""),
                (Frames(0, u64::MAX, usize::MAX), ""),
                (Frames(0, 0, 0), ""),
            ],
        ),
        (
            "receipts are written with their proofs, and keys once",
            vec![
                (Claim(0), "1"),
                (one(Turn { frames: 3, signed_by: Some(2), ..opens(0) }), "durable"),
                (one(Turn { frames: 3, ..continues(0, 2) }), "durable"),
                (one(Turn { frames: 4, signed_by: Some(1), late: vec![7, 5], ..continues(0, 5) }), "durable"),
                (one(Turn { frames: 1, signed_by: Some(3), ..opens(0) }), "sequence"),
                (ReceiptProofs(0, 0, 9), "0 2 6 8"),
                (ReceiptProofs(0, 1, 2), "2 6"),
                (ReceiptProofs(0, 9, 9), ""),
                (ReceiptProofs(0, u64::MAX, usize::MAX), ""),
                (ReceiptProofs(1, 0, 9), ""),
                (LateReceipt(0), "7 signed 5 signed"),
                (one(Turn { frames: 0, signed_by: Some(4), late: vec![6], ..continues(0, 9) }), "durable"),
                (one(Turn { frames: 0, late: vec![8], ..continues(0, 9) }), "durable"),
                (LateReceipt(0), "7 signed 5 signed 6 signed 8"),
                (ExecutorKeys(None, 9), "1 2 4"),
                (ExecutorKeys(None, 1), "1"),
                (ExecutorKeys(Some(1), 9), "2 4"),
                (ExecutorKeys(Some(3), 9), "4"),
                (Erase(0, 99, 0), "4"),
                (LateReceipt(0), "7 erased 5 erased 6 erased 8 erased"),
                (ReceiptProofs(0, 0, 9), "0 2 6 8"),
            ],
        ),
        (
            "a batch commits many executions, in the order of its parts",
            vec![
                (Claim(0), "1"),
                (Commit(1, vec![]), ""),
                (Commit(1, vec![opens(2), opens(1), continues(0, 3), opens(3)]), "durable durable sequence durable"),
                (Rows(vec![], None, None, 9), "3 2 1"),
            ],
        ),
    ]
}

fn ends() -> Vec<Case> {
    vec![
        (
            "an ended journal accepts only messages and late receipts",
            vec![
                (Claim(0), "1"),
                (one(opens(0)), "durable"),
                (Enqueue(0, "a"), "enqueued"),
                (one(Turn { ends: true, ..continues(0, 0) }), "durable"),
                (Head(0), "1 in 0 ended"),
                (Row(0), "0::completed:with_failures"),
                (one(continues(0, 1)), "ended"),
                (one(continues(0, 0)), "ended"),
                (one(opens(0)), "sequence"),
                (one(Turn { frames: 0, consumed: vec!["a"], late: vec![7, 5], ..continues(0, 1) }), "durable"),
                (one(Turn { frames: 0, late: vec![6], ..continues(0, 1) }), "durable"),
                (LateReceipt(0), "7 5 6"),
                (Erase(0, 9, 0), "3"),
                (Erase(0, 9, 0), "false"),
                (LateReceipt(0), "7 erased 5 erased 6 erased"),
                (Inbox(0, 0, 9), ""),
                (Head(0), "1 in 0 ended"),
                (Row(0), "0::completed:with_failures"),
            ],
        ),
        (
            "an execution may end with its first frame",
            vec![
                (Claim(0), "1"),
                (one(Turn { ends: true, ..opens(0) }), "durable"),
                (Head(0), "0 in 0 ended"),
                (one(continues(0, 0)), "ended"),
            ],
        ),
    ]
}

fn refusals() -> Vec<Case> {
    let with_all = |turn: Turn| Turn {
        messages: vec![(3, "x")],
        consumed: vec!["a"],
        late: vec![1],
        plan: Some(2),
        values: vec![Some(BLOB_BYTES_MIN + 1)],
        audit: vec![("o", "never")],
        gates_closed: vec![("s", 1)],
        gates_opened: vec![("s", 9)],
        ..turn
    };
    // With the answers to it, and to the valid part beside it.
    let wrong = [
        ("fence durable", Turn { partition: 9, ..opens(1) }),
        ("partition durable", Turn { partition: 1, ..continues(0, 1) }),
        ("partition durable", Turn { partition: 1, ..opens(0) }),
        ("partition durable", Turn { partition: 1, frames: 0, ..continues(0, 1) }),
        ("sequence durable", opens(0)),
        ("sequence durable", continues(0, 0)),
        ("sequence durable", continues(0, 2)),
        ("sequence durable", Turn { flaw: Some(Flaw::OtherHash), ..continues(0, 1) }),
        ("sequence durable", Turn { flaw: Some(Flaw::Gap), ..continues(0, 1) }),
        ("sequence durable", Turn { flaw: Some(Flaw::Gap), ..opens(1) }),
        ("sequence durable", continues(1, 0)),
        ("sequence durable", Turn { frames: 0, ..continues(0, 0) }),
        ("sequence durable", Turn { frames: 0, ..opens(0) }),
        ("id-of-0 durable", Turn { id: Some("name"), ..opens(1) }),
    ];
    let mut steps = vec![
        (Claim(0), "1"),
        (Claim(1), "1"),
        (Enqueue(0, "a"), "enqueued"),
        (one(Turn { frames: 2, id: Some("name"), gates_opened: vec![("s", 1)], ..opens(0) }), "durable"),
    ];
    for (pair, turn) in wrong {
        let alone = pair.split_once(' ').expect("two answers").0;
        // The valid part consumes a message that does not exist, so that it can be written repeatedly.
        let sound = Turn { frames: 0, consumed: vec!["none"], ..continues(0, 1) };
        let whole = with_all(turn);
        steps.extend([(one(whole.clone()), alone), (Commit(1, vec![whole, sound]), pair)]);
    }
    steps.extend([
        (Head(0), "1 in 0 wake 0"),
        (Head(1), "none"),
        (Frames(0, 0, 9), "0[] 1[]"),
        (Frames(1, 0, 9), ""),
        (Inbox(0, 0, 9), "0:a"),
        (LateReceipt(0), ""),
        (LateReceipt(1), ""),
        (Plan(2), "None"),
        (Audit("o", 0, 9), ""),
        (Gates(None, None, 9), "0:s#1"),
        (Rows(vec![], None, None, 9), "0"),
    ]);
    let old_epoch = vec![
        (one(opens(0)), "fence"),
        (Claim(0), "1"),
        (one(opens(0)), "durable"),
        (Claim(0), "2"),
        (one(continues(0, 0)), "fence"),
        (Commit(3, vec![continues(0, 0)]), "fence"),
        (Commit(2, vec![continues(0, 0)]), "durable"),
    ];
    vec![("a refused part leaves no trace", steps), ("only the newest epoch writes", old_epoch)]
}

fn looking_anew() -> Vec<Case> {
    vec![(
        "the wake-up time is replaced if the head is the same and has not ended",
        vec![
            (Claim(0), "1"),
            (Commit(1, vec![opens(0), opens(1)]), "durable durable"),
            (SetWakeAt(0, 0, None), "true"),
            (Due(0, u64::MAX, 9), "1@0"),
            (SetWakeAt(0, 0, Some(7)), "true"),
            (SetWakeAt(0, 0, Some(7)), "true"),
            (Due(0, u64::MAX, 9), "1@0 0@7"),
            (SetWakeAt(0, 1, Some(9)), "false"),
            (SetWakeAt(5, 0, Some(9)), "false"),
            (one(Turn { wake_at: Some(3), ..continues(0, 0) }), "durable"),
            (SetWakeAt(0, 0, Some(9)), "false"),
            (one(Turn { ends: true, ..continues(1, 0) }), "durable"),
            (SetWakeAt(1, 1, Some(9)), "false"),
            (Due(0, u64::MAX, 9), "0@3"),
        ],
    )]
}

fn releases() -> Vec<Case> {
    vec![(
        "a release deletes the notice from the inbox of the parent, unless the parent has continued",
        vec![
            (Claim(0), "1"),
            (Commit(1, vec![opens(0), opens(1)]), "durable durable"),
            (ReleaseQuarantinedChild(1, (0, 0), "notice"), "not quarantined"),
            (Quarantine(1, "bad"), "done"),
            (Enqueue(0, "notice"), "enqueued"),
            (Enqueue(0, "other"), "enqueued"),
            (Enqueue(1, "notice"), "enqueued"),
            (ReleaseQuarantinedChild(1, (0, 1), "notice"), "the parent moved"),
            (ReleaseQuarantinedChild(1, (2, 0), "notice"), "the parent moved"),
            (Inbox(0, 0, 9), "0:notice 0:other 1:notice"),
            (Head(1), "0 in 0 wake 0 quarantined: bad"),
            (ReleaseQuarantinedChild(1, (0, 0), "notice"), "released"),
            (Inbox(0, 0, 9), "0:other 1:notice"),
            (Head(1), "0 in 0 wake 0"),
            (Quarantine(1, "again"), "done"),
            (ReleaseQuarantinedChild(1, (0, 0), "notice"), "released"),
        ],
    )]
}

fn looking_again() -> Vec<Case> {
    vec![
        (
            "due executions are ordered by time and key, in pages",
            vec![
                (Claim(0), "1"),
                (Claim(1), "1"),
                (
                    Commit(1, vec![Turn { wake_at: Some(50), ..opens(0) }, Turn { wake_at: Some(20), ..opens(1) }]),
                    "durable durable",
                ),
                (Commit(1, vec![opens(2), Turn { wake_at: None, ..opens(3) }]), "durable durable"),
                (
                    Commit(1, vec![Turn { wake_at: Some(20), ..opens(4) }, Turn { partition: 1, ..opens(5) }]),
                    "durable durable",
                ),
                (Due(0, 0, 9), "2@0"),
                (Due(0, 19, 9), "2@0"),
                (Due(0, 20, 9), "2@0 1@20 4@20"),
                (Due(0, u64::MAX, 9), "2@0 1@20 4@20 0@50"),
                (Due(0, u64::MAX, 2), "2@0 1@20"),
                (Due(1, 0, 9), "5@0"),
                // The next page starts after the given row, for any rows that were skipped.
                (DueAfter(0, u64::MAX, (1, 20), 2), "4@20 0@50"),
                (DueAfter(0, u64::MAX, (2, 0), 2), "1@20 4@20"),
                (DueAfter(0, u64::MAX, (0, 0), 1), "2@0"),
                (DueAfter(0, 20, (1, 20), 9), "4@20"),
                (DueAfter(0, u64::MAX, (0, 50), 9), ""),
                (DueAfter(0, u64::MAX, (3, 20), 9), "4@20 0@50"),
                (DueAfter(1, 0, (2, 0), 9), "5@0"),
                (one(Turn { wake_at: None, ..continues(1, 0) }), "durable"),
                (one(Turn { wake_at: Some(10), ..continues(3, 0) }), "durable"),
                (one(Turn { ends: true, ..continues(2, 0) }), "durable"),
                (one(Turn { wake_at: Some(99), frames: 0, ..continues(4, 0) }), "durable"),
                (Due(0, u64::MAX, 9), "3@10 4@20 0@50"),
            ],
        ),
        (
            "a quarantined execution is left out until it is released",
            vec![
                (Claim(0), "1"),
                (Commit(1, vec![opens(0), opens(1)]), "durable durable"),
                (Quarantine(0, "bad frame"), "done"),
                (Due(0, 0, 9), "1@0"),
                (Head(0), "0 in 0 wake 0 quarantined: bad frame"),
                (Frames(0, 0, 9), "0[]"),
                (one(Turn { wake_at: Some(3), ..continues(0, 0) }), "durable"),
                (Head(0), "1 in 0 wake 3 quarantined: bad frame"),
                (Due(0, 9, 9), "1@0"),
                (ReleaseQuarantined(0), "released"),
                (Due(0, 9, 9), "1@0 0@3"),
                (Head(0), "1 in 0 wake 3"),
            ],
        ),
    ]
}

fn ends_by_force() -> Vec<Case> {
    vec![(
        "a quarantined execution is ended by force, once, and nothing follows",
        vec![
            (Claim(0), "1"),
            (
                Commit(1, vec![Turn { organization: Some("o"), gates_opened: vec![("s", 1)], ..opens(0) }, opens(1)]),
                "durable durable",
            ),
            (Enqueue(0, "a"), "enqueued"),
            (Enqueue(1, "b"), "enqueued"),
            (ForceEnd(0), "false"),
            (Quarantined(None), ""),
            (Quarantine(0, "bad"), "done"),
            (Quarantine(1, "worse"), "done"),
            (Quarantined(None), "0 (bad) 1 (worse)"),
            (Quarantined(Some("o")), "0 (bad)"),
            (Quarantined(Some("p")), ""),
            (ForceEnd(0), "true"),
            (ForceEnd(0), "false"),
            (ForceEnd(3), "false"),
            (Notes(0), "ended"),
            (Head(0), "0 in 0 ended quarantined: bad"),
            (Gates(None, None, 9), ""),
            (Inbox(0, 0, 9), "1:b"),
            (Quarantined(None), "1 (worse)"),
            (ReleaseQuarantined(0), "not quarantined"),
            (Head(0), "0 in 0 ended quarantined: bad"),
            (one(continues(0, 0)), "ended"),
            (Frames(0, 0, 9), "0[]"),
            (Erase(0, 0, 0), "false"),
        ],
    )]
}

fn messages<S: Subject>() -> Vec<Case> {
    let put_again = if S::REMEMBERS_CONSUMED_MESSAGES { "1:b" } else { "1:b 0:a" };
    vec![
        (
            "messages wait in order of arrival, each once",
            vec![
                (Enqueue(1, "a"), "enqueued"),
                (Enqueue(0, "a"), "enqueued"),
                (Enqueue(1, "a"), "enqueued"),
                (Enqueue(0, "b"), "enqueued"),
                (Plan(1), "kept"),
                (Inbox(0, 0, 9), "1:a 0:a 0:b"),
                (Inbox(0, 1, 9), "0:a 0:b"),
                (Inbox(0, 1, 1), "0:a"),
                (Inbox(0, 3, 9), ""),
                (Inbox(1, 0, 9), ""),
            ],
        ),
        (
            "a message leaves in its receiver's commit, and others arrive in it",
            vec![
                (Claim(0), "1"),
                (Enqueue(0, "a"), "enqueued"),
                (one(Turn { consumed: vec!["a", "z"], messages: vec![(1, "b"), (1, "b")], ..opens(0) }), "durable"),
                (Inbox(0, 0, 9), "1:b"),
                (Enqueue(0, "a"), "enqueued"),
                (Inbox(0, 0, 9), put_again),
            ],
        ),
        (
            "a message to itself may have the id of the consumed one",
            vec![
                (Claim(0), "1"),
                (Enqueue(0, "a"), "enqueued"),
                (Enqueue(1, "b"), "enqueued"),
                (one(Turn { consumed: vec!["a"], messages: vec![(0, "a")], ..opens(0) }), "durable"),
                (Inbox(0, 0, 9), if S::REMEMBERS_CONSUMED_MESSAGES { "1:b" } else { "1:b 0:a" }),
            ],
        ),
        (
            "plans are stored with messages and parts, repeatedly",
            vec![
                (Claim(0), "1"),
                (one(Turn { plan: Some(2), ..opens(0) }), "durable"),
                (one(Turn { plan: Some(2), ..opens(1) }), "durable"),
                (Plan(2), "kept"),
                (Plan(1), "None"),
            ],
        ),
    ]
}

fn payloads() -> Vec<Case> {
    let (small, large) = (Some(BLOB_BYTES_MIN), Some(BLOB_BYTES_MIN + 1));
    vec![
        (
            "values of every size are read back, and erased one by one",
            vec![
                (Claim(0), "1"),
                (one(Turn { values: vec![Some(0), small, large, Some(3), None], ..opens(0) }), "durable"),
                (Frames(0, 0, 9), "0[0 32768 32769 3 erased]"),
                (Erase(0, 0, 3), "true"),
                (Erase(0, 0, 3), "false"),
                (Erase(0, 0, 4), "false"),
                (Erase(0, 0, 5), "false"),
                (Erase(0, 1, 0), "false"),
                (Erase(1, 0, 0), "false"),
                (Frames(0, 0, 9), "0[0 32768 32769 erased erased]"),
                (Erase(0, 0, 2), "true"),
                (Erase(0, 0, 0), "true"),
                (Erase(0, 0, 1), "true"),
                (Frames(0, 0, 9), "0[erased erased erased erased erased]"),
                (Head(0), "0 in 0 wake 0"),
                (one(Turn { values: erased(), ..continues(0, 0) }), "durable"),
                (Frames(0, 1, 9), "1[erased]"),
            ],
        ),
        (
            "a shared body exists until its last reference is erased",
            vec![
                (Claim(0), "1"),
                (one(Turn { values: vec![large, large], ..opens(0) }), "durable"),
                (one(Turn { values: vec![large], ..opens(1) }), "durable"),
                (Erase(0, 0, 0), "true"),
                (Erase(1, 0, 0), "true"),
                (Frames(0, 0, 9), "0[erased 32769]"),
                (Erase(0, 0, 1), "true"),
                (Frames(0, 0, 9), "0[erased erased]"),
                (one(Turn { values: vec![large], ..opens(2) }), "durable"),
                (Frames(2, 0, 9), "0[32769]"),
            ],
        ),
        (
            "an ended execution's values may be erased",
            vec![
                (Claim(0), "1"),
                (one(Turn { values: vec![Some(1)], ends: true, ..opens(0) }), "durable"),
                (Notes(0), ""),
                (Erase(0, 0, 0), "true"),
                (Frames(0, 0, 9), "0[erased]"),
                (Notes(0), "0/0"),
                (Erase(0, 0, 0), "false"),
                (Notes(0), "0/0"),
                (Notes(1), ""),
            ],
        ),
    ]
}

fn enough() -> Vec<Case> {
    vec![(
        "frames are read up to a limit of bytes, and at least one",
        vec![
            (Claim(0), "1"),
            (one(Turn { values: vec![Some(40_000)], ..opens(0) }), "durable"),
            (one(Turn { values: vec![Some(50_000), Some(50_001)], ..continues(0, 0) }), "durable"),
            (one(Turn { values: vec![Some(20_000)], ..continues(0, 1) }), "durable"),
            (one(Turn { values: vec![Some(20_001)], ..continues(0, 2) }), "durable"),
            (one(Turn { values: vec![Some(1)], ..continues(0, 3) }), "durable"),
            (FramesWithin(0, 1), "0[40000]"),
            (FramesWithin(0, 40_000), "0[40000]"),
            (FramesWithin(0, 50_000), "0[40000] 1[50000 50001]"),
            (FramesWithin(0, 140_000), "0[40000] 1[50000 50001]"),
            (FramesWithin(0, 1_000_000), "0[40000] 1[50000 50001] 2[20000] 3[20001] 4[1]"),
            (FramesWithin(1, 1), ""),
            // The same for values in the row of the frame.
            (one(Turn { values: vec![Some(20_000)], ..opens(1) }), "durable"),
            (one(Turn { values: vec![Some(20_001)], ..continues(1, 0) }), "durable"),
            (one(Turn { values: vec![Some(20_002)], ..continues(1, 1) }), "durable"),
            (FramesWithin(1, 1), "0[20000]"),
            (FramesWithin(1, 30_000), "0[20000] 1[20001]"),
            (FramesWithin(1, 60_000), "0[20000] 1[20001] 2[20002]"),
        ],
    )]
}

fn catalogue() -> Vec<Case> {
    let keyed = |execution, workflow, key| one(Turn { workflow, idempotency_key: Some(key), ..opens(execution) });
    vec![
        (
            "a name is unique in the store",
            vec![
                (Claim(0), "1"),
                (one(Turn { id: Some("name"), ..opens(0) }), "durable"),
                (RowById("name"), "0:name:running:"),
                (RowById("other"), ""),
                (
                    Commit(1, vec![Turn { id: Some("other"), ..opens(1) }, Turn { id: Some("other"), ..opens(2) }]),
                    "durable id-of-1",
                ),
                (one(Turn { id: Some("name"), frames: 2, ..opens(2) }), "id-of-0"),
                (one(opens(2)), "durable"),
                (Row(2), "2::running:"),
            ],
        ),
        (
            "an idempotency key is unique in its workflow",
            vec![
                (Claim(0), "1"),
                (keyed(0, Some("flow"), "k"), "durable"),
                (keyed(1, Some("flow"), "k"), "key-of-0"),
                (keyed(1, Some("other"), "k"), "durable"),
                (keyed(2, None, "k"), "durable"),
                (keyed(3, None, "k"), "key-of-2"),
                (keyed(3, Some(""), "k"), "durable"),
                (keyed(4, None, "l"), "durable"),
                (RowByIdempotencyKey(Some("flow"), "k"), "0::running:"),
                (RowByIdempotencyKey(None, "k"), "2::running:"),
                (RowByIdempotencyKey(Some("flow"), "l"), ""),
            ],
        ),
        (
            "lists are newest first, filtered, in pages",
            vec![
                (Claim(0), "1"),
                (Commit(1, vec![opens(0), Turn { workflow: Some("flow"), ..opens(1) }]), "durable durable"),
                (Commit(1, vec![Turn { ends: true, ..opens(2) }, opens(3)]), "durable durable"),
                (one(Turn { ends: true, workflow: Some("flow"), ..opens(4) }), "durable"),
                (Rows(vec![], None, None, 9), "4 3 2 1 0"),
                (Rows(vec![], None, None, 2), "4 3"),
                (Rows(vec![], None, Some(3), 2), "2 1"),
                (Rows(vec![], None, Some(0), 2), ""),
                (Rows(vec!["running"], None, None, 9), "3 1 0"),
                (Rows(vec!["running", "completed", "running"], None, Some(4), 3), "3 2 1"),
                (Rows(vec![], Some("flow"), None, 9), "4 1"),
                (Rows(vec!["completed"], Some("flow"), None, 9), "4"),
                (Rows(vec!["failed"], None, None, 9), ""),
                (one(Turn { ends: true, ..continues(3, 0) }), "durable"),
                (Rows(vec!["completed"], None, None, 9), "4 3 2"),
            ],
        ),
    ]
}

fn pending_ones() -> Vec<Case> {
    vec![(
        "organizations with pending executions are listed, and quarantined executions can be left out",
        vec![
            (Claim(0), "1"),
            (PendingOrganizations, ""),
            (
                Commit(1, vec![pending(0, Some("q")), pending(1, Some("o")), pending(2, Some("o"))]),
                "durable durable durable",
            ),
            (Commit(1, vec![pending(3, None), Turn { is_pending: false, ..pending(4, Some("p")) }]), "durable durable"),
            (PendingOrganizations, "o q"),
            (UnfinishedRows("o", vec!["pending"]), "2 1"),
            (Count("o", vec!["pending"], 9), "2"),
            (Count("o", vec!["running", "pending"], 1), "1"),
            (Count("o", vec!["running"], 9), "0"),
            (Count("q", vec!["pending"], 9), "1"),
            (Quarantine(1, "why"), "done"),
            (Count("o", vec!["pending"], 9), "1"),
            (UnfinishedRows("o", vec!["pending"]), "2"),
            (UnfinishedRows("o", vec![]), "2"),
            (Rows(vec!["pending"], None, None, 9), "3 2 1 0"),
            (PendingOrganizations, "o q"),
            (Quarantine(2, "why"), "done"),
            (PendingOrganizations, "q"),
            (ReleaseQuarantined(1), "released"),
            (UnfinishedRows("o", vec!["running", "pending"]), "1"),
            (one(continues(0, 0)), "durable"),
            (PendingOrganizations, "o"),
            (one(Turn { ends: true, ..continues(1, 0) }), "durable"),
            (PendingOrganizations, ""),
        ],
    )]
}

fn pending(execution: u8, organization: Option<Text>) -> Turn {
    Turn { is_pending: true, organization, ..opens(execution) }
}

fn other_definitions() -> Vec<Case> {
    let of = |execution, organization, workflow_id, definition| Turn {
        organization: Some(organization),
        workflow_id: Some(workflow_id),
        workflow: Some(definition),
        ..opens(execution)
    };
    vec![(
        "unfinished executions of other definitions are counted",
        vec![
            (Claim(0), "1"),
            (
                Commit(1, vec![of(0, "o", "f", "a"), of(1, "o", "f", "b"), of(2, "o", "f", "c")]),
                "durable durable durable",
            ),
            (
                Commit(1, vec![of(3, "o", "f", "a"), of(4, "o", "g", "b"), of(5, "p", "f", "b")]),
                "durable durable durable",
            ),
            (CountOthers("o", "f", vec![], 9), "4"),
            (CountOthers("o", "f", vec!["a"], 9), "2"),
            (CountOthers("o", "f", vec!["b"], 9), "3"),
            (CountOthers("o", "f", vec!["c", "b", "c"], 9), "2"),
            (CountOthers("o", "f", vec!["c", "a", "d"], 9), "1"),
            (CountOthers("o", "f", vec!["a", "b", "c"], 9), "0"),
            (CountOthers("o", "f", vec!["d"], 9), "4"),
            (CountOthers("o", "f", vec!["d"], 3), "3"),
            (CountOthers("o", "f", vec!["b"], 0), "0"),
            (CountOthers("o", "h", vec!["d"], 9), "0"),
            (CountOthers("q", "f", vec!["d"], 9), "0"),
            (one(Turn { ends: true, ..continues(1, 0) }), "durable"),
            (CountOthers("o", "f", vec!["a"], 9), "1"),
            (Quarantine(2, "why"), "done"),
            (CountOthers("o", "f", vec!["a"], 9), "0"),
            (CountOthers("o", "f", vec!["d"], 9), "2"),
            (ReleaseQuarantined(2), "released"),
            (CountOthers("o", "f", vec!["a"], 9), "1"),
            (one(continues(2, 0)), "durable"),
            (CountOthers("o", "f", vec!["a"], 9), "1"),
            (one(Turn { workflow: Some("a"), ..continues(2, 1) }), "durable"),
            (CountOthers("o", "f", vec!["a"], 9), "0"),
            (CountOthers("o", "f", vec!["c"], 9), "3"),
            (one(Turn { ends: true, ..continues(2, 2) }), "durable"),
            (Row(2), "2::completed:with_failures o f migrated"),
        ],
    )]
}

fn rollouts() -> Vec<Case> {
    let of = |execution, organization| Turn { organization: Some(organization), ..opens(execution) };
    vec![(
        "the executions of a rollout are read with their usage, the newest first",
        vec![
            (Claim(0), "1"),
            (Commit(1, vec![of(0, "o"), of(1, "o"), of(2, "p"), opens(3)]), "durable durable durable durable"),
            (one(Turn { ends: true, ..of(4, "o") }), "durable"),
            (Rollout("rollout of o", 9), "completed@99 9 tokens running@0 running@0"),
            (one(Turn { ends: true, ..continues(1, 0) }), "durable"),
            (Rollout("rollout of o", 9), "completed@99 9 tokens completed@99 6 tokens running@0"),
            (Rollout("rollout of o", 2), "completed@99 9 tokens completed@99 6 tokens"),
            (Rollout("rollout of p", 9), "running@0"),
            (Rollout("rollout of", 9), ""),
        ],
    )]
}

fn origins() -> Vec<Case> {
    let owned = |execution, organization, workflow_id| Turn {
        organization: Some(organization),
        workflow_id: Some(workflow_id),
        ..opens(execution)
    };
    let of = |[organization, workflow_id, workflow]: [Option<Text>; 3], execution| {
        one(Turn { organization, workflow_id, workflow, idempotency_key: Some("k"), ..opens(execution) })
    };
    vec![
        (
            "an idempotency key is unique among the executions of one origin",
            vec![
                (Claim(0), "1"),
                (of([Some("o"), Some("f"), Some("flow")], 0), "durable"),
                (of([Some("o"), Some("f"), Some("renamed")], 1), "key-of-0"),
                (of([Some("o"), Some("f"), None], 1), "key-of-0"),
                (of([Some("o"), None, Some("f")], 1), "durable"),
                (of([Some("p"), Some("f"), Some("flow")], 2), "durable"),
                (of([None, Some("f"), Some("flow")], 3), "durable"),
                (of([None, None, Some("f")], 4), "durable"),
                (of([None, None, Some("f")], 5), "key-of-4"),
                (of([Some("o"), None, Some("f")], 5), "key-of-1"),
                (of([Some(""), None, None], 5), "durable"),
                (RowByStart([Some("o"), Some("f"), Some("other")], "k"), "0::running: o f"),
                (RowByStart([Some("o"), None, Some("f")], "k"), "1::running: o"),
                (RowByStart([None, Some("f"), None], "k"), "3::running: f"),
                (RowByStart([None, None, None], "k"), ""),
                (RowByIdempotencyKey(Some("f"), "k"), "4::running:"),
            ],
        ),
        (
            "lists are filtered by organization, workflow id and initiator",
            vec![
                (Claim(0), "1"),
                (
                    Commit(1, vec![owned(0, "o", "f"), owned(1, "o", "g"), owned(2, "p", "f")]),
                    "durable durable durable",
                ),
                (one(Turn { initiator: Some("u\0"), ends: true, ..owned(3, "o", "f") }), "durable"),
                (one(Turn { initiator: Some("u\0"), workflow: Some("flow"), ..owned(4, "o", "f") }), "durable"),
                (one(opens(5)), "durable"),
                (RowsOf(vec![], [None, None, None, None], None, 9), "5 4 3 2 1 0"),
                (RowsOf(vec![], [None, Some("o"), None, None], None, 9), "4 3 1 0"),
                (RowsOf(vec![], [None, Some("o"), None, None], Some(4), 2), "3 1"),
                (RowsOf(vec![], [None, Some("q"), None, None], None, 9), ""),
                (RowsOf(vec!["running"], [None, Some("o"), None, None], None, 9), "4 1 0"),
                (RowsOf(vec!["running", "completed"], [None, Some("o"), None, None], Some(4), 2), "3 1"),
                (RowsOf(vec![], [None, Some("o"), Some("f"), None], None, 9), "4 3 0"),
                (RowsOf(vec!["completed"], [None, Some("o"), Some("f"), None], None, 9), "3"),
                (RowsOf(vec![], [None, None, Some("f"), None], None, 9), "4 3 2 0"),
                (RowsOf(vec![], [None, None, None, Some("u\0")], None, 9), "4 3"),
                (RowsOf(vec!["running"], [Some("flow"), Some("o"), Some("f"), Some("u\0")], None, 9), "4"),
                (RowsOf(vec!["running"], [Some("flow"), Some("p"), Some("f"), Some("u\0")], None, 9), ""),
                (Row(4), "4::running: o f"),
            ],
        ),
    ]
}

fn gates() -> Vec<Case> {
    let asks = |turn: Turn, gates_opened: Vec<(Text, u32)>| Turn { gates_opened, ..turn };
    let of = |organization, turn: Turn| Turn { organization: Some(organization), ..turn };
    let all = "4:s#1 of p 2:a#1 of o 1:s#1 of o 1:s\0#2 of o 1:s\0#10 of o 0:s#1";
    vec![(
        "gates are listed while they wait: the newest execution first, of one organization, in pages",
        vec![
            (Claim(0), "1"),
            (Gates(None, None, 9), ""),
            (one(of("o", asks(opens(1), vec![("s\0", 10), ("s\0", 2), ("s", 1)]))), "durable"),
            (one(asks(opens(0), vec![("s", 1)])), "durable"),
            (
                Commit(1, vec![of("o", asks(opens(2), vec![("a", 1)])), of("p", asks(opens(4), vec![("s", 1)]))]),
                "durable durable",
            ),
            (Gates(None, None, 9), all),
            (Gates(Some("o"), None, 9), "2:a#1 of o 1:s#1 of o 1:s\0#2 of o 1:s\0#10 of o"),
            (Gates(Some("o"), None, 2), "2:a#1 of o 1:s#1 of o"),
            (Gates(Some("o"), Some((1, "s", 1)), 2), "1:s\0#2 of o 1:s\0#10 of o"),
            (Gates(None, Some((1, "s\0", 2)), 9), "1:s\0#10 of o 0:s#1"),
            (Gates(None, Some((3, "s", 1)), 1), "2:a#1 of o"),
            (Gates(Some("q"), None, 9), ""),
            // A part without frames changes no gates, and an open gate stays as it is.
            (one(Turn { frames: 0, gates_closed: vec![("s", 1)], ..asks(continues(0, 0), vec![("t", 1)]) }), "durable"),
            (Quarantine(0, "why"), "done"),
            (one(of("p", asks(continues(2, 0), vec![("a", 1)]))), "durable"),
            (Gates(None, None, 9), all),
            (
                one(Turn {
                    gates_closed: vec![("s\0", 2), ("s", 1), ("z", 1)],
                    ..of("o", asks(continues(1, 0), vec![("s", 2)]))
                }),
                "durable",
            ),
            (Gates(Some("o"), None, 9), "2:a#1 of o 1:s#2 of o 1:s\0#10 of o"),
            // A part that ends the execution opens no gates, and closes those that it names.
            (
                one(Turn {
                    ends: true,
                    gates_closed: vec![("s", 2), ("s\0", 10)],
                    ..asks(continues(1, 1), vec![("t", 1)])
                }),
                "durable",
            ),
            (Repartition(3), "done"),
            (Gates(None, None, 9), "4:s#1 of p 2:a#1 of o 0:s#1"),
        ],
    )]
}
