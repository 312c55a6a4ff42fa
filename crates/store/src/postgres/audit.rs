//! The audit log. A writer locks its head until the end of the transaction. If two writers start the same log at the
//! same time, the first entry of the second violates a unique key, and the second tries again.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::{
    columns::{self, word_key},
    connections::Session,
    error::Fault,
    writes::{Statement, column},
};
use crate::{AuditEntry, AuditHead, AuditRow, ReadLimit, audit::chain, sql::integer};

/// Returns the keys of the logs of entries, as parameters of `audit_heads_lock.sql`.
pub(super) fn logs<'a>(entries: impl IntoIterator<Item = &'a AuditEntry>) -> Vec<Vec<u8>> {
    let organizations: BTreeSet<&str> = entries.into_iter().map(|entry| entry.organization.as_str()).collect();
    organizations.into_iter().map(|organization| word_key(organization).0.to_vec()).collect()
}

/// Reads the heads of logs from the rows of that statement.
pub(super) fn heads(rows: &[Row]) -> Result<BTreeMap<String, AuditHead>, Fault> {
    rows.iter().map(|found| Ok((columns::word(found, 0)?, head_of_row(found)?))).collect()
}

fn head_of_row(found: &Row) -> Result<AuditHead, Fault> {
    Ok(AuditHead { number: columns::number(found, 1)?, hash: columns::hash(found, 2)?, seal: columns::hash(found, 3)? })
}

/// Builds the statements that append entries to locked logs; none for no entries.
pub(super) fn statements<'a>(
    heads: &mut BTreeMap<String, AuditHead>,
    sealing: &[u8; 32],
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> Vec<Statement<'static>> {
    let rows = chain(heads, sealing, entries);
    if rows.is_empty() {
        return Vec::new();
    }
    let appended: BTreeSet<&str> = rows.iter().map(|row| row.entry.organization.as_str()).collect();
    let ends: Vec<(&str, &AuditHead)> = appended.into_iter().map(|of| (of, &heads[of])).collect();
    let owned = |word: &str| word.as_bytes().to_vec();
    let rows: Vec<&AuditRow> = rows.iter().collect();
    let columns = vec![
        column(&rows, |row| word_key(&row.entry.organization).0.to_vec()),
        column(&rows, |row| owned(&row.entry.organization)),
        column(&rows, |row| integer(row.number)),
        column(&rows, |row| integer(row.entry.at)),
        column(&rows, |row| owned(&row.entry.actor)),
        column(&rows, |row| owned(&row.entry.action)),
        column(&rows, |row| owned(&row.entry.target)),
        column(&rows, |row| row.entry.detail.clone()),
        column(&rows, |row| row.hash.0.to_vec()),
    ];
    let end_columns = vec![
        column(&ends, |(of, _)| word_key(of).0.to_vec()),
        column(&ends, |(of, _)| owned(of)),
        column(&ends, |(_, head)| integer(head.number)),
        column(&ends, |(_, head)| head.hash.0.to_vec()),
        column(&ends, |(_, head)| head.seal.0.to_vec()),
    ];
    vec![(sql!("audit.sql", "audit_insert"), columns), (sql!("audit.sql", "audit_heads_put"), end_columns)]
}

pub(super) async fn head(session: &Session, organization: &str) -> Result<Option<AuditHead>, Fault> {
    let key = word_key(organization).0;
    let found = session.query(sql!("audit.sql", "audit_head"), &[&&key[..]]).await?;
    found.first().map(head_of_row).transpose()
}

pub(super) async fn rows(
    session: &Session,
    organization: &str,
    after: u64,
    bound: ReadLimit,
) -> Result<Vec<AuditRow>, Fault> {
    let (key, after, limit) = (word_key(organization).0, integer(after), integer(bound.rows as u64));
    let bytes = integer(bound.bytes as u64);
    let found = session.query(sql!("audit.sql", "audit"), &[&&key[..], &after, &limit, &bytes]).await?;
    let row = |found| {
        let entry = AuditEntry {
            organization: columns::word(found, 1)?,
            at: columns::number(found, 2)?,
            actor: columns::word(found, 3)?,
            action: columns::word(found, 4)?,
            target: columns::word(found, 5)?,
            detail: columns::column(found, 6)?,
        };
        Ok(AuditRow { number: columns::number(found, 0)?, entry, hash: columns::hash(found, 7)? })
    };
    found.iter().map(row).collect()
}
