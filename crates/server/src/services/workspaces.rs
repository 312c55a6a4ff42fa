//! Workspaces of executions with scripts: created before the start, removed after the end.
//!
//! A workspace is a folder with a random name. A note next to it names the start that it belongs to. The note is
//! written first, so that a server that is killed in between leaves nothing that a later sweep would miss.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use mainspring_effects::git::CHECKED_OUT;
use mainspring_kernel::{
    input::REPOSITORY_IN_TRIGGER,
    json::{compact, read},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::{ExecutionRow, Filter, Origin, Store, StoreError, is_final};

use crate::services::drains::UNFINISHED;

/// File extension of a note.
const NOTE: &str = "start";

/// Prefix of folders that were moved out of a deeply nested workspace during its removal.
const REMOVED: &str = ".mainspring-removed-";

/// Most bytes of a note: organization, workflow and idempotency key, each of which is bounded.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// Longest time from a note to its execution: the start may wait in an inbox while no node runs.
const START_MS_MAX: u64 = 24 * 3_600_000;

/// Longest time from the end of an execution to the start of its detached children.
const DETACHED_MS_MAX: u64 = 3_600_000;

/// The start that a workspace belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start<'a> {
    /// Id of the organization.
    pub(crate) organization: &'a str,
    /// Id of the workflow.
    pub(crate) workflow: &'a str,
    /// Idempotency key of the start.
    pub(crate) idempotency_key: &'a str,
    /// True if it may start detached children, which use the same workspace.
    pub(crate) detaches: bool,
    /// The pinned repository whose files the workspace has before its first script.
    pub(crate) repository: Option<&'a Value>,
}

/// Creates a workspace with access for its owner only, independent of the umask; missing parent folders get the same
/// mode.
pub(crate) fn create(path: &Path, start: &Start<'_>) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    folder.recursive(true).mode(0o700);
    path.parent().map_or(Ok(()), |parent| folder.create(parent))?;
    let note = Value::map([
        ("organization", Value::from(start.organization)),
        ("workflow", start.workflow.into()),
        ("idempotencyKey", start.idempotency_key.into()),
        ("detaches", start.detaches.into()),
        (REPOSITORY_IN_TRIGGER, start.repository.cloned().unwrap_or_default()),
    ]);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.with_extension(NOTE))?;
    file.write_all(compact(&note).as_bytes())?;
    folder.create(path)
}

/// Removes an unused workspace.
pub(crate) fn discard(path: &Path) {
    let _ = fs::remove_dir(path);
    let _ = fs::remove_file(path.with_extension(NOTE));
}

/// Removes the file that says that the checkout of a repository is complete.
fn forget_checkout(note: &Path) {
    let _ = fs::remove_file(note.with_extension(CHECKED_OUT));
}

/// Removes workspaces of executions that ended at least `keep_ms` ago, and counts them. `remove` deletes a folder tree
/// that scripts may have made hard to delete. Folders without a note are left alone.
pub fn sweep(
    store: &dyn Store,
    folder: &Path,
    (now_ms, keep_ms): (u64, u64),
    remove: impl Fn(&Path) -> io::Result<()>,
) -> Result<usize, StoreError> {
    let mut removed = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let note = entry.path();
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            // Left by a server that stopped during a removal. Another server may be removing it.
            let _ = remove(&note);
            continue;
        }
        if note.extension().is_none_or(|extension| extension != NOTE) || !is_over(store, &note, now_ms, keep_ms)? {
            continue;
        }
        let workspace = note.with_extension("");
        if !workspace.exists() || remove(&workspace).is_ok() {
            forget_checkout(&note);
            // The note is removed last, so that a failed removal is retried.
            removed += usize::from(fs::remove_file(&note).is_ok());
        }
    }
    Ok(removed)
}

/// A workspace that no execution uses any more.
#[derive(Debug)]
pub(crate) struct UnusedWorkspace {
    /// The execution that used it.
    pub(crate) execution: ExecutionKey,
    note: PathBuf,
}

impl UnusedWorkspace {
    /// Removes the workspace. False if that failed; the note stays then, so that it is tried again later.
    pub(crate) fn remove(&self, remove: impl Fn(&Path) -> io::Result<()>) -> bool {
        let workspace = self.note.with_extension("");
        if workspace.exists() && remove(&workspace).is_err() {
            return false;
        }
        forget_checkout(&self.note);
        fs::remove_file(&self.note).is_ok()
    }
}

/// Finds the workspaces of some ended executions of an organization. Each note is read once, and no execution is looked up.
pub(crate) fn unused_of(
    store: &dyn Store,
    folder: &Path,
    (organization, rows): (&str, &[ExecutionRow]),
    now_ms: u64,
) -> Result<Vec<UnusedWorkspace>, StoreError> {
    let start_of = |row: &ExecutionRow| {
        let is_theirs = row.organization.as_deref() == Some(organization);
        is_theirs.then_some((row.workflow_id.clone()?, row.idempotency_key.clone()?))
    };
    let by_start: BTreeMap<(String, String), &ExecutionRow> =
        rows.iter().filter_map(|row| Some((start_of(row)?, row))).collect();
    let mut unused = Vec::new();
    if by_start.is_empty() {
        return Ok(unused);
    }
    let mut detached = None;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let note = entry.path();
        let is_note = note.extension().is_some_and(|extension| extension == NOTE);
        let Some(start) = is_note.then(|| note_of(&note)).flatten().and_then(|value| RecordedStart::of(&value)) else {
            continue;
        };
        let row = by_start.get(&(start.workflow, start.idempotency_key));
        let Some(row) = row.filter(|_| start.organization == organization) else { continue };
        if !has_ended_for(row, start.detaches, now_ms, 0) {
            continue;
        }
        if start.detaches {
            let is_used = match detached {
                Some(is_used) => is_used,
                None => *detached.insert(has_detached(store, organization)?),
            };
            if is_used {
                continue;
            }
        }
        unused.push(UnusedWorkspace { execution: row.key, note });
    }
    Ok(unused)
}

/// The start that a note identifies.
struct RecordedStart {
    organization: String,
    workflow: String,
    idempotency_key: String,
    detaches: bool,
}

impl RecordedStart {
    /// Reads the content of a note; `None` if it is invalid.
    fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_text).map(String::from);
        let detaches = value.get("detaches").and_then(Value::as_bool).unwrap_or(true);
        let (organization, workflow) = (text("organization")?, text("workflow")?);
        Some(Self { organization, workflow, idempotency_key: text("idempotencyKey")?, detaches })
    }
}

/// True if no execution uses or will use the workspace of a note.
fn is_over(store: &dyn Store, note: &Path, now_ms: u64, keep_ms: u64) -> Result<bool, StoreError> {
    // An unreadable note does not identify its execution; the workspace is kept.
    let Some(start) = note_of(note).and_then(|value| RecordedStart::of(&value)) else { return Ok(false) };
    let origin = Origin { organization: Some(&start.organization), workflow_id: Some(&start.workflow), workflow: None };
    // A start without an execution has none yet, or failed.
    let Some(row) = store.execution_by_idempotency_key(&origin, &start.idempotency_key)? else {
        return Ok(age_ms(note, now_ms).is_some_and(|age| age >= START_MS_MAX));
    };
    Ok(has_ended_for(&row, start.detaches, now_ms, keep_ms)
        && !(start.detaches && has_detached(store, &start.organization)?))
}

/// True if an execution ended at least `keep_ms` ago, and long enough ago to have no more detached children that start.
fn has_ended_for(row: &ExecutionRow, detaches: bool, now_ms: u64, keep_ms: u64) -> bool {
    let ended = row.completed_at.filter(|_| is_final(&row.status));
    let keep_ms = if detaches { keep_ms.max(DETACHED_MS_MAX) } else { keep_ms };
    ended.is_some_and(|ended| now_ms.saturating_sub(ended) >= keep_ms)
}

/// True if a detached child execution is still active in the organization.
fn has_detached(store: &dyn Store, organization: &str) -> Result<bool, StoreError> {
    const ROWS: usize = 200;
    let statuses = UNFINISHED.map(String::from).to_vec();
    let filter = Filter { statuses, organization: Some(organization.into()), ..Filter::default() };
    let mut before = None;
    loop {
        let rows = store.executions(&filter, before, ROWS)?;
        if rows.iter().any(|row| row.trigger_type == "subworkflow_detached") {
            return Ok(true);
        }
        match rows.last() {
            Some(last) if rows.len() == ROWS => before = Some(last.key),
            _ => return Ok(false),
        }
    }
}

fn note_of(path: &Path) -> Option<Value> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    read(&bytes).ok().map(|document| document.value)
}

fn age_ms(path: &Path, now_ms: u64) -> Option<u64> {
    let changed = fs::metadata(path).ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    now_ms.checked_sub(changed.as_millis().try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::execution_sessions::tests::{row, store};

    fn ended(number: u8, key: &str) -> ExecutionRow {
        ExecutionRow {
            status: "completed".into(),
            completed_at: Some(1),
            idempotency_key: Some(key.into()),
            ..row(number, None)
        }
    }

    fn make(folder: &Path, name: &str, key: &str, detaches: bool) -> PathBuf {
        let path = folder.join(name);
        create(
            &path,
            &Start { organization: "acme", workflow: "w:1", idempotency_key: key, detaches, repository: None },
        )
        .unwrap();
        path
    }

    fn executions(unused: &[UnusedWorkspace]) -> Vec<u8> {
        let mut numbers: Vec<u8> = unused.iter().map(|one| one.execution.0[0]).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn only_listed_workspaces_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let running = ExecutionRow { idempotency_key: Some("c".into()), ..row(3, None) };
        let of_others = ExecutionRow { organization: Some("globex".into()), ..ended(4, "d") };
        let rows = [ended(1, "a"), ended(2, "b"), running, of_others, row(5, None)];
        let store = store(rows.clone());
        let paths = ["a", "b", "c", "d", "unknown"].map(|key| make(folder.path(), key, key, false));
        fs::write(folder.path().join("unreadable.start"), "{").unwrap();
        let foreign =
            Start { organization: "globex", workflow: "w:1", idempotency_key: "a", detaches: false, repository: None };
        create(&folder.path().join("foreign"), &foreign).unwrap();
        let find = |rows: &[ExecutionRow]| unused_of(&store, folder.path(), ("acme", rows), 9).unwrap();
        assert_eq!(executions(&find(&rows[2..])), [0; 0]);
        let unused = find(&rows);
        assert_eq!(executions(&unused), [1, 2]);
        // Another workspace of the same start is not among them, and a note is not read again.
        let later = make(folder.path(), "later", "a", false);
        fs::write(paths[1].with_extension(NOTE), "{").unwrap();
        assert!(unused.iter().all(|one| one.remove(|path| fs::remove_dir(path))));
        assert_eq!(paths.map(|path| path.exists()), [false, false, true, true, true]);
        assert!(later.exists());
        let [left] = &find(&rows)[..] else { panic!("one is left") };
        assert!(!left.remove(|_| Err(io::ErrorKind::Other.into())), "a failed removal is reported");
        assert_eq!(executions(&find(&rows)), [1], "and its note stays");
    }

    #[test]
    fn a_workspace_of_detached_children_is_used_until_they_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), "a", "a", true);
        let rows = [ended(1, "a")];
        let child = |status: &str| ExecutionRow { status: status.into(), ..row(2, Some(1)) };
        let find = |child: ExecutionRow, now: u64| {
            let store = store(rows.iter().cloned().chain([child]));
            executions(&unused_of(&store, folder.path(), ("acme", &rows), now).unwrap())
        };
        for status in UNFINISHED {
            assert_eq!(find(child(status), 1 + DETACHED_MS_MAX), [0; 0], "{status}");
        }
        assert_eq!(find(child("completed"), DETACHED_MS_MAX), [0; 0], "one may still start");
        assert_eq!(find(child("completed"), 1 + DETACHED_MS_MAX), [1]);
    }
}
