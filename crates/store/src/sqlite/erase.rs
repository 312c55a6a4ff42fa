//! Erases a payload so that no file contains its bytes any more.
//!
//! An UPDATE is not enough, not even with `secure_delete`, which clears freed space: when SQLite splits or merges
//! pages, it leaves copies of the moved rows in the unused part of the old page (`rebuildPage` in its btree.c).
//! Therefore rows of frames and blobs are only appended, and erased in place at the same length, so that they never
//! move. The inbox, whose rows come and go and may have contained the value, is rewritten. The log, which contains old
//! versions of the pages, is emptied.

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Subject};
use rusqlite::{Connection, OptionalExtension, params};

use super::{journal, notes};
use crate::{
    AuditedNotes,
    payloads::{Content, repack, unpack},
    sql::integer,
};

/// Erases the values that the notes name, and all late receipts of the execution.
pub(super) fn erase(
    connection: &Connection,
    execution: ExecutionKey,
    audited: &AuditedNotes<'_>,
) -> rusqlite::Result<usize> {
    let mut count = 0;
    for note in audited.notes {
        let Subject::Erased { sequence, place } = note.subject else { continue };
        if overwrite(connection, note.execution, sequence, usize::try_from(place).unwrap_or(usize::MAX))? {
            notes::put(connection, note)?;
            count += 1;
        }
    }
    count += connection.prepare_cached(sql!("journal.sql", "late_receipts_erase"))?.execute([execution.0])?;
    if count > 0 {
        connection.execute_batch(sql!("inbox.sql", "inbox_rewrite"))?;
        notes::append(connection, audited)?;
    }
    Ok(count)
}

/// Overwrites a value, and its blob if no other value refers to it. False if the value does not exist or was erased
/// before.
fn overwrite(connection: &Connection, execution: ExecutionKey, sequence: u64, index: usize) -> rusqlite::Result<bool> {
    let place = params![execution.0, integer(sequence)];
    let mut select = connection.prepare_cached(sql!("journal.sql", "values"))?;
    let column: Option<Vec<u8>> = select.query_row(place, |row| row.get(0)).optional()?;
    let Some(column) = column else { return Ok(false) };
    let mut values =
        unpack(&column).ok_or_else(|| journal::damaged(execution, sequence, "its values cannot be read"))?;
    let Some(value) = values.get_mut(index).filter(|value| !matches!(value.content, Content::Erased(_))) else {
        return Ok(false);
    };
    let before = value.content.clone();
    value.content = before.erased();
    value.salt = [0; 16];
    let sql = sql!("journal.sql", "values_overwrite");
    connection.prepare_cached(sql)?.execute(params![execution.0, integer(sequence), repack(&values)])?;
    if let Content::Blob(hash) = before {
        let_go(connection, hash)?;
    }
    Ok(true)
}

fn let_go(connection: &Connection, hash: Hash) -> rusqlite::Result<()> {
    connection.prepare_cached(sql!("journal.sql", "blob_release"))?.execute([hash.0])?;
    connection.prepare_cached(sql!("journal.sql", "blob_clear"))?.execute([hash.0])?;
    Ok(())
}

/// Checkpoints the log and empties it. False if a reader still needs it.
pub(super) fn clear_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)).map(|busy| !busy)
}
