//! Idempotency keys of a state folder: each names the first execution that used it.
//!
//! Executions have separate folders and share no store, so a file for each key contains the execution's id. The
//! file name is a hash, so a key may be any text.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use mainspring_kernel::hash::Hash;

use crate::error::CliError;

/// The folder of the key files. Folders of executions never start with a dot.
const KEYS: &str = ".idempotency";

/// Returns the first execution with this key and workflow. A new key is written to disk for this execution first.
/// Workflows without a name share their keys.
pub(super) fn first_of(base: &Path, workflow: Option<&str>, key: &str, execution_id: &str) -> Result<String, CliError> {
    let folder = base.join(KEYS);
    let claimed = claim(&folder, &file_name(workflow, key), execution_id);
    claimed.map_err(|error| {
        let message = format!(
            "the idempotency key cannot be stored in {}: {error}; make that folder writable, or use another with --state-dir",
            folder.display()
        );
        CliError::bad_input("idempotency_key_not_kept", message)
    })
}

fn file_name(workflow: Option<&str>, key: &str) -> String {
    // The length marks the end of the name, so different pairs of name and key give different texts.
    let (kind, name) = workflow.map_or(("unnamed", ""), |name| ("named", name));
    Hash::of(format!("{kind} {}:{name}{key}", name.len()).as_bytes()).hex()
}

/// Creates the file by a hard link, so it appears complete. If several processes race, one wins and all read its
/// id.
fn claim(folder: &Path, name: &str, execution_id: &str) -> io::Result<String> {
    let file = folder.join(name);
    if let Some(first) = read(&file)? {
        return Ok(first);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(format!("{name}.{}", std::process::id()));
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    written.write_all(execution_id.as_bytes())?;
    written.sync_all()?;
    let linked = fs::hard_link(&draft, &file);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => {
            File::open(folder)?.sync_all()?;
            read(&file)?.ok_or_else(|| ErrorKind::NotFound.into())
        }
    }
}

fn read(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_keeps_its_first_execution_per_workflow() {
        let base = tempfile::tempdir().unwrap();
        let first = |workflow, key, id| first_of(base.path(), workflow, key, id).unwrap();
        assert_eq!(first(Some("ship"), "k", "a"), "a");
        assert_eq!(first(Some("ship"), "k", "b"), "a");
        assert_eq!(first(Some("other"), "k", "b"), "b");
        assert_eq!(first(None, "k", "c"), "c");
        assert_eq!(first(Some(""), "k", "d"), "d", "a name that is empty is a name");
        assert_eq!(first(Some("ship"), "../k", "e"), "e");
        assert_eq!((first(Some("a"), "bk", "f"), first(Some("ab"), "k", "g")), ("f".into(), "g".into()));
        assert_eq!(fs::read_dir(base.path().join(KEYS)).unwrap().count(), 7, "nothing else is left");
    }
}
