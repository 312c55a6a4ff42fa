//! Notes beside journals, and quarantine.

use mainspring_kernel::{
    key::ExecutionKey,
    note::{Note, Subject},
};
use tokio_postgres::types::ToSql;

use super::{
    audit,
    columns::{self, word_key},
    connections::{Session, ask},
    error::Fault,
    writes::{Writes, column},
};
use crate::{
    AuditedNotes, AwaitingParent, FORCED_END, QuarantineRelease, QuarantinedRow, ReleaseOutcome, sql::integer,
    sql::only,
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
    writes.push(notes, sql!("journal.sql", "notes_put"), columns);
}

pub(super) async fn list(session: &Session, execution: ExecutionKey) -> Result<Vec<Note>, Fault> {
    let found = session.query(sql!("journal.sql", "notes"), &[&&execution.0[..]]).await?;
    let note = |found| {
        let subject = match columns::number(found, 0)? {
            0 => Subject::Erased { sequence: columns::number(found, 1)?, place: columns::number(found, 2)? },
            _ => Subject::Ended,
        };
        Ok(Note {
            execution,
            subject,
            at: columns::number(found, 3)?,
            by: columns::word(found, 4)?,
            reason: columns::word(found, 5)?,
            seal: columns::hash(found, 6)?,
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
    let heads = session.query(sql!("journal.sql", "heads_lock"), &[&keys]).await?;
    if let Some(AwaitingParent { execution, head, .. }) = parent {
        let mut is_there = false;
        for found in &heads {
            let is_its = columns::key(found, 0)? == *execution;
            is_there |= is_its && (columns::number(found, 2)?, columns::hash(found, 3)?) == (head.sequence, head.hash);
        }
        if !is_there {
            session.query("ROLLBACK", &[]).await?;
            return Ok(ReleaseOutcome::ParentMoved);
        }
    }
    if session.query(sql!("executions.sql", "release_quarantine"), &[&key]).await?.is_empty() {
        session.query("ROLLBACK", &[]).await?;
        return Ok(ReleaseOutcome::NotQuarantined);
    }
    if let Some(AwaitingParent { execution, notice, .. }) = parent {
        let (executions, ids) = (vec![&execution.0[..]], vec![word_key(notice).0.to_vec()]);
        session.query(sql!("inbox.sql", "messages_consume"), &[&executions, &ids]).await?;
    }
    end(session, Writes::default(), audited).await?;
    Ok(ReleaseOutcome::Released)
}

pub(super) async fn force_end(session: &Session, audited: &AuditedNotes<'_>) -> Result<bool, Fault> {
    let Some(note) = audited.notes.first() else { return Ok(false) };
    let key = &note.execution.0[..];
    begin(session).await?;
    if session.query(sql!("executions.sql", "head_force_end"), &[&key]).await?.is_empty() {
        session.query("ROLLBACK", &[]).await?;
        return Ok(false);
    }
    let (keys, statuses, errors) = (vec![key], vec![&b"failed"[..]], vec![Some(FORCED_END.as_bytes())]);
    let (outcomes, ends) = (vec![None::<&[u8]>], vec![Some(integer(note.at))]);
    let usage = vec![None::<i64>];
    let change = sql!("executions.sql", "executions_change");
    let requests = [
        // The definition stays as it is: three lists with a null.
        ask(change, &[&keys, &statuses, &outcomes, &errors, &ends, &usage, &usage, &outcomes, &outcomes, &outcomes]),
        ask(sql!("executions.sql", "gates_remove"), &[&key]),
        ask(sql!("inbox.sql", "messages_remove"), &[&key]),
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
    let sql = only(sql!("executions.sql", "quarantined"), '$', 2, asked.as_slice());
    let row = |found| {
        Ok(QuarantinedRow {
            execution: columns::key(found, 0)?,
            id: columns::optional_word(found, 1)?,
            organization: columns::optional_word(found, 2)?,
            reason: columns::word(found, 3)?,
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
        let locked = session.query(sql!("audit.sql", "audit_heads_lock"), &[&logs]).await?;
        writes.extend(audit::statements(&mut audit::heads(&locked)?, &audited.sealing, audited.audit));
    }
    let mut requests = writes.requests();
    requests.push(ask("COMMIT", &[]));
    session.round(&requests).await?;
    Ok(())
}
