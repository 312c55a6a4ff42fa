//! Outcomes of the executions of a rollout that follow from their ancestors: the root, and the reason of a cancel.

use std::collections::{HashMap, HashSet};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{RolloutRow, Store, is_final};

use crate::http::problem::Result;

/// Ancestors of an execution that are read: more than a tree has levels.
const ANCESTORS_MAX: usize = 64;

/// The error of an execution that its parent canceled.
const PARENT_CANCELED: &str = "parent_cancelled";

/// The outcome of an execution for the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is unfinished, or the reason of its cancel is not known yet.
    Unfinished,
    Completed,
    /// It failed, or was canceled since its parent failed or a step of the parent timed out.
    Failed,
    /// A person canceled it or one of its ancestors.
    Canceled,
}

/// An ancestor of an execution.
#[derive(Debug, Clone)]
struct Ancestor {
    id: String,
    parent: Option<Link>,
    status: String,
    error: Option<String>,
}

/// The way to a parent: by its key if it waits for the execution, else by its external name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Link {
    Key(ExecutionKey),
    Id(String),
}

impl Link {
    fn of(parent: Option<ExecutionKey>, parent_id: Option<&str>) -> Option<Self> {
        parent.map(Self::Key).or_else(|| parent_id.map(|id| Self::Id(id.into())))
    }
}

/// Reads ancestors, each of them once.
pub(super) struct Ancestors<'a> {
    store: &'a dyn Store,
    known: HashMap<Link, Option<Ancestor>>,
}

impl<'a> Ancestors<'a> {
    pub(super) fn of(store: &'a dyn Store) -> Self {
        Self { store, known: HashMap::new() }
    }

    fn read(&mut self, link: &Link) -> Result<Option<Ancestor>> {
        if let Some(known) = self.known.get(link) {
            return Ok(known.clone());
        }
        let row = match link {
            Link::Key(key) => self.store.execution(*key)?,
            Link::Id(id) => self.store.execution_by_id(id)?,
        };
        let found = row.map(|row| Ancestor {
            parent: Link::of(row.parent, row.names.parent_id.as_deref()),
            id: row.id,
            status: row.status,
            error: row.error,
        });
        self.known.insert(link.clone(), found.clone());
        Ok(found)
    }

    /// The outcome of an execution. A parent cancels it when a step times out or when the parent itself ends, so a cancel by
    /// a parent that was not canceled is a failure. Until that parent has ended, the reason is not known.
    pub(super) fn outcome(&mut self, row: &RolloutRow) -> Result<Outcome> {
        match row.status.as_str() {
            "completed" => return Ok(Outcome::Completed),
            "failed" => return Ok(Outcome::Failed),
            "cancelled" => {}
            _ => return Ok(Outcome::Unfinished),
        }
        let (mut error, mut next) = (row.error.clone(), Link::of(row.parent, row.parent_id.as_deref()));
        for _ in 0..ANCESTORS_MAX {
            let (Some(PARENT_CANCELED), Some(link)) = (error.as_deref(), &next) else { break };
            let Some(parent) = self.read(link)? else { break };
            match parent.status.as_str() {
                "cancelled" => (error, next) = (parent.error, parent.parent),
                status if is_final(status) => return Ok(Outcome::Failed),
                _ => return Ok(Outcome::Unfinished),
            }
        }
        Ok(Outcome::Canceled)
    }

    /// Adds the root of an execution to a set. An ancestor that the store no longer has counts as the root.
    pub(super) fn add_root(&mut self, roots: &mut HashSet<String>, row: &RolloutRow) -> Result<()> {
        let mut root = row.execution.to_string();
        let mut next = Link::of(row.parent, row.parent_id.as_deref());
        for _ in 0..ANCESTORS_MAX {
            let Some(link) = next else { break };
            let Some(parent) = self.read(&link)? else {
                root = match link {
                    Link::Key(key) => key.to_string(),
                    Link::Id(id) => id,
                };
                break;
            };
            (root, next) = (parent.id, parent.parent);
        }
        roots.insert(root);
        Ok(())
    }
}
