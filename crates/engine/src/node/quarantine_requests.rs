//! Requests about quarantined executions: the driver performs them on a thread that can wait for the store.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Store, StoreError};
use tracing::warn;

use crate::{
    limits::{QUARANTINED_AT_A_TIME, QUARANTINED_KNOWN_MAX},
    quarantine::{Place, notify, notify_of_not_started, parent_of},
};

/// Children whose parents were to be notified. `Some(true)` if a parent waits, `None` if that is unknown.
pub type NotifiedParents = Vec<(ExecutionKey, Option<bool>)>;

/// Children whose parents are to be notified.
#[derive(Debug)]
pub struct UnnotifiedParents {
    pub(super) children: Vec<ExecutionKey>,
    /// The children among them that cannot start, with the parent that each names.
    pub(super) not_started: BTreeMap<ExecutionKey, ExecutionKey>,
}

impl UnnotifiedParents {
    /// Notifies the parents. The journal of each parent is read once, and an error of one does not affect the others.
    /// Blocks.
    pub fn notify(&self, place: Place<'_>) -> NotifiedParents {
        notify_all(place, &self.children, &self.not_started)
    }

    /// The answer if the store does not answer.
    pub fn unanswered(&self) -> NotifiedParents {
        self.children.iter().map(|child| (*child, None)).collect()
    }
}

/// Quarantines an execution in the store. Returns the organization that it counted for, if `counts` is set. Blocks.
pub fn record(
    store: &dyn Store,
    execution: ExecutionKey,
    why: &str,
    counts: bool,
) -> Result<Option<String>, StoreError> {
    store.quarantine(execution, why)?;
    // Quarantines are rare, so the organization is read here and not kept in memory.
    let row = if counts { store.execution(execution).ok().flatten() } else { None };
    Ok(row.and_then(|row| row.organization))
}

pub(super) fn notify_all(
    place: Place<'_>,
    children: &[ExecutionKey],
    not_started: &BTreeMap<ExecutionKey, ExecutionKey>,
) -> NotifiedParents {
    let mut all = Vec::new();
    let mut trees: BTreeMap<ExecutionKey, Vec<ExecutionKey>> = BTreeMap::new();
    for child in children {
        if let Some(parent) = not_started.get(child) {
            let notified = catch_unwind(AssertUnwindSafe(|| notify_of_not_started(place, *parent, *child)));
            all.push((*child, notified.ok().and_then(Result::ok)));
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| parent_of(place, *child))) {
            Ok(Ok(Some(parent))) => trees.entry(parent).or_default().push(*child),
            Ok(Ok(None)) => all.push((*child, Some(false))),
            Ok(Err(_)) | Err(_) => all.push((*child, None)),
        }
    }
    for (parent, children) in trees {
        let notified = catch_unwind(AssertUnwindSafe(|| notify(place, parent, &children)));
        if let Ok(Err(error)) = &notified {
            warn!(%parent, %error, "the parent of quarantined executions could not be notified, and is notified again");
        }
        let notified = notified.ok().and_then(Result::ok);
        all.extend(
            children.into_iter().map(|child| (child, notified.as_ref().map(|notified| notified.contains(&child)))),
        );
    }
    all
}

/// Reads the quarantined executions of a store, up to a bound. Blocks.
pub fn all_quarantined(store: &dyn Store) -> Result<Vec<ExecutionKey>, StoreError> {
    let mut all: Vec<ExecutionKey> = Vec::new();
    loop {
        let page = store.quarantined(None, all.last().copied(), QUARANTINED_AT_A_TIME)?;
        all.extend(page.iter().map(|row| row.execution));
        if page.len() < QUARANTINED_AT_A_TIME || all.len() >= QUARANTINED_KNOWN_MAX {
            return Ok(all);
        }
    }
}
