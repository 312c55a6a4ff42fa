//! Notes beside journals, and quarantine.

use mainspring_kernel::{
    key::ExecutionKey,
    note::{Note, Subject},
};
use tokio_postgres::types::ToSql;

use super::{
    audit,
    connections::{Session, ask},
    failure::Fault,
    row::{self, word_key},
    writes::{Writes, column},
};
use crate::{
    AuditedNotes, AwaitingParent, FORCED_END, QuarantineRelease, QuarantinedRow, ReleaseOutcome, conditions::only,
    number::integer,
};

/// Adds notes, unless their subjects have some.
pub(super) fn put<'a>(writes: &mut Writes<'a>, notes: &[&'a Note]) {
    let place = |note: &Note| match note.subject {
        Subject::Erased { sequence, place } => [0, integer(sequence), integer(place)],
        Subject::Ended => [1, 0, 0],
    };
    let columns = vec![
        column(notes, |note| &note.execution.0[..]),
        column(notes, |note| place(note)[0]),
        column(notes, |note| place(note)[1]),
        column(notes, |note| place(note)[2]),
        column(notes, |note| integer(note.at)),
        column(notes, |note| note.by.as_bytes()),
        column(notes, |note| note.reason.as_bytes()),
        column(notes, |note| &note.seal.0[..]),
    ];
    writes.push(notes, include_str!("sql/notes_put.sql"), columns);
}

pub(super) async fn list(session: &Session, execution: ExecutionKey) -> Result<Vec<Note>, Fault> {
    let found = session.query(include_str!("sql/notes.sql"), &[&&execution.0[..]]).await?;
    let note = |found| {
        let subject = match row::number(found, 0)? {
            0 => Subject::Erased { sequence: row::number(found, 1)?, place: row::number(found, 2)? },
            _ => Subject::Ended,
        };
        Ok(Note {
            execution,
            subject,
            at: row::number(found, 3)?,
            by: row::word(found, 4)?,
            reason: row::word(found, 5)?,
            seal: row::hash(found, 6)?,
        })
    };
    found.iter().map(note).collect()
}

pub(super) async fn release(session: &Session, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, Fault> {
    let QuarantineRelease { execution, parent, audited } = release;
    begin(session).await?;
    // Both are locked in the order of their keys, as a commit does.
    let key = &execution.0[..];
    let keys: Vec<&[u8]> = [key].into_iter().chain(parent.as_ref().map(|parent| &parent.execution.0[..])).collect();
    let heads = session.query(include_str!("sql/heads_lock.sql"), &[&keys]).await?;
    if let Some(AwaitingParent { execution, head, .. }) = parent {
        let mut is_there = false;
        for found in &heads {
            let is_its = row::key(found, 0)? == *execution;
            is_there |= is_its && (row::number(found, 2)?, row::hash(found, 3)?) == (head.sequence, head.hash);
        }
        if !is_there {
            session.query("ROLLBACK", &[]).await?;
            return Ok(ReleaseOutcome::ParentMoved);
        }
    }
    if session.query(include_str!("sql/release.sql"), &[&key]).await?.is_empty() {
        session.query("ROLLBACK", &[]).await?;
        return Ok(ReleaseOutcome::NotQuarantined);
    }
    if let Some(AwaitingParent { execution, notice, .. }) = parent {
        let (executions, ids) = (vec![&execution.0[..]], vec![word_key(notice).0.to_vec()]);
        session.query(include_str!("sql/letters_consume.sql"), &[&executions, &ids]).await?;
    }
    end(session, Writes::default(), audited).await?;
    Ok(ReleaseOutcome::Released)
}

pub(super) async fn force_end(session: &Session, audited: &AuditedNotes<'_>) -> Result<bool, Fault> {
    let Some(note) = audited.notes.first() else { return Ok(false) };
    let key = &note.execution.0[..];
    begin(session).await?;
    if session.query(include_str!("sql/head_force_end.sql"), &[&key]).await?.is_empty() {
        session.query("ROLLBACK", &[]).await?;
        return Ok(false);
    }
    let (keys, statuses, errors) = (vec![key], vec![&b"failed"[..]], vec![Some(FORCED_END.as_bytes())]);
    let (outcomes, ends) = (vec![None::<&[u8]>], vec![Some(integer(note.at))]);
    let change = include_str!("sql/executions_change.sql");
    let requests = [
        ask(change, &[&keys, &statuses, &outcomes, &errors, &ends]),
        ask(include_str!("sql/gates_remove.sql"), &[&key]),
        ask(include_str!("sql/letters_remove.sql"), &[&key]),
    ];
    session.round(&requests).await?;
    let mut writes = Writes::default();
    put(&mut writes, &[note]);
    end(session, writes, audited).await?;
    Ok(true)
}

pub(super) async fn quarantined(
    session: &Session,
    organization: Option<&str>,
    after: Option<ExecutionKey>,
    limit: usize,
) -> Result<Vec<QuarantinedRow>, Fault> {
    let organization = organization.map(|organization| word_key(organization).0.to_vec());
    // Shorter than every key, so it comes before all.
    let (after, limit) = (after.as_ref().map_or(&[][..], |after| &after.0), integer(limit as u64));
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&after, &limit];
    values.extend(organization.as_ref().map(|organization| organization as &(dyn ToSql + Sync)));
    let asked = organization.as_ref().map(|_| "organization");
    let sql = only(include_str!("sql/quarantined.sql"), '$', 2, asked.as_slice());
    let row = |found| {
        Ok(QuarantinedRow {
            execution: row::key(found, 0)?,
            id: row::optional_word(found, 1)?,
            organization: row::optional_word(found, 2)?,
            reason: row::word(found, 3)?,
        })
    };
    session.query(&sql, &values).await?.iter().map(row).collect()
}

pub(super) async fn begin(session: &Session) -> Result<(), Fault> {
    session.query("BEGIN", &[]).await.map(drop)
}

/// Writes, appends audit entries, and commits.
pub(super) async fn end<'a>(
    session: &Session,
    mut writes: Writes<'a>,
    audited: &AuditedNotes<'a>,
) -> Result<(), Fault> {
    let logs = audit::logs(audited.audit);
    if !logs.is_empty() {
        let locked = session.query(include_str!("sql/audit_heads_lock.sql"), &[&logs]).await?;
        writes.extend(audit::statements(&mut audit::heads(&locked)?, &audited.sealing, audited.audit));
    }
    let mut requests = writes.requests();
    requests.push(ask("COMMIT", &[]));
    session.round(&requests).await?;
    Ok(())
}
