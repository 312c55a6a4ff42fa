//! Rollback detection for audit logs: stores the last seen head of each log in a file outside of the store.
//!
//! A seal proves that this installation wrote a head, but not that the head is the latest. A store in which rows were
//! deleted and an older head was restored is consistent in itself. So each node writes the number and the hash of every
//! head that it has seen into a file beside the installation's key, and compares. The file lags behind the log by at
//! most [`WRITE_INTERVAL`].

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainspring_engine::Engine;
use mainspring_kernel::hash::{Hash, hex};
use mainspring_store::{Catalogue, ReadLimit, StoreError};
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{Organization, repository::Repository},
};

/// Interval of writing heads. After a machine crash the file may lack the latest entries, and a small write at this
/// rate costs nothing.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// Most bytes of the file that are read: some hundred thousand organizations.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Format of the file.
const FORMAT: &str = "mainspring-audit-heads/1";

/// The last seen heads, in a file.
#[derive(Debug)]
pub struct Marks {
    path: PathBuf,
    /// Files in which earlier processes of this store may have written; read only.
    others: Vec<PathBuf>,
    key: [u8; 32],
    /// Heads that this process has seen, so that a deleted file is written again.
    seen: Mutex<BTreeMap<String, Mark>>,
}

/// A head that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Number of the last entry.
    pub number: u64,
    /// Hash of the last entry.
    pub hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarksFile {
    format: String,
    organizations: BTreeMap<String, Mark>,
    /// HMAC-SHA-256 over both with the installation's key.
    seal: String,
}

/// Result of comparing all logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Number of the last entry, by organization.
    pub heads: BTreeMap<String, u64>,
    /// Defects, by organization.
    pub wrong: BTreeMap<String, String>,
}

impl Marks {
    /// Marks in a file below `folder`, created with the first head. `store` distinguishes stores that share a key: the
    /// path of a folder, or an address.
    pub fn of(folder: &Path, store: &str, key: [u8; 32]) -> Self {
        Self { path: file(folder, store), others: Vec::new(), key, seen: Mutex::default() }
    }

    /// Adds marks from another file. The highest head of an organization counts.
    pub fn and_in(mut self, folder: &Path, store: &str) -> Self {
        self.others.push(file(folder, store));
        self
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compares one log with its last seen head. Returns the defect and its remedy, or `None`.
    pub fn check(&self, catalogue: &dyn Catalogue, organization: &str) -> Result<Option<String>, StoreError> {
        match self.all() {
            Ok(all) => self.compare(catalogue, organization, all.get(organization)),
            Err(why) => Ok(Some(why)),
        }
    }

    fn compare(
        &self,
        catalogue: &dyn Catalogue,
        organization: &str,
        mark: Option<&Mark>,
    ) -> Result<Option<String>, StoreError> {
        let Some(Mark { number, hash }) = mark else { return Ok(None) };
        let wrong = |what: String| {
            let path = self.path.display();
            Some(format!(
                "{what}, and this node has recorded entry {number} before ({path}): the log was rolled back. If a backup was \
                 restored on purpose, move that file away"
            ))
        };
        let reaches = catalogue.audit_head(organization)?.map_or(0, |head| head.number);
        if reaches < *number {
            return Ok(wrong(format!("the log ends with entry {reaches}")));
        }
        let rows = catalogue.audit(organization, number.saturating_sub(1), ReadLimit::of(1))?;
        let is_same = rows.first().is_some_and(|row| row.number == *number && row.hash.hex() == *hash);
        Ok(if is_same { None } else { wrong(format!("entry {number} is another one")) })
    }

    /// Compares all logs with the last seen heads, and writes the current heads. A mark is never lowered.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the file cannot be written.
    pub fn record(&self, catalogue: &dyn Catalogue) -> Result<Compared> {
        let failed =
            |why: String| Problem::new(Code::InternalError, "The marks of audit logs cannot be stored.").because(why);
        let unwritten = |error: io::Error| failed(format!("{}: {error}", self.path.display()));
        // Another process of this store may use the same file; the lock keeps each from lowering the other's marks.
        let _locked = self.locked().map_err(unwritten)?;
        let mut all = self.all().map_err(failed)?;
        let (before, mut compared) = (all.clone(), Compared::default());
        for stored in Repository::of(catalogue, "").all::<Organization>(None) {
            let id = stored?.id;
            // Reads the head before the comparison, so that only compared heads are written.
            let head = catalogue.audit_head(&id)?;
            if let Some(wrong) = self.compare(catalogue, &id, all.get(&id))? {
                compared.wrong.insert(id, wrong);
                continue;
            }
            let Some(head) = head else {
                compared.wrong.insert(id, "the organization exists, and its audit log is empty".into());
                continue;
            };
            compared.heads.insert(id.clone(), head.number);
            all.insert(id, Mark { number: head.number, hash: head.hash.hex() });
        }
        for id in before.keys().filter(|id| !compared.heads.contains_key(*id)) {
            let gone = || {
                "the organization is not in the store any more, and this node has recorded its audit log".to_string()
            };
            compared.wrong.entry(id.clone()).or_insert_with(gone);
        }
        // Compares with the file instead of memory: an older file may have been restored.
        if read(&self.path, &self.key).map_err(failed)? != Some(all.clone()) {
            self.write(&all).map_err(unwritten)?;
        }
        *self.seen() = all;
        Ok(compared)
    }

    /// The union of the files and of this process's heads. The error says why a file is not valid.
    fn all(&self) -> Result<BTreeMap<String, Mark>, String> {
        let mut all = read(&self.path, &self.key)?.unwrap_or_default();
        let mut add = |more: &BTreeMap<String, Mark>| {
            for (id, seen) in more {
                if all.get(id).is_none_or(|mark| mark.number < seen.number) {
                    all.insert(id.clone(), seen.clone());
                }
            }
        };
        for other in &self.others {
            add(&read(other, &self.key)?.unwrap_or_default());
        }
        add(&self.seen());
        Ok(all)
    }

    /// Creates the folder, and locks it against other processes until the returned file is dropped.
    fn locked(&self) -> io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = File::open(folder)?;
        folder.lock()?;
        Ok(folder)
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Mark>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a temporary file and renames it: a crash leaves either the old file or the new one.
    fn write(&self, organizations: &BTreeMap<String, Mark>) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let seal = seal(&self.key, organizations).prefixed();
        let stored = MarksFile { format: FORMAT.into(), organizations: organizations.clone(), seal };
        let mut suffix = [0; 8];
        getrandom::fill(&mut suffix).map_err(io::Error::other)?;
        let whole = folder.join(format!(".heads-{}", hex(&suffix)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&whole)?;
        let written = serde_json::to_vec(&stored).map_err(io::Error::other).and_then(|text| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&whole, &self.path)?;
            File::open(folder)?.sync_all()
        });
        if written.is_err() {
            let _ = fs::remove_file(&whole);
        }
        written
    }
}

/// Path of a store's marks in a folder.
fn file(folder: &Path, store: &str) -> PathBuf {
    let name = Hash::of(store.as_bytes()).hex();
    folder.join("audit-heads").join(format!("{}.json", &name[..16]))
}

/// Reads and verifies a file; `None` if it does not exist. The error says why it is not valid.
fn read(path: &Path, key: &[u8; 32]) -> Result<Option<BTreeMap<String, Mark>>, String> {
    let failed = |why: String| {
        let path = path.display();
        format!("{path} cannot be believed: {why}. Compare the audit logs with an export, then move the file away")
    };
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(|error| failed(error.to_string()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let stored: MarksFile = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    if stored.format != FORMAT {
        return Err(failed(format!("its format is `{}`", stored.format)));
    }
    let sealed = Hash::parse(&stored.seal).unwrap_or_default();
    if !seal(key, &stored.organizations).equals_in_constant_time(&sealed) {
        return Err(failed("it is not sealed with this installation's key".into()));
    }
    Ok(Some(stored.organizations))
}

fn seal(key: &[u8; 32], organizations: &BTreeMap<String, Mark>) -> Hash {
    let text = serde_json::to_vec(organizations).unwrap_or_default();
    Hash::keyed(key, &[FORMAT.as_bytes(), &text])
}

/// Writes heads periodically until the task is dropped. Logs each defect once per organization and reason.
pub async fn keep(engine: Arc<Engine>, marks: Arc<Marks>) {
    let mut logged = BTreeMap::new();
    let mut interval = tokio::time::interval(WRITE_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        record(&engine, &marks, &mut logged).await;
    }
}

/// Writes heads once and logs the number of each, at the start and at the stop of a node.
pub async fn record_and_log(engine: &Arc<Engine>, marks: &Arc<Marks>) {
    for (organization, number) in record(engine, marks, &mut BTreeMap::new()).await.heads {
        tracing::info!(organization, number, "the audit log ends with this entry");
    }
}

async fn record(engine: &Arc<Engine>, marks: &Arc<Marks>, logged: &mut BTreeMap<String, String>) -> Compared {
    let (engine, marks) = (engine.clone(), marks.clone());
    let compared = tokio::task::spawn_blocking(move || marks.record(engine.store().catalogue()));
    match compared.await.unwrap_or_else(|error| Err(Problem::new(Code::InternalError, error.to_string()))) {
        Ok(compared) => {
            for (organization, wrong) in &compared.wrong {
                if logged.insert(organization.clone(), wrong.clone()).as_ref() != Some(wrong) {
                    tracing::error!(organization, wrong, "an audit log was changed");
                }
            }
            compared
        }
        Err(problem) => {
            tracing::error!(why = problem.full_message(), "the heads of audit logs were not recorded");
            Compared::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mainspring_store::{AuditEntry, Change, memory::MemoryStore};

    use super::*;
    use crate::resources::{Limits, repository::apply};

    const KEY: [u8; 32] = [7; 32];

    /// A store with an organization whose log has the given number of entries; `name` makes their content differ.
    fn store(entries: u64, name: &str) -> MemoryStore {
        let store = MemoryStore::new();
        let body = Organization {
            name: "Acme".into(),
            created_at: 0,
            features: BTreeMap::new(),
            limits: Limits::default(),
            verdicts: BTreeMap::new(),
        };
        let puts = vec![Repository::of(&store, "").put("acme", &body, 0).unwrap()];
        let audit = (0..entries).map(|number| AuditEntry {
            organization: "acme".into(),
            at: number,
            actor: name.into(),
            action: "member.create".into(),
            target: "m".into(),
            detail: Vec::new(),
        });
        let change = Change { puts, audit: audit.collect(), sealing: KEY, ..Change::default() };
        apply(&store, &change).unwrap().unwrap();
        store
    }

    fn marks(folder: &Path) -> Marks {
        Marks::of(folder, "/state", KEY)
    }

    #[test]
    fn a_rolled_back_or_deleted_log_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let compared = marks(folder.path()).record(&store(5, "ada")).unwrap();
        assert_eq!((compared.heads.get("acme"), compared.wrong.len()), (Some(&5), 0));
        let check = |store: &MemoryStore| marks(folder.path()).check(store, "acme").unwrap();
        assert_eq!(check(&store(5, "ada")), None);
        assert_eq!(check(&store(7, "ada")), None, "what is added is no fault");
        for (store, text) in [
            (store(4, "ada"), "ends with entry 4"),
            (store(0, "ada"), "ends with entry 0"),
            (MemoryStore::new(), "ends with entry 0"),
            (store(9, "eve"), "entry 5 is another one"),
        ] {
            assert!(check(&store).is_some_and(|why| why.contains(text)), "{text}");
            let compared = marks(folder.path()).record(&store).unwrap();
            assert!(compared.wrong.contains_key("acme"), "{text}");
        }
        // No defect has lowered the mark.
        assert_eq!(check(&store(5, "ada")), None);
        assert!(check(&store(4, "ada")).is_some());
    }

    #[test]
    fn a_forged_file_is_rejected_and_a_deleted_file_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let (marks, log) = (marks(folder.path()), store(5, "ada"));
        marks.record(&log).unwrap();
        let text = fs::read_to_string(marks.path()).unwrap();
        for changed in [text.replace(":5,", ":4,"), text.replace("acme", "acne"), String::new()] {
            assert_ne!(changed, text);
            fs::write(marks.path(), changed).unwrap();
            let why = Marks::of(folder.path(), "/state", KEY).check(&log, "acme").unwrap().unwrap();
            assert!(why.contains("cannot be believed"), "{why}");
            assert!(marks.record(&log).is_err());
        }
        fs::remove_file(marks.path()).unwrap();
        assert!(marks.record(&store(4, "ada")).unwrap().wrong.contains_key("acme"), "this process remembers");
        assert!(marks.path().exists());
        assert!(Marks::of(folder.path(), "/state", KEY).check(&store(4, "ada"), "acme").unwrap().is_some());
        let other = Marks::of(folder.path(), "/other", KEY);
        assert_eq!(other.check(&store(1, "ada"), "acme").unwrap(), None, "each store has a file of its own");
    }

    #[test]
    fn a_restored_older_file_is_rewritten_without_new_entries() {
        let folder = tempfile::tempdir().unwrap();
        let (marks, log) = (marks(folder.path()), store(5, "ada"));
        marks.record(&store(3, "ada")).unwrap();
        let older = fs::read(marks.path()).unwrap();
        marks.record(&log).unwrap();
        fs::write(marks.path(), older).unwrap();
        marks.record(&log).unwrap();
        let next = Marks::of(folder.path(), "/state", KEY);
        assert!(next.check(&store(4, "ada"), "acme").unwrap().is_some());
    }

    #[test]
    fn the_highest_mark_of_all_files_counts() {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        marks(one.path()).record(&store(3, "ada")).unwrap();
        marks(two.path()).record(&store(5, "ada")).unwrap();
        for (first, second) in [(&one, &two), (&two, &one)] {
            let both = Marks::of(first.path(), "/state", KEY).and_in(second.path(), "/state");
            assert!(both.check(&store(4, "ada"), "acme").unwrap().is_some());
            assert_eq!(both.check(&store(5, "ada"), "acme").unwrap(), None);
        }
    }

    #[test]
    fn an_organization_without_a_log_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let compared = marks(folder.path()).record(&store(0, "ada")).unwrap();
        assert!(compared.wrong["acme"].contains("is empty"));
    }
}
