//! Seals of the resources that an older release has written.
//!
//! The catalogue of this release reads only resources with a seal of the installation's key. A store of an older format
//! has resources without one: the process that upgrades it seals them. Later, a resource without a seal is a forgery.

use std::sync::Arc;

use mainspring_kernel::hash::Hash;
use mainspring_store::{
    Change, ChangeOutcome, Put, ReadLimit, ResourceRow, Store, StoreError, has_seal, seal_resource,
};

use crate::{
    error::EngineError,
    inbox::{self, Unsealed},
    seal_note::SealNote,
};

/// Resources per read and per change.
const RESOURCES_READ_MAX: usize = 256;

/// Reads of a page that other processes change.
const TRIES_MAX: usize = 100;

/// The name of a mark in the store: its resources are sealed.
const MARK: &str = "resources-sealed";

/// Seals the inbox messages and the resources that an older release left in a store, and records in `note` that the store
/// has seals.
pub fn seal_store(store: &Arc<dyn Store>, key: &[u8; 32], note: Option<&SealNote>) -> Result<(), EngineError> {
    let unsealed = note.map_or(Ok(Unsealed::OfThisUpgrade), SealNote::unsealed)?;
    inbox::seal_older(store, key, unsealed)?;
    seal_older(&**store, key, unsealed)?;
    note.map_or(Ok(()), SealNote::record)
}

/// Seals the resources that an older release left in the store, and sets the mark. Does nothing in a store with the mark.
/// Returns the number of sealed resources.
///
/// An attacker with access to the store can remove the mark, and can make the store appear older. Resources without a
/// seal are therefore accepted only by the process that has upgraded the store, if no resource has a seal yet and no file
/// beside the key records an earlier upgrade, or if an operator requested it.
pub fn seal_older(store: &dyn Store, key: &[u8; 32], unsealed: Unsealed) -> Result<usize, EngineError> {
    let mark = Hash::keyed(key, &[b"mainspring resources sealed 1"]).hex();
    let is_accepted = unsealed == Unsealed::Accepted;
    // A wrapper that seals resources was put over a store in use.
    if store.seals_resources() || store.metadata(MARK)?.as_ref() == Some(&mark) && !is_accepted {
        return Ok(0);
    }
    let (mut sealed, mut without_seal) = (0, 0);
    each_page(store, |rows| {
        let count = rows.iter().filter(|row| has_seal(row)).count();
        (sealed, without_seal) = (sealed + count, without_seal + rows.len() - count);
        Ok(true)
    })?;
    if without_seal > 0 && sealed > 0 && unsealed == Unsealed::Refused {
        tracing::error!(
            resources = without_seal,
            "the store has lost the mark `{MARK}`, so something other than Mainspring has changed it: resources without a \
             seal are refused"
        );
        store.put_metadata_if_absent(MARK, &mark)?;
        return Ok(0);
    }
    let is_upgrade = unsealed == Unsealed::OfThisUpgrade && sealed == 0 && store.has_unsealed_resources();
    if without_seal > 0 && !is_accepted && !is_upgrade {
        return Err(EngineError::UnsealedResources(without_seal));
    }
    each_page(store, |rows| {
        let puts = rows.iter().filter(|row| !has_seal(row)).map(|row| {
            let resource = ResourceRow { body: seal_resource(key, row), ..row.clone() };
            Put { resource, expected: row.version }
        });
        let change = Change { puts: puts.collect(), sealing: *key, ..Change::default() };
        // Another process that has upgraded the store at the same time may have written some of them.
        Ok(change.puts.is_empty() || store.catalogue().change(&change)? == ChangeOutcome::Done)
    })?;
    store.put_metadata_if_absent(MARK, &mark)?;
    Ok(without_seal)
}

/// Passes all resources in pages. A page for which `work` returns false is read again.
fn each_page(
    store: &dyn Store,
    mut work: impl FnMut(&[ResourceRow]) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let (mut after, mut tries) = (None, 0);
    loop {
        let rows = store.catalogue().all_resources(after.as_ref(), ReadLimit::of(RESOURCES_READ_MAX))?;
        let Some(last) = rows.last() else { return Ok(()) };
        if work(&rows)? {
            (after, tries) = (Some(last.resource_id()), 0);
            continue;
        }
        tries += 1;
        if tries >= TRIES_MAX {
            let why =
                format!("resources from {:?} on cannot be sealed: others change them, or a row is damaged", rows[0].id);
            return Err(StoreError::Damaged(why));
        }
    }
}
