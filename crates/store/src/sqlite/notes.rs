//! Notes beside journals, and quarantine.

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::{Note, Subject},
};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};

use super::{audit, executions, journal};
use crate::{
    AuditedNotes, AwaitingParent, FORCED_END, QuarantineRelease, QuarantinedRow, ReleaseOutcome, RowChange,
    sql::{integer, natural, only},
};

/// Stores a note, unless its subject has one.
pub(super) fn put(connection: &Connection, note: &Note) -> rusqlite::Result<()> {
    let (subject, sequence, place) = match note.subject {
        Subject::Erased { sequence, place } => (0, integer(sequence), integer(place)),
        Subject::Ended => (1, 0, 0),
    };
    let Note { execution, at, by, reason, seal, .. } = note;
    let values = params![execution.0, subject, sequence, place, integer(*at), by, reason, seal.0];
    connection.prepare_cached(sql!("journal.sql", "note_put"))?.execute(values).map(drop)
}

pub(super) fn list(connection: &Connection, execution: ExecutionKey) -> rusqlite::Result<Vec<Note>> {
    let note = |row: &Row<'_>| {
        let (sequence, place) = (natural(row.get(1)?), natural(row.get(2)?));
        let subject = match row.get::<_, i64>(0)? {
            0 => Subject::Erased { sequence, place },
            _ => Subject::Ended,
        };
        let (at, by, reason, seal) = (natural(row.get(3)?), row.get(4)?, row.get(5)?, Hash(row.get(6)?));
        Ok(Note { execution, subject, at, by, reason, seal })
    };
    connection.prepare_cached(sql!("journal.sql", "notes"))?.query_map([execution.0], note)?.collect()
}

pub(super) fn release(connection: &Connection, release: &QuarantineRelease<'_>) -> rusqlite::Result<ReleaseOutcome> {
    let QuarantineRelease { execution, parent, audited } = release;
    if let Some(AwaitingParent { execution, head, .. }) = parent {
        let found = journal::head(connection, *execution)?;
        let head = (head.sequence, head.hash);
        if found.is_none_or(|row| (row.head.sequence, row.head.hash) != head) {
            return Ok(ReleaseOutcome::ParentMoved);
        }
    }
    if connection.prepare_cached(sql!("executions.sql", "release_quarantine"))?.execute([execution.0])? == 0 {
        return Ok(ReleaseOutcome::NotQuarantined);
    }
    if let Some(AwaitingParent { execution, notice, .. }) = parent {
        let consume = sql!("inbox.sql", "message_remove");
        connection.prepare_cached(consume)?.execute(params![execution.0, notice])?;
    }
    append(connection, audited)?;
    Ok(ReleaseOutcome::Released)
}

pub(super) fn force_end(connection: &Connection, audited: &AuditedNotes<'_>) -> rusqlite::Result<bool> {
    let Some(note) = audited.notes.first() else { return Ok(false) };
    let execution = note.execution.0;
    if connection.prepare_cached(sql!("executions.sql", "head_force_end"))?.execute([execution])? == 0 {
        return Ok(false);
    }
    let ended = RowChange {
        status: "failed".into(),
        outcome: None,
        error: Some(FORCED_END.into()),
        completed_at: Some(note.at),
        usage: None,
        definition: None,
    };
    let mut change = connection.prepare_cached(executions::CHANGE)?;
    executions::change(&mut change, note.execution, &ended)?;
    for sql in [sql!("executions.sql", "gates_remove"), sql!("inbox.sql", "messages_remove")] {
        connection.prepare_cached(sql)?.execute([execution])?;
    }
    put(connection, note)?;
    append(connection, audited)?;
    Ok(true)
}

pub(super) fn quarantined(
    connection: &Connection,
    organization: Option<&str>,
    after: Option<ExecutionKey>,
    limit: usize,
) -> rusqlite::Result<Vec<QuarantinedRow>> {
    let row = |row: &Row<'_>| {
        let (id, organization, reason) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(QuarantinedRow { execution: ExecutionKey(row.get(0)?), id, organization, reason })
    };
    // Shorter than every key, so it comes before all.
    let after = after.as_ref().map_or(&[][..], |after| &after.0);
    let limit = integer(limit as u64);
    let mut values: Vec<&dyn ToSql> = vec![&after, &limit];
    values.extend(organization.as_ref().map(|organization| organization as &dyn ToSql));
    let asked = organization.map(|_| "organization");
    let sql = only(sql!("executions.sql", "quarantined"), '?', 2, asked.as_slice());
    connection.prepare_cached(&sql)?.query_map(params_from_iter(values), row)?.collect()
}

/// Appends audit entries.
pub(super) fn append(connection: &Connection, audited: &AuditedNotes<'_>) -> rusqlite::Result<()> {
    audit::append(connection, &audited.sealing, &audited.audit.iter().collect::<Vec<_>>())
}
