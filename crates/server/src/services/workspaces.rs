//! Workspaces of executions with scripts: created before the start, removed after the end.
//!
//! A workspace is a folder with a random name. A note next to it names the start that it belongs to. The note is
//! written first, so that a server that is killed in between leaves nothing that a later sweep would miss.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use mainspring_kernel::{
    json::{compact, read},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::{ExecutionRow, Filter, Origin, Store, StoreError, is_final};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start<'a> {
    /// Id of the organization.
    pub(crate) organization: &'a str,
    /// Id of the workflow.
    pub(crate) workflow: &'a str,
    /// Idempotency key of the start.
    pub(crate) idempotency_key: &'a str,
    /// True if it may start detached children, which use the same workspace.
    pub(crate) detaches: bool,
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
            // The note is removed last, so that a failed removal is retried.
            removed += usize::from(fs::remove_file(&note).is_ok());
        }
    }
    Ok(removed)
}

/// Removes the workspaces of some executions that have ended, and returns the executions whose workspace was removed. With
/// `is_dry`, returns those whose workspace would be removed.
pub(crate) fn remove_of(
    store: &dyn Store,
    folder: &Path,
    executions: &BTreeSet<ExecutionKey>,
    (now_ms, is_dry): (u64, bool),
    remove: impl Fn(&Path) -> io::Result<()>,
) -> Result<BTreeSet<ExecutionKey>, StoreError> {
    let mut removed = BTreeSet::new();
    for note in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let value =
            Some(&note).filter(|note| note.extension().is_some_and(|end| end == NOTE)).and_then(|note| note_of(note));
        let Some(NoteOwner { row: Some(row), .. }) = value.map(|value| owner_of(store, &value)).transpose()?.flatten()
        else {
            continue;
        };
        if !executions.contains(&row.key) || !is_over(store, &note, now_ms, 0)? {
            continue;
        }
        let workspace = note.with_extension("");
        if is_dry || ((!workspace.exists() || remove(&workspace).is_ok()) && fs::remove_file(&note).is_ok()) {
            removed.insert(row.key);
        }
    }
    Ok(removed)
}

/// The start that a note identifies.
struct NoteOwner {
    organization: String,
    /// `None` if the start has no execution yet, or failed.
    row: Option<ExecutionRow>,
    detaches: bool,
}

/// Reads the start of a note; `None` if the note is invalid.
fn owner_of(store: &dyn Store, value: &Value) -> Result<Option<NoteOwner>, StoreError> {
    let text = |key: &str| value.get(key).and_then(Value::as_text);
    let (Some(organization), Some(workflow), Some(key)) =
        (text("organization"), text("workflow"), text("idempotencyKey"))
    else {
        return Ok(None);
    };
    let origin = Origin { organization: Some(organization), workflow_id: Some(workflow), workflow: None };
    let row = store.execution_by_idempotency_key(&origin, key)?;
    let detaches = value.get("detaches").and_then(Value::as_bool).unwrap_or(true);
    Ok(Some(NoteOwner { organization: organization.into(), row, detaches }))
}

/// True if no execution uses or will use the workspace of a note.
fn is_over(store: &dyn Store, note: &Path, now_ms: u64, keep_ms: u64) -> Result<bool, StoreError> {
    // An unreadable note does not identify its execution; the workspace is kept.
    let Some(NoteOwner { organization, row, detaches }) =
        note_of(note).map(|value| owner_of(store, &value)).transpose()?.flatten()
    else {
        return Ok(false);
    };
    let Some(row) = row else {
        return Ok(age_ms(note, now_ms).is_some_and(|age| age >= START_MS_MAX));
    };
    let ended = row.completed_at.filter(|_| is_final(&row.status));
    let keep_ms = if detaches { keep_ms.max(DETACHED_MS_MAX) } else { keep_ms };
    if ended.is_none_or(|ended| now_ms.saturating_sub(ended) < keep_ms) {
        return Ok(false);
    }
    Ok(!detaches || !has_detached(store, &organization)?)
}

/// True if a detached child execution is still active in the organization.
fn has_detached(store: &dyn Store, organization: &str) -> Result<bool, StoreError> {
    const ROWS: usize = 200;
    let statuses = ["pending", "running", "waiting_approval"].map(String::from).to_vec();
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
