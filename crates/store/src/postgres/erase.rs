//! Erasing a payload: what is promised, and what is the operator's.
//!
//! When `erase` returns, no statement gives the value any more, to anybody: its row holds a value of the same form and
//! length with nothing in it, and its blob is gone if nothing else names it. PostgreSQL keeps what it has overwritten
//! elsewhere, and no program that speaks SQL can reach it there:
//! - the old version of the row, and of letters that carried the value into the store, lies in the files of the tables until
//!   VACUUM gives its place to another (autovacuum does that within minutes; `VACUUM FULL` writes the files anew at once,
//!   and locks them);
//! - the write-ahead log has both, until it is recycled; archives of it, standbys and backups for as long as the operator
//!   keeps them.

use mainspring_kernel::{
    key::ExecutionKey,
    note::{Note, Subject},
};

use super::{
    connections::{Session, ask},
    failure::Fault,
    journal, notes, row,
    writes::Writes,
};
use crate::{
    Noted,
    number::integer,
    values::{Content, repack, unpack},
};

/// Erases what the notes say, and all late receipts of the execution.
pub(super) async fn erase(session: &Session, execution: ExecutionKey, noted: &Noted<'_>) -> Result<usize, Fault> {
    notes::begin(session).await?;
    let mut erased: Vec<&Note> = Vec::new();
    for note in noted.notes {
        let Subject::Erased { sequence, place } = note.subject else { continue };
        if overwrite(session, note.execution, sequence, usize::try_from(place).unwrap_or(usize::MAX)).await? {
            erased.push(note);
        }
    }
    let late = session.query(include_str!("sql/late_clear.sql"), &[&&execution.0[..]]).await?;
    let count = erased.len() + late.len();
    let mut writes = Writes::default();
    notes::put(&mut writes, &erased);
    let audit = if count == 0 { &[][..] } else { noted.audit };
    notes::end(session, writes, &Noted { audit, ..*noted }).await?;
    Ok(count)
}

/// Overwrites the value, and its blob if nothing else names it. False if there is none or it was erased before.
async fn overwrite(session: &Session, execution: ExecutionKey, sequence: u64, index: usize) -> Result<bool, Fault> {
    let (key, place) = (&execution.0[..], integer(sequence));
    let rows = session.query(include_str!("sql/values_lock.sql"), &[&key, &place]).await?;
    let Some(found) = rows.first() else { return Ok(false) };
    let mut values = unpack(row::column(found, 0)?)
        .ok_or_else(|| journal::damaged(execution, sequence, "its values cannot be read"))?;
    let Some(value) = values.get_mut(index).filter(|value| !matches!(value.content, Content::Erased(_))) else {
        return Ok(false);
    };
    let before = value.content.clone();
    value.content = before.erased();
    value.salt = [0; 16];
    let column = repack(&values);
    let mut requests = vec![ask(include_str!("sql/values_overwrite.sql"), &[&key, &place, &column])];
    let hash = match before {
        Content::Blob(hash) => hash.0.to_vec(),
        _ => Vec::new(),
    };
    if !hash.is_empty() {
        requests.push(ask(include_str!("sql/blob_let_go.sql"), &[&hash]));
        requests.push(ask(include_str!("sql/blob_remove.sql"), &[&hash]));
    }
    session.round(&requests).await?;
    Ok(true)
}
