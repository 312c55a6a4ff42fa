//! Executions that are quarantined, at the rim.
//!
//! Those that wait for a quarantined execution are told by whoever holds that. A node may die between the two, so whoever
//! comes to hold a partition looks for what is quarantined in it and tells again: a message that is told twice is the same
//! message, and the journal of the receiver says whether it waits.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Store, StoreError};
use tracing::warn;

use super::{Command, Reach, Rim};
use crate::{
    aside::{Place, tell_parent},
    limits::{QUARANTINED_AT_A_TIME, QUARANTINED_KNOWN_MAX},
    shard::{Event, LoadAnswer},
};

/// What the driver knows of quarantined executions.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those that this process has met since they were quarantined, and whether an execution that waits for one was told or
    /// is being told: that is done once. As long as none is found that waits, it is tried whenever one is met: the parent
    /// may be quarantined itself, and released later.
    met: BTreeMap<ExecutionKey, bool>,
    /// Whether they are to be looked for, and whether they are being looked for.
    is_wanted: bool,
    is_looking: bool,
}

impl Rim {
    /// An execution was quarantined.
    pub(super) fn quarantined(&mut self, execution: ExecutionKey) {
        self.aside.met.remove(&execution);
        self.meet(execution);
    }

    /// A load says whether an execution is quarantined. One that was and is not any more was released: the letters that it
    /// could not take in are read again.
    pub(super) fn meet_quarantined(&mut self, event: &Event) {
        let Event::Loaded(execution, _, answer) = event else { return };
        match **answer {
            LoadAnswer::Quarantined(_) => self.meet(*execution),
            LoadAnswer::Journal(_) if self.aside.met.remove(execution).is_some() => {
                self.forget_letters();
                self.look_for_letters();
            }
            _ => {}
        }
    }

    /// Partitions are held from now on: who held them before may have told nobody of what is quarantined in them.
    pub(super) fn want_quarantined(&mut self) {
        self.aside.is_wanted = true;
        self.look_for_quarantined();
    }

    /// Looks for quarantined executions if that is wanted, one look at a time. A process that works on named executions tells
    /// of those when it loads them.
    pub(super) fn look_for_quarantined(&mut self) {
        if !self.aside.is_wanted || self.aside.is_looking || self.reach != Reach::All {
            return;
        }
        (self.aside.is_wanted, self.aside.is_looking) = (false, true);
        let (store, commands) = (self.store.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || {
            let look = || all_quarantined(&*store).ok();
            let found = catch_unwind(AssertUnwindSafe(look)).unwrap_or_default();
            let _ = commands.send(Command::Quarantined(found));
        });
    }

    pub(super) fn found_quarantined(&mut self, found: Option<Vec<ExecutionKey>>) {
        self.aside.is_looking = false;
        let Some(found) = found else {
            // The next look comes with that for timers.
            self.aside.is_wanted = true;
            return;
        };
        for execution in found {
            if self.shard.holds(execution) {
                self.meet(execution);
            }
        }
        self.look_for_quarantined();
    }

    /// Tells the execution that waits for a quarantined one, once.
    fn meet(&mut self, execution: ExecutionKey) {
        if self.aside.met.len() >= QUARANTINED_KNOWN_MAX {
            self.aside.met.clear();
        }
        if self.aside.met.insert(execution, true) == Some(true) {
            return;
        }
        let (store, loader, commands) = (self.store.clone(), self.loader.clone(), self.commands.clone());
        let home = self.home.as_ref().map(|(home, _)| home.clone());
        tokio::task::spawn_blocking(move || {
            let place = Place { store: &*store, loader: &loader, home: home.as_ref() };
            let told = catch_unwind(AssertUnwindSafe(|| tell_parent(place, execution)));
            if let Ok(Err(error)) = &told {
                warn!(%execution, %error, "the parent of a quarantined execution could not be told, and is told again");
            }
            let _ = commands.send(Command::ToldParent(execution, told.ok().and_then(Result::ok)));
        });
    }

    /// `is_told` says whether an execution waits for it and was told; nothing if the store did not say. What could not be
    /// told is told again at a later look.
    pub(super) fn told_parent(&mut self, child: ExecutionKey, is_told: Option<bool>) {
        if is_told == Some(true) {
            return;
        }
        // It stays among those that were met: when it is released, its messages are read again.
        self.aside.met.entry(child).and_modify(|is_told| *is_told = false);
        self.aside.is_wanted |= is_told.is_none();
    }
}

fn all_quarantined(store: &dyn Store) -> Result<Vec<ExecutionKey>, StoreError> {
    let mut all: Vec<ExecutionKey> = Vec::new();
    loop {
        let page = store.quarantined(None, all.last().copied(), QUARANTINED_AT_A_TIME)?;
        all.extend(page.iter().map(|row| row.execution));
        if page.len() < QUARANTINED_AT_A_TIME || all.len() >= QUARANTINED_KNOWN_MAX {
            return Ok(all);
        }
    }
}
