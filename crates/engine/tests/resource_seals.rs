//! Resources that were not sealed with the installation's key are refused. An upgrade seals those of an older release.

use std::sync::Arc;

use mainspring_effects::Executors;
use mainspring_engine::{
    Engine, EngineError, EngineResources, EngineScope, evaluator::InProcess, inbox::Unsealed, resource_seals,
    seal_note::SealNote,
};
use mainspring_store::prelude::*;
use mainspring_store::{
    Change, ChangeOutcome, Put, ReadLimit, ResourceRow, SEAL_BYTES, has_valid_seal, memory::MemoryStore, seal_resource,
};

const KEY: [u8; 32] = [1; 32];
const OTHER_KEY: [u8; 32] = [2; 32];

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn run(store: &MemoryStore) -> Result<Engine, EngineError> {
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as _);
    Engine::run(Arc::new(store.clone()), KEY, workers, EngineResources::default(), EngineScope::All)
}

fn row(id: &str) -> ResourceRow {
    let (kind, organization) = ("member".into(), "acme".into());
    ResourceRow { kind, organization, id: id.into(), version: 1, keys: Vec::new(), body: b"{}".to_vec() }
}

fn insert(store: &MemoryStore, resource: ResourceRow) {
    let puts = vec![Put { resource, expected: 0 }];
    assert_eq!(store.change(&Change { puts, ..Change::default() }), Ok(ChangeOutcome::Done));
}

fn sealed(key: &[u8; 32], row: ResourceRow) -> ResourceRow {
    ResourceRow { body: seal_resource(key, &row), ..row }
}

/// Reads a resource as a server does.
fn read(engine: &Engine, id: &str) -> Result<Option<Vec<u8>>, String> {
    let found = engine.store().catalogue().resource("member", "acme", id);
    found.map(|found| found.map(|row| row.body)).map_err(|error| error.to_string())
}

#[test]
fn resources_of_an_older_release_are_sealed_once() {
    let store = MemoryStore::new();
    store.set_unsealed_format();
    // More than one read returns.
    let count = 600;
    (0..count).for_each(|number| insert(&store, row(&format!("{number:03}"))));
    block_on(async {
        let upgraded = run(&store).unwrap();
        for number in [0, 255, 256, 257, count - 1] {
            assert_eq!(read(&upgraded, &format!("{number:03}")), Ok(Some(b"{}".to_vec())));
        }
        let rows = store.all_resources(None, ReadLimit::of(count * 2)).unwrap();
        assert_eq!(rows.iter().filter(|row| has_valid_seal(&KEY, row)).count(), count);
        upgraded.drain().await;
        // The same row is a forgery later, although the store still appears upgraded.
        insert(&store, row("late"));
        let again = run(&store).unwrap();
        assert!(read(&again, "late").unwrap_err().contains("has no valid seal"));
        assert_eq!(read(&again, "000"), Ok(Some(b"{}".to_vec())));
        again.drain().await;
    });
}

#[test]
fn resources_without_a_seal_prevent_a_start_unless_the_store_was_upgraded() {
    let store = MemoryStore::new();
    insert(&store, row("mallory"));
    let refused = run(&store).err().expect("it does not start");
    assert_eq!(refused, EngineError::UnsealedResources(1));
    assert!(refused.to_string().contains("mainspring upgrade --accept-unsealed"));
    assert_eq!(resource_seals::seal_older(&store, &KEY, Unsealed::Accepted), Ok(1));
    block_on(async {
        let engine = run(&store).unwrap();
        assert_eq!(read(&engine, "mallory"), Ok(Some(b"{}".to_vec())));
        engine.drain().await;
    });
}

/// The store appears upgraded and has no mark, as an attacker with access to it can make it appear. Its sealed resources
/// prove that a release with seals has used it.
#[test]
fn a_removed_mark_makes_no_resource_valid() {
    let store = MemoryStore::new();
    store.set_unsealed_format();
    insert(&store, sealed(&KEY, row("ada")));
    insert(&store, row("mallory"));
    assert_eq!(run(&store).err(), Some(EngineError::UnsealedResources(1)));
    assert_eq!(store.resource("member", "acme", "mallory").unwrap().unwrap().body, b"{}");
}

/// An attacker removes all seals and the marks, and sets the format back.
fn made_older(upgraded: &MemoryStore) -> MemoryStore {
    let older = MemoryStore::new();
    older.set_unsealed_format();
    for stored in upgraded.all_resources(None, ReadLimit::of(100)).unwrap() {
        insert(&older, ResourceRow { body: stored.body[SEAL_BYTES..].to_vec(), ..stored });
    }
    insert(&older, row("mallory"));
    older
}

#[test]
fn a_store_that_was_made_older_is_refused_by_the_note_beside_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let note = SealNote::of(&[folder.path()], "/state", true);
    let run = |store: &MemoryStore| {
        let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as _);
        let resources = EngineResources { seal_note: Some(note.clone()), ..EngineResources::default() };
        Engine::run(Arc::new(store.clone()), KEY, workers, resources, EngineScope::All)
    };
    let store = MemoryStore::new();
    store.set_unsealed_format();
    insert(&store, row("ada"));
    block_on(async {
        run(&store).unwrap().drain().await;
        let older = made_older(&store);
        assert_eq!(run(&older).err(), Some(EngineError::UnsealedResources(2)));
        assert_eq!(older.resource("member", "acme", "mallory").unwrap().unwrap().body, b"{}", "nothing is sealed");
        // A forged row in a store that has lost its mark stops no start, and stays invalid.
        let unmarked = MemoryStore::new();
        unmarked.set_unsealed_format();
        insert(&unmarked, sealed(&KEY, row("ada")));
        insert(&unmarked, row("mallory"));
        let engine = run(&unmarked).unwrap();
        assert_eq!(read(&engine, "ada"), Ok(Some(b"{}".to_vec())));
        assert!(read(&engine, "mallory").unwrap_err().contains("has no valid seal"));
        engine.drain().await;
        // The store alone does not prove it.
        assert_eq!(resource_seals::seal_older(&older, &KEY, Unsealed::OfThisUpgrade), Ok(2));
    });
}

#[test]
fn a_seal_of_another_key_is_neither_replaced_nor_accepted() {
    let store = MemoryStore::new();
    store.set_unsealed_format();
    let foreign = sealed(&OTHER_KEY, row("mallory"));
    insert(&store, foreign.clone());
    for unsealed in [Unsealed::OfThisUpgrade, Unsealed::Accepted] {
        assert_eq!(resource_seals::seal_older(&store, &KEY, unsealed), Ok(0));
    }
    assert_eq!(store.resource("member", "acme", "mallory"), Ok(Some(foreign)));
    block_on(async {
        let engine = run(&store).unwrap();
        assert!(read(&engine, "mallory").unwrap_err().contains("has no valid seal"));
        engine.drain().await;
    });
}
