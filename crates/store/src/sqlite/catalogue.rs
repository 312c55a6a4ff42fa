//! The resources of a server.

use rusqlite::{Connection, Params, Row, ToSql, params};

use super::{SqliteStore, audit};
use crate::{
    Audit, AuditHead, AuditRow, Catalogue, Change, ChangeOutcome, ReadLimit, Removal, ResourceId, ResourceKey,
    ResourceQuery, ResourceRow, StoreError,
    catalogue::{check_lengths, in_order},
    sql::{integer, natural},
};

impl Catalogue for SqliteStore {
    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError> {
        let sql = sql!("catalogue.sql", "resource");
        let values = params![kind, organization, id];
        self.read(|connection| Ok(items(connection, kind, organization, ReadLimit::of(1), sql, values)?.pop()))
    }

    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError> {
        let (sql, values) = (sql!("catalogue.sql", "resource_by_key"), params![kind, organization, field, value]);
        self.read(|connection| Ok(items(connection, kind, organization, ReadLimit::of(1), sql, values)?.pop()))
    }

    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
        self.read(|connection| list(connection, query))
    }

    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError> {
        self.read(|connection| all(connection, after, limit))
    }

    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        check_lengths(change)?;
        self.write(|connection| {
            connection.execute_batch("SAVEPOINT change")?;
            let changed = write(connection, change)?;
            if changed != ChangeOutcome::Done {
                connection.execute_batch("ROLLBACK TO change")?;
            }
            connection.execute_batch("RELEASE change")?;
            Ok(changed)
        })
    }
}

impl Audit for SqliteStore {
    fn audit(&self, organization: &str, after: u64, bound: ReadLimit) -> Result<Vec<AuditRow>, StoreError> {
        self.read(|connection| audit::rows(connection, organization, after, bound))
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        self.read(|connection| audit::head(connection, organization))
    }
}

/// Writes until a conflict.
fn write(connection: &Connection, change: &Change) -> rusqlite::Result<ChangeOutcome> {
    for Removal { kind, organization, id, expected } in &change.removals {
        let values = params![kind, organization, id, expected.map(integer)];
        if connection.prepare_cached(sql!("catalogue.sql", "resource_remove"))?.execute(values)? == 0 {
            return Ok(ChangeOutcome::Conflict { id: id.clone() });
        }
        remove_names(connection, kind, organization, id)?;
    }
    for put in &change.puts {
        let ResourceRow { kind, organization, id, body, .. } = &put.resource;
        let is_written = match put.expected {
            0 => {
                let values = params![kind, organization, id, body];
                connection.prepare_cached(sql!("catalogue.sql", "resource_insert"))?.execute(values)?
            }
            expected => {
                let values = params![kind, organization, id, body, integer(expected)];
                connection.prepare_cached(sql!("catalogue.sql", "resource_update"))?.execute(values)?
            }
        };
        if is_written == 0 {
            return Ok(ChangeOutcome::Conflict { id: id.clone() });
        }
        remove_names(connection, kind, organization, id)?;
    }
    for put in &change.puts {
        if let Some(field) = name(connection, &put.resource)? {
            return Ok(ChangeOutcome::KeyTaken { id: put.resource.id.clone(), field });
        }
    }
    audit::append(connection, &change.sealing, &change.audit.iter().collect::<Vec<_>>())?;
    Ok(ChangeOutcome::Done)
}

/// Sets the names of a resource; returns the field of the first one that another resource has.
fn name(connection: &Connection, item: &ResourceRow) -> rusqlite::Result<Option<String>> {
    let ResourceRow { kind, organization, id, keys: names, .. } = item;
    // If a resource is written twice in a change, the names of the second write count.
    remove_names(connection, kind, organization, id)?;
    for ResourceKey { field, value, is_unique } in in_order(names) {
        let values = params![kind, organization, field, value, id, is_unique];
        if connection.prepare_cached(sql!("catalogue.sql", "resource_key_insert"))?.execute(values)? == 0 {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

fn remove_names(connection: &Connection, kind: &str, organization: &str, id: &str) -> rusqlite::Result<()> {
    let values = params![kind, organization, id];
    connection.prepare_cached(sql!("catalogue.sql", "resource_keys_remove"))?.execute(values).map(drop)
}

/// Compares ids with an inclusive lower or an exclusive upper bound. The next id after a given one is the same with
/// U+0000; blobs sort after all texts.
fn list(connection: &Connection, query: &ResourceQuery) -> rusqlite::Result<Vec<ResourceRow>> {
    let ResourceQuery { kind, organization, key: name, after, is_descending, limit: read_limit } = query;
    let bound: Box<dyn ToSql> = match (after, is_descending) {
        (None, false) => Box::new(""),
        (Some(after), false) => Box::new(format!("{after}\0")),
        (None, true) => Box::new(Vec::new()),
        (Some(after), true) => Box::new(after.as_str()),
    };
    let limit = integer(read_limit.rows as u64);
    match name {
        None => {
            let sql = match is_descending {
                false => sql!("catalogue.sql", "resources_ascending"),
                true => sql!("catalogue.sql", "resources_descending"),
            };
            items(connection, kind, organization, *read_limit, sql, params![kind, organization, bound, limit])
        }
        Some((field, value)) => {
            let sql = match is_descending {
                false => sql!("catalogue.sql", "resources_by_key_ascending"),
                true => sql!("catalogue.sql", "resources_by_key_descending"),
            };
            let values = params![kind, organization, bound, limit, field, value];
            items(connection, kind, organization, *read_limit, sql, values)
        }
    }
}

/// Lists resources of all kinds and organizations. No kind is empty.
fn all(connection: &Connection, after: Option<&ResourceId>, limit: ReadLimit) -> rusqlite::Result<Vec<ResourceRow>> {
    let (kind, organization, id) = after.map_or(("", "", ""), |(kind, organization, id)| (kind, organization, id));
    let mut statement = connection.prepare_cached(sql!("catalogue.sql", "all_resources"))?;
    let mut rows = statement.query(params![kind, organization, id, integer(limit.rows as u64)])?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while !limit.is_reached(items.len(), bytes) {
        let Some(row) = rows.next()? else { break };
        let (kind, organization, id): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (version, body): (i64, Vec<u8>) = (row.get(3)?, row.get(4)?);
        bytes += body.len();
        let keys = names(connection, &kind, &organization, &id)?;
        items.push(ResourceRow { kind, organization, id, version: natural(version), keys, body });
    }
    Ok(items)
}

/// Returns the resources of a statement with their names. Statements neither join the names nor sort: both would read
/// the whole list before the first row.
fn items(
    connection: &Connection,
    kind: &str,
    organization: &str,
    bound: ReadLimit,
    sql: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<ResourceRow>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while !bound.is_reached(items.len(), bytes) {
        let Some(row) = rows.next()? else { break };
        let (id, version, body): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        bytes += body.len();
        let names = names(connection, kind, organization, &id)?;
        let (kind, organization) = (kind.to_owned(), organization.to_owned());
        items.push(ResourceRow { kind, organization, id, version: natural(version), keys: names, body });
    }
    Ok(items)
}

fn names(connection: &Connection, kind: &str, organization: &str, id: &str) -> rusqlite::Result<Vec<ResourceKey>> {
    let name = |row: &Row<'_>| Ok(ResourceKey { field: row.get(0)?, value: row.get(1)?, is_unique: row.get(2)? });
    let mut statement = connection.prepare_cached(sql!("catalogue.sql", "resource_keys"))?;
    statement.query_map(params![kind, organization, id], name)?.collect()
}
