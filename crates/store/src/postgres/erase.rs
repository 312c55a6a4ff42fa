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

use mainspring_kernel::key::ExecutionKey;

use super::{
    connections::{Session, ask},
    failure::Fault,
    journal, row,
};
use crate::{
    number::integer,
    values::{Content, repack, unpack},
};

/// Overwrites the value, and its blob if nothing else names it. False if there is none or it was erased before.
pub(super) async fn overwrite(
    session: &Session,
    execution: ExecutionKey,
    sequence: u64,
    index: usize,
) -> Result<bool, Fault> {
    let (key, place) = (&execution.0[..], integer(sequence));
    let sql = include_str!("sql/values_lock.sql");
    let answers = session.round(&[ask("BEGIN", &[]), ask(sql, &[&key, &place])]).await?;
    let Some(found) = answers[1].first() else { return ended(session).await };
    let mut values = unpack(row::column(found, 0)?)
        .ok_or_else(|| journal::damaged(execution, sequence, "its values cannot be read"))?;
    let Some(value) = values.get_mut(index).filter(|value| !matches!(value.content, Content::Erased(_))) else {
        return ended(session).await;
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
    requests.push(ask("COMMIT", &[]));
    session.round(&requests).await?;
    Ok(true)
}

/// There was nothing to do.
async fn ended(session: &Session) -> Result<bool, Fault> {
    session.query("ROLLBACK", &[]).await?;
    Ok(false)
}
