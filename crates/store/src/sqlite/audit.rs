//! The audit log.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::hash::Hash;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    AuditEntry, AuditHead, AuditRow, ReadLimit,
    audit::chain,
    sql::{integer, natural},
};

pub(super) fn append(connection: &Connection, sealing: &[u8; 32], entries: &[&AuditEntry]) -> rusqlite::Result<()> {
    let organizations: BTreeSet<&str> = entries.iter().map(|entry| entry.organization.as_str()).collect();
    let mut heads = BTreeMap::new();
    for organization in organizations {
        heads.extend(head(connection, organization)?.map(|head| (organization.to_owned(), head)));
    }
    for row in chain(&mut heads, sealing, entries.iter().copied()) {
        let AuditEntry { organization, at, actor, action, target, detail } = &row.entry;
        let (number, at) = (integer(row.number), integer(*at));
        let values = params![organization, number, at, actor, action, target, detail, row.hash.0];
        connection.prepare_cached(sql!("audit.sql", "audit_insert"))?.execute(values)?;
    }
    for (organization, head) in heads {
        let values = params![organization, integer(head.number), head.hash.0, head.seal.0];
        connection.prepare_cached(sql!("audit.sql", "audit_head_put"))?.execute(values)?;
    }
    Ok(())
}

pub(super) fn head(connection: &Connection, organization: &str) -> rusqlite::Result<Option<AuditHead>> {
    let head = |row: &Row<'_>| {
        Ok(AuditHead { number: natural(row.get(0)?), hash: Hash(row.get(1)?), seal: Hash(row.get(2)?) })
    };
    connection.prepare_cached(sql!("audit.sql", "audit_head"))?.query_row([organization], head).optional()
}

pub(super) fn rows(
    connection: &Connection,
    organization: &str,
    after: u64,
    bound: ReadLimit,
) -> rusqlite::Result<Vec<AuditRow>> {
    let row = |row: &Row<'_>| {
        let entry = AuditEntry {
            organization: organization.to_owned(),
            at: natural(row.get(1)?),
            actor: row.get(2)?,
            action: row.get(3)?,
            target: row.get(4)?,
            detail: row.get(5)?,
        };
        Ok(AuditRow { number: natural(row.get(0)?), entry, hash: Hash(row.get(6)?) })
    };
    let mut statement = connection.prepare_cached(sql!("audit.sql", "audit"))?;
    let mut found = statement.query_map(params![organization, integer(after), integer(bound.rows as u64)], row)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while !bound.is_reached(rows.len(), bytes) {
        let Some(row) = found.next().transpose()? else { break };
        bytes += AuditRow::byte_count(&row);
        rows.push(row);
    }
    Ok(rows)
}
