//! A node whose clock differs from that of the store.

use mainspring_effects::Executors;
use mainspring_engine::clock::now_ms;
use mainspring_store::memory::MemoryStore;

use super::{block_on, engine, lease, until};

#[test]
fn a_node_with_a_wrong_clock_owns_nothing_and_reports_it() {
    for (store_ms, side) in [(now_ms() - 3_600_000, "ahead of"), (now_ms() + 3_600_000, "behind")] {
        let store = MemoryStore::new();
        store.set_now(store_ms);
        block_on(async {
            let engine = engine(store.clone(), Executors::new(Vec::new()), lease(4_000));
            until(async || {
                engine.problem().is_some_and(|problem| {
                    problem.component == "clock" && problem.why.contains(side) && problem.why.contains("NTP")
                })
            })
            .await;
            assert!(engine.owned_partitions().is_empty());
            until(async || {
                store.set_now(now_ms());
                engine.problem().is_none() && !engine.owned_partitions().is_empty()
            })
            .await;
            // The clock becomes wrong while the node owns partitions, so the node releases them.
            store.set_now(store_ms);
            until(async || {
                engine.problem().is_some_and(|problem| problem.why.contains(side))
                    && engine.owned_partitions().is_empty()
            })
            .await;
            engine.drain().await;
        });
    }
}
