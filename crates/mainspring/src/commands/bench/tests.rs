//! Tests that a replay writes the same store contents as the recording.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use mainspring_store::{Filter, ReadLimit, Store, memory::MemoryStore, sqlite::SqliteStore};

use super::{
    effects,
    load_generator::{self, Bounds},
    recording_store::ObservedStore,
    replay::Recording,
    test_store,
    workload::Workload,
};

/// The contents of all executions, as text.
fn contents(store: &dyn Store) -> Vec<String> {
    let rows = store.executions(&Filter::default(), None, usize::MAX >> 1).unwrap();
    let contents = rows.iter().map(|row| {
        let head = store.head(row.key).unwrap();
        let frames = store.frames(row.key, 0, ReadLimit::of(usize::MAX)).unwrap();
        format!("{row:?} {head:?} {frames:?} {:?}", store.plan(row.plan_hash).unwrap())
    });
    contents.collect()
}

async fn check(workload: Workload, recorded: Arc<dyn Store>, replayed: &dyn Store) {
    let (recording, callback) = Recording::begin();
    // Raises the epoch, so that it differs from that of the other store and fences must be replaced.
    recorded.claim(0, "somebody before").unwrap();
    let engine = test_store::engine(Arc::new(ObservedStore::new(recorded.clone(), callback)), effects::nothing(), None)
        .await
        .unwrap();
    let bounds = Bounds { duration: Duration::MAX, executions_max: 20 };
    let measured = load_generator::closed(std::slice::from_ref(&engine), workload, 8, bounds).await.unwrap();
    assert_eq!(measured.each.len(), 20);
    engine.drain().await;
    let recording = std::mem::take(&mut *recording.lock().unwrap_or_else(PoisonError::into_inner));
    assert_eq!(recording.executions(), 20);
    let written = contents(&*recorded);
    assert_eq!(written.len(), 20);
    recording.replay(replayed).unwrap();
    assert_eq!(contents(replayed), written);
}

#[tokio::test]
async fn a_replay_equals_its_recording() {
    for workload in [Workload::Steps1, Workload::Steps3, Workload::Fan100] {
        check(workload, Arc::new(MemoryStore::new()), &MemoryStore::new()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = |name: &str| SqliteStore::open(&folder.path().join(name)).unwrap();
    check(Workload::Steps10, Arc::new(store("recorded.db")), &store("replayed.db")).await;
}
