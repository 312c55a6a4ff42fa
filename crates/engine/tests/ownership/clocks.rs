//! A node whose clock differs from that of the store.

use super::*;
use mainspring_store::prelude::*;

#[test]
fn a_wrong_clock_releases_partitions_until_it_is_corrected() {
    for ahead_ms in [-3_600_000, -2_001, 2_001, 3_600_000] {
        let store = store();
        let mut bench = Bench::new(&store, "a");
        bench.heartbeat();
        bench.submit();
        bench.write();
        bench.take_outputs();
        // Changed at a heartbeat. A clock that is set far ahead expires the lease at once.
        bench.wall_ms = NOW.saturating_add_signed(ahead_ms);
        bench.heartbeat();
        let is_over = ahead_ms >= 9_000;
        assert_eq!(
            bench.take_outputs(),
            if is_over { "kill 1, lost [0], acquired [0], released 1, running 0" } else { "released 1, running 1" }
        );
        bench.heartbeat();
        assert_eq!(bench.take_outputs(), "", "{ahead_ms}: it takes nothing");
        assert_eq!(store.cluster_view().unwrap().holders, [], "{ahead_ms}: others may take it");
        bench.wall_ms = NOW + 2_000;
        bench.heartbeat();
        assert!(bench.take_outputs().ends_with("acquired [0]"), "{ahead_ms}");
    }
}

#[test]
fn a_clock_that_is_set_wrong_between_heartbeats_ends_no_gate_early() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.heartbeat();
    bench.submit_plan(plan_of(r#"{"steps":[{"type":"sleep","id":"s","durationMs":5000}]}"#));
    bench.write();
    bench.wall_ms = NOW + 8_000;
    bench.handle(Event::Wake);
    assert!(bench.commits.is_empty(), "by the store's clock no time has passed");
    let input = Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
    bench.handle(Event::Take(KEY, PendingInput { input, message: None, ticket: None, audit: None }));
    bench.write();
    let state = bench.loader.journal(KEY).unwrap().unwrap().journal.state;
    assert_eq!(state.now, NOW + 2_000, "the time of an execution never goes back");
}

/// Three nodes send heartbeats in turn for the duration of a lease. Returns the number of partitions of each.
fn held_after_a_lease(store: &MemoryStore, nodes: &mut [Bench; 3], now_ms: &mut u64) -> [usize; 3] {
    for _ in 0..4 {
        *now_ms += TERMS.heartbeat_interval_ms();
        store.set_now(*now_ms);
        for node in nodes.iter_mut() {
            node.monotonic.0 += TERMS.heartbeat_interval_ms();
            node.wall_ms += TERMS.heartbeat_interval_ms();
            node.heartbeat();
        }
    }
    let holders = store.cluster_view().unwrap().holders;
    nodes.each_ref().map(|node| holders.iter().filter(|(_, holder)| holder == node.name()).count())
}

#[test]
fn other_nodes_own_all_partitions_during_a_wrong_clock() {
    for (wrong, expected) in [(0, [0, 4, 3]), (1, [4, 0, 3]), (2, [4, 3, 0])] {
        let (store, mut now_ms) = (store(), NOW);
        store.repartition(7).unwrap();
        let mut nodes = ["a", "b", "c"].map(|name| Bench::new(&store, name));
        assert_eq!(held_after_a_lease(&store, &mut nodes, &mut now_ms), [3, 2, 2]);
        nodes[wrong].wall_ms -= 3_600_000;
        assert_eq!(held_after_a_lease(&store, &mut nodes, &mut now_ms), expected, "the clock of {wrong} is wrong");
        nodes[wrong].wall_ms += 3_600_000;
        let shares = held_after_a_lease(&store, &mut nodes, &mut now_ms);
        assert_eq!(shares.iter().sum::<usize>(), 7, "{shares:?}");
        assert!(shares.iter().all(|share| (2..=3).contains(share)), "the clock of {wrong} is right: {shares:?}");
    }
}

#[test]
fn a_node_with_a_wrong_clock_at_start_acquires_nothing() {
    let (store, mut now_ms) = (store(), NOW);
    store.repartition(7).unwrap();
    let mut nodes = ["a", "b", "c"].map(|name| Bench::new(&store, name));
    nodes[0].wall_ms += 3_600_000;
    assert_eq!(held_after_a_lease(&store, &mut nodes, &mut now_ms), [0, 4, 3]);
}
