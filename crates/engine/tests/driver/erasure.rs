//! LateReceipt receipts: stored beside the journal, and erased at any time of their arrival.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainspring_effects::Executors;
use mainspring_engine::{
    erasure::erase,
    journal_loader::Loader,
    quarantine::{Act, Place},
};
use mainspring_kernel::{key::ExecutionKey, stored_frame::Head};
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, Expected, LateReceipt, Part, PartOutcome, PartReceipts, StoreError, memory::MemoryStore,
};

use crate::{
    block_on, engine,
    hooked_store::{Call, Hooked},
    quarantine::{BASH, Steps},
    request, status, until,
};

fn erased(store: &MemoryStore, execution: ExecutionKey) -> usize {
    let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
    let act = Act { key: &[1; 32], by: "ada", reason: "a request", audit: &[] };
    erase(Place { store, loader: &loader, data_dir: None }, execution, &[], &act).unwrap()
}

/// Stores a receipt of a stopped attempt, as an engine does.
fn file_late(store: &MemoryStore, execution: ExecutionKey, at: u64) {
    let Head { sequence, hash, seal } = store.head(execution).unwrap().unwrap().head;
    let late = vec![LateReceipt { at, body: b"a secret".to_vec(), proof: None }];
    let receipts = PartReceipts { late, ..PartReceipts::default() };
    let head = Head { sequence, hash, seal };
    let part = Part { expected: Some(Expected { sequence, hash }), head, receipts, ..Part::empty(execution, 0) };
    let fences = store.cluster_view().unwrap().held;
    let fences = if fences.is_empty() {
        vec![mainspring_store::Fence { partition: 0, epoch: store.claim(0, "test").unwrap() }]
    } else {
        fences
    };
    let batch = Batch { fences, parts: vec![part], sealing: [1; 32] };
    assert_eq!(store.commit(&batch).unwrap(), [PartOutcome::Durable]);
}

#[test]
fn a_late_receipt_is_erased_by_the_next_erase() {
    let store = MemoryStore::new();
    block_on(async {
        let steps = Steps::new();
        let engine = engine(store.clone(), Executors::new(vec![steps.clone()]), None);
        let execution = engine.start(request(BASH)).await.unwrap().execution;
        steps.end_one();
        until(async || status(&store, execution) == "completed").await;
        engine.drain().await;
        file_late(&store, execution, 1);
        assert!(erased(&store, execution) > 1);
        assert_eq!(erased(&store, execution), 0);
        file_late(&store, execution, 2);
        assert_eq!(erased(&store, execution), 1);
        assert!(store.late_receipts(execution).unwrap().iter().all(|late| late.body.is_empty()));
    });
}

/// The answer to the commit of a receipt is lost. If the commit was written, the receipt counts and is not late.
#[test]
fn a_committed_receipt_is_not_stored_as_late() {
    for lost in [Call::Committed, Call::Commit] {
        let store = MemoryStore::new();
        let is_lost = Arc::new(AtomicBool::new(false));
        let losing = is_lost.clone();
        let hooked = Hooked::on(&store, move |call| match call {
            call if call == lost && losing.swap(false, Ordering::SeqCst) => {
                Err(StoreError::Unavailable("the connection broke at COMMIT".into()))
            }
            _ => Ok(()),
        });
        block_on(async {
            let steps = Steps::new();
            let engine = engine(hooked, Executors::new(vec![steps.clone()]), None);
            let execution = engine.start(request(BASH)).await.unwrap().execution;
            until(async || steps.started_count() == 1).await;
            is_lost.store(true, Ordering::SeqCst);
            steps.end_one();
            until(async || status(&store, execution) == "completed" && !is_lost.load(Ordering::SeqCst)).await;
            engine.drain().await;
            assert_eq!(store.late_receipts(execution).unwrap(), []);
        });
    }
}
