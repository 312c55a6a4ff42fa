//! Executions that are quarantined, at the rim.
//!
//! Those that wait for a quarantined execution are told by whoever holds that. A node may die between the two, so whoever
//! comes to hold a partition looks for what is quarantined in it and tells again: a message that is told twice is the same
//! message, and the journal of the receiver says whether it waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Store, StoreError};
use tracing::warn;

use super::{Command, Reach, Rim};
use crate::{
    aside::{Place, parent_of, tell, tell_of_unbegun},
    lease::Tick,
    limits::{QUARANTINED_AT_A_TIME, QUARANTINED_KNOWN_MAX, TELL_AGAIN_MS_MAX, TELL_AGAIN_MS_MIN, TOLD_AT_A_TIME},
    member::tick,
    shard::{Event, LoadAnswer},
};

/// What the driver knows of quarantined executions.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those that this process has met since they were quarantined.
    met: BTreeMap<ExecutionKey, Met>,
    /// Those of them whose parents are to be told next.
    to_tell: BTreeSet<ExecutionKey>,
    /// Children among them that are not quarantined and cannot begin, with the parents that are said to wait for them.
    unbegun: BTreeMap<ExecutionKey, ExecutionKey>,
    /// Whether parents are being told: one batch at a time.
    is_telling: bool,
    /// Whether they are to be looked for, and whether they are being looked for.
    is_wanted: bool,
    is_looking: bool,
}

/// How far the telling of an execution's parent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    /// It is told next, or is being told.
    Telling { tries: u32 },
    /// It was told.
    Told,
    /// Nobody waits for it. It is tried again whenever it is met: the parent may be quarantined itself, and released later.
    NobodyWaits,
    /// The store did not say, or the parent cannot be read: it is told again at a time.
    Later { tries: u32, at: Tick },
}

/// The children whose parents were to be told, each with whether one waits; nothing if that is not known.
pub(super) type ToldParents = Vec<(ExecutionKey, Option<bool>)>;

impl Aside {
    /// An execution is found to be quarantined.
    fn meet(&mut self, execution: ExecutionKey) {
        if self.met.len() >= QUARANTINED_KNOWN_MAX {
            self.met.clear();
            self.to_tell.clear();
            self.unbegun.clear();
        }
        if matches!(self.met.get(&execution), None | Some(Met::NobodyWaits)) {
            self.met.insert(execution, Met::Telling { tries: 0 });
            self.to_tell.insert(execution);
        }
    }

    /// It is time again for those that could not be told.
    fn retry(&mut self, now: Tick) {
        for (execution, met) in &mut self.met {
            if let Met::Later { tries, at } = *met
                && at <= now
            {
                *met = Met::Telling { tries };
                self.to_tell.insert(*execution);
            }
        }
    }

    /// The children of the next batch, if one may begin.
    fn next_batch(&mut self) -> Option<Vec<ExecutionKey>> {
        if self.is_telling || self.to_tell.is_empty() {
            return None;
        }
        self.is_telling = true;
        Some((0..TOLD_AT_A_TIME).map_while(|_| self.to_tell.pop_first()).collect())
    }

    fn told(&mut self, told: ToldParents, now: Tick) {
        self.is_telling = false;
        for (child, is_told) in told {
            // It stays among those that were met: when it is released, its messages are read again.
            let Some(met) = self.met.get_mut(&child) else { continue };
            let Met::Telling { tries } = *met else { continue };
            if is_told.is_some() && self.unbegun.remove(&child).is_some() {
                self.met.remove(&child);
                continue;
            }
            *met = match is_told {
                Some(true) => Met::Told,
                Some(false) => Met::NobodyWaits,
                None => {
                    let pause_ms = (TELL_AGAIN_MS_MIN << tries.min(16)).min(TELL_AGAIN_MS_MAX);
                    Met::Later { tries: tries.saturating_add(1), at: Tick(now.0.saturating_add(pause_ms)) }
                }
            };
        }
    }
}

impl Rim {
    /// An execution was quarantined.
    pub(super) fn quarantined(&mut self, execution: ExecutionKey) {
        self.aside.met.remove(&execution);
        self.aside.meet(execution);
        self.tell_parents();
    }

    /// A load says whether an execution is quarantined. One that was and is not any more was released: the letters that it
    /// could not take in are read again.
    pub(super) fn meet_quarantined(&mut self, event: &Event) {
        let Event::Loaded(execution, _, answer) = event else { return };
        match **answer {
            LoadAnswer::Quarantined(_) => {
                self.aside.meet(*execution);
                self.tell_parents();
            }
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
        self.aside.retry(tick());
        self.tell_parents();
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
                self.aside.meet(execution);
            }
        }
        self.look_for_quarantined();
    }

    /// Tells the executions that wait for quarantined ones, once each: a batch at a time, on one thread.
    fn tell_parents(&mut self) {
        let Some(children) = self.aside.next_batch() else { return };
        let (store, loader, commands) = (self.store.clone(), self.loader.clone(), self.commands.clone());
        let home = self.home.as_ref().map(|(home, _)| home.clone());
        let unbegun = self.aside.unbegun.clone();
        tokio::task::spawn_blocking(move || {
            let place = Place { store: &*store, loader: &loader, home: home.as_ref() };
            let _ = commands.send(Command::ToldParents(tell_all(place, &children, &unbegun)));
        });
    }

    /// The message that was to begin a child was changed: the parent that it names is told, if it waits for this child.
    pub(super) fn unbegun(&mut self, child: ExecutionKey, parent: Option<ExecutionKey>) {
        let Some(parent) = parent.filter(|_| !self.aside.met.contains_key(&child)) else { return };
        self.aside.meet(child);
        self.aside.unbegun.insert(child, parent);
        self.tell_parents();
    }

    pub(super) fn told_parents(&mut self, told: ToldParents) {
        self.aside.told(told, tick());
        self.tell_parents();
    }
}

/// Tells the parents of some quarantined executions. Each parent's journal is read once, and what goes wrong with one says
/// nothing of the others.
fn tell_all(
    place: Place<'_>,
    children: &[ExecutionKey],
    unbegun: &BTreeMap<ExecutionKey, ExecutionKey>,
) -> ToldParents {
    let mut all = Vec::new();
    let mut families: BTreeMap<ExecutionKey, Vec<ExecutionKey>> = BTreeMap::new();
    for child in children {
        if let Some(parent) = unbegun.get(child) {
            let told = catch_unwind(AssertUnwindSafe(|| tell_of_unbegun(place, *parent, *child)));
            all.push((*child, told.ok().and_then(Result::ok)));
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| parent_of(place, *child))) {
            Ok(Ok(Some(parent))) => families.entry(parent).or_default().push(*child),
            Ok(Ok(None)) => all.push((*child, Some(false))),
            Ok(Err(_)) | Err(_) => all.push((*child, None)),
        }
    }
    for (parent, children) in families {
        let told = catch_unwind(AssertUnwindSafe(|| tell(place, parent, &children)));
        if let Ok(Err(error)) = &told {
            warn!(%parent, %error, "the parent of quarantined executions could not be told, and is told again");
        }
        let told = told.ok().and_then(Result::ok);
        all.extend(children.into_iter().map(|child| (child, told.as_ref().map(|told| told.contains(&child)))));
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ExecutionKey {
        let mut key = ExecutionKey([0; 16]);
        key.0[..8].copy_from_slice(&(number as u64).to_be_bytes());
        key
    }

    #[test]
    fn one_batch_of_bounded_size_is_told_at_a_time() {
        let mut aside = Aside::default();
        (0..=TOLD_AT_A_TIME).for_each(|number| aside.meet(key(number)));
        let batch = aside.next_batch().unwrap();
        assert_eq!(batch.len(), TOLD_AT_A_TIME);
        assert_eq!(aside.next_batch(), None, "one is under way");
        aside.told(batch.into_iter().map(|child| (child, Some(child != key(0)))).collect(), Tick(0));
        aside.meet(key(1));
        assert_eq!(aside.next_batch(), Some(vec![key(TOLD_AT_A_TIME)]), "who was told is not told again");
        aside.told(vec![(key(TOLD_AT_A_TIME), Some(true))], Tick(0));
        aside.meet(key(0));
        assert_eq!(aside.next_batch(), Some(vec![key(0)]), "nobody waited for this one");
    }

    #[test]
    fn a_parent_that_cannot_be_read_is_asked_less_and_less_often() {
        let (mut aside, mut now, mut asked_at) = (Aside::default(), 0, Vec::new());
        aside.meet(key(0));
        while asked_at.len() < 12 {
            aside.meet(key(0));
            aside.retry(Tick(now));
            if let Some(batch) = aside.next_batch() {
                asked_at.push(now);
                aside.told(batch.into_iter().map(|child| (child, None)).collect(), Tick(now));
            }
            now += TELL_AGAIN_MS_MIN;
        }
        let pauses: Vec<u64> = asked_at.windows(2).map(|times| times[1] - times[0]).collect();
        assert_eq!(pauses[..3], [TELL_AGAIN_MS_MIN, 2 * TELL_AGAIN_MS_MIN, 4 * TELL_AGAIN_MS_MIN]);
        assert_eq!(pauses.last(), Some(&TELL_AGAIN_MS_MAX));
        // What was quarantined anew is told at once.
        aside.met.remove(&key(0));
        aside.meet(key(0));
        assert!(aside.next_batch().is_some());
    }
}
