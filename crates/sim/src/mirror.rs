//! What the store holds, folded as it grows: the simulator believes nothing else about an execution.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use mainspring_kernel::{
    frame::Frame, input::Timer, journal::Fold, key::ExecutionKey, plan::Plan, state::State, stored::StoredFrame,
};
use mainspring_store::{Most, Store};

use crate::world::World;

/// The execution that is looked at and whatever it has started.
#[derive(Debug)]
pub(crate) struct Family {
    root: ExecutionKey,
    members: BTreeMap<ExecutionKey, Mirror>,
}

impl Family {
    pub(crate) fn new(root: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { root, members: BTreeMap::from([(root, Mirror::new(root, plan))]) }
    }

    pub(crate) fn root(&self) -> &Mirror {
        &self.members[&self.root]
    }

    pub(crate) fn into_root(mut self) -> Mirror {
        self.members.remove(&self.root).expect("the root is a member from the beginning")
    }

    pub(crate) fn member(&self, execution: ExecutionKey) -> Option<&Mirror> {
        self.members.get(&execution)
    }

    /// The journals of all of them.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&ExecutionKey, &Mirror)> {
        self.members.iter()
    }

    /// A new execution, before its first frame is durable.
    pub(crate) fn add(&mut self, execution: ExecutionKey, plan: Arc<Plan>) {
        self.members.entry(execution).or_insert_with(|| Mirror::new(execution, plan));
    }

    /// Every stored frame of all of them.
    pub(crate) fn stored(&self) -> Vec<StoredFrame> {
        let root = self.root().stored.iter();
        let others = self.members.iter().filter(|(key, _)| **key != self.root);
        root.chain(others.flat_map(|(_, mirror)| &mirror.stored)).cloned().collect()
    }

    /// How many frames there are.
    pub(crate) fn frame_count(&self) -> usize {
        self.members.values().map(|mirror| mirror.frames.len()).sum()
    }

    /// The times that are set, each with the order in which it came about.
    pub(crate) fn timers(&self) -> impl Iterator<Item = (&(u64, Timer), u64)> {
        self.members.values().flat_map(|mirror| mirror.timers.iter().map(|(timer, order)| (timer, *order)))
    }

    /// See [`Mirror::catch_up`], for all of them: the new frames, each with its execution.
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

/// Frames read at a time.
const FRAMES_AT_A_TIME: usize = 1024;

/// The durable journal and what it makes.
#[derive(Debug)]
pub(crate) struct Mirror {
    fold: Fold,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stored: Vec<StoredFrame>,
    /// When each timer came about, in the order of everything.
    pub(crate) timers: BTreeMap<(u64, Timer), u64>,
}

impl Mirror {
    pub(crate) fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { fold: Fold::new(key, plan), frames: Vec::new(), stored: Vec::new(), timers: BTreeMap::new() }
    }

    pub(crate) fn state(&self) -> &State {
        &self.fold.state
    }

    /// Reads what was written since, and tells the world of the calls that may be made now. Timers come about before the
    /// calls of the same commit. Gives the new frames' places.
    pub(crate) fn catch_up(&mut self, store: &dyn Store, world: &mut World) -> Result<Range<usize>, String> {
        let before = self.frames.len();
        let mut calls = Vec::new();
        let mut stops = Vec::new();
        loop {
            let key = self.fold.state.key;
            let new = store
                .frames(key, self.fold.next_sequence(), Most::of(FRAMES_AT_A_TIME))
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
        let timers = &self.fold.state.timers;
        self.timers.retain(|timer, _| timers.contains(timer));
        for timer in timers {
            if !self.timers.contains_key(timer) {
                self.timers.insert(timer.clone(), world.next_order());
            }
        }
    }
}
