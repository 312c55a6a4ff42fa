//! Detection of a replaced or older store in a data folder. The tests cover every case in the documentation of `generation.rs`.
//! An ordinary restart raises no doubt, even after a kill.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use mainspring_engine::data_dir::{DataDir, DirLock};
use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    stored_frame::{Head, StoredFrame},
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, Expected, Fence, Part, PartOutcome, sqlite::SqliteStore};

const KEY: [u8; 32] = [1; 32];

/// The time of every start, in milliseconds since 1970.
const NOW: u64 = 1_000;

/// A locked folder with its store.
struct EngineRun {
    held: DirLock,
    store: SqliteStore,
    epoch: u64,
}

impl EngineRun {
    fn begin(folder: &Path) -> Self {
        Self::begin_at(folder, NOW)
    }

    fn begin_at(folder: &Path, now_ms: u64) -> Self {
        let data_dir = DataDir::new(folder);
        let mut held = data_dir.hold(&KEY).unwrap();
        let store = SqliteStore::open(&data_dir.journal()).unwrap();
        held.begin(&data_dir, &store, now_ms).unwrap();
        let epoch = store.claim(0, "test").unwrap();
        Self { held, store, epoch }
    }

    /// Commits a frame.
    fn work(&mut self) {
        let execution = ExecutionKey([9; 16]);
        let before = self.store.head(execution).unwrap().map(|row| row.head);
        let sequence = before.map_or(0, |head| head.sequence + 1);
        let frame = StoredFrame { sequence, frame: vec![1], values: Vec::new() };
        let head = Head { sequence, hash: Hash::of(&sequence.to_be_bytes()), seal: Hash([0; 32]) };
        let expected = before.map(|head| Expected { sequence: head.sequence, hash: head.hash });
        let part = Part { expected, frames: vec![frame], head, wake_at: Some(0), ..Part::empty(execution, 0) };
        let fences = vec![Fence { partition: 0, epoch: self.epoch }];
        let answers = self.store.commit(&Batch { fences, parts: vec![part], sealing: [0; 32] });
        assert_eq!(answers, Ok(vec![PartOutcome::Durable]));
    }

    /// Commits a receipt, and records it as before the removal of its process record.
    fn settle(&mut self) {
        self.work();
        self.held.raise(self.store.newest_frame().unwrap()).unwrap();
    }

    fn is_trusted(&self) -> bool {
        // Both agree, since each start has a time of its own.
        assert_eq!(self.held.same_boot, self.held.untrusted_before_ms < NOW);
        self.held.same_boot
    }
}

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn database(&self) -> PathBuf {
        self.folder().join("journal.db")
    }

    fn copy(&self) -> PathBuf {
        let copy = self.root.path().join("copy.db");
        let _ = fs::remove_file(&copy);
        SqliteStore::copy(&self.database(), &copy).unwrap();
        copy
    }

    /// Replaces the store by a copy, as an operator does.
    fn restore(&self, copy: &Path) {
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.folder().join(format!("journal.db{ending}")));
        }
        fs::copy(copy, self.database()).unwrap();
    }
}

#[test]
fn an_ordinary_restart_is_trusted() {
    let place = Place::new();
    for _ in 0..3 {
        let mut run = EngineRun::begin(&place.folder());
        assert!(run.is_trusted());
        run.work();
        run.settle();
        run.work();
    }
    // As after a kill: the store was not closed, and the log was not checkpointed.
    let mut run = EngineRun::begin(&place.folder());
    run.settle();
    run.work();
    for ending in ["", "-wal"] {
        let name = format!("journal.db{ending}");
        fs::copy(place.folder().join(&name), place.root.path().join(&name)).unwrap();
    }
    drop(run);
    for ending in ["", "-wal"] {
        // Into the same file, since a kill changes no inode.
        let name = format!("journal.db{ending}");
        fs::write(place.folder().join(&name), fs::read(place.root.path().join(&name)).unwrap()).unwrap();
    }
    assert!(EngineRun::begin(&place.folder()).is_trusted());
    // A process that locked the folder and ended is not a copy.
    drop(DataDir::new(place.folder()).hold(&KEY).unwrap());
    assert!(EngineRun::begin(&place.folder()).is_trusted());
}

/// A copy of the same use of the store, of the previous one, and of the one before. The process ends in between, or
/// does not.
#[test]
fn an_older_copy_of_any_age_is_detected() {
    let place = Place::new();
    let mut run = EngineRun::begin(&place.folder());
    run.work();
    let copy = place.copy();
    run.settle();
    drop(run);
    place.restore(&copy);
    let mut run = EngineRun::begin(&place.folder());
    assert!(!run.is_trusted(), "of the same hold");
    run.settle();
    drop(run);
    assert_eq!(EngineRun::begin(&place.folder()).held.untrusted_before_ms, NOW + 1, "it is not forgotten");
    let copy = place.copy();
    let mut run = EngineRun::begin_at(&place.folder(), NOW + 5);
    run.settle();
    drop(run);
    drop(EngineRun::begin_at(&place.folder(), NOW + 6));
    place.restore(&copy);
    let run = EngineRun::begin_at(&place.folder(), NOW + 9);
    assert_eq!((run.held.same_boot, run.held.untrusted_before_ms), (false, NOW + 10), "of an earlier hold");
}

/// An operator who restores a copy, uses it, and then restores the first store has run the same attempts twice.
#[test]
fn a_swapped_store_is_detected_when_it_is_restored() {
    let place = Place::new();
    let mut run = EngineRun::begin(&place.folder());
    run.work();
    let old = place.copy();
    run.settle();
    run.settle();
    drop(run);
    let aside = place.root.path().join("aside.db");
    fs::copy(place.database(), &aside).unwrap();
    place.restore(&old);
    drop(EngineRun::begin(&place.folder()));
    place.restore(&aside);
    assert!(!EngineRun::begin(&place.folder()).is_trusted());
}

#[test]
fn a_store_of_another_folder_is_detected() {
    let (place, other) = (Place::new(), Place::new());
    EngineRun::begin(&place.folder()).work();
    let mut run = EngineRun::begin(&other.folder());
    (0..9).for_each(|_| run.work());
    drop(run);
    place.restore(&other.copy());
    assert!(!EngineRun::begin(&place.folder()).is_trusted());
    let fresh = Place::new();
    fs::create_dir(fresh.folder()).unwrap();
    fresh.restore(&other.copy());
    assert!(!EngineRun::begin(&fresh.folder()).is_trusted(), "a folder in which nothing was ever done");
}

/// The whole folder, in the ways in which operators copy folders.
#[test]
fn a_restored_folder_is_detected() {
    let ways: [(&str, &[&str], bool); 4] = [
        ("in place of the folder", &["-a"], true),
        ("in place of the folder, with new times", &["-r"], true),
        ("over the files", &["-a"], false),
        ("over the files, with new times", &["-r"], false),
    ];
    for (name, options, is_removed) in ways {
        let place = Place::new();
        let mut run = EngineRun::begin(&place.folder());
        run.settle();
        drop(run);
        let copied = |from: &Path, to: &Path| {
            let status = Command::new("cp").args(options).arg(from.join(".")).arg(to).status().unwrap();
            assert!(status.success());
        };
        let aside = place.root.path().join("aside");
        fs::create_dir(&aside).unwrap();
        copied(&place.folder(), &aside);
        drop(EngineRun::begin(&place.folder()));
        let mut run = EngineRun::begin(&place.folder());
        run.settle();
        drop(run);
        if is_removed {
            fs::remove_dir_all(place.folder()).unwrap();
            fs::create_dir(place.folder()).unwrap();
        }
        copied(&aside, &place.folder());
        assert!(!EngineRun::begin(&place.folder()).is_trusted(), "{name}");
    }
}

#[test]
fn a_missing_or_damaged_note_proves_nothing() {
    let damages: [fn(&Path); 4] = [
        |note| fs::remove_file(note).unwrap(),
        |note| fs::write(note, "").unwrap(),
        |note| fs::write(note, "nonsense".repeat(10_000)).unwrap(),
        |note| fs::write(note, fs::read_to_string(note).unwrap().replace("frame 0", "frame 1")).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let place = Place::new();
        EngineRun::begin(&place.folder()).work();
        damage(&place.folder().join("generation"));
        assert!(!EngineRun::begin(&place.folder()).is_trusted(), "{number}");
        // The result is recorded in each case.
        let run = EngineRun::begin(&place.folder());
        assert_eq!((run.held.same_boot, run.held.untrusted_before_ms), (true, NOW + 1), "{number}");
    }
}

/// SQLite would write the pages of the log into a database that it does not belong to.
#[test]
fn a_database_beside_the_log_of_another_one_is_refused() {
    let place = Place::new();
    let mut run = EngineRun::begin(&place.folder());
    run.work();
    let copy = place.copy();
    run.settle();
    let log = place.folder().join("journal.db-wal");
    let kept = fs::read(&log).unwrap();
    drop(run);
    place.restore(&copy);
    fs::write(&log, kept).unwrap();
    let before = (fs::read(place.database()).unwrap(), fs::metadata(&log).unwrap().ino());
    let refused = DataDir::new(place.folder()).hold(&KEY).unwrap_err().to_string();
    assert!(refused.contains("journal.db-wal") && refused.contains("If a backup was restored"), "{refused}");
    assert_eq!((fs::read(place.database()).unwrap(), fs::metadata(&log).unwrap().ino()), before);
    fs::remove_file(&log).unwrap();
    assert!(!EngineRun::begin(&place.folder()).is_trusted());
}
