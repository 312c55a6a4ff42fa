//! The resources of a server. A change takes two round trips: the rows that it names are locked and read, resources
//! before heads of audit logs, each in key order; the change is decided here; then one statement for each table, and
//! COMMIT.
//!
//! Missing rows cannot be locked: a resource, a unique name, the head of a log. If another transaction inserts one in
//! between, the insertion here violates a unique key, and the second try finds the row.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, audit,
    columns::{self, name_key},
    connections::{Session, Who, ask},
    error::Fault,
    writes::{Column, Statement, Writes, column},
};
use crate::{
    Audit, AuditHead, AuditRow, Catalogue, Change, ChangeOutcome, ReadLimit, ResourceId, ResourceKey, ResourceQuery,
    ResourceRow, StoreError,
    catalogue::{check_lengths, in_order},
    sql::integer,
};

/// Greater than every id, since UTF-8 never contains this byte.
const ABOVE_ALL_IDS: [u8; 1] = [0xff];

impl Catalogue for PostgresStore {
    fn resource(&self, kind: &str, organization: &str, id: &str) -> Result<Option<ResourceRow>, StoreError> {
        let sql = sql!("catalogue.sql", "resource");
        self.with_session(async |session| {
            let values: [&(dyn ToSql + Sync); 3] = [&kind.as_bytes(), &organization.as_bytes(), &id.as_bytes()];
            Ok(items(kind, organization, &session.query(sql, &values).await?)?.pop())
        })
    }

    fn resource_by_key(
        &self,
        kind: &str,
        organization: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<ResourceRow>, StoreError> {
        let (sql, key) = (sql!("catalogue.sql", "resource_by_key"), name_key(field, value).0);
        self.with_session(async |session| {
            let values: [&(dyn ToSql + Sync); 3] = [&kind.as_bytes(), &organization.as_bytes(), &&key[..]];
            Ok(items(kind, organization, &session.query(sql, &values).await?)?.pop())
        })
    }

    fn resources(&self, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
        self.with_session(async |session| list(session, query).await)
    }

    fn all_resources(&self, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, StoreError> {
        self.with_session(async |session| all(session, after, limit).await)
    }

    fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        check_lengths(change)?;
        self.once(Who::Others, async |session| write(session, change).await)
    }
}

impl Audit for PostgresStore {
    fn audit(&self, organization: &str, after: u64, bound: ReadLimit) -> Result<Vec<AuditRow>, StoreError> {
        self.with_session(async |session| audit::rows(session, organization, after, bound).await)
    }

    fn audit_head(&self, organization: &str) -> Result<Option<AuditHead>, StoreError> {
        self.with_session(async |session| audit::head(session, organization).await)
    }
}

/// Kind, organization and id, as stored.
type RowId = (Vec<u8>, Vec<u8>, Vec<u8>);

fn place(kind: &str, organization: &str, id: &str) -> RowId {
    (kind.into(), organization.into(), id.into())
}

fn place_of(item: &ResourceRow) -> RowId {
    place(&item.kind, &item.organization, &item.id)
}

/// A resource that is written, with its version.
type Coming<'p, 'a> = (&'p RowId, u64, &'a ResourceRow);

/// The facts that decide about a change, and its result.
struct LockedResources<'a> {
    /// The current versions.
    before: BTreeMap<RowId, u64>,
    /// The owners of unique names, by kind, organization and the name's key.
    holders: BTreeMap<RowId, Vec<u8>>,
    heads: BTreeMap<String, AuditHead>,
    /// The named resources after the change, with their versions.
    after: BTreeMap<RowId, Option<(u64, &'a ResourceRow)>>,
}

async fn write(session: &Session, change: &Change) -> Result<ChangeOutcome, Fault> {
    let mut locked = LockedResources::lock(session, change).await?;
    if let Some(changed) = locked.refusal(change) {
        session.query("ROLLBACK", &[]).await?;
        return Ok(changed);
    }
    let writes = locked.writes(change);
    let mut requests = writes.requests();
    requests.push(ask("COMMIT", &[]));
    session.round(&requests).await?;
    Ok(ChangeOutcome::Done)
}

impl<'a> LockedResources<'a> {
    async fn lock(session: &Session, change: &Change) -> Result<Self, Fault> {
        let removed = change.removals.iter().map(|removal| place(&removal.kind, &removal.organization, &removal.id));
        let named = removed.chain(change.puts.iter().map(|put| place_of(&put.resource))).collect::<BTreeSet<_>>();
        let named = three(named.iter());
        let mut wanted = BTreeSet::new();
        for item in change.puts.iter().map(|put| &put.resource) {
            let unique = item.keys.iter().filter(|name| name.is_unique);
            wanted.extend(unique.map(|name| held(item, name)));
        }
        let wanted = three(wanted.iter());
        let logs = audit::logs(&change.audit);
        let answers = session
            .round(&[
                ask("BEGIN", &[]),
                ask(sql!("catalogue.sql", "resources_lock"), &[&named[0], &named[1], &named[2]]),
                ask(sql!("catalogue.sql", "resource_key_owners"), &[&wanted[0], &wanted[1], &wanted[2]]),
                ask(sql!("audit.sql", "audit_heads_lock"), &[&logs]),
            ])
            .await?;
        let first_three = |found: &Row| -> Result<RowId, Fault> {
            Ok((columns::column(found, 0)?, columns::column(found, 1)?, columns::column(found, 2)?))
        };
        let before = answers[1].iter().map(|found| Ok((first_three(found)?, columns::number(found, 3)?)));
        let holders = answers[2].iter().map(|found| Ok((first_three(found)?, columns::column(found, 3)?)));
        let heads = audit::heads(&answers[3])?;
        let (before, holders) = (before.collect::<Result<_, Fault>>()?, holders.collect::<Result<_, Fault>>()?);
        Ok(Self { before, holders, heads, after: BTreeMap::new() })
    }

    fn version(&self, place: &RowId) -> Option<u64> {
        let before = || self.before.get(place).copied();
        self.after.get(place).map_or_else(before, |after| after.map(|(version, _)| version))
    }

    fn refusal(&mut self, change: &'a Change) -> Option<ChangeOutcome> {
        for removal in &change.removals {
            let place = place(&removal.kind, &removal.organization, &removal.id);
            let is_so = self.version(&place).is_some_and(|found| removal.expected.is_none_or(|asked| asked == found));
            if !is_so {
                return Some(ChangeOutcome::Conflict { id: removal.id.clone() });
            }
            self.after.insert(place, None);
        }
        for put in &change.puts {
            let place = place_of(&put.resource);
            if self.version(&place).unwrap_or(0) != put.expected {
                return Some(ChangeOutcome::Conflict { id: put.resource.id.clone() });
            }
            self.after.insert(place, Some((put.expected + 1, &put.resource)));
        }
        let after = &self.after;
        let is_named = |(kind, organization, _): &RowId, id: &Vec<u8>| {
            after.contains_key(&(kind.clone(), organization.clone(), id.clone()))
        };
        self.holders.retain(|name, id| !is_named(name, id));
        change.puts.iter().find_map(|put| self.name(&put.resource))
    }

    /// Sets the names of a resource, unless another resource has one of them.
    fn name(&mut self, item: &ResourceRow) -> Option<ChangeOutcome> {
        let own = place_of(item);
        // If a resource is written twice in a change, the names of the second write count.
        self.holders.retain(|name, id| (&name.0, &name.1, &*id) != (&own.0, &own.1, &own.2));
        for name in in_order(&item.keys).iter().filter(|name| name.is_unique) {
            if self.holders.insert(held(item, name), own.2.clone()).is_some() {
                return Some(ChangeOutcome::KeyTaken { id: item.id.clone(), field: name.field.clone() });
            }
        }
        None
    }

    /// Resources that are missing after the change are deleted; others are overwritten in place, so that transactions
    /// that wait for the row find the new one.
    fn writes(&mut self, change: &'a Change) -> Writes<'a> {
        let is_old = |place: &RowId| self.before.contains_key(place);
        let old: Vec<&RowId> = self.after.keys().filter(|place| is_old(place)).collect();
        let gone = self.after.iter().filter(|(place, after)| after.is_none() && is_old(place)).map(|(place, _)| place);
        let put: Vec<Coming<'_, 'a>> = self
            .after
            .iter()
            .filter_map(|(place, after)| after.map(|(version, item)| (place, version, item)))
            .collect();
        let (older, new): (Vec<Coming<'_, 'a>>, Vec<_>) = put.iter().copied().partition(|(place, ..)| is_old(place));
        let mut writes = Writes::default();
        let mut at_places = |sql, places: &[&RowId]| writes.push(places, sql, columns(places));
        at_places(sql!("catalogue.sql", "resources_remove"), &gone.collect::<Vec<_>>());
        at_places(sql!("catalogue.sql", "resource_keys_remove"), &old);
        for (sql, rows) in
            [(sql!("catalogue.sql", "resources_update"), older), (sql!("catalogue.sql", "resources_insert"), new)]
        {
            let places: Vec<&RowId> = rows.iter().map(|(place, ..)| *place).collect();
            let mut values = columns(&places);
            values.push(column(&rows, |(_, version, _)| integer(version)));
            values.push(column(&rows, |(_, _, item)| &item.body[..]));
            writes.push(&rows, sql, values);
        }
        writes.extend(names(&put));
        writes.extend(audit::statements(&mut self.heads, &change.sealing, &change.audit));
        writes
    }
}

/// Returns the key of a unique name.
fn held(item: &ResourceRow, name: &ResourceKey) -> RowId {
    (item.kind.clone().into(), item.organization.clone().into(), name_key(&name.field, &name.value).0.to_vec())
}

/// The names of resources in key order, so that concurrent inserts do not deadlock.
fn names<'a>(put: &[Coming<'_, 'a>]) -> Option<Statement<'a>> {
    let mut rows = Vec::new();
    for (place, _, item) in put {
        rows.extend(in_order(&item.keys).into_iter().map(|name| (held(item, &name), place.2.clone(), name)));
    }
    rows.sort();
    let rows: Vec<&(RowId, Vec<u8>, ResourceKey)> = rows.iter().collect();
    let columns = vec![
        column(&rows, |(name, ..)| name.0.clone()),
        column(&rows, |(name, ..)| name.1.clone()),
        column(&rows, |(name, ..)| name.2.clone()),
        column(&rows, |(_, id, _)| id.clone()),
        column(&rows, |(.., name)| name.field.clone().into_bytes()),
        column(&rows, |(.., name)| name.value.clone().into_bytes()),
        column(&rows, |(.., name)| name.is_unique),
    ];
    (!rows.is_empty()).then_some((sql!("catalogue.sql", "resource_keys_insert"), columns))
}

/// Resource keys as parameters of a statement: an array for each column.
fn three<'a>(places: impl Iterator<Item = &'a RowId> + Clone) -> [Vec<&'a [u8]>; 3] {
    [
        places.clone().map(|place| &place.0[..]).collect(),
        places.clone().map(|place| &place.1[..]).collect(),
        places.map(|place| &place.2[..]).collect(),
    ]
}

fn columns<'a>(places: &[&RowId]) -> Vec<Column<'a>> {
    vec![
        column(places, |place| place.0.clone()),
        column(places, |place| place.1.clone()),
        column(places, |place| place.2.clone()),
    ]
}

/// Compares ids with an inclusive lower or an exclusive upper bound. The next id after a given one has a zero appended.
async fn list(session: &Session, query: &ResourceQuery) -> Result<Vec<ResourceRow>, Fault> {
    let ResourceQuery { kind, organization, key: name, after, is_descending, limit: read_limit } = query;
    let bound = match (after, is_descending) {
        (None, false) => Vec::new(),
        (Some(after), false) => [after.as_bytes(), &[0]].concat(),
        (None, true) => ABOVE_ALL_IDS.to_vec(),
        (Some(after), true) => after.as_bytes().to_vec(),
    };
    let (limit, bytes) = (integer(read_limit.rows as u64), integer(read_limit.bytes as u64));
    let key = name.as_ref().map(|(field, value)| name_key(field, value).0.to_vec());
    let (of_kind, of_organization) = (kind.as_bytes(), organization.as_bytes());
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&of_kind, &of_organization, &bound, &limit, &bytes];
    values.extend(key.as_ref().map(|key| key as &(dyn ToSql + Sync)));
    let sql = match (&key, is_descending) {
        (None, false) => sql!("catalogue.sql", "resources_ascending"),
        (None, true) => sql!("catalogue.sql", "resources_descending"),
        (Some(_), false) => sql!("catalogue.sql", "resources_by_key_ascending"),
        (Some(_), true) => sql!("catalogue.sql", "resources_by_key_descending"),
    };
    items(kind, organization, &session.query(sql, &values).await?)
}

/// Lists resources of all kinds and organizations. No kind is empty.
async fn all(session: &Session, after: Option<&ResourceId>, limit: ReadLimit) -> Result<Vec<ResourceRow>, Fault> {
    let (kind, organization, id) = after.map_or(("", "", ""), |(kind, organization, id)| (kind, organization, id));
    let (rows, bytes) = (integer(limit.rows as u64), integer(limit.bytes as u64));
    let (kind, organization, id) = (kind.as_bytes(), organization.as_bytes(), id.as_bytes());
    let values: [&(dyn ToSql + Sync); 5] = [&kind, &organization, &id, &rows, &bytes];
    let found = session.query(sql!("catalogue.sql", "all_resources"), &values).await?;
    collect(&found, |row| Ok((columns::word(row, 6)?, columns::word(row, 7)?)))
}

/// Collects the resources of one kind and organization.
fn items(kind: &str, organization: &str, rows: &[Row]) -> Result<Vec<ResourceRow>, Fault> {
    collect(rows, |_| Ok((kind.to_owned(), organization.to_owned())))
}

/// Collects the resources of a statement that returns a row for each of their names, or one row without a name. Only
/// the first row of a resource contains the body.
fn collect(rows: &[Row], of: impl Fn(&Row) -> Result<(String, String), Fault>) -> Result<Vec<ResourceRow>, Fault> {
    let mut items: Vec<ResourceRow> = Vec::new();
    for found in rows {
        let id = columns::word(found, 0)?;
        let (kind, organization) = of(found)?;
        let is_same = |item: &ResourceRow| item.id == id && item.kind == kind && item.organization == organization;
        if !items.last().is_some_and(is_same) {
            let (version, body) = (columns::number(found, 1)?, columns::column(found, 2)?);
            items.push(ResourceRow { kind, organization, id, version, keys: vec![], body });
        }
        if let (Some(item), Some(field)) = (items.last_mut(), columns::optional_word(found, 3)?) {
            item.keys.push(ResourceKey {
                field,
                value: columns::word(found, 4)?,
                is_unique: columns::column(found, 5)?,
            });
        }
    }
    Ok(items)
}
