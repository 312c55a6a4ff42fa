//! The comparison of a journal with the stored columns ends, for any columns of other executions.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use mainspring_effects::Executors;
use mainspring_engine::journal_loader::Loader;
use mainspring_store::memory::MemoryStore;
use mainspring_store::prelude::*;

use crate::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    request, until,
};

/// One page of gates.
const GATES: usize = 256;

fn with_gates(count: usize) -> String {
    let gate = |number| format!(r#"{{"type":"approval","id":"g{number}","prompt":"?","approvers":["ada"]}}"#);
    let gates: Vec<String> = (0..count).map(gate).collect();
    format!(
        r#"{{"constraints":{{"maxSteps":100000,"maxParallel":10000}},"steps":[{{"type":"parallel","id":"all","steps":[{}]}}]}}"#,
        gates.join(",")
    )
}

#[test]
fn the_column_check_ends_despite_many_old_approvals() {
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(store.clone(), Executors::new(Vec::new()), None);
        let mut keys = Vec::new();
        // Each execution is newer than the previous ones.
        for (definition, all) in
            [(with_gates(GATES), GATES), (with_gates(GATES), 2 * GATES), (WAITS.to_owned(), 2 * GATES)]
        {
            keys.push(engine.start(request(&definition)).await.unwrap().execution);
            until(async || store.pending_approvals(None, None, 10 * GATES).unwrap().len() == all).await;
        }
        engine.drain().await;
        assert!(keys.is_sorted());
        let pages = Arc::new(AtomicU32::new(0));
        let counting = pages.clone();
        let hooked = Hooked::on(&store, move |call| {
            if call == Call::Approvals {
                assert!(counting.fetch_add(1, Ordering::SeqCst) < 20, "the pages never end");
            }
            Ok(())
        });
        let loader = Loader::new(Arc::new(hooked), [1; 32]);
        for key in keys {
            let (_, differences) = loader.verify_with_columns(key).unwrap().unwrap();
            assert_eq!(differences, []);
        }
    });
}
