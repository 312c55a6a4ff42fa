//! Folds the journals in the store as they grow. The simulator has no other source of knowledge about an execution.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use mainspring_kernel::{
    frame::Frame, input::Timer, journal::Fold, key::ExecutionKey, plan::Plan, state::State, stored_frame::StoredFrame,
};
use mainspring_store::{ReadLimit, Store};

use crate::world::World;

/// An execution tree: an execution and all that it has started.
#[derive(Debug)]
pub(crate) struct JournalTree {
    root: ExecutionKey,
    members: BTreeMap<ExecutionKey, JournalMirror>,
}

impl JournalTree {
    pub(crate) fn new(root: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { root, members: BTreeMap::from([(root, JournalMirror::new(root, plan))]) }
    }

    pub(crate) fn root(&self) -> &JournalMirror {
        &self.members[&self.root]
    }

    pub(crate) fn into_root(mut self) -> JournalMirror {
        self.members.remove(&self.root).expect("the root is a member from the beginning")
    }

    pub(crate) fn member(&self, execution: ExecutionKey) -> Option<&JournalMirror> {
        self.members.get(&execution)
    }

    /// Returns the journals of all of them.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&ExecutionKey, &JournalMirror)> {
        self.members.iter()
    }

    /// Adds a new execution, before its first frame is durable.
    pub(crate) fn add(&mut self, execution: ExecutionKey, plan: Arc<Plan>) {
        self.members.entry(execution).or_insert_with(|| JournalMirror::new(execution, plan));
    }

    /// Returns all stored frames of the tree.
    pub(crate) fn stored(&self) -> Vec<StoredFrame> {
        let root = self.root().stored.iter();
        let others = self.members.iter().filter(|(key, _)| **key != self.root);
        root.chain(others.flat_map(|(_, mirror)| &mirror.stored)).cloned().collect()
    }

    /// Returns the number of frames.
    pub(crate) fn frame_count(&self) -> usize {
        self.members.values().map(|mirror| mirror.frames.len()).sum()
    }

    /// Returns the number of bytes of all stored frames.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.members.values().map(|mirror| mirror.stored_bytes).sum()
    }

    /// Returns the timers that are set, each with its position in the order of events.
    pub(crate) fn timers(&self) -> impl Iterator<Item = (&(u64, Timer), u64)> {
        self.members.values().flat_map(|mirror| mirror.timers.iter().map(|(timer, order)| (timer, *order)))
    }

    /// Calls [`JournalMirror::catch_up`] for all of them, and returns the new frames with their executions.
    pub(crate) fn catch_up(
        &mut self,
        store: &dyn Store,
        world: &mut World,
    ) -> Result<Vec<(ExecutionKey, usize)>, String> {
        let mut new = Vec::new();
        for (key, mirror) in &mut self.members {
            new.extend(mirror.catch_up(store, world)?.map(|place| (*key, place)));
        }
        Ok(new)
    }
}

/// Frames of one read.
const FRAMES_AT_A_TIME: usize = 1024;

/// A durable journal and its state.
#[derive(Debug)]
pub(crate) struct JournalMirror {
    fold: Fold,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stored: Vec<StoredFrame>,
    stored_bytes: usize,
    /// The position of each timer in the order of events.
    pub(crate) timers: BTreeMap<(u64, Timer), u64>,
}

impl JournalMirror {
    pub(crate) fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        let (frames, stored) = (Vec::new(), Vec::new());
        Self { fold: Fold::new(key, plan), frames, stored, stored_bytes: 0, timers: BTreeMap::new() }
    }

    pub(crate) fn state(&self) -> &State {
        &self.fold.state
    }

    /// Reads the frames since the last call, and records the calls that may be made now. Timers are ordered before the
    /// calls of the same commit. Returns the positions of the new frames.
    pub(crate) fn catch_up(&mut self, store: &dyn Store, world: &mut World) -> Result<Range<usize>, String> {
        let before = self.frames.len();
        let mut calls = Vec::new();
        let mut stops = Vec::new();
        loop {
            let key = self.fold.state.key;
            let new = store
                .frames(key, self.fold.next_sequence(), ReadLimit::of(FRAMES_AT_A_TIME))
                .map_err(|error| error.to_string())?;
            if new.is_empty() {
                break;
            }
            for stored in new {
                let frame = self.fold.push(&stored).map_err(|broken| broken.to_string())?;
                crate::invariants::check(self.state())?;
                self.number_timers(world);
                for record in &frame.records {
                    match record {
                        mainspring_kernel::record::Record::AttemptStarted { instance, .. } => {
                            calls.extend(
                                mainspring_kernel::decide::open_attempt(self.state(), instance)
                                    .map(|attempt| (instance.clone(), attempt)),
                            );
                        }
                        mainspring_kernel::record::Record::AttemptStopping { instance, attempt, .. } => {
                            stops.push((instance.clone(), *attempt));
                        }
                        _ => {}
                    }
                }
                self.frames.push(frame);
                self.stored_bytes += stored.byte_count();
                self.stored.push(stored);
            }
        }
        for (instance, attempt) in calls {
            world.expect(&instance, self.state().plan.id(instance.step), attempt)?;
        }
        for (instance, number) in stops {
            world.expect_stop(self.fold.state.key, &instance, number);
        }
        Ok(before..self.frames.len())
    }

    fn number_timers(&mut self, world: &mut World) {
        let timers = &self.fold.state.open.timers;
        self.timers.retain(|timer, _| timers.contains(timer));
        for timer in timers {
            if !self.timers.contains_key(timer) {
                self.timers.insert(timer.clone(), world.next_order());
            }
        }
    }
}
