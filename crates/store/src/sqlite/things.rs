//! The resources of a server.

use rusqlite::{Connection, Params, Row, ToSql, params};

use super::{SqliteStore, audit};
use crate::{
    AuditHead, AuditRow, Catalogue, Change, Changed, Item, Most, Name, Query, Removal, StoreError,
    catalogue::{check_lengths, in_order},
    number::{integer, natural},
};

impl Catalogue for SqliteStore {
    fn item(&self, noun: &str, organization: &str, id: &str) -> Result<Option<Item>, StoreError> {
        let sql = include_str!("sql/item.sql");
        let values = params![noun, organization, id];
        self.read(|connection| Ok(items(connection, noun, organization, Most::of(1), sql, values)?.pop()))
    }

    fn item_named(&self, noun: &str, organization: &str, field: &str, value: &str) -> Result<Option<Item>, StoreError> {
        let (sql, values) = (include_str!("sql/item_named.sql"), params![noun, organization, field, value]);
        self.read(|connection| Ok(items(connection, noun, organization, Most::of(1), sql, values)?.pop()))
    }

    fn items(&self, query: &Query) -> Result<Vec<Item>, StoreError> {
        self.read(|connection| list(connection, query))
    }

    fn change(&self, change: &Change) -> Result<Changed, StoreError> {
        check_lengths(change)?;
        self.write(|connection| {
            connection.execute_batch("SAVEPOINT change")?;
            let changed = write(connection, change)?;
            if changed != Changed::Done {
                connection.execute_batch("ROLLBACK TO change")?;
            }
            connection.execute_batch("RELEASE change")?;
            Ok(changed)
        })
    }

    fn audit(&self, organization: &str, after: u64, most: Most) -> Result<Vec<AuditRow>, StoreError> {
        self.read(|connection| audit::rows(connection, organization, after, most))
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        self.read(|connection| audit::head(connection, organization))
    }
}

/// Writes until a conflict.
fn write(connection: &Connection, change: &Change) -> rusqlite::Result<Changed> {
    for Removal { noun, organization, id, expected } in &change.removals {
        let values = params![noun, organization, id, expected.map(integer)];
        if connection.prepare_cached(include_str!("sql/item_remove.sql"))?.execute(values)? == 0 {
            return Ok(Changed::Conflict { id: id.clone() });
        }
        remove_names(connection, noun, organization, id)?;
    }
    for put in &change.puts {
        let Item { noun, organization, id, body, .. } = &put.item;
        let is_written = match put.expected {
            0 => {
                let values = params![noun, organization, id, body];
                connection.prepare_cached(include_str!("sql/item_insert.sql"))?.execute(values)?
            }
            expected => {
                let values = params![noun, organization, id, body, integer(expected)];
                connection.prepare_cached(include_str!("sql/item_update.sql"))?.execute(values)?
            }
        };
        if is_written == 0 {
            return Ok(Changed::Conflict { id: id.clone() });
        }
        remove_names(connection, noun, organization, id)?;
    }
    for put in &change.puts {
        if let Some(field) = name(connection, &put.item)? {
            return Ok(Changed::NameTaken { id: put.item.id.clone(), field });
        }
    }
    audit::append(connection, &change.sealing, &change.audit.iter().collect::<Vec<_>>())?;
    Ok(Changed::Done)
}

/// Sets the names of a resource; returns the field of the first one that another resource has.
fn name(connection: &Connection, item: &Item) -> rusqlite::Result<Option<String>> {
    let Item { noun, organization, id, names, .. } = item;
    // If a resource is written twice in a change, the names of the second write count.
    remove_names(connection, noun, organization, id)?;
    for Name { field, value, is_unique } in in_order(names) {
        let values = params![noun, organization, field, value, id, is_unique];
        if connection.prepare_cached(include_str!("sql/item_name_insert.sql"))?.execute(values)? == 0 {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

fn remove_names(connection: &Connection, noun: &str, organization: &str, id: &str) -> rusqlite::Result<()> {
    let values = params![noun, organization, id];
    connection.prepare_cached(include_str!("sql/item_names_remove.sql"))?.execute(values).map(drop)
}

/// Compares ids with an inclusive lower or an exclusive upper bound. The next id after a given one is the same with
/// U+0000; blobs sort after all texts.
fn list(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<Item>> {
    let Query { noun, organization, name, after, is_descending, most } = query;
    let bound: Box<dyn ToSql> = match (after, is_descending) {
        (None, false) => Box::new(""),
        (Some(after), false) => Box::new(format!("{after}\0")),
        (None, true) => Box::new(Vec::new()),
        (Some(after), true) => Box::new(after.as_str()),
    };
    let limit = integer(most.rows as u64);
    match name {
        None => {
            let sql = match is_descending {
                false => include_str!("sql/items_up.sql"),
                true => include_str!("sql/items_down.sql"),
            };
            items(connection, noun, organization, *most, sql, params![noun, organization, bound, limit])
        }
        Some((field, value)) => {
            let sql = match is_descending {
                false => include_str!("sql/items_named_up.sql"),
                true => include_str!("sql/items_named_down.sql"),
            };
            let values = params![noun, organization, bound, limit, field, value];
            items(connection, noun, organization, *most, sql, values)
        }
    }
}

/// Returns the resources of a statement with their names. Statements neither join the names nor sort: both would read
/// the whole list before the first row.
fn items(
    connection: &Connection,
    noun: &str,
    organization: &str,
    most: Most,
    sql: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<Item>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while !most.is_met(items.len(), bytes) {
        let Some(row) = rows.next()? else { break };
        let (id, version, body): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        bytes += body.len();
        let names = names(connection, noun, organization, &id)?;
        let (noun, organization) = (noun.to_owned(), organization.to_owned());
        items.push(Item { noun, organization, id, version: natural(version), names, body });
    }
    Ok(items)
}

fn names(connection: &Connection, noun: &str, organization: &str, id: &str) -> rusqlite::Result<Vec<Name>> {
    let name = |row: &Row<'_>| Ok(Name { field: row.get(0)?, value: row.get(1)?, is_unique: row.get(2)? });
    let mut statement = connection.prepare_cached(include_str!("sql/item_names.sql"))?;
    statement.query_map(params![noun, organization, id], name)?.collect()
}
