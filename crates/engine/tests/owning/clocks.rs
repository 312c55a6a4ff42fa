//! A node whose clock is not that of the store.

use super::*;

#[test]
fn a_node_whose_clock_is_not_the_store_s_gives_up_what_it_holds_and_takes_it_again() {
    for ahead_ms in [-3_600_000, -2_001, 2_001, 3_600_000] {
        let store = store();
        let mut bench = Bench::new(&store, "a");
        bench.speak();
        bench.submit();
        bench.write();
        bench.seen();
        // Set wrong at a heartbeat: the lease of one that is set forward is over at once.
        bench.wall_ms = NOW.saturating_add_signed(ahead_ms);
        bench.speak();
        let is_over = ahead_ms >= 9_000;
        assert_eq!(
            bench.seen(),
            if is_over { "kill 1, lost [0], gained [0], given up 1, running 0" } else { "given up 1, running 1" }
        );
        bench.speak();
        assert_eq!(bench.seen(), "", "{ahead_ms}: it takes nothing");
        assert_eq!(store.table().unwrap().holders, [], "{ahead_ms}: others may take it");
        bench.wall_ms = NOW + 2_000;
        bench.speak();
        assert!(bench.seen().ends_with("gained [0]"), "{ahead_ms}");
    }
}

#[test]
fn a_clock_that_is_set_wrong_between_heartbeats_ends_no_gate_early() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.speak();
    bench.submit_plan(plan_of(r#"{"steps":[{"type":"sleep","id":"s","durationMs":5000}]}"#));
    bench.write();
    bench.wall_ms = NOW + 8_000;
    bench.handle(Event::Wake);
    assert!(bench.commits.is_empty(), "by the store's clock no time has passed");
    let input = Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
    bench.handle(Event::Take(KEY, Queued { input, letter: None, ticket: None, audit: None }));
    bench.write();
    let state = bench.loader.journal(KEY).unwrap().unwrap().journal.state;
    assert_eq!(state.now, NOW + 2_000, "the time of an execution never goes back");
}
