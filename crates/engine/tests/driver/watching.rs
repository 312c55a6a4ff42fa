//! Watchers of an execution, with and without reading.

use mainspring_effects::Executors;
use mainspring_engine::limits::WATCHED_FRAMES_MAX;
use mainspring_store::memory::MemoryStore;

use super::{block_on, engine, request, status, until};

#[test]
fn memory_of_a_stalled_watcher_is_bounded() {
    let nap = |number| format!(r#"{{"type":"sleep","id":"nap{number}","durationMs":1}}"#);
    let naps = (0..WATCHED_FRAMES_MAX + 8).map(nap).collect::<Vec<_>>().join(",");
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(store.clone(), Executors::new(Vec::new()), None);
        let key = engine.new_key().unwrap();
        let (mut slow, mut patient) = (engine.watch_in_time(key), engine.watch(key));
        engine
            .start_as(key, request(&format!(r#"{{"constraints":{{"maxSteps":1000}},"steps":[{naps}]}}"#)))
            .await
            .unwrap();
        until(async || status(&store, key) == "completed").await;
        let mut frames = 0;
        while let Some(frame) = patient.recv().await {
            frames += 1;
            if frame.status.name() == "completed" {
                break;
            }
        }
        assert!(frames > WATCHED_FRAMES_MAX, "{frames} frames");
        let mut received = 0;
        while let Ok(frame) = slow.try_recv() {
            assert_eq!(frame.sequence, received, "in order, without a gap");
            received += 1;
        }
        assert_eq!((received, slow.is_closed()), (WATCHED_FRAMES_MAX as u64, true));
        engine.drain().await;
    });
}
