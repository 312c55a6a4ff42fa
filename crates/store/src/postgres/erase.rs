//! Erases a payload. The guarantee has a limit that is the operator's responsibility.
//!
//! When `erase` returns, no statement returns the value any more: its row contains an empty value of the same form and
//! length, and its blob is deleted if no other value refers to it. PostgreSQL keeps overwritten data elsewhere, where
//! no SQL can reach it:
//! - the old version of the row, and of messages that contained the value, stays in the files of the tables until
//!   VACUUM frees its space (autovacuum does that within minutes; `VACUUM FULL` rewrites the files at once, and locks
//!   them);
//! - the write-ahead log contains both until it is recycled; archives of it, standbys and backups contain them for as
//!   long as the operator keeps these.

use mainspring_kernel::{
    key::ExecutionKey,
    note::{Note, Subject},
};

use super::{
    columns,
    connections::{Session, ask},
    error::Fault,
    journal, notes,
    writes::Writes,
};
use crate::{
    AuditedNotes,
    payloads::{Content, repack, unpack},
    sql::integer,
};

/// Erases the values that the notes name, and all late receipts of the execution.
pub(super) async fn erase(
    session: &Session,
    execution: ExecutionKey,
    audited: &AuditedNotes<'_>,
) -> Result<usize, Fault> {
    notes::begin(session).await?;
    let mut erased: Vec<&Note> = Vec::new();
    for note in audited.notes {
        let Subject::Erased { sequence, place } = note.subject else { continue };
        if overwrite(session, note.execution, sequence, usize::try_from(place).unwrap_or(usize::MAX)).await? {
            erased.push(note);
        }
    }
    let late = session.query(sql!("journal.sql", "late_receipts_erase"), &[&&execution.0[..]]).await?;
    let count = erased.len() + late.len();
    let mut writes = Writes::default();
    notes::put(&mut writes, &erased);
    let audit = if count == 0 { &[][..] } else { audited.audit };
    notes::end(session, writes, &AuditedNotes { audit, ..*audited }).await?;
    Ok(count)
}

/// Overwrites a value, and its blob if no other value refers to it. False if the value does not exist or was erased
/// before.
async fn overwrite(session: &Session, execution: ExecutionKey, sequence: u64, index: usize) -> Result<bool, Fault> {
    let (key, place) = (&execution.0[..], integer(sequence));
    let rows = session.query(sql!("journal.sql", "values_lock"), &[&key, &place]).await?;
    let Some(found) = rows.first() else { return Ok(false) };
    let mut values = unpack(columns::column(found, 0)?)
        .ok_or_else(|| journal::damaged(execution, sequence, "its values cannot be read"))?;
    let Some(value) = values.get_mut(index).filter(|value| !matches!(value.content, Content::Erased(_))) else {
        return Ok(false);
    };
    let before = value.content.clone();
    value.content = before.erased();
    value.salt = [0; 16];
    let column = repack(&values);
    let mut requests = vec![ask(sql!("journal.sql", "values_overwrite"), &[&key, &place, &column])];
    let hash = match before {
        Content::Blob(hash) => hash.0.to_vec(),
        _ => Vec::new(),
    };
    if !hash.is_empty() {
        requests.push(ask(sql!("journal.sql", "blob_release"), &[&hash]));
        requests.push(ask(sql!("journal.sql", "blob_remove"), &[&hash]));
    }
    session.round(&requests).await?;
    Ok(true)
}
