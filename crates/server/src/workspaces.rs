//! Workspaces of executions that have scripts: made before the execution begins, removed when it has ended.
//!
//! A workspace is a folder with a random name, and a note beside it says which start it is for. The note is written first:
//! a server that is killed in between leaves nothing that is not removed later.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use mainspring_kernel::{
    json::{compact, read},
    value::Value,
};
use mainspring_store::{Filter, Origin, Store, StoreError, is_final};

/// The ending of a note's name, behind that of its workspace.
const NOTE: &str = "start";

/// How names of folders begin that lay too deep in a workspace which was being removed.
const REMOVED: &str = ".mainspring-removed-";

/// Bytes of a note: an organization, a workflow and an idempotency key, which are bounded each.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// How long the start of a note may take to become an execution: it may lie in an inbox while no node works.
const START_MS_MAX: u64 = 24 * 3_600_000;

/// How long after the end of an execution those that it has started without waiting for them may take to begin.
const DETACHED_MS_MAX: u64 = 3_600_000;

/// The start that a workspace is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start<'a> {
    /// Whose execution it is.
    pub(crate) organization: &'a str,
    /// The workflow's id.
    pub(crate) workflow: &'a str,
    /// The key under which the workflow is started once.
    pub(crate) idempotency_key: &'a str,
    /// Whether it may start others that it does not wait for, which work in the same folder.
    pub(crate) detaches: bool,
}

/// Makes a workspace that its owner alone can enter, whatever the umask is, and the folders above it likewise.
pub(crate) fn make(path: &Path, start: &Start<'_>) -> io::Result<()> {
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

/// Removes a workspace that nothing has worked in.
pub(crate) fn discard(path: &Path) {
    let _ = fs::remove_dir(path);
    let _ = fs::remove_file(path.with_extension(NOTE));
}

/// Removes the workspaces of executions that have ended so many milliseconds ago, and counts them. `remove` removes a folder
/// with all that is in it, which a script may have made as hard to remove as it can. Folders without a note are left.
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
            // What a server has left that ended while it removed a workspace. Another one may be removing it.
            let _ = remove(&note);
            continue;
        }
        if note.extension().is_none_or(|extension| extension != NOTE) || !is_over(store, &note, now_ms, keep_ms)? {
            continue;
        }
        let workspace = note.with_extension("");
        if !workspace.exists() || remove(&workspace).is_ok() {
            // Last, so that a folder which could not be removed is tried again.
            removed += usize::from(fs::remove_file(&note).is_ok());
        }
    }
    Ok(removed)
}

/// Whether nobody works in the workspace of a note any more, and nobody will.
fn is_over(store: &dyn Store, note: &Path, now_ms: u64, keep_ms: u64) -> Result<bool, StoreError> {
    // One that cannot be read says nothing of its execution.
    let Some(value) = note_of(note) else { return Ok(false) };
    let text = |key: &str| value.get(key).and_then(Value::as_text);
    let (Some(organization), Some(workflow), Some(key)) =
        (text("organization"), text("workflow"), text("idempotencyKey"))
    else {
        return Ok(false);
    };
    let origin = Origin { organization: Some(organization), workflow_id: Some(workflow), workflow: None };
    let Some(row) = store.execution_by_idempotency_key(&origin, key)? else {
        return Ok(age_ms(note, now_ms).is_some_and(|age| age >= START_MS_MAX));
    };
    let ended = row.completed_at.filter(|_| is_final(&row.status));
    let detaches = value.get("detaches").and_then(Value::as_bool).unwrap_or(true);
    let keep_ms = if detaches { keep_ms.max(DETACHED_MS_MAX) } else { keep_ms };
    if ended.is_none_or(|ended| now_ms.saturating_sub(ended) < keep_ms) {
        return Ok(false);
    }
    Ok(!detaches || !has_detached(store, organization)?)
}

/// Whether an execution goes on that another one has started and does not wait for.
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
